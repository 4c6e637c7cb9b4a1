"""What a job's own script or `sh -c` hides: exit codes behind a pipe or `wait`, and signals."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from trainlaunch.rules import check_plan

from tests.jobs import plan_with


def found(folder: Path, **fields: object) -> dict[str, str]:
    """Return the fix of each finding about a shell's text, by code."""
    plan = plan_with(folder, **{"command": None, **fields})
    return {each.code: each.fix for each in check_plan(plan) if each.code in {"TL322", "TL329", "TL359"}}


@pytest.mark.parametrize(
    ("script", "pasted"),
    [
        ("python train.py --lr 0.1 2>&1 | tee log", "python train.py --lr 0.1 2>&1"),
        ("mkdir -p /out\ntorchrun train.py |& tee log\n", "torchrun train.py"),
        ("test -d /data || exit 1; python train.py | tee a | tail", "python train.py"),
    ],
)
def test_training_left_of_a_pipe_is_told_with_its_line(tmp_path: Path, script: str, pasted: str) -> None:
    """The code of the whole is tee's, 0 whatever happened."""
    assert found(tmp_path, script=script)["TL329"].endswith(f": {pasted}")
    assert "TL329" in found(tmp_path, command=["bash", "-c", script])


@pytest.mark.parametrize(
    "script",
    [
        "python train.py",
        "cat list | python train.py",
        "set -o pipefail; python train.py | tee log",
        "python train.py || echo failed",
        "ls | wc -l; python train.py",
        "python train.py # | tee log",
    ],
)
def test_other_pipes_are_not(tmp_path: Path, script: str) -> None:
    """What feeds training hides nothing, and who sets pipefail knows."""
    assert "TL329" not in found(tmp_path, script=script)


@pytest.mark.parametrize("count", [1, 2])
def test_training_in_the_background_is_told_with_what_waits_for_it(tmp_path: Path, count: int) -> None:
    """A plain wait is 0; what is to be written in its place gives the job's code, in the shell that scripts run in."""
    train = "python train.py --rank {} &"
    script = "\n".join([*(train.format(rank) for rank in range(count)), "wait"])
    fix = found(tmp_path, script=script)["TL359"]
    if count == 1:
        repaired = script.replace("wait", fix.partition(": ")[2])
    else:
        repaired = script.replace("&\n", '&\npids="$pids $!"\n').replace("\nwait", f"\n{fix.partition('place: ')[2]}")
        repaired = f"pids=\n{repaired}"
    for text, code in ((script, 0), (repaired, 3)):
        shell = text.replace("python train.py --rank", "sh -c 'exit 3'")
        assert subprocess.run(["sh", "-euc", shell], check=False).returncode == code, shell


@pytest.mark.parametrize("script", ['python train.py & wait "$!"', "python train.py", "monitor & python train.py"])
def test_other_background_jobs_are_not(tmp_path: Path, script: str) -> None:
    """One that is waited for by its number, or that only watches."""
    assert "TL359" not in found(tmp_path, script=script)


def test_a_shell_that_something_follows_in_gets_no_signal_on(tmp_path: Path) -> None:
    """Of a command; the shell of a `script` has the preflight beside it, which hands signals to its children."""
    text = "python train.py; echo done"
    assert "exec in front of python" in found(tmp_path, command=["bash", "-c", text])["TL322"]
    assert found(tmp_path, script=text) == {}
    assert found(tmp_path, command=["bash", "-c", "exec python train.py"]) == {}
    assert found(tmp_path, command=["python", "-c", text]) == {}


def test_the_interface_is_named_where_ranks_choose_among_several(tmp_path: Path) -> None:
    """A warning on the nodes' own network, an info for several nodes, silence once it is stated."""
    fields = {"resources": {"cpus": 4, "memory": "16Gi"}, "torchrun": {"nnodes": 2}}
    own = {"host_network": True, "pod_security": "privileged"}

    def told(target: str, **more: object) -> list[tuple[str, str]]:
        plan = plan_with(tmp_path, target, **{**fields, **more})
        return [(str(each.severity), each.fix) for each in check_plan(plan) if each.code == "TL406"]

    ((severity, fix),) = told("kubernetes", kubernetes=own)
    assert "warning" in severity.lower()
    assert fix.startswith("add env: {GLOO_SOCKET_IFNAME: eth0}")
    ((severity, fix),) = told("compose", resources={"cpus": 4, "memory": "16Gi", "gpus": 1})
    assert "info" in severity.lower()
    assert "NCCL_SOCKET_IFNAME" in fix
    assert told("kubernetes", kubernetes=own, env={"GLOO_SOCKET_IFNAME": "ib0"}) == []
    assert told("kubernetes", torchrun=None, command=["python", "train.py"]) == []
