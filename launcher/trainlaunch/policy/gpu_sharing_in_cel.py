"""Whether a pod `p` shows that it shares a GPU with others, as CEL: by NVIDIA's MPS, or by turns.

NVIDIA's device plugin mounts a /dev/shm of its own into what shares by MPS, where clients and daemon meet.
"""

from __future__ import annotations

import json

from trainlaunch.policy.objects_in_cel import ALL_CONTAINERS, ASKED

# Labels of nodes, NVIDIA's and clouds' own, whose every value but these says that GPUs are shared.
_KEY = (
    r"(?i)gpu-?sharing|sharing-strategy|shared-(?:clients|gpu)|gpu\.(?:shared|replicas)"
    r"|(?:^|[./_-])mps(?:[./_-]|$)|time-?slic"
)
_NOT = json.dumps(["", "none", "None", "false", "False", "no", "0", "1", "exclusive"])
_VALUE = r"(?i)(?:^|[._-])(?:mps|shared|time-?(?:slic|shar)\w*)(?:[._-]|$)"
_RESOURCE = r"[._-]shared$"


def _has(text: str, pattern: str) -> str:
    return f"{text}.matches({json.dumps(pattern)})"


def _shows(key: str, value: str) -> str:
    return f"({_has(key, _KEY)} && !({value} in {_NOT})) || {_has(value, _VALUE)}"


def _terms() -> str:
    """Return CEL for whether an affinity, asked or preferred, wants a node whose GPUs are shared."""
    affinity = "p.spec.?affinity.?nodeAffinity"
    asked = f"{affinity}.?requiredDuringSchedulingIgnoredDuringExecution.?nodeSelectorTerms.orValue([])"
    preferred = f"{affinity}.?preferredDuringSchedulingIgnoredDuringExecution.orValue([]).map(s, s.preference)"
    listed = f'x.?operator.orValue("") == "In" && x.?values.orValue([]).exists(v, {_shows("x.key", "v")})'
    present = f'x.?operator.orValue("") in ["Exists", "Gt"] && {_has("x.key", _KEY)}'
    return f"({asked} + {preferred}).exists(s, s.?matchExpressions.orValue([]).exists(x, ({listed}) || ({present})))"


_SELECTED = f"p.spec.?nodeSelector.orValue({{}}).exists(k, {_shows('k', 'p.spec.nodeSelector[k]')})"
_OF_TOLERATION = 'o.?%s.orValue("")'
_TOLERATED = f"p.spec.?tolerations.orValue([]).exists(o, {_shows(_OF_TOLERATION % 'key', _OF_TOLERATION % 'value')})"
_ASKED = " || ".join(f"c.?resources.?{each}.orValue({{}}).exists(k, {_has('k', _RESOURCE)})" for each in ASKED)
_CLIENT = 'c.?env.orValue([]).exists(e, e.name.startsWith("CUDA_MPS_"))'
_HOST_PATH = 'v.?hostPath.?path.orValue("")'
_MOUNTED = f"p.spec.?volumes.orValue([]).exists(v, {_has(_HOST_PATH, '(?:^|[/_-])mps(?:[/_-]|$)')})"

SHARES_GPU = (
    f"{_SELECTED} ||\n  {_terms()} ||\n  {_TOLERATED} ||\n  {_MOUNTED} ||\n"
    f"  {ALL_CONTAINERS}.exists(c, {_ASKED} || {_CLIENT})"
)
