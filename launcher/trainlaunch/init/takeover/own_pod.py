"""A manifest of ours, taken back to the fields of `kubernetes`: what every rendering gets is left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trainlaunch.container.checkpoints import RESTARTS
from trainlaunch.container.kubernetes import IDENTITY, LOCAL_ADDRESS
from trainlaunch.exit_codes import EXIT_TRY_ELSEWHERE
from trainlaunch.formats.workload import stated
from trainlaunch.gpu_names import AMD_GPU, NVIDIA_GPU
from trainlaunch.init.takeover.draft import Draft
from trainlaunch.init.takeover.pod import take_pod
from trainlaunch.init.takeover.prologue import Wrapped
from trainlaunch.kinds import KINDS
from trainlaunch.rules.written.model import SourceContainer

_OF_THE_TEXT = ("kind",)
_DEFAULT_ID = 1000


def take_own_pod(draft: Draft, written: SourceContainer, plan: Wrapped) -> None:
    """State what a rendering for Kubernetes says beside its container."""
    workload = written.workload
    kind = next((each for each in KINDS.values() if each.name == workload.rest.get("kind")), None)
    notes = list(draft.notes)
    comments = dict(draft.comments)
    take_pod(draft, written._replace(object_kind=kind.name if kind else written.object_kind))
    draft.comments.clear()
    draft.comments.update(comments)
    draft.notes[:] = notes
    own: dict[str, Any] = draft.fields.setdefault("kubernetes", {})
    own.pop("token", None) if workload.rest.get("pod.automountServiceAccountToken") is not True else None
    name = stated(workload.name)
    if kind is not None and kind.immutable and name == plan.numbers.get("name"):
        own["stable_name"] = True
    _drop_identity(draft, own)
    _drop_tolerations(draft, own)
    _take_exit_codes(draft, workload.rest)
    queue = workload.rest.get("queue")
    if queue:
        own["queue"] = queue
    if not own:
        del draft.fields["kubernetes"]


def _drop_identity(draft: Draft, own: dict[str, Any]) -> None:
    """Take out the uid, the group of volumes and the variables that the default gives."""
    env = draft.fields.get("env", {})
    if "user" not in draft.fields and any(env.get(name) == value for name, value in IDENTITY.items()):
        own["run_as"] = "assigned"
    for name, value in IDENTITY.items():
        if env.get(name) == value:
            del env[name]
    secrets = draft.fields.get("secrets", {})
    for name in (LOCAL_ADDRESS, RESTARTS):
        if str(secrets.get(name, {}).get("kubernetes", "")).startswith("field "):
            del secrets[name]
    if not secrets:
        draft.fields.pop("secrets", None)
    restricted = "pod_security" not in own
    if restricted and draft.fields.get("user") == f"{_DEFAULT_ID}:{_DEFAULT_ID}":
        del draft.fields["user"]
    if own.get("fs_group") == _DEFAULT_ID:
        del own["fs_group"]


def _drop_tolerations(draft: Draft, own: dict[str, Any]) -> None:
    """Take out the tolerations that every GPU job gets, which stand first."""
    resources = draft.fields.get("resources", {})
    if not resources.get("gpus"):
        return
    resource = str(resources.get("gpu_resource") or (AMD_GPU if "gpu_vendor" in resources else NVIDIA_GPU))
    keys = list(dict.fromkeys((resource, f"{resource.partition('/')[0]}/gpu")))
    listed = own.get("tolerations", [])
    while listed and keys and listed[0].get("key") == keys[0]:
        listed, keys = listed[1:], keys[1:]
    own["tolerations"] = listed
    if not listed:
        del own["tolerations"]


def _take_exit_codes(draft: Draft, rest: Mapping[str, object]) -> None:
    """State restart.on_exit_codes where a rule ends the job after every other code."""
    ends = [
        key.rpartition(".")[0]
        for key, value in rest.items()
        if key.endswith("onExitCodes.operator") and value == "NotIn"
    ]
    codes = [value for key, value in rest.items() for each in ends[:1] if key.startswith(f"{each}.values.")]
    own = sorted(int(str(each)) for each in codes if each != EXIT_TRY_ELSEWHERE)
    if own:
        draft.set("restart.on_exit_codes", own)
    elif ends:
        draft.set("restart.on_exit_codes", [EXIT_TRY_ELSEWHERE])
