"""Removes what runs left on a cluster: all of a job, or Pods whose time is over."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from launcher.errors import TargetUnavailable
from launcher.job.reserved import KUBERNETES_LABEL_PREFIX
from launcher.kinds import JOB, POD, workloads
from launcher.run.kubernetes.client import Cluster
from launcher.run.kubernetes.objects import JOB_LABEL, Object, Reference, delete, owned, wait_until_gone
from launcher.run.kubernetes.runs import all_runs, made_by, no_such_run
from launcher.run.wording import expired

TTL_ANNOTATION = KUBERNETES_LABEL_PREFIX + "ttl-after-finished"
DEFAULT_GRACE = 30  # seconds of a pod that states none
Say = Callable[[str], None]
Made = Sequence[tuple[Reference, Object]]


def remove_job(cluster: Cluster, job: str, say: Say) -> None:
    """Delete everything that carries a job's label, and nothing else; returns when it is gone.

    Raises TargetUnavailable (TL510) where there is nothing, and (TL529) where something does not go.
    """
    selector = f"{JOB_LABEL}={job}"
    made = made_by(cluster, selector, say)
    if not made:
        raise TargetUnavailable([no_such_run(cluster, job, say)])
    say(f"deleting job {job} in {cluster.words}")
    tops = _tops(made)
    for each in tops:
        delete(cluster, each)
    kinds = dict.fromkeys([*(place.kind for place, _ in made), JOB.name, POD.name])

    def left() -> list[Reference]:
        return [place for place, _ in made_by(cluster, selector, lambda _: None, kinds=kinds)]

    wait_until_gone(cluster, left, grace=_longest_grace(made), say=say)
    for each in tops:
        say(f"removed {each}")


def remove_expired(cluster: Cluster, say: Say) -> None:
    """Delete Pods of ours that ended longer than their ttl_after_finished ago; only a Job has a controller for it."""
    for run in all_runs(cluster, None, say):
        stated = (run.thing["metadata"].get("annotations") or {}).get(TTL_ANNOTATION, "")
        if run.main.kind != POD.name or not stated.isdigit():
            continue
        result = run.result
        if result.ended and result.finished + int(stated) <= time.time():
            delete(cluster, run.main)
            say(expired(str(run.main), int(stated)))


def _tops(made: Made) -> list[Reference]:
    """Return what no other object takes along when it goes."""
    uids = {thing["metadata"].get("uid") for _, thing in made}

    def by_another(place: Reference, thing: Object) -> bool:
        if place.kind == POD.name or place.kind not in workloads():
            return owned(thing)
        return any(each.get("uid") in uids for each in thing["metadata"].get("ownerReferences") or ())

    return [place for place, thing in made if not by_another(place, thing)]


def _longest_grace(made: Made) -> int:
    specs = (thing.get("spec") or {} for place, thing in made if place.kind == POD.name)
    stated = (int(spec.get("terminationGracePeriodSeconds") or DEFAULT_GRACE) for spec in specs)
    return max(stated, default=DEFAULT_GRACE)
