"""Each kind of mount works in a real container, by each way that makes one, or is refused with what to write."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.verify import verified

from tests.conftest import Runs
from tests.jobs import job_with, plan_with
from tests.render.readers import compose
from tests.run.conftest import containers_of, docker, inspected

NASTY = "a b, c=d \"e\" 'f' $HOME ${X} \\g #h é"
Run = Callable[[LaunchPlan], "subprocess.CompletedProcess[str]"]


@pytest.fixture
def volume(job_name: str) -> Iterator[str]:
    """Return the name of a volume; it is removed at the end, with the containers that hold it."""
    name = f"trainlaunch-test.{uuid.uuid4().hex[:10]}"
    yield name
    docker("rm", "--force", "--volumes", *containers_of(job_name))
    docker("volume", "rm", "--force", name)


@pytest.fixture(params=[pytest.param("script", marks=pytest.mark.long), "up", "compose"])
def way(request: pytest.FixtureRequest) -> str:
    """Return one of the ways by which a job becomes a container; that `up` makes the script's is shown by inspect."""
    return str(request.param)


@pytest.fixture
def run(way: str, fields: dict[str, Any], tmp_path: Path, trainlaunch: Runs) -> Iterator[Callable[..., str]]:
    """Run a shell script as a job with these fields by one way; return its stdout, once it ended with 0."""
    texts: list[str] = []

    def by(script: str, **over: Any) -> str:
        target = "compose" if way == "compose" else "docker"
        plan = plan_with(tmp_path, target, **{**fields, "command": None, "script": script, **over})
        text = verified(plan, render(plan))
        if way == "up":
            done = trainlaunch("up", plan.job.path)
        elif way == "script":
            settings: dict[str, Any] = {"cwd": tmp_path, "capture_output": True, "text": True, "timeout": 120}
            done = subprocess.run(["sh"], input=text, check=False, **settings)
        else:
            texts.append(text)
            done = compose("up", "--no-log-prefix", "--exit-code-from", plan.name, text=text, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    yield by
    for text in texts:
        compose("down", "--volumes", "--timeout", "0", text=text, cwd=tmp_path)


# The limit is the size of a tmpfs, and a compiled kernel can be loaded from it.
SEEN = """
cd /t*; cat in; echo; pwd; echo from the job >out
cat /workspace/pkg/part; touch /workspace/x 2>/dev/null || echo code kept
cd /fast*; cp /bin/true here; ./here && echo ran; stat -f -c '%T %S*%b' .; stat -c %a .
for each in /data /atad; do
  stat -f -c %T $each/cache; cat $each/cache/deep/mark; echo; touch $each/cache/x && echo wrote
done
"""


@pytest.mark.docker
def test_a_job_sees_each_kind_of_mount_as_it_is_meant(run: Callable[..., str], tmp_path: Path) -> None:
    """A bind: relative to the job file, with every character that a shell, a CSV reader or Compose stumbles over.

    Code: the folder as it is now, whether git knows a file or not, and read-only. A tmpfs: memory of the limit's size
    that any user writes to and programs run from. The deeper target is on top, whichever stands first; a read-only
    bind takes a mount below it.
    """
    for each in (NASTY, "src/pkg", "data/cache/deep", "other"):
        (tmp_path / each).mkdir(parents=True)
    for each in (NASTY, "data/cache"):
        (tmp_path / each).chmod(0o777)  # which a tmpfs takes from the folder that it hides
    (tmp_path / NASTY / "in").write_text("from the host")
    (tmp_path / "src" / "pkg" / "part").write_text("from a package\n")
    (tmp_path / "other" / "mark").write_text("other")

    def below(target: str) -> list[dict[str, Any]]:
        return [
            {"type": "bind", "source": "./other", "target": f"{target}/cache/deep", "read_only": True},
            {"type": "tmpfs", "target": f"{target}/cache"},
            {"type": "bind", "source": "./data", "target": target, "read_only": True},
        ]

    mounts = [
        {"type": "bind", "source": f"./{NASTY}", "target": f"/t {NASTY}"},
        {"type": "code", "source": "./src", "target": "/workspace"},
        {"type": "tmpfs", "target": f"/fast {NASTY}"},
        *below("/data"),
        *below("/atad")[::-1],
    ]
    deep = ["tmpfs", "other", "wrote"]
    tmpfs = ["ran", f"tmpfs 4096*{256 * 1024 * 1024 // 4096}", "1777"]
    expected = ["from the host", f"/t {NASTY}", "from a package", "code kept", *tmpfs, *deep, *deep]
    out = run(SEEN, mounts=mounts, user="1000").splitlines()
    assert [each for each in out if each in expected] == expected, out  # Compose has lines of its own
    assert (tmp_path / NASTY / "out").read_text() == "from the job\n"
    assert not (tmp_path / "src" / "x").exists()


@pytest.mark.docker
def test_read_only_mounts_cannot_be_written(run: Callable[..., str], tmp_path: Path, volume: str) -> None:
    """Of each kind that takes it; one that is empty at the start is there to be written."""
    (tmp_path / "data").mkdir()
    mounts = [
        {"type": "bind", "source": "./data", "target": "/m/bind"},
        {"type": "volume", "source": volume, "target": "/m/volume"},
        {"type": "tmpfs", "target": "/m/tmpfs"},
        {"type": "scratch", "target": "/m/scratch"},
    ]
    script = "for each in /m/*; do if touch $each/x 2>/dev/null; then echo wrote $each; else echo kept $each; fi; done"
    wrote = [line for line in run(script, mounts=mounts).splitlines() if line.startswith(("wrote", "kept"))]
    assert wrote == [f"wrote /m/{each}" for each in ("bind", "scratch", "tmpfs", "volume")]
    kept = [{**each, "read_only": True} for each in mounts[:2]]
    lines = [line for line in run(script, mounts=kept).splitlines() if line.startswith(("wrote", "kept"))]
    assert lines == [f"kept /m/{each}" for each in ("bind", "volume")]


@pytest.mark.docker
def test_a_volume_is_the_engines_own_and_outlives_its_runs(
    run: Callable[..., str], way: str, trainlaunch: Runs, job_name: str, volume: str
) -> None:
    """One that is not there yet is made; `down` and `--rm` leave it, with what the job wrote."""
    mounts = [{"type": "volume", "source": volume, "target": "/checkpoints"}]
    run("echo weights >/checkpoints/last", mounts=mounts)
    if way == "up":
        assert trainlaunch("down", job_name).returncode == 0
    assert "weights" in docker("run", "--rm", "--volume", f"{volume}:/v", "trainlaunch-test:base", "cat", "/v/last")
    assert "weights\n" in run("cat /checkpoints/last", mounts=mounts)


@pytest.mark.docker
def test_scratch_is_disk_of_one_run_and_gone_with_it(
    trainlaunch: Runs, make_job: Callable[..., Path], job_name: str, fields: dict[str, Any], tmp_path: Path
) -> None:
    """`down` removes it after `up`, `--rm` after the script; no two runs share one."""
    mounts = [{"type": "scratch", "target": "/scratch"}]
    script = "ls -A /scratch; stat -f -c %T /scratch; touch /scratch/x"
    job = make_job(mounts=mounts, script=script)
    for _ in range(2):
        done = trainlaunch("up", str(job))
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[0] != "x"
        assert "tmpfs" not in done.stdout
    made = [each["Name"] for container in containers_of(job_name) for each in inspected(container)["Mounts"]]
    assert len(set(made)) == 2
    while containers_of(job_name):
        assert trainlaunch("down", job_name).returncode == 0
    there = set(docker("volume", "ls", "--quiet").split())
    assert not there & set(made)
    plan = plan_with(
        tmp_path,
        **{**fields, "command": None, "script": "grep -o 'volumes/[0-9a-f]*' /proc/self/mountinfo", "mounts": mounts},
    )
    done = subprocess.run(["sh"], input=render(plan), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    name = done.stdout.split("/")[1].strip()
    assert name
    assert name not in docker("volume", "ls", "--quiet").split()


@pytest.mark.docker
def test_a_bind_whose_source_is_missing_is_125(
    trainlaunch: Runs, make_job: Callable[..., Path], tmp_path: Path, fields: dict[str, Any]
) -> None:
    """`up` says TL511, docker and Compose refuse; none makes an empty folder in its place."""
    mounts = [{"type": "bind", "source": "./nowhere", "target": "/data"}]
    done = trainlaunch("up", str(make_job(mounts=mounts)))
    assert done.returncode == 125
    assert "error[TL511]" in done.stderr
    plan = plan_with(tmp_path, **{**fields, "mounts": mounts})
    script = subprocess.run(
        ["sh"], input=render(plan), cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert script.returncode == 125
    text = render(plan_with(tmp_path, "compose", **{**fields, "mounts": mounts}))
    try:
        assert compose("up", "--exit-code-from", plan.name, text=text, cwd=tmp_path).returncode != 0
    finally:
        compose("down", "--volumes", text=text, cwd=tmp_path)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.docker
def test_a_volume_to_read_that_is_not_there_is_125(
    trainlaunch: Runs, make_job: Callable[..., Path], volume: str
) -> None:
    """The engine would make it, empty; one that is there is taken."""
    job = make_job(mounts=[{"type": "volume", "source": volume, "target": "/data", "read_only": True}], script="true")
    done = trainlaunch("up", str(job))
    assert done.returncode == 125
    assert f"error[TL511]: mounts[0].source {volume}: the engine has no volume of that name" in done.stderr
    docker("volume", "create", volume)
    assert trainlaunch("up", str(job)).returncode == 0


SOURCES = {"bind": "./src", "volume": "data", "tmpfs": None, "scratch": None, "pvc": "data", "config": "settings"}
REFUSED = {
    ("docker", "pvc"): "target_overrides.docker.mounts: [{type: volume, source: data, target: /m}]",
    ("docker", "config"): "target_overrides.docker.mounts: [{type: bind, source: ./settings, target: /m}]",
    ("compose", "pvc"): "target_overrides.compose.mounts: [{type: volume, source: data, target: /m}]",
    ("compose", "config"): "target_overrides.compose.mounts: [{type: bind, source: ./settings, target: /m}]",
    ("kubernetes", "bind"): "target_overrides.kubernetes.mounts: [{type: pvc, source: src, target: /m}]",
    ("kubernetes", "volume"): "target_overrides.kubernetes.mounts: [{type: pvc, source: data, target: /m}]",
    **{
        ("local", each): "set this host's own paths in target_overrides.local, with mounts: []"
        for each in ("bind", "volume", "tmpfs", "scratch", "pvc", "config")
    },
}


@pytest.mark.parametrize("kind", SOURCES)
@pytest.mark.parametrize("target", ["docker", "compose", "kubernetes", "local"])
def test_each_kind_is_taken_or_refused_with_what_to_write(tmp_path: Path, target: str, kind: str) -> None:
    """The whole matrix: what a target can't do is TL401 with a line to paste; the rest is in the text."""
    source = SOURCES[kind]
    mount = {"type": kind, "target": "/m", **({"source": source} if source else {})}
    fields: dict[str, Any] = {"mounts": [mount], "resources": {"cpus": 1, "memory": "1Gi"}}
    fix = REFUSED.get((target, kind))
    if fix is None:
        plan = plan_with(tmp_path, target, **fields)
        assert "/m" in verified(plan, render(plan))
        return
    with pytest.raises(JobFileRejected) as caught:
        job_with(tmp_path, target, **fields)
    (found,) = caught.value.diagnostics
    assert (found.code, found.field) == ("TL401", "mounts.0")
    assert fix in found.fix


def test_a_bind_is_taken_on_this_host_where_something_leads_there(tmp_path: Path) -> None:
    """A working folder or an argument below its target, or a target that is the source itself."""
    mount = {"type": "bind", "source": "./src", "target": "/m"}
    assert job_with(tmp_path, "local", mounts=[mount], working_dir="/m").mounts[0].source == "./src"
    here = {"type": "bind", "source": os.fspath(tmp_path), "target": os.fspath(tmp_path)}
    assert job_with(tmp_path, "local", mounts=[here]).mounts[0].target == str(tmp_path)
