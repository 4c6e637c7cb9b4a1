"""A request for GPUs that its reader refuses.

**Why it matters**: Kubernetes takes GPUs under limits, whole ones, with an equal request or none (`Limit must be set
for non overcommitable resources`). Compose wants `capabilities`, and either a count or ids; its short form `gpus`
knows the word all and a list.

**Example**:

```compose
services:
  train:
    image: trainer:1
    shm_size: 4gb
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1}]}}}
```

**Use instead**:

```compose
services:
  train:
    image: trainer:1
    shm_size: 4gb
    deploy: {resources: {reservations: {devices: [{driver: nvidia, count: 1, capabilities: [gpu]}]}}}
```

**Fix**: none by itself.

**References**: Compose deploy specification, devices; Kubernetes, Schedule GPUs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.gpus import GPU_RESOURCE
from launcher.rules.written.evidence import is_fragment
from launcher.rules.written.model import COMPOSE, DEFECTS, KUBERNETES, Finding, Written, WrittenFile, at
from launcher.yamltree.documents import Mapping, Node, Scalar, Sequence

CODE = "TL366"
NAME = "gpu-request-refused"
SEVERITY = Severity.ERROR
GROUP = DEFECTS
_PART = re.compile(r"[0-9]*\.0*[1-9][0-9]*|[0-9]*[1-9][0-9]?m")


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield an error for each request for GPUs in a form that Kubernetes or Compose refuses."""
    for written in file.containers:
        found = {COMPOSE: _of_compose, KUBERNETES: _of_kubernetes}.get(file.kind)
        for node, message, fix in found(written) if found else ():
            yield Finding(
                Diagnostic(
                    CODE,
                    message,
                    fix,
                    why="the reader of this file stops with an error, and nothing starts",
                    severity=SEVERITY,
                    span=node.span,
                    field=written.workload.place,
                ),
                NAME,
            )


def _of_compose(written: Written) -> Iterator[tuple[Node, str, str]]:
    short = at(written.own, "gpus")
    if isinstance(short, Scalar) and "$" not in short.text and short.text != "all":
        yield short, f"gpus is {short.raw}, and takes the word all or a list of requests", "write gpus: all"
    listed = at(written.own, "deploy", "resources", "reservations", "devices")
    for each in listed.items if isinstance(listed, Sequence) else ():
        if not isinstance(each, Mapping):
            continue
        if "capabilities" not in each.items:
            yield each, "a reserved device states no capabilities", "add capabilities: [gpu]"
        elif "count" in each.items and "device_ids" in each.items:
            yield each, "a reserved device states a count and device_ids", "keep one of count and device_ids"


def _of_kubernetes(written: Written) -> Iterator[tuple[Node, str, str]]:
    limits, requests = (at(written.own, "resources", each) for each in ("limits", "requests"))
    if isinstance(limits, Mapping):
        for name, node in limits.items.items():
            if _is_gpu(name) and isinstance(node, Scalar) and _PART.fullmatch(node.text):
                yield node, f"{name} is {node.raw}, and GPUs are whole", f"write {name}: 1"
    for name, node in requests.items.items() if isinstance(requests, Mapping) else ():
        if not _is_gpu(name) or not isinstance(node, Scalar) or "{{" in node.text or is_fragment(written):
            continue
        limit = at(limits, name)
        if limit is None:
            fix = f"add {name}: {node.text} to resources.limits"
            yield node, f"{name} {node.text} is requested without an equal limit", fix
        elif isinstance(limit, Scalar) and "{{" not in limit.text and limit.text.strip() != node.text.strip():
            yield node, f"{name} is {node.text} in requests and {limit.text} in limits", f"write {limit.text} in both"


def _is_gpu(name: str) -> bool:
    return GPU_RESOURCE.fullmatch(name) is not None
