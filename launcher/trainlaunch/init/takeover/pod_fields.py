"""What only a Kubernetes object says of a job, converted to the fields of `kubernetes`, from ours and others'."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trainlaunch.container.job_variables import RESTARTS
from trainlaunch.container.kubernetes import LOCAL_ADDRESS
from trainlaunch.exit_codes import EXIT_TRY_ELSEWHERE
from trainlaunch.formats.workload import Workload, stated
from trainlaunch.gpu_names import AMD_GPU, NVIDIA_GPU
from trainlaunch.init.takeover.job_draft import JobDraft, size, word
from trainlaunch.init.takeover.prologue import Wrapped
from trainlaunch.init.takeover.prune_annotations import drop_prune
from trainlaunch.job.fields.kubernetes import POD_KEYS
from trainlaunch.job.reserved import CLUSTER_HOME, KUBERNETES_LABEL_PREFIX, KUEUE_QUEUE_LABEL
from trainlaunch.kinds import KINDS
from trainlaunch.rules.sources.source_text import SourceContainer, at
from trainlaunch.units import GIB, format_duration
from trainlaunch.yamltree.changes import EditRefused, value_of_node
from trainlaunch.yamltree.tolerant import Mapping as MappingNode

_AS_THEY_ARE = {
    "nodeSelector": "node_selector",
    "affinity": "affinity",
    "tolerations": "tolerations",
    "topologySpreadConstraints": "topology_spread",
    "serviceAccountName": "service_account",
    **POD_KEYS,
}
_KINDS = {each.name: each.word for each in KINDS.values()}
# Of a pod or a container: what each rendered file decides for itself, or what a field that is read elsewhere says.
_DECIDED = re.compile(
    r"apiVersion|kind|metadata\.(?:namespace|creationTimestamp|generateName)|container\.name|requests are limits|pods"
    r"|pod\.(?:restartPolicy|shareProcessNamespace|automountServiceAccountToken|hostNetwork|dnsPolicy|subdomain|hostIPC"
    r"|imagePullSecrets\..*|enableServiceLinks)"
    rf"|pod\.(?:{'|'.join(_AS_THEY_ARE)})(?:\..*)?"
    r"|(?:pod|container)\.securityContext\.(?:runAsNonRoot|fsGroup|fsGroupChangePolicy|seccompProfile\..*"
    r"|allowPrivilegeEscalation|capabilities\.drop\..*|readOnlyRootFilesystem)"
    r"|(?:.*\.)?(?:backoffLimit|maxRestarts|activeDeadlineSeconds|ttlSecondsAfterFinished|completionMode|suspend"
    r"|restartPolicy)"
    r"|spec\.(?:completions|parallelism)|(?:.*\.)?metadata\.(?:labels|annotations|name|namespace|creationTimestamp)(?:\..*)?",
    re.DOTALL,
)
_USUAL = ("a job file has no field for it", "write patches.kubernetes, if it is needed")
_WHY = {
    "initContainers": ("a job is one container; another beside it is a part of the pod", "write patches.kubernetes"),
    "podFailurePolicy": ("a rendered file has its own, by restart.on_exit_codes", "set restart.on_exit_codes"),
    "livenessProbe": ("a failed check would kill a training process that only waits", "watch the job with `status`"),
    "startupProbe": ("readiness only reports, from the start", "leave it out"),
    "readinessProbe": ("a job has its own check of /dev/shm", "watch what it checked from the training script"),
    "volumes": ("no container of the job mounts it", "leave it out"),
    "requests": ("a job's requests are its limits", "set the limit in resources"),
    "ports": ("a job serves nothing", "write patches.kubernetes, if somebody connects to it"),
}
_IDENTITY_BEFORE = (("USER", "trainlaunch"), ("LOGNAME", "trainlaunch"))  # in rendered files before format 3
_DEFAULT_ID = 1000


def take_pod(draft: JobDraft, written: SourceContainer) -> None:
    """Set the fields of `kubernetes`, the attempts, and what Kubernetes demands and the text leaves out."""
    workload = written.workload
    rest = dict(workload.rest)
    draft.set("target", word("kubernetes"))
    _take_kind(draft, written, rest)
    if rest.get("metadata.namespace"):
        draft.set("kubernetes.namespace", str(rest["metadata.namespace"]))
    _take_as_they_are(draft, written.pod)
    _take_flags(draft, rest)
    if at(written.own, "resources", "requests", "cpu") and not at(written.own, "resources", "limits", "cpu"):
        draft.set("kubernetes.cpu_limit", False)
    _take_attempts(draft, rest)
    queue = draft.fields.get("labels", {}).pop(KUEUE_QUEUE_LABEL, None)
    if queue:
        draft.set("kubernetes.queue", queue)
    _take_annotations(draft, rest)
    _take_demands(draft, workload)
    _tell_rest(draft, workload, rest)


def _take_kind(draft: JobDraft, written: SourceContainer, rest: Mapping[str, object]) -> None:
    kind = _KINDS.get(written.object_kind)
    if kind is not None:
        if kind != "job":
            draft.set("kubernetes.kind", word(kind))
        return
    draft.note(
        f"the kind {written.object_kind}",
        f"a job runs as one of {', '.join(KINDS)}; Job is the default",
        "set kubernetes.kind, if another one fits better",
        written.workload.span,
    )


def _take_as_they_are(draft: JobDraft, pod: MappingNode | None) -> None:
    items = pod.items if pod is not None else {}
    for key, field in _AS_THEY_ARE.items():
        node = items.get(key)
        if node is None:
            continue
        try:
            value = value_of_node(node)
        except EditRefused:
            draft.note(f"pod.{key}", "it has a tag or an odd key", f"write it into kubernetes.{field}", node.span)
            continue
        if value not in (None, [], {}):
            draft.set(f"kubernetes.{field}", value)
    secrets = items.get("imagePullSecrets")
    listed = value_of_node(secrets) if secrets is not None else []
    names = [each["name"] for each in listed if isinstance(each, dict) and each.get("name")] if listed else []
    if names:
        draft.set("kubernetes.image_pull_secrets", names)


def _take_flags(draft: JobDraft, rest: Mapping[str, object]) -> None:
    """Set what the pod's security context and network are in a job's words."""
    context = {
        key: rest.get(f"pod.securityContext.{key}", rest.get(f"container.securityContext.{key}"))
        for key in ("runAsNonRoot", "seccompProfile.type", "fsGroup", "allowPrivilegeEscalation")
    }
    restricted = context["runAsNonRoot"] is True and context["allowPrivilegeEscalation"] is False
    if rest.get("pod.hostNetwork") is True:
        draft.set("kubernetes.host_network", True)
        draft.set("kubernetes.pod_security", word("privileged"))
    elif not restricted:
        strict = "baseline" if context["seccompProfile.type"] == "RuntimeDefault" else "privileged"
        draft.set(
            "kubernetes.pod_security",
            word(strict),
            "The file's pod sets no more of its security than this: pod_security: restricted is the default.",
        )
    if isinstance(context["fsGroup"], int):
        draft.set("kubernetes.fs_group", context["fsGroup"])
    if rest.get("pod.automountServiceAccountToken") is not False:
        draft.set("kubernetes.token", True, "token: true is Kubernetes' own default; most jobs need none.")


def _take_attempts(draft: JobDraft, rest: Mapping[str, object]) -> None:
    backoff = _last(rest, "maxRestarts")
    backoff = _last(rest, "backoffLimit") if backoff is None else backoff
    if isinstance(backoff, int):
        if backoff > 0:
            draft.set("restart.max_attempts", backoff + 1)
    elif rest.get("kind") == "Job":
        draft.set("restart.max_attempts", 7, "restart.max_attempts 7 is the Job's default backoffLimit of 6.")
    durations = {"activeDeadlineSeconds": "active_deadline", "ttlSecondsAfterFinished": "ttl_after_finished"}
    for key, field in durations.items():
        value = _last(rest, key)
        if isinstance(value, int) and (value or field == "ttl_after_finished"):
            draft.set(field, word(format_duration(value)))
    for key in ("completions", "parallelism"):
        if rest.get(f"spec.{key}", 1) != 1:
            draft.note(f"spec.{key} {rest[f'spec.{key}']}", "a job's nodes are torchrun's", "set torchrun: {nnodes: …}")


def _last(rest: Mapping[str, object], name: str) -> object:
    """Return the value of the key that ends in a name, wherever a kind has it; None where there is none."""
    return next((value for key, value in rest.items() if key.rpartition(".")[2] == name), None)


def _take_annotations(draft: JobDraft, rest: Mapping[str, object]) -> None:
    """Set the object's annotations for all its parts, and those that its pods alone have."""
    for key, value in rest.items():
        before, marked, name = key.partition("metadata.annotations.")
        if not marked or name.startswith((KUBERNETES_LABEL_PREFIX, "kubectl.kubernetes.io/")):
            continue
        if not before:
            draft.fields.setdefault("annotations", {})[name] = str(value)
        elif rest.get(f"metadata.annotations.{name}") != value:
            draft.fields.setdefault("kubernetes", {}).setdefault("annotations", {})[name] = str(value)


def _take_demands(draft: JobDraft, workload: Workload) -> None:
    """Set what every rendered file for Kubernetes needs: a limit of CPUs and of memory."""
    resources: dict[str, Any] = draft.fields.setdefault("resources", {})
    for name, value, what in (("cpus", word("4"), "CPUs"), ("memory", size(16 * GIB), "memory")):
        if name not in resources:
            resources[name] = value
            draft.comment(
                "resources", f"The file limits no {what}, which a job for Kubernetes does: {value} is a guess."
            )
            draft.note(
                f"no limit of {what}",
                f"a job for Kubernetes has one; the draft says {value}",
                "correct it",
                workload.span,
            )


def _tell_rest(draft: JobDraft, workload: Workload, rest: Mapping[str, object]) -> None:
    """Say which other parts the object has, once for each."""
    told: set[str] = set()
    for key, value in rest.items():
        if _DECIDED.fullmatch(key) or value in (None, "", False) or (key.endswith("eplicas") and value == 1):
            continue
        parts = key.split(".")
        shown = ".".join(parts[:2])
        if shown in told:
            continue
        told.add(shown)
        why, fix = next((_WHY[each] for each in parts if each in _WHY), _USUAL)
        draft.note(shown if len(parts) > 2 else f"{key} {value}", why, fix, workload.span)


def take_own_pod(draft: JobDraft, written: SourceContainer, plan: Wrapped) -> None:
    """Set what a rendered file for Kubernetes says beside its container."""
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
    if kind is not None and kind.immutable:
        drop_prune(draft, own, before=plan.begins_script)
    _drop_tolerations(draft, own)
    _take_exit_codes(draft, workload.rest)
    queue = workload.rest.get("queue")
    if queue:
        own["queue"] = queue
    if not own:
        del draft.fields["kubernetes"]


def _drop_identity(draft: JobDraft, own: dict[str, Any]) -> None:
    """Take out the uid, the group of volumes and the variables that the default gives."""
    env = draft.fields.get("env", {})
    if "user" not in draft.fields and "pod_security" not in own:
        own["run_as"] = "assigned"
    for name, value in [*env.items()]:
        if (name, value) in _IDENTITY_BEFORE or value.startswith(CLUSTER_HOME):
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


def _drop_tolerations(draft: JobDraft, own: dict[str, Any]) -> None:
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


def _take_exit_codes(draft: JobDraft, rest: Mapping[str, object]) -> None:
    """Set restart.on_exit_codes where a rule ends the job after every other code."""
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
