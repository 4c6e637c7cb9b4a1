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
from trainlaunch.policy.demands import SHM_ANNOTATION
from trainlaunch.policy.gpu_sharing_in_cel import SHARES_GPU
from trainlaunch.policy.objects_in_cel import matches, shared_variables
from trainlaunch.policy.rules_in_cel import BELOW_MEMORY, DEV_SHM, IN_MEMORY, LIMITED, limit_of, shm_volume
from trainlaunch.policy.training_in_cel import (
    DOES_OTHER,
    GPU_CONTAINERS,
    HAS_GPUS,
    HAS_OTHER_TASK,
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
OPT_OUT = f"{KUBERNETES_LABEL_PREFIX}repair"  # of a pod, whose value then is "never"
_OPTED_OUT = " || ".join(
    f'p.?metadata.?{each}[?"{OPT_OUT}"].orValue("true") != "true"' for each in ("labels", "annotations")
)
_ALL = "(p.spec.containers + p.spec.?initContainers.orValue([]))"
# A path that goes back by dots may lead anywhere; one above brings what is at /dev/shm.
_BY_DOTS = r"(?:^|/)\.\.(?:/|$)"
_BELOW = r"^(?:\.?/)*dev/+(?:\./+)*shm/+(?:\./+)*[^/]"
_ABOVE = r"^(?:\.?/)*(?:dev)?(?:/+\.?)*$"
# What is claimed may be a GPU after all: the rules of /dev/shm take it for one.
_CLAIMS = "p.spec.?resourceClaims.orValue([]).size() > 0"
_NAMED = "{each}.filter(c, {condition}).map(c, c.name).join(', ')".replace("'", '"')


def _mounted(pattern: str, condition: str = "") -> str:
    """Return CEL for whether a mount's path matches, and its volume meets a condition."""
    of_it = f" &&\n    p.spec.?volumes.orValue([]).exists(v, v.name == m.name && {condition})" if condition else ""
    path = f"m.mountPath.matches({json.dumps(pattern)})"
    return f"{_ALL}.exists(c, c.?volumeMounts.orValue([]).exists(m, {path}{of_it}))"


def _first(rows: Iterator[tuple[str, str]]) -> str:
    """Return CEL for the text of the first row whose condition holds; empty where none does."""
    return " :\n".join((*(f"{condition} ? {text}" for condition, text in rows), '""'))


def _settled() -> Iterator[tuple[str, str]]:
    """Yield why a pod is none that lacks anything: conditions on `p` and `variables.training`, and texts, both CEL."""
    yield IS_MIRROR, '"it is a node\'s static pod"'
    yield from _exempt()
    only_init = f"p.spec.?initContainers.orValue([]).exists(c, {HAS_GPUS})"
    none = "variables.training.size() == 0"
    yield f"{none} && {only_init}", '"only an init container asks for a GPU"'
    yield f"{none} && {_CLAIMS}", '"it claims a device that does not call itself a GPU"'
    yield (
        f"{none} && {TEXT_LENGTH} > {MAX_TEXT_LENGTH}",
        f'"it asks for no GPU that is known here, and its commands are longer than {MAX_TEXT_LENGTH} characters"',
    )
    yield none, '"it asks for no GPU that is known here, and nothing shows training by two signs"'
    sized = shm_volume(f"{IN_MEMORY} && {LIMITED} && {BELOW_MEMORY}")
    yield f"variables.training.all(c, {sized})", '"/dev/shm has a volume in memory with a size"'


def _exempt() -> Iterator[tuple[str, str]]:
    """Yield why a pod is none to repair, whatever it lacks, likewise."""
    key = "kubernetes.io/os"
    os = f'p.spec.?nodeSelector[?"{key}"].or(p.spec.?nodeSelector[?"beta.{key}"]).or(p.spec.?os.?name)'
    terms = "p.spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms"
    asked = f'x.key.endsWith("{key}") && x.?operator.orValue("") == "In" && "windows" in x.?values.orValue([])'
    wanted = f"{terms}.orValue([]).exists(t, t.?matchExpressions.orValue([]).exists(x, {asked}))"
    yield f'{os}.orValue("") == "windows" ||\n  {wanted}', '"Windows has no /dev/shm"'
    yield _OPTED_OUT, f'"its label or annotation {OPT_OUT} says so"'


def _obstacles(training: str) -> Iterator[tuple[str, str]]:
    """Yield why a pod that trains is left all the same, likewise; `training` is CEL for its containers."""
    yield "p.spec.?hostIPC.orValue(false)", '"hostIPC gives it the node\'s /dev/shm"'
    sized = f"p.?metadata.?annotations.orValue({{}}).exists(k, {matches('k', SHM_ANNOTATION.pattern)})"
    yield sized, '"CRI-O gives it a /dev/shm of the size in its annotation"'
    yield SHARES_GPU, '"it shares a GPU, and for MPS the device plugin mounts a /dev/shm of its own"'
    is_empty_dir = "v.?emptyDir.hasValue()"
    yield (
        _mounted(DEV_SHM, f'{is_empty_dir} && v.?emptyDir.?medium.orValue("") != "Memory"'),
        '"the emptyDir at /dev/shm lies on a disk: set its medium to Memory"',
    )
    yield (
        _mounted(DEV_SHM, f"{is_empty_dir} && !({LIMITED})"),
        '"the volume at /dev/shm has no sizeLimit, and may fill the memory of its node"',
    )
    yield (
        _mounted(DEV_SHM, is_empty_dir),
        '"a volume is at /dev/shm, but each container that trains needs it whole and below its memory limit"',
    )
    device = f"d.devicePath.matches({json.dumps(f'{DEV_SHM}|{_BELOW}|{_ABOVE}|{_BY_DOTS}')})"
    yield (
        f"{_mounted(DEV_SHM)} ||\n  {_ALL}.exists(c, c.?volumeDevices.orValue([]).exists(d, {device}))",
        '"what is at /dev/shm is no emptyDir"',
    )
    yield _mounted(_BELOW), '"a container has a mount below /dev/shm"'
    yield _mounted(_ABOVE), '"a container has a mount at /dev or /, which brings what is at /dev/shm"'
    yield _mounted(_BY_DOTS), '"a mount\'s path goes back by .., and may lead to /dev/shm: write it without"'
    yield (
        f'p.spec.?volumes.orValue([]).exists(v, v.name == "{VOLUME}")',
        f'"another volume is called {VOLUME}"',
    )
    known = f'{_MEMORY}.hasValue() && quantity(string({_MEMORY}.value())).isGreaterThan(quantity("0"))'
    without = _NAMED.format(each=training, condition=f"!({known})")
    yield f"!{training}.all(c, {known})", f'"there is no memory limit to share: " + {without} + " needs one"'
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
    obstacles = (*_exempt(), *_obstacles(training), _too_small(_size(training, share, most)))
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
        "alone": f"variables.showing.filter(c, !{DOES_OTHER})",
        "training": (
            f"variables.with_gpus.size() > 0 ? variables.with_gpus :\n  variables.alone.filter(c, !{HAS_OTHER_TASK})"
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
