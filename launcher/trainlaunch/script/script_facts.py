"""What a training script's text says about its job, as values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from trainlaunch.script.packages import Start

KNOWN, OPTION, AUTO, VARIABLE, UNKNOWN = "known", "option", "auto", "variable", "unknown"
OVERRIDE, CONFIG = "override", "config"
GUARDED = "where there are workers"  # the text of a setting that a call makes only then
_OURS = frozenset({"TRAINLAUNCH_NUM_WORKERS", "TRAINLAUNCH_BATCH_SIZE", "TRAINLAUNCH_PREFETCH_FACTOR"})
UNSTATED = "torch's default"  # the text of a setting that a call leaves to torch


class Option(NamedTuple):
    """One option of the script's command line; `flag` is empty for a positional argument.

    `default` is its literal, None where there is none. `changed`: the script gives it another value later on. `joined`:
    `--flag=value` works, not only `--flag value`. `names` are all its spellings, `flag` among them. `entry`: the
    function whose parameter it is, by its place. `by_position`: a word of its own may give it as well.
    """

    flag: str
    dest: str
    default: object
    required: bool
    place: str
    changed: bool = False
    joined: bool = True
    names: tuple[str, ...] = ()
    entry: str = ""
    by_position: bool = False


class Value(NamedTuple):
    """One setting: a `known` literal, an `option` of the script, `auto` (read from our variable), a `variable` whose
    name is `text` and whose default is `literal`, or `unknown` text; an `override` is a key, `text`, of a configuration
    that the command may set, and a `config` a part of one.

    `place` is where a configuration file sets it, `given_by` the option that may name another file.
    """

    kind: str
    literal: object = None
    option: Option | None = None
    text: str = ""
    place: str = ""
    given_by: Option | None = None

    @property
    def number(self) -> object:
        """The literal, or the option's default."""
        return self.option.default if self.option else self.literal


def of_environment(name: object, default: object) -> Value | None:
    """Return what a variable of the environment gives; a default of digits is that number."""
    if not isinstance(name, str):
        return None
    if name in _OURS:
        return Value(AUTO, text=name)
    number = isinstance(default, str) and default.isascii() and default.isdecimal()
    return Value(VARIABLE, int(str(default)) if number else default, text=name)


class Loader(NamedTuple):
    """One DataLoader: its `settings` by the names of data_loader's fields; what is not set is not there."""

    name: str
    settings: Mapping[str, Value]
    place: str


class Turns(NamedTuple):
    """Whether the text shows that each loop over a loader ends before the next starts.

    `why` has the places of the loops, else what speaks against it, `` where it was not asked.
    """

    shown: bool = False
    why: str = ""


class ScriptOwner(NamedTuple):
    """Another owner of /dev/shm that a script starts: `number` are Ray's bytes, vLLM's workers; None: unknown."""

    name: str
    place: str
    number: int | None


class ScriptFacts(NamedTuple):
    """All that was found. `notes` are whole sentences for the job file; `shared` are data_loader's own settings.

    `starts_ranks`: what starts one process per GPU itself (Lightning, mp.spawn), `ranks` how many, `ranks_option` the
    option whose default that is, `ranks_condition` what it asks before, `distributed`: where the script expects
    torchrun to, `needs_launcher`: it fails without one, `rank_option` the option that each rank gets its number by,
    where that is no variable, `by_deepspeed`: and DeepSpeed passes it, `required`: options and arguments of its
    parser without which it surely ends, `cuda`: where it names CUDA; each a place, or ``. `start`: how it must be
    started to find its modules, `subcommand`: the word that trains. `read` are the files that were read.
    """

    path: str
    loaders: tuple[Loader, ...] = ()
    turns: Turns = Turns()
    options: tuple[Option, ...] = ()
    shared: Mapping[str, str] = {}
    notes: tuple[str, ...] = ()
    starts_ranks: str = ""
    ranks: int | None = None
    ranks_option: str = ""
    ranks_condition: str = ""
    distributed: str = ""
    needs_launcher: bool = False
    rank_option: Option | None = None
    by_deepspeed: bool = False
    required: tuple[Option, ...] = ()
    cuda: str = ""
    start: Start | None = None
    subcommand: str = ""
    shm_owners: tuple[ScriptOwner, ...] = ()
    read: tuple[str, ...] = ()
