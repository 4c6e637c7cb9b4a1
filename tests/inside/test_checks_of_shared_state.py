"""Which datasets give other samples in workers than in one process, with real torch."""

from __future__ import annotations

import pytest

from tests.inside.conftest import Inner
from tests.inside.probe_cases import told

pytestmark = pytest.mark.docker

SCRIPT = """
SIZE, COUNT = 4096, 4000

class Records(Dataset):
    def __init__(self): self.file = open("/job/records", "rb")
    def __len__(self): return COUNT
    def __getitem__(self, i):
        self.file.seek(i * SIZE)
        return self.file.read(SIZE)

class Lazy(Records):
    def __init__(self): self.file = None
    def __getitem__(self, i):
        if self.file is None: self.file = open("/job/records", "rb")
        return super().__getitem__(i)

class InTurn(Records):
    def __init__(self): self.file, self.lock = open("/job/records", "rb", buffering=0), multiprocessing.Lock()
    def __getitem__(self, i):
        with self.lock: return super().__getitem__(i)

class Positional(Records):
    def __getitem__(self, i): return os.pread(self.file.fileno(), SIZE, i * SIZE)

class Augmented(Dataset):
    def __len__(self): return 100
    def __getitem__(self, i): return torch.ones(4) * i + torch.rand(4)

class Flipped(Augmented):
    def __getitem__(self, i): return i if random.random() < 0.1 else -i

class Rarely(Records):
    def __getitem__(self, i): return super().__getitem__(i), float(torch.rand(1))

class ByWorker(Augmented):
    def __getitem__(self, i):
        info = get_worker_info()
        chosen = random.Random((info.seed if info else 0) + i)
        return i if chosen.random() < 0.5 else -i

class FailsInWorkers(Augmented):
    def __getitem__(self, i):
        if get_worker_info() is not None: raise KeyError("bad object header version number")
        return i

class Plain(Augmented):
    def __getitem__(self, i): return {"image": torch.ones(4) * i, "name": [str(i)], "box": (i, None)}

def case(name, dataset, known=(), **options):
    return name, DataLoader(dataset, **{"batch_size": 8, "num_workers": 2, **options}), dict(known)

import os
if __name__ == "__main__":
    with open("/job/records", "wb") as file:
        for i in range(COUNT): file.write(struct.pack("<I", i) * (SIZE // 4))
"""
OPEN = """
CASES = [
    case("records", Records()), case("unbatched", Records(), batch_size=None), case("random records", Rarely()),
    case("in turn", InTurn()), case("positional", Positional()), case("not run", Records(), {"order": None}),
] if __name__ == "__main__" else []
"""
# Where no file is open that workers could share, the check reads for a sixth of the time, on all CPUs.
NONE_OPEN = """
CASES = [
    case("augmented", Augmented()), case("by worker", ByWorker()), case("flipped", Flipped()),
    case("fails", FailsInWorkers()), case("plain", Plain()),
    case("lazy", Lazy()), case("no workers, unknown before", Lazy(), num_workers=0),
] if __name__ == "__main__" else []
"""


def test_samples_that_workers_spoil_are_found_and_no_others(inside: Inner) -> None:
    """Wrong bytes of a shared position, and what only a worker raises; never randomness, whoever seeds it."""
    defect = "worker-dependent-samples"
    checked = {**told(inside, SCRIPT + OPEN, defect), **told(inside, SCRIPT + NONE_OPEN, defect)}
    found = {name: checks[0] for name, checks in checked.items()}
    assert [name for name, facts in found.items() if facts] == ["records", "unbatched", "random records", "fails"]
    shared = found["records"][0]
    assert shared["files"] == ["/job/records"]
    assert 0 < shared["wrong"] < shared["read"]
    assert 0 <= shared["index"] < 4000
    assert found["fails"][0]["raised"] == ["KeyError: 'bad object header version number'"]
    assert found["fails"][0]["wrong"] == 0
    assert (found["random records"][0]["wrong"], found["random records"][0]["files"]) == (0, ["/job/records"])
