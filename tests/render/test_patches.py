"""Patched texts: what a patch asks for is in them, the rest is as before, and the real readers take them."""

from __future__ import annotations

import difflib
import json
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.container.kubernetes import kubernetes_name
from trainlaunch.errors import JobFileRejected, RenderingDisagrees
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.render.apply_patch import documents_of
from trainlaunch.rules import plan_job
from trainlaunch.templating.quoting import kubernetes_dollars
from trainlaunch.verify import verified

from tests.jobs import plan_with, write_job
from tests.render.readers import compose, created, kubectl_json

NASTY = "a $HOME $$ ${X:-y} `z` 'q' \"d\" \\ \t é: #"
FIELDS: dict[str, Any] = {
    "command": ["python", "train.py", NASTY],
    "env": {"NOTE": NASTY},
    "secrets": {"TOKEN": {"env": "TOKEN", "kubernetes": "wandb/key"}},
    "resources": {"cpus": 2, "memory": "2Gi"},
}


def patched_plan(folder: Path, target: str, patch: Any, **fields: Any) -> LaunchPlan:
    """Return the plan of a job with a patch for its target."""
    return plan_with(folder, target, **{**FIELDS, **fields}, patches={target: patch})


def text_of(plan: LaunchPlan) -> str:
    """Return the final text, read back."""
    return verified(plan, render(plan))


def failures(plan: LaunchPlan) -> list[str]:
    """Return code, field and message of each error that keeps a text from being rendered."""
    with pytest.raises(JobFileRejected) as caught:
        text_of(plan)
    assert all(each.span and each.span.file == plan.job.path for each in caught.value.diagnostics)
    return [f"{each.code} {each.message}" for each in caught.value.diagnostics]


@pytest.mark.parametrize("target", ["docker", "compose", "kubernetes"])
def test_an_empty_patch_is_no_patch(tmp_path: Path, target: str) -> None:
    """The same bytes as without one."""
    empty: Any = {"docker": {"extra_args": []}, "compose": {}, "kubernetes": []}[target]
    assert render(patched_plan(tmp_path, target, empty)) == render(plan_with(tmp_path, target, **FIELDS))


def test_a_patch_is_its_targets_only(tmp_path: Path) -> None:
    """One job file has those of all targets; target local has no text, so none of them is its."""
    patches = {"docker": {"extra_args": ["--privileged"]}, "kubernetes": [{"op": "remove", "path": "/nowhere"}]}
    job = write_job(tmp_path, **FIELDS, patches=patches)
    assert read_job(job, target="compose").patch is None
    assert read_job(job, target="local").patch is None
    assert "--privileged" in render(plan_job(read_job(job, target="docker")))


def test_a_patch_of_the_template_changes_the_name(tmp_path: Path) -> None:
    """A Kubernetes Job's template can't be replaced, so its name must change with the patch; all else can."""

    def name(*patch: dict[str, Any]) -> str:
        return kubernetes_name(plan_with(tmp_path, "kubernetes", **FIELDS, patches={"kubernetes": list(patch)}))

    host = "/spec/template/spec/hostname"
    assert (
        len({name(), name({"op": "add", "path": host, "value": "a"}), name({"op": "add", "path": host, "value": "b"})})
        == 3
    )
    assert name({"op": "add", "path": "/spec/suspend", "value": True}) == name()


def test_flags_stand_after_ours_and_before_the_image(tmp_path: Path) -> None:
    """One a line, by their long names, quoted for the shell."""
    arguments = ["--cap-add", "SYS_PTRACE", "--network=host", "-p", "80:80", "-e", f"X={NASTY}", "--privileged"]
    text = text_of(patched_plan(tmp_path, "docker", {"extra_args": arguments}))
    quoted = NASTY.replace("'", "'\\''")
    assert (
        "    --entrypoint /bin/sh \\\n    --cap-add SYS_PTRACE \\\n    --network host \\\n    --publish 80:80 \\\n"
        f"    --env 'X={quoted}' \\\n    --privileged \\\n    trainer:1 \\\n    -c "
    ) in text


@pytest.mark.docker
def test_docker_takes_the_flags(tmp_path: Path, base_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real command line: each flag has its effect, and the command is still the preflight's."""
    monkeypatch.setenv("TOKEN", "x")
    patch = {
        "extra_args": ["--cap-add", "SYS_PTRACE", "--hostname=there", "--env", f"X={NASTY}", "--tmpfs", "/scratch"]
    }
    plan = patched_plan(tmp_path, "docker", patch, image=base_image, name="patched-flags")
    found = created(text_of(plan), cwd=tmp_path)
    assert found["Config"]["Hostname"] == "there"
    assert f"X={NASTY}" in found["Config"]["Env"]
    assert found["HostConfig"]["Tmpfs"] == {"/scratch": ""}
    assert found["HostConfig"]["CapAdd"] in (["SYS_PTRACE"], ["CAP_SYS_PTRACE"])
    assert found["HostConfig"]["ShmSize"] == plan.shm.size.value
    assert found["Args"][-1] == NASTY


COMPOSE: dict[str, Any] = {
    "x-note": {"a": None, "b": [1, True, 0.5, "no"]},
    "services": {
        "digits": {"network_mode": "host", "extra_hosts": ["db:10.0.0.1"], "logging": {"driver": "local"},
                   "environment": {"EXTRA": NASTY}, "labels": {"note": NASTY}},
        "board": {"image": "board:1", "command": ["--logdir", NASTY], "mem_limit": "1g"},
    },
}  # fmt: skip


def test_compose_reads_what_was_asked_for(tmp_path: Path) -> None:
    """The real Compose, with variables in its environment that it must not put in anywhere."""
    plan = patched_plan(tmp_path, "compose", COMPOSE)
    done = compose(
        "config", "--format", "json", text=text_of(plan), cwd=tmp_path, env={"TOKEN": "s", "X": "bad", "HOME": "/bad"}
    )
    assert done.returncode == 0, done.stderr
    assert "variable is not set" not in done.stderr
    services = json.loads(done.stdout.replace("$$", "$"))["services"]
    job, board = services["digits"], services["board"]
    assert (job["network_mode"], job["logging"]) == ("host", {"driver": "local"})
    assert (job["environment"]["EXTRA"], job["labels"]["note"]) == (NASTY, NASTY)
    assert board["command"] == ["--logdir", NASTY]
    assert job["command"] == ["python", "train.py", NASTY]
    assert int(job["shm_size"]) == plan.shm.size.value


def changed_lines(plan: LaunchPlan) -> list[str]:
    """Return what a patch makes of its text but for an object's own name, as lines that begin with + or -."""
    bare = plan._replace(job=plan.job._replace(patch=None))
    pair = [render(each).splitlines() for each in (bare, plan)]
    found = [line for line in difflib.unified_diff(*pair, n=0, lineterm="") if line[:2] not in ("--", "++", "@@")]
    return [line for line in found if not line[1:].startswith('  name: "digits-')]


def test_a_merge_patch_leaves_all_other_lines(tmp_path: Path) -> None:
    """A reviewer reads in a patched file what is in an unpatched one, comments included, and what the patch adds."""
    patch = {
        "services": {"digits": {"network_mode": "host", "labels": {"a": "b $x"}}, "db": {"image": "db:1"}},
        "x-lines": "a\nb\n",
    }
    assert changed_lines(patched_plan(tmp_path, "compose", patch)) == [
        '+      a: "b $$x"',
        '+    network_mode: "host"',
        "+  db:",
        '+    image: "db:1"',
        "+x-lines: |",
        "+  a",
        "+  b",
    ]


def test_a_patch_of_one_node_writes_out_what_the_others_merge(tmp_path: Path) -> None:
    """The second node has its own line added; a change of the first, which others merge, would be theirs too."""
    fields: dict[str, Any] = {"torchrun": {"nnodes": 3, "nproc_per_node": 1}, "command": ["train.py"]}
    one = changed_lines(patched_plan(tmp_path, "compose", {"services": {"digits-1": {"privileged": False}}}, **fields))
    assert one == ["+    privileged: false"]
    plan = patched_plan(tmp_path, "compose", {"services": {"digits-0": {"network_mode": "host"}}}, **fields)
    assert "<<" not in text_of(plan)
    assert "\n    # The first node's name is taken first, and the others meet there.\n" in text_of(plan)
    (document,) = documents_of(text_of(plan))
    assert [each.get("network_mode") for each in document["services"].values()] == ["host", None, None]


def test_a_json_patch_leaves_all_other_lines(tmp_path: Path) -> None:
    """Each operation is a line or a few; a removed rule takes the comment above it along."""
    patch = [
        {"op": "add", "path": "/spec/suspend", "value": True},
        {"op": "replace", "path": "/spec/template/spec/securityContext/fsGroupChangePolicy", "value": "Always"},
        {"op": "remove", "path": "/spec/podFailurePolicy/rules/0"},
        {"op": "add", "path": "/spec/template/spec/volumes/0", "value": {"name": "logs", "emptyDir": {}}},
    ]
    assert changed_lines(patched_plan(tmp_path, "kubernetes", patch)) == [
        '-      - action: "FailJob"',
        "-        onExitCodes:",
        '-          containerName: "train"',
        '-          operator: "In"',
        "-          values: [78, 125, 126, 127] # wrong files, or no process ever ran",
        '-        fsGroupChangePolicy: "OnRootMismatch"',
        '+        fsGroupChangePolicy: "Always"',
        '+        - name: "logs"',
        "+          emptyDir: {}",
        "+  suspend: true",
    ]


def test_a_patch_of_one_of_two_alike_pods_leaves_the_other(tmp_path: Path) -> None:
    """The second is an alias of the first in the text, and a pod of its own to the API server."""
    path = "/spec/pytorchReplicaSpecs/{}/template/metadata/annotations/note"
    for changed, other in (("Master", "Worker"), ("Worker", "Master")):
        patch = [{"op": "add", "path": path.format(changed), "value": "x"}]
        fields = {"kubernetes": {"kind": "pytorchjob"}, "torchrun": {"nnodes": 2}}
        (found,) = documents_of(text_of(patched_plan(tmp_path, "kubernetes", patch, **fields)))
        pods = found["spec"]["pytorchReplicaSpecs"]
        assert pods[changed]["template"]["metadata"]["annotations"]["note"] == "x"
        assert "note" not in pods[other]["template"]["metadata"]["annotations"]


def test_a_text_that_the_editor_gets_wrong_is_a_bug_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And not a file."""
    plan = patched_plan(tmp_path, "kubernetes", [{"op": "add", "path": "/spec/suspend", "value": True}])
    monkeypatch.setattr("trainlaunch.render.apply_patch.changes_of", lambda *_: [])
    with pytest.raises(RenderingDisagrees) as caught:
        render(plan)
    assert caught.value.diagnostics[0].code == "TL902"


def test_a_merge_patch_adds_to_a_volume(tmp_path: Path) -> None:
    """Its name stays: the plan mounts that one."""
    job = plan_with(tmp_path, "compose", **FIELDS, mounts=[{"type": "volume", "source": "cache", "target": "/cache"}],
                    patches={"compose": {"volumes": {"cache": {"driver": "local"}}}})  # fmt: skip
    (document,) = documents_of(text_of(job))
    assert document["volumes"] == {"cache": {"name": "cache", "driver": "local"}}


KUBERNETES: list[dict[str, Any]] = [
    {"op": "test", "path": "/spec/backoffLimit", "value": 0},
    {"op": "add", "path": "/spec/suspend", "value": True},
    {"op": "add", "path": "/metadata/labels/kueue.x-k8s.io~1queue-name", "value": "training"},
    {"op": "add", "path": "/spec/template/metadata/annotations/note", "value": NASTY},
    {"op": "add", "path": "/spec/template/spec/nodeSelector", "value": {"zone": "no"}},
    {"op": "add", "path": "/spec/template/spec/containers/0/env/-",
     "value": {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}},
    {"op": "add", "path": "/spec/template/spec/volumes/-", "value": {"name": "logs", "emptyDir": {}}},
    {"op": "add", "path": "/spec/template/spec/containers/0/volumeMounts/-",
     "value": {"name": "logs", "mountPath": "/logs"}},
    {"op": "add", "path": "/spec/template/spec/containers/-", "value": {
        "name": "board", "image": "board:1", "args": ["--logdir", "/logs"],
        "resources": {"limits": {"memory": "1Gi"}}, "volumeMounts": [{"name": "logs", "mountPath": "/logs"}]}},
    {"op": "copy", "from": "/spec/template/spec/containers/0/securityContext",
     "path": "/spec/template/spec/containers/1/securityContext"},
    {"op": "replace", "path": "/spec/template/spec/securityContext/fsGroupChangePolicy", "value": "Always"},
]  # fmt: skip


@pytest.mark.parametrize("version", ["1.31", "1.36"])
def test_kubernetes_takes_what_was_asked_for(tmp_path: Path, version: str) -> None:
    """Operations are done in order; the result validates strictly, and kubectl's reader agrees."""
    import kubernetes_validate

    plan = patched_plan(tmp_path, "kubernetes", KUBERNETES)
    text = text_of(plan)
    (document,) = documents_of(text)
    kubernetes_validate.validate(document, version, strict=True)
    found = kubectl_json(text)
    pod = found["spec"]["template"]["spec"]
    assert found["spec"]["suspend"] is True
    assert found["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "training"
    assert found["spec"]["template"]["metadata"]["annotations"]["note"] == NASTY
    assert (pod["nodeSelector"], pod["securityContext"]["fsGroupChangePolicy"]) == ({"zone": "no"}, "Always")
    assert [each["name"] for each in pod["containers"]] == ["train", "board"]
    assert pod["containers"][0]["env"][-1]["name"] == "NODE"
    assert pod["containers"][1]["securityContext"] == pod["containers"][0]["securityContext"]
    assert pod["containers"][0]["args"] == ["python", "train.py", kubernetes_dollars(NASTY)]


IMPOSSIBLE: list[tuple[str, dict[str, Any], str]] = [
    ("a path that is not there", {"op": "remove", "path": "/spec/colour"}, "/spec has no colour"),
    ("an index past the end", {"op": "remove", "path": "/spec/template/spec/volumes/9"}, "no index 9; it has 0 to 0"),
    ("a test that fails", {"op": "test", "path": "/spec/backoffLimit", "value": 3}, "for 3, and it is 0"),
    ("below a number", {"op": "add", "path": "/spec/backoffLimit/x", "value": 3}, "is 0, with nothing below it"),
    ("another kind", {"op": "add", "path": "/spec/x", "value": 3, "kind": "Service"}, "names the kind Service, and"),
    ("no object", {"op": "replace", "path": "", "value": 3}, "replaces the whole object by something that is none"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("operation", "message"), [each[1:] for each in IMPOSSIBLE], ids=[each[0] for each in IMPOSSIBLE]
)
def test_an_operation_that_cannot_be_done_is_an_error(tmp_path: Path, operation: dict[str, Any], message: str) -> None:
    """At its place, and nothing is rendered: not even the operations before it."""
    fine = {"op": "add", "path": "/spec/suspend", "value": True}
    (found,) = failures(patched_plan(tmp_path, "kubernetes", [fine, operation]))
    assert found.startswith(f"TL145 patches.kubernetes.1 ({operation['op']}) ")
    assert message in found


def test_a_kind_chooses_the_object(tmp_path: Path) -> None:
    """Named as the manifest names it; without one it is the object that runs the job, pod or job."""
    for kind in ("job", "pod"):
        operation = {"op": "add", "path": "/metadata/labels/example.com~1x", "value": "chosen"}
        for chosen in ({}, {"kind": kind.title()}):
            plan = patched_plan(tmp_path, "kubernetes", [{**operation, **chosen}], kubernetes={"kind": kind})
            assert text_of(plan).count("chosen") == 1


def test_a_service_of_another_name_needs_an_image(tmp_path: Path) -> None:
    """Most likely the job's own is meant, whose name is the job's."""
    (found,) = failures(patched_plan(tmp_path, "compose", {"services": {"digit": {"network_mode": "host"}}}))
    assert found == "TL145 patches.compose adds the service digit without image or build; the file has digits"
