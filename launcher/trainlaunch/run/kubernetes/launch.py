"""Makes the objects of a rendered file: all checked by the API server first, none left behind where one fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import yaml

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import LaunchError, TargetUnavailable
from trainlaunch.job.reserved import KUEUE_QUEUE_LABEL
from trainlaunch.job.spec import JobSpec
from trainlaunch.kinds import POD, workloads
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.run.base.backend import Say
from trainlaunch.run.base.run_query import NAME_TAKEN
from trainlaunch.run.kubernetes.api_errors import HTTP_CONFLICT, ApiRefused
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.field_lookup import refusals
from trainlaunch.run.kubernetes.objects import (
    JOB_LABEL,
    Object,
    Reference,
    create,
    delete,
    get_object,
    list_objects,
    reference_of,
    set_owner_reference,
    try_out,
    wait_until_gone,
)
from trainlaunch.run.kubernetes.removal import TTL_ANNOTATION
from trainlaunch.run.kubernetes.results import result_of
from trainlaunch.run.kubernetes.runs import ClusterRun, Identity, owner_of, pods_selector, values_at
from trainlaunch.verify import verified


def documents_of(plan: LaunchPlan, namespace: str) -> list[dict[str, Any]]:
    """Return the objects of the job's verified rendered file, in order, for a namespace.

    A Pod has no field for ttl_after_finished: the next `up` reads it from an annotation.
    """
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = verified(plan, render(plan))
    documents = [each for each in yaml.load_all(text, Loader=loader) if each]
    for each in documents:
        each["metadata"]["namespace"] = namespace
        if each["kind"] == POD.name and plan.job.ttl_after_finished is not None:
            each["metadata"].setdefault("annotations", {})[TTL_ANNOTATION] = str(plan.job.ttl_after_finished)
    return documents


class Launch:
    """A job's objects on one cluster: checked, made, replaced, and made again for another attempt.

    It takes all that it needs of a plan at once; each attempt makes the same objects. `documents` are in order.
    """

    def __init__(self, cluster: Cluster, plan: LaunchPlan, me: Identity, say: Say) -> None:
        self.cluster = cluster
        self.documents = documents_of(plan, cluster.namespace)
        for each in self.documents:
            me.stamp(each)
        self._me = me
        self._job = plan.job
        self._name = plan.name
        self._say = say

    @property
    def words(self) -> str:
        """The objects as a sentence names them."""
        return ", ".join(f"{each['kind']} {each['metadata']['name']}" for each in self.documents)

    def attempts_of(self, run: ClusterRun) -> int:
        """Return how often the run is to be made in all; 1 where its controller itself starts it again."""
        return 1 if workloads()[run.main.kind].retries else self._job.max_attempts

    def check(self) -> list[Reference]:
        """Let the API server check every document and return what holds their names already.

        Raises TargetUnavailable with everything that it has against them, at the job file's lines.
        """
        problems: list[Diagnostic] = []
        taken: list[Reference] = []
        for document in self.documents:
            if self._waits_for_others(document):
                place = reference_of(self.cluster, document)
                taken += [place] if get_object(self.cluster, place) is not None else []
                continue
            try:
                problems += self._tried(document)
            except ApiRefused as refused:
                if _is_taken(refused):
                    taken.append(reference_of(self.cluster, document))
                else:
                    problems += refusals(self.cluster, self._job, document, refused)
        if problems:
            raise TargetUnavailable(dict.fromkeys(problems))
        return taken

    def _tried(self, document: Object) -> list[Diagnostic]:
        """Let the API server check a document; returns the error of one that no queue would hold back."""
        would_be, warnings = try_out(self.cluster, document)
        for warning in warnings:
            self._say(f"the API server warns about {document['kind']} {document['metadata']['name']}: {warning}")
        kind = workloads().get(document["kind"])
        if kind is None or KUEUE_QUEUE_LABEL not in _labels(document):
            return []
        suspended = next(values_at(would_be, kind.suspend), False)
        return [] if suspended is True else [_queue_not_held(self.cluster, self._job, document)]

    def refuse_taken(self, taken: Sequence[Reference]) -> None:
        """Raise TargetUnavailable (TL506) where a name is held already: by the workload, where that is there too."""
        if taken:
            running = [place for place in taken if place.kind in workloads()]
            raise TargetUnavailable([self._name_taken((running or taken)[0])])

    def replace(self, taken: Sequence[Reference], say: Say) -> None:
        """Delete what holds the names, with all that it made, and wait until it is gone.

        Raises TargetUnavailable (TL506) for what this user's `up` did not make, and (TL529) where it does not go.
        """
        for place in sorted(taken, key=lambda each: each.kind not in workloads()):  # the run, before what serves it
            thing = get_object(self.cluster, place)
            same = thing is not None and _labels(thing).get(JOB_LABEL) == self._job.name
            if thing is not None and not (same and self._me.owns(thing)):
                raise TargetUnavailable([self._name_taken(place)])
        for place in reversed(taken):  # what others need goes last
            say(f"deleting {place} in {self.cluster.words}, as --replace asks")
            delete(self.cluster, place)
        wait_until_gone(
            self.cluster,
            lambda: [place for place in taken if get_object(self.cluster, place) is not None],
            grace=self._job.stop_grace_period,
            say=say,
        )

    def make(self) -> ClusterRun:
        """Create the objects in order and return the run; where one fails those before it are deleted again."""
        made: list[tuple[Reference, Object]] = []
        try:
            for document in self.documents:
                try:
                    if self._waits_for_others(document) and (problems := self._tried(document)):
                        raise TargetUnavailable(problems)
                    made.append((reference_of(self.cluster, document), create(self.cluster, document)))
                except ApiRefused as refused:
                    raise self._refused(document, refused) from refused
        except BaseException:
            self._roll_back([place for place, _ in made])
            raise
        main, thing = next(each for kind in workloads() for each in made if each[0].kind == kind)
        for place, _ in made:
            if place != main:
                self._hand_over(place, main, thing)
        return ClusterRun(self._job.name, main, {**thing, "kind": main.kind})

    def places(self) -> list[Reference]:
        """Return where all its objects are, or would be."""
        return [reference_of(self.cluster, each) for each in self.documents]

    def leftovers(self) -> frozenset[str]:
        """Return the uids of pods that carry these labels before anything is made: they belong to an earlier run."""
        kind, name = next(
            (each["kind"], each["metadata"]["name"]) for each in self.documents if each["kind"] in workloads()
        )
        selector = pods_selector(self._job.name, kind, name)
        return frozenset(
            thing["metadata"].get("uid", "") for _, thing in list_objects(self.cluster, POD.name, selector)
        )

    def _waits_for_others(self, document: Object) -> bool:
        """Whether its controller refuses it while the objects before it are not there: it is tried out after them."""
        kind = workloads().get(document["kind"])
        return kind is not None and kind.needs_parts_first and len(self.documents) > 1

    def _refused(self, document: Object, refused: ApiRefused) -> TargetUnavailable:
        if _is_taken(refused):
            return TargetUnavailable([self._name_taken(reference_of(self.cluster, document))])
        return TargetUnavailable(refusals(self.cluster, self._job, document, refused))

    def _hand_over(self, part: Reference, main: Reference, thing: Object) -> None:
        """Make the run own an object that serves it, so that it goes with it, whoever deletes that one, or its ttl."""
        try:
            set_owner_reference(self.cluster, part, main, thing)
        except LaunchError as cause:
            self._say(f"{part} does not belong to {main}, and only `trainlaunch down` removes it: {cause}")

    def _roll_back(self, made: Sequence[Reference]) -> None:
        for place in reversed(made):
            try:
                delete(self.cluster, place)
                self._say(f"deleted {place} again")
            except LaunchError as cause:
                self._say(f"{place} is left behind: {cause}")

    def _name_taken(self, place: Reference) -> Diagnostic:
        cluster, job = self.cluster, self._job.name
        thing = get_object(cluster, place) or {}
        labels = _labels(thing)
        if labels.get(JOB_LABEL) != job:
            owner = f"job {labels[JOB_LABEL]}" if JOB_LABEL in labels else "something that trainlaunch did not make"
            return Diagnostic(
                NAME_TAKEN,
                f"the name of {place} in {cluster.words} is taken by {owner}",
                f"give `--name {self._name}-2`, or another --namespace",
                why="an object's name is unique among its kind in a namespace",
            )
        if not self._me.owns(thing):
            whose = owner_of(thing) or "nobody that is named"
            run = place.name if place.kind in workloads() else job
            return Diagnostic(
                NAME_TAKEN,
                f"the name of {place} in {cluster.words} is taken by a run of job {job} whose owner is {whose}",
                f"give `--name {self._name}-2`, or end it first by `trainlaunch down {run} --owner any`",
                why="what others made is left as it is, and so is what was applied without `up`",
            )
        logs = f"trainlaunch logs -f {job} --target kubernetes --namespace {cluster.namespace}"
        state = result_of({**thing, "kind": place.kind}).state if place.kind in workloads() else "there"
        return Diagnostic(
            NAME_TAKEN,
            f"job {job} is there already, as {place} in {cluster.words}, and is {state}",
            f"add --replace to delete that one first, follow it with `{logs}`, or give another `--name`",
            why="the same job gives the same name, so that it never runs twice by accident",
        )


def _queue_not_held(cluster: Cluster, job: JobSpec, document: Object) -> Diagnostic:
    return Diagnostic(
        "TL530",
        f"nothing in {cluster.words} holds {document['kind']} {document['metadata']['name']} back for the queue "
        f"{_labels(document)[KUEUE_QUEUE_LABEL]}",
        f"install Kueue with its integration for {document['kind']}, or delete kubernetes.queue",
        why="Kueue's webhook suspends a job that names a queue; without it the job starts at once, past every quota",
        span=job.span("kubernetes.queue"),
        field="kubernetes.queue",
    )


def _is_taken(refused: ApiRefused) -> bool:
    return refused.status == HTTP_CONFLICT and refused.reason == "AlreadyExists"


def _labels(thing: Object) -> Object:
    return (thing.get("metadata") or {}).get("labels") or {}
