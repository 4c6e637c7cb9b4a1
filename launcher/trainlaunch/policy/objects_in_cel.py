"""Which pods a request brings, as CEL variables that the rules range over.

`pods` are those that are new, or changed in what is judged; `concerned` those of them that train: they carry the
launcher's label or ask for GPUs. `held` has besides, for each ephemeral container that a training pod gets, that pod
with it alone; `entering` is the same whether they train or not. `resizing` and `unresized` are the containers of a
training pod whose resources change in place, and as they were. All values are `dyn`: a server checks the types of a
validation for each kind that its policy matches, and one kind's fields are none of another's.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import NamedTuple

from trainlaunch.formats.gpus import GPU_RESOURCE
from trainlaunch.job.ceilings import Policy
from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX, KUEUE_PRIORITY_LABEL, KUEUE_QUEUE_LABEL
from trainlaunch.kinds import CRON_JOB, JOB, JOB_SET, PYTORCH_JOB, TRAIN_JOB, TRAINING_RUNTIME, AuxiliaryObject, Kind
from trainlaunch.policy.demands import CDI, GPU_ANNOTATION, NODES_ANNOTATION

_OURS = f"{KUBERNETES_LABEL_PREFIX}job"
IS_GPU = "k.matches(variables.gpu)"
ASKED = ("limits", "requests")
FOR_GPUS = " || ".join(
    f"c.?resources.?{each}.orValue({{}}).exists(k, {IS_GPU} &&\n"
    f'    quantity(string(c.resources.{each}[k])).isGreaterThan(quantity("0")))'
    for each in ASKED
)
ASKS = f"({FOR_GPUS} || c.?resources.?claims.orValue([]).size() > 0)"
DEVICES_ANNOTATION = rf"(?:.+\.)?{re.escape(CDI)}/.*|{GPU_ANNOTATION.pattern}"
PRIVILEGED = "c.?securityContext.?privileged.orValue(false)"
_OF = "%s.spec.containers + %s.spec.?initContainers.orValue([])"
LASTING_CONTAINERS = f"({_OF % ('p', 'p')})"  # those that have limits; an ephemeral one takes from them
ALL_CONTAINERS = f"({_OF % ('p', 'p')} + p.spec.?ephemeralContainers.orValue([]))"
IS_OURS = f"p.?metadata.?labels[?{json.dumps(_OURS)}].hasValue()"
_TRAINS = f"({IS_OURS} ||\n  {ALL_CONTAINERS}.exists(c, {ASKS}))"
# What schedulers, Kueue above all, change in a pod or template that waits, and no rule reads.
_OF_SCHEDULERS = json.dumps(
    ["affinity", "nodeSelector", "schedulingGates", "terminationGracePeriodSeconds", "tolerations"]
)


def matches(text: str, pattern: str) -> str:
    """Return CEL for whether a whole text matches."""
    return f"{text}.matches({json.dumps(f'^(?:{pattern})$')})"


class Rule(NamedTuple):
    """One validation: CEL that is true where all is well, and what is said where it isn't."""

    expression: str
    message: str


def each_of(condition: str, pods: str = "concerned") -> str:
    """Return CEL for a condition on each pod `p` of a list."""
    return f"variables.{pods}.all(p, {condition})"


class Maker(NamedTuple):
    """How CEL reads an object {o} whose controller makes pods.

    `groups` lists its groups of pods with name, number and template; `deadlines` seconds, 0 where not set; `labels`
    leads to those by which Kueue knows what it makes.
    """

    kind: Kind | AuxiliaryObject
    groups: str
    deadlines: str
    labels: str = "{o}.?metadata.?labels"


_NO_NAME = '""'


def _group(name: str, count: str, pod: str) -> str:
    return f'{{{{"name": dyn({name}), "count": dyn({count}), "pod": dyn({pod})}}}}'


_SECONDS = ".?activeDeadlineSeconds.orValue(0)"
_TEMPLATE = "{o}.spec.jobTemplate"
_JOBS = "{o}.spec.?replicatedJobs.orValue([])"
_OF_JOB_SET = _group(
    "r.name", "r.?replicas.orValue(1) * r.template.spec.?parallelism.orValue(1)", "r.template.spec.template"
)
_REPLICAS = "{o}.spec.pytorchReplicaSpecs"
_OF_RUNTIME = _group("r.name", "{o}.spec.?mlPolicy.?numNodes.orValue(1)", "r.template.spec.template")
MAKERS = (
    Maker(
        JOB,
        f"[{_group(_NO_NAME, '{o}.spec.?parallelism.orValue(1)', '{o}.spec.template')}]",
        f"[{{o}}.spec{_SECONDS}]",
    ),
    Maker(
        CRON_JOB,
        f"[{_group(_NO_NAME, f'{_TEMPLATE}.spec.?parallelism.orValue(1)', f'{_TEMPLATE}.spec.template')}]",
        f"[{_TEMPLATE}.spec{_SECONDS}]",
        f"{_TEMPLATE}.?metadata.?labels",
    ),
    Maker(JOB_SET, f"{_JOBS}.map(r, {_OF_JOB_SET})", f"{_JOBS}.map(r, r.template.spec{_SECONDS})"),
    Maker(
        PYTORCH_JOB,
        f"{_REPLICAS}.map(k, {_group('k', f'{_REPLICAS}[k].?replicas.orValue(1)', f'{_REPLICAS}[k].template')})",
        f"[{{o}}.spec.?runPolicy{_SECONDS}]",
    ),
    Maker(TRAIN_JOB, "[]", f"[{{o}}.spec{_SECONDS}]"),
    Maker(TRAINING_RUNTIME, f"{{o}}.spec.template.spec.?replicatedJobs.orValue([]).map(r, {_OF_RUNTIME})", "[]"),
)

# Who makes pods and Jobs of a judged object, by the object: an owner that somebody else names may be a forged one. A
# CronJob isn't here: each of its Jobs has the queue and deadline of its template, and `kubectl create job --from` names
# it as owner too.
CONTROLLERS = {
    "batch/v1 Job": [
        "system:serviceaccount:kube-system:job-controller",
        "system:kube-controller-manager",  # where its controllers share one user
    ],
    "jobset.x-k8s.io/v1alpha2 JobSet": [
        "system:serviceaccount:jobset-system:jobset-controller-manager",
        "system:serviceaccount:kubeflow-system:jobset-controller-manager",
    ],
    "trainer.kubeflow.org/v1alpha1 TrainJob": [
        "system:serviceaccount:kubeflow-system:kubeflow-trainer-controller-manager"
    ],
    "kubeflow.org/v1 PyTorchJob": ["system:serviceaccount:kubeflow:training-operator"],
}
_QUEUES = ["system:serviceaccount:kueue-system:kueue-controller-manager"]


def _trusted(controllers: Iterable[str]) -> str:
    """Return CEL for whether the controller of the object's owner asks, so that the owner was judged in its place."""
    users = json.dumps({owner: [*users, *controllers] for owner, users in CONTROLLERS.items()})
    return (
        "variables.made.?metadata.?ownerReferences.orValue([]).exists(o, o.?controller.orValue(false) &&\n"
        f'  {users}[?o.apiVersion + " " + o.kind].orValue([]).exists(u, u == request.userInfo.username))'
    )


def _same(new: str, old: str, policy: Policy | None) -> str:
    """Return CEL for whether two pods or templates differ in nothing that a rule reads."""
    labels = json.dumps([_OURS, *(name for name, _, _ in (policy.required_labels if policy else ()))])
    label = f'{old}.?metadata.?labels[?n].orValue("")'
    annotation = "%s.?metadata.?annotations[?a]"
    gives = matches("a", f"{DEVICES_ANNOTATION}|{NODES_ANNOTATION.pattern}")
    free = f"k in {_OF_SCHEDULERS}"
    return (
        f"{new}.spec.all(k, {free} || (k in {old}.spec && {old}.spec[k] == {new}.spec[k])) &&\n"
        f"  {old}.spec.all(k, {free} || k in {new}.spec) &&\n"
        f'  {labels}.all(n, {label} in ["", {new}.?metadata.?labels[?n].orValue("")]) &&\n'
        f"  {new}.?metadata.?annotations.orValue({{}}).all(a,\n"
        f"    !{gives} || {annotation % new} == {annotation % old})"
    )


def _by_kind(texts: dict[str, str], otherwise: str) -> str:
    return " :\n".join((*(f'variables.made.kind == "{kind}" ? {text}' for kind, text in texts.items()), otherwise))


def shared_variables() -> dict[str, str]:
    """Return the variables of all rules: the pattern of GPUs, and the objects without their types."""
    gpu = json.dumps(f"^(?:{GPU_RESOURCE})$")
    return {"gpu": gpu, "made": "dyn(object)", "old": "dyn(oldObject)"}


def maker_variables(policy: Policy | None, controllers: Iterable[str]) -> dict[str, str]:
    """Return the variables of the rules for objects whose controllers make pods."""

    def of(field: str, name: str) -> str:
        found = {each.kind.name: getattr(each, field).format(o=f"variables.{name}") for each in MAKERS}
        return f"({_by_kind(found, '[]')})"

    def label(key: str, name: str) -> str:
        found = {each.kind.name: each.labels.format(o=f"variables.{name}") for each in MAKERS if "spec" in each.labels}
        labels = _by_kind(found, f"variables.{name}.?metadata.?labels")
        return f'({labels})[?"{key}"].orValue("")'

    created = 'request.operation == "CREATE"'
    same = _same("g.pod", "b.pod", policy)
    return {
        **shared_variables(),
        "groups": of("groups", "made"),
        "before": f"{created} ? [] : {of('groups', 'old')}",
        "pods": (
            f"variables.groups.filter(g, !variables.before.exists(b, b.name == g.name &&\n  {same})).map(g, g.pod)"
        ),
        # Kueue gives a Job that it suspends the parallelism back that it took when it let it start.
        "grown": (
            f"!(request.userInfo.username in {json.dumps([*_QUEUES, *controllers])}) &&\n"
            "  variables.groups.exists(g, !variables.before.exists(b, b.name == g.name && g.count <= b.count))"
        ),
        "entering": "variables.pods",
        "concerned": f"variables.pods.filter(p, {_TRAINS})",
        "held": "variables.concerned",
        "resizing": "[]",
        "unresized": "[]",
        "trains": (f'variables.made.kind == "{TRAIN_JOB.name}" || variables.groups.map(g, g.pod).exists(p, {_TRAINS})'),
        "deadlines": of("deadlines", "made"),
        "deadlines_are_new": f"{created} || variables.deadlines != {of('deadlines', 'old')}",
        "queue": label(KUEUE_QUEUE_LABEL, "made"),
        "queue_is_new": f"{created} || variables.queue != {label(KUEUE_QUEUE_LABEL, 'old')}",
        "priority": label(KUEUE_PRIORITY_LABEL, "made"),
        "priority_is_new": f"{created} || variables.priority != {label(KUEUE_PRIORITY_LABEL, 'old')}",
        "trusted": _trusted(controllers),
    }


def pod_variables(policy: Policy | None, controllers: Iterable[str]) -> dict[str, str]:
    """Return the variables of the rules for pods, and for what `kubectl debug` and a resize change in one."""
    ephemeral = "variables.%s.spec.?ephemeralContainers.orValue([])"
    volumes = "variables.made.spec.?volumes.orValue([])"
    mounted = f"{volumes}.filter(v, c.?volumeMounts.orValue([]).exists(m, m.name == v.name))"
    resized = f'variables.part == "resize" && variables.trains ? {_OF} : []'
    return {
        **shared_variables(),
        "part": 'request.?subResource.orValue("")',
        "pods": (
            'variables.part == "" && (request.operation == "CREATE" ||\n'
            f"  !({_same('variables.made', 'variables.old', policy)})) ? [variables.made] : []"
        ),
        "debugged": (
            'variables.part == "ephemeralcontainers" ?\n'
            f"  {ephemeral % 'made'}.filter(c, !(c in {ephemeral % 'old'})).map(c, dyn({{\n"
            '    "metadata": dyn(variables.made.metadata),\n'
            f'    "spec": dyn({{"containers": dyn([c]), "volumes": dyn({mounted})}})}})) : []'
        ),
        "entering": "variables.pods + variables.debugged",
        "concerned": f"variables.pods.filter(p, {_TRAINS})",
        "trains": f"[variables.made].exists(p, {_TRAINS})",
        "held": "variables.concerned + (variables.trains ? variables.debugged : [])",
        "resizing": resized % (("variables.made",) * 2),
        "unresized": resized % (("variables.old",) * 2),
        "trusted": _trusted(controllers),
    }
