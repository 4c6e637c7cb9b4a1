"""What `check` says a cluster makes of changed renderings: ten kinds of change, and a policy's line behind many."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.committed.cluster_changes import IN_PLACE, NEW_NAME, REFUSED, SAME, cluster_change
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job

from tests.conftest import Runs
from tests.jobs import write_job

SAVES = {"checkpoint_dir": "/out/run", "mounts": [{"type": "pvc", "source": "out", "target": "/out"}]}
BASE: dict[str, Any] = {"resources": {"cpus": 4, "memory": "8Gi"}, **SAVES}
JOB_SET, STABLE, LONE = {"kind": "jobset"}, {"stable_name": True}, {"kind": "pod"}
LOADER = {"batch_size": 32, "sample": {"shape": [3, 32, 32], "dtype": "float32"}}
SMALLER = {"resources": {"cpus": 4, "memory": "6Gi"}}


def rendered(folder: Path, **fields: Any) -> tuple[Any, str]:
    """Return a job's plan and its manifest."""
    plan = plan_job(read_job(write_job(folder, **{**BASE, **fields}), target="kubernetes"))
    return plan, render(plan, base=None)


@pytest.mark.parametrize(
    ("before", "after", "effect", "cause"),
    [
        ({}, SMALLER, NEW_NAME, "resources.memory"),
        ({}, {"data_loader": LOADER}, NEW_NAME, "data_loader"),
        ({"data_loader": LOADER}, {"data_loader": {**LOADER, "timeout": 9}}, NEW_NAME, "data_loader"),
        ({}, {"checkpoint_bytes": "1Gi"}, NEW_NAME, "checkpoint_bytes"),
        ({"env": {"A": "b", "SEED": "7"}}, {"env": {"SEED": "7"}}, NEW_NAME, "env.A"),
        ({}, {"secrets": {"TOKEN": {"kubernetes": "hub/token"}}}, NEW_NAME, "secrets.TOKEN"),
        ({}, {"shm_size": "1Gi"}, NEW_NAME, "shm_size"),
        ({}, {"torchrun": {}}, NEW_NAME, "torchrun"),
        ({}, {"torchrun": {"nnodes": 2}}, NEW_NAME, "torchrun"),
        ({}, {"command": None, "script": "python train.py"}, NEW_NAME, "script"),
        ({}, {"image_entrypoint": ["/entry"]}, NEW_NAME, "image_entrypoint"),
        ({}, {"read_only": True}, NEW_NAME, "read_only"),
        ({}, {"healthcheck": {"stall_after": "10m"}}, NEW_NAME, "healthcheck.stall_after"),
        ({}, {"name": "other"}, NEW_NAME, "name"),
        ({}, {"kubernetes": {"prune": True}}, IN_PLACE, "kubernetes.prune"),
        ({}, {"image": "registry.example/other:2"}, NEW_NAME, "image"),
        ({}, {"env": {"SEED": "7"}}, NEW_NAME, "env.SEED"),
        ({}, {"command": ["python", "train.py", "--more"]}, NEW_NAME, "command"),
        ({}, {"stop_grace_period": "2m"}, NEW_NAME, "stop_grace_period"),
        ({}, {"kubernetes": {"node_selector": {"gpu": "h200"}}}, NEW_NAME, "kubernetes.node_selector"),
        ({}, {"kubernetes": {"namespace": "lab"}}, NEW_NAME, "kubernetes.namespace"),
        ({}, {"kubernetes": JOB_SET}, NEW_NAME, "kubernetes.kind"),
        ({}, {"restart": {"max_attempts": 3}}, IN_PLACE, "restart.max_attempts"),
        ({}, {"active_deadline": "2h"}, IN_PLACE, "active_deadline"),
        ({}, {"ttl_after_finished": "1h"}, IN_PLACE, "ttl_after_finished"),
        ({"kubernetes": STABLE}, {"kubernetes": STABLE, **SMALLER}, REFUSED, "resources.memory"),
        ({"kubernetes": LONE}, {"kubernetes": LONE, "image": "registry.example/other:2"}, REFUSED, "image"),
        ({}, {}, SAME, None),
    ],
)
def test_each_kind_of_change_is_told(
    tmp_path: Path, before: dict[str, Any], after: dict[str, Any], effect: str, cause: str | None
) -> None:
    """By the two manifests alone: names, what is immutable of the kind, and the field behind each difference."""
    _, have = rendered(tmp_path / "a", **before)
    if effect == SAME:  # comments and the header are no object's
        plan, now = rendered(tmp_path / "a", **before)
        now = now.replace("# rendering format", "# another comment\n# rendering format")
    else:
        plan, now = rendered(tmp_path / "b", **after)
    change = cluster_change(plan, have, now)
    assert change is not None
    assert change.effect == effect, change
    assert change.causes == ((cause,) if cause else ()), change
    assert change.shares_checkpoint_dir == (effect == NEW_NAME)


@pytest.mark.parametrize(
    ("now", "then", "cause"),
    [
        ("tl_again=''", "tl_once_more=''", "what trainlaunch itself writes"),
        ("# rendering format 3", "# rendering format 2", "rendering format 2 is 3 now"),
    ],
)
def test_another_release_is_no_field_of_the_job(tmp_path: Path, now: str, then: str, cause: str) -> None:
    """Its scripts, or its format, are behind the difference."""
    plan, text = rendered(tmp_path)
    have = re.sub(r"digits-[0-9a-f]{8}", "digits-00000000", text.replace(now, then))
    change = cluster_change(plan, have, text)
    assert change is not None
    assert change.causes == (cause,)


def test_a_line_of_a_policy_is_named_with_the_number_of_jobs(trainlaunch: Runs, tmp_path: Path) -> None:
    """One sentence before the diffs, and the same in JSON."""
    (tmp_path / ".git").mkdir()
    for name in ("one", "two"):
        write_job(tmp_path / name, name=name, target="kubernetes", **BASE)
        done = trainlaunch("render", f"{name}/job.yaml", "--write-to", "k8s", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    (tmp_path / "trainlaunch-policy.yaml").write_text("defaults:\n  stop_grace_period: 2m\n  active_deadline: 9h\n")
    done = trainlaunch("check", cwd=tmp_path)
    told = (
        "Cluster: 2 get new names and start beside those that run (policy line 3: active_deadline, policy line 2: "
        "stop_grace_period), 2 share a checkpoint_dir with the run that goes on"
    )
    assert (done.returncode, told in done.stderr) == (1, True), done.stderr
    document = json.loads(trainlaunch("check", "-o", "json", cwd=tmp_path).stdout)
    assert document["cluster"] == told
    assert [each["cluster"]["effect"] for each in document["renderings"]] == [NEW_NAME] * 2
