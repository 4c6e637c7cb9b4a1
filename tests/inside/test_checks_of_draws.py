"""Which generators of random numbers repeat themselves between workers and between epochs, with real torch."""

from __future__ import annotations

import pytest

from tests.inside.conftest import Inner
from tests.inside.probe_cases import IMPORTS, told

pytestmark = pytest.mark.docker

SCRIPT = """
class Data(Dataset):
    def __len__(self): return 64

class Generator(Data):
    def __init__(self): self.rng = np.random.default_rng(0)
    def __getitem__(self, i): return float(self.rng.random())

class Compose:
    def __init__(self): self.random = random.Random(137)
    def __call__(self, x): return x + self.random.random()

class Transformed(Data):
    def __init__(self): self.transform = Compose()
    def __getitem__(self, i): return self.transform(float(i))

class OfTorch(Data):
    def __init__(self): self.generator = torch.Generator().manual_seed(3)
    def __getitem__(self, i): return torch.rand(1, generator=self.generator)

class OfClass(Data):
    state = np.random.RandomState(0)
    def __getitem__(self, i): return self.state.rand()

class OverClass(OfClass):
    def __init__(self): self.state = np.random.RandomState(7)

module_rng = np.random.default_rng(3)

class OfModule(Data):
    def __getitem__(self, i): return module_rng.random()

class Global(Data):
    def __getitem__(self, i): return np.random.randint(1, 10000), random.random(), torch.rand(2)

class FromIndex(Generator):
    def __getitem__(self, i):
        self.rng = np.random.default_rng((3, i))
        return float(self.rng.random())

class SeededLate(Generator):
    worker = None
    def __getitem__(self, i):
        info = get_worker_info()
        if self.worker is None and info is not None:
            self.worker, self.rng = info.id, np.random.default_rng(info.seed)
        return float(self.rng.random())

class Epochs(Generator):
    def set_epoch(self, epoch): self.rng = np.random.default_rng(epoch)

class Unused(Generator):
    def __getitem__(self, i): return float(i)

class Two(Generator):
    def __init__(self): self.rng, self.other = np.random.default_rng(0), random.Random(1)
    def __getitem__(self, i): return float(self.rng.random()), self.other.random()

class Mixed:
    def __init__(self): self.rng = np.random.default_rng(1)
    def __call__(self, batch):
        self.rng.random()
        return default_collate(batch)

def divided(worker): np.random.seed(torch.initial_seed() // 2**32 + worker)
def remainder(worker): np.random.seed(torch.initial_seed() % 2**32)
def by_number(worker): np.random.seed(worker)
def alike(worker): np.random.seed(0)
def seed_dataset(worker): get_worker_info().dataset.rng = np.random.default_rng(torch.initial_seed())

def case(name, dataset, known=(), **options):
    return name, DataLoader(dataset, **{"batch_size": 8, "num_workers": 2, **options}), dict(known)

CASES = [
    case("generator", Generator()), case("transform", Transformed()), case("of torch", OfTorch()),
    case("of class", OfClass()), case("over class", OverClass()), case("of module", OfModule()),
    case("global", Global()),
    case("from index", FromIndex()), case("seeded late", SeededLate()), case("epochs", Epochs()),
    case("two", Two()), case("unused", Unused()), case("divided", Global(), worker_init_fn=divided),
    case("remainder", Global(), worker_init_fn=remainder), case("by number", Global(), worker_init_fn=by_number),
    case("alike", Global(), worker_init_fn=alike), case("seeded", Generator(), worker_init_fn=seed_dataset),
    case("divided, unused", Unused(), worker_init_fn=divided),
    case("persistent", Generator(), persistent_workers=True), case("collate", Unused(), collate_fn=Mixed()),
    case("unbatched", Generator(), batch_size=None), case("no workers", Generator(), num_workers=0),
    case("evaluation", Generator(), {"trained": 0}),
]
"""
CHECKS = ("repeated-augmentation", "repeated-epochs")


def test_generators_that_repeat_are_found_where_they_are_and_no_others(inside: Inner) -> None:
    """By their states in real workers: what is seeded by index, worker or epoch is fine, and so is what torch seeds."""
    found = told(inside, SCRIPT, *CHECKS)
    paths = {name: [[each["generator"] for each in defect] for defect in defects] for name, defects in found.items()}
    both = {"generator": "dataset.rng", "transform": "dataset.transform.random", "of torch": "dataset.generator"}
    both |= {
        "of class": "dataset.state",
        "over class": "dataset.state",
        "of module": "__main__.module_rng",
        "alike": "numpy.random",
    }
    both |= {"collate": "collate_fn.rng", "unbatched": "dataset.rng", "no workers": "dataset.rng"}
    both |= {"two": "dataset.rng"}
    silent = ("global", "from index", "seeded late", "unused", "remainder", "seeded", "divided, unused", "evaluation")
    assert paths == {
        **{name: [[path], [path]] for name, path in both.items()},
        **{name: [[], []] for name in silent},
        "epochs": [["dataset.rng"], []],
        "persistent": [["dataset.rng"], []],
        "by number": [[], ["numpy.random"]],
        "divided": [["numpy.random"], []],
    }
    assert found["of torch"][0][0] == {
        **{"generator": "dataset.generator", "class": "torch.Generator", "how": "equal", "others": [], "num_workers": 2}
    }
    assert [defect[0]["others"] for defect in found["two"]] == [["dataset.other"]] * 2
    assert (found["divided"][0][0]["how"], found["no workers"][1][0]["num_workers"]) == ("low bits", 0)


@pytest.mark.long
def test_generators_of_spawned_workers_are_found(inside: Inner) -> None:
    """Each is a Python of its own, which gets the dataset by a pickle."""
    script = f"{SCRIPT}\nCASES = [case('spawned', Generator(), multiprocessing_context='spawn')]"
    found = told(inside, script, *CHECKS)["spawned"]
    assert [[each["generator"] for each in defect] for defect in found] == [["dataset.rng"], ["dataset.rng"]]


def test_a_distributed_sampler_whose_epoch_never_changes(inside: Inner) -> None:
    """Where two epochs were seen; not of one that is set or keeps its order, whose seed changes, or that evaluates."""
    script = """
from torch.utils.data import DistributedSampler, TensorDataset
data, weight = TensorDataset(torch.arange(64.0)), torch.zeros(1, requires_grad=True)
def train(loader, trains=True):
    for (batch,) in loader:
        if trains: (weight * batch.mean()).sum().backward()
if __name__ == "__main__":
    never = DataLoader(data, 4, sampler=DistributedSampler(data, 2, 0))
    fixed = DataLoader(data, 4, sampler=DistributedSampler(data, 2, 0, shuffle=False))
    sets = DataLoader(data, 4, sampler=DistributedSampler(data, 2, 0))
    looks = DataLoader(data, 4, sampler=DistributedSampler(data, 2, 0))
    once = DataLoader(data, 4, sampler=DistributedSampler(data, 2, 0))
    plain = DataLoader(data, 4, shuffle=True)
    for epoch in range(3):
        train(never)
        train(fixed)
        sets.sampler.set_epoch(epoch)
        train(sets)
        train(DataLoader(data, 4, sampler=DistributedSampler(data, 2, 0, seed=epoch)))
        train(plain)
        train(looks, trains=False)
    train(once)
"""
    ran = inside(f"{IMPORTS}{script}", batches=200)
    (found,) = (each for each in ran.of("finding") if each["defect"] == "epoch-never-set")
    line = next(at for at, text in enumerate(f"{IMPORTS}{script}".splitlines(), start=1) if "never = " in text)
    assert (found["place"], found["facts"]) == (f"train.py:{line}", {"epoch": 0, "epochs": 3})
