"""Which files are looked into, and what each is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from trainlaunch.lint.file_kinds import kind_of
from trainlaunch.lint.files import files_of
from trainlaunch.lint.linter import fixed, lint_file, lint_text
from trainlaunch.rules.sources.near_scripts import near_script, script_at

from tests.conftest import Runs

IGNORE = """\
# comment
*.log
!keep.log
/build
out/
docs/**/*.tmp
a?c.sh
**/deep/x.sh
[!q]z.sh
name\\#.sh
"""
PATHS = [
    *("a.log", "keep.log", "build/x.sh", "sub/build/x.sh", "out/x.sh", "sub/out/x.sh", "out.sh", "docs/a/b/c.tmp"),
    *("docs/c.tmp", "abc.sh", "abbc.sh", "deep/x.sh", "q/deep/x.sh", "az.sh", "qz.sh", "name#.sh", "sub/again.sh"),
]


def test_what_git_ignores_is_left_out(tmp_path: Path) -> None:
    """The same files as `git ls-files` names, a .gitignore of a subfolder included."""
    if shutil.which("git") is None:
        pytest.skip("git is not on PATH, so its own reading can't be asked")
    for each in PATHS:
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / each).write_text("x")
    (tmp_path / ".gitignore").write_text(IGNORE)
    (tmp_path / "sub" / ".gitignore").write_text("again.sh\n!/out/\n")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    asked = ["git", "-C", str(tmp_path), "ls-files", "--others", "--exclude-standard"]
    said = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    found = [str(each.relative_to(tmp_path)) for each in files_of([tmp_path])]
    assert sorted(found) == sorted(each for each in said if not each.endswith(".gitignore"))
    below = [str(each.relative_to(tmp_path)) for each in files_of([tmp_path / "docs"])]
    assert below == [each for each in sorted(said) if each.startswith("docs/")]


def test_what_a_repository_names_is_not_waited_for(tmp_path: Path, trainlaunch: Runs) -> None:
    """A FIFO as .gitignore, or as a patch of a kustomization, would hold up lint for ever."""
    os.mkfifo(tmp_path / ".gitignore")
    os.mkfifo(tmp_path / "patch.yaml")
    (tmp_path / "kustomization.yaml").write_text("patches:\n  - path: patch.yaml\n")
    assert "error[TL395]: nothing that lint reads" in trainlaunch("lint", ".", cwd=tmp_path).stderr


def test_hidden_folders_and_links_are_not_entered(tmp_path: Path) -> None:
    """But those in which CI and devcontainers keep their files are."""
    for each in (
        ".cache/x.sh",
        ".github/workflows/a.yml",
        ".devcontainer/devcontainer.json",
        "node_modules/x.sh",
        "a.sh",
    ):
        (tmp_path / each).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / each).write_text("x")
    (tmp_path / "loop").symlink_to(tmp_path, target_is_directory=True)
    found = [str(each.relative_to(tmp_path)) for each in files_of([tmp_path, tmp_path / "a.sh"])]
    assert found == [".devcontainer/devcontainer.json", ".github/workflows/a.yml", "a.sh"]


POD = "apiVersion: v1\nkind: Pod\nspec: {containers: [{image: x}]}\n"
KINDS = [
    ("a.yaml", POD, "kubernetes"),
    ("a.yaml", "services: {a: {image: x}}\n", "compose"),
    ("a.yaml", "services: [a, b]\nimage: x\n", None),
    ("a.yaml", "services: {a: {deploy: {replicas: 2}}}\n", None),
    ("docker-compose-gpu.yml", "services: {a: {runtime: nvidia, deploy: {replicas: 2}}}\n", "compose"),
    ("job.yaml", "name: a\nimage: x\ncommand: [python, train.py]\n", None),
    ("job.yaml", "name: a\nimage: x\nscript: |\n  python train.py\n", None),
    ("a.yaml", "steps: [{plugins: [{kubernetes: {podSpec: {containers: [{image: x}]}}}]}]\n", "kubernetes"),
    ("a.yaml", "on: push\njobs: {a: {runs-on: x, steps: []}}\n", "github-actions"),
    ("a.yaml", "train: {image: x, script: [python train.py]}\n", "gitlab-ci"),
    ("a.yaml", "other: {a: {image: x, command: [}\n", None),
    ("compose.yaml", "services:\n  a: {image: x, command: [}\n", "compose"),
    ("chart/templates/a.yaml", 'kind: Pod\nspec:\n  {{- include "x" . }}\n  containers: []\n', "template"),
    ("a.yaml", "# image: {{ image }}\nservices: {a: {image: x}}\n", "compose"),
    ("a.yaml", "services: {a: {image: {{ image }} }}\n", "template"),
    ("argo.yaml", "spec: {}\nkind: Workflow\nscript:\n  source: |\n    {{inputs.parameters.a}}\n", None),
    (".github/workflows/a.yml", "on: push\njobs: {a: {runs-on: '${{ matrix.os }}', steps: []}}\n", "github-actions"),
    ("Dockerfile", "FROM x", "dockerfile"),
    ("train.Dockerfile", "FROM x", "dockerfile"),
    ("Dockerfile.md", "# how", "markdown"),
    ("Makefile", "a:\n", "makefile"),
    ("run", "#!/usr/bin/env bash\n", "shell"),
    ("run", "#!/usr/bin/env python3\n", None),
    ("a.json", '{"kind": "Pod", "apiVersion": "v1", "spec": {"containers": [{"image": "x"}]}}', "kubernetes"),
    ("package.json", '{"name": "x", "containers": 1}', None),
    ("-", POD, "kubernetes"),
    ("-", "FROM x\nRUN y\n", "dockerfile"),
    ("-", "docker run x\n", "shell"),
    ("-", "import json\nfrom torch import nn\n", "training-script"),
    ("-", '{"image": "x", "runArgs": []} // c', "devcontainer"),
    ("-", "hello\n", None),
]


@pytest.mark.parametrize(("name", "text", "kind"), KINDS)
def test_a_kind_follows_from_name_and_content(name: str, text: str, kind: str | None) -> None:
    """None is a file that lint does not read."""
    assert kind_of(name, text).name == kind


def test_a_stated_kind_counts(trainlaunch: Runs, tmp_path: Path) -> None:
    """--kind reads what neither name nor content tells."""
    path = tmp_path / "notes.txt"
    path.write_text("docker run --shm-size=16 x:1\n")
    unread = trainlaunch("lint", str(path))
    assert (unread.returncode, "error[TL395]" in unread.stderr) == (2, True)
    assert trainlaunch("lint", "--files-from-hook", str(path)).returncode == 0
    done = trainlaunch("lint", str(path), "--kind", "shell", "-o", "concise")
    assert (done.returncode, done.stdout.split(": ", 1)[1].split(":")[0]) == (1, "error TL302")


@pytest.mark.parametrize("what", ["absent.sh", "folder"])
def test_a_path_that_is_not_there_or_holds_nothing_is_an_error(trainlaunch: Runs, tmp_path: Path, what: str) -> None:
    """A look at nothing would be green for ever."""
    (tmp_path / "folder").mkdir()
    assert trainlaunch("lint", str(tmp_path / what)).returncode in {1, 2}


def test_a_base_in_another_file_is_read_where_it_is(tmp_path: Path, trainlaunch: Runs) -> None:
    """Over two files and back to the first; one that isn't there leaves all that it may say unknown."""
    (tmp_path / "sub").mkdir()
    train = tmp_path / "train.yaml"
    train.write_text(
        "services:\n  train:\n    extends: {file: sub/base.yaml, service: gpu}\n"
        "    command: python t.py --num-workers 8\n"
    )
    unknown = trainlaunch("lint", str(train))
    assert (unknown.returncode, unknown.stdout) == (0, "")
    base = tmp_path / "sub/base.yaml"
    base.write_text(
        "services:\n  gpu:\n    image: pytorch/pytorch:2.9.1\n    gpus: all\n"
        "    extends: {file: ../train.yaml, service: train}\n"
    )
    missing = trainlaunch("lint", str(train))
    assert missing.returncode == 1
    assert "error[TL301]" in missing.stdout
    assert f"{train}:2:3" in missing.stdout
    base.write_text("services:\n  gpu:\n    image: trainer:1\n    gpus: all\n    shm_size: 4g\n    mem_limit: 32g\n")
    stated = trainlaunch("lint", str(train))
    assert (stated.returncode, stated.stdout) == (0, "")
    base.write_text("services: [\n")
    broken = trainlaunch("lint", str(train))
    assert (broken.returncode, broken.stdout) == (0, "")


JOB = (
    "name: %s\nimage: t:1\nimage_entrypoint: []\ncommand: [python, a.py]\nresources: {memory: 8Gi}\ndata_loader: none\n"
)


def test_folders_of_job_files_are_read_as_plan_reads_them(trainlaunch: Runs, tmp_path: Path) -> None:
    """Who did everything right isn't told that nothing was read; a mistake is plan's error at its place."""
    for each in ("vision", "nlp"):
        (tmp_path / each).mkdir()
        (tmp_path / each / "job.yaml").write_text(JOB % each)
    assert trainlaunch("lint", "vision", "nlp", cwd=tmp_path).returncode == 0
    (tmp_path / "nlp/job.yaml").write_text((JOB % "nlp").replace("8Gi", "8G"))
    done = trainlaunch("lint", "vision", "nlp", "-o", "concise", cwd=tmp_path)
    assert (done.returncode, done.stdout.startswith("nlp/job.yaml:5:")) == (1, True)


def test_a_folder_of_which_nothing_is_read_is_an_error_beside_one_that_is(trainlaunch: Runs, tmp_path: Path) -> None:
    """Its findings are printed all the same."""
    for each in ("a/run.sh", "b/notes.txt"):
        (tmp_path / each).parent.mkdir()
        (tmp_path / each).write_text("docker run --shm-size=16 x:1\n")
    done = trainlaunch("lint", "a", "b", "-o", "concise", cwd=tmp_path)
    assert (
        done.returncode,
        "TL302" in done.stdout,
        "error[TL395]: nothing that lint reads is in b" in done.stderr,
    ) == (
        2,
        True,
        True,
    )


@pytest.mark.parametrize(
    ("line", "given", "severity"),
    [
        ("shm_size: 8gb", "--shm-size=8g", "info"),
        ("runtime: nvidia", "--gpus", "info"),
        ("command: run  # shm_size: 8gb", "--ipc=host", "error"),
        ("image: nvcr.io/nvidia/pytorch:24.01-py3", "--gpus", "error"),
    ],
)
def test_what_a_compose_file_says_too_is_not_lost(line: str, given: str, severity: str, tmp_path: Path) -> None:
    """A devcontainer's runArgs are then only words too many."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "compose.yaml").write_text(f"services:\n  u: {{shm_size: 1gb, runtime: nvidia}}\n  t:\n    {line}\n")
    path = tmp_path / ".devcontainer" / "devcontainer.json"
    path.parent.mkdir()
    path.write_text(json.dumps({"dockerComposeFile": "../compose.yaml", "service": "t", "runArgs": [given]}))
    (found,) = lint_file(path).findings
    assert (found.diagnostic.code, found.severity.value) == ("TL320", severity)


@pytest.mark.parametrize(
    ("name", "text", "times"),
    [
        (".env", "export API_KEY : a", 0),
        (".env.sample", "\ufeffAPI_KEY=", 0),
        ("app.env", "API_KEY=a", 1),
        ("env.py", "API_KEY=a", 1),
        (".env.local", "API_KEY=a", 1),
        (".env.prod.example", "API_KEY=a", 0),
        (".env", "API_KEY_2=a", 1),
    ],
)
def test_a_variable_that_users_write_into_env_is_composes(name: str, text: str, times: int, tmp_path: Path) -> None:
    """A file for `env_file` sets the container's environment alone."""
    (tmp_path / ".git").mkdir()
    (tmp_path / name).write_text(text)
    compose = tmp_path / "compose.yaml"
    compose.write_text("services:\n  t: {image: x, command: run --key $API_KEY, environment: [API_KEY=b]}\n")
    assert [each.diagnostic.code for each in lint_file(compose).findings] == ["TL360"] * times


HERE = "cat > compose.yaml <<EOF\nservices:\n  t:\n    image: x\nEOF\ndocker run --rm --shm_size=1g t:1 python x.py\n"


@pytest.mark.parametrize(
    ("text", "kind"), [(HERE, "shell"), ("Run it:\n```yaml\nservices:\n  t: {image: x\n```\n", None)]
)
def test_a_text_of_stdin_that_is_no_yaml_is_no_broken_one(text: str, kind: str | None) -> None:
    """A script with a here-document, and Markdown."""
    assert kind_of("-", text).name == kind


@pytest.mark.parametrize(
    ("name", "text", "severity"),
    [
        (".gitlab-ci.yml", "image: x\nservices: [a\nt: ]:", "warning"),
        (".gitlab-ci.yml", 'image: x\nt: {script: ["it\\\'s"]}', "warning"),
        ("manifest.yaml", "apiVersion: v1\nkind: Pod\nspec: {containers: [a\nt: ]:", "warning"),
        ("compose.yaml", "services: {a: {image: x, command: [rm, '*A*'], shm_size: 2gb: x}}", "error"),
        ("task.json", '{"containerDefinitions": [{"name": "a" "image": "x"}]}', "info"),
        ("third_party/compose.yaml", "services: {a: {image: x, shm_size: 2gb: x}}", "info"),
        ("-", "services: {a: {image: x, shm_size: 2gb: x}}", "error"),
        ("-", '{"containerDefinitions": [{"name": "a" "image": "x"}]}', "error"),
    ],
)
def test_a_broken_text_is_as_grave_as_it_is_certain(
    name: str, text: str, severity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Elsewhere it may be a template of a kind that nobody knows."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    (found,) = lint_text(text, name).findings
    assert (found.diagnostic.code, found.severity.value) == ("TL393", severity)


def test_values_of_a_dotenv_are_judged_and_never_printed(trainlaunch: Runs, tmp_path: Path) -> None:
    """The .env beside a Compose file may hold what nobody should read in a log."""
    (tmp_path / ".env").write_text("RANKS=4\nAPI_TOKEN=hunter2\n")
    command = "torchrun --nproc_per_node ${RANKS} train.py --key ${API_TOKEN}"
    for each in ("compose.yaml", "other/compose.yaml"):
        (tmp_path / each).parent.mkdir(exist_ok=True)
        (tmp_path / each).write_text(f"services: {{t: {{image: 'x:1', gpus: all, command: '{command}'}}}}\n")
    done = trainlaunch("lint", ".", "-o", "json", cwd=tmp_path)
    first, second = json.loads(done.stdout)["findings"]
    assert ("4 ranks" in first["message"], "4 ranks" in second["message"]) == (True, False)
    assert "hunter2" not in done.stdout


def test_what_is_too_long_is_said_and_definitions_are_left_out(tmp_path: Path) -> None:
    """A bundle of CustomResourceDefinitions is long, and the pod behind it is judged."""
    path = tmp_path / "bundle.yaml"
    long = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {a: [" + "1, " * 150_000 + "]}\n"
    pod = POD.replace(
        "image: x", "image: x, volumeMounts: [{name: d, mountPath: /dev/shm}, {name: e, mountPath: /dev/shm}]"
    )
    path.write_text(f"{long}---\n{pod}")
    assert [each.diagnostic.code for each in lint_file(path).findings] == ["TL336"]
    path.write_text(POD + "# " + "x" * 300_000)
    (finding,) = lint_file(path).findings
    assert (finding.severity.value, finding.diagnostic.message[:10]) == ("info", "not judged")


@pytest.mark.parametrize(("name", "severity"), [("docker-compose.yml", "error"), ("notes.yaml", "info")])
def test_a_first_line_that_is_no_yaml_is_an_error_where_the_name_says_who_reads_it(
    tmp_path: Path, name: str, severity: str
) -> None:
    """Compose refuses it; notes with YAML in them are read by nobody."""
    path = tmp_path / name
    path.write_text('version "3.8"\nservices:\n  a: {image: x}\n')
    assert [each.severity.value for each in lint_file(path).findings] == [severity]


COUNTS = (
    "from torch.utils import data\nloader = data.DataLoader(d, 99, num_workers=4)\nfor b in loader:\n  n += len(b)\n"
)
SCRIPTS = {
    "loads": "import torch\nDataLoader(d, num_workers=4)\nloss.backward()\n",
    "alone": "import torch\nloss.backward()\n",
    "ranks": "import torch\nmp.spawn(f)\nloss.backward()\n",
    "group": "import torch, tiktoken\ninit_process_group('nccl')\nloss.backward()\n",
    "small": "import torch\nDataLoader(MNIST(r), bs, num_workers=4)\nloss.backward()\n",
    "great": "import torch\nDataLoader(MNIST(r), 1024, num_workers=4)\nloss.backward()\n",
    "tokens": "from transformers import AutoTokenizer\nDataLoader(d, 32, num_workers=4)\nloss.backward()\n",
    "pictures": "import torch, PIL, tiktoken\nDataLoader(d, 32, num_workers=4)\nloss.backward()\n",
    "models": "import tiktoken\nfrom llava.train import pictures\nDataLoader(d, 32, num_workers=4)\nloss.backward()\n",
    "launched": "import torch, tiktoken\nDataLoader(d, num_workers=4)\nmp.spawn(f)\nloss.backward()\n",
    "yolo": "from ultralytics import YOLO\nYOLO(w).train(data=d, epochs=9)\n",
    "told": "from ultralytics import YOLO\nYOLO(w).train(data=d, workers=n)\n",
    "alone in it": "from ultralytics import YOLO\nYOLO(w).train(data=d, workers=0)\n",
    "predicts": "from ultralytics import YOLO\nYOLO(w).predict(d)\n",
    "rare": "import torch\nf = DataLoader(d, 64, num_workers=4)\na = DataLoader(d)\nb = DataLoader(d)\nl.backward()\n",
    "trained": "import torch\ntrain = DataLoader(d, 64, num_workers=4)\nDataLoader(v)\nDataLoader(t)\nl.backward()\n",
    "rows": "import pandas, torch\nDataLoader(d, batch_size=64, num_workers=4)\nloss.backward()\n",
    "shaped": "import pandas, torch\nDataLoader(randn(9, 3, 224, 224), 80, num_workers=4)\nloss.backward()\n",
    "drawn": "import torch, PIL\nDataLoader(d, batch_sampler=b, num_workers=4)\nloss.backward()\n",
    "few": "import os, torch\nDataLoader(d, batch_size=16, num_workers=3)\nloss.backward()\n",
    "many": "import torch\nDataLoader(d, batch_size=32, num_workers=4)\nloss.backward()\n",
    "unsaid": "import torch\nDataLoader(d, bs, num_workers=4)\nDataLoader(e, batch_size=1)\nloss.backward()\n",
    "other": "import tensorflow as tf\nfrom own.net import net\n",
    "imports": "import torch\nfrom own.data import make\nloss.backward()\n",
    "default": "from transformers import Trainer\nTrainer(args=TrainingArguments(o)).train()\n",
    "pool": "import torch\np.add_argument('--max-workers', type=int, default=8)\nDataLoader(d, 8)\nloss.backward()\n",
    "spread": "import torch\nk = {'num_workers': 4} if cuda else {}\nDataLoader(d, 64, **k)\nloss.backward()\n",
    "emptied": "import torch\nk = {'num_workers': 4} if g else {}\nk.update(w)\nDataLoader(d, **k)\nloss.backward()\n",
    "cuda": "import torch\nDataLoader(d, 64, num_workers=4 if use_cuda else 0)\nloss.backward()\n",
    "reads": COUNTS,
    "reads on": COUNTS.replace("len(b)", "net(b)"),
    "ray": "import torch, ray\nDataLoader(d, 8)\nloss.backward()\nScalingConfig(num_workers=8)\n",
}
NEW_KINDS = [
    ("train.sbatch", "#SBATCH --gres=gpu:4\nsrun docker run --gpus all i:1 torchrun --nproc_per_node 4 train.py\n"),
    ("train.job", "#!/bin/bash -eux\ndocker run --gpus all i:1 torchrun --nproc_per_node 4 train.py\n"),
    ("a.rst", "Run::\n\n    docker run --gpus all i:1 torchrun --nproc_per_node 4 train.py\n\nDone\n"),
    ("b.md", "Run:\n\n    sudo docker run --gpus all i:1 \\\n      torchrun --nproc_per_node 4 train.py\n\nDone\n"),
    ("c.md", "Run:\n\ndocker run --gpus all i:1 \\\n  torchrun --nproc_per_node 4 train.py\n\nDone\n"),
    ("d.md", "```\n(base) me@host:~/x$ docker run --gpus all i:1 torchrun --nproc_per_node 4 train.py\n```\n"),
    ("a.mdx", "```bash\ndocker run --gpus all i:1 torchrun --nproc_per_node 4 train.py\n```\n"),
    ("a.md", "```yaml\nservices: {t: {image: 'i:1', gpus: all, command: torchrun --nproc_per_node 4 train.py}}\n```\n"),
    (
        "batch.json",
        '{"jobDefinitionName": "t", "containerProperties": {"image": "i:1", "command": ["torchrun", '
        '"--nproc_per_node=4", "train.py"], "resourceRequirements": [{"type": "GPU", "value": "4"}]}}',
    ),
]


@pytest.mark.parametrize(("name", "text"), NEW_KINDS, ids=[each[0] for each in NEW_KINDS])
def test_a_docker_line_is_found_wherever_it_stands(name: str, text: str) -> None:
    """Batch scripts, reStructuredText, files that a document shows, AWS Batch."""
    assert "TL301" in [each.diagnostic.code for each in lint_text(text, name).findings]


def _forget() -> None:
    """Read scripts again: a lint reads each once."""
    near_script.cache_clear()
    script_at.cache_clear()


def test_a_script_is_looked_for_where_its_image_is_built(tmp_path: Path) -> None:
    """It lies two folders below; what imports nothing but torch and has no loader has no workers."""
    (tmp_path / "docker/train").mkdir(parents=True)
    compose = tmp_path / "compose.yaml"
    compose.write_text("services:\n  t: {build: ./docker/train, gpus: all, command: python train.py}\n")
    codes = {}
    for name, text in SCRIPTS.items():
        (tmp_path / "docker/train/train.py").write_text(text)
        _forget()
        codes[name] = [each.severity.value for each in lint_file(compose).findings if each.diagnostic.code == "TL301"]
    assert codes == {"loads": ["info"], "alone": [], "imports": ["info"], "ranks": ["warning"], "default": []} | {
        "group": ["info"],
        "small": ["info"],
        "great": ["info"],
        "tokens": ["info"],
        "pictures": ["warning"],
        "models": ["warning"],
        "launched": ["warning"],
        "yolo": ["warning"],
        "told": ["info"],
        "alone in it": [],
        "predicts": ["info"],
        "rare": ["info"],
        "trained": ["info"],
        "rows": ["info"],
        "shaped": ["warning"],
        "drawn": ["info"],
        "few": ["info"],
        "many": ["info"],
        "unsaid": ["info"],
        "other": [],
        "pool": [],
        "spread": ["info"],
        "emptied": ["info"],
        "cuda": ["info"],
        "reads": ["info"],
        "reads on": ["warning"],
        "ray": [],
    }
    (tmp_path / "docker/train/own").mkdir()
    for name, text in (("none", "import torch\n"), ("some", "DataLoader(d, num_workers=n)\n")):
        (tmp_path / "docker/train/own/data.py").write_text(text)
        (tmp_path / "docker/train/train.py").write_text(SCRIPTS["imports"])
        _forget()
        codes[name] = [each.severity.value for each in lint_file(compose).findings]
    assert (codes["none"], codes["some"]) == ([], ["info"])
    (tmp_path / "docker/train/train.py").unlink()
    for place in ("a", "b"):  # which of two it is nobody can say
        (tmp_path / "docker" / place).mkdir()
        (tmp_path / "docker" / place / "train.py").write_text(SCRIPTS["many"])
    (tmp_path / "docker" / "run.sh").write_text("docker run --gpus all t:1 python train.py\n")
    _forget()
    assert [each.severity.value for each in lint_file(tmp_path / "docker" / "run.sh").findings] == ["info"]


@pytest.mark.parametrize(
    ("named", "found"),
    [
        ("python train.py", "info"),
        ("python train.py --batch-size 128", "info"),
        ("python train.py --batch-size=2048", "info"),
        ("env TRAIN_BATCH_SIZE=1 python train.py", "info"),
        ("python train.py --eval-batch-size 4096", "info"),
    ],
)
def test_a_script_decides_how_grave_a_text_is(tmp_path: Path, named: str, found: str) -> None:
    """Small images in large batches fill what is there."""
    (tmp_path / "train.py").write_text(SCRIPTS["small"])
    (tmp_path / "run.sh").write_text(f"docker run --gpus all t:1 {named}\n")
    _forget()
    assert {each.severity.value for each in lint_file(tmp_path / "run.sh").findings} == {found}


LAID_OVER = {
    "what it sets": ("compose.yaml", "compose.override.yaml", "t: {shm_size: 4g}", False),
    "nothing of it": ("compose.yaml", "compose.override.yaml", "t: {environment: {A: b}}", True),
    "by -f": ("docker-compose.yml", "docker-compose.gpu.yml", "t: {ipc: host}", False),
    "another service": ("docker-compose.yml", "docker-compose.gpu.yml", "u: {ipc: host}", True),
    "another way to run it": ("docker-compose.yml", "docker-compose.gpu.yml", "t: {image: 'x:1', ipc: host}", True),
    "another build": ("docker-compose.yml", "docker-compose.gpu.yml", "t: {build: ., ipc: host}", True),
    "no more than there is": ("docker-compose.yml", "docker-compose.gpu.yml", "t: {shm_size: 64m}", True),
    "another base": ("a-compose.yml", "b-compose.gpu.yml", "t: {ipc: host}", True),
    "an override of another": ("compose.test.yaml", "compose.override.yaml", "t: {shm_size: 4g}", True),
    "a text that is broken": ("docker-compose.yml", "docker-compose.gpu.yml", "t: {ipc: [host}", True),
}


@pytest.mark.parametrize(("base", "beside", "text", "told"), LAID_OVER.values(), ids=LAID_OVER)
def test_a_file_that_is_laid_over_hides(tmp_path: Path, base: str, beside: str, text: str, told: bool) -> None:
    """What a base lacks is said at the service of the base, unless a file that only adds to it has it."""
    train = "image: 'x:1', command: torchrun --nproc_per_node 4 train.py --num-workers 8"
    (tmp_path / base).write_text(f"services:\n  t: {{{train}}}\n")
    (tmp_path / beside).write_text(f"services: {{{text}}}\n")
    said = [(each.diagnostic.code, each.diagnostic.span) for each in lint_file(tmp_path / base).findings]
    assert [(code, span.line if span else 0) for code, span in said] == [("TL301", 2)] * told


def test_the_hosts_cpus_matter_where_containers_are_in_sight(tmp_path: Path) -> None:
    """Outside of one they are all there."""
    found = []
    for name in ("plain", "docker"):
        (tmp_path / name / ".git" / "refs").mkdir(parents=True)
        (tmp_path / name / "src").mkdir()
        (tmp_path / name / f"{name}.txt").touch()
        script = tmp_path / name / "src" / "train.py"
        script.write_text("import os, torch\nx = DataLoader(d, num_workers=os.cpu_count())\n")
        found += [each.severity.value for each in lint_file(script).findings]
    assert found == ["info", "warning"]


@pytest.mark.parametrize(
    ("words", "severities"),
    [
        ("train.py", ["warning"]),
        ("train.py --config base.json", ["warning"]),
        ("train.py --config=none.json", []),
        ("train.py --config missing.json", ["info"]),
        ("train.py --config $C", ["info"]),
        ("place.py none.json", []),
        ("place.py base.json", ["warning"]),
        ("place.py --deepspeed base.json", ["info"]),
        ("train.py --conf none.json", ["info"]),
    ],
)
def test_a_command_names_its_scripts_configuration(tmp_path: Path, words: str, severities: list[str]) -> None:
    """What it names counts, and not the script's default; one that isn't there may say anything."""
    (tmp_path / "base.json").write_text('{"workers": 8}')
    (tmp_path / "none.json").write_text('{"workers": 0}')
    lines = (
        "import argparse, json, torch",
        "p = argparse.ArgumentParser()",
        "p.add_argument('--config', default='base.json')",
        "c = json.load(open(p.parse_args().config))",
        "for x in torch.utils.data.DataLoader(d, batch_size=64, num_workers=c['workers']):",
        "    loss.backward()",
    )
    (tmp_path / "train.py").write_text("\n".join(lines))
    (tmp_path / "place.py").write_text("\n".join(lines).replace("'--config', default='base.json'", "'config'"))
    (tmp_path / "run.sh").write_text(f"docker run --gpus all t:1 python {words} --epochs 3\n")
    _forget()
    found = [each.severity.value for each in lint_file(tmp_path / "run.sh").findings if each.diagnostic.code == "TL301"]
    assert found == severities


@pytest.mark.parametrize(
    ("command", "script", "found"),
    [
        ("python train.py", "import torch", ["info"]),
        ("python train.py", "import signal\nsignal.signal(15, save)", ["warning"]),
        ("torchrun train.py", "import torch", ["warning"]),
        ("python train.py", None, ["warning"]),
        ("python train.py && python train.py", "import torch", ["info"]),
        ("exec python train.py", "import signal\nsignal.signal(15, save)", []),
    ],
)
def test_a_lost_signal_is_as_grave_as_what_would_be_done_at_it(
    tmp_path: Path, command: str, script: str | None, found: list[str]
) -> None:
    """A launcher ends its ranks at SIGTERM; a script that handles none loses nothing."""
    if script is not None:
        (tmp_path / "train.py").write_text(script)
    (tmp_path / "run.sh").write_text(f"docker run t:1 sh -c '{command}; date'\n")
    _forget()
    findings = lint_file(tmp_path / "run.sh").findings
    assert [each.severity.value for each in findings if each.diagnostic.code == "TL322"] == found


@pytest.mark.parametrize(
    ("words", "severity"),
    [
        ("", "warning"),
        ("-j0", ""),
        ("-j 6", "warning"),
        ("-j9 --loaders=0", ""),
        ("--loaders $N", "info"),
        ("--load 0", "info"),
        ('"$@"', "info"),
        ("--lr $LR", "warning"),
    ],
)
def test_a_command_decides_what_its_script_leaves_open(tmp_path: Path, words: str, severity: str) -> None:
    """An option of any name may be the loader's; the last one counts."""
    lines = (
        "import argparse, torch",
        "p = argparse.ArgumentParser()",
        "p.add_argument('-j', '--loaders', type=int, default=4)",
        "a = p.parse_args()",
        "for x in torch.utils.data.DataLoader(d, 99, num_workers=a.loaders):",
        "    loss.backward()",
    )
    (tmp_path / "train.py").write_text("\n".join(lines))
    (tmp_path / "run.sh").write_text(f"docker run --gpus all t:1 python train.py {words}\n")
    found = [each.severity.value for each in lint_file(tmp_path / "run.sh").findings if each.diagnostic.code == "TL301"]
    assert found == [severity] * bool(severity)


def test_a_workflow_of_a_foreign_tree_never_runs(tmp_path: Path) -> None:
    """GitHub reads those of a repository's root, a submodule's too; in a folder of no repository each may be one."""
    text = "on: push\njobs: {t: {container: {image: 'x:1', options: --shm-size 16}, steps: [{run: ls}]}}\n"
    folders = ["repository", "repository/vendored", "repository/.github", "repository/vendored/../module", "other"]
    paths = [tmp_path / each / ".github/workflows/w.yml" for each in folders]
    for each in ("repository/.git", "repository/vendored"):
        (tmp_path / each).mkdir(parents=True)
    for each in paths:
        each.parent.mkdir(parents=True, exist_ok=True)
        each.write_text(text)
    (tmp_path / "repository/module/.git").touch()
    found = [{finding.severity.value for finding in lint_file(each).findings} for each in paths]
    assert found == [{"error"}, {"info"}, {"info"}, {"error"}, {"error"}]


def test_what_tests_compare_with_is_nobodys_to_run(tmp_path: Path) -> None:
    """Manifests below the root of a repository: Compose files are run, and the folder of the whole says nothing."""
    pod = "kind: Pod\napiVersion: v1\nspec: {containers: [{name: t, image: x, env: [{name: A, value: 1}]}]}\n"
    texts = {
        "a.yaml": pod,
        "tests/expected/a.yaml": pod,
        "regressions/a.yaml": pod,
        "kubernetes_job_template.yaml": pod,
    }
    texts["tests/fixtures/compose.yaml"] = "services:\n  t: {image: x, shm_size: 16}\n"
    (tmp_path / "fixtures/.git").mkdir(parents=True)
    found = {}
    for place, text in texts.items():
        path = tmp_path / "fixtures" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        found[place] = lint_file(path).findings[0].severity.value
    assert found == dict.fromkeys(texts, "error") | dict.fromkeys(
        ("tests/expected/a.yaml", "kubernetes_job_template.yaml"), "info"
    )


def test_a_list_of_a_makefile_is_known_over_several_lines(tmp_path: Path) -> None:
    """A default counts; the size is told, and not the list that it stands in."""
    (tmp_path / "Makefile").write_text(
        "SIZE ?= 64G\nRUN := --gpus all \\\n\t--shm-size=$(SIZE) \\\n\t--ipc=host\nt:\n\tdocker run $(RUN) t:1\n"
    )
    found = {each.diagnostic.code: each.diagnostic.message for each in lint_file(tmp_path / "Makefile").findings}
    assert "so --shm-size 64g is not in effect" in found["TL315"]


def test_a_devcontainer_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """Its own reader leaves out what follows a brace too many."""
    (tmp_path / "devcontainer.json").write_text('{"image": "x:1", "customizations": {}}, "runArgs": []}\n')
    assert [each.severity.value for each in lint_file(tmp_path / "devcontainer.json").findings] == ["info"]


def test_a_line_in_a_variable_is_told_and_not_mended(tmp_path: Path) -> None:
    """The flag would have to stand where the variable is set; behind one without an image it may."""
    run = "torchrun --nproc_per_node 4 train.py --num-workers 8"
    texts = {
        "whole.sh": f'CMD="docker run --gpus all t:1 {run}"\nssh h "$CMD"\n',
        "image.sh": f'I=t:1\nssh h "docker run --gpus all $I {run}"\n',
        "flags.sh": f'D="docker run --gpus all"\n$D t:1 {run}\n',
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    linted = [lint_file(tmp_path / each) for each in texts]
    assert ["TL301" in [finding.diagnostic.code for finding in each.findings] for each in linted] == [True] * 3
    assert [fixed(each).text.count("--shm-size=") for each in linted] == [0, 1, 1]


def test_an_image_alone_says_little_in_a_document(tmp_path: Path) -> None:
    """What is typed into its shell may be anything; a script of one's own is for what the image is for."""
    found = []
    for name in ("run.md", "run.sh"):
        (tmp_path / name).write_text("docker run -it --gpus all pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime bash\n")
        found += [
            each.severity.value for each in lint_file(tmp_path / name).findings if each.name == "shm-size-missing"
        ]
    assert found == ["info", "warning"]
