"""What a policy asks, as CEL over lists of pods: each rule is true where all is well.

The lists and other variables are those of `objects_in_cel`. In a pod that trains, its containers with GPUs train.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from trainlaunch.formats.gpus import NO_ACCELERATOR
from trainlaunch.job.ceilings import Policy
from trainlaunch.job.reserved import KUEUE_PRIORITY_LABEL, KUEUE_QUEUE_LABEL
from trainlaunch.kinds import POD, TRAIN_JOB, TRAINING_RUNTIME, AuxiliaryObject, Kind
from trainlaunch.policy.demands import POD_TOKENS, POD_VOLUMES, absolute
from trainlaunch.policy.gpus_in_cel import counted_gpus, gpu_rules
from trainlaunch.policy.objects_in_cel import (
    ALL_CONTAINERS,
    ASKED,
    IS_GPU,
    IS_OURS,
    LASTING_CONTAINERS,
    PRIVILEGED,
    Rule,
    each_of,
    matches,
)
from trainlaunch.policy.registry import registry_pattern
from trainlaunch.policy.training_in_cel import HAS_GPUS
from trainlaunch.units import format_size

_WHOLE = "!m.?readOnly.orValue(false) && !m.?subPath.hasValue() && !m.?subPathExpr.hasValue()"
IS_SHM = f'm.mountPath.matches("^/dev/shm/*$") && {_WHOLE}'
# Another spelling of it would lie above the first; a path that goes back by dots may be one.
DEV_SHM = r"^(?:\.?/)*dev/+(?:\./+)*shm(?:/+\.?)*$"
_BACK = r"(?:^|/)\.\./(?:.*/)?shm(?:/|$)|(?:^|/)shm/(?:.*/)?\.\.(?:/|$)"
AT_SHM = f"m.mountPath.matches({json.dumps(f'{DEV_SHM}|{_BACK}')})"
IN_MEMORY = 'v.name == m.name && v.?emptyDir.?medium.orValue("") == "Memory"'
_SIZE = "v.?emptyDir.?sizeLimit"


def limit_of(key: str, container: str = "c", pod: str = "p") -> str:
    """Return CEL for the limit that holds for a container: its own, else its pod's."""
    return f'{container}.?resources.?limits[?"{key}"].or({pod}.spec.?resources.?limits[?"{key}"])'


def _above(quantity: str, most: str | int) -> str:
    return f'quantity(string({quantity})).isGreaterThan(quantity("{most}"))'


LIMITED = f"{_SIZE}.hasValue() && {_above(f'{_SIZE}.value()', 0)}"
BELOW_MEMORY = (
    "{limit}.hasValue() && quantity(string({size}.value())).isLessThan(quantity(string({limit}.value())))"
).format(limit=limit_of("memory"), size=_SIZE)


def shm_rules(pods: str = "concerned") -> Iterator[Rule]:
    """Yield what holds under every policy: a training container of `pods` has a sized Memory volume at /dev/shm."""
    mounted = "an emptyDir with medium Memory, mounted at /dev/shm, writable and whole"
    yield Rule(
        _training(shm_volume(IN_MEMORY), pods),
        f"the training container needs {mounted}; without it /dev/shm has 64 MiB",
    )
    yield Rule(
        _training(shm_volume(f"{IN_MEMORY} &&\n    {LIMITED}"), pods),
        "the volume at /dev/shm needs a sizeLimit above 0; without one it may fill the memory of its node",
    )
    too_large = f"p.spec.?volumes.orValue([]).exists(v, {IN_MEMORY} && {LIMITED} &&\n    !({BELOW_MEMORY}))"
    below = f"!c.?volumeMounts.orValue([]).exists(m, {IS_SHM} &&\n    {too_large})"
    sized = _training(shm_volume(f"{IN_MEMORY} &&\n    {LIMITED} &&\n    {BELOW_MEMORY}"), pods)
    yield Rule(
        f"{sized} &&\n  {_resized('memory', below)}",
        "the sizeLimit of /dev/shm must be below the memory limit, which holds its pages too",
    )
    yield Rule(
        each_of("!p.spec.?hostIPC.orValue(false)"), "hostIPC gives the node's /dev/shm in place of the pod's own"
    )


def _resized(key: str, condition: str, kept: str = "false") -> str:
    """Return CEL for a condition on each container whose limit a resize changes, but where it is `kept` below `old`."""
    old = limit_of(key, "o", "variables.old")
    same = f"o.name == c.name && ({old} == {limit_of(key)} || ({kept.format(old=old)}))"
    within = f"variables.unresized.exists(o, {same}) ||\n  {condition}"
    return f"[variables.made].all(p, variables.resizing.all(c, {within}))"


def shm_volume(condition: str) -> str:
    """Return CEL for whether a container `c` of a pod `p` has at /dev/shm one volume `v` of which a condition holds."""
    of_it = f"p.spec.?volumes.orValue([]).exists(v, {condition})"
    alone = f"c.volumeMounts.filter(m, {AT_SHM}).size() == 1"
    return f"c.?volumeMounts.orValue([]).exists(m, {IS_SHM} &&\n    {of_it}) && {alone}"


def _training(condition: str, pods: str) -> str:
    """Return CEL for a condition on each container that trains; without GPUs on one of the pod's.

    A pod that only claims devices which don't call themselves GPUs may need nothing at /dev/shm.
    """
    return each_of(
        f"p.spec.containers.exists(c, {HAS_GPUS}) ?\n"
        f"  p.spec.containers.all(c, !{HAS_GPUS} ||\n    {condition}) :\n"
        f"  (!({IS_OURS} || {ALL_CONTAINERS}.exists(c, {HAS_GPUS})) || p.spec.containers.exists(c,\n    {condition}))",
        pods,
    )


def asked_rules(policy: Policy, kinds: Sequence[Kind | AuxiliaryObject]) -> Iterator[Rule]:
    """Yield what the policies in force ask beyond that, as far as a server can see it."""
    yield from _ceilings(policy)
    yield from _images(policy)
    yield from _lists(policy)
    yield from _volumes(policy)
    yield from _rights(policy)
    yield from _labels(policy)
    if POD in kinds:
        yield from _of_pods(policy)
    else:
        yield from _of_makers(policy)


def _ceilings(policy: Policy) -> Iterator[Rule]:
    for name, key, spell in (("memory", "memory", format_size), ("cpus", "cpu", lambda value: f"{value}m")):
        if name in policy.max:
            most = spell(policy.max[name].value)
            limit = limit_of(key)
            limited = f"{limit}.hasValue() && {_above(f'{limit}.value()', 0)}"  # to the kernel a limit of 0 is none
            request = f'c.?resources.?requests[?"{key}"]'
            asked = f"({request}.hasValue() && {_above(f'{request}.value()', most)})"
            within = f"{limited} && !{_above(f'{limit}.value()', most)} && !{asked}"
            higher = f"quantity(string({limit}.value())).isGreaterThan(quantity(string({{old}}.value())))"
            lowered = f"{limited} && {{old}}.hasValue() && !{higher}"
            yield Rule(
                f"{each_of(f'{LASTING_CONTAINERS}.all(c, {within})')} &&\n  {_resized(key, within, lowered)}",
                f"each container needs a limit of {key} of at most {most}",
            )
    if "shm_size" in policy.max:
        most = format_size(policy.max["shm_size"].value)
        memory = f'{_SIZE}.hasValue() && v.?emptyDir.?medium.orValue("") == "Memory"'
        yield Rule(
            each_of(f"!p.spec.?volumes.orValue([]).exists(v, {memory} && {_above(f'{_SIZE}.value()', most)})"),
            f"a volume in memory may have a sizeLimit of at most {most}",
        )
    ceilings = [policy.max[name].value for name in ("gpus", "total_gpus") if name in policy.max]
    if ceilings:
        yield from gpu_rules(min(ceilings))


def _images(policy: Policy) -> Iterator[Rule]:
    # A runtime's container may have none, which its TrainJob then gives.
    images = f"({ALL_CONTAINERS}.map(c, c.?image) + p.spec.?volumes.orValue([]).map(v, v.?image.?reference))"
    every = f"{images}.filter(i, i.hasValue()).map(i, i.value()).all(i, %s)"
    for allowed in policy.allowed.get("allowed_registries", ()):
        patterns = [registry_pattern(each) for each in allowed.values]
        within = matches("i", "|".join(patterns))
        if not any(each.startswith("localhost") for each in allowed.values):
            within += ' && !i.startsWith("localhost/")'  # which RE2 can't tell from a name of Docker Hub
        yield Rule(each_of(every % within, "held"), f"images come from {', '.join(allowed.values)}")
    if policy.digest_span is not None:
        yield Rule(each_of(every % 'i.contains("@sha256:")', "held"), "images must be pinned by a digest")


def _lists(policy: Policy) -> Iterator[Rule]:
    for allowed in policy.allowed.get("allowed_namespaces", ()):
        yield Rule(
            f"variables.concerned.size() == 0 || request.namespace in {json.dumps(allowed.values)}",
            f"training runs in the namespaces {', '.join(allowed.values)}",
        )
    for allowed in policy.allowed.get("allowed_service_accounts", ()):
        names = [*allowed.values, *([""] if "default" in allowed.values else [])]
        yield Rule(
            each_of(f'p.spec.?serviceAccountName.orValue("default") in {json.dumps(names)}'),
            f"service accounts are {', '.join(allowed.values)}",
        )
    for allowed in policy.allowed.get("allowed_priority_classes", ()):
        within = f'p.spec.?priorityClassName.orValue("") in {json.dumps(["", *allowed.values])}'
        of_kueue = f'p.?metadata.?labels[?"{KUEUE_PRIORITY_LABEL}"].orValue("") in {json.dumps(["", *allowed.values])}'
        yield Rule(each_of(f"{within} &&\n  {of_kueue}"), f"priority classes are {', '.join(allowed.values)}")
    for allowed in policy.allowed.get("allowed_extended", ()):
        others = ", ".join(allowed.values) or "none"
        known = f"{IS_GPU} || {matches('k', NO_ACCELERATOR)} || k in {json.dumps(allowed.values)}"
        named = " && ".join(f"c.?resources.?{each}.orValue({{}}).all(k, {known})" for each in ASKED)
        yield Rule(
            each_of(f"{ALL_CONTAINERS}.all(c, {named})", "entering"),
            f"resources beside GPUs and network cards are {others}: another may be a part of a GPU",
        )


def _volumes(policy: Policy) -> Iterator[Rule]:
    every = "p.spec.?volumes.orValue([]).all(v, %s)"
    for allowed in policy.allowed.get("allowed_claims", ()):
        claim = "v.?persistentVolumeClaim.?claimName"
        named = f"(!{claim}.hasValue() || {claim}.value() in {json.dumps(allowed.values)})"
        within = f"v.all(k, k in {json.dumps(sorted(POD_VOLUMES))}) && {named}"
        yield Rule(each_of(every % within, "held"), f"PVCs are {', '.join(allowed.values)}")
    for allowed in policy.allowed.get("allowed_host_paths", ()):
        folders = json.dumps([absolute(allowed.span.file, each).rstrip("/") for each in allowed.values])
        path = "v.hostPath.path"
        below = f'{folders}.exists(f, {path} == f || {path}.startsWith(f + "/")) && !{path}.contains("..")'
        within = f"!v.?hostPath.hasValue() || ({below})"
        yield Rule(each_of(every % within, "held"), f"folders of the host are {', '.join(allowed.values)}")
    if policy.token_span is not None:
        named = " || ".join(f"s.?{each}.hasValue()" for each in POD_TOKENS)
        held = f"v.?projected.?sources.orValue([]).exists(s, {named})"
        yield Rule(
            each_of(every % f"!{held}", "held"),
            f"no volume may hold a {' or '.join(POD_TOKENS)}: training needs no access to the API",
        )


def _rights(policy: Policy) -> Iterator[Rule]:
    if policy.token_span is not None:
        yield Rule(
            each_of("!p.spec.?automountServiceAccountToken.orValue(true)"),
            "automountServiceAccountToken must be false: training needs no access to the API",
        )
    for allowed in policy.allowed.get("allowed_capabilities", ()):
        names = json.dumps(
            [f"{prefix}{each.removeprefix('CAP_')}" for each in allowed.values for prefix in ("", "CAP_")]
        )
        added = "c.?securityContext.?capabilities.?add.orValue([])"
        yield Rule(
            each_of(f"{ALL_CONTAINERS}.all(c, {added}.all(k, k in {names}))", "held"),
            f"capabilities are {', '.join(allowed.values)}",
        )
    if any("privileged" not in allowed.values for allowed in policy.allowed.get("allowed_pod_security", ())):
        yield Rule(
            each_of(
                f"!{ALL_CONTAINERS}.exists(c, {PRIVILEGED}) &&\n"
                "  !p.spec.?hostNetwork.orValue(false) && !p.spec.?hostPID.orValue(false) &&\n"
                "  !p.spec.?volumes.orValue([]).exists(v, v.?hostPath.hasValue())",
                "held",
            ),
            "pods may be neither privileged nor use the host's network, processes or folders",
        )


def _labels(policy: Policy) -> Iterator[Rule]:
    for name, pattern, _ in policy.required_labels:
        found = f'p.?metadata.?labels[?{json.dumps(name)}].orValue("")'
        yield Rule(
            each_of(f'{found} != "" && {found}.matches({json.dumps(f"^(?s:{pattern})$")})'),
            f"pods need the label {name}" + ("" if pattern == ".+" else f" with a value like {pattern}"),
        )


def _of_pods(policy: Policy) -> Iterator[Rule]:
    if "active_deadline" in policy.max:
        most = policy.max["active_deadline"].value
        within = f"p.spec.?activeDeadlineSeconds.hasValue() && p.spec.activeDeadlineSeconds <= {most}"
        yield Rule(
            # Nobody can take it from a pod, or raise it.
            f'request.operation == "UPDATE" || variables.trusted ||\n  {each_of(within)}',
            f"a pod that no judged object's controller made needs activeDeadlineSeconds of at most {most}",
        )


def _of_makers(policy: Policy) -> Iterator[Rule]:
    """Yield rules of the objects that controllers make pods of; those that another object made follow from it."""
    judged = "!variables.{new} || variables.trusted || !variables.trains ||\n  "
    for allowed in policy.allowed.get("allowed_queues", ()):
        exempt = f'variables.made.kind == "{TRAINING_RUNTIME.name}" || '
        yield Rule(
            f"{judged.format(new='queue_is_new')}{exempt}variables.queue in {json.dumps(allowed.values)}",
            f"the object needs the label {KUEUE_QUEUE_LABEL} with {' or '.join(allowed.values)}",
        )
    for allowed in policy.allowed.get("allowed_priority_classes", ()):
        yield Rule(
            f"{judged.format(new='priority_is_new')}variables.priority in {json.dumps(['', *allowed.values])}",
            f"the label {KUEUE_PRIORITY_LABEL} may be {' or '.join(allowed.values)}",
        )
    if "active_deadline" in policy.max:
        most = policy.max["active_deadline"].value
        yield Rule(
            f"{judged.format(new='deadlines_are_new')}variables.deadlines.all(d, 0 < d && d <= {most})",
            f"the object needs activeDeadlineSeconds of at most {most}",
        )
    if "total_gpus" in policy.max:
        most = policy.max["total_gpus"].value
        yield Rule(_total(most), f"all pods of the object together may ask for at most {most} GPUs")
        replicas = "variables.%s.?spec.?replicas.orValue(0)"
        yield Rule(
            f'variables.made.kind != "Scale" || {replicas % "made"} <= {replicas % "old"}',
            "scale doesn't say how many GPUs more replicas have: change replicas in the object itself",
        )


def _total(most: int) -> str:
    """Return CEL for the GPUs of all pods; an object that was there before may have as many as it had, or fewer."""
    of_group = f"int(g.count) * [g.pod].map(p, {counted_gpus(ALL_CONTAINERS)}).sum()"
    nodes = "variables.%s.spec.?trainer.?numNodes.orValue(1)"
    # What a node of it has is in a runtime that an object of another name holds: at least one GPU.
    of_train_job = (
        f'{nodes % "made"} <= {most} || (request.operation == "UPDATE" && {nodes % "made"} <= {nodes % "old"})'
    )
    return (
        f'variables.made.kind == "{TRAIN_JOB.name}" ? {of_train_job} :\n'
        f"  (variables.pods.size() == 0 && !variables.grown) ||\n  variables.groups.map(g, {of_group}).sum() <= {most}"
    )
