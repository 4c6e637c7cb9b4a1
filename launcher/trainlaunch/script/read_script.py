"""Reads a training script's text into facts; nothing of it is run or imported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import NamedTuple

from trainlaunch.diagnostics import Diagnostic, Span
from trainlaunch.errors import UsageError
from trainlaunch.repository.regular_files import open_regular
from trainlaunch.script.callees import Site
from trainlaunch.script.config_files import Config, given_files, hydra_config, named_files, texts_of_files
from trainlaunch.script.frameworks import hugging_face, loads_media, loads_tokens, look_ahead, names_cuda
from trainlaunch.script.loader_calls import calls_of, loaders_of
from trainlaunch.script.options import options_of
from trainlaunch.script.owner_calls import object_store, shm_owners_of
from trainlaunch.script.packages import Start, start_among, start_of
from trainlaunch.script.program import Program
from trainlaunch.script.rank_start import (
    expects_torchrun,
    needs_launcher,
    rank_by_option,
    shared_settings,
    starts_ranks,
)
from trainlaunch.script.required import required_options, subcommand_of
from trainlaunch.script.script_facts import Loader, Option, ScriptFacts, Turns
from trainlaunch.script.source import MAX_BYTES, PythonSource, imported, parse
from trainlaunch.script.turns import turns_of

_DATA = frozenset({".yaml", ".yml", ".json", ".ipynb", ".toml"})  # JSON is an expression of Python too


def read_script(path: Path) -> ScriptFacts:
    """Return what a script and the modules beside it that it imports say. Raises UsageError."""
    try:
        return _facts(path, *_sources(path))
    except (RecursionError, MemoryError) as cause:
        raise _unreadable(
            f"the training script {path} is nested too deeply", "name a file written by people"
        ) from cause


def known_facts(path: Path) -> ScriptFacts | None:
    """Return what a script says; None where reading it fails in whatever way: a job that runs needs nothing of it."""
    try:
        return read_script(path)
    except Exception:
        return None


class Loading(NamedTuple):
    """The loaders of a script, and whether all that it reads is text, of which a batch is some kilobytes of tokens.

    `of_media` says that it reads pictures, sound or volumes; `read` are the names of its modules that were read.
    """

    loaders: tuple[Loader, ...] = ()
    of_tokens: bool = False
    of_media: bool = False
    read: frozenset[str] = frozenset()


def loading_at(path: Path, words: Sequence[str] = ()) -> Loading:
    """Return what a script that lies at `path` loads; nothing where reading it fails in whatever way.

    `words` are those behind it in a command, of which some may name its configuration.
    """
    try:
        sources, hydra = _sources(path)
        read = frozenset(PurePath(each.name).stem for each in sources[1:])
        return Loading(_loaders(path, sources, hydra, words), loads_tokens(sources), loads_media(sources), read)
    except Exception:
        return Loading()


def loading_in(text: str) -> Loading:
    """Return what a script loads of which only the text is there; nothing where it can't be read."""
    try:
        sources = (parse(text, "script"),)
        return Loading(_loaders(None, sources, None), loads_tokens(sources), loads_media(sources))
    except Exception:
        return Loading()


def _sources(path: Path) -> tuple[tuple[PythonSource, ...], Config | None]:
    """Return a script with the modules beside it that it imports, and its configuration of Hydra."""
    script = _parsed(path)
    hydra = hydra_config(path, script)
    targets = [str(each.literal) for part in hydra.parts() if (each := part["_target_"])] if hydra else []
    return imported(path, script, targets), hydra


class _Made(NamedTuple):
    """A script's program with its options and its start, and what its Trainer makes: loaders, and notes on them."""

    program: Program
    start: Start | None
    options: tuple[Option, ...]
    trainers: tuple[Loader, ...]
    notes: tuple[str, ...]


def _made(
    path: Path | None, sources: tuple[PythonSource, ...], hydra: Config | None, words: Sequence[str] = ()
) -> _Made:
    declared = options_of(sources)
    trainers, added, notes = hugging_face(Program(sources, {each.dest: each for each in declared}))
    options = (*declared, *(each for each in added if each.dest not in {other.dest for other in declared}))
    start: Start | None = None
    files: Mapping[str, Config] = {}
    if path is not None:
        start = start_of(path, sources) or start_among(path, sources, texts_of_files(sources))
        options, given = given_files(options, words)
        files = named_files(path, start.root / start.folder if start else path.parent, sources, options, given)
    program = Program(sources, {each.dest: each for each in options}, files, hydra)
    return _Made(program, start, options, trainers, notes)


def _loaders(
    path: Path | None, sources: tuple[PythonSource, ...], hydra: Config | None, words: Sequence[str] = ()
) -> tuple[Loader, ...]:
    made = _made(path, sources, hydra, words)
    return loaders_of(made.program) or made.trainers


def _facts(path: Path, sources: tuple[PythonSource, ...], hydra: Config | None) -> ScriptFacts:
    program, start, options, trainers, notes = _made(path, sources, hydra)
    ranks = starts_ranks(program)
    by_option = None if ranks else rank_by_option(program)
    fails_alone = needs_launcher(program)
    loaders = loaders_of(program)
    owners = tuple(shm_owners_of(program))
    subcommand = subcommand_of(program)
    several = len(loaders) > 1 and not trainers  # a Trainer's own run as it likes
    return ScriptFacts(
        path=path.as_posix(),
        loaders=loaders or trainers,
        turns=turns_of(program, [Site(*each) for each in calls_of(program)]) if several else Turns(),
        options=options,
        shared=shared_settings(program),
        notes=(*(notes or look_ahead(program)), *object_store(owners)),
        shm_owners=owners,
        starts_ranks=ranks.words if ranks else "",
        ranks=ranks.ranks if ranks else None,
        ranks_option=ranks.flag if ranks else "",
        ranks_condition=ranks.condition if ranks else "",
        distributed="" if ranks else expects_torchrun(program) or fails_alone,
        rank_option=by_option.option if by_option else None,
        by_deepspeed=bool(by_option and by_option.by_deepspeed),
        needs_launcher=not ranks and bool(fails_alone),
        required=(*filter(None, [subcommand.missing]), *required_options(program, options)),
        cuda=names_cuda(program),
        start=start,
        subcommand=subcommand.name,
        read=tuple(each.name for each in sources),
    )


def _parsed(path: Path) -> PythonSource:
    if path.suffix.lower() in _DATA and path.exists():
        raise _unreadable(
            f"{path} is a file of data and not a training script",
            f"name the training script, or write `trainlaunch init --from {path}` where that file starts a job",
        )
    try:
        with open_regular(path) as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as cause:
        reason = (cause.strerror if isinstance(cause, OSError) else "") or str(cause)
        raise _unreadable(f"the training script {path} can't be read: {reason}", "name a Python file") from cause
    if len(data) > MAX_BYTES:
        raise _unreadable(f"the training script {path} is larger than {MAX_BYTES} bytes (1 MiB)", "name a Python file")
    try:
        return parse(data.decode("utf-8-sig"), path.name)
    except SyntaxError as cause:
        line, column = cause.lineno or 1, cause.offset or 1
        span = Span(str(path), line, column, line, column + 1)
        raise _unreadable(
            f"Python can't parse the training script: {cause.msg}", "name a Python 3 file, or correct the line", span
        ) from cause
    except UnicodeDecodeError as cause:
        raise _unreadable(
            f"the training script {path} is not UTF-8", "save it as UTF-8, or name a Python file"
        ) from cause
    except (ValueError, RecursionError, MemoryError) as cause:
        reason = str(cause) or "it is nested too deeply"
        raise _unreadable(f"Python can't parse the training script {path}: {reason}", "name a Python file") from cause


def _unreadable(message: str, fix: str, span: Span | None = None) -> UsageError:
    return UsageError(
        [Diagnostic("TL132", message, fix, why="init reads a script's text and never runs it", span=span)]
    )
