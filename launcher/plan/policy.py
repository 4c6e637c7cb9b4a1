"""What a policy asks of a plan: ceilings, labels, registries, digests. Nothing is lowered to fit; each is an error."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from launcher.diagnostics import Diagnostic, Span
from launcher.job.ceilings import Limit, Policy
from launcher.job.spec import JobSpec
from launcher.plan.launch_plan import SharedMemory
from launcher.policy.registry import in_registry, parts_of
from launcher.units import format_size, human_size

GPU_RESOURCE = re.compile(r"nvidia\.com/(?:gpu|mig-).*|amd\.com/(?:gpu|cpx|dpx|spx).*|gpu\.intel\.com/.*")
_GPU_DEVICE = re.compile(r"/dev/(?:nvidia|kfd|dri|dxg|$)|^/dev/?$|=")  # nodes of a GPU, /dev whole, a CDI name
_MEMORY_WHY = "without a limit a job may use all of its machine"


def policy_errors(job: JobSpec, shm: SharedMemory) -> list[Diagnostic]:
    """Return everything in which the job's values break its policy."""
    policy = job.policy
    if policy is None:
        return []
    return [
        *_memory(job),
        *_shm_size(job, shm),
        *_gpus(job),
        *_workers(job),
        *_flags(job),
        *_labels(job, policy),
        *(() if job.target == "local" else _image(job, policy)),  # target local starts no image
    ]


def _place(span: Span) -> str:
    return f"{span.file}:{span.line}"


def _above(job: JobSpec, field: str, name: str, values: tuple[int, Limit], spell: Callable[[int], str]) -> Diagnostic:
    value, most = values
    said = f" ({job.origin(field)})" if job.span(field) is None else ""
    return Diagnostic(
        "TL140",
        f"{field} {spell(value)}{said} is above the policy's max.{name} {spell(most.value)} ({_place(most.span)})",
        f"set {field} to {spell(most.value)}, or raise max.{name} in {_place(most.span)}",
        why="a policy's ceilings hold for every job below its folder; no option and no override passes them",
        span=job.span(field),
        field=field,
    )


def _memory(job: JobSpec) -> Iterator[Diagnostic]:
    most, asked = job.ceiling("memory"), job.resources.memory
    if most is None:
        return
    if asked is None:
        yield Diagnostic(
            "TL140",
            f"resources.memory is not stated, and the policy's max.memory is {format_size(most.value)} "
            f"({_place(most.span)})",
            f"add resources: {{memory: {format_size(most.value)}}}, or less",
            why=_MEMORY_WHY,
            span=job.span("resources"),
            field="resources.memory",
        )
    elif asked > most.value:
        yield _above(job, "resources.memory", "memory", (asked, most), format_size)


def _shm_size(job: JobSpec, shm: SharedMemory) -> Iterator[Diagnostic]:
    most = job.ceiling("shm_size")
    if most is None:
        return
    if job.shm_size is not None:
        if job.shm_size > most.value:
            yield _above(job, "shm_size", "shm_size", (job.shm_size, most), format_size)
    elif shm.need > shm.size.value:
        workers = max((each.workers for each in shm.loaders), default=0)
        fewer = f"lower data_loader.num_workers (now {workers}) or batch_size" if workers else "lower shm_extra"
        yield Diagnostic(
            "TL140",
            f"the DataLoaders need {human_size(shm.need)} of /dev/shm, and the policy's max.shm_size is "
            f"{format_size(most.value)} ({_place(most.span)})",
            f"{fewer}, or raise max.shm_size in {_place(most.span)}",
            why="a full /dev/shm ends in 'Bus error' or 'No space left on device', or the training loop waits for ever",
            span=job.span("data_loader"),
            field="data_loader",
        )


def _gpus(job: JobSpec) -> Iterator[Diagnostic]:
    here, everywhere = job.ceiling("gpus"), job.ceiling("total_gpus")
    nodes = job.nodes
    if job.resources.gpus.all:
        for name, most in (("gpus", here), ("total_gpus", everywhere)):
            if most is not None:
                yield _all_gpus(job, name, most)
        return
    extended = [name for name in job.resources.extended if GPU_RESOURCE.fullmatch(name)]
    count = job.resources.gpus.count + sum(job.resources.extended[name] for name in extended)
    field = "resources.gpus" if job.resources.gpus or not extended else f"resources.extended.{extended[0]}"
    if here is not None and count > here.value:
        yield _above(job, field, "gpus", (count, here), str)
    if everywhere is None or count * nodes <= everywhere.value:
        return
    if nodes == 1:
        yield _above(job, field, "total_gpus", (count, everywhere), str)
    else:
        yield Diagnostic(
            "TL140",
            f"{field} {count} on {nodes} nodes is {count * nodes} in all, above the policy's max.total_gpus "
            f"{everywhere.value} ({_place(everywhere.span)})",
            f"set {field} to {everywhere.value // nodes}, or torchrun.nnodes to {max(1, everywhere.value // count)}",
            span=job.span(field),
            field=field,
        )


def _all_gpus(job: JobSpec, name: str, most: Limit) -> Diagnostic:
    return Diagnostic(
        "TL140",
        f"resources.gpus is all, and the policy's max.{name} is {most.value} ({_place(most.span)})",
        f"set resources.gpus to {most.value}, or fewer",
        why="all is a different number on each machine, so nothing shows that it is within a ceiling",
        span=job.span("resources.gpus"),
        field="resources.gpus",
    )


def _flags(job: JobSpec) -> Iterator[Diagnostic]:
    """Yield each flag of the docker patch that brings GPUs beside resources.gpus."""
    name = next((each for each in ("gpus", "total_gpus") if job.ceiling(each)), None)
    most = job.ceiling(name) if name else None
    for flag in job.patch.flags if job.patch and most else ():
        devices = flag.name == "device" and _GPU_DEVICE.search(flag.value or "")
        if most and (devices or flag.name in {"privileged", "runtime", "device-cgroup-rule"}):
            yield Diagnostic(
                "TL140",
                f"{' '.join(flag.words)} can give the job any GPU, and the policy's max.{name} is {most.value} "
                f"({_place(most.span)})",
                "delete the flag, and write resources.gpus",
                why="a policy's ceilings hold for every job below its folder; no patch passes them",
                span=flag.span,
                field=f"patches.docker.extra_args.{flag.at}",
            )


def _workers(job: JobSpec) -> Iterator[Diagnostic]:
    most = job.ceiling("num_workers")
    said: set[str] = set()
    for loader in job.data_loader.loaders if most is not None else ():
        own = f"data_loader.loaders.{loader.name}.num_workers"
        field = own if own in job.origins else "data_loader.num_workers"
        if most is not None and (loader.num_workers or 0) > most.value and field not in said:
            said.add(field)
            yield _above(job, field, "num_workers", (loader.num_workers or 0, most), str)


def _labels(job: JobSpec, policy: Policy) -> Iterator[Diagnostic]:
    for name, pattern, span in policy.required_labels:
        value = job.labels.get(name)
        if value is not None and re.fullmatch(pattern, value, re.DOTALL):
            continue
        found = "is missing" if value is None else f"is {value!r}" if value else "is empty"
        asked = "a label of that name" if pattern == ".+" else f"a value like {pattern}"
        yield Diagnostic(
            "TL141",
            f"the label {name} {found}, and the policy asks for {asked} ({_place(span)})",
            f"add {name} to labels, as in labels: {{{name}: …}}" if value is None else f"set labels.{name} to {asked}",
            why="whoever pays for a machine finds its jobs by their labels",
            span=job.span(f"labels.{name}") or job.span("labels"),
            field="labels",
        )


def _image(job: JobSpec, policy: Policy) -> Iterator[Diagnostic]:
    origin = f" ({job.origin('image')})" if job.span("image") is None else ""
    allowed = policy.allowed_registries
    if policy.registries_span is not None and not any(in_registry(job.image, each) for each in allowed):
        yield Diagnostic(
            "TL142",
            f"image {job.image}{origin} comes from {'/'.join(parts_of(job.image))}, and the policy allows "
            f"{', '.join(allowed)} ({_place(policy.registries_span)})",
            f"set image to one of {', '.join(allowed)}, or add its registry to {_place(policy.registries_span)}",
            why="an image without a registry in front comes from docker.io, of library/ where it has one part",
            span=job.span("image"),
            field="image",
        )
    if policy.digest_span is not None and "@" not in job.image:
        yield Diagnostic(
            "TL143",
            f"image {job.image}{origin} is not pinned, and the policy requires a digest ({_place(policy.digest_span)})",
            f"run `trainlaunch lock {job.path}`, or set image to {job.image.rpartition(':')[0] or job.image}@sha256:…",
            why="a tag can be moved to another image under a committed rendering",
            span=job.span("image"),
            field="image",
        )
