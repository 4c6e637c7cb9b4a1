"""What kind of work the words of one command name: training, serving, or something else that is no training.

A word alone proves nothing: `accelerate launch api.py` serves, `train_server.py` does too, `composer install` is PHP's.
"""

from __future__ import annotations

import posixpath
import re
from typing import NamedTuple, TypeAlias

from trainlaunch.job.command_script import LAUNCHING_MODULES, CommandScript, launched_script, script_of_python

Argv: TypeAlias = tuple[str, ...]

TRAINING, SERVING, OTHER, UNKNOWN = "training", "serving", "other", "unknown"

_LAUNCHERS = frozenset({"torchrun", "accelerate", "deepspeed", "composer", "horovodrun", "colossalai"})
# Words behind which a launcher starts a script; without one of them the first word that is no option is the script.
_SUBCOMMANDS = {"accelerate": frozenset({"launch"}), "colossalai": frozenset({"run"})}
YOLO = "yolo"  # of Ultralytics
# Programs whose subcommand trains.
_TRAINERS = {
    "axolotl": frozenset({"train"}),
    "llamafactory-cli": frozenset({"train"}),
    "litgpt": frozenset({"finetune", "finetune_full", "finetune_lora", "pretrain"}),
    "swift": frozenset({"sft", "pt", "rlhf"}),
    "trl": frozenset({"sft", "dpo", "grpo", "kto", "reward"}),
    "xtuner": frozenset({"train"}),
    YOLO: frozenset({"train", "mode=train"}),
}
_SERVERS = frozenset({
    *("uvicorn", "gunicorn", "hypercorn", "daphne", "granian", "waitress-serve", "celery", "dask", "dask-worker"),
    *("dask-scheduler", "rq", "dramatiq", "huey"),
    *("flask", "fastapi", "streamlit", "gradio", "vllm", "sglang", "lmdeploy"),
    *("text-generation-launcher", "text-embeddings-router", "tritonserver", "torchserve", "torch-model-archiver"),
    *("ollama", "llama-server", "mlflow", "airflow", "prefect", "dagster", "tensorboard", "node", "npm", "npx", "yarn"),
    *("java", "nginx", "caddy", "redis-server", "postgres", "mongod", "kubectl", "helm", "bentoml", "infinity_emb"),
    *("aphrodite", "modelscope-server", "locust", "superset", "rails", "puma", "php-fpm", "php", "supervisord"),
})  # fmt: skip
_SERVING_MODULES = re.compile(
    r"(?:uvicorn|gunicorn|flask|http/server|vllm|sglang|tritonserver|streamlit|gradio|celery|lmdeploy|fastchat"
    r"|llama_cpp|mlc_llm|ray/serve|bentoml)(?:/.*)?"
)
_OTHERS = frozenset({
    *("nvidia-smi", "rocm-smi", "amd-smi", "nvcc", "df", "pause", "sleep", "tail", "gpu-burn", "gpu_burn", "dcgmi"),
    *("dcgm-exporter", "nv-hostengine", "nvidia-device-plugin", "gpu-feature-discovery", "nvidia-mig-manager"),
    *("vectoradd", "vectorAdd", "deviceQuery", "bandwidthTest", "nbody", "clinfo", "ffmpeg", "pytest", "tox", "nox"),
    *("ctest", "bats", "make", "cmake", "ninja", "cargo", "go", "pip", "pip3", "apt-get", "git", "curl", "wget", "ls"),
    *("mypy", "ruff", "black", "pre-commit", "sphinx-build", "mkdocs", "hashcat", "glmark2", "vulkaninfo", "colmap"),
    *("cat", "echo", "true", "exit", "mkdir", "cp", "rm", "chmod", "chown", "tar", "printenv", "hostname", "id"),
})  # fmt: skip
_BENCHMARKS = re.compile(r"(?:all_reduce|all_gather|alltoall|broadcast|reduce|reduce_scatter|sendrecv)_perf(?:_mpi)?")
_TRAINS = re.compile(
    r"(?:^|[-_.])(?:(?:pre|fine)[-_]?)?(?:train|training|trainer)(?=[-_.])|(?:^|[-_.])(?:fine[-_]?tune|finetuning)(?=[-_.])"
)
# A script called after training that does another thing with it.
_NOT_TRAINING = re.compile(
    r"(?:^|[-_.])(?:serv(?:e|er|ice|ing)|api|apps?|ui|web|webui|dashboard|bot|predict\w*|infer(?:ence)?|worker|monitor"
    r"|download\w*|prepar\w*|preprocess\w*|tokeniz\w*|schedul\w*|route|ticket|station|split\w*|plot\w*|convert\w*|export\w*"
    r"|watch\w*|submit\w*|launcher|status|notify\w*|upload\w*|visuali[sz]e\w*|report|queue|proxy|client)(?=[-_.])|^test[-_]"
)
_SERVES = re.compile(
    r"(?:^|[-_.])(?:serv(?:e|er|ice|ing)|api|apps?|web|webui|gradio\w*|streamlit\w*|bot|chat\w*|demo|predict\w*"
    r"|infer(?:ence)?|endpoint|handler|generat(?:e|or|ion)|worker|consumer|dashboard|manage)(?=[-_.])"
)
_BESIDE = re.compile(
    r"(?:^|[-_.])(?:eval\w*|tests?|bench\w*|export\w*|convert\w*|preprocess\w*|prepar\w*|download\w*|tokeni[sz]e\w*"
    r"|plot\w*|setup|profil\w*|score|sample|crawl\w*|scrap\w*|collect\w*|check\w*|verify\w*)(?=[-_.])"
)
# Programs in front of another one; what follows them is looked for by its own name.
_WRAPPERS = frozenset({
    *("exec", "time", "nohup", "env", "uv", "poetry", "conda", "micromamba", "mamba", "pixi", "pdm", "hatch", "rye"),
    *("mpirun", "mpiexec", "srun", "nsys", "numactl", "taskset", "xvfb-run", "tini", "dumb-init", "timeout", "nice"),
    *("stdbuf", "sudo", "gosu", "pipenv", "unbuffer", "memray", "py-spy", "ncu", "ionice", "setsid", "command"),
})  # fmt: skip
_PYTHON = re.compile(r"python[\d.]*|pypy3?")
_ARGUMENTS = re.compile(
    r"--?(?:[\w.]*[-_.])?(?:num[-_](?:train[-_])?epochs?|epochs?|max[-_]steps|learning[-_]rate|lr|batch[-_]size|bs"
    r"|(?:micro|global|train|per[-_]device[-_]train)[-_]batch[-_]size|gradient[-_]accumulation[-_]steps|weight[-_]decay"
    r"|warmup[-_](?:steps|ratio)|optimizer|lora[-_](?:r|rank|alpha)|train[-_](?:data|file|set|iters)\w*|resume[-_\w]*"
    r"|do[-_]train|freeze[-_\w]*|momentum)(?:=.*)?"
)
# Those that also evaluation and serving take.
_AMBIGUOUS = re.compile(r"--?(?:[\w.]*[-_.])?(?:batch[-_]size|bs|resume[-_\w]*)(?:=.*)?")


class Program(NamedTuple):
    """What one command starts: a program, the script or module that it runs, and whether by a launcher of ranks."""

    name: str
    script: str = ""
    launched: bool = False


def bare(argv: Argv) -> Argv:
    """Return a command without the wrappers, variables and options in front of its program."""
    rest = list(argv)
    while rest and (re.match(r"[A-Za-z_]\w*=", rest[0]) or posixpath.basename(rest[0]) in _WRAPPERS):
        wrapper = posixpath.basename(rest.pop(0))
        if wrapper in _WRAPPERS and rest[:1] == ["run"]:
            rest.pop(0)
        if rest and wrapper in _WRAPPERS and rest[0].startswith("-"):
            at = next((index for index, each in enumerate(rest) if _is_program(each)), None)
            rest = rest[at:] if at is not None else rest[1:]
    return tuple(rest)


def _is_program(word: str) -> bool:
    name = posixpath.basename(word)
    return _PYTHON.fullmatch(name) is not None or name in _LAUNCHERS or name in _TRAINERS or name in _SERVERS


def program(argv: Argv) -> Program:
    """Return what a command starts; an empty name where nothing is left behind its wrappers."""
    rest = bare(argv)
    if not rest:
        return Program("")
    name = posixpath.basename(rest[0])
    if name in _LAUNCHERS:
        wanted = _SUBCOMMANDS.get(name)
        launched = wanted is None or bool(wanted & {*rest[1:3]})
        return Program(name, _file_of(launched_script(rest, 1), rest), launched=True) if launched else Program(name)
    if not _PYTHON.fullmatch(name):
        return Program(name, name if name.endswith(".py") else "")
    found = script_of_python(rest, 1)
    launched = not LAUNCHING_MODULES.isdisjoint(rest[1 : found.at if found else None])
    return Program(name, _file_of(found, rest if launched else ()), launched)


def _file_of(script: CommandScript | None, words: Argv) -> str:
    """Return the file of a script, or the first word that a variable decides, which may be one too."""
    return script.files[0] if script else next((each for each in words if "$" in each and not each.startswith("-")), "")


def work_of(argv: Argv) -> tuple[str, tuple[str, ...]]:
    """Return the kind of work that a command names, and the signs of training in its words."""
    found = program(argv)
    rest = bare(argv)
    script = posixpath.basename(found.script)
    if found.name in _SERVERS:
        return SERVING, ()
    if found.name in _OTHERS or _BENCHMARKS.fullmatch(found.name):
        return OTHER, ()
    if found.name in _TRAINERS:
        trains = _TRAINERS[found.name] & {*rest[1:4]}
        return (TRAINING, (f"the program {found.name} {min(trains)}",)) if trains else (OTHER, ())
    if not found.script:
        return (UNKNOWN, ())
    if _SERVING_MODULES.fullmatch(found.script.removesuffix(".py")):
        return SERVING, ()
    named = _TRAINS.search(script) is not None
    if _NOT_TRAINING.search(script) or (not named and _SERVES.search(script)):
        return SERVING if _SERVES.search(script) else OTHER, ()
    if not named and _BESIDE.search(script):
        return OTHER, ()
    signs = [f"the launcher {found.name}"] if found.launched else []
    signs += [f"the script {script}"] if named else []
    signs += ["arguments of training"] if _says_training(rest) else []
    return (TRAINING if found.launched or named else UNKNOWN), tuple(signs)


def hands_on_training(argv: Argv) -> bool:
    """Return whether a command is arguments alone, of training, which the image's own program gets."""
    return bool(argv) and argv[0].startswith("-") and _says_training(("", *argv))


def _says_training(words: Argv) -> bool:
    given = {each.partition("=")[0] for each in words[1:] if _ARGUMENTS.fullmatch(each)}
    return len(given) > 1 or any(not _AMBIGUOUS.fullmatch(each) for each in given)
