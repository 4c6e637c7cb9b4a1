"""Which loaders lose samples, a step or time, with real torch."""

from __future__ import annotations

import pytest

from tests.inside.conftest import Inner
from tests.inside.probe_cases import told

pytestmark = pytest.mark.docker

IMAGES = """
class Images(Dataset):
    def __init__(self, n=65): self.n = n
    def __len__(self): return self.n
    def __getitem__(self, i): return torch.rand(3, 8, 8), i % 10

def case(name, dataset, known=(), **options):
    return name, DataLoader(dataset, **{"batch_size": 16, **options}), dict(known)
"""


def test_a_last_batch_of_one_sample_is_found_where_the_model_refuses_it(inside: Inner) -> None:
    """Only a layer that gets one value per channel does; a BatchNorm over an image's points takes one image."""
    script = (
        IMAGES
        + """
from trainlaunch_inside.probe.base import training_hooks
model = torch.nn.Sequential(
    torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(144, 8),
    *([torch.nn.BatchNorm1d(8)] if sys.argv[1] == "dense" else []))
frozen = torch.nn.BatchNorm1d(3).eval()
training_hooks.watch_batchnorm()
model(torch.rand(16, 3, 8, 8)); model(torch.rand(16, 3, 8, 8)); frozen(torch.rand(16, 3))
CASES = [
    case("one left", Images()), case("dropped", Images(), drop_last=True), case("none left", Images(64)),
    case("other size", Images(), {"batch_size": 13}, batch_size=13), case("evaluation", Images(), {"trained": 0}),
    ("dropped by a sampler",
     DataLoader(Images(), batch_sampler=BatchSampler(SequentialSampler(range(65)), 16, True)), {}),
    ("own batches", DataLoader(Images(), batch_sampler=[[0, 1], [2]]), {}),
]
"""
    )
    refused = {"layers": ["BatchNorm1d"], "batch_size": 16, "samples": 65}
    for kind, expected in (("dense", [refused]), ("convolution", [])):
        found = told(inside, script.replace("sys.argv[1]", repr(kind)), "batchnorm-last-batch")
        assert {name: checks[0] for name, checks in found.items()} == {
            **{
                each: []
                for each in ("dropped", "dropped by a sampler", "none left", "other size", "evaluation", "own batches")
            },
            "one left": expected,
        }


def test_an_evaluation_that_drops_samples_is_found(inside: Inner) -> None:
    """Not where it drops none, nor where the order is random or the loader trains."""
    script = (
        IMAGES
        + """
from torch.utils.data import DistributedSampler
CASES = [
    case("drops", Images(), {"trained": 0}, drop_last=True),
    case("not run", Images(), {"trained": 0, "order": None}, drop_last=True),
    case("rank", Images(), {"trained": 0}, drop_last=True, sampler=DistributedSampler(Images(), 2, 0, shuffle=False)),
    case("keeps", Images(), {"trained": 0}), case("even", Images(64), {"trained": 0}, drop_last=True),
    case("random", Images(), {"trained": 0}, drop_last=True, shuffle=True), case("trains", Images(), drop_last=True),
]
"""
    )
    found = {name: checks[0] for name, checks in told(inside, script, "validation-drop-last").items()}
    assert found == {
        "drops": [{"samples": 65, "dropped": 1, "batch_size": 16, "ran": True}],
        "not run": [{"samples": 65, "dropped": 1, "batch_size": 16, "ran": False}],
        "rank": [{"samples": 33, "dropped": 1, "batch_size": 16, "ran": True}],
        **{each: [] for each in ("keeps", "even", "random", "trains")},
    }


def test_what_starting_workers_costs_is_measured(inside: Inner) -> None:
    """Against the epoch, or the few batches that an iterator was built for."""
    script = (
        IMAGES
        + """
def slow(worker): time.sleep(1.1)
TIMES = {"waits": [0.01] * 6, "steps": [0.1] * 6}
FEW = {**TIMES, "iterators": 6, "passes": [1] * 6}
CASES = [
    case("slow", Images(), TIMES, num_workers=2, worker_init_fn=slow),
    case("long epoch", Images(1600), {**TIMES, "waits": [0.1] * 6}, num_workers=2, worker_init_fn=slow),
    case("lives on", Images(), TIMES, num_workers=2, worker_init_fn=slow, persistent_workers=True),
    case("quick", Images(), TIMES, num_workers=2), case("none", Images(), {**FEW, **TIMES}),
    case("rebuilt", Images(), FEW, num_workers=2, worker_init_fn=slow),
    case("epochs", Images(), {**FEW, "passes": [5] * 6}, num_workers=2, worker_init_fn=slow, persistent_workers=True),
    case("rarely", Images(), {**FEW, "steps": [60.0] * 6}, num_workers=2, worker_init_fn=slow),
]
"""
    )
    found = told(inside, script, "no-persistent-workers", "iterators-rebuilt")
    assert [name for name, (anew, _) in found.items() if anew] == ["slow", "rebuilt"]
    assert [name for name, (_, rebuilt) in found.items() if rebuilt] == ["rebuilt"]
    anew = found["slow"][0][0]
    assert 1.1 <= anew["seconds"] < 10
    assert (round(anew["epoch_seconds"], 2), anew["batches"], anew["num_workers"]) == (0.55, 5, 2)
    rebuilt = found["rebuilt"][1][0]
    assert (rebuilt["iterators"], rebuilt["batches"], rebuilt["length"], rebuilt["seconds"] > 1.1) == (6, 6, 5, True)


def test_a_slow_collate_fn_is_found_where_the_script_waits_for_it(inside: Inner) -> None:
    """By the times of its batches; torch's own is what all scripts have, and a library's nobody mends in the script."""
    script = (
        IMAGES
        + """
from trainlaunch_inside.probe.base.loader_stats import Fetched
import functools
def lists(samples): return torch.tensor([x.tolist() for x, _ in samples])
collater = "class Collater:\\n    def __call__(self, samples): return samples"
exec(compile(collater, "/usr/lib/python3/site-packages/geometric/loader.py", "exec"), made := {})
def known(collate, fetch, wait):
    one = Fetched(1, 0, 16, 100, 4096, None, 0, fetch, collate)
    return {"fetched": [one] * 6, "waits": [wait] * 6, "steps": [0.01] * 6}
CASES = [
    case("slow", Images(), known(0.04, 0.05, 0.05), collate_fn=lists),
    case("unnoticed", Images(), known(0.04, 0.05, 0.001), collate_fn=lists),
    case("reading", Images(), known(0.01, 0.05, 0.05), collate_fn=lists),
    case("tiny", Images(), known(0.001, 0.001, 0.05), collate_fn=lists),
    case("of torch", Images(), known(0.04, 0.05, 0.05)),
    case("bound", Images(), known(0.04, 0.05, 0.05), collate_fn=functools.partial(lists)),
    case("of a library", Images(), known(0.04, 0.05, 0.05), collate_fn=made["Collater"]()),
]
"""
    )
    found = {name: checks[0] for name, checks in told(inside, script, "slow-collate").items()}
    assert [name for name, facts in found.items() if facts] == ["slow", "bound"]
    facts = found["slow"][0]
    assert facts["collate_fn"] == "lists"
    assert (facts["collate_seconds"], facts["fetch_seconds"], round(facts["waiting"], 3)) == (0.04, 0.05, 0.833)


def test_copies_to_a_gpu_from_pageable_memory_are_found(inside: Inner) -> None:
    """No GPU is here: what torch says of one is planted, and the copies are timed as they would be there."""
    script = (
        IMAGES
        + """
from trainlaunch_inside.probe.base.loader_stats import Fetched
torch.cuda.is_available = torch.cuda.is_initialized = lambda: sys.argv[1] == "gpu"
torch.cuda.memory_allocated = lambda: 2**20
torch.cuda.synchronize = lambda: None
class Tensor:
    def __init__(self, seconds): self.seconds = seconds
    def pin_memory(self): return Tensor(self.seconds / 3)
    def numel(self): return 4096
    def to(self, device, non_blocking): time.sleep(self.seconds)
torch.zeros = lambda *_, **__: Tensor(0.03)
known = {"fetched": [Fetched(1, 0, 16, 4096, 4096, None, 0, 0.1, 0.1)]}
CASES = [
    case("pageable", Images(), known), case("pinned", Images(), known, pin_memory=True),
    case("evaluation", Images(), {**known, "trained": 0}), case("no tensors", Images()),
]
"""
    )
    for device in ("gpu", "cpu"):
        found = told(inside, script.replace("sys.argv[1]", repr(device)), "no-pin-memory")
        assert [name for name, (facts,) in found.items() if facts] == (["pageable"] if device == "gpu" else [])
        if device == "gpu":
            facts = found["pageable"][0][0]
            assert facts["bytes"] == 4096
            assert facts["seconds"] >= 0.03 > facts["pinned_seconds"] >= 0.01


def test_padding_is_measured_against_the_samples(inside: Inner) -> None:
    """Padded by collate_fn on either side, in several dimensions, or by the dataset; zeros of data are none."""
    script = """
LENGTHS = [8 + (37 * i) % 505 for i in range(400)]

class Texts(Dataset):
    def __init__(self, to=0): self.to = to
    def __len__(self): return 400
    def __getitem__(self, i):
        ids = torch.randint(3, 1000, (LENGTHS[i],))
        if not self.to: return ids, i % 3
        ids = torch.cat([ids, torch.zeros(self.to - len(ids), dtype=torch.int64)])
        return {"input_ids": ids, "attention_mask": (ids > 0).long()}

def right(samples):
    ids = [each for each, _ in samples]
    return torch.nn.utils.rnn.pad_sequence(ids, batch_first=True), torch.tensor([len(each) for each in ids])

def left(samples):
    longest = max(len(each) for each, _ in samples)
    return {"ids": torch.stack([torch.nn.functional.pad(each, (longest - len(each), 0)) for each, _ in samples])}

class Lists(Texts):
    def __getitem__(self, i): return {"input_ids": super().__getitem__(i)[0].tolist(), "label": 1}

def from_lists(samples): return {"input_ids": right([(torch.tensor(each["input_ids"]), 0) for each in samples])[0]}

class Sounds(Texts):
    def __getitem__(self, i): return torch.rand(LENGTHS[i], 4) + 1, 0

class Digits(Dataset):
    def __len__(self): return 400
    def __getitem__(self, i):
        image = torch.rand(8, 8) * (torch.arange(8) < 2)
        return image.flatten(), torch.eye(10, dtype=torch.int64)[i % 10], (image > 0.5).long().flatten()

class Boxes(Texts):
    def __getitem__(self, i): return torch.rand(3, 64, 64), torch.rand(LENGTHS[i] // 50 + 1, 4)

def boxes(samples):
    return torch.stack([image for image, _ in samples]), torch.nn.utils.rnn.pad_sequence([b for _, b in samples], True)

class Several(IterableDataset):
    def __iter__(self): return ((torch.randint(3, 1000, (each,)), 0) for each in LENGTHS)

def case(name, dataset, known=(), **options):
    return name, DataLoader(dataset, **{"batch_size": 16, **options}), dict(known)

ordered = sorted(range(400), key=LENGTHS.__getitem__)
CASES = [
    case("right", Texts(), collate_fn=right), case("left", Texts(), collate_fn=left),
    case("lists", Lists(), collate_fn=from_lists), case("sounds", Sounds(), collate_fn=right),
    case("stream", Several(), collate_fn=right), case("dataset", Texts(512)),
    ("bucketed", DataLoader(Texts(), batch_sampler=[ordered[at:at + 16] for at in range(0, 400, 16)],
                            collate_fn=right), {"batch_size": 16}),
    case("digits", Digits()), case("boxes", Boxes(), collate_fn=boxes),
    case("evaluation", Texts(), {"trained": 0}, collate_fn=right), case("unbatched", Texts(), batch_size=None),
]
"""
    found = {name: checks[0] for name, checks in told(inside, script, "padding-waste").items()}
    tensors = {name: facts[0]["tensor"] for name, facts in found.items() if facts}
    assert tensors == {
        **{"right": "[0]", "left": "['ids']", "lists": "['input_ids']", "sounds": "[0]", "stream": "[0]"},
        "dataset": "['input_ids']",
    }
    assert found["dataset"][0]["by"] == "dataset"
    for name in ("right", "left", "dataset"):
        facts = found[name][0]
        lengths = [8 + (37 * index) % 505 for index in range(16 * 8)]
        assert facts["mean"] == pytest.approx(sum(lengths) / len(lengths), rel=0.03), name
        assert facts["longest"] in {max(lengths), 512}
        assert facts["share"] == pytest.approx(1 - facts["mean"] / facts["longest"], abs=0.06)
        assert facts["batches"] == 8
