"""What a container gets from the Dockerfile that its image is built of, and from shell scripts that it starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.lint.linter import lint_file

TRAIN = "import torch\nfor x in torch.utils.data.DataLoader(d, 128, num_workers=16):\n    loss.backward()\n"
ASKS = (
    "import argparse, torch\np = argparse.ArgumentParser()\np.add_argument('-j', type=int, default=4)\n"
    "a = p.parse_args()\n"
    "for x in torch.utils.data.DataLoader(d, 128, num_workers=a.j):\n    loss.backward()\n"
)
READS = ASKS.replace("a.j", "int(os.environ.get('NUM_WORKERS', 8))").replace("torch\n", "torch, os\n", 1)
WRAPS = "import subprocess, sys\nsubprocess.run(sys.argv[1:])\n"
RUN = "docker build -t moth .\ndocker run --gpus all moth %s\n"
EDITOR = '{"build": {"dockerfile": "Dockerfile"}, "runArgs": ["--gpus=all"]}'
SERVICE = "services:\n  t:\n    gpus: all\n    %s\n"
EXEC, SHELL = 'ENTRYPOINT ["python", "train.py"]', "CMD python train.py"
ONLY = "CMD python only.py"
WITH = "CMD python train_with.py"
STEPS = (
    "on: push\njobs:\n  a:\n    runs-on: x\n    steps:\n    - {uses: actions/checkout@v4%s}\n    - run: cd scripts\n"
    "    - run: docker build -t moth .\n    - run: docker run --gpus all moth\n"
)
TORCH = "ARG B=pytorch/pytorch:2.9.1\nFROM $B"
GO = "N=4\npython train.py --num-workers $N\n"
# The Dockerfile, behind a FROM where it has none, name and text of the file that is linted, and how grave TL301 is.
CASES = {
    "an ENTRYPOINT runs": (EXEC, "r.sh", RUN % "", "warning"),
    "a CMD runs": (SHELL, "r.sh", RUN % "", "warning"),
    "both are joined": ('CMD ["train.py"]\nENTRYPOINT ["python"]', "r.sh", RUN % "", "warning"),
    "arguments are appended": (EXEC, "r.sh", RUN % "--lr 3", "warning"),
    "arguments replace CMD": (SHELL, "r.sh", RUN % "bash", ""),
    "an entrypoint of the line is its own": (EXEC, "r.sh", RUN.replace("all", "all --entrypoint x") % "", ""),
    "an ENTRYPOINT empties an inherited CMD": (
        'FROM x AS a\nCMD ["train.py"]\nFROM a\nENTRYPOINT ["python"]',
        "r.sh",
        RUN % "",
        "",
    ),
    "ONBUILD is for others": (f"ONBUILD {SHELL}", "r.sh", RUN % "", ""),
    "a stage is the target": (
        f"FROM x AS a\n{SHELL}\nFROM b\nCMD serve",
        "r.sh",
        RUN.replace("-t", "--target a -t") % "",
        "warning",
    ),
    "a name is built twice": (SHELL, "r.sh", "docker build -t moth -f D2 .\n" + RUN % "", ""),
    "a name is given to another": (SHELL, "r.sh", "docker pull moth\n" + RUN % "", ""),
    "the same variable is the same image": (
        SHELL,
        "r.md",
        "```\ndocker build -t $IMAGE sub\n```\n```\ndocker run --gpus all ${IMAGE}\n```\n",
        "info",
    ),
    "prose may name another folder": (SHELL, "r.md", f"Go to sub.\n```\n{RUN % ''}```\n", ""),
    "a cd beside it names one": ("CMD serve", "r.md", f"```\ncd sub\n{RUN % ''}```\n", "info"),
    "one of an earlier fence doesn't": ("CMD serve", "r.md", f"```\ncd sub\n```\n```\n{RUN % ''}```\n", ""),
    "another repository is cloned": (SHELL, "r.sh", f"git clone https://a.b/c/thing\ncd thing\n{RUN % ''}", ""),
    "another repository is cloned here": (SHELL, "r.sh", f"git clone https://a.b/c/thing .\n{RUN % ''}", ""),
    "its own repository is cloned": (
        SHELL,
        "r.sh",
        f"git clone https://a.b/c/repository\ncd repository\n{RUN % ''}",
        "warning",
    ),
    "its own repository has a remote": (SHELL, "r.sh", f"git clone git@a.b:c/far.git\ncd far\n{RUN % ''}", "warning"),
    "files are unpacked": (SHELL, "r.sh", f'tar xf o.tgz\ncd "$(dirname "$0")"\n{RUN % ""}', ""),
    "a program that unpacks is installed": (SHELL, "r.sh", "sudo apt install tar\n" + RUN % "", "warning"),
    "a folder without a Dockerfile": (SHELL, "r.sh", "cd scripts\n./make.sh\n" + RUN % "", ""),
    "a cd is in a branch": (SHELL, "r.sh", f"if $A; then cd scripts; fi\n{RUN % ''}", ""),
    "a branch with a cd is over": ("CMD serve", "r.sh", f"if $A; then\ncd sub\nfi\n{RUN % ''}", ""),
    "a cd is for a failure": ("CMD serve", "r.sh", f"ls x || cd sub\n{RUN % ''}", ""),
    "a cd is behind a test": ("CMD serve", "r.sh", f"[ $A ] && cd sub\n{RUN % ''}", ""),
    "a cd is another shell's": ("CMD serve", "r.sh", f"(cd sub && ls)\n{RUN % ''}", ""),
    "a function builds": (
        SHELL,
        "r.sh",
        "b() {\n  docker build -t moth .\n}\ncd scripts\nb\ndocker run --gpus all moth\n",
        "",
    ),
    "the text's own folder is entered": (SHELL, "r.sh", f'cd scripts\ncd "$(dirname "$0")"\n{RUN % ""}', "warning"),
    "one beside the text's own is entered": (SHELL, "r.sh", f'cd "$(dirname "$0")/other"\n{RUN % ""}', ""),
    "another host builds": (SHELL, "r.sh", "ssh h " + RUN % "", ""),
    "a step builds": (SHELL, ".github/workflows/w.yml", STEPS % "", "warning"),
    "a step checks out another repository": (SHELL, ".github/workflows/w.yml", STEPS % ", with: {repository: a/b}", ""),
    "each line of make is a shell": (
        SHELL,
        "Makefile",
        "t:\n\tcd sub && pytest\nb:\n\tdocker build -t moth .\nr:\n\tdocker run --gpus all moth\n",
        "warning",
    ),
    "a mount lies over it": (f"WORKDIR /a\n{SHELL}", "r.sh", RUN.replace("all", "all -v ./o:/a") % "", ""),
    "a mount is the same folder": (
        f"WORKDIR /a\n{SHELL}",
        "r.sh",
        RUN.replace("all", "all -v $PWD:/a") % "",
        "warning",
    ),
    "a name is too long": (SHELL, "r.sh", f"docker build -t x -f {'a' * 300} .\n{RUN % ''}", "warning"),
    "a mount is another's folder": (SHELL, "r.sh", RUN.replace(" .", " sub").replace("all", "all -v $PWD:/s") % "", ""),
    "help is asked for": (EXEC, "r.sh", RUN % "--help", ""),
    "a step is elsewhere": (SHELL, ".github/workflows/w.yml", STEPS % ", working-directory: a", ""),
    "no other part has a context": ("CMD serve", "sub/compose.yaml", SERVICE % "build: {args: {A: 1}}", "warning"),
    "another part has the context": (SHELL, "compose.yaml", SERVICE % "build: {args: {A: 1}}", ""),
    "its command is null": (SHELL, "compose.yaml", SERVICE % "build: .\n    command: null", "warning"),
    "an editor leaves the CMD": (
        SHELL,
        ".devcontainer.json",
        EDITOR.replace("{", '{"overrideCommand": false, ', 1),
        "warning",
    ),
    "no POSIX shell runs": (f'SHELL ["pwsh", "-c"]\n{SHELL}', "r.sh", RUN % "", ""),
    "a variable is passed on": (
        f"ENV NUM_WORKERS=8\n{WITH}",
        "r.sh",
        RUN.replace("all", "all -e NUM_WORKERS") % "",
        "info",
    ),
    "a variable is the shell's": (f"ENV NUM_WORKERS=8\nCMD NUM_WORKERS=0; {WITH[4:]}", "r.sh", RUN % "", ""),
    "a variable is another command's": (f"CMD NUM_WORKERS=8 python a.py && {WITH[4:]}", "r.sh", RUN % "", "info"),
    "a variable has one of two values": (
        f"CMD [ $A ] && export NUM_WORKERS=0 || export NUM_WORKERS=8; {WITH[4:]}",
        "r.sh",
        RUN % "",
        "info",
    ),
    "a variable is this command's": (f"CMD env NUM_WORKERS=8 {WITH[4:]}", "r.sh", RUN % "", "warning"),
    "a variable changes": (SHELL, "r.sh", f"IMAGE=a\nIMAGE=c\n{RUN.replace('moth', '$IMAGE') % ''}", ""),
    "the text writes a Dockerfile": (SHELL, "r.sh", "cat > Dockerfile <<E\nFROM x\nE\n" + RUN % "", ""),
    "a command may be meant instead": ('ENTRYPOINT ["env", "python", "train.py"]', "r.sh", RUN % "bash", ""),
    "options are in a variable": (SHELL, "r.sh", RUN.replace("-t", "$OPTIONS -t") % "", ""),
    "a context is elsewhere": (SHELL, "r.sh", RUN.replace(" .", " -f Dockerfile https://example.org/x.git") % "", ""),
    "make builds in its folder": (
        "CMD serve",
        "sub/Makefile",
        "b:\n\tdocker build -t moth .\nr:\n\tdocker run --gpus all moth\n",
        "warning",
    ),
    "one of two folders may be meant": ("CMD serve", "sub/r.sh", RUN % "", ""),
    "another file is copied": (f"COPY sub .\n{SHELL}", "compose.yaml", SERVICE % "build: .", ""),
    "the script's folder is copied": (f"WORKDIR /a\nCOPY jobs/ .\n{ONLY}", "r.sh", RUN % "", "warning"),
    "it is copied by its name": (f"COPY jobs/only.py /only.py\n{ONLY}", "r.sh", RUN % "", "warning"),
    "it is copied by a pattern": (f'COPY ["jobs/on*.py", "/"]\n{ONLY}', "r.sh", RUN % "", "warning"),
    "a later copy lies over it": (f"COPY jobs /\nCOPY sub/none.py /only.py\n{ONLY}", "r.sh", RUN % "", ""),
    "it is copied of another stage": (f"FROM x AS a\nFROM y\nCOPY --from=a jobs .\n{ONLY}", "r.sh", RUN % "", ""),
    "a variable is the folder": (f"WORKDIR $A\nCOPY jobs $A\n{ONLY}", "r.sh", RUN % "", "warning"),
    "its folder is mounted": (
        f"WORKDIR /a\nCOPY sub/Dockerfile .\n{ONLY}",
        "sub/compose.yaml",
        SERVICE % "build: {context: .., dockerfile: Dockerfile}\n    volumes: ['../jobs:/a']",
        "warning",
    ),
    "a file of elsewhere lies over it": (f"COPY jobs /\nADD https://a.b/only.py /\n{ONLY}", "r.sh", RUN % "", ""),
    "another folder is entered": (f"COPY jobs /a\nCMD cd /a && {ONLY[4:]}", "r.sh", RUN % "", ""),
    "a copy is for others": (f"ONBUILD COPY jobs /\nCOPY sub /s\n{ONLY}", "r.sh", RUN % "", ""),
    "its pattern is of folders": (f"COPY j*/only.py /\n{ONLY}", "r.sh", RUN % "", ""),
    "its base has a folder": (
        f"{TORCH}\nCOPY jobs .\nCMD python /workspace/only.py",
        "r.sh",
        RUN % "",
        "warning",
    ),
    "another folder is mounted": (
        f"WORKDIR /a\nCOPY jobs .\n{ONLY}",
        "compose.yaml",
        SERVICE % "build: .\n    volumes: ['data:/a']",
        "",
    ),
    "another repository is in it": (f"RUN git clone https://a.b/c .\n{SHELL}", "r.sh", RUN % "", ""),
    "all is copied": (f"COPY . /app\n{SHELL}", "r.sh", RUN % "", "warning"),
    "a service is built": (SHELL, "compose.yaml", SERVICE % "build: {context: ., dockerfile: Dockerfile}", "warning"),
    "its entrypoint is its own": (EXEC, "compose.yaml", SERVICE % "build: .\n    entrypoint: x", ""),
    "its empty command empties CMD": (SHELL, "compose.yaml", SERVICE % "build: .\n    command: []", ""),
    "another file is built": (SHELL, "compose.yaml", SERVICE % "build: {dockerfile_inline: FROM x}", ""),
    "a file is outside": ("", "compose.yaml", SERVICE % "build: {context: ., dockerfile: ../Dockerfile}", ""),
    "a program of the image is no guess": (f'{TORCH}\nENTRYPOINT ["torchrun"]', "r.sh", RUN % "train_it.py", "warning"),
    "a base is PyTorch's": (f"{TORCH} AS a\nFROM a", "r.sh", RUN % "bash", "info"),
    "an editor has a base": (TORCH, ".devcontainer.json", EDITOR, "info"),
    "an editor runs no CMD": (SHELL, ".devcontainer.json", EDITOR, ""),
    "an argument decides the base": (TORCH, "r.sh", RUN.replace("-t", "--build-arg B=x -t") % "bash", ""),
    "a variable of the image counts": (f"ENV NUM_WORKERS=0\n{SHELL}", "r.sh", RUN % "", ""),
    "a variable that a script exports counts": ("", "r.sh", "docker run --gpus all x:1 bash exports.sh\n", ""),
    "a script runs": ("", "r.sh", "docker run --gpus all x:1 bash -e scripts/go.sh\n", "warning"),
    "a script runs in a pod": (
        "",
        "pod.yaml",
        "kind: Pod\napiVersion: v1\nspec:\n  containers:\n  - {name: t, image: x:1, command: [./go.sh], "
        "resources: {limits: {nvidia.com/gpu: 1}}}\n",
        "warning",
    ),
    "a script runs what it gets": ('ENTRYPOINT ["./each.sh"]\n' + SHELL, "r.sh", RUN % "", "warning"),
    "an option may keep a script from running": ("", "r.sh", "docker run --gpus all x:1 bash -n go.sh\n", ""),
    "as may its name": ("", "r.sh", "docker run --gpus all x:1 bash -o noexec go.sh\n", ""),
    "a script may not run what it gets": ('ENTRYPOINT ["./may.sh"]\n' + SHELL, "r.sh", RUN % "", ""),
    "a script changes what it gets": ('ENTRYPOINT ["./other.sh"]\n' + SHELL, "r.sh", RUN % "", ""),
    "a script's literals are filled in": ("", "r.sh", "docker run --gpus all x:1 bash none.sh\n", ""),
    "a variable may hold options": ("CMD python asks.py $ARGS", "r.sh", RUN % "", "info"),
    "only a variable knows the folder": (SHELL, "r.sh", "cd $X\n" + RUN % "", ""),
    "the folder is absent": (SHELL, "r.sh", "cd other\n" + RUN % "", ""),
    "a substitution may hold options": ("CMD python asks.py $(cat x)", "r.sh", RUN % "", "info"),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a repository with scripts."""
    texts = {"train.py": TRAIN, "wraps.py": WRAPS, "scripts/go.sh": GO, "each.sh": 'set -e\nexec "$@"\n'}
    texts |= {"train_with.py": TRAIN.replace("16", "n"), "docker-compose.gpu.yml": "services: {}"}
    texts |= {"jobs/only.py": TRAIN, "sub/none.py": ""}
    texts |= {"entry.py": "import launch\n"}
    texts |= {"launch.py": WRAPS, "other.py": "from some.where import main\nmain()\n"}
    texts |= {"may.sh": '[ $A ] && exec "$@"\n', "other.sh": 'set -- python x.py "$@"\nexec "$@"\n'}
    texts |= {"none.sh": GO.replace("4", "0"), "asks.py": ASKS, "env.py": READS}
    texts["exports.sh"] = "export NUM_WORKERS=0\npython train.py\n"
    texts |= {
        "sub/Dockerfile": f"FROM x\nWORKDIR /s\n{SHELL}\n",
        "D2": "FROM x\n",
        "../Dockerfile": f"FROM x\n{SHELL}\n",
    }
    for name, text in texts.items():
        (tmp_path / "repository" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "repository" / name).write_text(text)
    (tmp_path / "repository/.git").mkdir()
    (tmp_path / "repository/.git/config").write_text('[remote "origin"]\n\turl = https://a.b/c/far.git\n')
    return tmp_path / "repository"


@pytest.mark.parametrize(("image", "name", "text", "severity"), CASES.values(), ids=CASES)
def test_a_container_runs_what_its_image_and_its_scripts_do(
    place: Path, image: str, name: str, text: str, severity: str
) -> None:
    """An image is known where one Dockerfile alone can be meant; a script's commands where it surely gets to them."""
    (place / "Dockerfile").write_text(f"{image}\n" if "FROM" in image else f"FROM python:3\n{image}\n")
    (place / name).parent.mkdir(exist_ok=True, parents=True)
    (place / name).write_text(text)
    found = [each.severity.value for each in lint_file(place / name).findings if each.diagnostic.code == "TL301"]
    assert found == [severity] * bool(severity)


@pytest.mark.parametrize(
    "text",
    [
        'T "$@"',
        "exec T",
        "(\nexit 0\n)\nT",
        "exec > >(tee log)\nT | tee log",
        "cd /x || exit\n[ -f y ] || { echo no; exit 1; }\nT || exit 1",
        "set -e; pip install -r r.txt &&\n\n  python prepare.py && T",
        "for i in 1 2; do\n  cd /x && T --seed $i\ndone",
        "while read x; do\n  break\ndone < <(y)\nT",
        "f() {\n  if x; then y; fi\n}\ncase $1 in\na) f;;\n(b) f;;\nesac\nT",
        "A=(1 2)\nT",
        'A=(\n  -j 4\n)\npython asks.py "${A[@]}"',
        ". ./conf\nexport N=4\npython asks.py -j $N",
        "./go.sh\n" * 150 + "T",
    ],
)
def test_a_script_surely_gets_to_a_command(place: Path, text: str) -> None:
    """At the outermost level, or in a loop over literals, it does where nothing in front decides otherwise."""
    assert _of_script(place, text) == ["warning"]


@pytest.mark.parametrize(
    "text",
    [
        "if x; then\n  T\nfi",
        "[ $A ] && T",
        "[ $A ] &&\n  T",
        "[ $A ] && { cd x; } && T",
        "[ $A ] && for i in 1 2; do\n  T\ndone",
        "! cd x && T",
        "python -c 'import apex' && T",
        "(( $# > 1 )) && T",
        "x || (\n  echo; T\n)",
        "function f { echo; T; }",
        "time if x; then\n  T\nfi",
        "while x; do\n  T\ndone",
        'for i in "$@"; do T; done',
        "for i in 1 2; do\n  if x; then continue; fi\n  T\ndone",
        "f() {\n  case $1 in\n  (a) x;;\n  esac\n  T\n}",
        "if x; then\n  exec y\nfi\nT",
        "[ $A ] && exit\nT",
        "exit 1\nT",
        "cd sub\nT",
        "git clone https://a.b/c\nT",
        "f() { serve; exit 0; }\nf\nT",
        "A=(\n  T\n)",
        "N=4\n. ./conf\npython asks.py -j $N",
        "f() { . ./conf; }\nN=4\nf\npython asks.py -j $N",
        "N=4\nexport $(cat x)\npython asks.py -j $N",
        "N=4\nwhile IFS= read N; do x; done < y\npython asks.py -j $N",
        "N=4\n(( N -= 4 ))\npython asks.py -j $N",
        "x ||\n  N=4\npython asks.py -j $N",
        "N+=4\npython asks.py -j $N",
        "N=4 | x\npython asks.py -j $N",
        'A=(-j 4)\nA[1]=0\npython asks.py "${A[@]}"',
        'A=(-j 4)\nA=()\npython asks.py "${A[@]}"',
        "[ $A ] && export NUM_WORKERS=0\npython env.py",
    ],
)
def test_a_script_may_not_get_to_a_command(place: Path, text: str) -> None:
    """What a test, a branch, a function, an end or another text decides is nobody's finding."""
    assert "warning" not in _of_script(place, text)


def _of_script(place: Path, text: str) -> list[str]:
    (place / "go.sh").write_text(text.replace("T", "python train.py") + "\n")
    (place / "r.sh").write_text("docker run --gpus all x:1 bash -euo pipefail go.sh\n")
    return [each.severity.value for each in lint_file(place / "r.sh").findings if each.diagnostic.code == "TL301"]


def test_another_file_of_compose_may_say_more_of_a_service(place: Path) -> None:
    """Both are given to Compose together, and which one holds nobody can say."""
    (place / "Dockerfile").write_text(f"FROM python:3\n{SHELL}\n")
    text = SERVICE % "build: ."
    (place / "docker-compose.gpu.yml").write_text(text)
    (place / "docker-compose.yml").write_text(text)
    assert [
        each for each in lint_file(place / "docker-compose.gpu.yml").findings if each.severity.value != "info"
    ] == []


@pytest.mark.parametrize(
    ("entrypoint", "words", "found"),
    [
        ('["python", "-u", "train.py"]', "python train.py --lr 3", ["TL358"]),
        ('["python", "train.py"]', "/bin/bash", ["TL358"]),
        ('["python", "train.py"]', "python", []),
        ('["python"]', "python train.py", ["TL358"]),
        ('["python"]', "train.py", []),
        ('["python", "wraps.py"]', "python train.py", []),
        ('["python", "entry.py"]', "python train.py", []),
        ('["python", "other.py"]', "python train.py", []),
        ('["python", "absent.py"]', "python train.py", []),
        ('["tini", "--", "python"]', "train.py", []),
        ('["./each.sh"]', "python train.py", []),
        ('["accelerate", "launch", "train.py"]', "bash", []),
        ("exec python train.py", "bash", []),
    ],
)
def test_a_script_gets_a_command_as_its_arguments(place: Path, entrypoint: str, words: str, found: list[str]) -> None:
    """Only a script that is there and starts nothing itself is certain not to run it."""
    (place / "Dockerfile").write_text(f"FROM python:3\nENTRYPOINT {entrypoint}\n")
    (place / "r.sh").write_text(RUN % words)
    codes = [each.diagnostic.code for each in lint_file(place / "r.sh").findings]
    assert [each for each in codes if each == "TL358"] == found
