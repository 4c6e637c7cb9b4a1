"""Texts that somebody else's tool runs: a GitHub and a GitLab job, a devcontainer, a Dockerfile; `up` knows none."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.errors import JobFileRejected, RenderingDisagrees
from trainlaunch.job.fields.table import TARGET
from trainlaunch.lint.linter import lint_text
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.targets import TARGETS, TEXTS, text_targets
from trainlaunch.templating.quoting import exec_form
from trainlaunch.verify import verified, verify
from trainlaunch.verify.dockerfile import _parts

from tests import plain_yaml
from tests.conftest import Runs
from tests.jobs import plan_with, write_job
from tests.render.jobs import FOLDER, GOLDENS, job_plan

NAMES = tuple(TEXTS)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """Return a repository with the job and its code, whose requirements are a file of their own."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "requirements.txt").write_text("# none\n")
    shutil.copy(FOLDER / "jobs" / "ci.yaml", tmp_path / "jobs" / "job.yaml")
    return tmp_path


def planned(repository: Path, target: str, *sets: str):  # type: ignore[no-untyped-def]
    """Return the plan of the repository's job."""
    return plan_job(read_job(repository / "jobs" / "job.yaml", target=target, sets=sets))


@pytest.mark.parametrize("target", NAMES)
def test_a_text_is_its_golden_file(target: str, repository: Path, golden: Callable[[Path, str], None]) -> None:
    """Byte for byte, and verify accepts it."""
    plan = planned(repository, target)
    name = plan.target_record.file_name.format(name="ci")
    golden(GOLDENS / "ci" / name, verified(plan, render(plan)))


@pytest.mark.parametrize("target", NAMES)
def test_render_and_check_alone_know_it(target: str, trainlaunch: Runs, repository: Path) -> None:
    """Neither `up` nor a job's own target nor `all`; `check` finds the file where its tool wants it and keeps it."""
    assert target not in TARGETS
    assert target not in text_targets()
    assert target not in str(TARGET.type)
    assert trainlaunch("up", "jobs/job.yaml", "--target", target, cwd=repository).returncode == 2
    folder = {"github-actions": ".github/workflows", "devcontainer": ".devcontainer"}.get(target, "deploy")
    written = trainlaunch("render", "jobs/job.yaml", "--target", target, "--write-to", folder, cwd=repository)
    assert written.returncode == 0, written.stderr
    assert trainlaunch("check", cwd=repository).returncode == 0
    job = repository / "jobs" / "job.yaml"
    job.write_text(job.read_text().replace("32Gi", "48Gi"))
    assert trainlaunch("check", cwd=repository).returncode == 1
    assert trainlaunch("check", "--fix", cwd=repository).returncode == 0
    assert trainlaunch("check", cwd=repository).returncode == 0


@pytest.mark.parametrize("target", NAMES)
def test_lint_has_nothing_to_say_of_it(target: str, repository: Path) -> None:
    """The reader of anybody's text finds the size of /dev/shm, or no container that needs one."""
    plan = planned(repository, target)
    name = plan.target_record.file_name.format(name=plan.name)
    path = f".github/workflows/{name}" if target == "github-actions" else name
    found = lint_text(render(plan), path).findings
    assert [each.diagnostic.code for each in found if each.severity.value != "info"] == []


# In each a value that the plan decides: with another one verify refuses the text.
CHANGES = {
    "github-actions": [
        ("--init --shm-size ", "--init --shm-size 1g --label "),
        ("--memory ", "--memory 1g --label "), ("--cpus 8", "--cpus 9"),
        ("--init ", ""), ('"device=0,1', '"device=0,2'), ("WANDB_MODE", "WANDB_MODEL"), ("offline", "online"),
        ("/data/imagenet:/data:ro", "/data/imagenet:/data"), ("secrets.WANDB_API_KEY", "secrets.OTHER"),
        (" need=", " need=1"), ("timeout-minutes: 720", "timeout-minutes: 721"), ("exit 125", "exit 0"),
        ("$GITHUB_WORKSPACE", "$HOME"), ("runs-on: ", "runs-on: ubuntu-latest # "), ("${{ '${{' }}", "${{"),
        ("actions/checkout@", "evil/checkout@"), ('contents: "read"', 'contents: "write"'),
    ],
    "gitlab-ci": [
        ("shm_size = ", "shm_size = 1"), ('memory = "', 'memory = "1'), ("#     shm_size", "#    shm_size"),
        ("device=0,1", "device=0,2"), ("offline", "online"), ("expand: false", "expand: true"),
        (" need=", " need=1"), ("720 minutes", "721 minutes"), ("exit 125", "exit 0"), ('"gpu"', '"cpu"'),
        ("$CI_PROJECT_DIR", "$HOME"), ("/data/imagenet:/data:ro", "/data/imagenet:/data"),
    ],
    "devcontainer": [
        ('"--shm-size"', '"--cidfile"'), ("offline", "online"), ("${localEnv:WANDB_API_KEY}", "hunter2"),
        (" need=", " need=1"), ("source=${localWorkspaceFolder}", "source=/"), ('"init": true', '"init": false'),
        ("target=/data,readonly", "target=/data"), ("command: python", "command: perl"),
    ],
    "dockerfile": [
        ("--init --shm-size ", "--init --shm-size 1g --label "),
        ("FROM pytorch/pytorch:2.9.1", "FROM pytorch/pytorch:2.9.0"),
        ("offline", "online"), (" need=", " need=1"), ("--interval=30s", "--interval=31s"), ("USER ", "LABEL a="),
        ('"{num_workers}"', '"1"'), ("--no-cache-dir", "--pre"), ('COPY ["jobs/"', 'COPY ["/"'),
        ("type=volume,source=cache", "type=volume,source=other"), ("\nWORKDIR", "\nVOLUME"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("target", "old", "new"), [(target, *each) for target, changes in CHANGES.items() for each in changes]
)
def test_a_changed_text_is_refused(target: str, old: str, new: str, repository: Path) -> None:
    """Law 2: what says another thing than the plan is not written."""
    plan = planned(repository, target)
    text = render(plan)
    assert old in text
    with pytest.raises(RenderingDisagrees):
        verify(plan, text.replace(old, new, 1))


OWN = {"type": "bind", "source": ".", "target": "/w"}
REFUSED = [
    ("github-actions", {"healthcheck": {"interval": "1m"}}, "health check"),
    ("github-actions", {"stop_grace_period": "1m"}, "stop_grace_period"),
    ("github-actions", {"pull_policy": "never"}, "pull_policy never"),
    ("github-actions", {"active_deadline": "90s"}, "active_deadline of 90 seconds"),
    ("github-actions", {"labels": {"a": 'b"c'}}, "way to write"),
    ("github-actions", {"name": "3d-net"}, "begins with a digit"),
    ("github-actions", {"mounts": [{**OWN, "read_only": True}]}, "read-only folder"),
    ("github-actions", {"mounts": [{"type": "bind", "source": "/a:b", "target": "/w"}]}, "way to write :"),
    ("github-actions", {"torchrun": {"nnodes": 2}}, "second node"),
    ("github-actions", {"secrets": {"A": {"file": "/key"}}}, "source for secrets.A"),
    ("gitlab-ci", {"read_only": True}, "read_only"),
    ("gitlab-ci", {"labels": {"a": "b"}}, "labels"),
    ("gitlab-ci", {"name": "default"}, "job called default"),
    ("gitlab-ci", {"secrets": {"A": {"env": "A", "as": "file"}}}, "secrets as files"),
    ("devcontainer", {"env": {"A": "${localEnv:HOME}"}}, "way to write"),
    ("devcontainer", {"annotations": {"a": "b"}}, "annotations"),
    ("devcontainer", {"mounts": [{"type": "bind", "source": "../../..", "target": "/w"}]}, "outside the repository"),
    ("dockerfile", {"image": "trainer"}, "base without a fixed tag"),
    ("dockerfile", {"image": "trainer:latest"}, "base without a fixed tag"),
    ("dockerfile", {"env": {"A": "b\nc"}}, "way to write"),
    ("dockerfile", {"mounts": [{"type": "bind", "source": "./a*", "target": "/w"}]}, "way to copy"),
    ("dockerfile", {"secrets": {"A": {"env": "B"}}}, "variable A that another one fills"),
    ("dockerfile", {"mounts": [{"type": "pvc", "source": "a", "target": "/w"}]}, "pvc mounts"),
]  # fmt: skip


@pytest.mark.parametrize(("target", "fields", "what"), REFUSED, ids=[f"{each[0]} {each[2]}" for each in REFUSED])
def test_what_a_text_can_not_hold_is_tl401(target: str, fields: dict[str, object], what: str, tmp_path: Path) -> None:
    """At its place, with what to type; nothing is left out in silence."""
    with pytest.raises(JobFileRejected) as rejected:
        plan_with(tmp_path, target, **fields)
    found = rejected.value.diagnostics
    assert {each.code for each in found} == {"TL401"}
    assert any(what in each.message for each in found), [each.message for each in found]
    assert all(each.span is not None and each.fix for each in found)


@pytest.mark.parametrize("target", NAMES)
@pytest.mark.parametrize("job", ["gpus", "minimal", "script"])
def test_other_jobs_are_accepted_too(job: str, target: str) -> None:
    """GPUs by count, an ENTRYPOINT of the image, a script, none of anything."""
    plan = job_plan(job, target)
    assert verified(plan, render(plan))


def test_a_github_expression_of_the_job_stays_text(repository: Path) -> None:
    """`${{` in a command or variable is not the runner's: it would put a token into a training script's arguments."""
    text = render(planned(repository, "github-actions"))
    for match in re.finditer(r"\$\{\{(.*?)\}\}", text):
        assert match[1].strip() in {"'${{'", "fromJSON(inputs.runners)", "secrets.WANDB_API_KEY"}
    document = plain_yaml.load(text)
    assert "${{ '${{' }} github.token }}" in document["jobs"]["resnet50"]["steps"][1]["run"]


def test_a_devcontainer_is_json_behind_its_comments(repository: Path) -> None:
    """As the reference reader takes it, and the preflight holds no word that a devcontainer would replace."""
    text = render(planned(repository, "devcontainer"))
    found = json.loads(re.sub(r"^//.*\n", "", text, flags=re.MULTILINE))
    assert found["postStartCommand"][-1] == "true"
    names = set(re.findall(r"\$\{(\w+)(?::[^-=?+}][^}]*)?\}", " ".join(found["postStartCommand"])))
    assert not names & {"env", "localEnv", "containerEnv", "localWorkspaceFolder", "devcontainerId"}


WORDS = [
    "a\nb",
    "# no comment\n\n  #x",
    "ends with \\\n",
    "\\\\\n\\",
    'say \\"x\\"',
    "\n",
    "",
    "é\u2028",
    "\\n",
    '"',
    "a\\",
]


@pytest.mark.parametrize("word", WORDS)
def test_words_of_an_instruction_come_back_from_its_lines(word: str) -> None:
    """Whatever stands at an end of a line: comments, empty lines and backslashes are Docker's there."""
    text = f"CMD {exec_form(('x', word, 'y'))}\n"
    ((name, value),) = _parts(text)[1]
    assert (name, json.loads(value)) == ("CMD", ["x", word, "y"])


def test_requirements_are_installed_before_the_code_is_copied(repository: Path) -> None:
    """So that a changed script reuses the layer; without the file there is no step for it."""
    text = render(planned(repository, "dockerfile"))
    steps = [line.partition(" ")[0] for line in text.splitlines() if line.startswith(("COPY", "RUN"))]
    assert steps == ["COPY", "RUN", "COPY"]
    (repository / "jobs" / "requirements.txt").unlink()
    assert "RUN" not in [line[:3] for line in render(planned(repository, "dockerfile")).splitlines()]


def test_the_root_of_a_repository_is_where_git_has_it(tmp_path: Path) -> None:
    """Paths in these texts begin there; outside of a repository, where the job file lies."""
    job = write_job(tmp_path / "a" / "b", mounts=[{"type": "bind", "source": "../src", "target": "/w"}])
    (tmp_path / ".git").write_text("gitdir: elsewhere\n")  # as in a worktree
    text = render(plan_job(read_job(job, target="devcontainer")))
    assert "source=${localWorkspaceFolder}/a/src,target=/w" in text
