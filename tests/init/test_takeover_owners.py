"""Ray and vLLM in a text that becomes a job file."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.init.takeover import take_over

from tests import plain_yaml


@pytest.mark.parametrize(
    ("line", "owners", "loader"),
    [
        ("--memory 64g img:1 vllm serve m -tp 8", ["vllm"], "none"),
        ("--memory 64g vllm/vllm-openai:v1 --model m -tp 8", ["vllm"], "none"),
        ("--memory 64g img:1 ray start --head --block", ["ray"], None),
        ("img:1 ray start --head --block", None, None),
        ("--memory 64g --shm-size 4g img:1 ray start --head", None, None),
        ("--memory 64g img:1 ray job submit -- python train.py", None, None),
        ("--memory 64g img:1 python train.py", None, None),
    ],
)
def test_an_owner_is_named_where_its_law_can_be_told(
    tmp_path: Path, line: str, owners: list[str] | None, loader: str | None
) -> None:
    """Ray's store follows a memory limit, and fits into a size that is stated."""
    text = f"docker run {line}\n".encode()
    job = plain_yaml.load(take_over(text, "-", pick=None, folder=tmp_path).text)
    named = [each["name"] for each in job["shm_extra"]] if "shm_extra" in job else None
    assert (named, job.get("data_loader")) == (owners, loader)
