"""Makes a job file of a text that starts a container, whoever wrote it: `trainlaunch init --from`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from trainlaunch.container.preflight import plan_variables, wrapper_words
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import JobFileRejected
from trainlaunch.formats.workload import Workload
from trainlaunch.init.job_text import resource, scalar
from trainlaunch.init.takeover import job_draft, loader_guesses, rendered
from trainlaunch.init.takeover.choose import ChosenContainer, choose, groups_beside, pods_of
from trainlaunch.init.takeover.container_fields import take_container, take_process
from trainlaunch.init.takeover.engine_fields import name_volumes, take_flags, take_keys, without_unclear
from trainlaunch.init.takeover.job_draft import JobDraft, empty, text_of, word
from trainlaunch.init.takeover.pod_fields import take_own_pod, take_pod
from trainlaunch.init.takeover.prologue import Wrapped, wrapped, wrapped_words
from trainlaunch.job.reserved import PLAN_VARIABLE
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.plan_label import planned_of

__all__ = ["ImportedJob", "take_over"]

_TARGETS = {"docker_run": "docker", "compose": "compose", "kubernetes": "kubernetes"}


class ImportedJob(NamedTuple):
    """A job file's text, and a warning for each part of the other text that it doesn't hold."""

    text: str
    notes: tuple[Diagnostic, ...]


def take_over(data: bytes, name: str, *, pick: str | None, folder: Path, stated: Mapping[str, str] = {}) -> ImportedJob:
    """Return the job file of one container of a text, the one called `pick` of several.

    `name` is the text's path, `-` for stdin; `folder` is where the job file will lie. `stated` are what the caller
    sets, by the names of `init`'s flags, and win. Raises JobFileRejected where the text can't be read, or can't
    become a job.
    """
    found = choose(data, name, pick)
    workload = found.written.workload
    origin = Path(name).parent if name != "-" else Path()
    target = _TARGETS[workload.format]
    file = "stdin" if name == "-" else Path(name).name
    draft = empty(file, os.path.relpath(origin, folder), target, str(origin.resolve()))
    if draft.record.patch == "merge":
        draft.set("target", word(target))
    own = rendered.as_verified(workload, found.file.text, origin, target)
    plan = wrapped(own) if own is not None else None
    if own is None or plan is None:
        _take_foreign(draft, found)
    else:
        _take_own(draft, found, own, plan)
    for flag, value in stated.items():
        if flag in ("name", "image"):
            draft.set(flag, word(scalar(value)))
            draft.kept.add(flag)
        else:
            draft.set(f"resources.{flag}", word(resource(flag, value)))
            draft.kept.add(f"resources.{flag}")
    if own is None or plan is None:
        job_draft.planned(draft)
    else:
        _give_back(draft, own, plan)
    return ImportedJob(text_of(draft), tuple(draft.notes))


def _take_foreign(draft: JobDraft, found: ChosenContainer) -> None:
    written = found.written
    written = written._replace(workload=without_unclear(written.workload))
    take_container(draft, written.workload)
    take_process(draft, written)
    if draft.record.has_kinds:
        take_pod(draft, written)
        _list_groups(draft, found)
    elif draft.record.patch == "merge":
        take_keys(draft, written.workload, written.own)
        name_volumes(draft, found.file.nodes, written.workload.span)
    else:
        take_flags(draft, written.workload)


def _list_groups(draft: JobDraft, found: ChosenContainer) -> None:
    """Say which other pods the object starts: a job's nodes are all alike, and torchrun counts them."""
    pods = pods_of(found)
    if pods > 1:
        draft.note(
            f"the number of its pods, {pods},",
            "a job is one container, and torchrun counts its nodes",
            f"set torchrun: {{nnodes: {pods}, nproc_per_node: …}}, and leave torchrun's own flags out of command",
            found.written.workload.span,
        )
    for each in groups_beside(found):
        draft.note(
            f"the group of pods {each.workload.place}",
            "a job is one container, and its other nodes run the same under torchrun",
            "set torchrun: {nnodes: …} with the number of all pods, or write a job file of its own for it",
            each.workload.span,
        )


def _take_own(draft: JobDraft, found: ChosenContainer, own: Workload, plan: Wrapped) -> None:
    """Set what a rendered file of ours says, in the fields that it was rendered from."""
    written = found.written
    rendered.take_rendered(draft, own, plan, found.file.text)
    if draft.record.has_kinds:
        take_own_pod(draft, written._replace(workload=own), plan)
    elif draft.record.patch == "merge":
        take_keys(draft, written.workload, written.own)
    else:
        take_flags(draft, written.workload._replace(rest=_without_guards(written.workload.rest)))


def _without_guards(rest: Mapping[str, object]) -> dict[str, object]:
    """Return what is left of a script without the commands that a rendered file has around its line."""
    return {key: value for key, value in rest.items() if not key.startswith("commands ")}


def _give_back(draft: JobDraft, own: Workload, plan: Wrapped) -> None:
    """Set the DataLoaders whose plan says the same as the rendered file; the nearest where none does."""
    best: tuple[int, loader_guesses.Guess] | None = None
    for guess in loader_guesses.guesses(plan, rendered.planned(own)):
        tried = draft._replace(fields={**draft.fields, "data_loader": guess.data_loader, "shm_extra": guess.shm_extra})
        try:
            made = job_draft.plan_of(tried)
        except JobFileRejected:
            continue
        different = _different(own, plan, made)
        if best is None or len(different) < best[0]:
            best = len(different), guess
        if not different:
            break
    if best is not None:
        draft.fields.update(data_loader=best[1].data_loader, shm_extra=best[1].shm_extra)
        draft.comment("data_loader", "The rendered file has sums alone: these DataLoaders take as much of /dev/shm.")
    _leave_to_plan(draft, job_draft.planned(draft))
    made = job_draft.planned(draft)
    if different := _different(own, plan, made):
        draft.note(
            f"a part of the plan ({', '.join(different)})",
            "a rendered file has the sums of its DataLoaders, which others may have too",
            "set data_loader as the script has it",
            own.span,
        )


def _leave_to_plan(draft: JobDraft, made: LaunchPlan) -> None:
    """Leave out the size of /dev/shm where the plan gives the same."""
    tried = draft._replace(fields={key: value for key, value in draft.fields.items() if key != "shm_size"})
    try:
        alone = job_draft.plan_of(tried)
    except JobFileRejected:
        return
    if alone.shm.size.value == made.shm.size.value:
        draft.fields.pop("shm_size", None)


def _different(own: Workload, plan: Wrapped, made: LaunchPlan) -> list[str]:
    """Return the names of the numbers of a rendered file's plan that another plan has other values for."""
    other = wrapped_words(wrapper_words(made), plan_variables(made)[PLAN_VARIABLE])
    have = other.numbers if other is not None else {}
    keys = {*plan.numbers, *have} - _OF_A_FORMAT
    differ = [each for each in sorted(keys) if _unusual(plan.numbers, each) != _unusual(have, each)]
    before, now = rendered.planned(own), planned_of(made)._replace(size=None)
    changed = [name for name, one, two in zip(before._fields, before, now, strict=True) if one != two]
    return [*differ, *changed]


# Numbers that rendered files of one format set and those of another have elsewhere.
_OF_A_FORMAT = frozenset({"signal", "signals", "script", "home", "nodes", "restarts", "planned", "records"}) | {
    "inject",
    "stall",
    "begin",
    "least",
    "asks",
}


def _unusual(numbers: Mapping[str, str], key: str) -> str:
    """Return a number; those that are off are set in rendered files before format 3 alone."""
    value = numbers.get(key, "")
    return "" if value == "0" else value
