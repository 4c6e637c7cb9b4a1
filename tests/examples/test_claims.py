"""What the examples print and their READMEs claim: each sample once, the same draws, damage named once, and more."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from tests.conftest import Runs
from tests.examples.conftest import EXAMPLES, Plain, Trained, settings_of

pytestmark = pytest.mark.docker
Train = Callable[[str], Trained]
Plainly = Callable[[str], Plain]


@pytest.fixture
def advice(plain: Plainly) -> dict[str, Any]:
    """Return what plainly/advice.py measured."""
    done = plain("advice")
    assert done.code == 0, done.err
    read: dict[str, Any] = json.loads(done.out)
    return read


def epochs(text: str) -> list[str]:
    """Return what was printed of each epoch."""
    found = re.findall(r"^epoch \d+: (.*)$", text, re.MULTILINE)
    assert found, text
    return found


def test_two_ranks_see_each_sample_once(trained: Train) -> None:
    """1,347 samples don't divide by two; none is seen twice and none never, in any epoch."""
    wanted = "1347 of 1347 samples seen once, 0 more often, 0 never, by 2 ranks"
    assert set(epochs(trained("two_ranks").out)) == {wanted}
    assert "on 450 unseen digits" in trained("two_ranks").out


@pytest.mark.long
def test_torchs_own_sampler_repeats_samples(advice: dict[str, Any]) -> None:
    """Which is why the example has its own; and its order stays the same without set_epoch."""
    assert advice["samplers"] == {"of_1347_by_2": 1348, "of_450_by_4": 452, "same_order": True}


def test_four_readers_read_each_record_once(trained: Train) -> None:
    """Two ranks with two workers, eleven shards of different lengths: nothing twice, nothing left out."""
    for each in epochs(trained("stream_shards").out):
        assert each.startswith("2035 of 2035 records read once, 0 more often, 0 never, by 4 readers;")


@pytest.mark.long
def test_a_stream_sharded_for_workers_only_is_read_by_each_rank(advice: dict[str, Any]) -> None:
    """100 records: read four times by four readers, twice with get_worker_info alone, once with the rank too."""
    assert advice["streams"] == {"nobody": 400, "workers": 200, "all": 100}


def test_each_worker_opens_the_table_once(plain: Plainly) -> None:
    """Two persistent workers that train and two that test; the main process, which only read ids, keeps none open."""
    done = plain("sqlite_metadata")
    opened = re.findall(r"^(.*) opened samples\.db$", done.err, re.MULTILINE)
    assert sorted(opened) == ["worker 0", "worker 0", "worker 1", "worker 1"]
    assert set(epochs(done.out)) == {"1347 samples, 1347 of them different"}


@pytest.mark.long
def test_sqlite_connections_are_made_where_they_are_used(advice: dict[str, Any]) -> None:
    """They can't be pickled, so the dataset leaves them behind; the table can't be written or made by accident."""
    found = advice["connections"]
    assert found["pickled"] == "TypeError: cannot pickle 'sqlite3.Connection' object"
    assert found["pickled_without_connections"] == [200_000, 0, 1]
    assert found["missing"] == "OperationalError: unable to open database file"
    assert found["written"] == "OperationalError: attempt to write a readonly database"
    assert found["plain_connect_makes"] is True


@pytest.mark.long
def test_a_list_of_rows_is_copied_by_each_worker(advice: dict[str, Any]) -> None:
    """Reading 200,000 rows copies more than 8 MiB of them, and an array of their ids less than 1 MiB."""
    found = advice["connections"]
    assert found["list_copied"] > 8 << 20 > 1 << 20 > found["array_copied"]


def test_buckets_leave_little_padding(trained: Train, plain: Plainly) -> None:
    """The percentage is printed: 38 to 46 in random batches, below 15 in buckets; all sequences are in both."""
    [random_batches], bucketed = epochs(plain("padded_collate").out), epochs(trained("padded_collate").out)
    shares = [re.fullmatch(r"2000 sequences, (\d+\.\d) % padding", each) for each in (random_batches, *bucketed)]
    assert all(shares), (random_batches, bucketed)
    first, *others = (float(each[1]) for each in shares if each)
    assert 38 < first < 46
    assert len(others) == 6
    assert max(others) < 15


@pytest.mark.long
def test_collate_functions_run_in_workers(advice: dict[str, Any]) -> None:
    """With two workers no batch is collated in the main process; without a mask a longer neighbour changes a sample."""
    found = advice["collate"]
    assert (found["in_main"], found["processes"]) == (False, 2)
    short, long = found["logits_without_mask"]
    assert abs(short - long) > 0.5


def test_draws_are_the_same_in_another_run_with_other_workers(plain: Plainly) -> None:
    """Two persistent workers draw what the main process draws without any; all samples and epochs differ."""
    here, there = epochs(plain("worker_seeding in workers").out), epochs(plain("worker_seeding").out)
    assert here[: len(there)] == there
    assert len(set(here)) == len(here) == 3
    assert all(each.startswith("1347 of 1347 draws differ, digest ") for each in here)


@pytest.mark.long
def test_torch_seeds_workers_and_not_the_datasets_own_generators(advice: dict[str, Any]) -> None:
    """numpy, random and torch differ for all samples; generators of the dataset repeat by worker and by epoch."""
    assert advice["seeds"]["one_epoch"] == [64, 64, 64, 16, 16]
    assert advice["seeds"]["two_epochs"] == [128, 128, 128, 16, 16]
    assert advice["seeds"]["epochs_in_persistent_workers"] == [1, 1, 1]


def test_a_damaged_file_is_named_once_and_left_out(plain: Plainly) -> None:
    """13 files, two workers and two epochs: 13 lines, each with another path and a reason; 1,334 samples left."""
    done = plain("corrupt_samples")
    named = re.findall(r"^damaged, left out: (/\S+\.npy): \w+Error: .+$", done.err, re.MULTILINE)
    assert len(named) == len(set(named)) == 13
    assert epochs(done.out) == ["trained on 1334 of 1347 samples"] * 2
    assert "13 of 1797 files are damaged" in done.out


def test_too_many_damaged_files_end_the_job(plain: Plainly) -> None:
    """One file above the allowed share: exit 1, both numbers, and no accuracy of a model that saw too little."""
    done = plain("too many corrupt_samples")
    assert done.code == 1
    assert done.err.endswith("36 of 1797 files are damaged, more than the allowed 2.0%\n")
    assert "accuracy" not in done.out


@pytest.mark.long
def test_what_a_worker_notes_stays_in_it(advice: dict[str, Any]) -> None:
    """And None for a sample doesn't collate."""
    assert advice["damage"] == {"noted": 0, "none": "RuntimeError: Could not infer dtype of NoneType"}


@pytest.mark.long
def test_a_lambda_in_a_dataset_works_under_fork(advice: dict[str, Any]) -> None:
    """It is said to hang: fork pickles nothing, and two workers give the sum of 1 to 64."""
    assert advice["lambda_sum"] == 2080


def test_the_entrypoint_runs_in_front_of_the_preflight(trained: Train) -> None:
    """It made the data, the preflight passed after it, and the script read what was made."""
    done = trained("own_entrypoint")
    made = re.search(r"^entrypoint: made (\S+)$", done.err, re.MULTILINE)
    assert made, done.err
    assert done.err.index("entrypoint: made") < done.err.index("preflight passed")
    assert f"1797 digits from {made[1]}" in done.out


def test_an_entrypoint_that_the_job_does_not_state_stops_up(
    image_of: Callable[[str], str], trainlaunch: Runs, own_label: str
) -> None:
    """125 before anything runs, with the line to add, which is the one that the example has."""
    name = f"unstated-{own_label.partition('=')[2]}"
    settings = settings_of("own_entrypoint", image=image_of("own_entrypoint"), name=name, image_entrypoint="null")
    done = trainlaunch("up", "job.yaml", *settings, cwd=EXAMPLES / "own_entrypoint")
    assert done.returncode == 125
    assert "TL509" in done.stderr
    assert 'image_entrypoint: ["/usr/local/bin/make-ready"]' in done.stderr


@pytest.mark.libraries
def test_hugging_faces_trainer_understands_the_unseen_sentences(trained: Train) -> None:
    """Its own evaluation ran with the plan's workers: nobody says that other workers run than were planned."""
    done = trained("hugging_face")
    assert "unseen sentences" in done.out
    assert "were planned" not in done.err


@pytest.mark.libraries
def test_lightning_starts_both_ranks(trained: Train) -> None:
    """Two ranks count all 450 unseen digits once, and as many workers run as were planned."""
    done = trained("lightning")
    assert "on 450 unseen digits, 2 ranks" in done.out
    assert "were planned" not in done.err
