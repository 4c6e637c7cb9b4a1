"""The same loaders in the hands of real libraries: each function trains as its library's users do.

`train.py` calls the function that a configuration's `library` names, with its loaders and its program.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import torch
from loops import Json, wait_until_full
from torch.utils.data import DataLoader, Dataset, IterableDataset, get_worker_info

BATCHES = 14  # of an epoch: more than the queue of any configuration


class Rows(Dataset[Any]):
    """Samples of zeros as `spec` shapes them, by the names that a model takes."""

    def __init__(self, spec: Json) -> None:
        self.shape, self.length = spec["sample"][0]["shape"], BATCHES * spec["batch_size"]

    def __len__(self) -> int:
        return self.length

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        return {"values": torch.zeros(self.shape)}


class Model(torch.nn.Module):
    """A model of one weight whose forward waits until all queues are full, as a long step does."""

    def __init__(self, program: Json) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))
        self.program = program

    def forward(self, values: torch.Tensor) -> dict[str, torch.Tensor]:
        wait_until_full(self.program)
        return {"loss": (self.weight * values.mean()).square().sum(), "logits": values[:, :1].clone()}


def of_torch(spec: Json) -> Json:
    """Return the keyword arguments of a DataLoader."""
    return {key: spec[key] for key in ("batch_size", "num_workers", "prefetch_factor", "persistent_workers")}


def hugging_face(specs: list[Json], program: Json) -> None:
    """Train with the Trainer, which evaluates every few steps."""
    from transformers import Trainer, TrainingArguments

    train = specs[0]
    arguments = TrainingArguments(
        output_dir="/tmp/hugging-face",
        num_train_epochs=program["epochs"],
        per_device_train_batch_size=train["batch_size"],
        per_device_eval_batch_size=specs[-1]["batch_size"],
        gradient_accumulation_steps=program.get("accumulate", 1),
        eval_strategy=program.get("evaluate", "steps") if len(specs) > 1 else "no",
        eval_steps=program.get("evaluate_every", 4),
        dataloader_num_workers=train["num_workers"],
        dataloader_prefetch_factor=train["prefetch_factor"],
        dataloader_persistent_workers=train["persistent_workers"],
        prediction_loss_only=True,
        remove_unused_columns=False,
        save_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=True,
    )
    Trainer(Model(program), arguments, train_dataset=Rows(train), eval_dataset=Rows(specs[-1])).train()


def accelerate(specs: list[Json], program: Json) -> None:
    """Loop over what Accelerate prepared."""
    from accelerate import Accelerator

    loader = Accelerator(cpu=True).prepare(DataLoader(Rows(specs[0]), **of_torch(specs[0])))
    model = Model(program)
    for _ in range(program["epochs"]):
        for batch in loader:
            model(**batch)


def lightning(specs: list[Json], program: Json) -> None:
    """Fit with a validation that runs several times an epoch."""
    import lightning as framework

    class Module(framework.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = Model(program)

        def training_step(self, batch: Json, _: int) -> torch.Tensor:
            return self.model(**batch)["loss"]

        def validation_step(self, batch: Json, _: int) -> None:
            self.model(**batch)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.SGD(self.parameters(), lr=0.1)

    train, val = (DataLoader(Rows(each), **of_torch(each)) for each in specs)
    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = framework.Trainer(max_epochs=program["epochs"], val_check_interval=0.5, accelerator="cpu", **quiet)
    trainer.fit(Module(), train, val)


class Shards(IterableDataset[Any]):
    """Batches of samples, as a WebDataset with `.batched()` yields them; or single samples."""

    def __init__(self, spec: Json, *, batched: bool) -> None:
        self.spec, self.batched = spec, batched

    def __iter__(self) -> Iterator[Any]:
        worker = get_worker_info()
        shape, size = self.spec["sample"][0]["shape"], self.spec["batch_size"]
        for _ in range(worker.id, BATCHES, worker.num_workers):
            if self.batched:
                yield (torch.zeros([size, *shape]),)
            else:
                yield from ((torch.zeros(shape),) for _ in range(size))


def webdataset(specs: list[Json], program: Json) -> None:
    """Shuffle samples in the main process, or in the workers before they make batches."""
    import webdataset as wds

    spec, buffer = specs[0], program.get("shuffle")
    source: Any = Shards(spec, batched=bool(buffer))
    if not buffer:
        source = wds.DataPipeline(source, wds.shuffle(8), wds.batched(spec["batch_size"]))
    keys = ("num_workers", "prefetch_factor", "persistent_workers")
    loader = wds.WebLoader(source, batch_size=None, **{key: spec[key] for key in keys})
    if buffer:
        loader = loader.unbatched().shuffle(buffer).batched(program["batched"])
    for _ in range(program["epochs"]):
        for batch in loader:
            wait_until_full(program)
            assert batch is not None


def geometric(specs: list[Json], program: Json) -> None:
    """Batch graphs with PyTorch Geometric."""
    from torch_geometric.data import Data
    from torch_geometric.loader import DataLoader as GraphLoader

    edges = torch.zeros(2, 4096, dtype=torch.long)
    graphs = [Data(x=torch.zeros(1024, 16), edge_index=edges.clone(), y=torch.zeros(1)) for _ in range(BATCHES * 4)]
    told = of_torch({**specs[0], "batch_size": 4})
    plain(program, GraphLoader(graphs, **told))


def monai(specs: list[Json], program: Json) -> None:
    """Load images with MONAI, whose tensors carry meta data."""
    from monai.data import DataLoader as ImageLoader
    from monai.data import Dataset as Images
    from monai.transforms import Compose, EnsureTyped

    files = [{"image": torch.zeros(1, 64, 64, 16), "label": torch.zeros(1, 64, 64, 16)} for _ in range(BATCHES * 4)]
    images = Images(files, Compose([EnsureTyped(["image", "label"])]))
    plain(program, ImageLoader(images, **of_torch({**specs[0], "batch_size": 4})))


def torchdata(specs: list[Json], program: Json) -> None:
    """Loop over a StatefulDataLoader for each, one after the other."""
    from torchdata.stateful_dataloader import StatefulDataLoader

    plain(program, *(StatefulDataLoader(Rows(each), **of_torch(each)) for each in specs))


def plain(program: Json, *loaders: Any) -> None:
    """Run loops of several epochs that keep the last batch."""
    for _ in range(program["epochs"]):
        for loader in loaders:
            for batch in loader:
                wait_until_full(program)
                assert batch is not None


LIBRARIES: dict[str, Callable[[list[Json], Json], None]] = {
    each.__name__: each for each in (hugging_face, accelerate, lightning, webdataset, geometric, monai, torchdata)
}
os.environ.setdefault("HF_HUB_OFFLINE", "1")
