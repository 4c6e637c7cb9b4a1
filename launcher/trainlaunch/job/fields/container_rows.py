"""Rows of the table of fields: the container and what it may use, DataLoaders and torchrun."""

from __future__ import annotations

from trainlaunch.job.fields.types import (
    ABSOLUTE_PATH,
    BOOL,
    NAME,
    STRING,
    SUBDOMAIN,
    VARIABLE,
    Field,
    Type,
    choice,
    integer,
    listing,
    mapping,
    record,
    size,
    text,
)
from trainlaunch.units import KIB, MIB

_IMAGE = (
    r"(?:[a-zA-Z0-9](?:[-.a-zA-Z0-9]*[a-zA-Z0-9])?(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[A-Za-z0-9_+.-]+:[0-9a-fA-F]{32,})?"
)
_USER = r"[A-Za-z0-9_][A-Za-z0-9_.-]*(?::[A-Za-z0-9_][A-Za-z0-9_.-]*)?"
_GROUP = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
_SIGNAL = r"(?:SIG)?(?:HUP|INT|QUIT|KILL|USR1|USR2|TERM|ALRM|PWR|WINCH|RTMIN(?:\+[0-9]{1,2})?)|[1-9]|[1-5][0-9]|6[0-4]"
_KEY = (r"\S+", "a key without spaces")
RESOURCE_NAME = r"[a-z0-9](?:[-.a-z0-9]*[a-z0-9])?/[A-Za-z0-9](?:[-._A-Za-z0-9]*[A-Za-z0-9])?"
_TYPES = (
    "bind: a path of this host · volume: the engine's named volume · tmpfs: memory · scratch: node-local disk, "
    "empty at the start · pvc: a PersistentVolumeClaim · config: a ConfigMap · code: a folder of this host, read-"
    "only; on Kubernetes an immutable ConfigMap of the files in it that git tracks ([code](kubernetes.md#code)). bind "
    "and volume need docker or compose, pvc and config need kubernetes; local takes a bind or code that working_dir or "
    "an argument leads to"
)

# One row a paragraph, as a table reads.
# fmt: off
_SECRET = record(
    Field("env", text(VARIABLE[1], VARIABLE[0]),
          "variable of this host that holds the value; this or `file` is required on docker, compose and local",
          docker="`--env NAME`", compose="`environment`", kubernetes="–"),
    Field("file", STRING,
          "file of this host that holds the value; a relative path is relative to the job file's folder. This or "
          "`env`",
          docker="`--mount`", compose="`secrets`", kubernetes="–"),
    Field("kubernetes", text("name/key of a Kubernetes Secret", SUBDOMAIN + r"/[-._a-zA-Z0-9]+"),
          "Secret and key, like `wandb/api-key`; required on kubernetes",
          docker="–", compose="–", kubernetes="`secretKeyRef`, volume"),
    Field("as", choice("env", "file"),
          "how the job sees it: the variable NAME, or the file /run/secrets/NAME, whose path is in NAME_FILE "
          "([secrets](secrets.md))", default="env"),
)

_MOUNT = record(
    Field("type", choice("bind", "volume", "tmpfs", "scratch", "pvc", "config", "code"), _TYPES, required=True,
          example="bind"),
    Field("source", STRING,
          "path, volume, PVC or ConfigMap; none for tmpfs and scratch. A relative path is relative to the job file's "
          "folder"),
    Field("target", ABSOLUTE_PATH, "path in the container; /dev/shm is `shm_size`'s", required=True,
          example="/workspace"),
    Field("read_only", BOOL, "whether the job can't write there; always true of code", default=False),
)

_RESOURCES = record(
    Field("cpus", Type("cpus", "a number of CPUs", low=10, high=10**7),
          "limit; required on Kubernetes, where request = limit",
          docker="`--cpus`", compose="`cpus`", kubernetes="requests, limits"),
    Field("memory", size(6 * MIB), "limit, /dev/shm included; required on Kubernetes, where request = limit",
          docker="`--memory`", compose="`mem_limit`", kubernetes="requests = limits"),
    Field("gpus", Type("gpus", "a count, a list of ids, or all", low=0, high=1024),
          "count; or a list of ids or `all` (docker, compose, local)", default=0,
          docker="`--gpus '\"device=0,1\"'`", compose="reservations", kubernetes="`nvidia.com/gpu`"),
    Field("gpu_vendor", choice("nvidia", "amd"),
          "maker of the GPUs. AMD's are device nodes: GPU n is /dev/dri/renderD(128 + n), a count takes the first, "
          "and a `user` who is not root needs the number of /dev/kfd's group in `group_add`", default="nvidia",
          docker="amd: `--device`", compose="amd: `devices`", kubernetes="amd: `amd.com/gpu`"),
    Field("gpu_resource", text("a resource's name, like nvidia.com/mig-1g.10gb", RESOURCE_NAME),
          "Kubernetes' name for the GPU resource (MIG names); amd.com/gpu with `gpu_vendor: amd`",
          shown="nvidia.com/gpu",
          docker="TL401", compose="TL401", kubernetes="limits"),
    Field("ephemeral_storage", size(MIB), "node-local disk of the container",
          docker="TL401", compose="TL401", kubernetes="requests = limits"),
    Field("extended", mapping(integer(1), RESOURCE_NAME, "a resource's name, like rdma/hca"),
          "other devices by name (RDMA, EFA), per container", default={},
          docker="TL401", compose="TL401", kubernetes="limits"),
)

_SHM_EXTRA = record(
    Field("name", text("a name", r"[^\S\n]*\S.*"), "who owns it", required=True, example="ray"),
    Field("size", size(), "its bytes; ray, vllm and nccl need none ([sizing](sizing.md))", example="2Gi"),
)

CONTAINER = (
    Field("name", text("a DNS-1123 label (a-z, 0-9 and -, at most 63, no - at the ends)", NAME),
          "the job's name; too long with a target's suffix: shortened with a hash", required=True,
          example="my-job",
          docker="`--name`", compose="service, project", kubernetes="`metadata.name`"),
    Field("image", text("an image reference, like pytorch/pytorch:2.9.1", _IMAGE),
          "image with a pinned tag or digest; `latest` or none is a finding. Target local needs none", required=True,
          example="pytorch/pytorch:2.9.1-cuda12.8-cudnn9-runtime",
          docker="image", compose="`image`", kubernetes="`image`"),
    Field("pull_policy", choice("always", "missing", "never"), "when the image is pulled", default="missing",
          docker="`--pull`", compose="`pull_policy`", kubernetes="`imagePullPolicy`"),
    Field("command", listing(STRING, low=1),
          "argv. `{num_workers}` `{prefetch_factor}` `{batch_size}` `{nproc_per_node}`, as a whole element or right "
          "after its `=`, are replaced inside the container, in values of `env` too. This or `script`",
          shown="this or script",
          docker="after image", compose="`command`", kubernetes="`args`"),
    Field("script", text("shell text", r"[\s\S]*\S[\s\S]*"),
          "shell text, run by `/bin/sh -eu`. This or `command`", shown="this or command",
          docker="after image", compose="`command`", kubernetes="`args`"),
    Field("image_entrypoint", listing(STRING),
          "argv of the image's ENTRYPOINT to keep in front, `[]` to drop it on purpose. Order: ENTRYPOINT, preflight, "
          "command", shown="unset",
          docker="`--entrypoint`", compose="`entrypoint`", kubernetes="`command`"),
    Field("working_dir", ABSOLUTE_PATH, "folder that the job starts in", shown="image's",
          docker="`--workdir`", compose="`working_dir`", kubernetes="`workingDir`"),
    Field("user", text("a user or uid, with :group or :gid after it if need be", _USER),
          "user or uid; a number on Kubernetes", shown="image's",
          docker="`--user`", compose="`user`", kubernetes="`runAsUser`, `runAsGroup`"),
    Field("group_add", listing(text("a group or gid", _GROUP)), "further groups; numbers on Kubernetes", default=(),
          docker="`--group-add`", compose="`group_add`", kubernetes="`supplementalGroups`"),
    Field("read_only", BOOL, "whether the root file system is read-only; brings its own /tmp", default=False,
          docker="`--read-only`", compose="`read_only`", kubernetes="`readOnlyRootFilesystem`"),
    Field("stop_signal", text("a signal, like SIGTERM", _SIGNAL), "signal that stops the job", shown="image's",
          docker="`--stop-signal`", compose="`stop_signal`", kubernetes="TL401"),
    Field("env", mapping(STRING, *VARIABLE),
          "variables; a plain scalar keeps its spelling (`no`, `1e3`, `08`)", default={},
          docker="`--env`", compose="`environment`", kubernetes="`env`"),
    Field("labels", mapping(STRING, *_KEY),
          "labels; a plain scalar keeps its spelling. What a Kubernetes label can't hold is an annotation", default={},
          docker="`--label`", compose="`labels`", kubernetes="`labels`"),
    Field("annotations", mapping(STRING, *_KEY), "annotations of Kubernetes objects", default={},
          docker="TL401", compose="TL401", kubernetes="`annotations`"),
    Field("secrets", mapping(_SECRET, *VARIABLE),
          "secrets by reference, never their value; each key is the job's variable", default={}),
    Field("mounts", listing(_MOUNT), "what is mounted", default=(),
          docker="`--mount`", compose="`volumes`, long form", kubernetes="`volumes`"),
    Field("resources", _RESOURCES, "limits of one container", default={}),
    Field("ranks_per_container", integer(1, 1024, auto=True),
          "training processes per container; auto: torchrun.nproc_per_node, or the number that the command gives "
          "torchrun, accelerate, deepspeed or mpirun, else gpus, else 1. `gpus: all` needs one of the first three",
          shown="auto"),
    Field("shm_size", size(4 * KIB, auto=True), "/dev/shm; below the one-epoch peak is an error", shown="auto",
          docker="`--shm-size`", compose="`shm_size`", kubernetes="Memory emptyDir + `sizeLimit`"),
    Field("shm_extra", listing(_SHM_EXTRA), "other owners of /dev/shm (Ray, vLLM, checkpoints), added to need",
          default=()),
)

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
          "batches that the training loop still references: 2 for a for-loop, 3 for Accelerate's on CPU, 2 × "
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
              "doesn't set from data_loader",
              shown="{train: {}}"),
        Field("loaders_run", choice("together", "in_turn"),
              "together: any may be alive with any other, as Hugging Face's Trainer's and Lightning's · in_turn: each "
              "loop runs to its end before the next starts",
              default="together"),
        Field("inject", choice("env", "num_workers", "force", "off"),
              "env: variables and tokens · num_workers: and DataLoaders that state none get theirs, which changes "
              "results ([inject](inject.md)) · force: and those that state a number too · off: nothing",
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
