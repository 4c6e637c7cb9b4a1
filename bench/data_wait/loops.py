"""One loop over a DataLoader with a stopwatch of its own: `python loops.py SCRIPT [EPOCHS]`. The last line has seconds.

The stopwatch knows nothing of trainlaunch: around next() of a loop, Lightning's own profiler, a generator in front of
the DataLoader of HF's Trainer. The waits of the last call of a loop, which gives no batch, are in it.
"""

from __future__ import annotations

import io
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

WAITED = {"training": 0.0, "evaluation": 0.0}
EPOCHS = int(sys.argv[2]) if len(sys.argv) > 2 else 2


def timed(loader: Iterable[Any], phase: str) -> Iterator[Any]:
    """Yield its batches, and note how long each took to come."""
    begun = time.perf_counter()
    iterator = iter(loader)
    while True:
        try:
            batch = next(iterator)
        except StopIteration:
            return
        finally:
            WAITED[phase] += time.perf_counter() - begun
        yield batch
        begun = time.perf_counter()


class Images(Dataset[Any]):
    """Pictures that are decoded."""

    def __init__(self, count: int) -> None:
        from PIL import Image

        self.count = count
        kept = io.BytesIO()
        Image.effect_noise((224, 224), 90).convert("RGB").save(kept, "JPEG")
        self.data = kept.getvalue()

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> torch.Tensor:
        from PIL import Image

        picture = Image.open(io.BytesIO(self.data)).resize((64, 64))
        return torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8).float() / 255


class Files(Dataset[Any]):
    """Files of a slow disk."""

    def __init__(self, count: int) -> None:
        self.count, self.path = count, Path(tempfile.mkdtemp()) / "data"
        self.path.write_bytes(os.urandom(1 << 16))

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, at: int) -> torch.Tensor:
        time.sleep(0.004)
        return torch.frombuffer(bytearray(self.path.read_bytes()[:4096]), dtype=torch.uint8).float()


class Numbers(IterableDataset[Any]):
    """A stream of tiny samples."""

    def __init__(self, count: int) -> None:
        self.count = count

    def __iter__(self) -> Iterator[torch.Tensor]:
        for at in range(self.count):
            yield torch.tensor([float(at)])


def train(width: int, loaders: dict[str, DataLoader[Any]], pause: float = 0.01) -> None:
    """Train and evaluate by hand, the model alone without gradients."""
    model = nn.Sequential(nn.Linear(width, 8), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), 1e-6)
    for _ in range(EPOCHS):
        for phase, loader in loaders.items():
            for batch in timed(loader, phase):
                with torch.set_grad_enabled(phase == "training"):
                    loss = model(batch).mean()
                if phase == "training":
                    loss.backward()
                    optimizer.step()
                time.sleep(pause)


def decode() -> None:
    """Decoding, by two workers and by none."""
    images = Images(480)
    loaders = {"training": DataLoader(images, 16, num_workers=2), "evaluation": DataLoader(images, 32)}
    train(3 * 64 * 64, loaders)


def read() -> None:
    """Reading, persistent workers."""
    files = Files(640)
    train(4096, {"training": DataLoader(files, 16, num_workers=2, persistent_workers=True)}, pause=0.04)


def tiny() -> None:
    """A stream of tiny samples, without workers."""
    train(1, {"training": DataLoader(Numbers(60_000), 8)}, pause=0)


def ranks() -> None:
    """Two ranks, of which the second reads more slowly."""
    from torch import distributed

    distributed.init_process_group("gloo")
    rank = distributed.get_rank()
    files = Files(480 + 480 * rank)
    train(4096, {"training": DataLoader(files, 8 + 8 * rank, num_workers=1)}, pause=0.02)
    distributed.destroy_process_group()


def lightning() -> None:
    """Lightning's Trainer, by its own profiler."""
    import lightning
    from lightning.pytorch.profilers import SimpleProfiler

    class Model(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4096, 1)

        def training_step(self, batch: torch.Tensor, at: int) -> torch.Tensor:
            time.sleep(0.02)
            return self.layer(batch).mean()

        def validation_step(self, batch: torch.Tensor, at: int) -> None:
            self.layer(batch)
            time.sleep(0.02)

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 1e-6)

    profiler = SimpleProfiler()
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "accelerator": "cpu"}
    trainer = lightning.Trainer(max_epochs=EPOCHS, profiler=profiler, num_sanity_val_steps=0, **quiet)
    files = Files(640)
    trainer.fit(Model(), DataLoader(files, 16, num_workers=2), DataLoader(files, 32))
    for name, seconds in profiler.recorded_durations.items():
        if name.endswith("train_dataloader_next"):
            WAITED["training"] += sum(seconds)
        elif name.endswith("val_next"):
            WAITED["evaluation"] += sum(seconds)


class Passes:
    """A pass over a loader of accelerate's, begun by iter()."""

    def __init__(self, begin: Any, loader: Any) -> None:
        self.begin, self.loader = begin, loader

    def __iter__(self) -> Any:
        return self.begin(self.loader)


def hf() -> None:
    """Hugging Face's Trainer, whose DataLoaders pass through accelerate."""
    from accelerate.data_loader import DataLoaderShard
    from transformers import Trainer, TrainingArguments

    class Rows(Files):
        def __getitem__(self, at: int) -> Any:
            return {"x": super().__getitem__(at), "labels": torch.tensor(1.0)}

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = nn.Linear(4096, 1)

        def forward(self, x: torch.Tensor, labels: torch.Tensor) -> Any:
            time.sleep(0.02)
            return {"loss": (self.layer(x).squeeze(-1) - labels).pow(2).mean()}

    def timed_pass(loader: Any) -> Any:
        return timed(Passes(begin, loader), "training" if len(loader.dataset) == len(rows[0]) else "evaluation")

    rows = Rows(640), Rows(320)
    begin, DataLoaderShard.__iter__ = DataLoaderShard.__iter__, timed_pass
    quiet = {"report_to": [], "save_strategy": "no", "disable_tqdm": True, "use_cpu": True}
    quiet |= {"per_device_train_batch_size": 16, "per_device_eval_batch_size": 32, "dataloader_num_workers": 2}
    arguments = TrainingArguments(tempfile.mkdtemp(), num_train_epochs=EPOCHS, eval_strategy="epoch", **quiet)
    Trainer(Model(), arguments, train_dataset=rows[0], eval_dataset=rows[1]).train()


SCRIPTS = {"decode": decode, "read": read, "tiny": tiny, "lightning": lightning, "hf": hf, "ranks": ranks}

if __name__ == "__main__":
    begun = time.perf_counter()
    SCRIPTS[sys.argv[1]]()
    seconds = time.perf_counter() - begun
    print(json.dumps({"rank": int(os.environ.get("RANK", "0")), **WAITED, "seconds": seconds}), flush=True)
