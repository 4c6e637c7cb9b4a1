"""bench/launch_overhead.py starts the same container both ways, and judges what it measures as it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import launch_overhead as bench


def timed(name: str, wall: float) -> bench.Timed:
    """Return one way's figures."""
    return bench.Timed(name, (wall, wall, wall), 0.1)


@pytest.mark.docker
def test_each_way_starts_the_job(base_image: str, installed: Path, tmp_path: Path) -> None:
    """A container that doesn't start, or ends with another code than 0, is no figure but an error."""
    job = tmp_path / "job.yaml"
    job.write_text(bench.JOB.format(name="launch-overhead-test", image=base_image))
    compared = bench.pairs(installed, tmp_path, base_image)
    names = [[each.name for each in pair] for pair in bench.measure(compared, tmp_path, 2)]
    assert names[0] == ["docker run", "trainlaunch up"]
    assert [each[1] for each in names[1:]] == ["trainlaunch run", "trainlaunch run --image"]
    job.write_text(job.read_text().replace('"true"', '"false"'))
    with pytest.raises(SystemExit, match=r"exit code 1 of sh job\.sh"):
        bench.measure(bench.pairs(installed, tmp_path, base_image), tmp_path, 2)


@pytest.mark.parametrize(("ours", "words"), [(0.79, []), (0.81, ["up adds 0.31 s"])])
def test_the_goal_is_judged(ours: float, words: list[str]) -> None:
    """By what is added to what it is compared with, whatever that itself takes."""
    pair = bench.Pair(bench.Start("docker run", ()), bench.Start("trainlaunch up", ()), 0.3)
    failures = list(bench.missed([pair], [(timed("docker run", 0.5), timed("trainlaunch up", ours))]))
    assert len(failures) == len(words)
    assert all(word in failure for word, failure in zip(words, failures, strict=True))
