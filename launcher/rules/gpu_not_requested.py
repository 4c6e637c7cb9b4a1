"""A training container shows that it means a GPU, and asks for none.

**Why it matters**: the scheduler gives it a node, or the engine starts it, without one: training runs on the CPU, or
stops with `No CUDA GPUs are available`.

**Example**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  containers:
  - {name: train, image: "trainer:1", command: [python, train.py]}
```

**Use instead**:

```kubernetes
apiVersion: v1
kind: Pod
metadata: {name: train}
spec:
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  containers:
  - name: train
    image: trainer:1
    command: [python, train.py]
    resources: {limits: {memory: 16Gi, nvidia.com/gpu: 1}}
    volumeMounts: [{name: dshm, mountPath: /dev/shm}]
  volumes: [{name: dshm, emptyDir: {medium: Memory, sizeLimit: 4Gi}}]
```

**Fix**: none by itself: how many are meant can't be told.

**References**: Kubernetes, Schedule GPUs; docker run --gpus.
"""

from __future__ import annotations

from collections.abc import Iterator

from launcher.diagnostics import Diagnostic, Severity
from launcher.formats.workload import Known, stated
from launcher.rules.written.commands import stated_ranks
from launcher.rules.written.evidence import has_gpu, is_fragment, trains
from launcher.rules.written.model import COMPOSE, DEFECTS, KUBERNETES, Finding, Written, WrittenFile, at, text_at
from launcher.yamltree.documents import Mapping, Sequence

CODE = "TL352"
NAME = "gpu-not-requested"
SEVERITY = Severity.WARNING
GROUP = DEFECTS
_TAINTS = frozenset({"nvidia.com/gpu", "amd.com/gpu", "cloud.google.com/gke-accelerator"})


def check_written(file: WrittenFile) -> Iterator[Finding]:
    """Yield a warning for each training container without a GPU beside whose words one is meant."""
    for written in file.containers:
        workload = written.workload
        if has_gpu(workload) or workload.gpus is not None or is_fragment(written) or not trains(written):
            continue
        reason = _reason(written)
        if not reason or "unclear" in workload.rest:
            continue
        fix = {KUBERNETES: "add nvidia.com/gpu to resources.limits", COMPOSE: "add gpus: all to the service"}
        yield Finding(
            Diagnostic(
                CODE,
                f"{reason}, and the container asks for no GPU",
                fix.get(workload.format, "add --gpus all"),
                why="without a request training runs on the CPU, or finds no CUDA",
                severity=SEVERITY,
                span=workload.span,
                field=workload.place,
            ),
            NAME,
        )


def _reason(written: Written) -> str:
    workload = written.workload
    if workload.format == KUBERNETES:
        return _of_pod(written)
    for name in ("NVIDIA_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        value = stated(workload.env.get(name))
        runtime = workload.rest.get("service.runtime") or workload.rest.get("--runtime")
        if value and value not in {"none", "void", "-1", "NoDevFiles"} and runtime is None:
            return f"{name} is {value}"
    return ""


def _of_pod(written: Written) -> str:
    pod = written.pod
    tolerations = at(pod, "tolerations")
    for each in tolerations.items if isinstance(tolerations, Sequence) else ():
        key = text_at(each, "key") or ""
        if key in _TAINTS:
            return f"the pod tolerates {key}"
    selector = at(pod, "nodeSelector")
    for key in selector.items if isinstance(selector, Mapping) else ():
        if key.startswith("nvidia.com/") or "accelerator" in key:
            return f"the pod selects nodes by {key}"
    if text_at(pod, "runtimeClassName") == "nvidia":
        return "the pod's runtimeClassName is nvidia"
    ranks = stated_ranks(written.argvs)
    visible = written.workload.env.get("CUDA_VISIBLE_DEVICES")
    if ranks and isinstance(visible, Known) and visible.value not in {"", "-1"}:
        return f"CUDA_VISIBLE_DEVICES is {visible.value}"
    return ""
