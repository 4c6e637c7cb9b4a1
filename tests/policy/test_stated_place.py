"""Where the runs of a job file are looked for that has an error by now."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.policy import place_of_runs, read_job

POLICY = "defaults:\n  target: kubernetes\n  kubernetes: {namespace: team-a}\n"
WRONG = "name: digits\nimage: trainer:1\ncommand: [python]\nshm_sise: 1Gi\n"


@pytest.mark.parametrize(
    ("job", "policy", "place"),
    [
        (WRONG, "", ("digits", "docker", None)),
        (WRONG, POLICY, ("digits", "kubernetes", "team-a")),
        (WRONG + "kubernetes: {namespace: own}\n", POLICY, ("digits", "kubernetes", "own")),
        (WRONG + "target: local\n", POLICY, ("digits", "local", "team-a")),
        (WRONG + "target_overrides: {kubernetes: {kubernetes: {namespace: own}}}\n", "", ("digits", "docker", "own")),
        (WRONG + "kubernetes: nothing\n", POLICY, ("digits", "kubernetes", None)),
        ("name: digits\n  image: [\n", POLICY, ("digits", "kubernetes", "team-a")),
        (WRONG, POLICY + "nonsense: 1\n", (None, "docker", None)),
        (WRONG + "target: local\n", POLICY + "nonsense: 1\n", ("digits", "local", None)),
        ("image: trainer:1\n", POLICY, (None, "kubernetes", "team-a")),
    ],
)
def test_file_and_policies_say_it_together(
    job: str, policy: str, place: tuple[str | None, str, str | None], tmp_path: Path
) -> None:
    """What the file states goes before the policy's default, as in a job without an error."""
    file = tmp_path / "job.yaml"
    file.write_text(job)
    if policy:
        (tmp_path / "trainlaunch-policy.yaml").write_text(policy)
    with pytest.raises(JobFileRejected):
        read_job(file)
    assert place_of_runs(file) == place
