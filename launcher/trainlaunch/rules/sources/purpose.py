"""What a container is for: training, serving or another thing, as far as the signs of its text say.

One sign proves nothing: a variable NUM_WORKERS is a web server's as often as a DataLoader's, and a GPU is anybody's.
Two that don't stem from the same word make training certain, and only then is a lack of shared memory an error.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from trainlaunch.diagnostics import Severity
from trainlaunch.formats.workload import Workload, stated
from trainlaunch.rules.sources.container_facts import env_of, has_gpu, images_of, in_front_of, is_torch_image
from trainlaunch.rules.sources.near_scripts import (
    YOLO_WORKERS,
    NearScript,
    near_script,
    shown_whole,
    together,
    written_inside,
)
from trainlaunch.rules.sources.programs import OTHER, SERVING, TRAINING, UNKNOWN, YOLO, Argv, program, work_of
from trainlaunch.rules.sources.script_workers import started_by
from trainlaunch.rules.sources.source_text import COMPOSE, Purpose, SourceContainer, context_of
from trainlaunch.rules.sources.training_commands import (
    is_training,
    loader_workers,
    stated_ranks,
    stated_workers,
    yolo_on_cpu,
)
from trainlaunch.script.config_files import SUFFIXES

_SERVING_IMAGE = re.compile(
    r"(?:^|[/_.-])(?:vllm(?:-openai)?|sglang|text-generation-inference|tgi|text-embeddings-inference|tei|tritonserver"
    r"|triton-?(?:inference-?)?server|torchserve|ollama|llama[._-]?cpp|localai|open-?webui|comfyui|infinity|lmdeploy|xinference"
    r"|nim|kserve|seldon|bentoml|inference|serve|serving|server|api|frontend|backend|whisper|stable-diffusion-webui)"
    r"(?:[/_.:@-]|$)"
)
_OTHER_IMAGE = re.compile(
    r"(?:^|[/_.-])(?:pause|dcgm-exporter|dcgm|device-plugin|k8s-device-plugin|gpu-operator|gpu-burn|cuda-sample|nccl-tests"
    r"|node-exporter|exporter|nvidia-smi|selenium|chrome\w*|playwright|browserless|postgres\w*|mysql|redis|mongo|rabbitmq|kafka|neo4j"
    r"|elasticsearch|grafana|prometheus|nginx|traefik|minio|blender|ffmpeg|plex|jellyfin|frigate|hashcat|folding\w*|miner|xmrig"
    r"|gromacs|lammps|namd|relion|colabfold|alphafold|isaac-sim|carla|ros\d?|gazebo|cuda-quantum|rapidsai|spark\w*|flink|actions-runner"
    r"|gitlab-runner|buildkit|kind|k3s|k3d|minikube|code-server|xfce\w*|vnc\w*|desktop|novnc|kasm\w*)(?:[/_.:@-]|$)"
)
_TRAINING_NAME = re.compile(
    r"(?:^|[/_.-])(?:(?:pre|fine)[-_]?)?(?:train(?:ing|er)?|finetun(?:e|ing)|fine-?tun(?:e|ing)|pretrain(?:ing)?)\d*(?:[/_.:-]|$)"
)
_OF_TORCH = frozenset({"PyTorchJob", "TrainJob", "TrainingRuntime", "ClusterTrainingRuntime"})
_TRAINING_KINDS = _OF_TORCH | {"PaddleJob", "TFJob", "MPIJob"}
_SERVING_KINDS = frozenset(
    {"Deployment", "DaemonSet", "ReplicaSet", "StatefulSet", "InferenceService", "Service", "Rollout"}
)
_OF_OTHERS = re.compile(
    r"tensorflow|(?:^|[/_.:-])tf-?[12](?:\.?\d{1,2}){0,3}(?!\d)|xgboost|lightgbm|(?:^|[/_.-])jax|maxtext|paddle|mxnet|mindspore|sklearn|scikit|catboost"
)
_TORCHRUN = frozenset({"torchrun", "torch.distributed.run"})
_OF_LOADER = "workers of a DataLoader"
_OWN_TEXT = "the script's own text"
_SERVING_NAME = re.compile(
    r"(?:^|[/_.-])(?:api|web|server|serving|inference|predict(?:or)?|gateway|frontend|backend|worker|celery|ui|webui|dashboard|bot)"
    r"\d*(?:[/_.-]|$)"
)
_PROBE = re.compile(r"(?:^|\.)(?:liveness|readiness|startup)Probe\.(?:httpGet|tcpSocket|grpc)\.")
_PORT = re.compile(r"(?:^|\.)ports\.\d+(?:\.(?:containerPort|target|published))?$")
# Ports by which ranks meet, a shell or a board looks on, none of which serves a model.
_NOT_SERVING = frozenset(
    {"22", "2222", "6006", "8888", "8786", "8265", "23456", "29500", "29400", "12345", "5678", "1234"}
)
_HTTP = re.compile(r"\bcurl\b|\bwget\b|https?://|urllib|requests\.get")


def purpose_of(container: SourceContainer, carried: Mapping[str, str] = {}) -> Purpose:
    """Return what a container is for, with its signs; `carried` are scripts that its text carries by name."""
    env, span = env_of(container), container.workload.span
    started = [(_near(container, each, carried), each) for each in container.argvs]
    started.append((written_inside(container.argv), ()))
    scripts = [
        started_by(_of_ranks(each, argv), argv, env | in_front_of(argv, span))
        for each, argv in started
        if each is not None
    ]
    return _weighed(container, scripts)._replace(script=together(scripts))


def _of_ranks(script: NearScript, argv: Argv) -> NearScript:
    return script._replace(ranks=script.ranks and (script.trains or is_training(argv)))


def _weighed(container: SourceContainer, scripts: list[NearScript]) -> Purpose:
    found = [work_of(each) for each in container.argvs]
    serving = list(_signs_of_serving(container.workload, container))
    image = stated(container.workload.image) or ""
    if any(kind == SERVING for kind, _ in found) or any(each.serves for each in scripts):
        return Purpose(SERVING, ("its command serves", *serving))
    training = _training(container, found, scripts)
    commanded = any(kind == TRAINING for kind, _ in found) or any(each.trains for each in scripts)
    own = bool(found) or not _OTHER_IMAGE.search(_bare_name(image))  # a command, or an image that may have one
    commanded = commanded or (container.object_kind in _OF_TORCH and own and not _all_other(found))
    if not commanded and _SERVING_IMAGE.search(_bare_name(image)):
        return Purpose(SERVING, (f"the image {image}", *serving))
    if not commanded and (_OTHER_IMAGE.search(_bare_name(image)) or _all_other(found)):
        return Purpose(OTHER, tuple(training))
    beside = [each for each in serving if not each.startswith("the kind ")]
    if len(serving) > 1 or (beside and len(training) < 3):
        return Purpose(SERVING if len(serving) > 1 and not commanded else UNKNOWN, (*training, *serving))
    argued = any(signs for _, signs in found)
    certain = len(training) > (1 if commanded or argued else 2) and (commanded or argued or _OF_LOADER in training)
    return Purpose(TRAINING if certain else UNKNOWN, tuple(training))


def trains(container: SourceContainer) -> bool:
    """Return whether a container's command trains, and nothing says that it serves."""
    shown = _OWN_TEXT in container.purpose.signs or any(map(is_training, container.argvs))
    return container.purpose.verdict in {TRAINING, UNKNOWN} and shown


def certainly_trains(container: SourceContainer) -> bool:
    """Return whether two signs say that a container trains: what alone makes an error of what training lacks."""
    return container.purpose.verdict == TRAINING


def by_purpose(container: SourceContainer) -> Severity:
    """Return how grave a wrong /dev/shm is: an error where PyTorch certainly trains with workers or ranks."""
    if not certainly_trains(container) or is_of_others(container):
        return Severity.WARNING if trains(container) else Severity.INFO
    workers = shown_workers(container)
    if ranks_of(container) > 1 or workers:
        return Severity.ERROR
    return Severity.WARNING if workers is None else Severity.INFO


def workers_of(container: SourceContainer) -> int | None:
    """Return the DataLoader workers that a container sets; None where it sets none.

    In Ray's objects variables like NUM_WORKERS count Ray's own workers.
    """
    if container.purpose.verdict in {SERVING, OTHER}:
        return None
    span, of_ray = container.workload.span, container.object_kind.startswith("Ray")
    env = {} if of_ray else env_of(container)
    found = (stated_workers((each,), env if of_ray else env | in_front_of(each, span)) for each in container.argvs)
    return max((each for each in found if each is not None), default=None)


def shown_workers(container: SourceContainer) -> int | None:
    """Return the DataLoader workers that a container sets, or else its script shows; None where neither does."""
    workers, script = workers_of(container), container.purpose.script
    return script.workers if workers is None and script is not None else workers


def ranks_of(container: SourceContainer) -> int:
    """Return the training processes that a container's launcher starts, 1 where nothing says a number."""
    return stated_ranks(container.argvs) or _handed_ranks(container) or 1


def _handed_ranks(container: SourceContainer) -> int | None:
    """Return the number that a variable, which Kubeflow's operator may set, hands to a torchrun without one."""
    started = (each for each in container.argvs if program(each).launched and "nproc" not in " ".join(each))
    if not any(_TORCHRUN & {*map(posixpath.basename, each)} for each in started):
        return None
    handed = stated(env_of(container).get("PET_NPROC_PER_NODE")) or container.workload.rest.get("spec.nprocPerNode")
    return int(str(handed)) if re.fullmatch(r"[1-9]\d{0,2}", str(handed)) else None


def _all_other(found: list[tuple[str, tuple[str, ...]]]) -> bool:
    return bool(found) and all(kind == OTHER for kind, _ in found)


def _near(container: SourceContainer, argv: Argv, carried: Mapping[str, str]) -> NearScript | None:
    script = program(argv).script
    if yolo_on_cpu(argv):
        return NearScript(trains=False, serves=False, workers=0)
    told = any(each.startswith(("workers=", "cfg=")) for each in argv)
    if program(argv).name == YOLO and is_training(argv) and not told:
        return NearScript(trains=False, serves=False, workers=YOLO_WORKERS, bulky=True)
    text = carried.get(posixpath.basename(script)) if script else None
    if text is not None:
        return shown_whole(text)
    words = argv[argv.index(script) + 1 :] if script in argv else ()
    files = [each.partition("=")[2] or each for each in words if each.endswith(SUFFIXES)]
    # Without any the script is read once for all; one that a mount covers may say anything.
    named = words if files and not any(_is_mounted(container, each) for each in files) else ()
    return near_script(container.workload.span.file, script, context_of(container), named) if script else None


def _is_mounted(container: SourceContainer, path: str) -> bool:
    """Return whether a mount may lie over a file that a command names."""
    named = posixpath.normpath(path).lstrip("./")
    places = [named[: match.start()] for match in re.finditer("/|$", named) if match.start()]
    targets = [stated(each.target) or "" for each in container.workload.mounts]
    return any(f"/{target}".endswith(f"/{place}") for target in targets for place in places)


def _training(
    container: SourceContainer, found: list[tuple[str, tuple[str, ...]]], scripts: list[NearScript]
) -> list[str]:
    """Return the signs of training, each by another word."""
    workload = container.workload
    signs = list(dict.fromkeys(sign for _, each in found for sign in each))
    if any(each.trains for each in scripts):
        signs.append(_OWN_TEXT)
    workers = loader_workers(container.argvs)
    if workers:
        signs.append(_OF_LOADER)
    if has_gpu(workload):
        signs.append("a GPU")
    if container.object_kind in _TRAINING_KINDS:
        signs.append(f"the kind {container.object_kind}")
    image = _bare_name(stated(workload.image) or "")
    if is_torch_base(container) or _TRAINING_NAME.search(image):
        signs.append("the image")
    if _TRAINING_NAME.search(_name_of(workload)):
        signs.append("the name")
    return signs


def is_of_others(container: SourceContainer) -> bool:
    """Return whether an image is of another framework, whose loaders need no /dev/shm."""
    return any(map(_OF_OTHERS.search, images_of(container)))


def is_of_torch(container: SourceContainer) -> bool:
    """Return whether something beside the name of a script says that it is PyTorch that trains."""
    if is_of_others(container):
        return False
    launched = any(program(each).launched for each in container.argvs)
    known = launched or container.object_kind in _OF_TORCH or _OWN_TEXT in container.purpose.signs
    return known or is_torch_image(container)


def _name_of(workload: Workload) -> str:
    """Return what a text calls a container, and what it stands in; a line's own words are no name."""
    place = workload.place.partition(".")[2] if workload.format == COMPOSE else workload.place.partition(" ")[0]
    if workload.format == "docker_run":
        place = ""
    return "/".join((place, stated(workload.name) or "", str(workload.rest.get("container.name", "")))).lower()


def _bare_name(image: str) -> str:
    return image.partition("@")[0].lower()


_BASE = re.compile(
    r"(?:^|/)(?:pytorch/pytorch|nvidia/pytorch|nvidia/nemo|rocm/pytorch(?:-training)?|pytorch-training|huggingface-pytorch-training)(?:[:@]|$)"
)


def is_torch_base(container: SourceContainer) -> bool:
    """Return whether an image is one of those that people train in: PyTorch's own, NVIDIA's, AMD's, Amazon's."""
    return any(map(_BASE.search, images_of(container)))


def _signs_of_serving(workload: Workload, container: SourceContainer) -> Iterator[str]:
    """Yield by what a container looks like one that serves."""
    rest = workload.rest
    if container.object_kind in _SERVING_KINDS:
        yield f"the kind {container.object_kind}"
    if _SERVING_NAME.search(_name_of(workload)) and not _TRAINING_NAME.search(_name_of(workload)):
        yield "its name"
    ports = [str(value) for key, value in rest.items() if _PORT.search(key)]
    ports += [str(each) for each in _items(rest.get("--publish", ()))]
    if any(each.rpartition(":")[2].partition("/")[0] not in _NOT_SERVING for each in ports):
        yield "its ports"
    if any(_PROBE.search(key) for key in rest):
        yield "its probes"
    health = stated(workload.health)
    if workload.format in {COMPOSE, "docker_run"} and isinstance(health, str) and _HTTP.search(health):
        yield "its health check"
    if rest.get("service.restart") in {"always", "unless-stopped"} or rest.get("--restart") in {
        ("always",),
        ("unless-stopped",),
    }:
        yield "its restarts"


def _items(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)
