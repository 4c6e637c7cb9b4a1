"""Makes the JobSpec from checked values: defaults from the table, and where each value that is set came from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from trainlaunch.diagnostics import Span
from trainlaunch.gpu_names import gpu_resource_of
from trainlaunch.job.fields.table import defaults
from trainlaunch.job.loader_spec import BatchBytes, DataLoaderSpec, LoaderSpec, TensorSpec, inherited
from trainlaunch.job.spec import (
    Gpus,
    HealthCheck,
    JobSpec,
    KubernetesSpec,
    Mount,
    Origin,
    Resources,
    Secret,
    ShmExtra,
    Torchrun,
    Ulimit,
)
from trainlaunch.targets import target_record
from trainlaunch.yamltree.strict import MappingNode, Node, ScalarNode, SequenceNode

_NO_GPU = Gpus(count=0, ids=(), all=False)
Made = TypeVar("Made")


class Stated:
    """The values that a job sets; `get` falls back on the table's default."""

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self.values = values
        self._path = path
        self._defaults = defaults(path)

    def get(self, name: str) -> Any:
        """Return the value that the job sets for a field, else its default."""
        return self.values[name] if name in self.values else self._defaults[name]

    def below(self, name: str) -> Stated:
        """Return what is set in the mapping `name`; nothing where it isn't set."""
        return Stated(self.values.get(name, {}), f"{self._path}.{name}" if self._path else name)


def job_spec(
    values: Mapping[str, Any], root: MappingNode, *, path: str, target: str, sets: Sequence[str] = ()
) -> JobSpec:
    """Return the job; `values` hold no error, `root` is the tree that they were read from."""
    job = Stated(values)
    gpus = job.below("resources").values.get("gpus", _NO_GPU)
    return JobSpec(
        path=path,
        target=target,
        image=job.get("image") or "",
        **{name: job.get(name) for name in _AS_STATED},
        mounts=tuple(_mount(each, target) for each in job.get("mounts")),
        secrets={
            name: _record(Secret, each.get, as_file=each.get("as") == "file")
            for name, each in job.get("secrets").items()
        },
        resources=_resources(job.below("resources"), gpus),
        shm_extra=tuple(ShmExtra(each["name"], each.get("size")) for each in job.get("shm_extra")),
        data_loader=_data_loader(job.below("data_loader"), bool(gpus), root.items.get("data_loader", (None, None))[1]),
        torchrun=_record(Torchrun, job.below("torchrun").get) if "torchrun" in values else None,
        ulimits=tuple(Ulimit(name, *limits) for name, limits in values.get("ulimits", {}).items()),
        healthcheck=_record(HealthCheck, job.below("healthcheck").get),
        **_restart(job.below("restart")),
        kubernetes=_record(KubernetesSpec, job.below("kubernetes").get),
        origins=origins(root),
        sets=tuple(sets),
    )


_AS_STATED = (
    "name", "pull_policy", "command", "script", "image_entrypoint", "working_dir", "user", "group_add",
    "read_only", "stop_signal", "env", "labels", "annotations", "ranks_per_container", "shm_size", "checkpoint_dir",
    "checkpoint_bytes", "observe", "active_deadline", "stop_grace_period", "ttl_after_finished", "profile",
)  # fmt: skip


def _mount(stated: Mapping[str, Any], target: str) -> Mount:
    """Return a mount; code is a read-only bind but in a cluster, which has no folder of this host."""
    code = stated["type"] == "code"
    kind = "bind" if code and target_record(target).on_this_machine else stated["type"]
    return _record(Mount, stated.get, type=kind, read_only=code or stated.get("read_only", False))


def _restart(restart: Stated) -> dict[str, Any]:
    """Return when a job is started again."""
    codes = restart.get("on_exit_codes")
    return {
        "max_attempts": restart.get("max_attempts"),
        "on_exit_codes": None if codes is None else tuple(codes),
        "backoff": restart.get("backoff"),
    }


def _record(kind: Callable[..., Made], value: Callable[[str], Any], **known: Any) -> Made:
    """Return a NamedTuple of the `value` of each field's name; `known` are those that need more than their name."""
    fields: tuple[str, ...] = getattr(kind, "_fields")  # noqa: B009 - of any NamedTuple
    return kind(**known, **{name: value(name) for name in fields if name not in known})


def _resources(stated: Stated, gpus: Gpus) -> Resources:
    named = stated.get("gpu_resource") or gpu_resource_of(str(stated.get("gpu_vendor")))
    return _record(Resources, stated.get, gpus=gpus, gpu_resource=named)


def _data_loader(shared: Stated, gpus: bool, node: Node | None) -> DataLoaderSpec:
    loaders = shared.values.get("loaders", {"train": {}})
    made = tuple(_loader(name, inherited(shared.values, own), gpus) for name, own in loaders.items())
    return _record(DataLoaderSpec, shared.get, loaders=made, stated="" if node is None else _in_one_line(node))


def _in_one_line(node: Node) -> str:
    """Return what a node holds, the same for the same values in any order of keys, style and place."""
    if isinstance(node, ScalarNode):
        return repr(node.text)
    if isinstance(node, SequenceNode):
        return f"[{', '.join(map(_in_one_line, node.items))}]"
    return f"{{{', '.join(f'{name!r}: {_in_one_line(value)}' for name, (_, value) in sorted(node.items.items()))}}}"


def _loader(name: str, values: Mapping[str, Any], gpus: bool) -> LoaderSpec:
    stated = Stated(values, "data_loader")
    sample = stated.get("sample")
    measured = stated.get("batch_bytes")
    return _record(
        LoaderSpec,
        stated.get,
        name=name,
        sample=tuple(TensorSpec(**each) for each in sample) if sample else None,
        batch_bytes=BatchBytes(**measured) if measured else None,
        storages=None,
        varying=False,
        batches_kept=None,
        against_workers=(),
        pin_memory=values.get("pin_memory", gpus),
    )


def origins(root: MappingNode) -> dict[str, Origin]:
    """Return by dotted path, lists by index, where every value that is set below `root` came from."""
    found: dict[str, Origin] = {}
    _add_origins(found, "", root)
    return found


def _add_origins(found: dict[str, Origin], path: str, node: MappingNode | SequenceNode) -> None:
    below: Iterable[tuple[str, Span, Node]]
    if isinstance(node, MappingNode):
        below = [(name, key.span, value) for name, (key, value) in node.items.items()]
    else:
        below = [(str(index), value.span, value) for index, value in enumerate(node.items)]
    for name, head, value in below:
        full = path + name
        block = isinstance(value, MappingNode) and value.span.line > head.line  # its own place is its first entry's
        found[full] = Origin(value.kind, None if value.kind == "--set" else head if block else value.span)
        if not isinstance(value, ScalarNode):
            _add_origins(found, f"{full}.", value)
