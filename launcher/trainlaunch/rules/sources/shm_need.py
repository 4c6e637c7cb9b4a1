"""How certain it is that a container needs more of /dev/shm than the runtime's 64 MiB, and by what."""

from __future__ import annotations

import re
from typing import NamedTuple

from trainlaunch.diagnostics import Severity
from trainlaunch.formats.workload import stated
from trainlaunch.job.shm_owners import Surroundings, is_vllm, vllm_law
from trainlaunch.rules.sources.container_facts import env_of, gpu_count, has_gpu, is_torch_image, is_torch_itself
from trainlaunch.rules.sources.near_scripts import MOST_OF_YOLO, NearScript
from trainlaunch.rules.sources.programs import OTHER, SERVING, YOLO, hands_on_training, program
from trainlaunch.rules.sources.purpose import (
    certainly_trains,
    is_of_others,
    is_of_torch,
    is_torch_base,
    ranks_of,
    shown_workers,
    workers_of,
)
from trainlaunch.rules.sources.script_workers import MOST_SAMPLES, MOST_TINY
from trainlaunch.rules.sources.source_text import SourceContainer
from trainlaunch.rules.sources.training_commands import is_training, program_of, stated_batch
from trainlaunch.units import counted, human_size

_INTERACTIVE = frozenset(
    {"", "bash", "sh", "zsh", "sleep", "tail", "jupyter", "jupyter-lab", "jupyter-notebook", "start-notebook.sh"}
)
_KEPT_OPEN = frozenset({"--interactive", "--tty", "--detach"})  # else an image without a command runs its own program
IDLE_IMAGE = "a PyTorch image with GPUs"
LONE_GPU = "a GPU; one process without workers is right without"
_CERTAIN = 3  # signs, beyond which a lack is an error where nothing can tell the workers
_MANY = 640  # samples alive at once, of which each may have 100 kB
_FEW_PARTS = 2  # whose buffers of 9.6 MB a channel fit 64 MiB, which have room for 6
# Scripts of images that fit into 64 MiB, and of texts.
_SMALL = re.compile(
    r"mnist|cifar|dataloader_num_workers|run_(?:glue|clm|mlm|squad|ner)\b|tokeniz|(?<![a-z])(?:gpt|bert|lm|text|tabular|csv|seq)"
    r"|(?<![a-z])(?:img|image)[-_]?size[= ](?:\d\d|1[0-2]\d)\b|sharing[-_]strategy|--help",
    re.IGNORECASE,
)
_SERVED = frozenset({"its ports", "its probes", "its health check"})  # signs that more than a shell is in an image
_NEAR = 40  # lines behind a docker line in which commands are typed into its shell
_SHARDS = re.compile(r"(?:--tensor-parallel-size|--tp-size|--tp|-tp|--num-shard)[= ](\d{1,3})\b")
_SERVES_VLLM = re.compile(r"(?:^|/)vllm-openai(?:-\w+)?(?:[:@]|$)")  # its entrypoint is the server
_DEVICES = re.compile(r"device=\[?\d+,")  # of yolo, a rank each


class Beside(NamedTuple):
    """What the rest of the text says: objects with a sized pod, whether a build gets a size, and lines that train.

    Each line comes with whether its command sets ranks or workers.
    """

    sized_objects: set[str]
    sized_at_build: bool
    training_lines: tuple[tuple[int, bool], ...]


def object_of(container: SourceContainer) -> str:
    """Return which object of a text of manifests a container is of."""
    return container.workload.place.partition(" ")[0]


def need(container: SourceContainer, beside: Beside) -> tuple[Severity | None, str]:
    """Return how certain a container needs more, and by what; None where nothing says so."""
    if container.purpose.verdict == OTHER:
        return None, ""
    if container.purpose.verdict == SERVING:
        shards = _shards(container)
        severity = Severity.WARNING if shards > _FEW_PARTS else Severity.INFO
        return (severity, _parted(container, shards)) if shards > 1 else (None, "")
    return _of_training(container, beside) if certainly_trains(container) else _of_unknown(container, beside)


def _of_training(container: SourceContainer, beside: Beside) -> tuple[Severity | None, str]:
    workload, workers, ranks = container.workload, workers_of(container), ranks_of(container)
    script = container.purpose.script or NearScript(trains=False, serves=False, workers=None)
    shown = shown_workers(container)
    count, gpus, torch = gpu_count(workload), has_gpu(workload), is_of_torch(container)
    by_torch = Severity.ERROR if torch and shown != 0 else Severity.WARNING
    # One worker's batches are small as often as not, and a script may have its workers on a GPU alone.
    launched = script.ranks or any(program(each).launched for each in container.argvs)
    among_ranks = gpus and count != 1 and ranks > 1 and not _without_nccl_shm(container)
    if (workers or (shown and shown > 1 and gpus)) and not (gpus and script.tiny and launched and count != 1):
        found = _of_workers(container, script, workers, shown or 0)
        if found[0] is not Severity.INFO or not among_ranks:
            return found
    if object_of(container) in beside.sized_objects and gpus:
        return by_torch, "training with GPUs, and another pod of the same object has a size"
    if beside.sized_at_build:
        return Severity.WARNING, "a training command, and a size is given to `docker build` alone"
    if among_ranks:
        # With P2P, or memory that NCCL takes from the driver, its buffers lie elsewhere.
        return Severity.WARNING, f"{ranks} ranks on GPUs, and NCCL puts its buffers there"
    alone = count == 1 or (count is None and ranks == 1 and not launched)
    quiet = _without_nccl_shm(container) and not shown
    if not gpus or (alone and (shown == 0 or is_of_others(container) or script.other)) or quiet:
        return (None, "") if gpus else _on_cpus(container, script)
    if count is not None and count > 1:
        lone = not launched and ranks == 1 and (is_of_others(container) or script.other)  # one process has them all
        return Severity.INFO if lone else Severity.WARNING, f"training with {count} GPUs"
    commanded = script.trains or any(map(is_training, container.argvs))
    pod = container.object_kind and not commanded
    what = "a pod of a training job with GPUs" if pod else "a training command with GPUs"
    return _of_lone(container, what, told=torch and commanded) if alone else (Severity.WARNING, what)


def _of_lone(container: SourceContainer, what: str, *, told: bool) -> tuple[Severity, str]:
    """Return the same of one process with a GPU, of which nothing tells the workers; `told`: PyTorch's training is."""
    certain = (
        told and container.object_kind and container.purpose.script is None and len(container.purpose.signs) > _CERTAIN
    )
    # Of an image that is built here, and of a module, the program is here too, and may well have no workers.
    here = container.built is not None or any("-m" in each for each in container.argvs)
    small = any(_SMALL.search(program(each).script) for each in container.argvs)
    # What a mount or a shell brings may be any program.
    other = container.workload.mounts or container.argv not in container.argvs
    if certain and is_torch_itself(container) and not here and not small and not other:
        return Severity.ERROR, what
    return Severity.INFO, f"{what}, if its DataLoaders have workers"


def _of_workers(
    container: SourceContainer, script: NearScript, workers: int | None, shown: int
) -> tuple[Severity, str]:
    """Return the same of workers that a command sets, or else of those that its script shows."""
    if workers and _is_handed_on(container):
        return _handed_on(container, workers)
    found = counted(workers or shown, "DataLoader worker")
    own = any(program(each).name == YOLO for each in container.argvs)
    found = found if workers else f"yolo's own {found}" if own else f"the script's {found}"
    if script.tiny and 2 * (workers or shown) * (stated_batch(container.argvs) or 0) <= MOST_TINY:
        return Severity.INFO, f"{found}, whose batches are small"
    launched = script.ranks or any(program(each).launched for each in container.argvs)
    if (script.small and not workers and not launched) or _are_few(container, workers or shown):
        return Severity.INFO, f"{found}, whose batches are small"
    if (workers == 1 or own) and not has_gpu(container.workload):  # Ultralytics starts none on a CPU
        return Severity.INFO, found
    read = container.purpose.script is not None and not own
    many = script.samples is not None and script.samples >= _MANY
    if script.bulky is False or (read and not workers and not script.bulky and not many):
        return Severity.INFO, f"{found}, if their batches are large"
    words = " ".join(each for each in container.argv if "/" not in each or each.endswith(".py"))  # not paths of data
    unread = not read and not own and is_torch_itself(container) and not _SMALL.search(words)
    return Severity.ERROR if unread and (workers or 0) > 1 else Severity.WARNING, found


def _handed_on(container: SourceContainer, workers: int) -> tuple[Severity, str]:
    told = workers > 1 and has_gpu(container.workload) and _is_handed_on(container)
    severity = Severity.WARNING if told and not _are_few(container, workers) else Severity.INFO
    return severity, f"{counted(workers, 'DataLoader worker')}, if the program trains"


def _is_handed_on(container: SourceContainer) -> bool:
    """Return whether a container's words are arguments of training, for a program that nothing here tells."""
    return container.argv in container.argvs and hands_on_training(container.argv)


def _are_few(container: SourceContainer, workers: int) -> bool:
    """Return whether the batch that a command of one rank sets is so small that what its workers hold fits."""
    batch = stated_batch(container.argvs)
    most = MOST_OF_YOLO if any(program(each).name == YOLO for each in container.argvs) else MOST_SAMPLES
    launched = any(program(each).launched or any(map(_DEVICES.match, each)) for each in container.argvs)
    return batch is not None and not launched and 2 * workers * batch <= most


def _on_cpus(container: SourceContainer, script: NearScript) -> tuple[Severity | None, str]:
    """Return the same of a container that trains without a GPU, where batches are small as often as not."""
    if is_torch_image(container) and container.object_kind.endswith("TrainingRuntime"):
        told = not container.argvs or any(
            map(is_training, container.argvs)
        )  # not a shell that only shows what is there
        return Severity.WARNING if told else Severity.INFO, "a PyTorch image in a runtime that trains"
    if script.on_cpu > 1:
        return Severity.INFO, f"the script's {counted(script.on_cpu, 'DataLoader worker')}, on CPUs"
    return None, ""


def _of_unknown(container: SourceContainer, beside: Beside) -> tuple[Severity | None, str]:
    workload, workers, count = container.workload, workers_of(container), gpu_count(container.workload)
    gpus, idle = (
        has_gpu(workload),
        not container.argvs or {program_of(each) for each in container.argvs} <= _INTERACTIVE,
    )
    if workers:
        return _handed_on(container, workers)
    if gpus and object_of(container) in beside.sized_objects:
        return Severity.WARNING, "another pod of the same object has a size"
    if gpus and idle and is_torch_base(container) and not _SERVED & {*container.purpose.signs}:
        # Of an image that is built here a notebook, tests or text may be all that runs in it.
        return Severity.WARNING if container.built is None else Severity.INFO, IDLE_IMAGE
    line = workload.span.line
    shell = bool(container.argvs) or workload.format != "docker_run" or not _KEPT_OPEN.isdisjoint(workload.rest)
    followed = [certain for each, certain in beside.training_lines if line < each <= line + _NEAR]
    if gpus and idle and shell and followed:
        found = Severity.WARNING if any(followed) and not is_of_others(container) else Severity.INFO
        return found, "a shell with GPUs, and training commands follow for it"
    if count is not None and count > 1:
        told = any(each == "the image" or each.startswith("the kind ") for each in container.purpose.signs)
        several = told and not is_of_others(container)
        return Severity.WARNING if several else Severity.INFO, f"{count} GPUs, and NCCL puts its buffers there"
    return (Severity.INFO, LONE_GPU) if gpus else (None, "")


def _without_nccl_shm(container: SourceContainer) -> bool:
    """Return whether a variable keeps NCCL from /dev/shm; loaders are another matter."""
    return stated(env_of(container).get("NCCL_SHM_DISABLE")) == "1"


def _parted(container: SourceContainer, shards: int) -> str:
    """Return what a model in several parts puts there, with its bytes where the server's own law says them."""
    image = (stated(container.workload.image) or "").partition("@")[0]
    if any(map(is_vllm, container.argvs)) or _SERVES_VLLM.search(image):
        queues = vllm_law(Surroundings(container.argvs, {}, None, 0, shards, 1)).size
        return f"a model in {shards} parts, whose queues in vLLM take {human_size(queues)} there at most"
    return f"a model in {shards} parts, which pass tensors on there"


def _shards(container: SourceContainer) -> int:
    """Return over how many of its GPUs a server spreads its model, 1 where its command doesn't say.

    Parts that other containers have are reached by the network.
    """
    found = [int(match[1]) for argv in container.argvs for match in _SHARDS.finditer(" ".join(argv))]
    others = (int(each) for each in container.workload.devices.values() if re.fullmatch(r"[1-9]\d?", each))
    return min(max(found, default=1), gpu_count(container.workload) or max(others, default=1000))
