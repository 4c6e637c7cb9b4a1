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
WRAPS = "import subprocess, sys\nsubprocess.run(sys.argv[1:])\n"
RUN = "docker build -t moth .\ndocker run --gpus all moth %s\n"
EDITOR = '{"build": {"dockerfile": "Dockerfile"}, "runArgs": ["--gpus=all"]}'
SERVICE = "services:\n  t:\n    gpus: all\n    %s\n"
EXEC, SHELL = 'ENTRYPOINT ["python", "train.py"]', "CMD python train.py"
TORCH = "ARG B=pytorch/pytorch:2.9.1\nFROM $B"
GO = "N=4\npython train.py --num-workers $N\n"
# The Dockerfile, behind a FROM where it has none, name and text of the file that is linted, and how grave TL301 is.
CASES = {
    "an ENTRYPOINT runs": (EXEC, "r.sh", RUN % "", "error"),
    "a CMD runs": (SHELL, "r.sh", RUN % "", "error"),
    "both are joined": ('CMD ["train.py"]\nENTRYPOINT ["python"]', "r.sh", RUN % "", "error"),
    "arguments are appended": (EXEC, "r.sh", RUN % "--lr 3", "error"),
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
        "error",
    ),
    "a name is built twice": (SHELL, "r.sh", "docker build -t moth -f D2 .\n" + RUN % "", ""),
    "a name is given to another": (SHELL, "r.sh", "docker pull moth\n" + RUN % "", ""),
    "the same variable is the same image": (
        SHELL,
        "r.md",
        "```\ndocker build -t $IMAGE .\n```\n```\ndocker run --gpus all ${IMAGE}\n```\n",
        "error",
    ),
    "a variable changes": (SHELL, "r.sh", f"IMAGE=a\nIMAGE=c\n{RUN.replace('moth', '$IMAGE') % ''}", ""),
    "the text writes a Dockerfile": (SHELL, "r.sh", "cat > Dockerfile <<E\nFROM x\nE\n" + RUN % "", ""),
    "a command may be meant instead": ('ENTRYPOINT ["env", "python", "train.py"]', "r.sh", RUN % "bash", ""),
    "options are in a variable": (SHELL, "r.sh", RUN.replace("-t", "$OPTIONS -t") % "", ""),
    "a context is elsewhere": (SHELL, "r.sh", RUN.replace(" .", " -f Dockerfile https://example.org/x.git") % "", ""),
    "make builds in its folder": (
        "CMD serve",
        "sub/Makefile",
        "b:\n\tdocker build -t moth .\nr:\n\tdocker run --gpus all moth\n",
        "error",
    ),
    "one of two folders may be meant": ("CMD serve", "sub/r.sh", RUN % "", ""),
    "a service is built": (SHELL, "compose.yaml", SERVICE % "build: {context: ., dockerfile: Dockerfile}", "error"),
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
    "a script runs": ("", "r.sh", "docker run --gpus all x:1 bash -e scripts/go.sh\n", "error"),
    "a script runs in a pod": (
        "",
        "pod.yaml",
        "kind: Pod\napiVersion: v1\nspec:\n  containers:\n  - {name: t, image: x:1, command: [./go.sh], "
        "resources: {limits: {nvidia.com/gpu: 1}}}\n",
        "error",
    ),
    "a script runs what it gets": ('ENTRYPOINT ["./each.sh"]\n' + SHELL, "r.sh", RUN % "", "error"),
    "a branch is not sure": ("", "r.sh", "docker run --gpus all x:1 bash branch.sh\n", ""),
    "what a test decides is not sure": ("", "r.sh", "docker run --gpus all x:1 bash tests.sh\n", ""),
    "a script's literals are filled in": ("", "r.sh", "docker run --gpus all x:1 bash none.sh\n", ""),
    "a variable may hold options": ("CMD python asks.py $ARGS", "r.sh", RUN % "", "info"),
    "only a variable knows the folder": (SHELL, "r.sh", "cd $X\n" + RUN % "", ""),
    "the folder is absent": (SHELL, "r.sh", "cd other\n" + RUN % "", ""),
    "nor what stands behind an end": ("", "r.sh", "docker run --gpus all x:1 bash ended.sh\n", ""),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a repository with scripts."""
    texts = {"train.py": TRAIN, "wraps.py": WRAPS, "scripts/go.sh": GO, "each.sh": 'set -e\nexec "$@"\n'}
    texts |= {"branch.sh": f"if [ $1 ]; then\n{GO}fi\n", "ended.sh": f"if [ $1 ]; then\nexec x\nfi\n{GO}"}
    texts |= {"tests.sh": f"N=4; [ $1 ] && {GO[4:]}", "none.sh": GO.replace("4", "0"), "asks.py": ASKS}
    texts["exports.sh"] = "export NUM_WORKERS=0\npython train.py\n"
    texts |= {"sub/Dockerfile": f"FROM x\n{SHELL}\n", "D2": "FROM x\n", "../Dockerfile": f"FROM x\n{SHELL}\n"}
    for name, text in texts.items():
        (tmp_path / "repository" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "repository" / name).write_text(text)
    (tmp_path / "repository/.git").mkdir()
    return tmp_path / "repository"


@pytest.mark.parametrize(("image", "name", "text", "severity"), CASES.values(), ids=CASES)
def test_a_container_runs_what_its_image_and_its_scripts_do(
    place: Path, image: str, name: str, text: str, severity: str
) -> None:
    """An image is known where one Dockerfile alone can be meant; a script's commands where it surely gets to them."""
    (place / "Dockerfile").write_text(f"{image}\n" if "FROM" in image else f"FROM python:3\n{image}\n")
    (place / name).write_text(text)
    found = [each.severity.value for each in lint_file(place / name).findings if each.diagnostic.code == "TL301"]
    assert found == [severity] * bool(severity)


@pytest.mark.parametrize(
    ("entrypoint", "words", "found"),
    [
        ('["python", "-u", "train.py"]', "python train.py --lr 3", ["TL358"]),
        ('["python", "train.py"]', "/bin/bash", ["TL358"]),
        ('["python", "train.py"]', "python", []),
        ('["python", "wraps.py"]', "python train.py", []),
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
