"""`inject: num_workers` beside libraries that build or rebuild DataLoaders themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.inside.conftest import Inner
from tests.inside.test_workers_in_containers import HEAD, LINE, told, train

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
TIMM = """
from timm.data import create_loader
class Pictures(Data):
    transform = None
    def __getitem__(self, index):
        from PIL import Image
        return self.transform(Image.new("RGB", (64, 64))), 0
show(create_loader(Pictures(), input_size=(3, 32, 32), batch_size=1, use_prefetcher=False, device=torch.device("cpu")))
"""
TWO = [{"batch_size": None, "num_workers": None}] * 2
LAUNCHED = """
from accelerate import Accelerator
loader = Accelerator(cpu=True).prepare(DataLoader(Data(), 1))
print(loader.num_workers, sum(1 for _ in loader), flush=True)
"""
# Whatever iterates, torch's own iterator waits: the heartbeat's page counts two batches of it.
PAGE = """
print(open("/delivered/heartbeat").read(64).split()[4], flush=True)
"""


@pytest.mark.parametrize("strategy", ["", "strategy='ddp', devices=1"], ids=["plain", "ddp"])
def test_lightnings_loaders_and_those_that_it_builds_again(inside: Inner, examples_image: str, strategy: str) -> None:
    """It builds them again for ddp, with the number that they have: two loaders, two lines, as planned."""
    ran = train(inside, LIGHTNING.replace("STRATEGY", strategy), TWO, image=examples_image, flags=("--env=HOME=/tmp",))
    assert ran.code == 0, ran.err
    assert ran.out.splitlines()[-1] == "2 2"
    at = LINE + LIGHTNING.count("\n", 0, LIGHTNING.index("train, val ="))
    assert [each.partition(";")[0] for each in told(ran)] == [f"train.py:{at} num_workers 0 → 2"]  # both stand there


@pytest.mark.parametrize("strategy", ["", "strategy='ddp', devices=1"], ids=["plain", "ddp"])
def test_a_loader_of_lightnings_that_is_left_alone_is_said_once(
    inside: Inner, examples_image: str, strategy: str
) -> None:
    """What it builds again has the 0 that nobody stated."""
    script = LIGHTNING.replace("STRATEGY", strategy).replace("Data(128)", "Data(12)")
    ran = train(inside, script, TWO, image=examples_image, flags=("--env=HOME=/tmp",))
    assert (ran.code, ran.out.splitlines()[-1:]) == (0, ["2 0"]), ran.err
    said = [each.partition(" ")[2] for each in told(ran)]
    assert said[1:] == ["left alone: it has 6 batches, fewer than 64"], said


@pytest.mark.parametrize(
    ("script", "out", "line"),
    [
        (TRANSFORMERS, "trained", "left alone: it states num_workers 0; pass --dataloader_num_workers 2"),
        (ACCELERATE, "2 64", "num_workers 0 → 2"),
        (GEOMETRIC, "DataLoader 2 64", "num_workers 0 → 2"),
        (MONAI, "DataLoader 0 64", "left alone: it states num_workers 0"),
        (TIMM, "DataLoader 1 64", "left alone: it states num_workers 1; pass --workers 2"),
        (WEBDATASET, "WebLoader", "left alone: its dataset is iterable"),
        (STATEFUL, "StatefulDataLoader 0 64", "left alone: StatefulDataLoader is not torch's DataLoader"),
    ],
    ids=["transformers", "accelerate", "torch_geometric", "monai", "timm", "webdataset", "torchdata"],
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


def test_processes_of_accelerate_launch_have_them(inside: Inner, examples_image: str) -> None:
    """It hands its environment on."""
    options = ("--cpu", "--num_processes=1", "--num_machines=1", "--mixed_precision=no")
    command = ("python", "-m", "accelerate.commands.launch", *options, "train.py")
    ran = train(inside, LAUNCHED, image=examples_image, command=command, flags=("--env=HOME=/tmp",))
    assert ran.code == 0, ran.err
    assert [each for each in ran.out.splitlines() if each.startswith("2 ")] == ["2 64"], (ran.out, ran.err)
    assert len([each for each in told(ran) if "num_workers 0 → 2" in each]) == 1


@pytest.mark.parametrize(
    "script",
    [LIGHTNING.replace("STRATEGY", ""), TRANSFORMERS, ACCELERATE, GEOMETRIC, MONAI, TIMM, WEBDATASET, STATEFUL],
    ids=["lightning", "transformers", "accelerate", "torch_geometric", "monai", "timm", "webdataset", "torchdata"],
)
def test_waits_of_a_librarys_loader_are_noted(inside: Inner, examples_image: str, tmp_path: Path, script: str) -> None:
    """So `stall_after` watches them all."""
    (tmp_path / "delivered").mkdir()
    (tmp_path / "delivered" / "heartbeat").write_text(" " * 4096)
    text = HEAD + script + PAGE
    ran = inside(text, "heartbeat", image=examples_image, flags=("--env=HOME=/tmp",))
    assert (ran.code, ran.out.splitlines()[-1]) == (0, "2"), (ran.out, ran.err)
    assert " is off " not in ran.err
