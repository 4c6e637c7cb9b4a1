"""What a policy asks, as CEL over a list of pods: each rule is true where all is well.

`variables.pods` are the pods that an object makes or is, each with metadata and spec; `variables.concerned` are those
that train: they carry the launcher's label or ask for GPUs. In a pod that has any, its containers with GPUs train.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from launcher.formats.gpus import CHOOSE, GPU_RESOURCE, GRANTS, NO_ACCELERATOR, NO_GPUS
from launcher.job.ceilings import Policy
from launcher.job.reserved import KUBERNETES_LABEL_PREFIX, KUEUE_QUEUE_LABEL
from launcher.kinds import POD, PYTORCH_JOB, TRAIN_JOB, Kind, Part
from launcher.policy.registry import registry_pattern
from launcher.units import format_size

_OURS = json.dumps(f"{KUBERNETES_LABEL_PREFIX}job")
_GPU = json.dumps(f"^(?:{GPU_RESOURCE.pattern})$")
_NO_GPU = json.dumps(f"^(?:{NO_ACCELERATOR.pattern})$")
_IS_GPU = "k.matches(variables.gpu)"
_ASKS = f"(c.?resources.?limits.orValue({{}}).exists(k, {_IS_GPU}) || c.?resources.?claims.orValue([]).size() > 0)"
_LIMIT = "c.?resources.?limits[?%s].or(p.spec.?resources.?limits[?%s])"
_WHOLE = "!m.?readOnly.orValue(false) && !m.?subPath.hasValue() && !m.?subPathExpr.hasValue()"
_IS_SHM = f'm.mountPath.matches("^/dev/shm/*$") && {_WHOLE}'
_AT_SHM = 'm.mountPath.matches("^/+dev/+(?:.*/)?shm/*$")'  # another spelling of it would lie above the first
_IN_MEMORY = 'v.name == m.name && v.?emptyDir.?medium.orValue("") == "Memory"'
_SIZE = "v.?emptyDir.?sizeLimit"
_LIMITED = f'{_SIZE}.hasValue() && quantity(string({_SIZE}.value())).isGreaterThan(quantity("0"))'
_ALL_CONTAINERS = "(p.spec.containers + p.spec.?initContainers.orValue([]))"
_BELOW_MEMORY = (
    "{limit}.hasValue() && quantity(string({size}.value())).isLessThan(quantity(string({limit}.value())))"
).format(limit=_LIMIT % ('"memory"', '"memory"'), size=_SIZE)


class Rule(NamedTuple):
    """One validation: CEL that is true where all is well, and what is said where it isn't."""

    expression: str
    message: str


def variables(kinds: Iterable[Kind | Part]) -> dict[str, str]:
    """Return the variables of the rules for objects of these kinds."""
    cases = [f'object.kind == "{each.name}" ? {_pods(each)}' for each in kinds if each.pod_template]
    pods = "[object]" if tuple(kinds) == (POD,) else " :\n".join((*cases, "[]"))
    concerned = (
        f"variables.pods.filter(p, p.?metadata.?labels[?{_OURS}].hasValue() ||\n  {_ALL_CONTAINERS}.exists(c, {_ASKS}))"
    )
    return {"gpu": _GPU, "pods": pods, "concerned": concerned}


def _pods(kind: Kind | Part) -> str:
    """Return CEL for the list of an object's pod templates."""
    path = kind.pod_template or ()
    if "*" not in path:
        return f"[{'.'.join(('object', *path))}]"
    star = path.index("*")
    outer, inner = ".".join(("object", *path[:star])), ".".join(path[star + 1 :])
    return f"{outer}.map(k, {outer}[k].{inner})" if kind is PYTORCH_JOB else f"{outer}.map(r, r.{inner})"


def shm_rules() -> Iterator[Rule]:
    """Yield what holds under every policy: a training container has a sized Memory volume at /dev/shm."""
    mounted = "an emptyDir with medium Memory, mounted at /dev/shm, writable and whole"
    yield Rule(_training(_shm(_IN_MEMORY)), f"the training container needs {mounted}; without it /dev/shm has 64 MiB")
    yield Rule(
        _training(_shm(f"{_IN_MEMORY} &&\n    {_LIMITED}")),
        "the volume at /dev/shm needs a sizeLimit above 0; without one it may fill the memory of its node",
    )
    yield Rule(
        _training(_shm(f"{_IN_MEMORY} &&\n    {_LIMITED} &&\n    {_BELOW_MEMORY}")),
        "the sizeLimit of /dev/shm must be below the memory limit, which holds its pages too",
    )
    yield Rule(_each("!p.spec.?hostIPC.orValue(false)"), "hostIPC gives the node's /dev/shm in place of the pod's own")


def _shm(condition: str) -> str:
    of_it = f"p.spec.?volumes.orValue([]).exists(v, {condition})"
    alone = f"c.volumeMounts.filter(m, {_AT_SHM}).size() == 1"
    return f"c.?volumeMounts.orValue([]).exists(m, {_IS_SHM} &&\n    {of_it}) && {alone}"


def _training(condition: str) -> str:
    """Return CEL for a condition on each container that trains; without GPUs on one of the pod's."""
    return _each(
        f"p.spec.containers.exists(c, {_ASKS}) ?\n"
        f"  p.spec.containers.all(c, !{_ASKS} ||\n    {condition}) :\n"
        f"  p.spec.containers.exists(c,\n    {condition})"
    )


def _each(condition: str) -> str:
    return f"variables.concerned.all(p, {condition})"


def asked_rules(policy: Policy, kinds: tuple[Kind | Part, ...]) -> Iterator[Rule]:
    """Yield what the policies in force ask beyond that, as far as a server can see it."""
    yield from _ceilings(policy)
    yield from _images(policy)
    yield from _lists(policy)
    yield from _labels(policy)
    if POD in kinds:
        yield from _of_pods(policy)
    else:
        yield from _of_makers(policy)


def _ceilings(policy: Policy) -> Iterator[Rule]:
    for name, key, spell in (("memory", "memory", format_size), ("cpus", "cpu", lambda value: f"{value}m")):
        if name in policy.max:
            most = spell(policy.max[name].value)
            limit = _LIMIT % (f'"{key}"', f'"{key}"')
            above = f'{limit}.hasValue() && quantity(string({limit}.value())).isGreaterThan(quantity("%s"))'
            within = f"{above % 0} && !({above % most})"  # to the kernel a limit of 0 is none
            said = f"each container needs a limit of {key} of at most {most}"
            yield Rule(_each(f"{_ALL_CONTAINERS}.all(c, {within})"), said)
    if "shm_size" in policy.max:
        most = format_size(policy.max["shm_size"].value)
        above = f'quantity(string({_SIZE}.value())).isGreaterThan(quantity("{most}"))'
        memory = f'{_SIZE}.hasValue() && v.?emptyDir.?medium.orValue("") == "Memory"'
        yield Rule(
            _each(f"!p.spec.?volumes.orValue([]).exists(v, {memory} && {above})"),
            f"a volume in memory may have a sizeLimit of at most {most}",
        )
    ceilings = [policy.max[name].value for name in ("gpus", "total_gpus") if name in policy.max]
    if ceilings:
        yield from _gpus(min(ceilings))


def _gpus(most: int) -> Iterator[Rule]:
    """Yield that one container of a pod has GPUs, so many at most, and that nothing else gives it any."""
    limits = "c.?resources.?limits.orValue({})"
    above = f'{_IS_GPU} && quantity(string(c.resources.limits[k])).isGreaterThan(quantity("{most}"))'
    yield Rule(
        _each(
            f"!{_ALL_CONTAINERS}.exists(c, {limits}.exists(k, {above})) &&\n"
            f"  {_ALL_CONTAINERS}.filter(c, {_ASKS}).size() <= 1 &&\n"
            f"  {_ALL_CONTAINERS}.all(c, {limits}.filter(k, {_IS_GPU}).size() <= 1)"
        ),
        f"one container of a pod may ask for GPUs, under one name, and for at most {most}",
    )
    yield Rule(
        _each("p.spec.?resourceClaims.orValue([]).size() == 0"), "resource claims may be GPUs that no ceiling counts"
    )
    none = json.dumps(sorted(NO_GPUS))
    other = f'!e.name.endsWith("{GRANTS}") || e.name in {json.dumps(sorted(CHOOSE))}'
    variable = f'{other} || (!e.?valueFrom.hasValue() && e.?value.orValue("") in {none})'
    yield Rule(
        _each(f"{_ALL_CONTAINERS}.all(c, c.?env.orValue([]).all(e, {variable}))"),
        "NVIDIA_VISIBLE_DEVICES, or another vendor's, gives a container GPUs that no ceiling counts",
    )


def _images(policy: Policy) -> Iterator[Rule]:
    every = f"{_ALL_CONTAINERS}.map(c, c.image) + p.spec.?volumes.orValue([]).filter(v, v.?image.hasValue())"
    images = f'({every}.map(v, v.image.?reference.orValue("")))'
    for allowed in policy.allowed.get("allowed_registries", ()):
        patterns = [registry_pattern(each) for each in allowed.values]
        pattern = f"^(?:{'|'.join(patterns)})$"
        within = f"i.matches({json.dumps(pattern)})"
        if not any(each.startswith("localhost") for each in allowed.values):
            within += ' && !i.startsWith("localhost/")'  # which RE2 can't tell from a name of Docker Hub
        yield Rule(_each(f"{images}.all(i, {within})"), f"images come from {', '.join(allowed.values)}")
    if policy.digest_span is not None:
        yield Rule(_each(f'{images}.all(i, i.contains("@sha256:"))'), "images must be pinned by a digest")


def _lists(policy: Policy) -> Iterator[Rule]:
    for allowed in policy.allowed.get("allowed_namespaces", ()):
        said = f"training runs in the namespaces {', '.join(allowed.values)}"
        yield Rule(f"variables.concerned.size() == 0 || request.namespace in {json.dumps(allowed.values)}", said)
    for allowed in policy.allowed.get("allowed_service_accounts", ()):
        names = [*allowed.values, *([""] if "default" in allowed.values else [])]
        within = f'p.spec.?serviceAccountName.orValue("default") in {json.dumps(names)}'
        yield Rule(_each(within), f"service accounts are {', '.join(allowed.values)}")
    for allowed in policy.allowed.get("allowed_priority_classes", ()):
        within = f'p.spec.?priorityClassName.orValue("") in {json.dumps(["", *allowed.values])}'
        yield Rule(_each(within), f"priority classes are {', '.join(allowed.values)}")
    for allowed in policy.allowed.get("allowed_claims", ()):
        claim = "v.?persistentVolumeClaim.?claimName"
        named = f"(!{claim}.hasValue() || {claim}.value() in {json.dumps(allowed.values)})"
        within = f"!v.?ephemeral.hasValue() && !v.?csi.hasValue() && {named}"
        yield Rule(_each(f"p.spec.?volumes.orValue([]).all(v, {within})"), f"claims are {', '.join(allowed.values)}")
    for allowed in policy.allowed.get("allowed_extended", ()):
        known = f"k.matches({_NO_GPU}) || k in {json.dumps(allowed.values)}"
        of_each = f"{_ALL_CONTAINERS}.all(c, c.?resources.?limits.orValue({{}}).all(k, {_IS_GPU} || {known}))"
        yield Rule(_each(of_each), f"resources beside GPUs and network cards are {', '.join(allowed.values) or 'none'}")
    yield from _rights(policy)


def _rights(policy: Policy) -> Iterator[Rule]:
    if policy.token_span is not None:
        yield Rule(
            _each("!p.spec.?automountServiceAccountToken.orValue(true)"),
            "automountServiceAccountToken must be false: training needs no access to the API",
        )
        held = "v.?projected.?sources.orValue([]).exists(s, s.?serviceAccountToken.hasValue())"
        said = "no volume may hold a serviceAccountToken: training needs no access to the API"
        yield Rule(_each(f"!p.spec.?volumes.orValue([]).exists(v, {held})"), said)
    for allowed in policy.allowed.get("allowed_capabilities", ()):
        names = json.dumps(
            [f"{prefix}{each.removeprefix('CAP_')}" for each in allowed.values for prefix in ("", "CAP_")]
        )
        added = "c.?securityContext.?capabilities.?add.orValue([])"
        said = f"capabilities are {', '.join(allowed.values)}"
        yield Rule(_each(f"{_ALL_CONTAINERS}.all(c, {added}.all(k, k in {names}))"), said)
    if any("privileged" not in allowed.values for allowed in policy.allowed.get("allowed_pod_security", ())):
        privileged = "c.?securityContext.?privileged.orValue(false)"
        yield Rule(
            _each(
                f"!{_ALL_CONTAINERS}.exists(c, {privileged}) &&\n"
                "  !p.spec.?hostNetwork.orValue(false) && !p.spec.?hostPID.orValue(false) &&\n"
                "  !p.spec.?volumes.orValue([]).exists(v, v.?hostPath.hasValue())"
            ),
            "pods may be neither privileged nor use the host's network, processes or folders",
        )


def _labels(policy: Policy) -> Iterator[Rule]:
    for name, pattern, _ in policy.required_labels:
        found = f'p.?metadata.?labels[?{json.dumps(name)}].orValue("")'
        yield Rule(
            _each(f'{found} != "" && {found}.matches({json.dumps(f"^(?s:{pattern})$")})'),
            f"pods need the label {name}" + ("" if pattern == ".+" else f" with a value like {pattern}"),
        )


def _of_pods(policy: Policy) -> Iterator[Rule]:
    if "active_deadline" in policy.max:
        most = policy.max["active_deadline"].value
        yield Rule(
            "object.?metadata.?ownerReferences.orValue([]).size() > 0 ||\n"
            f"  {_each(f'p.spec.?activeDeadlineSeconds.hasValue() && p.spec.activeDeadlineSeconds <= {most}')}",
            f"a pod that nothing made needs activeDeadlineSeconds of at most {most}",
        )


_OF_NOBODY = "object.?metadata.?ownerReferences.orValue([]).size() == 0"
_CONCERNED = f'({_OF_NOBODY} && (variables.concerned.size() > 0 || object.kind == "{TRAIN_JOB.name}"))'
_DEADLINES = (
    "object.spec.?activeDeadlineSeconds",  # Job, TrainJob
    "object.spec.?runPolicy.?activeDeadlineSeconds",  # PyTorchJob
)


def _of_makers(policy: Policy) -> Iterator[Rule]:
    """Yield rules of the objects that controllers make pods of; those that another object made follow from it."""
    for allowed in policy.allowed.get("allowed_queues", ()):
        queue = f'object.?metadata.?labels[?"{KUEUE_QUEUE_LABEL}"].orValue("")'
        within = f'!{_CONCERNED} || object.kind == "TrainingRuntime" ||\n  {queue} in {json.dumps(allowed.values)}'
        yield Rule(within, f"the object needs the label {KUEUE_QUEUE_LABEL} with {' or '.join(allowed.values)}")
    if "active_deadline" in policy.max:
        most = policy.max["active_deadline"].value
        stated = " ||\n  ".join(f"({each}.hasValue() && {each}.value() <= {most})" for each in _DEADLINES)
        inner = (
            "object.spec.?replicatedJobs.orValue([]).size() > 0 && object.spec.replicatedJobs.all(r,\n"
            "    r.template.spec.?activeDeadlineSeconds.hasValue() && "
            f"r.template.spec.activeDeadlineSeconds <= {most})"
        )
        yield Rule(
            f'!{_CONCERNED} || object.kind == "TrainingRuntime" ||\n  {stated} ||\n  ({inner})',
            f"the object needs activeDeadlineSeconds of at most {most}",
        )
    if "total_gpus" in policy.max:
        most = policy.max["total_gpus"].value
        yield Rule(_total(most), f"all pods of the object together may ask for at most {most} GPUs")


def _total(most: int) -> str:
    """Return CEL for the GPUs of all pods, where one group of an object asks for some; of PyTorchJob all do."""
    above = f"{_IS_GPU} && %s * int(string(c.resources.limits[k])) > {most}"
    gpus = f"c.?resources.?limits.orValue({{}}).exists(k, {above})"
    groups = [f"object.spec.pytorchReplicaSpecs.{each}" for each in ("Master", "Worker")]
    replicas = " + ".join(f"(has({each}) ? {each}.?replicas.orValue(1) : 0)" for each in groups)
    of_pytorch = f"!variables.pods.exists(p, {_ALL_CONTAINERS}.exists(c, {gpus % f'({replicas})'}))"
    of_job = f"!{_containers('object.spec.template')}.exists(c, {gpus % 'object.spec.?parallelism.orValue(1)'})"
    count = "r.?replicas.orValue(1) * r.template.spec.?parallelism.orValue(1)"
    of_group = _containers("r.template.spec.template")
    group = f"{of_group}.exists(c, {gpus % f'({count})'})"
    asking = f"%s.filter(r, {of_group}.exists(c, {_ASKS})).size() <= 1"
    sets = "object.spec.replicatedJobs"
    inner = "object.spec.template.spec.replicatedJobs"
    nodes = "object.spec.?mlPolicy.?numNodes.orValue(1)"
    of_runtime = f"!{inner}.exists(r, {of_group}.exists(c, {gpus % nodes}))"
    # What a node of it has is in a runtime that an object of another name holds: at least one GPU.
    of_train_job = f"object.spec.?trainer.?numNodes.orValue(1) <= {most}"
    return (
        f'object.kind == "Job" ? {of_job} :\n'
        f'object.kind == "JobSet" ? !{sets}.exists(r, {group}) && {asking % sets} :\n'
        f'object.kind == "{PYTORCH_JOB.name}" ? {of_pytorch} :\n'
        f'object.kind == "TrainingRuntime" ? {of_runtime} && {asking % inner} : {of_train_job}'
    )


def _containers(template: str) -> str:
    """Return CEL for all containers of a pod template."""
    return f"({template}.spec.containers + {template}.spec.?initContainers.orValue([]))"
