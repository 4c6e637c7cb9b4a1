"""How many workers the loaders of a script have where a command starts it, by its text and by the command's words."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from trainlaunch.formats.workload import Known, Value
from trainlaunch.rules.sources.near_scripts import NearScript
from trainlaunch.rules.sources.training_commands import names_cpu, stated_batch
from trainlaunch.script.given_options import given_to
from trainlaunch.script.script_facts import KNOWN, OPTION, OVERRIDE, VARIABLE, Loader
from trainlaunch.script.script_facts import Value as Setting

_ON_GPU = re.compile(r"(\d{1,3}) if .*(?:cuda|gpu)")
_WORDS = re.compile(r"<?(?:\$(?:@|\*|\w+|\{.*\}|\(.*\))|`.*`)>?", re.DOTALL)  # any number of words
_VALUE_NEXT = re.compile(r"-[^=]*")  # an option, which takes the next word
MOST_SAMPLES = 100  # alive at once: of photographs at 224 by 224 these are 60 MB
MOST_TINY = 2000  # of images of 32 by 32, or of 512 tokens with their mask and labels, these are 24 MB


def started_by(script: NearScript, argv: Sequence[str], env: Mapping[str, Value[str]]) -> NearScript:
    """Return what a script shows once a command has started it: its loaders' most workers, if that is certain.

    It is where one loader surely has some, or all surely have none.
    """
    if script.by_yolo and names_cpu(argv):
        return script._replace(workers=0)
    found = [_number(each.settings["num_workers"], argv, env) for each in script.loaders]
    known = [each for each in found if each is not None]
    most = max(known, default=0)
    loading = [each for each, number in zip(script.loaders, found, strict=True) if number]
    # Which of several a run takes nobody can say, unless one is called so.
    rarely = 0 < len(loading) < found.count(0) and not any("train" in each.name for each in loading)
    if not found or rarely or (not most and len(known) < len(found)):
        return script
    steady = [number or 0 for each, number in zip(script.loaders, found, strict=True) if not _is_on_gpu(each)]
    every = [_samples(each, number, argv, env) for each, number in zip(script.loaders, found, strict=True)]
    samples = max(each for each in (*every, 0) if each != math.inf)
    if math.inf in every:
        samples = max(samples, 2 * most * (stated_batch([tuple(argv)]) or 0))
    few = math.inf not in every and samples <= MOST_SAMPLES
    tiny = script.tiny and samples <= MOST_TINY
    bulky = False if script.tiny else script.bulky
    if any("batch_sampler" in each.settings for each in loading):
        bulky = bulky and None  # which may well make small ones
    told = None if math.inf in every and samples <= MOST_SAMPLES else int(samples)
    return script._replace(workers=most, on_cpu=max(steady, default=0), tiny=tiny, small=few, bulky=bulky, samples=told)


def _is_on_gpu(loader: Loader) -> bool:
    """Whether a loader has its workers only where there is a GPU."""
    return _ON_GPU.match(loader.settings["num_workers"].text) is not None


def _samples(loader: Loader, workers: int | None, argv: Sequence[str], env: Mapping[str, Value[str]]) -> float:
    """Return how many samples a loader has alive at once: two batches a worker."""
    size = loader.settings.get("batch_size")
    batch = _number(size, argv, env) if size is not None else None
    if workers == 0:
        return 0
    return math.inf if workers is None or batch is None else 2 * workers * batch


def _number(setting: Setting, argv: Sequence[str], env: Mapping[str, Value[str]]) -> int | None:
    """Return the number that a setting of a loader is; None where only the run knows."""
    by = setting.given_by.names if setting.given_by is not None else ()
    if any(given_to(argv, by)) or any(_may_be_meant(each, by) for each in argv):
        return None  # the command names another file
    text: object = setting.literal
    if setting.kind == OPTION:
        option = setting.option
        if option is None or option.changed or any(_may_be_meant(each, option.names) for each in argv):
            return None
        text = _last(argv, option.names, option.default)
    elif setting.kind == OVERRIDE:
        text = _last(argv, (setting.text, f"+{setting.text}", f"++{setting.text}"), text)
    elif setting.kind == VARIABLE and setting.text in env:
        given = env[setting.text]
        text = given.value if isinstance(given, Known) else None
    elif setting.kind not in {KNOWN, VARIABLE}:
        on_gpu = _ON_GPU.match(setting.text)  # whoever asks has one
        return int(on_gpu[1]) if on_gpu else None
    return int(str(text)) if re.fullmatch(r"\d{1,6}", str(text)) else None


def _last(argv: Sequence[str], names: Sequence[str], default: object) -> object:
    """Return the last value that a command gives, else the default; None where a variable may hold further words."""
    passed = [value for _, value in given_to(argv, names)]
    behind = zip(("", *argv), argv, strict=False)
    more = any(_WORDS.fullmatch(word) and not _VALUE_NEXT.fullmatch(before) for before, word in behind)
    return passed[-1] if passed else None if more else default


def _may_be_meant(word: str, names: Sequence[str]) -> bool:
    """Whether a word is only the beginning of an option's name, which argparse takes for it."""
    head = word.partition("=")[0]
    return (
        len(head) > len("--")
        and head.startswith("--")
        and head not in names
        and any(each.startswith(head) for each in names)
    )
