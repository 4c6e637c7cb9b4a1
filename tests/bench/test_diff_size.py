"""A change of one field shows in a handful of lines of each rendering."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import diff_size as bench


def test_no_change_is_larger_than_its_bound(capsys: pytest.CaptureFixture[str]) -> None:
    """Memory, image, batch size, GPUs, a label and a policy's default, on each target."""
    assert bench.main() == 0
    assert len(capsys.readouterr().out.splitlines()) == 1 + len(bench.CHANGES)


def test_a_line_that_was_changed_counts_once() -> None:
    """Also where it is only there before, or only now."""
    assert bench.changed("a\nb\nc\n", "a\nB\nc\nd\n") == 2
    assert bench.changed("a\nb\n", "a\nb\n") == 0


def test_a_larger_change_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 1, and the table shows the number."""
    monkeypatch.setattr(bench, "CHANGES", {"image": (*bench.CHANGES["image"][:2], 0)})
    assert bench.main() == 1
    assert "image" in capsys.readouterr().out


def test_a_value_is_put_at_its_place(tmp_path: Path) -> None:
    """And the job that it is put into stays as it was."""
    job = bench.with_value(bench.JOB, "resources.memory", "96Gi")
    assert job["resources"]["memory"] == "96Gi"
    assert bench.JOB["resources"]["memory"] == "64Gi"
    assert bench.rendered(tmp_path, "docker", job) != bench.rendered(tmp_path, "docker", bench.JOB)
