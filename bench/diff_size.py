"""How many lines of a rendered file change with one field of its job: what a reviewer of a committed one reads.

    python bench/diff_size.py

Prints a table, one row a change, one column a target, and exits with 1 where a row is above its bound. A line that was
changed counts once, whether it was there before, is there now, or both.
"""

from __future__ import annotations

import difflib
import sys
import tempfile
from pathlib import Path
from typing import Any

import yaml
from trainlaunch.policy import read_job
from trainlaunch.render import render
from trainlaunch.rules import plan_job
from trainlaunch.targets import text_targets

JOB: dict[str, Any] = {
    "name": "resnet50",
    "image": "registry.example.com/team/train:1.4",
    "command": ["python", "train.py", "--workers", "{num_workers}", "--batch-size={batch_size}"],
    "image_entrypoint": [],
    "labels": {"team": "vision"},
    "resources": {"cpus": 16, "memory": "64Gi", "gpus": 4},
    "torchrun": {},
    "data_loader": {
        "batch_size": 128,
        "sample": [{"shape": [3, 224, 224], "dtype": "float32"}, {"shape": [], "dtype": "int64"}],
        "loaders": {"train": {}, "val": {"batch_size": 256}},
    },
}
POLICY = "defaults: {env: {HF_HUB_OFFLINE: '0'}}\n"
# what changes: the field of the job, its new value, the most lines of a file that may change with it
CHANGES: dict[str, tuple[str, Any, int]] = {
    "memory": ("resources.memory", "96Gi", 6),
    "image": ("image", "registry.example.com/team/train:1.5", 5),
    "batch size": ("data_loader.batch_size", 64, 6),
    "GPUs": ("resources.gpus", 8, 9),
    "label": ("labels.team", "speech", 4),
    "policy default": ("", "", 2),
}


def changed(before: str, after: str) -> int:
    """Return the number of lines in which two texts differ."""
    steps = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False).get_opcodes()
    return sum(max(b - a, d - c) for kind, a, b, c, d in steps if kind != "equal")


def rendered(folder: Path, target: str, job: dict[str, Any], policy: str = POLICY) -> str:
    """Return what a job renders for a target under a policy."""
    (folder / "trainlaunch-policy.yaml").write_text(policy, encoding="utf-8")
    path = folder / "job.yaml"
    path.write_text(yaml.safe_dump(job, sort_keys=False), encoding="utf-8")
    return render(plan_job(read_job(path, target=target)), base=folder)


def with_value(job: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    """Return the job with another value of a dotted field."""
    name, _, below = field.partition(".")
    return {**job, name: with_value(job[name], below, value) if below else value}


def main() -> int:
    """Print the table; return 1 where a change is larger than its bound."""
    targets = text_targets()
    print(f"{'lines changed by':<18}{'at most':>8}" + "".join(f"{each:>12}" for each in targets))
    above = False
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for what, (field, value, most) in CHANGES.items():
            job = with_value(JOB, field, value) if field else JOB
            policy = POLICY if field else POLICY.replace("0", "1")
            counts = [changed(rendered(folder, each, JOB), rendered(folder, each, job, policy)) for each in targets]
            print(f"{what:<18}{most:>8}" + "".join(f"{each:>12}" for each in counts))
            above = above or max(counts) > most
    return int(above)


if __name__ == "__main__":
    sys.exit(main())
