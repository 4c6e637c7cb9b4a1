"""Samples that raise, that are None, that hold nothing."""

from __future__ import annotations

from trainlaunch.diagnostics import Severity

from tests.measure.findings.saying import saying


def test_a_sample_that_raises() -> None:
    """The true exception with place and file, and that a job would show another where torch can't build it again."""
    facts = {"index": 63, "file": "a/63.jpg", "error": "HTTPError", "message": "404", "at": "train.py:8"}
    facts = {**facts, "function": "__getitem__", "found": 3, "tried": 64}
    said = saying("sample-exception", **facts, raised_again=False)
    assert (said.code, said.severity) == ("TL704", Severity.ERROR)
    assert said.message == (
        "sample 63 (a/63.jpg) raises HTTPError: 404 at train.py:8 in __getitem__, "
        "as do 2 more of 64 samples that were read"
    )
    assert (
        said.why
        == "torch can't build HTTPError again from a worker's, so the job would show another error in its place"
    )
    assert said.fix == "correct what train.py:8 does with a/63.jpg, or leave it out of the dataset"
    assert "ends the whole job" in saying("sample-exception", **{**facts, "found": 1}, raised_again=True).why


def test_a_sample_that_is_none() -> None:
    """Whole or in part."""
    facts = {"index": 5, "file": "", "tried": 64}
    said = saying("none-sample", **facts, path="sample", found=1)
    assert (said.code, said.severity) == ("TL705", Severity.ERROR)
    assert said.message == "sample 5 is None, and the loader's collate_fn can't take None"
    said = saying("none-sample", **facts, path="sample['boxes']", found=3)
    assert said.message == (
        "sample 5 has None at sample['boxes'], as have 2 more of 64 that were read, "
        "and the loader's collate_fn can't take None"
    )


def test_a_sample_that_holds_nothing() -> None:
    """Zeros, or one colour after normalisation, with the indices of others."""
    said = saying("zero-sample", index=63, file="63.bin", content="zero", found=2, tried=64, indices=[63, 10])
    assert (said.code, said.severity) == ("TL706", Severity.WARNING)
    assert said.message == "sample 63 (63.bin) holds nothing but zeros, as do 1 more of 64 that were read (10)"
    assert "63.bin" in said.fix
    said = saying("zero-sample", index=0, file="", content="blank", found=1, tried=64, indices=[0])
    assert said.message == "sample 0 holds one value in each channel, of 64 that were read"
