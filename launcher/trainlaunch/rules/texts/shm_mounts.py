"""What is mounted at /dev/shm, whose it is, and mounts that were meant for it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from trainlaunch.diagnostics import Severity, at_most
from trainlaunch.formats.quantities import is_shm
from trainlaunch.formats.workload import ABSENT, BIND, CONTAINER, DISK, HOST, NONE, SIZE, UNSIZED, Known, stated
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import container_rule, pod_rule, text_rule
from trainlaunch.rules.sources.container_facts import KINDS_OF_PODS, command_span, may_mount, size_text, suggested_shm
from trainlaunch.rules.sources.programs import OTHER, SERVING, Argv, program
from trainlaunch.rules.sources.purpose import by_purpose, trains
from trainlaunch.rules.sources.source_text import (
    COMPOSE,
    ECS,
    KUBERNETES,
    SourceContainer,
    SourceText,
    at,
    below,
    items_in,
    text_at,
)
from trainlaunch.units import GIB
from trainlaunch.yamltree.tolerant import Mapping, Sequence

_NEARLY = re.compile(r"(?:/dev)?/(?:shm(?:em)?|smh|shmm|sshm|shared_?mem(?:ory)?)|/dev/hsm|/run/shm|/var/shm|/dev")
_NAMED = re.compile(r"(?:^|[-_.])d?shm(?:em)?(?:$|[-_.])|shared-?mem")
_CLAIMING = frozenset({"Pod", "StatefulSet", "Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate"})
_OF_ANY_HOST = 2 * GIB  # half of the memory of a machine with 4 GiB
_INJECTED = "gke-gcsfuse-"  # mounted by a sidecar that GKE adds
_IPC_WORDS = {COMPOSE: ("ipc", "shm_size"), ECS: ("ipcMode", "sharedMemorySize")}


def _at_shm(container: SourceContainer, *, read_only: bool = False) -> list[Known[str]]:
    """Return the targets of a container's mounts at /dev/shm."""
    mounts = [each for each in container.workload.mounts if each.read_only or not read_only]
    return [each.target for each in mounts if isinstance(each.target, Known) and is_shm(each.target.value)]


@container_rule("TL309", Severity.WARNING)
def shm_on_disk(container: SourceContainer) -> Iterator[Problem]:
    """A disk is mounted at /dev/shm."""
    if container.workload.shm.kind == DISK:
        pod = container.workload.format == KUBERNETES
        yield Problem(
            "what is mounted at /dev/shm lies on a disk, not in memory",
            "use emptyDir: {medium: Memory, sizeLimit: …}" if pod else "delete the mount and set shm_size",
            "batches that workers pass on are then written to the disk",
            span=container.workload.shm.span,
            severity=at_most(by_purpose(container), Severity.WARNING),
        )


@text_rule("TL310", Severity.ERROR)
def shm_volume_unmounted(file: SourceText) -> Iterator[Problem]:
    """None of a pod's containers mounts its Memory emptyDir anywhere."""
    pods: dict[int, list[SourceContainer]] = {}
    for container in file.containers:
        if container.pod is not None:
            pods.setdefault(id(container.pod), []).append(container)
    for containers in pods.values():
        pod = containers[0].pod
        if any(each.workload.shm.kind != ABSENT for each in containers):
            continue  # the pod sizes /dev/shm by another volume
        if isinstance(at(pod, "volumeMounts"), Sequence):
            continue
        mounts = [mount for each in containers for mount in items_in(at(each.own, "volumeMounts"))]
        mounted = {text_at(mount, "name") for mount in mounts}
        main = next((each for each in containers if "initContainers" not in each.workload.place), containers[0])
        for volume in items_in(at(pod, "volumes")):
            name = text_at(volume, "name")
            in_memory = text_at(volume, "emptyDir", "medium") == "Memory"
            for_shm = name is not None and _NAMED.search(name) is not None
            if name and in_memory and name not in mounted and not name.startswith(_INJECTED):
                yield Problem(
                    f"the volume {name} lies in memory, and no container mounts it",
                    f"add {{name: {name}, mountPath: /dev/shm}} to volumeMounts of the container that trains",
                    "a volume without a mount does nothing; /dev/shm keeps 64 MiB",
                    main.workload.place,
                    (at(volume, "name") or volume).span,
                    severity=next((by_purpose(each) for each in containers if for_shm and trains(each)), Severity.INFO),
                )


@pod_rule("TL311", Severity.ERROR)
def mounts_outside_container(container: SourceContainer) -> Iterator[Problem]:
    """A pod has volumeMounts of its own."""
    pod = container.pod
    key = pod.keys.get("volumeMounts") if pod is not None and pod is not container.own else None
    if key is not None and isinstance(at(pod, "volumeMounts"), Sequence) and container.object_kind in KINDS_OF_PODS:
        yield Problem(
            "volumeMounts is not a field of a pod's spec, so nothing is mounted",
            "move it into the container that trains, as containers[0].volumeMounts",
            "the API server refuses or drops it; each container has volumeMounts of its own",
            span=key.span,
        )


@text_rule("TL312", Severity.ERROR, KUBERNETES)
def claim_template_of_memory(file: SourceText) -> Iterator[Problem]:
    """An emptyDir stands among `volumeClaimTemplates`."""
    for node in (each for root in file.nodes for each in below(root)):
        listed = at(node, "spec", "volumeClaimTemplates") if text_at(node, "kind") in _CLAIMING else None
        for item in items_in(listed):
            if isinstance(item, Mapping) and "emptyDir" in item.keys:
                yield Problem(
                    "volumeClaimTemplates has PVCs, and this is an emptyDir",
                    "move it to spec.volumes, as {name: …, emptyDir: {medium: Memory, sizeLimit: …}}",
                    "each item of volumeClaimTemplates becomes a PVC on a disk, whatever else it says",
                    span=item.keys["emptyDir"].span,
                )


@container_rule("TL330", Severity.WARNING)
def shm_of_host(container: SourceContainer) -> Iterator[Problem]:
    """A folder of the host is mounted at /dev/shm."""
    if container.workload.shm.kind == BIND:
        # The host's own /dev/shm is what ipc: host gives, and chosen.
        sources = {each.source.value for each in container.workload.mounts if isinstance(each.source, Known)}
        own = "/dev/shm" in {each.rstrip("/") for each in sources} or not trains(container)
        yield Problem(
            "a folder of the host is mounted at /dev/shm, so it has the host's size, and may have stale files",
            "delete the mount and set a size",
            "what dead jobs left there stays, and fills it for all that share it",
            span=container.workload.shm.span,
            severity=Severity.INFO if own else None,
        )


@container_rule("TL331", Severity.ERROR)
def shm_read_only(container: SourceContainer) -> Iterator[Problem]:
    """A mount at /dev/shm can't be written."""
    for target in _at_shm(container, read_only=True)[-1:]:
        yield Problem(
            "/dev/shm is mounted read-only, and workers write there",
            "delete the option that makes it read-only",
            "a worker passes each batch on through a file that it makes in /dev/shm",
            span=target.span,
            severity=by_purpose(container),
        )


@container_rule("TL336", Severity.ERROR)
def shm_mounted_twice(container: SourceContainer) -> Iterator[Problem]:
    """More than one mount stands at /dev/shm."""
    targets = _at_shm(container)
    mounts = [each for each in container.workload.mounts if each.target in targets]
    # Kubernetes takes two spellings of one place, Docker the same volume twice, and of two tmpfs the last.
    kinds = {(each.type, stated(each.source), each.read_only) for each in mounts}
    of_pod = container.workload.format == KUBERNETES
    refused = len({*map(stated, targets)}) == 1 if of_pod else len(kinds) > 1
    if len(targets) > 1:
        yield Problem(
            f"{len(targets)} mounts stand at /dev/shm",
            "delete all but one",
            "Kubernetes and docker refuse two mounts at one place, or show the last alone",
            span=targets[-1].span,
            severity=None if refused else Severity.WARNING,
        )


@container_rule("TL337", Severity.WARNING, kinds=(KUBERNETES,))
def shm_by_subpath(container: SourceContainer) -> Iterator[Problem]:
    """A mount at /dev/shm has a subPath."""
    for mount in items_in(at(container.own, "volumeMounts")):
        path = at(mount, "subPath") or at(mount, "subPathExpr")
        if path is not None and is_shm(text_at(mount, "mountPath") or ""):
            yield Problem(
                f"/dev/shm is the folder {path.raw} of the volume {text_at(mount, 'name')}",
                "delete subPath, and give /dev/shm a volume of its own",
                "others that mount the volume fill it, and the folder has not the mode of /dev/shm",
                span=path.span,
            )


@container_rule("TL338", Severity.ERROR)
def shm_at_wrong_place(container: SourceContainer) -> Iterator[Problem]:
    """A mount in memory is named for /dev/shm, or nearly is there, where nothing is."""
    if container.workload.shm.kind != ABSENT:
        return
    listed = items_in(at(container.own, "volumeMounts")) if container.workload.format == KUBERNETES else ()
    named = {text_at(each, "mountPath") for each in listed if _NAMED.search(text_at(each, "name") or "")}
    for mount in container.workload.mounts:
        if mount.type != "tmpfs" or not isinstance(mount.target, Known):
            continue
        path = posixpath.normpath("/" + mount.target.value.lstrip("/"))
        if _NEARLY.fullmatch(path) or mount.target.value in named:
            yield Problem(
                f"a mount in memory stands at {mount.target.value}, and /dev/shm has 64 MiB",
                "mount it at /dev/shm",
                "PyTorch, NCCL and semaphores use /dev/shm alone",
                span=mount.target.span,
                severity=by_purpose(container),
            )


@container_rule("TL348", Severity.ERROR)
def remount_in_container(container: SourceContainer) -> Iterator[Problem]:
    """A container mounts /dev/shm itself and may not."""
    if any(map(_mounts_shm, container.argvs)) and not may_mount(container.workload):
        size = size_text(suggested_shm(container.workload, None), container)
        unsure = container.workload.shm.kind != ABSENT or "unclear" in container.workload.rest
        yield Problem(
            "the command mounts /dev/shm, for which the container has no capability",
            f"set the size for the container: {size}",
            "mount needs SYS_ADMIN, and stops with `permission denied`, exit 32",
            span=command_span(container.workload),
            severity=at_most(by_purpose(container), Severity.WARNING if unsure else Severity.ERROR),
        )


def _mounts_shm(argv: Argv) -> bool:
    words = [each for each in argv if each != "sudo"]
    return bool(words) and posixpath.basename(words[0]) == "mount" and any(map(is_shm, words[1:]))


@container_rule("TL315", Severity.WARNING)
def ipc_with_size(container: SourceContainer) -> Iterator[Problem]:
    """An ipc mode takes the effect from a size that is set."""
    workload, shm = container.workload, container.workload.shm
    if shm.kind not in {HOST, CONTAINER, NONE} or shm.declared is None or shm.span is None or "--pod" in workload.rest:
        return
    mode, size = _IPC_WORDS.get(workload.format, ("--ipc", "--shm-size"))
    why = "the container then uses the /dev/shm that it shares, and ignores its own size"
    if container.podman:
        why = "podman stops with: cannot set shmsize when running in the {host } IPC Namespace (exit 125)"
    kept_open = any(program(each).name in {"sleep", "tail"} for each in container.argvs)  # for what is run in it later
    others = container.purpose.verdict == SERVING or (container.purpose.verdict == OTHER and not kept_open)
    enough = shm.kind == HOST and isinstance(shm.declared, Known) and shm.declared.value <= _OF_ANY_HOST
    severity = Severity.INFO if others or enough else None  # the host's is as large
    given = shm.declared.text
    if isinstance(shm.declared, Known) and "$" in given:  # a variable that has more than the size
        given = size_text(shm.declared.value, container)
    yield Problem(
        f"{mode} is {shm.kind}, so {size} {given} is not in effect",
        f"delete {mode}, and keep {size}",
        why,
        span=shm.span,
        severity=Severity.ERROR if container.podman else severity,
    )


@pod_rule("TL316", Severity.INFO)
def ipc_of_host(container: SourceContainer) -> Iterator[Problem]:
    """A container, once a pod, has the host's /dev/shm and no size beside it."""
    workload, shm = container.workload, container.workload.shm
    shared = container.pod.keys.get("hostIPC") if container.pod is not None else None
    if shared is not None and text_at(container.pod, "hostIPC") == "true" and shm.kind in {SIZE, UNSIZED}:
        yield Problem(
            "hostIPC is true beside a volume at /dev/shm, and the volume is what the container sees",
            "delete hostIPC",
            "of the host's IPC only semaphores and message queues are left, which training does not use",
            span=shared.span,
        )
    if shm.kind == HOST and shm.declared is None and shm.span is not None:
        pod = workload.format == KUBERNETES
        yield Problem(
            "/dev/shm is the host's: its size is unknown, and stale files may be in it",
            "mount an emptyDir of medium Memory with a sizeLimit at /dev/shm" if pod else "set a size instead",
            "hosts of minikube and kind have 64 MiB; a shared one keeps what dead jobs left in it",
            span=shm.span,
        )


@container_rule("TL346", Severity.INFO)
def ipc_of_none(container: SourceContainer) -> Iterator[Problem]:
    """A container has no /dev/shm, and no size beside it says that one is meant."""
    shm = container.workload.shm
    if shm.kind == NONE and shm.declared is None:
        yield Problem(
            "ipc none leaves the container without /dev/shm",
            "delete the ipc mode and set a size",
            "the runtime mounts nothing there, and workers, NCCL and semaphores need it",
            span=shm.span,
        )
