"""The script that a command names, where it lies beside the text that has the command: what it shows at a glance.

It lies in a folder between the text's and the repository's root, and is never run. How many workers its loaders have
is what `init` reads of it: another pool's workers are no DataLoader's.
"""

from __future__ import annotations

import contextlib
import functools
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import ITS_OWN
from trainlaunch.rules.sources.near_files import NO_CONTEXT, BuildContext, is_file, near_file
from trainlaunch.script.read_script import Loading, loading_at, loading_in
from trainlaunch.script.script_facts import Loader
from trainlaunch.units import MIB

# A script that imports one of these computes with PyTorch.
TORCH = re.compile(
    r"^[ \t]*(?:from |import (?:[\w.]+(?: as \w+)?, ?)*)"
    r"(?:torch|lightning|pytorch_lightning|transformers|accelerate)\b",
    re.MULTILINE,
)
_OTHER = re.compile(r"^[ \t]*(?:import|from) (?:tensorflow|keras|jax|flax|mxnet|paddle|xgboost|lightgbm)\b", re.M)
_TINY = re.compile(r"\b(?:\w*MNIST|CIFAR100?)\(")  # images of 32 by 32, of which a batch of 1,024 has 12 MiB
_ENLARGES = re.compile(r"Resize|Processor|\.transforms\(|\b224\b|\b(?:(?:img|image|input)_)?size\s*=")
_OF_TOKENS = frozenset({  # what a script of text imports that brings no samples of other kinds
    *("transformers", "tokenizers", "datasets", "tiktoken", "sentencepiece", "accelerate", "peft", "trl", "deepspeed"),
    *("flash_attn", "bitsandbytes", "safetensors", "huggingface_hub", "evaluate", "nltk", "jsonlines", "pyarrow"),
    *("lightning", "pytorch_lightning", "metaflow", "rich", "click", "typer", "fire", "absl", "omegaconf", "hydra"),
    *("dotenv", "loguru", "minio", "prometheus_client"),
})  # fmt: skip
# What reads rows, graphs and molecules, of which a sample has some kilobytes.
_OF_ROWS = frozenset({
    *("pandas", "csv", "sklearn", "polars", "pyarrow", "torch_geometric", "dgl", "networkx", "rdkit", "Bio", "h5py"),
    *("gym", "gymnasium", "yfinance", "statsmodels", "xgboost", "lightgbm", "jiwer"),
})  # fmt: skip
_ROWS = re.compile(rf"^[ \t]*(?:import|from) (?:{'|'.join(sorted(_OF_ROWS - {'h5py'}))})\b", re.MULTILINE)
# What says in a script's text that a sample is a picture, a film or a volume.
_BULKY = re.compile(
    r"ImageFolder|ImageNet|\bCOCO\b|pixel_values|\b(?:img|image|crop|input)_?size\b|Resize|(?:Center|Random)Crop|[Vv]oxel|[Vv]olumes?\b|[Vv]ideo"
    r"|\b3, ?\d{2,4}, ?\d{2,4}\b|(?<![a-z])(?:[Vv]ision|[Ll]lava|[Mm]ulti_?[Mm]odal)"
)
_TRAINS = re.compile(r"\.backward\(|\boptimizer\w*\.step\(|\bTrainer\(|\.train\(\)|\btrainer\.fit\(")
_OF_YOLO = re.compile(r"^[ \t]*(?:from|import) ultralytics\b", re.MULTILINE)
_YOLO_TRAINS = re.compile(r"^[^#\n]{0,200}\.train\([^)]{0,400}\b(?:data|epochs)\s*=", re.MULTILINE)
_YOLO_WORKERS = re.compile(r"\bworkers[\"']?\s*[=:]\s*(\w[\w.]*)")
_YOLO_ON_CPU = re.compile(r"\bdevice[\"']?(?:(?!is_available)[^\n]){0,80}[=:,][ \t]*[\"'](?:cpu|mps)[\"']")
_YOLO_BATCH = re.compile(r"\bbatch[\"']?\s*[=:]\s*([1-9]\d*)(?![.\d])")
YOLO_WORKERS = 8  # Ultralytics', where nothing sets them
MOST_OF_YOLO = 50  # images alive at once, two batches a worker: of 640 by 640 these are 61 MB
_SERVES = re.compile(
    r"\b(?:FastAPI|Flask|Sanic|Starlette)\(|\buvicorn\.run\(|\bgr\.(?:Blocks|Interface)\(|\bgrpc\.server\(|HTTPServer\("
)
# Of these a script that imports nothing else has no loader that its own text doesn't name.
_BARE = sys.stdlib_module_names | {
    *("torch", "torchvision", "torchaudio", "numpy", "scipy", "pandas", "sklearn", "matplotlib", "seaborn", "tqdm"),
    *("PIL", "cv2", "yaml", "wandb", "mlflow", "tensorboard", "psutil", "pynvml", "boto3", "requests", "einops"),
}
_HEARS = re.compile(r"SIGTERM|\bsignal\.signal\(|^[ \t]*(?:import|from) (?:pytorch_)?lightning\b", re.MULTILINE)
_IMPORT = re.compile(r"^[ \t]*(?:from[ \t]+([.\w]+)[ \t]+import\b|import[ \t]+([\w., \t]+))", re.MULTILINE)
_JOINS = re.compile(r"\binit_process_group\(|\bDistributedDataParallel\b")  # ranks that a launcher starts
_SPAWNS = re.compile(
    r"(?:\b(?:x?mp|multiprocessing)\.|(?<![.\w])(?<!def ))(?:spawn|start_processes|notebook_launcher|elastic_launch)\("
)
_STARTS = re.compile(r"\b(?:Process|launch)\(")  # a rank, where the script joins a group too
_MAY_LOAD = re.compile(r"DataLoader|Trainer\(|[Ww]orkers")
_MOST_MODULES = 20


class NearScript(NamedTuple):
    """What a script's text shows: `trains` or `serves`, and `workers` of its loaders, None where it doesn't say.

    `ranks` share more than small batches; `tiny` are its samples, `small` its batches; `other` is another framework
    alone. `loaders` are those that it makes, of which a command may decide something. `on_cpu` are its surest workers
    where there is no GPU. `hears` says that it does something at a signal, `by_yolo` that Ultralytics makes its
    loaders, and `bulky` that a sample is a picture, a sound or a volume, None where nothing says that or a text or row.
    `samples` are those alive at once, None where nothing tells the batch.
    """

    trains: bool
    serves: bool
    workers: int | None
    ranks: bool = False
    tiny: bool = False
    small: bool = False
    other: bool = False
    loaders: tuple[Loader, ...] = ()
    on_cpu: int = 0
    hears: bool = False
    by_yolo: bool = False
    bulky: bool | None = None
    samples: int | None = None


def together(scripts: list[NearScript]) -> NearScript | None:
    """Return what several scripts of one container show, None of none."""
    numbers = [each.workers for each in scripts]
    loading = [each for each in scripts if each.workers != 0]
    most = max(filter(None, numbers), default=None if None in numbers else 0)  # a 0 says nothing of another script
    shown = NearScript(
        any(each.trains for each in scripts),
        any(each.serves for each in scripts),
        most,
        any(each.ranks for each in scripts),
        all(each.tiny for each in loading),
        all(each.small for each in loading),
        all(each.other for each in scripts),
        on_cpu=max((each.on_cpu for each in scripts), default=0),
        hears=any(each.hears for each in scripts),
        bulky=max((each.bulky for each in loading), key=[False, None, True].index, default=None),
        samples=max((each.samples for each in scripts if each.samples is not None), default=None),
    )
    return shown if scripts else None


@functools.lru_cache(maxsize=1024)
def near_script(
    text: str, script: str, context: BuildContext = NO_CONTEXT, words: tuple[str, ...] = ()
) -> NearScript | None:
    """Return what the script shows that a command of the file `text` names; None where it isn't there.

    `words` are those behind the script, where some may name its configuration.
    """
    path = near_file(text, script, context) if PurePosixPath(script).suffix in {".py", ""} and script else None
    return script_at(path.resolve(), words) if path is not None else None


def written_inside(argv: Iterable[str]) -> NearScript | None:
    """Return what a script shows that a command itself writes, as in a here-document; None where it writes none."""
    text = next((each for each in argv if "\n" in each and TORCH.search(each)), None)
    return None if text is None else shown_whole(text)


@functools.lru_cache(maxsize=256)
def script_at(path: Path, words: tuple[str, ...] = ()) -> NearScript | None:
    """Return what a script shows with the modules beside it; None where it can't be read."""
    try:
        text = read_regular(path, MIB).decode(errors="replace")
    except (OSError, ValueError):
        return None
    beside = dict(_modules_beside(path, text))
    whole = _with_loaders("\n".join((text, *beside.values())), loading_at(path, words), frozenset(beside))
    return whole._replace(serves=shown_by(text).serves)


def text_with_modules(path: Path) -> str | None:
    """Return the text of a script and of all that it imports from beside it; None where a part can't be read."""
    texts: dict[Path, str] = {}
    waiting = [path]
    while waiting and len(texts) <= _MOST_MODULES:
        each = waiting.pop()
        try:
            texts[each] = read_regular(each, MIB).decode()
        except (OSError, ValueError):
            return None
        for module in {*_modules(texts[each])}:
            first, *parts = module.split(".")
            beside = each.parent.joinpath(first, *parts).with_suffix(".py") if first else None
            if beside is not None and is_file(beside) and ITS_OWN.holds(beside, path):
                waiting += [beside] if beside not in texts else []
            elif first not in _BARE | _OF_TOKENS | _OF_ROWS:
                return None
    return None if waiting else "\n".join(texts.values())


def _modules_beside(path: Path, text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each module that a script imports from its own folder or the one above."""
    for module in sorted({*_modules(text)})[:_MOST_MODULES]:
        parts = [each for each in module.split(".") if each]
        places = (folder.joinpath(*parts).with_suffix(".py") for folder in path.parents[:2] if parts)
        found = next((each for each in places if each != path and is_file(each)), None)
        if found is not None and ITS_OWN.holds(found, path):
            with contextlib.suppress(OSError, ValueError):
                yield module, read_regular(found, MIB).decode(errors="replace")


def shown_whole(text: str) -> NearScript:
    """Return what a script shows of which nothing but this text is there."""
    return _with_loaders(text, loading_in(text))


def _with_loaders(text: str, loading: Loading, beside: frozenset[str] = frozenset()) -> NearScript:
    """Return what a script shows, with the modules `beside` it: without other imports and loaders it has no workers."""
    loaders, of_tokens, of_media, read = loading
    given = {each.settings["num_workers"].text for each in loaders}
    spread = [number for each in given if each.startswith("**") for number in _spread(each[2:], text)]
    shown = shown_by(text)
    others = {each for each in _modules(text) if each not in beside and each.partition(".")[0] not in _BARE}
    unread = {
        each for each in others if each.partition(".")[0] not in _OF_TOKENS and each.rpartition(".")[2] not in read
    }
    tiny = shown.tiny or (of_tokens and not unread)
    slight = of_tokens or _only_counts(text) or (not unread - _OF_ROWS and _ROWS.search(text) is not None)
    bulky = True if of_media or _BULKY.search(text) else False if slight else None
    shown = shown._replace(loaders=loaders, workers=max(spread, default=None), tiny=tiny, bulky=bulky)
    if not loaders and _OF_YOLO.search(text) and _YOLO_TRAINS.search(text):
        return _by_yolo(shown, text)
    return shown if loaders or others or _MAY_LOAD.search(text) else shown._replace(workers=0)


def _only_counts(text: str) -> bool:
    """Return whether a script has nothing of torch but loaders, and only counts what they bring: maybe no tensors."""
    loops = [*re.finditer(r"^[ \t]*for (\w+) in \w*loader:", text, re.MULTILINE)]
    used = (
        re.findall(rf"(?<!\w)(\w{{1,60}})\([^()\n]{{0,99}}\b{each[1]}\b|\b{each[1]}[.\[]", text[each.end() :])
        for each in loops
    )
    computes = any(re.match(r"torch(?!\w|\.utils\b)", each) for each in _modules(text))
    return bool(loops) and not computes and {"len"}.issuperset(*used)


def _by_yolo(shown: NearScript, text: str) -> NearScript:
    """Return what a script shows that trains with Ultralytics: its workers, where its own text sets them or nothing."""
    given = _YOLO_WORKERS.findall(text)
    known = [int(each) for each in given if each.isdecimal()]
    shown = shown._replace(trains=True, by_yolo=True, bulky=True)
    if len(known) < len(given) or (not given and ("**" in text or "cfg" in text)) or _YOLO_ON_CPU.search(text):
        return shown
    workers = max(known, default=YOLO_WORKERS)
    batches = [int(each) for each in _YOLO_BATCH.findall(text)]
    small = bool(batches) and 2 * workers * max(batches) <= MOST_OF_YOLO
    return shown._replace(workers=workers, small=small)


def _spread(name: str, text: str) -> Iterator[int]:
    """Yield the workers of a dictionary that a loader gets whole, as where CUDA is; nothing where it is changed."""
    if name.isidentifier() and not re.search(rf"\b{name}(?:\.(?:update|pop)\(|\[|\s*\|=)", text):
        found = re.findall(rf"\b{name}\s*=\s*\{{[^{{}}]*[\"']num_workers[\"']\s*:\s*(\d{{1,3}})\b", text)
        yield from map(int, found)


def _modules(text: str) -> Iterator[str]:
    """Yield the dotted name of each module that is imported; it starts with a dot where it lies in the same package."""
    for module, modules in _IMPORT.findall(text):
        yield from (each.strip().partition(" ")[0] for each in (module or modules).split(","))


def shown_by(text: str) -> NearScript:
    """Return what the text of a script shows at a glance, which is nothing of its loaders."""
    torch = TORCH.search(text) is not None
    return NearScript(
        torch and _TRAINS.search(text) is not None,
        _SERVES.search(text) is not None,
        None,
        # One that only joins a group is one rank a container, unless a launcher starts it.
        (_SPAWNS.search(text) or (_JOINS.search(text) and _STARTS.search(text))) is not None,
        tiny=_TINY.search(text) is not None and _ENLARGES.search(text) is None,
        other=not torch and _OTHER.search(text) is not None,
        hears=_HEARS.search(text) is not None,
    )
