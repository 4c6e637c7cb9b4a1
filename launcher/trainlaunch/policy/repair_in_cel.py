"""What a cluster does with a pod that has nothing at /dev/shm, as CEL: which it repairs, how, and why it leaves others.

A pod's containers have one /dev/shm of their runtime's in common, so all of them mount the volume that takes its place:
what they exchange there still meets. What somebody wrote isn't changed, and what isn't sure is left.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from fractions import Fraction

from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX
from trainlaunch.least_shm import LEAST_SHM
from trainlaunch.policy.objects_in_cel import shared_variables
from trainlaunch.policy.rules_in_cel import AT_SHM, BELOW_MEMORY, IN_MEMORY, LIMITED, limit_of, shm_volume
from trainlaunch.policy.training_in_cel import (
    DOES_OTHER,
    GPU_CONTAINERS,
    HAS_GPUS,
    MAX_TEXT_LENGTH,
    SHOWS,
    TEXT_LENGTH,
)
from trainlaunch.units import MIB, format_size

VOLUME = "trainlaunch-shm"
ANNOTATION = f"{KUBERNETES_LABEL_PREFIX}repaired"
RULE = "TL301"  # shm-size-missing, as lint says it of the same pod in a file
SHARE = Fraction(1, 2)
IS_MIRROR = 'p.?metadata.?annotations[?"kubernetes.io/config.mirror"].hasValue()'
_MEMORY = limit_of("memory")
# What is at /dev/shm, below it, or above it and so brings what is there; a path with dots may be any of them.
_COVERS = (
    "m.mountPath.matches(" + json.dumps(r"^/*(?:dev(?:/+shm(?:/.*)?)?)?/*$|(?:^|/)\.\.?(?:/|$)") + f") || {AT_SHM}"
)
_MOUNTS = "(p.spec.containers + p.spec.?initContainers.orValue([])).map(c, c.?volumeMounts.orValue([]))"
# What is claimed may be a GPU after all: the rules of /dev/shm take it for one.
_CLAIMS = "p.spec.?resourceClaims.orValue([]).size() > 0"
_NAMED = "{each}.filter(c, {condition}).map(c, c.name).join(', ')".replace("'", '"')


def _covering(condition: str) -> str:
    """Return CEL for whether a mount that covers /dev/shm has a volume of which a condition holds."""
    return (
        f"{_MOUNTS}.exists(l, l.exists(m, ({_COVERS}) &&\n"
        f"    p.spec.?volumes.orValue([]).exists(v, v.name == m.name && {condition})))"
    )


def _first(rows: Iterator[tuple[str, str]]) -> str:
    """Return CEL for the text of the first row whose condition holds; empty where none does."""
    return " :\n".join((*(f"{condition} ? {text}" for condition, text in rows), '""'))


def _settled() -> Iterator[tuple[str, str]]:
    """Yield why a pod is none that lacks anything: conditions on `p` and `variables.training`, and texts, both CEL."""
    yield IS_MIRROR, '"it is a node\'s static pod"'
    windows = 'p.spec.?os.?name.orValue("") == "windows"'
    selected = 'p.spec.?nodeSelector[?"kubernetes.io/os"].orValue("") == "windows"'
    yield f"{windows} || {selected}", '"Windows has no /dev/shm"'
    only_init = f"p.spec.?initContainers.orValue([]).exists(c, {HAS_GPUS})"
    none = "variables.training.size() == 0"
    yield f"{none} && {only_init}", '"only an init container asks for a GPU"'
    yield f"{none} && {_CLAIMS}", '"it claims a device that does not call itself a GPU"'
    yield (
        f"{none} && {TEXT_LENGTH} > {MAX_TEXT_LENGTH}",
        f'"it asks for no GPU, and its commands are longer than {MAX_TEXT_LENGTH} characters"',
    )
    yield none, '"it asks for no GPU, and nothing shows training by two signs"'
    sized = shm_volume(f"{IN_MEMORY} && {LIMITED} && {BELOW_MEMORY}")
    yield f"variables.training.all(c, {sized})", '"/dev/shm has a volume in memory with a size"'


def _obstacles(training: str) -> Iterator[tuple[str, str]]:
    """Yield why a pod that trains is left all the same, likewise; `training` is CEL for its containers."""
    yield "p.spec.?hostIPC.orValue(false)", '"hostIPC gives it the node\'s /dev/shm"'
    is_empty_dir = "v.?emptyDir.hasValue()"
    yield (
        _covering(f'{is_empty_dir} && v.?emptyDir.?medium.orValue("") != "Memory"'),
        '"the emptyDir at /dev/shm lies on a disk: set its medium to Memory"',
    )
    yield (
        _covering(f"{is_empty_dir} && !({LIMITED})"),
        '"the volume at /dev/shm has no sizeLimit, and may fill the memory of its node"',
    )
    yield (
        _covering(is_empty_dir),
        '"a volume is at /dev/shm, but each container that trains needs it whole and below its memory limit"',
    )
    yield (
        f"{_MOUNTS}.exists(l, l.exists(m, {_COVERS}))",
        '"a container has a mount at /dev/shm, below it or above it"',
    )
    yield (
        f'p.spec.?volumes.orValue([]).exists(v, v.name == "{VOLUME}")',
        f'"another volume is called {VOLUME}"',
    )
    known = f'{_MEMORY}.hasValue() && quantity(string({_MEMORY}.value())).isGreaterThan(quantity("0"))'
    without = _NAMED.format(each=training, condition=f"!({known})")
    yield f"!{training}.all(c, {known})", f'"there is no memory limit to share: " + {without}'
    yield (
        f"!{training}.all(c, quantity(string({_MEMORY}.value())).isInteger())",
        '"its memory limit is no number of bytes"',
    )


def _size(training: str, share: Fraction, most: int | None) -> str:
    """Return CEL for the MiB of a volume: the share of the least memory limit, at most `most` bytes."""
    limits = f"{training}.map(c, quantity(string({_MEMORY}.value())).asInteger())"
    part = f"b / {share.denominator} * {share.numerator} / {MIB}"
    least = f"[{limits}].map(l, l.filter(b, l.all(o, b <= o))[0]).map(b, {part})"
    return f"{least}.map(b, {f'b > {most // MIB} ? {most // MIB} : b' if most else 'b'})[0]"


def _too_small(size: str) -> tuple[str, str]:
    least = LEAST_SHM // MIB
    return (
        f"{size} <= {least}",
        f'"a repair would give it " + string({size}) + "Mi, and a runtime gives {format_size(LEAST_SHM)}"',
    )


def _of_pod(expression: str) -> str:
    """Return CEL of a pod `p` about the one that is made."""
    return f"[variables.made].map(p,\n  {expression})[0]"


def repairable(share: Fraction, most: int | None) -> str:
    """Return CEL for whether the pods of a template `p` that asks for GPUs would be repaired."""
    training = GPU_CONTAINERS
    obstacles = (*_obstacles(training), _too_small(_size(training, share, most)))
    return f"{training}.size() > 0 && " + " && ".join(f"!({condition})" for condition, _ in obstacles)


def repair_variables(share: Fraction, most: int | None) -> dict[str, str]:
    """Return the variables of a repair: `settled` or `obstacle` say why a pod is left, and both are empty else."""
    training = "variables.training"
    obstacles = (*_obstacles(training), _too_small("variables.size"))
    part = f'"{share} of the memory limit"'
    if most:
        part = f'(variables.size == {most // MIB} ? "the policy\'s max.shm_size" : {part})'
    names = f'{training}.map(c, c.name).join(", ")'
    return {
        **shared_variables(),
        "with_gpus": _of_pod(GPU_CONTAINERS),
        "showing": _of_pod(
            f"{_CLAIMS} || {TEXT_LENGTH} > {MAX_TEXT_LENGTH} ? [] : p.spec.containers.filter(c, {SHOWS})"
        ),
        "training": (
            f"variables.with_gpus.size() > 0 ? variables.with_gpus :\n  variables.showing.filter(c, !{DOES_OTHER})"
        ),
        "settled": _of_pod(_first(_settled())),
        "size": _of_pod(_size(training, share, most)),
        "obstacle": _of_pod(_first(iter(obstacles))),
        "repairs": 'variables.settled == "" && variables.obstacle == ""',
        "done": f'"{RULE}: /dev/shm of " + string(variables.size) + "Mi for " + {names} + ", " + {part}',
    }


def warning(label: str) -> str:
    """Return CEL for what is said of a pod that trains and isn't repaired; `label` would have its namespace do it."""
    return (
        '"trainlaunch: " + (variables.obstacle != "" ? "/dev/shm is left as it is: " + variables.obstacle :\n'
        f'  "/dev/shm has the runtime\'s {LEAST_SHM // MIB} MiB; in a namespace labelled {label} it gets " +\n'
        '  string(variables.size) + "Mi")'
    )


Writer = Callable[[str, dict[str, str]], str]


def as_types(name: str, fields: dict[str, str]) -> str:
    """Return an object of a server's own types."""
    return f"{name}{{{', '.join(f'{key}: {value}' for key, value in fields.items())}}}"


def as_maps(_: str, fields: dict[str, str]) -> str:
    """Return an object for CEL without those types."""
    return f"{{{', '.join(f'{json.dumps(key)}: {value}' for key, value in fields.items())}}}"


def mutation(write: Writer = as_types) -> str:
    """Return CEL for the operations of a JSON Patch; no other field of a pod is in it."""

    def add(path: str, value: str) -> str:
        return write("JSONPatch", {"op": '"add"', "path": path, "value": value})

    def missing(at: str, empty: str, path: str) -> str:
        return f"({at}.orValue({empty}).size() > 0 ? [] : [{add(path, empty)}])"

    memory = write("Object.spec.volumes.emptyDir", {"medium": '"Memory"', "sizeLimit": 'string(variables.size) + "Mi"'})
    volume = write("Object.spec.volumes", {"name": f'"{VOLUME}"', "emptyDir": memory})
    key = ANNOTATION.replace("/", "~1")
    parts = [
        missing("variables.made.spec.?volumes", "[]", '"/spec/volumes"'),
        f"[{add(json.dumps('/spec/volumes/-'), volume)}]",
        missing("variables.made.?metadata.?annotations", "{}", '"/metadata/annotations"'),
        f"[{add(json.dumps(f'/metadata/annotations/{key}'), 'variables.done')}]",
    ]
    for name in ("containers", "initContainers"):
        listed = f"variables.made.spec.?{name}.orValue([])"
        path = f'"/spec/{name}/" + string({listed}.indexOf(c)) + "/volumeMounts'
        mount = write(f"Object.spec.{name}.volumeMounts", {"name": f'"{VOLUME}"', "mountPath": '"/dev/shm"'})
        empty, behind = add(f'{path}"', "[]"), add(f'{path}/-"', mount)
        parts.append(f"{listed}.filter(c, c.?volumeMounts.orValue([]).size() == 0).map(c, {empty})")
        parts.append(f"{listed}.map(c, {behind})")
    return "!variables.repairs ? [] :\n" + " +\n".join(parts)
