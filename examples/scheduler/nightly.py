"""Renders one job for several datasets, as a scheduler's own file would, and prints what it would apply.

python examples/scheduler/nightly.py examples/quickstart/job.yaml
"""

import sys
from pathlib import Path

from trainlaunch import api

DATASETS = ("digits", "letters")


def main(job_file: Path) -> None:
    """Print one Kubernetes manifest a dataset."""
    for dataset in DATASETS:
        sets = [f"name=nightly-{dataset}", f"env.DATASET={dataset}"]
        job = api.read_job(job_file, target="kubernetes", sets=sets)
        plan = api.plan(job)
        for finding in api.findings(plan):
            print(f"# {finding.severity.value}: {finding.message}", file=sys.stderr)
        print(f"# {plan.name}: {plan.shm.size.value >> 20} MiB of /dev/shm, {plan.num_workers.value} workers a loader")
        print(api.render(plan))
        print("---")


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]))
    except api.JobFileRejected as rejected:
        sys.exit("\n".join(f"{each.span}: {each.message}; {each.fix}" for each in rejected.diagnostics))
