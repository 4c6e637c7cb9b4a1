"""What a limit on GPUs asks of pods, as CEL: so many are asked for, and nothing else gives any.

The latter is asked of pods that ask for none too, since those are what gets GPUs past the limit.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from trainlaunch.formats.gpus import (
    CHOOSE,
    DEVICES_FOLDER,
    GRANTS,
    NO_GPUS,
    OTHER_NODES,
    RESOURCE_VARIABLE,
    VENDOR_VARIABLES,
)
from trainlaunch.policy.demands import NODES_ANNOTATION
from trainlaunch.policy.objects_in_cel import (
    ALL_CONTAINERS,
    ASKED,
    ASKS,
    DEVICES_ANNOTATION,
    IS_GPU,
    PRIVILEGED,
    Rule,
    each_of,
    matches,
)

_VOID = f'!e.?valueFrom.hasValue() && e.?value.orValue("") in {json.dumps(sorted(NO_GPUS))}'
_GRANTS = f'(e.name.endsWith("{GRANTS}") || e.name == "{RESOURCE_VARIABLE}")'
_CHOOSES = f"e.name in {json.dumps(sorted(CHOOSE))}"
_IS_VOID = f'c.?env.orValue([]).exists(e, e.name == "{VENDOR_VARIABLES[0]}" && {_VOID})'
_ANNOTATIONS = "p.?metadata.?annotations.orValue({})"
_HARMLESS = matches(f"{_ANNOTATIONS}[k]", f"(?:(?:{OTHER_NODES})(?::[^,]*)?(?:,|$))*")

# What gives GPUs, the pods that are asked, and CEL that is true of those that it doesn't give any.
_GIVERS = (
    (
        f"{VENDOR_VARIABLES[0]}, or another vendor's, gives a container GPUs",
        "entering",
        f"{ALL_CONTAINERS}.all(c, c.?env.orValue([]).all(e, !{_GRANTS} || {_CHOOSES} || ({_VOID})))",
    ),
    (
        f"envFrom without a prefix may give a container {VENDOR_VARIABLES[0]}, and so GPUs",
        "held",
        f"{ALL_CONTAINERS}.all(c, c.?envFrom.orValue([]).all(f,\n"
        f'    !{json.dumps(VENDOR_VARIABLES)}.exists(n, n.startsWith(f.?prefix.orValue("")))))',
    ),
    ("resource claims may be GPUs", "entering", "p.spec.?resourceClaims.orValue([]).size() == 0"),
    (
        "an annotation of CDI, NRI, CRI-O or KAI gives containers devices",
        "pods",  # an ephemeral container can't bring one
        f"!{_ANNOTATIONS}.exists(k, {matches('k', DEVICES_ANNOTATION)} ||\n"
        f"    ({matches('k', NODES_ANNOTATION.pattern)} && !{_HARMLESS}))",
    ),
    ("a privileged container has all GPUs of its node", "entering", f"!{ALL_CONTAINERS}.exists(c, {PRIVILEGED})"),
    (
        f"a mount below {DEVICES_FOLDER} gives a container GPUs",
        "entering",
        f'{ALL_CONTAINERS}.all(c, c.?volumeMounts.orValue([]).all(m, !m.mountPath.contains("{DEVICES_FOLDER}")))',
    ),
    (
        f"runtimeClassName nvidia, without {VENDOR_VARIABLES[0]}: void, gives a pod without GPUs all of its node",
        "entering",
        '!p.spec.?runtimeClassName.orValue("").contains("nvidia") ||\n'
        f"  {ALL_CONTAINERS}.exists(c, {ASKS}) || {ALL_CONTAINERS}.all(c, {_IS_VOID})",
    ),
)


def gpu_rules(most: int) -> Iterator[Rule]:
    """Yield that one container of a pod has GPUs, so many at most, and that nothing gives a container others."""
    above = f'{IS_GPU} && quantity(string(c.resources.%s[k])).isGreaterThan(quantity("{most}"))'
    asked = " || ".join(f"c.?resources.?{each}.orValue({{}}).exists(k, {above % each})" for each in ASKED)
    yield Rule(
        each_of(
            f"!{ALL_CONTAINERS}.exists(c, {asked}) &&\n"
            f"  {ALL_CONTAINERS}.filter(c, {ASKS}).size() <= 1 &&\n"
            f"  {ALL_CONTAINERS}.all(c, c.?resources.?limits.orValue({{}}).filter(k, {IS_GPU}).size() <= 1)"
        ),
        f"one container of a pod may ask for GPUs, under one name, and for at most {most}",
    )
    for giver, pods, gives_none in _GIVERS:
        yield Rule(each_of(gives_none, pods), f"{giver}, which no limit counts")


def counted_gpus(containers: str) -> str:
    """Return CEL for the number of GPUs that a list of containers has."""
    limits = "c.?resources.?limits.orValue({})"
    of_container = f"{limits}.filter(k, {IS_GPU}).map(k, quantity(string({limits}[k])).asInteger()).sum()"
    return f"{containers}.map(c, {of_container}).sum()"
