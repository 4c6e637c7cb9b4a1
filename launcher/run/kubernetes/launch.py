"""Makes the objects of a rendering: all checked by the API server first, none left behind where one fails."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import yaml

from launcher.diagnostics import Diagnostic
from launcher.errors import LaunchError, TargetUnavailable
from launcher.job.reserved import KUBERNETES_LABEL_PREFIX
from launcher.plan.launch_plan import LaunchPlan
from launcher.render import render
from launcher.run.kubernetes.api_errors import HTTP_CONFLICT, ApiRefused
from launcher.run.kubernetes.client import Cluster
from launcher.run.kubernetes.field_lookup import refusals
from launcher.run.kubernetes.objects import (
    INPUT_LABEL,
    JOB_LABEL,
    WORKLOADS,
    Object,
    Reference,
    create,
    delete,
    found,
    listed,
    reference_of,
    try_out,
    wait_until_gone,
)
from launcher.run.kubernetes.runs import ClusterRun, all_runs, result_of
from launcher.units import format_duration
from launcher.verify import verified

NAME_TAKEN = "TL506"
TTL_ANNOTATION = KUBERNETES_LABEL_PREFIX + "ttl-after-finished"
# Its controller refuses one whose runtime is not there yet, so it is tried out once the runtime is.
NEEDS_OTHERS = frozenset({"TrainJob"})
Say = Callable[[str], None]


def documents_of(plan: LaunchPlan, namespace: str) -> list[dict[str, Any]]:
    """Return the objects of the job's verified rendering, in order, for a namespace.

    A Pod has no field for ttl_after_finished: the next `up` reads it from an annotation.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = verified(plan, render(plan))
    documents = [each for each in yaml.load_all(text, Loader=loader) if each]
    for each in documents:
        each["metadata"]["namespace"] = namespace
        if each["kind"] == "Pod" and plan.job.ttl_after_finished is not None:
            each["metadata"].setdefault("annotations", {})[TTL_ANNOTATION] = str(plan.job.ttl_after_finished)
    return documents


def check(cluster: Cluster, plan: LaunchPlan, documents: Sequence[Object], say: Say) -> list[Reference]:
    """Let the API server check every document and return what holds their names already.

    Raises TargetUnavailable with everything that it has against them, at the job file's lines.
    """
    problems: list[Diagnostic] = []
    taken: list[Reference] = []
    for document in documents:
        if document["kind"] in NEEDS_OTHERS and len(documents) > 1:
            place = reference_of(cluster, document)
            taken += [place] if found(cluster, place) is not None else []
            continue
        try:
            for warning in try_out(cluster, document):
                say(f"the API server warns about {document['kind']} {document['metadata']['name']}: {warning}")
        except ApiRefused as refused:
            if refused.status == HTTP_CONFLICT and refused.reason == "AlreadyExists":
                taken.append(reference_of(cluster, document))
            else:
                problems += refusals(cluster, plan.job, document, refused)
    if problems:
        raise TargetUnavailable(dict.fromkeys(problems))
    return taken


def refuse_taken(cluster: Cluster, plan: LaunchPlan, taken: Sequence[Reference]) -> None:
    """Raise TargetUnavailable (TL506) where a name is held already: by the workload, where that is there too."""
    if taken:
        workloads = [place for place in taken if place.kind in WORKLOADS]
        raise TargetUnavailable([_name_taken(cluster, plan, (workloads or taken)[0])])


def replace(cluster: Cluster, plan: LaunchPlan, taken: Sequence[Reference], say: Say) -> None:
    """Delete what holds the names, with all that it made, and wait until it is gone.

    Raises TargetUnavailable (TL506) for what trainlaunch did not make, and (TL529) where it does not go.
    """
    for place in taken:
        thing = found(cluster, place)
        labels = ((thing or {}).get("metadata") or {}).get("labels") or {}
        if thing is not None and labels.get(JOB_LABEL) != plan.job.name:
            raise TargetUnavailable([_name_taken(cluster, plan, place)])
    for place in reversed(taken):  # what others need goes last
        say(f"deleting {place} in {cluster.words}, as --replace asks")
        delete(cluster, place)
    wait_until_gone(
        cluster,
        lambda: [place for place in taken if found(cluster, place) is not None],
        grace=plan.job.stop_grace_period,
        say=say,
    )


def launch(cluster: Cluster, plan: LaunchPlan, documents: Sequence[Object], say: Say) -> ClusterRun:
    """Create the objects in order and return the run; where one fails those before it are deleted again."""
    made: list[tuple[Reference, Object]] = []
    try:
        for document in documents:
            try:
                if document["kind"] in NEEDS_OTHERS and len(documents) > 1:
                    try_out(cluster, document)
                made.append((reference_of(cluster, document), create(cluster, document)))
            except ApiRefused as refused:
                raise _refused(cluster, plan, document, refused) from refused
    except BaseException:
        _roll_back(cluster, [place for place, _ in made], say)
        raise
    main, thing = next(each for kind in WORKLOADS for each in made if each[0].kind == kind)
    label = documents[-1]["metadata"]["labels"].get(INPUT_LABEL, "")
    return ClusterRun(plan.job.name, label, main, {**thing, "kind": main.kind})


def leftovers(cluster: Cluster, documents: Sequence[Object]) -> frozenset[str]:
    """Return the uids of pods that carry these labels before anything is made: they belong to an earlier run."""
    labels = documents[-1]["metadata"]["labels"]
    selector = ",".join(f"{key}={labels[key]}" for key in (JOB_LABEL, INPUT_LABEL) if key in labels)
    return frozenset(thing["metadata"].get("uid", "") for _, thing in listed(cluster, "Pod", selector))


def remove_expired(cluster: Cluster, say: Say) -> None:
    """Delete Pods of ours that ended longer than their ttl_after_finished ago; only a Job has a controller for it."""
    for run in all_runs(cluster, None, say):
        stated = (run.thing["metadata"].get("annotations") or {}).get(TTL_ANNOTATION, "")
        result = run.result
        if (
            run.main.kind == "Pod"
            and stated.isdigit()
            and result.ended
            and result.finished + int(stated) <= time.time()
        ):
            delete(cluster, run.main)
            say(f"removed {run.main}: its ttl_after_finished {format_duration(int(stated))} is over")


def _refused(cluster: Cluster, plan: LaunchPlan, document: Object, refused: ApiRefused) -> TargetUnavailable:
    if refused.status == HTTP_CONFLICT and refused.reason == "AlreadyExists":
        return TargetUnavailable([_name_taken(cluster, plan, reference_of(cluster, document))])
    return TargetUnavailable(refusals(cluster, plan.job, document, refused))


def _roll_back(cluster: Cluster, made: Sequence[Reference], say: Say) -> None:
    for place in reversed(made):
        try:
            delete(cluster, place)
            say(f"deleted {place} again")
        except LaunchError as cause:
            say(f"{place} is left behind: {cause}")


def _name_taken(cluster: Cluster, plan: LaunchPlan, place: Reference) -> Diagnostic:
    thing = found(cluster, place) or {}
    labels = (thing.get("metadata") or {}).get("labels") or {}
    job = plan.job.name
    if labels.get(JOB_LABEL) != job:
        owner = f"job {labels[JOB_LABEL]}" if JOB_LABEL in labels else "something that trainlaunch did not make"
        return Diagnostic(
            NAME_TAKEN,
            f"the name of {place} in {cluster.words} is held by {owner}",
            f"give `--name {plan.name}-2`, or another --namespace",
            why="an object's name is unique among its kind in a namespace",
        )
    logs = f"trainlaunch logs -f {job} --target kubernetes --namespace {cluster.namespace}"
    state = result_of({**thing, "kind": place.kind}).state if place.kind in WORKLOADS else "there"
    return Diagnostic(
        NAME_TAKEN,
        f"job {job} is there already, as {place} in {cluster.words}, and is {state}",
        f"add --replace to delete that one first, follow it with `{logs}`, or give another `--name`",
        why="the same job gives the same name, so that it never runs twice by accident",
    )
