"""What a patch may bring into a text at all: a list for each target, and an error for anything else.

The documents, their kinds and names stay the rendering's own, the training containers stay where they are, once each;
and a key that a rendering doesn't have is on a list here, or no patch adds it. So a new field of an API that would undo
what the plan proves is refused until somebody has looked at it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from launcher.formats.docker.flags import takes_shm
from launcher.render.patched import documents_of
from launcher.verify.patchable_keys import (
    BESIDE_PODS,
    CONTAINER,
    CONTEXT,
    METADATA,
    NEVER_IN_SERVICES,
    POD,
    POD_LISTS,
    RESOURCES,
    SERVICE,
    TOP,
)
from launcher.verify.pod_security import items, violations


class Refused(NamedTuple):
    """What a patch brings that no patch may: what is said of it, and what to do instead."""

    said: str
    fix: str
    why: str = "a patch adds what the plan doesn't decide and nobody else starts; what else it adds, no one has proved"


def refused(target: str, bare: str, text: str, level: str) -> Iterator[tuple[str, Refused]]:
    """Yield what a patched text has that no patch may bring, by what it is called.

    `bare` is the text without the patch, and `level` the job's Pod Security level.
    """
    before, after = documents_of(bare), documents_of(text)
    if target == "compose":
        yield from _compose(before[0], after[0])
        return
    identities = [_identity(each) for each in before], [_identity(each) for each in after]
    if identities[0] != identities[1]:
        said = "changes which objects there are, or an object's apiVersion, kind or name"
        yield "objects", Refused(said, "delete this part of the patch, and write kubernetes.kind or name instead")
        return
    for one, two in zip(before, after, strict=True):
        yield from _object(one, two)
        yield from _pods(one, two, level)


def _identity(document: dict[str, Any]) -> tuple[object, ...]:
    metadata = document.get("metadata")
    name = metadata.get("name") if isinstance(metadata, dict) else None
    return document.get("apiVersion"), document.get("kind"), name


def _object(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, Refused]]:
    """Yield each key of an object outside its pods that is new and on no list."""
    allowed = re.compile(rf"(?:{METADATA}|{BESIDE_PODS.get(str(before.get('kind')), METADATA)})(?:\..*)?")
    for path in _new_keys(before, after, ""):
        if not allowed.fullmatch(path):
            yield path, Refused(f"adds {path}, which no patch may", "delete this part of the patch")


def _new_keys(before: object, after: object, path: str) -> Iterator[str]:
    """Yield the outermost keys that only `after` has, outside of pods."""
    if isinstance(before, dict) and isinstance(after, dict):
        if "containers" in before or "containers" in after:
            return  # a pod, which has a list of its own
        for key, value in after.items():
            inner = f"{path}.{key}" if path else str(key)
            if key not in before:
                yield inner
            else:
                yield from _new_keys(before[key], value, inner)
    elif isinstance(before, list) and isinstance(after, list):
        for index, (one, two) in enumerate(zip(before, after, strict=False)):
            yield from _new_keys(one, two, f"{path}.{index}")


def _pods(before: object, after: object, level: str) -> Iterator[tuple[str, Refused]]:
    ours, found = dict(_pods_of(before, "")), dict(_pods_of(after, ""))
    for path in found.keys() ^ ours.keys():
        yield path, Refused(f"adds or takes away the pod at {path}", "delete this part of the patch")
    for path in ours.keys() & found.keys():
        yield from _pod(path, ours[path], found[path])
        yield from _insecure(path, ours[path], found[path], level)


def _insecure(path: str, before: dict[str, Any], after: dict[str, Any], level: str) -> Iterator[tuple[str, Refused]]:
    """Yield what a pod now says that its level doesn't allow, in one sentence for each of its parts."""
    known = set(violations(before, level))
    parts: dict[str, list[str]] = {}
    for field, value in violations(after, level):
        if (field, value) not in known:
            container = re.match(r"\w*[cC]ontainers\.\d+", field)
            parts.setdefault(container[0] if container else field, []).append(f"{field.rpartition('.')[2]} is {value}")
    for part, found in parts.items():
        missing = all(" is not " in each or each.endswith(" is None") for each in found)
        confined = "securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}"
        yield (
            f"{path}.{part}",
            Refused(
                f"makes {path}.{part} something that Pod Security {level} refuses: {', '.join(found)}",
                f"add {confined} to it" if missing else "delete it, or state kubernetes.pod_security: privileged",
                "a namespace that enforces the level refuses the pod, and its controller waits without an error",
            ),
        )


def _pods_of(value: object, path: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each pod's spec by its path: whatever has containers, wherever it stands."""
    if isinstance(value, dict):
        if any(each in value for each in POD_LISTS):
            yield path or "the pod", value
            return
        for key, each in value.items():
            yield from _pods_of(each, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _pods_of(each, f"{path}.{index}")


def _pod(path: str, before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, Refused]]:
    yield from _beyond(f"{path}", before, after, POD)
    yield from _beyond(f"{path}.securityContext", before.get("securityContext"), after.get("securityContext"), CONTEXT)
    ours = {each["name"]: each for each in before["containers"]}
    for name, container in ours.items():
        places = [(where, each) for where in POD_LISTS for each in items(after.get(where)) if each.get("name") == name]
        if [where for where, _ in places] != ["containers"]:
            said = f"leaves the container {name} {_where(places)}; it must stand once in containers"
            yield f"{path}.containers", Refused(said, "delete this part of the patch")
            continue
        ((_, found),) = places
        yield from _beyond(f"{path}.{name}", container, found, CONTAINER)
        for key, known in (("securityContext", CONTEXT), ("resources", RESOURCES)):
            yield from _beyond(f"{path}.{name}.{key}", container.get(key), found.get(key), known)


def _where(places: list[tuple[str, Any]]) -> str:
    return f"in {' and '.join(where for where, _ in places)}" if places else "nowhere"


def _beyond(path: str, before: object, after: object, allowed: frozenset[str]) -> Iterator[tuple[str, Refused]]:
    """Yield each key that only `after` has and that isn't allowed."""
    had = before if isinstance(before, dict) else {}
    for key in after if isinstance(after, dict) else ():
        if key not in had and key not in allowed and not str(key).startswith("x-"):
            close = difflib.get_close_matches(str(key), sorted(allowed - had.keys()), n=1)
            fix = f"write {close[0]}, or delete this part of the patch" if close else "delete this part of the patch"
            yield f"{path}.{key}", Refused(f"adds {key} to {path}, which no patch may", fix)


def _compose(before: dict[str, Any], after: dict[str, Any]) -> Iterator[tuple[str, Refused]]:
    yield from _beyond("the file", before, after, TOP)
    had, found = before["services"], after.get("services")
    for name, service in found.items() if isinstance(found, dict) else ():
        if not isinstance(service, dict):
            continue
        if name in had:
            yield from _beyond(f"services.{name}", had[name], service, SERVICE)
            yield from _targets(f"services.{name}", service)
            continue
        for key in sorted(NEVER_IN_SERVICES & service.keys()):
            said = f"adds {key} to services.{name}, which no patch may"
            yield f"services.{name}.{key}", Refused(said, "delete this part of the patch")


def _targets(path: str, service: dict[str, Any]) -> Iterator[tuple[str, Refused]]:
    """Yield each config and secret that would hide /dev/shm."""
    for key in ("configs", "secrets"):
        value = service.get(key)
        for index, each in enumerate(value if isinstance(value, list) else ()):
            target = str(each.get("target") or f"/{each.get('source')}") if isinstance(each, dict) else f"/{each}"
            if target.startswith("/") and takes_shm(target):
                said = f"mounts {key}.{index} on {target}, where it would hide /dev/shm"
                yield f"{path}.{key}.{index}", Refused(said, "mount it elsewhere")
