"""`inject: num_workers` beside libraries that build or rebuild DataLoaders themselves."""

from __future__ import annotations

import pytest

from tests.inside.conftest import Inner
from tests.inside.test_workers_in_containers import LINE, told, train

pytestmark = [pytest.mark.docker, pytest.mark.libraries]

LIGHTNING = """
import logging, warnings; warnings.filterwarnings("ignore")
import lightning as L
class Net(L.LightningModule):
    def __init__(self): super().__init__(); self.layer = torch.nn.Linear(2, 1)
    def training_step(self, batch, _): return self.layer(batch).sum()
    def validation_step(self, batch, _): pass
    def configure_optimizers(self): return torch.optim.SGD(self.parameters(), 0.1)
if __name__ == "__main__":
    train, val = DataLoader(Data(), 1), DataLoader(Data(128), 2)
    trainer = L.Trainer(max_epochs=1, accelerator="cpu", logger=False, enable_checkpointing=False,
                        enable_progress_bar=False, STRATEGY)
    trainer.fit(Net(), train, val)
    print(trainer.train_dataloader.num_workers, trainer.val_dataloaders.num_workers, flush=True)
"""
TRANSFORMERS = """
from transformers import Trainer, TrainingArguments
class Net(torch.nn.Module):
    def __init__(self): super().__init__(); self.layer = torch.nn.Linear(2, 1)
    def forward(self, x): return {"loss": self.layer(x).sum()}
class Dicts(Data):
    def __getitem__(self, index): return {"x": torch.zeros(2)}
args = TrainingArguments("/tmp/out", max_steps=3, per_device_train_batch_size=1, report_to=[], use_cpu=True,
                         disable_tqdm=True, save_strategy="no")
Trainer(Net(), args, train_dataset=Dicts(256)).train()
print("trained")
"""
ACCELERATE = """
from accelerate import Accelerator
loader = Accelerator(cpu=True).prepare(DataLoader(Data(), 1))
print(loader.num_workers, sum(1 for _ in loader))
"""
GEOMETRIC = """
from torch_geometric.data import Data as Graph
from torch_geometric.loader import DataLoader as Graphs
show(Graphs([Graph(x=torch.zeros(2, 1)) for _ in range(64)], batch_size=1))
"""
MONAI = """
import monai.data
show(monai.data.DataLoader(Data(), batch_size=1))
"""
WEBDATASET = """
import webdataset as wds
show(wds.WebLoader(Endless(), batch_size=None))
"""
STATEFUL = """
from torchdata.stateful_dataloader import StatefulDataLoader
show(StatefulDataLoader(Data(), batch_size=1))
"""
TWO = [{"batch_size": None, "num_workers": None}] * 2


@pytest.mark.parametrize("strategy", ["", "strategy='ddp', devices=1"], ids=["plain", "ddp"])
def test_lightnings_loaders_and_those_that_it_builds_again(inside: Inner, examples_image: str, strategy: str) -> None:
    """It builds them again for ddp, with the number that they have: two loaders, two lines, as planned."""
    ran = train(inside, LIGHTNING.replace("STRATEGY", strategy), TWO, image=examples_image, flags=("--env=HOME=/tmp",))
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1] == "2 2"
    at = LINE + LIGHTNING.count("\n", 0, LIGHTNING.index("train, val ="))
    lines = [each for each in told(ran) if "num_workers" in each or "left alone" in each]
    assert lines[0].startswith(f"train.py:{at} num_workers 0 → 2")


@pytest.mark.parametrize(
    ("script", "out", "line"),
    [
        (TRANSFORMERS, "trained", "left alone: it states num_workers 0; pass --dataloader_num_workers 2"),
        (ACCELERATE, "2 64", "num_workers 0 → 2"),
        (GEOMETRIC, "DataLoader 2 64", "num_workers 0 → 2"),
        (MONAI, "DataLoader 0 64", "left alone: it states num_workers 0"),
        (WEBDATASET, "WebLoader", "left alone: its dataset is iterable"),
        (STATEFUL, "StatefulDataLoader 0 64", "left alone: StatefulDataLoader is not torch's DataLoader"),
    ],
    ids=["transformers", "accelerate", "torch_geometric", "monai", "webdataset", "torchdata"],
)
def test_a_librarys_loader(inside: Inner, examples_image: str, script: str, out: str, line: str) -> None:
    """It trains, and one line names the script's own place."""
    ran = train(inside, script, image=examples_image, flags=("--env=HOME=/tmp",))
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1].startswith(out)
    lines = [each for each in told(ran) if "num_workers" in each or "left alone" in each]
    assert len(lines) == 1, lines
    assert lines[0].startswith("train.py:")
    assert line in lines[0]
