"""Removes runs of a cluster with all that they made, what they left, and Pods whose time is over."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Collection, Sequence

from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX
from trainlaunch.kinds import JOB, POD, SERVICE, workloads
from trainlaunch.plan.plan_label import whole_number
from trainlaunch.run.base.backend import Say
from trainlaunch.run.base.console import expired
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.objects import (
    JOB_LABEL,
    ForbiddenKinds,
    Object,
    Reference,
    delete,
    has_controller,
    list_objects,
    wait_until_gone,
)
from trainlaunch.run.kubernetes.pods import DEFAULT_GRACE
from trainlaunch.run.kubernetes.results import result_of
from trainlaunch.run.kubernetes.runs import OWNER_KEY, ClusterRun, Identity, all_runs, made_by, planned_pods

TTL_ANNOTATION = KUBERNETES_LABEL_PREFIX + "ttl-after-finished"
Made = Sequence[tuple[Reference, Object]]


def remove_runs(cluster: Cluster, runs: Sequence[ClusterRun], say: Say) -> None:
    """Delete runs with all that their rendered files made, and nothing else; returns when it is gone.

    Objects belong to the run whose name theirs begins with. What belongs to none goes with the job's last run, where
    it has the same owner. Raises TargetUnavailable (TL529) where something does not go.
    """
    for job in dict.fromkeys(each.job for each in runs):
        chosen = {each.main.name for each in runs if each.job == job}
        kept = {each.main.name for each in all_runs(cluster, job, ForbiddenKinds())} - chosen
        owners = {_owner(each.thing) for each in runs if each.job == job}
        _remove(cluster, job, functools.partial(_goes, chosen, kept, owners), say)


def _goes(chosen: set[str], kept: set[str], owners: set[str], place: Reference, thing: Object) -> bool:
    name = _longest_start(place.name, chosen | kept)
    return name in chosen if name else not kept and _owner(thing) in owners


def remove_orphans(cluster: Cluster, job: str, owners: Collection[str] | None, say: Say) -> bool:
    """Delete what runs of a job that are gone have left, as its Service: of some owners, or with None of all.

    Returns whether there was anything. Raises TargetUnavailable (TL529) where something does not go.
    """
    return _remove(cluster, job, lambda _, thing: owners is None or _owner(thing) in owners, say)


def _remove(cluster: Cluster, job: str, goes: Callable[[Reference, Object], bool], say: Say) -> bool:
    """Delete the objects of a job that go, and wait for it; returns whether there were any."""
    selector = f"{JOB_LABEL}={job}"
    unlisted = ForbiddenKinds()
    made = [each for each in made_by(cluster, selector, unlisted) if goes(*each)]
    if not made:
        return False
    say(f"deleting job {job} in {cluster.words}")
    tops = _tops(made)
    for each in tops:
        delete(cluster, each)
    kinds = dict.fromkeys([*(place.kind for place, _ in made), JOB.name, POD.name])

    def left() -> list[Reference]:
        known = made_by(cluster, selector, unlisted, kinds=kinds)
        return [place for place, thing in known if goes(place, thing)]

    wait_until_gone(cluster, left, grace=_longest_grace(made), say=say)
    for each in tops:
        say(f"removed {each}")
    if left_unseen := sorted(_parts_of(made) & unlisted.plurals.keys()):
        words = ", ".join(left_unseen)
        say(f"{words} of it may be left: you may not list {words} in {cluster.words}")
    return True


def _parts_of(made: Made) -> set[str]:
    """Return the kinds, as the API spells them, of what came with workloads and is none."""
    kinds = [
        (workloads()[place.kind], thing)
        for place, thing in made
        if place.kind in workloads() and not has_controller(thing)
    ]
    parts = {part.plural for kind, _ in kinds for part in kind.parts}
    return parts | {SERVICE.plural for kind, thing in kinds if kind.own_service and planned_pods(thing) > 1}


def _longest_start(name: str, known: Collection[str]) -> str:
    """Return the longest of some names that `name` is or goes on from after a dash; empty where none is."""
    return max((each for each in known if name == each or name.startswith(f"{each}-")), key=len, default="")


def _owner(thing: Object) -> str:
    """Return the hash of who made an object, empty where nothing says it."""
    return str((thing["metadata"].get("labels") or {}).get(OWNER_KEY, ""))


def remove_expired(cluster: Cluster, me: Identity, say: Say) -> None:
    """Delete the user's Pods that ended longer than their ttl_after_finished ago; a Job has a controller for it."""
    if not me.name:
        return
    for place, thing in list_objects(cluster, POD.name, f"{JOB_LABEL},{OWNER_KEY}={me.hash}"):
        stated = (thing["metadata"].get("annotations") or {}).get(TTL_ANNOTATION, "")
        ttl = whole_number(stated)
        if ttl is None or has_controller(thing) or not me.owns(thing):
            continue
        result = result_of(thing)
        if result.ended and result.finished + ttl <= time.time():
            delete(cluster, place)
            say(expired(str(place), ttl))


def _tops(made: Made) -> list[Reference]:
    """Return what no other object takes along when it goes."""
    uids = {thing["metadata"].get("uid") for _, thing in made}

    def by_another(place: Reference, thing: Object) -> bool:
        if place.kind == POD.name or place.kind not in workloads():
            return has_controller(thing)
        return any(each.get("uid") in uids for each in thing["metadata"].get("ownerReferences") or ())

    return [place for place, thing in made if not by_another(place, thing)]


def _longest_grace(made: Made) -> int:
    specs = (thing.get("spec") or {} for place, thing in made if place.kind == POD.name)
    stated = (int(spec.get("terminationGracePeriodSeconds") or DEFAULT_GRACE) for spec in specs)
    return max(stated, default=DEFAULT_GRACE)
