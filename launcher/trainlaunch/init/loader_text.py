"""The data_loader block of a drafted job file."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from trainlaunch.script.options import takes_auto, token_options
from trainlaunch.script.script_facts import (
    AUTO,
    GUARDED,
    KNOWN,
    OVERRIDE,
    UNKNOWN,
    VARIABLE,
    Loader,
    ScriptFacts,
    Turns,
    Value,
)

_OF_WORKERS = frozenset({"prefetch_factor", "persistent_workers", "timeout"})
_CONTEXTS = {"fork", "spawn", "forkserver"}
_FIELD = re.compile(r"^# (?=[a-z_]+: )")  # in a block that is all comments, fields lose theirs and words keep it
SAMPLE = (
    "# The tensors of one sample, after padding and without the batch, size /dev/shm. Until they are set it is half",
    "# of the memory limit, or 8 GiB; `trainlaunch probe` measures them on the script itself.",
    "# sample: [{shape: [3, 224, 224], dtype: float32}, {shape: [], dtype: int64}]",
)


@dataclass(frozen=True, slots=True)
class DraftLine:
    """One field: its value as YAML, None where only a comment can stand; why it is so."""

    field: str
    value: str | None
    comment: str

    def text(self) -> list[str]:
        """Return the lines without indentation."""
        if self.value is not None:
            return [f"{self.field}: {self.value} # {self.comment}"]
        return [f"# {line}" for line in textwrap.wrap(self.comment, 106, break_long_words=False)]


def data_loader_block(facts: ScriptFacts | None, *, workers_certain: bool | None) -> list[str]:
    """Return the lines of the block; all are comments where nothing is known."""
    loaders = facts.loaders if facts else ()
    shared = _shared(facts) if facts else []
    per_loader = [list(_lines(each, workers_certain=workers_certain)) for each in loaders]
    common = [line for line in per_loader[0] if all(_has(lines, line) for lines in per_loader)] if per_loader else []
    body = [text for each in (*common, *shared) for text in each.text()]
    body += _by_name(facts) if facts and not loaders else []
    body += _injected(facts) if facts else []
    body += SAMPLE
    stated = any(not line.startswith("#") for line in body)
    if len(loaders) > 1:
        stated = True
        body += _run(facts.turns) if facts else []
        body.append("loaders: # every one of the script")
        for loader, lines in zip(loaders, per_loader, strict=True):
            body += [f"  {each}" for each in _own(loader, [line for line in lines if not _has(common, line)])]
    none = (
        f"No DataLoader was found in {', '.join(facts.read)}; `data_loader: none` where the job has none."
        if facts
        else ""
    )
    if not loaders:
        body[:0] = [] if body[0].startswith("batch_size") else ["# batch_size: 32 # per process and loader"]
    head = "data_loader:" if stated else "# data_loader:"
    said = [f"# {line}" for line in textwrap.wrap(none, 110)] if not loaders else []
    return [*said, head, *(f"  {line}" if stated else f"#   {_FIELD.sub('', line)}" for line in body)]


def _run(turns: Turns) -> Iterator[str]:
    """Yield how the loops follow each other."""
    if turns.shown:
        yield f"loaders_run: in_turn # each loop over a loader ends before the next starts: {turns.why}"
        return
    if turns.why:
        words = (
            f"They count together, since {turns.why}. Add `loaders_run: in_turn` where each loop ends before the next"
        )
        yield from (f"# {line}" for line in textwrap.wrap(f"{words} starts.", 106, break_long_words=False))


def _by_name(facts: ScriptFacts) -> list[str]:
    """Return the batch size of a script without loaders of its own, from the option that the token goes to."""
    options = token_options(facts, workers_certain=False).get("batch_size", [])
    return [f"batch_size: {each.default} # the default of {each.flag} ({each.place})" for each in options[:1]]


def _has(lines: list[DraftLine], line: DraftLine) -> bool:
    return any((each.field, each.value) == (line.field, line.value) and _same_words(each, line) for each in lines)


def _same_words(one: DraftLine, other: DraftLine) -> bool:
    """Whether two lines without a value say the same, wherever they stand."""
    return one.value is not None or one.comment.partition(" ")[2] == other.comment.partition(" ")[2]


def _own(loader: Loader, lines: list[DraftLine]) -> Iterator[str]:
    stated = [f"{each.field}: {each.value}" for each in lines if each.value is not None]
    yield f"{loader.name}: {{{', '.join(stated)}}} # {loader.place}"
    yield from (text for each in lines if each.value is None for text in each.text())


def _shared(facts: ScriptFacts) -> list[DraftLine]:
    found = dict(facts.shared)
    for loader in facts.loaders:
        context = loader.settings.get("multiprocessing_context")
        if context and context.literal in _CONTEXTS:
            found.setdefault("multiprocessing_context", str(context.literal))
    return [DraftLine(field, value, "as the script sets it") for field, value in found.items()]


def _lines(loader: Loader, *, workers_certain: bool | None) -> Iterator[DraftLine]:
    readers: dict[str, Callable[[Loader, Value], DraftLine | None]] = {
        "batch_size": _batch_size,
        "num_workers": _num_workers,
        "prefetch_factor": _prefetch_factor,
        "pin_memory": _switch("pin_memory"),
        "persistent_workers": _switch("persistent_workers"),
        "timeout": _timeout,
        "collate_fn": _collate,
        "batch_sampler": _batch_sampler,
    }
    workers = loader.settings.get("num_workers", _NONE)
    alone = workers.kind == KNOWN and workers.literal == 0  # torch refuses what only workers have
    for field, read in readers.items():
        if field in loader.settings and not (alone and field in _OF_WORKERS):
            line = read(loader, loader.settings[field])
            if line is not None:
                yield line
    stated = {each: loader.settings.get(each, _NONE) for each in ("prefetch_factor", "persistent_workers")}
    needs = [name for name, value in stated.items() if value.number and value.text != GUARDED]
    if needs and takes_auto(loader) and not workers_certain:
        words = f"{loader.place} passes {' and '.join(needs)}, which torch refuses without workers"
        if workers_certain is False:
            yield DraftLine("num_workers", "1", f"{words}; so few CPUs would get 0")
        else:
            words = f"{words}; a CPU-only job with fewer than 4 CPUs gets 0 workers: set num_workers: 1 there"
            yield DraftLine("", None, words)


_NONE = Value(KNOWN)


def _whole(value: object, low: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and low <= value <= 2**31 - 1


def _source(loader: Loader, value: Value) -> str:
    """Return where a value comes from, in words."""
    if value.option:
        return f"the default of {value.option.flag} ({value.option.place})"
    return value.place or loader.place


def _ask(loader: Loader, field: str, example: str, value: Value) -> DraftLine:
    told = f"{value.option.flag or value.option.dest}, which has no default" if value.option else value.text
    told = told or repr(value.literal)
    return DraftLine(field, None, f"{loader.place} takes {told}; say here what it is, like {field}: {example}")


def _batch_size(loader: Loader, value: Value) -> DraftLine | None:
    if value.option is not None and value.option.changed:
        words = f"{loader.place} takes {value.option.flag}, and the script changes it; say here what one process loads,"
        return DraftLine("batch_size", None, f"{words} like batch_size: {value.option.default or 32}")
    if value.kind == KNOWN and value.literal is None:
        return DraftLine("batch_size", "null", f"{loader.place}: the dataset yields batches")
    if _whole(value.number, 1):
        by_default = value.kind == KNOWN and value.literal == 1
        return DraftLine(
            "batch_size", str(value.number), _source(loader, value) + " (1 is torch's default)" * by_default
        )
    return _ask(loader, "batch_size", "32", value)


def _batch_sampler(loader: Loader, value: Value) -> DraftLine | None:
    if value.kind == KNOWN and value.literal is None:
        return None
    return DraftLine(
        "batch_size", None, f"{loader.place} has a batch_sampler; say here its largest batch: batch_size: 32"
    )


def _num_workers(loader: Loader, value: Value) -> DraftLine | None:
    if value.kind in {AUTO, VARIABLE, OVERRIDE} or _is_opaque(value) or (value.option and value.option.flag):
        return None
    if value.kind == KNOWN and _whole(value.literal, 0):
        none = ", no worker: batches never cross /dev/shm" if value.literal == 0 else ", whatever is planned"
        number = str(min(int(str(value.literal)), 4096))
        return DraftLine("num_workers", number, f"{value.place or loader.place}{none}")
    return _ask(loader, "num_workers", "4", value)


def _is_opaque(value: Value) -> bool:
    """Whether nobody can say how many workers a loader gets, so that only the planned number is certain."""
    return value.kind == UNKNOWN or (value.option is not None and value.option.changed)


def _injected(facts: ScriptFacts) -> Iterator[str]:
    """Yield what gives a loader the planned number where the script makes its own from what nobody can read."""
    for loader in facts.loaders:
        value = loader.settings.get("num_workers", _NONE)
        if _is_opaque(value):
            option = value.option
            told = f"{option.flag or option.dest}, and the script changes it" if option else value.text
            words = f"{loader.place} takes {told}: the planned number is put in its place; env leaves it to the script"
            yield from (f"# {line}" for line in textwrap.wrap(words, 106, break_long_words=False))
            yield "inject: force"
            return


def _prefetch_factor(loader: Loader, value: Value) -> DraftLine | None:
    if _whole(value.number, 1):
        return DraftLine("prefetch_factor", str(min(int(str(value.number)), 10**6)), _source(loader, value))
    return None if value.kind == KNOWN or value.option else _ask(loader, "prefetch_factor", "2", value)


def _switch(field: str) -> Callable[[Loader, Value], DraftLine | None]:
    def read(loader: Loader, value: Value) -> DraftLine | None:
        stated = value.kind == KNOWN and isinstance(value.literal, bool)
        return DraftLine(field, "true" if value.literal else "false", loader.place) if stated else None

    return read


def _timeout(loader: Loader, value: Value) -> DraftLine | None:
    seconds = value.number
    if isinstance(seconds, (int, float)) and not isinstance(seconds, bool) and 0 < seconds < 2**31 - 1:
        return DraftLine("timeout", str(math.ceil(seconds)), _source(loader, value))
    return None


def _collate(loader: Loader, value: Value) -> DraftLine | None:
    if value.kind == KNOWN:
        words = "its collate function keeps a tensor per sample"
        return DraftLine("collate", "list", f"{loader.place}: {words}") if value.literal == "list" else None
    words = f"{loader.place} has collate_fn={value.text}; say here what it makes: collate: list where it keeps a tensor"
    rest = "per sample, collate: none where it makes no tensors; the default, stack, is one tensor per field"
    return DraftLine("collate", None, f"{words} {rest}")
