"""Rows of the table of fields: DataLoaders and torchrun."""

from __future__ import annotations

from trainlaunch.job.fields.types import BOOL, Field, choice, integer, listing, mapping, record, size

# One row a paragraph, as a table reads.
# fmt: off
DTYPES = (
    "float32", "float64", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "uint16", "uint32",
    "uint64", "bool", "complex64", "complex128", "float8_e4m3fn", "float8_e5m2",
)

_TENSOR = record(
    Field("shape", listing(integer(1, 2**40)), "sizes after padding, without the batch; [] for one number",
          required=True, example="[3, 224, 224]"),
    Field("dtype", choice(*DTYPES), "torch's name of the element type", required=True, example="float32"),
)
_BATCH_BYTES = record(
    Field("size", size(), "bytes of the largest collated batch", required=True, example="77Mi"),
    Field("tensors", integer(1, 10**6), "separate storages in it", required=True, example="2"),
)

LOADER = (
    Field("batch_size", integer(1, nullable=True), "per rank and loader; null: the dataset yields batches",
          docker="env", compose="env", kubernetes="env"),
    Field("sample", listing(_TENSOR, low=1, single=True),
          "tensors of one sample, a list or one mapping: storages, so a view counts as what it is a view of. This or "
          "`batch_bytes`"),
    Field("batch_bytes", _BATCH_BYTES, "a measured batch. This or `sample`"),
    Field("num_workers", integer(0, 4096, auto=True), "worker processes", shown="auto",
          docker="env", compose="env", kubernetes="env"),
    Field("prefetch_factor", integer(1, 10**6), "batches that each worker keeps ready", default=2,
          docker="env", compose="env", kubernetes="env"),
    Field("pin_memory", BOOL, "whether batches go to page-locked memory", shown="true with GPUs",
          docker="env", compose="env", kubernetes="env"),
    Field("persistent_workers", BOOL, "whether workers outlive an epoch", default=False,
          docker="env", compose="env", kubernetes="env"),
    Field("timeout", integer(0), "seconds to wait for a batch, as DataLoader's own; 0: for ever", default=0,
          docker="env", compose="env", kubernetes="env"),
    Field("collate", choice("stack", "list", "none"),
          "stack: one tensor per field · list: one per sample · none: no tensors (numpy, strings)", default="stack"),
    Field("batches_held", integer(1, 10**6),
          "batches alive outside the queue: 2 for a for-loop, 3 for Accelerate's on CPU, 2 × "
          "gradient_accumulation_steps + 1 for Hugging Face's Trainer on CPU ([frameworks](frameworks.md))", default=2),
)

_LOADERS = mapping(
    record(*LOADER), r"[A-Za-z0-9](?:[-_A-Za-z0-9]{0,61}[A-Za-z0-9])?", "a loader's name (letters, digits, - and _)",
    low=1,
)

TRAINING = (
    Field("data_loader", record(
        *LOADER,
        Field("max_workers", integer(1, 4096), "most workers that auto takes", default=16),
        Field("sharing_strategy", choice("file_descriptor", "file_system"), "torch's sharing strategy",
              default="file_descriptor"),
        Field("multiprocessing_context", choice("fork", "spawn", "forkserver"), "how workers start", default="fork"),
        Field("dataset_tensor_bytes", size(0), "bytes of tensors inside the dataset; counted for spawn and forkserver",
              default=0),
        Field("loaders", _LOADERS,
              "every DataLoader of the script, those that evaluate too: others are not counted; each takes what it "
              "doesn't state from data_loader",
              shown="{train: {}}"),
        Field("loaders_run", choice("together", "in_turn"),
              "together: any may be alive with any other, as Hugging Face's Trainer's and Lightning's · in_turn: each "
              "loop runs to its end before the next starts",
              default="together"),
        Field("inject", choice("env", "num_workers", "off"),
              "env: variables and tokens · num_workers: and DataLoaders that state none get theirs, which changes "
              "results ([inject](inject.md)) · off: nothing",
              default="env"),
        instead={"none": {"loaders": {}}},
    ), "the job's DataLoaders; sizes /dev/shm. none: a job without one, which has no workers and 64 MiB, or what NCCL "
       "and `shm_extra` need", default={}),
    Field("torchrun", record(
        Field("nproc_per_node", integer(1, 1024), "ranks per container", shown="gpus or 1"),
        Field("nnodes", integer(1, 1024), "containers, each with all resources; more than 1 on docker and local: TL401",
              default=1, compose="services", kubernetes="pods"),
        Field("rdzv_backend", choice("c10d"), "rendezvous", default="c10d"),
        Field("rdzv_port", integer(1, 65535), "port of the rendezvous", default=29500),
        Field("max_restarts", integer(0), "restarts of all ranks inside the container", default=0),
    ), "puts `torchrun … --no-python` in front of the command", shown="off",
        docker="argv", compose="argv", kubernetes="argv"),
)
