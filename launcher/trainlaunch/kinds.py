"""The Kubernetes objects of a rendered file: one record for each kind that runs a job, and for each that serves one.

No other module compares a kind's name. Adding a kind: one record here, its template, and what it must say in verify.
"""

from typing import NamedTuple

_RANDOM = "[bcdfghjklmnpqrstvwxz2456789]{5}"  # of a name: without vowels

Path = tuple[str, ...]  # keys from an object down; "*" is each item of a list or a mapping


class AuxiliaryObject(NamedTuple):
    """An object that only serves the one that runs the job, and has its name.

    `controller` is what brings the kind to a cluster, empty for Kubernetes itself. `pod_template` leads to what holds a
    pod's metadata and spec; None where it makes no pods.
    """

    name: str
    api_version: str
    plural: str
    controller: str = ""
    pod_template: Path | None = None


class Kind(NamedTuple):
    """A kind that runs a job: `word` in the job file, `name` and the rest as its manifest has them.

    `controller` and `pod_template` are as an AuxiliaryObject's; `pod_template` is None where one of `parts` holds it.
    `levels` is how many objects there are from it down to the pods, which controllers make one by one. `pod_label` is
    the label by which its pods are found: its controller gives it to them, with the object's name as value.

    Names: controllers append to an object's name to name its pods and their hosts. `suffix` is the longest with one
    node, `suffix_of_several` with several, where {last} is the last node's index and {worker} one less. `first_host`
    is where the pods of a namespace find the first node, with {name} for the object's. `pod_names` is the pattern of
    what its pods' names add to its own. `letter_first`: a Service is
    named like it, and can't start with a digit. `immutable` leads to what the API server lets nobody change, so its
    name carries a hash of that. `own_service`: with several nodes its manifest has a Service, which gives its pods
    hosts.

    What it does by itself: `retries`: starts a failed job again as restart.max_attempts says, else only `up` does.
    `pod_failure_policy`: its manifest tells exit codes apart. `between_attempts`: what it does before another attempt.
    `restarts_together`: then all nodes start again, not the lost one alone. `removed_after_ttl`: ttl_after_finished is
    a field of it. `deadline_of_pods`: its deadline stands in the Job below it, and counts anew for each attempt.
    `acts_on_readiness`: a pod that is not ready counts as none. `can_wait`: a queue can hold it back, and
    `suspend` leads to what then says so.
    `needs_parts_first`: its API refuses it while `parts` are missing. `ancestor_label`: the label by which its
    controller finds the trainer among the Jobs of a JobSet. `restarts_label`: the label of a pod with the number of
    times that the job was started again before, from 0; empty where no label of its pods says it.

    `multi_node_unsupported`, `retry_unsupported` and `retry_of_several_unsupported` say why it can't run several nodes,
    or be started again; empty where it can. `groups` leads to its groups of pods, `counts` in each to the factors of
    their number, 1 where it isn't set.
    """

    word: str
    name: str
    api_version: str
    plural: str
    controller: str = ""
    pod_template: Path | None = None
    container_name: str = "train"
    pod_label: str = ""
    parts: tuple[AuxiliaryObject, ...] = ()
    own_service: bool = False
    levels: int = 1
    suffix: str = ""
    suffix_of_several: str = ""
    first_host: str = "{name}-node-0-0.{name}"
    pod_names: str = rf"-node-\d+-\d+-{_RANDOM}"
    letter_first: bool = False
    immutable: tuple[Path, ...] = ()
    retries: bool = True
    pod_failure_policy: bool = False
    between_attempts: str = "its controller makes all pods again at once"
    restarts_together: bool = False
    removed_after_ttl: bool = True
    deadline_of_pods: bool = False
    acts_on_readiness: bool = True
    can_wait: bool = True
    suspend: Path = ("spec", "suspend")
    needs_parts_first: bool = False
    ancestor_label: str = ""
    restarts_label: str = ""
    multi_node_unsupported: str = ""
    retry_unsupported: str = ""
    retry_of_several_unsupported: str = ""
    groups: Path = ("spec",)
    counts: tuple[Path, ...] = ()

    @property
    def template(self) -> str:
        """The template of its manifest."""
        return f"kubernetes/{self.word}.yaml.j2"

    def longest_suffix(self, nodes: int) -> str:
        """Return the longest text that is appended to its name; a random part stands as five letters."""
        return (self.suffix_of_several if nodes > 1 else self.suffix).format(last=nodes - 1, worker=nodes - 2)

    def refuses_attempts(self, nodes: int) -> str:
        """Return why it can't be started again with so many nodes, empty where it can."""
        return self.retry_unsupported or (self.retry_of_several_unsupported if nodes > 1 else "")


_TRAINER = "Kubeflow Trainer (kubeflow.org/docs/components/trainer)"
_JOB_SETS_RESTARTS = "jobset.sigs.k8s.io/restart-attempt"
_IN_JOB_SET = ("spec", "replicatedJobs", "*", "template", "spec", "template")

SERVICE = AuxiliaryObject("Service", "v1", "services")
CONFIG_MAP = AuxiliaryObject("ConfigMap", "v1", "configmaps")
TRAINING_RUNTIME = AuxiliaryObject(
    "TrainingRuntime",
    "trainer.kubeflow.org/v1alpha1",
    "trainingruntimes",
    controller=_TRAINER,
    pod_template=("spec", "template", *_IN_JOB_SET),
)
# No rendered file has one. It makes Jobs, and a cluster's policy refuses it already, where they come from.
CRON_JOB = AuxiliaryObject("CronJob", "batch/v1", "cronjobs", pod_template=("spec", "jobTemplate", "spec", "template"))

POD = Kind(
    "pod",
    "Pod",
    "v1",
    "pods",
    pod_template=(),
    pod_label="app.kubernetes.io/instance",  # of the template itself, which has no controller
    levels=0,
    retries=False,
    between_attempts="`trainlaunch up` makes the next pod at once",
    removed_after_ttl=False,
    acts_on_readiness=False,
    can_wait=False,
    multi_node_unsupported="a Pod is one container's host; a Job makes one for each node",
)
JOB = Kind(
    "job",
    "Job",
    "batch/v1",
    "jobs",
    pod_template=("spec", "template"),
    pod_label="batch.kubernetes.io/job-name",
    immutable=(
        *(("spec", key) for key in ("template", "podFailurePolicy", "completions", "selector", "completionMode")),
        *(("spec", key) for key in ("backoffLimitPerIndex", "successPolicy", "managedBy")),
    ),
    own_service=True,
    suffix_of_several="-{last}",
    first_host="{name}-0.{name}",
    pod_names=rf"(-\d+)?-{_RANDOM}",
    acts_on_readiness=False,
    retry_of_several_unsupported=(
        "an Indexed Job starts the one index again that failed, and its peers wait for the old one for ever"
    ),
    counts=(("parallelism",),),
    pod_failure_policy=True,
    between_attempts="its controller waits 10 s before the second attempt, then twice as long each time, at most 6 min",
)
JOB_SET = Kind(
    "jobset",
    "JobSet",
    "jobset.x-k8s.io/v1alpha2",
    "jobsets",
    controller="the JobSet controller (jobset.sigs.k8s.io)",
    pod_template=_IN_JOB_SET,
    pod_label="jobset.sigs.k8s.io/jobset-name",
    levels=2,
    immutable=tuple(
        ("spec", key) for key in ("replicatedJobs", "network", "failurePolicy", "successPolicy", "managedBy")
    ),
    suffix="-node-0-{last}-abcde",
    suffix_of_several="-node-0-{last}-abcde",
    letter_first=True,
    restarts_together=True,
    deadline_of_pods=True,
    restarts_label=_JOB_SETS_RESTARTS,
    groups=("spec", "replicatedJobs", "*"),
    counts=(("replicas",), ("template", "spec", "parallelism")),
    pod_failure_policy=True,
)
TRAIN_JOB = Kind(
    "trainjob",
    "TrainJob",
    "trainer.kubeflow.org/v1alpha1",
    "trainjobs",
    controller=_TRAINER,
    container_name="node",  # Kubeflow's controllers look for the training container by its name
    parts=(TRAINING_RUNTIME,),
    immutable=(("spec", "runtimeRef"), ("spec", "managedBy")),
    pod_label="jobset.sigs.k8s.io/jobset-name",  # of the JobSet that it makes
    levels=3,
    suffix="-node-0-{last}-abcde",
    suffix_of_several="-node-0-{last}-abcde",
    letter_first=True,
    restarts_together=True,
    removed_after_ttl=False,
    needs_parts_first=True,
    ancestor_label="trainer.kubeflow.org/trainjob-ancestor-step",
    restarts_label=_JOB_SETS_RESTARTS,
    counts=(("trainer", "numNodes"),),
)
PYTORCH_JOB = Kind(
    "pytorchjob",
    "PyTorchJob",
    "kubeflow.org/v1",
    "pytorchjobs",
    controller="the Kubeflow Training Operator (kubeflow.org/docs/components/trainer/legacy-v1)",
    pod_template=("spec", "pytorchReplicaSpecs", "*", "template"),
    container_name="pytorch",
    pod_label="training.kubeflow.org/job-name",
    immutable=(("spec", "pytorchReplicaSpecs"),),
    suspend=("spec", "runPolicy", "suspend"),
    suffix="-master-0",
    suffix_of_several="-worker-{worker}",
    first_host="{name}-master-0",
    pod_names=r"-(master|worker)-\d+",
    letter_first=True,
    retries=False,
    retry_unsupported="it starts single pods again, after any exit code; the preflight's 78 would repeat itself",
    groups=("spec", "pytorchReplicaSpecs", "*"),
    counts=(("replicas",),),
)

KINDS = {each.word: each for each in (POD, JOB, JOB_SET, TRAIN_JOB, PYTORCH_JOB)}  # by the job file's word
DEFAULT_KIND = JOB.word
PARTS = {each.name: each for each in (TRAINING_RUNTIME, SERVICE, CONFIG_MAP)}  # by the name in a manifest


def workloads() -> dict[str, Kind]:
    """Return the kinds by their names in a manifest, those first whose controllers make the others."""
    return {each.name: each for each in sorted(KINDS.values(), key=lambda each: each.levels)[::-1]}


def objects() -> dict[str, Kind | AuxiliaryObject]:
    """Return every object of a rendered file by its name in a manifest, those that run a job first."""
    return {**workloads(), **PARTS}
