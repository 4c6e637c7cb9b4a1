"""Frameworks that a script uses: Hugging Face's Trainer, Accelerate, CUDA; and the calls of a program by name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from trainlaunch.script.loader_settings import spread_settings
from trainlaunch.script.program import Program
from trainlaunch.script.resolve import Scope
from trainlaunch.script.script_facts import KNOWN, OPTION, UNKNOWN, Loader, Option, Value
from trainlaunch.script.source import PythonSource

HUGGING_FACE = ("transformers.", "trl.", "sentence_transformers.", "setfit.")
LIGHTNING = ("lightning.", "pytorch_lightning.", "lightning_fabric.")
_OF_TRAINER = {
    "num_workers": ("dataloader_num_workers", 0),
    "prefetch_factor": ("dataloader_prefetch_factor", None),
    "pin_memory": ("dataloader_pin_memory", None),
    "persistent_workers": ("dataloader_persistent_workers", None),
}
_BATCHES = {"train": "per_device_train_batch_size", "eval": "per_device_eval_batch_size"}
_READ_OF_TRAINER = (*(name for name, _ in _OF_TRAINER.values()), *_BATCHES.values(), "gradient_accumulation_steps")
_TRAINERS_BATCH = 8
_TOKENS = re.compile(r"transformers\.(?:\w+\.)*\w*Tokenizer\w*|(?:tokenizers|tiktoken|sentencepiece)(?:\.[\w.]+)?")
_MEDIA = re.compile(  # whose samples are images, sound or arrays
    r"(?:PIL|cv2|torchvision|torchaudio|librosa|soundfile|decord|imageio|skimage|monai|timm|albumentations|h5py)(?:\.[\w.]+)?"
    r"|transformers\.(?:\w+\.)*\w*(?:Processor|FeatureExtractor|CLIP|Vision|ViT|Image|Audio|Speech|Whisper)\w*"
    r"|(?:diffusers|webdataset|open_clip)(?:\.[\w.]+)?"
)

_LARGE = re.compile(
    r"(?:PIL|cv2|torchvision|torchaudio|librosa|soundfile|decord|imageio|skimage|monai|timm|albumentations|kornia|nibabel|SimpleITK|torchio|pydicom|tifffile"
    r"|rasterio|mmdet|mmseg|mmcv|mmengine|detectron2|ultralytics|diffusers|open_clip|nnunet\w*|open3d)(?:\.[\w.]+)?"
    r"|transformers\.(?:\w+\.)*\w*(?:CLIP|Vision|ViT|Image|Detr)\w*"
)


class Calls(NamedTuple):
    """Every call of a program with its whole name."""

    program: Program

    def named(self, *ends: str, of: tuple[str, ...] = ("",)) -> Iterator[tuple[ast.Call, PythonSource]]:
        """Yield the calls whose name ends in one of `ends` and begins with one of `of`."""
        for source in self.program.sources:
            for node, called in source.calls:
                if called.startswith(of) and called.endswith(ends) and self.program.runs(source, node):
                    yield node, source

    def first(self, *ends: str, of: tuple[str, ...] = ("",)) -> str:
        """Return the place of the first such call, `` without one."""
        return next((source.place(node) for node, source in self.named(*ends, of=of)), "")


def hugging_face(program: Program) -> tuple[tuple[Loader, ...], tuple[Option, ...], tuple[str, ...]]:
    """Return the Trainer's loaders, the options that HfArgumentParser gives the script, and notes."""
    calls = Calls(program)
    made = next(calls.named("Trainer", of=HUGGING_FACE), None)
    parsers = calls.named("HfArgumentParser", "TrlParser", of=HUGGING_FACE)
    parsed = next((source.place(call) for call, source in parsers if _takes_arguments(program, source, call)), "")
    options = _trainer_options(parsed) if parsed else ()
    if made is None:
        return (), options, ()
    stated = _training_arguments(calls, Scope(program, made[1]))
    by_name = {each.dest: Value(OPTION, option=each) for each in options} | stated
    place = made[1].place(made[0])
    made_at = calls.first("TrainingArguments", of=HUGGING_FACE) or calls.first("Config", of=("trl.",)) or place
    loaders = tuple(Loader(name, _trainer_settings(by_name, name, made_at), place) for name in _BATCHES)
    return loaders, options, tuple(_trainer_notes(by_name, place))


def _takes_arguments(program: Program, source: PythonSource, parser: ast.Call) -> bool:
    """Whether a parser fills the Trainer's own arguments, or those of a class that is made of them."""
    names = [each for part in parser.args[:1] for each in ast.walk(part) if isinstance(each, (ast.Name, ast.Attribute))]
    return any(_is_arguments(program, source, each) for each in names)


def _is_arguments(program: Program, source: PythonSource, node: ast.expr, depth: int = 3) -> bool:
    name = source.dotted(node)
    if name.startswith(HUGGING_FACE) and name.endswith(("TrainingArguments", "Config")):
        return True
    own = [
        (each, where)
        for where in program.sources
        for each in where.tree.body
        if isinstance(each, ast.ClassDef) and each.name == name.rpartition(".")[2]
    ]
    return bool(depth) and any(
        _is_arguments(program, where, base, depth - 1) for each, where in own for base in each.bases
    )


def _trainer_options(place: str) -> tuple[Option, ...]:
    defaults = {"dataloader_num_workers": 0, **dict.fromkeys(_BATCHES.values(), _TRAINERS_BATCH)}
    return tuple(
        Option(f"--{name}", name, value, False, place, names=(f"--{name}", f"--{name.replace('_', '-')}"))
        for name, value in defaults.items()
    )


def _training_arguments(calls: Calls, scope: Scope) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for call, source in calls.named("TrainingArguments", "Config", of=HUGGING_FACE):
        inside = Scope(scope.program, source, source.function(call))
        for each in call.keywords:
            spread = None if each.arg else spread_settings(inside, each.value)
            stated = {each.arg: inside.value(each.value)} if each.arg else spread
            if stated is None:  # it may hold any of them
                stated = dict.fromkeys(_READ_OF_TRAINER, Value(UNKNOWN, text=f"**{ast.unparse(each.value)}"))
            found |= {name: _at(value, name, source.place(each.value)) for name, value in stated.items()}
    return found


def _at(value: Value, name: str, place: str) -> Value:
    """Return a constant with the keyword and the line that give it."""
    return value._replace(text=name, place=place) if value.kind == KNOWN and not value.place else value


def _trainer_settings(by_name: Mapping[str, Value], loader: str, place: str) -> dict[str, Value]:
    settings = {"batch_size": by_name.get(_BATCHES[loader], Value(KNOWN, _TRAINERS_BATCH))}
    for field, (name, default) in _OF_TRAINER.items():
        if name in by_name:
            settings[field] = by_name[name]
        elif default is not None:
            settings[field] = Value(KNOWN, default, text=name, place=place)
    return settings


def _trainer_notes(by_name: Mapping[str, Value], place: str) -> Iterator[str]:
    if "dataloader_num_workers" not in by_name:
        yield (
            f"{place}: Hugging Face's Trainer loads with dataloader_num_workers, 0 unless set. Let the script take "
            "it from its command line (HfArgumentParser) and pass --dataloader_num_workers={num_workers}."
        )
    stated = by_name.get("gradient_accumulation_steps", Value(KNOWN, 1)).number
    steps = stated if isinstance(stated, int) and stated > 0 else 1
    yield (
        f"{place}: on CPU the Trainer uses 2 × gradient_accumulation_steps + 1 batches: "
        f"data_loader.batches_held: {2 * steps + 1}. Both its loaders count together: it evaluates while the one "
        "that trains is alive."
    )


def look_ahead(program: Program) -> tuple[str, ...]:
    """Return the note of a script whose loaders Accelerate prepares."""
    calls = Calls(program)
    place = calls.first("Accelerator", of=("accelerate.",)) and calls.first(".prepare", ".prepare_data_loader")
    return (f"{place}: on CPU Accelerate fetches one batch ahead: data_loader.batches_held: 3.",) if place else ()


def loads_tokens(sources: Iterable[PythonSource]) -> bool:
    """Return whether files import a tokenizer, and nothing that reads images or sound."""
    names = {name for source in sources for name in source.imports.values()}
    return any(map(_TOKENS.fullmatch, names)) and not any(map(_MEDIA.fullmatch, names))


def loads_media(sources: Iterable[PythonSource]) -> bool:
    """Return whether files import what reads pictures, sound or volumes, of which a sample is large."""
    return any(_LARGE.fullmatch(name) for source in sources for name in source.imports.values())


def names_cuda(program: Program) -> str:
    """Return the place where the script first names CUDA, `` without one."""
    return first_text(program, {"cuda", "cuda:0"}) or Calls(program).first(".cuda")


def first_text(program: Program, texts: set[str]) -> str:
    for source in program.sources:
        for node in source.nodes:
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in texts:
                return source.place(node)
    return ""
