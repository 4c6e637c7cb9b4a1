"""Generators, streams and shared state in other shapes than their first examples, with real torch."""

from __future__ import annotations

import pytest

from tests.inside.conftest import Inner
from tests.inside.probe_cases import told

pytestmark = pytest.mark.docker

DRAWS = """
import augment, functools
from torch.utils.data import ConcatDataset, Subset
class Data(Dataset):
    def __len__(self): return 64
class OfOtherModule(Data):
    def __getitem__(self, i): return augment.jittered(float(i))
class ByDefault(Data):
    def __getitem__(self, i, rng=np.random.default_rng(1)): return rng.random()
def shifted(x, rng=random.Random(3)): return x + rng.random()
class ByFunction(Data):
    def __init__(self): self.transform = functools.partial(shifted)
    def __getitem__(self, i): return self.transform(float(i))
def closed():
    generator = torch.Generator().manual_seed(1)
    return lambda x: x + torch.rand(1, generator=generator)
class Closed(Data):
    def __init__(self): self.steps = {"train": [closed()]}
    def __getitem__(self, i): return self.steps["train"][0](i)
class SeedsEach(Data):
    def __getitem__(self, i):
        random.seed(0)
        return i + random.random()
class SeedsAll(Data):
    def __getitem__(self, i):
        torch.manual_seed(7)
        return i + torch.rand(1)
class SeedsByIndex(Data):
    def __getitem__(self, i):
        np.random.seed(i)
        return i + np.random.rand()
class DrawsOnce(Data):
    name = None
    def __getitem__(self, i):
        if self.name is None: self.name = random.random()
        return i
class SeedsOwn(Data):
    def __getitem__(self, i): return np.random.RandomState(0).rand() + i
class Reseeded(Data):
    rng = None
    def __getitem__(self, i):
        if self.rng is None: self.rng = np.random.default_rng(torch.initial_seed() % 2**32)
        return self.rng.random()
class Generator(Data):
    def __init__(self): self.rng = np.random.default_rng()
    def __getitem__(self, i): return self.rng.random()

def init(worker): augment.RNG.seed(torch.initial_seed() % 2**32)
def case(name, dataset, known=(), **options):
    return name, DataLoader(dataset, **{"batch_size": 8, "num_workers": 2, **options}), dict(known)
CASES = [
    case("other module", OfOtherModule()), case("default", ByDefault()), case("function", ByFunction()),
    case("closure", Closed()), case("parts", ConcatDataset([Subset(Generator(), range(64)), Generator()])),
    case("constant", SeedsEach()), case("constant of torch", SeedsAll()),
    case("by index, fixed", SeedsByIndex()), case("once, fixed", DrawsOnce()), case("own, fixed", SeedsOwn()),
    case("late, fixed", Reseeded()), case("other module, fixed", OfOtherModule(), worker_init_fn=init),
]
"""
AUGMENT = """
import numpy as np
RNG = np.random.RandomState(0)
def jittered(x): return x + RNG.rand()
"""


def test_generators_of_other_modules_defaults_and_closures(inside: Inner) -> None:
    """And a constant that every sample seeds a global generator with; by index, once or late is fine."""
    found = told(inside, DRAWS, "repeated-augmentation", "repeated-epochs", files={"augment.py": AUGMENT})
    assert {name: each for name, each in found.items() if "fixed" in name and each != [[], []]} == {}
    paths = {name: [facts[0]["generator"] if facts else "" for facts in each] for name, each in found.items()}
    both = {"other module": "augment.RNG", "default": "dataset.__getitem__.<rng>", "closure": ".<generator>"}
    both |= {"function": "dataset.transform.func.<rng>", "parts": "dataset.datasets[0].dataset.rng"}
    for name, path in both.items():
        assert [each.endswith(path) for each in paths[name]] == [True, True], (name, paths[name])
    assert (paths["constant"], paths["constant of torch"]) == (["random", ""], ["torch", ""])
    assert found["constant"][0][0]["how"] == "each sample"


STREAMS = """
from torch.utils.data import ChainDataset
LABELS = random.Random(1).choices(range(10), k=300)
class Augmented(IterableDataset):
    def __init__(self, shared=False, labels=None): self.shared, self.labels = shared, labels or LABELS
    def mine(self):
        info = get_worker_info()
        return itertools.islice(range(300), info.id, None, info.num_workers) if self.shared and info else range(300)
    def __iter__(self):
        for i in self.mine(): yield {"x": torch.rand(4) + i, "label": torch.tensor(self.labels[i % len(self.labels)])}
class Named(Augmented):
    def __iter__(self):
        for i in self.mine(): yield torch.rand(4), f"{i}.jpg"
class Counted(Augmented):
    def __iter__(self):
        for place, i in enumerate(self.mine()): yield torch.rand(4) + i, place
class Lines(IterableDataset):
    def __iter__(self):
        with open(__file__) as file: yield from file
class SharedLines(Lines):
    def __iter__(self):
        info = get_worker_info()
        yield from itertools.islice(super().__iter__(), info.id, None, info.num_workers)
class Files(IterableDataset):
    def __init__(self, count): self.files = [f"{n}.txt" for n in range(count)]
    def __iter__(self):
        info = get_worker_info()
        for name in self.files[info.id::info.num_workers]:
            for line in range(20): yield f"{name}:{line}"
class Split(IterableDataset):
    def __init__(self, count): self.count = count
    def __iter__(self):
        info = get_worker_info()
        each = self.count // info.num_workers
        start = info.id * each
        yield from range(start, start + each if info.id < info.num_workers - 1 else self.count)

class Balanced(IterableDataset):  # shards of 20 samples with one order of labels; each worker reads `count` of its own
    def __init__(self, count): self.count = count
    def __iter__(self):
        labels = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5, 8, 9, 7, 9, 3, 2, 3, 8, 4]
        for i in range(self.count): yield torch.rand(4), labels[i % 20]

def case(name, dataset, **options):
    return name, DataLoader(dataset, **{"batch_size": 8, "num_workers": 2, **options}), {}
CASES = [
    case("augmented", Augmented()), case("names", Named()), case("chain", ChainDataset([Lines(), Lines()])),
    case("augmented, fixed", Augmented(True)), case("names, fixed", Named(True)), case("counted, fixed", Counted(True)),
    case("sorted, fixed", Augmented(True, sorted(LABELS))), case("in turn, fixed", Augmented(True, [0, 1, 2, 3])),
    case("lines, fixed", SharedLines()), case("files", Files(2), num_workers=4), case("files, fixed", Files(4)),
    case("shards, fixed", Balanced(35)), case("longer shards, fixed", Balanced(60)),
    case("split", Split(2), num_workers=4), case("split, fixed", Split(64), num_workers=4),
]
"""


def test_streams_that_are_augmented_and_chained(inside: Inner) -> None:
    """A part that isn't augmented gives them away; sorted or alternating labels, and counters, tell nothing."""
    found = told(inside, STREAMS, "unsharded-iterable", "idle-workers")
    assert {name: each for name, each in found.items() if "fixed" in name and each != [[], []]} == {}
    assert {name for name, each in found.items() if each[0]} == {"augmented", "names", "chain"}
    assert (found["augmented"][0][0]["part"], found["names"][0][0]["part"]) == (1, 1)
    assert {name: each[1][0]["idle"] for name, each in found.items() if each[1]} == {
        "files": [2, 3],
        "split": [0, 1, 2],
    }


PADDING = """
import dataclasses
LENGTHS = [8 + (37 * i) % 505 for i in range(400)]
pad = torch.nn.utils.rnn.pad_sequence
class Texts(Dataset):
    def __init__(self, lengths=LENGTHS): self.lengths = lengths
    def __len__(self): return 400
    def __getitem__(self, i): return torch.randint(3, 1000, (self.lengths[i],))
@dataclasses.dataclass
class Batch:
    ids: object
    lengths: object
def time_first(samples): return pad(samples)
def of_class(samples): return Batch(pad(samples, batch_first=True), [len(each) for each in samples])
def fixed_length(samples): return torch.stack([torch.nn.functional.pad(each, (0, 512 - len(each))) for each in samples])
class Images(Texts):
    def __getitem__(self, i): return torch.rand(3, 16 + self.lengths[i] // 4, 16 + self.lengths[-i] // 4), i
def images(samples):
    batch = torch.zeros(len(samples), 3, 144, 144)
    for row, (image, _) in zip(batch, samples): row[:, :image.shape[1], :image.shape[2]] = image
    return batch, torch.tensor([i for _, i in samples])
def packed(samples): return torch.nn.utils.rnn.pack_sequence(samples, enforce_sorted=False)
def flat(samples): return torch.cat(samples), torch.tensor([len(each) for each in samples])
def nested(samples): return torch.nested.nested_tensor(samples)

def case(name, dataset, known=(), **options):
    return name, DataLoader(dataset, **{"batch_size": 16, **options}), dict(known)
ordered = sorted(range(400), key=LENGTHS.__getitem__)
CASES = [
    case("time first", Texts(), collate_fn=time_first), case("class", Texts(), collate_fn=of_class),
    case("one length", Texts(), collate_fn=fixed_length), case("images", Images(), collate_fn=images),
    case("packed, fixed", Texts(), collate_fn=packed), case("flat, fixed", Texts(), collate_fn=flat),
    case("nested, fixed", Texts(), collate_fn=nested), case("alike, fixed", Texts([500] * 400), collate_fn=time_first),
    ("time first, fixed", DataLoader(Texts(), batch_sampler=[ordered[at:at + 16] for at in range(0, 400, 16)],
                                     collate_fn=time_first), {"batch_size": 16}),
]
"""


def test_padding_in_other_layouts(inside: Inner) -> None:
    """Time before samples, as pad_sequence has it by default, images, classes, one length for all."""
    found = {name: checks[0] for name, checks in told(inside, PADDING, "padding-waste").items()}
    assert {name: each for name, each in found.items() if "fixed" in name and each} == {}
    tensors = {name: facts[0]["tensor"] if facts else None for name, facts in found.items() if "fixed" not in name}
    assert tensors == {"time first": "", "class": ".ids", "one length": "", "images": "[0]"}
