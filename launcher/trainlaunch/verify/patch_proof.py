"""Proves a patched file: it is the unpatched one and the patch, and the patch changes nothing that the plan decided."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import JobFileRejected, RenderingDisagrees
from trainlaunch.formats.docker.flags import Flag, takes_shm
from trainlaunch.formats.docker.functions import inlined
from trainlaunch.formats.docker.shell_lexer import statements
from trainlaunch.job.patch import Leaf, Operation
from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX, LABEL_PREFIX
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.target_names import node_names
from trainlaunch.render import unpatched
from trainlaunch.render.apply_patch import documents_of, patched_documents, patched_texts, steps
from trainlaunch.templating.quoting import sh_words
from trainlaunch.units import format_size
from trainlaunch.verify.documents import only_service, unlimited, without_sidecars
from trainlaunch.verify.expected_workload import ReadMount, parse_rendering
from trainlaunch.verify.owned_by_plan import FIELDS, OPEN, owned_rest
from trainlaunch.verify.patchable import Refused, refused

_UNREADABLE = "text"
_RESERVED = (LABEL_PREFIX, KUBERNETES_LABEL_PREFIX)
_IN_BYTES = frozenset({"shm_size", "memory"})


class Change(NamedTuple):
    """What a patch makes of something that the plan decided; `field` says where to decide it, or nothing.

    With `refused` it brings something that no patch may, and the rest is of no account.
    """

    want: object
    have: object
    field: str
    by: str = "planned"
    refused: Refused | None = None


def without_patch(plan: LaunchPlan, text: str, *, base: Path | None) -> str:
    """Return the text without the job's patch, once `text` is proved to be it and the patch.

    Raises JobFileRejected (TL146) at each part of a patch that changes what the plan decided, and RenderingDisagrees
    (TL902) where `text` is anything else.
    """
    bare = unpatched(plan, base=base)
    if plan.target_record.patch == "flags":
        _check_words(plan, bare, text)
        return bare
    if documents_of(text) != patched_documents(plan, bare):
        raise RenderingDisagrees([_another(plan)])
    found = _changes(plan, bare, text, base)
    if found:
        raise JobFileRejected(_blamed(plan, bare, text, found, base))
    return bare


def _check_words(plan: LaunchPlan, bare: str, text: str) -> None:
    flags: tuple[Flag, ...] = plan.job.patch.flags if plan.job.patch else ()
    decided = [each for each in flags if each.name == "env" and (each.value or "").partition("=")[0] in _threads(plan)]
    if decided:
        name = (decided[0].value or "").partition("=")[0]
        change = Change(dict(plan.threads)[name].value, decided[0].value, f"env.{name}")
        raise JobFileRejected(
            [
                _changed(f"thread variable {name}", change, f"patches.docker.extra_args.{decided[0].at}")._replace(
                    span=decided[0].span
                )
            ]
        )
    *before, run = statements(inlined(bare))
    at = _image_at(run)
    extra = [word for flag in flags for word in flag.words]
    if list(statements(inlined(text))) != [*before, [*run[:at], *_as_read(extra), *run[at:]]]:
        raise RenderingDisagrees([_another(plan)])


def _as_read(words: list[str]) -> list[str]:
    """Return words as `statements` gives them back from one command."""
    return next(statements(sh_words(tuple(words))), [])


def _image_at(run: list[str]) -> int:
    """Return the index of the image: right after --entrypoint and its value, our last flag."""
    return run.index("--entrypoint") + 2


def _threads(plan: LaunchPlan) -> frozenset[str]:
    return frozenset(name for name, _ in plan.threads)


def _changes(plan: LaunchPlan, bare: str, text: str, base: Path | None) -> dict[str, Change]:
    """Return what a patched file changes of the plan, by what it is called."""
    try:
        return dict((*_added(plan, bare, text, base), *_reread_changes(plan, bare, text, base)))
    except Exception as cause:  # whatever a patch makes a reader raise, nobody can tell what it starts
        return {_UNREADABLE: Change("what can be read back", f"unreadable: {cause}", "")}


def _added(plan: LaunchPlan, bare: str, text: str, base: Path | None) -> Iterator[tuple[str, Change]]:
    for what, why_not in refused(plan.target, bare, text, plan.job.kubernetes.pod_security):
        yield what, Change(None, why_not.said, "", refused=why_not)
    for name, stated in unlimited(bare, text):
        yield f"container {name}", Change("a memory limit", stated, "")
    if plan.job.policy is not None:
        from trainlaunch.verify.policy_of_patches import broken_by_parts  # most jobs have none

        folder = str((Path(plan.job.path).parent if base is None else base).absolute())
        for what, allowed, found in broken_by_parts(plan.job.policy, bare, text, folder):
            yield what, Change(allowed, found, "", "allowed")


def _reread_changes(plan: LaunchPlan, bare: str, text: str, base: Path | None) -> Iterator[tuple[str, Change]]:
    text = without_sidecars(bare, text)
    yield from _compared(plan, parse_rendering(plan, bare, base=base), parse_rendering(plan, text, base=base))
    for name in node_names(plan.name, plan.nodes)[1:] if plan.target_record.patch == "merge" else ():
        planned, found = only_service(bare, name), only_service(text, name)
        if planned is None or found is None:
            yield name, Change("a node", None, "torchrun.nnodes")
            continue
        # A reading of all services has what differs from the first one in its rest, where a patch may add much.
        readings = parse_rendering(plan, planned, base=base), parse_rendering(plan, found, base=base)
        for what, change in _compared(plan, *readings):
            yield f"{what} of {name}", change


def _compared(plan: LaunchPlan, want: Mapping[str, Any], have: Mapping[str, Any]) -> Iterator[tuple[str, Change]]:
    for name, planned in want.items():
        found = have[name]
        if name == "rest":
            yield from ((key, Change(*each)) for key, each in owned_rest(plan.target, planned, found))
        elif name == "mounts":
            yield from _mounts(planned, found)
        elif isinstance(planned, Mapping):
            yield from _values(plan, name, planned, found)
        elif planned != found:
            spell = _size if name in _IN_BYTES else lambda value: value
            yield name, Change(spell(planned), spell(found), FIELDS.get(name, name))


def _size(value: int | str | None) -> str | None:
    return format_size(value) if isinstance(value, int) else value


def _values(
    plan: LaunchPlan, name: str, want: Mapping[str, Any], have: Mapping[str, Any]
) -> Iterator[tuple[str, Change]]:
    field = FIELDS.get(name, name)
    for key in {**want, **have}:
        ours = key in want or name not in OPEN or key.endswith(" twice")
        ours = ours or (name == "env" and (key.startswith("TRAINLAUNCH_") or key in _threads(plan)))
        ours = ours or key.startswith(_RESERVED)
        if (name, key) == ("devices", "nodes"):  # more of them are the patch's; GPUs have a field, and policies
            ours = not set(str(want.get(key, "")).split()) <= set(str(have.get(key, "")).split())
        if ours and want.get(key) != have.get(key):
            where = "" if key.startswith((*_RESERVED, "TRAINLAUNCH_")) else f"{field}.{key}" if name in OPEN else field
            yield f"{name} {key}", Change(want.get(key), have.get(key), where)


def _mounts(want: tuple[ReadMount, ...], have: tuple[ReadMount, ...]) -> Iterator[tuple[str, Change]]:
    for mount in want:
        if mount not in have:
            field = "shm_size" if takes_shm(mount.target) else FIELDS["mounts"]
            yield f"mount {mount.target}", Change(_mount(mount), None, field)
    targets = [mount.target for mount in want]
    for mount in (each for each in have if each not in want):
        if mount.target in targets or takes_shm(mount.target):
            field = "shm_size" if takes_shm(mount.target) else FIELDS["mounts"]
            yield f"mount {mount.target}", Change(None, _mount(mount), field)


def _mount(mount: ReadMount) -> str:
    size = "" if mount.size is None else f" of {_size(mount.size)}"
    return f"{mount.type} {mount.source or ''}".strip() + size + ", read-only" * mount.read_only


def _blamed(
    plan: LaunchPlan, bare: str, text: str, found: dict[str, Change], base: Path | None
) -> Iterator[Diagnostic]:
    """Yield an error for each change found in a text, at the step of the patch that made it last."""
    made_by: dict[str, Operation | Leaf] = {}
    before: dict[str, Change] = {}
    for step, after_step in zip(steps(plan), patched_texts(plan, bare), strict=True):
        now = found if after_step == text else _changes(plan, bare, after_step, base)
        made_by |= {what: step for what, change in now.items() if before.get(what) != change}
        before = now
    said: set[tuple[str, str]] = set()
    decided = {made_by[what].field for what, change in found.items() if change.field}
    never = {made_by[what].field for what, change in found.items() if change.refused} - decided
    for what, change in found.items():
        step = made_by[what]
        # A field to write instead says more than that no patch may, and that more than what else it changes.
        if (change.refused and step.field in decided) or (not change.refused and step.field in never):
            continue
        if (step.field, change.field or what) not in said:
            yield _changed(what, change, step.field)._replace(span=step.span)
        said.add((step.field, change.field or what))


def _changed(what: str, change: Change, where: str) -> Diagnostic:
    if change.refused is not None:
        said, fix, why = change.refused
        return Diagnostic("TL146", f"{where} {said}", fix, why=why, field=where)
    if change.field:
        fix = f"write {change.field} instead, and delete this part of the patch"
    elif what.startswith("container "):
        fix = "add resources: {limits: {memory: 256Mi}} to it, with what it needs"
    elif what == _UNREADABLE:
        fix = "write strings in quotes and mappings in their long form, or delete this part of the patch"
    else:
        fix = "delete this part of the patch"
    want = _shown(change.want) if change.by == "planned" else str(change.want)  # with the policy's place at its end
    said = f"{what}: {change.by} is {want}, and it becomes {_shown(change.have)}"
    if what == "requests are limits":
        said = "requests or limits, which a rendered file keeps alike"
    return Diagnostic(
        "TL146",
        f"{where} changes {said}",
        fix,
        why="the plan decided it; the preflight, the labels and `plan` would say something else than what runs"
        if change.by == "planned"
        else "a policy's limits apply to every job below its folder; no patch passes them",
        field=where,
    )


def _shown(value: object) -> str:
    text = "nothing" if value is None else value if isinstance(value, str) else repr(value)
    text = re.sub(r"\s+", " ", text)
    return text if len(text) <= 80 else f"{text[:79]}…"


def _another(plan: LaunchPlan) -> Diagnostic:
    return Diagnostic(
        "TL902",
        f"the rendered {plan.target} file is not the plan's file with the job's patch",
        "undo the change to the file, or report it with the job file if nobody changed it",
        why="each rendered file is read back before it is written; this one would start another job than the plan",
    )
