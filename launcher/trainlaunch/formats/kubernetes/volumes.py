"""The volumes of a pod, by what they are for a container that mounts them."""

from __future__ import annotations

from typing import NamedTuple

from trainlaunch.diagnostics import Span
from trainlaunch.formats.kubernetes.fields import Fields, is_null
from trainlaunch.formats.workload import Known, Unknown, Value, stated
from trainlaunch.yamltree.documents import Mapping, Node, Sequence

UNDECIDED = "undecided"  # the type of a volume that a template decides
CLAIM = "pvc"
_OWNER_AND_GROUP_READ = 0o440
_NAMED = {"persistentVolumeClaim": (CLAIM, "claimName"), "configMap": ("config", "name"), "hostPath": ("bind", "path")}


class Volume(NamedTuple):
    """One volume: `type`, `source`, `size` and `options` as a MountPoint has them, `span` is where it says so.

    `read_only` is a claim's own word. `key` is the one key of a Secret that is a file called `value`, which its owner
    and the pod's group may read. `place` is its index in the pod's list.
    """

    type: str
    span: Span
    source: Value[str] = None
    size: Value[int] = None
    read_only: bool = False
    key: str = ""
    options: str = ""
    place: int = -1


def read_volumes(listed: Sequence, *, final: bool) -> dict[str, Volume]:
    """Return volumes by name, the last of those that share one; those without a name are left out."""
    volumes: dict[str, Volume] = {}
    for index, node in enumerate(listed.items):
        fields = Fields(node, final=final)
        name = fields.text("name")
        if isinstance(name, Known):
            volumes[name.value] = _read_volume(fields, node)._replace(place=index)
    return volumes


def claims(node: Node | None, *, final: bool) -> dict[str, Volume]:
    """Return what `volumeClaimTemplates` gives the pods below it, by name: a claim, whatever else an item says."""
    found: dict[str, Volume] = {}
    for each in node.items if isinstance(node, Sequence) else ():
        name = Fields(each, final=final).within("metadata").text("name")
        if isinstance(name, Known):
            found[name.value] = Volume(CLAIM, each.span, name)
    return found


def _read_volume(fields: Fields, node: Node) -> Volume:
    sources = [each for each in fields.names() if (at := fields.peek(each)) is not None and not is_null(at)]
    if fields.templated:
        return Volume(UNDECIDED, node.span)
    if not sources:
        return Volume("scratch", node.span, options="by default")  # the API server makes it an emptyDir
    kind = sources[0]
    at = fields.peek(kind) or node
    source = fields.within(kind)
    if not isinstance(at, Mapping) or source.templated:
        return Volume(UNDECIDED, at.span)
    volume = _read_source(kind, source, at.span)
    return volume._replace(options=fields.options())


def _read_source(kind: str, source: Fields, span: Span) -> Volume:
    if kind == "emptyDir":
        return _empty_dir(source, span)
    if kind == "secret":
        return _secret(source, span)
    type_, key = _NAMED.get(kind, (kind, ""))
    volume = Volume(type_, span, source.text(key) if key else None)
    return volume._replace(read_only=stated(source.flag("readOnly")) is True) if type_ == CLAIM else volume


def _empty_dir(source: Fields, span: Span) -> Volume:
    medium, size = source.peek("medium"), source.quantity("sizeLimit")
    word = source.text("medium")
    if isinstance(word, Unknown):
        return Volume(UNDECIDED, span, size=size)
    if word is None or word.value in ("", "Memory"):
        return Volume("tmpfs" if word is not None and word.value else "scratch", span, size=size)
    # The kubelet knows HugePages too; any other word, as `memory`, keeps the pod from starting.
    return Volume(f"scratch on {word.value}", medium.span if medium is not None else span, size=size)


def _secret(source: Fields, span: Span) -> Volume:
    name, items = source.peek("secretName"), source.peek("items")
    volume = Volume("secret", span, source.text("secretName"))
    key = _only_key(items)
    mode = source.peek("defaultMode")
    if key is None or name is None or mode is None:
        return volume
    if stated(source.whole("defaultMode")) != _OWNER_AND_GROUP_READ:
        return volume._replace(options=f"defaultMode={mode.raw}")
    source.take("items")
    return volume._replace(key=key)


def _only_key(items: Node | None) -> str | None:
    """Return the key of a Secret's only item, if it becomes a file called `value` and nothing else."""
    if not isinstance(items, Sequence) or len(items.items) != 1:
        return None
    item = Fields(items.items[0], final=True)
    key, path = item.text("key"), item.text("path")
    return stated(key) if stated(path) == "value" and not item.names() else None
