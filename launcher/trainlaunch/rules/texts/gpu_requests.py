"""Requests for GPUs that are missing, refused, or read otherwise than they are meant."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator

from trainlaunch.diagnostics import Edit, Severity
from trainlaunch.formats.gpus import NO_GPUS, is_gpu_resource, is_no_accelerator
from trainlaunch.formats.workload import Known, Unknown, stated
from trainlaunch.gpu_names import ALL_GPUS, AMD_GPU, NVIDIA_GPU
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import at_container, container_rule, text_rule
from trainlaunch.rules.sources.container_facts import (
    command_span,
    gpu_count,
    has_gpu,
    images_of,
    is_fragment,
    is_privileged,
    of_reader,
)
from trainlaunch.rules.sources.purpose import ranks_of, trains
from trainlaunch.rules.sources.source_text import (
    COMPOSE,
    DEVCONTAINER,
    GITHUB,
    KUBERNETES,
    SHELL,
    SourceContainer,
    SourceText,
    at,
    entries_in,
    items_in,
    text_at,
)
from trainlaunch.rules.sources.training_commands import is_training, names_cpu, stated_ranks
from trainlaunch.rules.sources.visible_devices import GrantedGpus, contradictions
from trainlaunch.units import counted
from trainlaunch.yamltree.tolerant import Mapping, Scalar

_OF_GKE = "cloud.google.com/gke-accelerator"
_HPC = frozenset({"apptainer", "singularity"})
_NV = frozenset({"--nv", "--nvccli", "--rocm"})
# Directives of a batch system, which stops to read them at the first command.
_HEADER = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\r?\n)*")
_BATCH_GPU = re.compile(
    r"^#(?:SBATCH|PBS|BSUB)\b[^\n]*"
    r"(?:--gres=gpu(?!\S{0,60}[:=]0\b)|--gpus[\w-]{0,20}[= ](?!0\b)|\bn?gpus=(?!0\b)|-gpu )",
    re.MULTILINE,
)
# AMD's images bring what they need, and a variable or a library that is bound does what --nv does.
_PASSED_ON = re.compile(
    r"rocm|\bmi(?:50|100|2[15]0x?|300[ax]?)\b|\bHIP_|MIOPEN|(?:SINGULARITY|APPTAINER)(?:ENV)?_NV\b|libcuda|instance://",
    re.IGNORECASE,
)
_TAINTS = frozenset({NVIDIA_GPU, AMD_GPU, _OF_GKE})
_PART = re.compile(r"[0-9]*\.0*[1-9][0-9]*|[0-9]*[1-9][0-9]?m")
_DEVICES = re.compile(r"([\"']?)(device=[\w-]+(?:,[\w-]+)+)\1")
_INDEXES = re.compile(r"([\"']?)([0-9]+(?:,[0-9]+)+)\1")
_REFUSED = "the reader of this file stops with an error, and nothing starts"


@container_rule("TL325", Severity.INFO, COMPOSE)
def gpu_by_cdi_name(container: SourceContainer) -> Iterator[Problem]:
    """A service has a CDI name among its devices."""
    for node in items_in(at(container.own, "devices")):
        if isinstance(node, Scalar) and node.text.startswith(f"{NVIDIA_GPU}="):
            yield Problem(
                f"whether {node.text} gives a GPU depends on the engine",
                "look for /dev/nvidia0 inside, or reserve the GPU under deploy.resources.reservations.devices",
                "Docker 28.2 and podman-compose know CDI names; docker-compose on Podman 4 drops them",
                span=node.span,
            )
            return


@container_rule("TL365", Severity.WARNING, "docker_run", COMPOSE)
def gpu_count_zero(container: SourceContainer) -> Iterator[Problem]:
    """A request for GPUs asks for none."""
    gpus = container.workload.gpus
    if isinstance(gpus, Known) and not (gpus.value.all or gpus.value.ids or gpus.value.number):
        right = "device_ids: ['0']" if container.workload.format == COMPOSE else "--gpus device=0"
        yield Problem(
            "the request for GPUs has a count of 0",
            f"write {right} for the first GPU, or delete the request",
            "a bare number is a count; GPUs are named by device",
            span=gpus.span,
            # Behind a key that is called count none may be meant.
            severity=None if container.workload.format != COMPOSE or trains(container) else Severity.INFO,
        )


@text_rule("TL352", Severity.WARNING)
def gpu_not_requested(file: SourceText) -> Iterator[Problem]:
    """What trains in a container has no GPU beside words by which one is meant."""
    for container in file.containers:
        yield from at_container(container, _unasked(container))
    for command in file.commands if file.kind == SHELL and _asks_for_gpus(file.text) else ():
        words = tuple(each.text for each in command)
        at = next((index for index, each in enumerate(words) if posixpath.basename(each) in _HPC), None)
        if (
            at is None
            or words[0] in {"echo", "printf"}
            or not {"exec", "run"} & {*words[at + 1 : at + 3]}
            or _NV & {*words}
        ):
            continue
        trained = any(is_training(words[end:]) for end in range(at + 2, len(words))) and not names_cpu(words)
        if trained and all(each.known for each in command[at:]):
            yield Problem(
                f"the job asks for GPUs, and {posixpath.basename(words[at])} passes none on",
                f"write {posixpath.basename(words[at])} {words[at + 1]} --nv (--rocm for AMD)",
                "without it the container has no driver of the GPU, and PyTorch finds no CUDA",
                span=file.source.span(command[at].start, command[at].end),
            )


def _asks_for_gpus(text: str) -> bool:
    """Return whether a batch script asks for GPUs which something has to pass on to a container."""
    header = _HEADER.match(text)
    return header is not None and _BATCH_GPU.search(header[0]) is not None and not _PASSED_ON.search(text)


def _unasked(container: SourceContainer) -> Iterator[Problem]:
    workload = container.workload
    if has_gpu(workload) or workload.gpus is not None or is_fragment(container) or not trains(container):
        return
    reason = _of_pod(container) if workload.format == KUBERNETES else _of_variables(container)
    if reason and "unclear" not in workload.rest:
        fix = {KUBERNETES: "add nvidia.com/gpu to resources.limits", COMPOSE: "add gpus: all to the service"}
        yield Problem(
            f"{reason}, and the container asks for no GPU",
            fix.get(workload.format, "add --gpus all"),
            "without a request training runs on the CPU, or finds no CUDA",
        )


def _of_variables(container: SourceContainer) -> str:
    workload = container.workload
    for name in ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        value = (stated(workload.env.get(name)) or "").strip("\"' ")  # of a list item the quotes are the value's
        runtime = workload.rest.get("service.runtime") or workload.rest.get("--runtime")
        if value not in {*NO_GPUS, "NoDevFiles"} and runtime is None:
            return f"{name} is {value}"
    return ""


def _of_pod(container: SourceContainer) -> str:
    pod = container.pod
    if _may_be_given(container):
        return ""
    for each in items_in(at(pod, "tolerations")):
        key = text_at(each, "key") or ""
        if key in _TAINTS:
            return f"the pod tolerates {key}"
    for key in entries_in(at(pod, "nodeSelector")):
        if key.startswith("nvidia.com/") or ("accelerator" in key and "tpu" not in key):
            return f"the pod selects nodes by {key}"
    if text_at(pod, "runtimeClassName") == "nvidia":
        return "the pod's runtimeClassName is nvidia"
    visible = container.workload.env.get("CUDA_VISIBLE_DEVICES")
    if stated_ranks(container.argvs) and isinstance(visible, Known) and visible.value not in {"", "-1"}:
        return f"CUDA_VISIBLE_DEVICES is {visible.value}"
    return ""


def _may_be_given(container: SourceContainer) -> bool:
    """Return whether a pod may get GPUs by other means: a resource claim, a part of one, what its scheduler reads."""
    schedulers = {None, "default-scheduler", "volcano"}
    given = [each for each in container.workload.devices if not is_no_accelerator(each)]
    claimed = at(container.pod, "resourceClaims") is not None
    return bool(given) or claimed or text_at(container.pod, "schedulerName") not in schedulers


@container_rule("TL366", Severity.ERROR, kinds=(COMPOSE, KUBERNETES))
def gpu_request_refused(container: SourceContainer) -> Iterator[Problem]:
    """A request for GPUs has a form that Kubernetes or Compose refuses."""
    of_compose = container.workload.format == COMPOSE
    yield from (_refused_by_compose if of_compose else _refused_by_kubernetes)(container)


def _refused_by_compose(container: SourceContainer) -> Iterator[Problem]:
    short = at(container.own, "gpus")
    if isinstance(short, Scalar) and "$" not in short.text and short.text != ALL_GPUS:
        message = f"gpus is {short.raw}, and takes the word all or a list of requests"
        yield Problem(message, "write gpus: all", _REFUSED, span=short.span)
    for each in items_in(at(container.own, "deploy", "resources", "reservations", "devices")):
        if not isinstance(each, Mapping):
            continue
        if "capabilities" not in each.items:
            message, fix = "a reserved device has no capabilities", "add capabilities: [gpu]"
            yield Problem(message, fix, _REFUSED, span=each.span)
        elif "count" in each.items and "device_ids" in each.items:
            message, fix = "a reserved device has a count and device_ids", "keep one of count and device_ids"
            yield Problem(message, fix, _REFUSED, span=each.span)


def _refused_by_kubernetes(container: SourceContainer) -> Iterator[Problem]:
    limits, requests = (entries_in(at(container.own, "resources", each)) for each in ("limits", "requests"))
    huawei = any(".myhuaweicloud." in each for each in images_of(container))  # whose clusters take parts of a GPU
    problem = Problem("", "", _REFUSED, severity=Severity.WARNING if huawei else of_reader(container))
    for name, node in limits.items():
        if is_gpu_resource(name) and isinstance(node, Scalar) and _PART.fullmatch(node.text):
            message = f"{name} is {node.raw}, and GPUs are whole"
            yield problem._replace(message=message, fix=f"write {name}: 1", span=node.span)
    for name, node in requests.items():
        if not is_gpu_resource(name) or not isinstance(node, Scalar) or is_fragment(container):
            continue
        if not node.text.strip()[:1].isdigit():  # what a template or a shell fills in
            continue
        limit, part = limits.get(name), _PART.fullmatch(node.text)
        if limit is None:
            message = f"{name} {node.text} is requested without an equal limit"
            fix = f"write {name}: 1 in both" if part else f"add {name}: {node.text} to resources.limits"
            yield problem._replace(message=message, fix=fix, span=node.span)
        elif isinstance(limit, Scalar) and _differ(limit.text.strip(), node.text.strip()):
            message = f"{name} is {node.text} in requests and {limit.text} in limits"
            yield problem._replace(message=message, fix=f"write {limit.text} in both", span=node.span)


def _differ(limit: str, request: str) -> bool:
    return limit.isdigit() and request.isdigit() and limit != request


@text_rule("TL319", Severity.ERROR)
def gpus_list_unquoted(file: SourceText) -> Iterator[Problem]:
    """The list of --gpus is not one CSV field."""
    plain = file.kind not in {DEVCONTAINER, GITHUB}  # there the value stands inside another string
    lines = (each for each in file.containers if each.workload.format == "docker_run" and not each.podman)
    for workload in (each.workload for each in lines):
        gpus = workload.gpus
        text = gpus.text if isinstance(gpus, (Known, Unknown)) else ""
        devices, indexes = _DEVICES.fullmatch(text), _INDEXES.fullmatch(text)
        match = devices or indexes
        if match is None or gpus is None:
            continue
        ids = match[2].removeprefix("device=")
        right = f"'\"device={ids}\"'"
        read = "a device and a count, which docker refuses"
        if indexes:
            read = f"a count of {ids.rpartition(',')[2]}: of bare numbers the last one holds"
        yield Problem(
            f"--gpus {match[2]} is read as {read}",
            f"write --gpus {right}",
            "the value is one CSV record; a list of devices is one field only inside double quotes",
            workload.place,
            gpus.span,
            edits=(Edit(gpus.span, right),) if plain else (),
            safe=devices is not None,
        )


@container_rule("TL374", Severity.WARNING, "docker_run", COMPOSE, KUBERNETES)
def ranks_exceed_gpus(container: SourceContainer) -> Iterator[Problem]:
    """A launcher starts more ranks than the container has GPUs."""
    ranks, count = ranks_of(container), gpu_count(container.workload)
    if (
        count
        and ranks > count
        and trains(container)
        and not is_privileged(container.workload)
        and not any("--use_cpu" in argv or "gloo" in argv for argv in container.argvs)
    ):
        yield Problem(
            f"it starts {counted(ranks, 'rank')} on {counted(count, 'GPU')}",
            f"start {counted(count, 'rank')}, or ask for {counted(ranks, 'GPU')}",
            "NCCL refuses two ranks on one GPU: Duplicate GPU detected",
            span=command_span(container.workload),
        )


@container_rule("TL351", Severity.WARNING)
def visible_devices_contradict(container: SourceContainer) -> Iterator[Problem]:
    """A variable hides GPUs which are asked for, or shows others."""
    workload = container.workload
    known = {name: value.value for name, value in workload.env.items() if isinstance(value, Known)}
    # None are asked for where none are wanted, as of an operator's own pods.
    env = {name: value for name, value in known.items() if has_gpu(workload) or value not in {"none", "void"}}
    # Without a request the text may run where an engine gives all GPUs by default; all privileges show all of a node's.
    count = None if is_privileged(workload) else gpu_count(workload) or None
    if any(name.startswith(_OF_GKE) for name in entries_in(at(container.pod, "nodeSelector"))):
        env.pop("NVIDIA_VISIBLE_DEVICES", None)  # the plugin of Google's nodes has no runtime that reads it
    granted = GrantedGpus(count, in_cluster=workload.format == KUBERNETES)
    for name, message, why in contradictions(env, granted):
        value = workload.env[name]
        more = name == "NVIDIA_VISIBLE_DEVICES" and env[name] not in {"none", "void"}  # than what it asks for
        yield Problem(
            message,
            f"delete {name}",
            why,
            span=value.span if isinstance(value, Known) else None,
            severity=Severity.INFO if more and not trains(container) else None,
        )
