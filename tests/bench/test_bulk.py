"""bench/bulk.py makes jobs that check accepts, and judges what it measures as it says."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.targets import text_targets

from bench import bulk as bench
from tests.conftest import Runs


def measured(jobs: int, *, wall: float = 1.0, cpu: float = 1.0, peak: float = 50.0) -> bench.Measured:
    """Return one size's figures."""
    return bench.Measured(jobs, jobs * 3, wall, cpu, peak)


def test_its_jobs_render_to_texts_of_their_own(trainlaunch: Runs, tmp_path: Path) -> None:
    """No two renderings are the same, and check finds all of them current."""
    bench.write_jobs(tmp_path, 12)
    texts = [path.read_text() for target in text_targets() for path in (tmp_path / target).iterdir()]
    assert len(set(texts)) == 36
    done = trainlaunch("check", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "checked 36 rendered files: 36 current\n")


@pytest.mark.parametrize(
    ("whole", "words"),
    [
        (measured(1000, wall=2.9, cpu=2.0, peak=149), []),
        (measured(1000, wall=3.1, cpu=2.0), ["3.10 s"]),
        (measured(1000, cpu=2.0, peak=151), ["151 MB"]),
        (measured(1000, cpu=3.0), ["1.50 × as long"]),
    ],
)
def test_each_part_of_the_goal_is_judged(whole: bench.Measured, words: list[str]) -> None:
    """Seconds, megabytes and growth, each alone."""
    failures = list(bench.missed([measured(250), measured(500), whole], bench.MOST_SECONDS))
    assert len(failures) == len(words)
    assert all(word in failure for word, failure in zip(words, failures, strict=True))


def test_render_is_measured_on_an_empty_folder(tmp_path: Path) -> None:
    """A second run writes all of it again, and a failing one is no measurement."""
    bench.write_jobs(tmp_path, 2)
    for _ in range(2):
        assert all(each > 0 for each in bench.run_once(tmp_path, renders=True))
        assert len(list((tmp_path / "out").iterdir())) == 6
    (tmp_path / "jobs" / "job-00000.yaml").write_text("name: job-00000\ncommand: [x]\n")
    with pytest.raises(SystemExit, match="wait status"):
        bench.run_once(tmp_path, renders=True)


def test_many_renderings_are_compared_in_order_by_several_processes(trainlaunch: Runs, tmp_path: Path) -> None:
    """Shared out among the CPUs, the findings come as from one process: by job file."""
    bench.write_jobs(tmp_path, 110)
    for number in (3, 60, 109):
        path = tmp_path / "jobs" / f"job-{number:05d}.yaml"
        path.write_text(path.read_text() + "shm_size: 20Gi\n")
    (tmp_path / "jobs" / "job-00040.yaml").write_text("name: [\n")
    done = trainlaunch("check", "--output", "github", cwd=tmp_path)
    assert done.returncode == 1
    errors = [line for line in done.stdout.splitlines() if line.startswith("::error ")]
    named = [line.split("file=")[1].split(",")[0] for line in errors]
    changed = [
        f"{target}/job-{number:05d}." for number in (3, 60, 109) for target in ("compose", "docker", "kubernetes")
    ]
    broken = ["jobs/job-00040.yaml"] + [f"{target}/job-00040." for target in ("compose", "docker", "kubernetes")]
    expected = [*changed[:3], *broken, *changed[3:]]
    assert [each.startswith(want) for each, want in zip(named, expected, strict=True)] == [True] * 13
    assert "checked 330 rendered files: 318 current, 9 differ, 3 can't be compared" in done.stderr
