"""A worker gives no batch."""

from __future__ import annotations

from launcher.diagnose.symptoms.fork_deadlock import FIX
from launcher.diagnostics import Diagnostic, Explanation
from launcher.measure.finding import Finding
from launcher.units import counted

TL707 = Explanation(
    "TL707",
    "worker-hang",
    "The script waits for a batch that its workers don't give, and one of them stands still.",
    """\
**Why**: a worker that waits for a lock, a connection or a child of its own gives no batch, and the script waits for it
without an end, since DataLoader's default timeout is 0: for ever. The stack is the worker's own, from the moment when
probe had waited long enough, or when the loader's timeout ran out. A lock that another thread held when the worker was
forked is the most frequent reason.

**Example**:

```python
lock = threading.Lock()
threading.Thread(target=report, args=(lock,), daemon=True).start()


class Images(Dataset):
    def __getitem__(self, index):
        with lock:  # held at the fork, and never released in the worker
            return decode(self.paths[index])


loader = DataLoader(Images(), num_workers=4)
```

**Write instead**:

```python
loader = DataLoader(Images(), num_workers=4, multiprocessing_context="forkserver", timeout=120)
```
""",
)


def said(finding: Finding) -> Diagnostic:
    """Facts: seconds `waited`, the `worker` with its place `at` and `function`, `threads` alive at the fork."""
    facts = finding.facts
    waited, workers, batches = round(float(facts["waited"])), int(facts["num_workers"]), int(facts["batches"])
    at, threads = str(facts["at"]), ", ".join(str(each) for each in facts["threads"])
    who = f"{counted(workers, 'worker')} gave no batch for {waited} s, after {batches} batches"
    stands = f"; worker {facts['worker']} stands at {at} in {facts['function']}" if at else ""
    forked = bool(threads) and facts["start_method"] == "fork"
    return Diagnostic(
        TL707.code,
        who + stands,
        FIX if forked else f"look at what {at or 'a worker'} waits for; timeout=120 of DataLoader ends such a wait",
        why=f"a lock that {threads} held when the worker was forked is never released in it"
        if forked
        else "the script waits for a worker for ever, as timeout is 0 by default",
    )
