"""A part of a loader can't be pickled for its workers."""

from __future__ import annotations

from launcher.diagnostics import Diagnostic, Explanation, Severity
from launcher.measure.finding import Finding
from launcher.rules.written.scripts import PICKLE_FIX, PICKLE_WHY

TL701 = Explanation(
    "TL701",
    "unpicklable-part",
    "The dataset, a function of the loader or a batch has a part that can't be pickled.",
    """\
**Why**: spawn and forkserver send the dataset, collate_fn and worker_init_fn to each worker as a pickle, and a batch
comes back as one under every start method. A lambda and a function inside another have no name to find them by; a
generator, an open file or a lock can't be copied at all. fork pickles no dataset, so a script can work for years and
stop with `Can't pickle local object` once its image has Python 3.14, whose default on Linux is forkserver. What comes
out of a worker unpicklable is lost without an end: the job hangs.

**Example**:

```python
class Images(Dataset):
    def __init__(self):
        self.transform = lambda image: image / 255
```

**Write instead**:

```python
def scaled(image):
    return image / 255


class Images(Dataset):
    def __init__(self):
        self.transform = scaled
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: `part` of the loader, `path` in it, its `class`, `name` and `at`, num_workers and start_method."""
    facts = finding.facts
    part, path, method, workers = facts["part"], facts["path"], str(facts["start_method"]), int(facts["num_workers"])
    stops = workers > 0 and (part == "batch" or method != "fork")
    return Diagnostic(
        TL701.code,
        f"{path} is {_what(finding)}, which can't be pickled",
        _fix(finding),
        why=_why(part, method, workers),
        severity=Severity.ERROR if stops else Severity.WARNING,
    )


def _what(finding: Finding) -> str:
    facts = finding.facts
    at = f" ({facts['at']})" if facts["at"] else ""
    if facts["class"] == "function":
        return ("a lambda" if str(facts["name"]).endswith("<lambda>") else f"the local function {facts['name']}") + at
    return f"of class {facts['class']}"


def _why(part: str, method: str, workers: int) -> str:
    if part == "batch":
        return "a worker sends batches as pickles; one that can't be pickled is lost, and the job waits for it for ever"
    if method == "fork" or not workers:
        return f"{PICKLE_WHY}; fork doesn't, but forkserver is the default of Python 3.14"
    return f"{PICKLE_WHY}; these start by {method}"


def _fix(finding: Finding) -> str:
    if finding.facts["part"] == "batch":
        return "return tensors, arrays, numbers and text from __getitem__ and collate_fn"
    if finding.facts["class"] == "function":
        return f'{PICKLE_FIX}, or state multiprocessing_context="fork"'
    return 'make it in the worker, when it reads its first sample, or state multiprocessing_context="fork"'
