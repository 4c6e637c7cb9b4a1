"""Reads the docker target's script back: a small reader of shell words, then docker's own reading of its flags."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from launcher.units import parse_duration
from launcher.verify.plain import ReadMount
from launcher.verify.readback import ReadBack, absolute, read_cpus, read_size, read_tmpfs

_TOKEN = re.compile(
    r"""(?P<skip>[ \t]+|\\\n|(?<![^\s;])\#[^\n]*)
      | (?P<end>[\n;]+)
      | '(?P<single>[^']*)'
      | "(?P<double>[^"\\`]*)"
      | \\(?P<escaped>[^\n])
      | (?P<bare>[A-Za-z0-9_./:=@%+,-]+)
      | (?P<active>.)""",
    re.VERBOSE | re.DOTALL,
)
_SWITCHES = frozenset({"--rm", "--init", "--read-only"})
_REPEATED = frozenset({"--label", "--env", "--mount", "--ulimit", "--group-add", "--tmpfs", "--device"})
_READ = "=<$><(>cat"  # how a script's word ends that takes the text of a file
_TIMES = {
    "interval": "--health-interval",
    "timeout": "--health-timeout",
    "start_period": "--health-start-period",
}


def statements(text: str) -> Iterator[list[str]]:
    """Yield the words of each command of a script; a part that this shell itself would expand reads as `<part>`."""
    words: list[str] = []
    inside = False  # the next part continues the word before it
    for match in _TOKEN.finditer(text):
        kind, part = match.lastgroup or "", match[match.lastgroup or 0]
        if kind in {"skip", "end"}:
            inside = False
            if kind == "end" and words:
                yield words
                words = []
            continue
        if kind == "active" or (kind == "double" and "$" in part):
            part = f"<{part}>"
        if inside:
            words[-1] += part
        else:
            words.append(part)
        inside = True
    if words:
        yield words


def reread_docker(text: str, folder: Path) -> ReadBack:
    """Return what the script says; relative binds are read from `folder`."""
    *preamble, run = list(statements(text)) or [[]]
    flags, command = _flags(run[3:])
    one = {flag: values[-1] for flag, values in flags.items()}
    image, *arguments = command or [""]
    labels = dict(item.partition("=")[::2] for item in flags.get("--label", []))
    env = dict(item.partition("=")[::2] for item in flags.get("--env", []) if "=" in item)
    return ReadBack(
        name=one.get("--name"),
        image=image,
        pull=one.get("--pull"),
        process=(one.get("--entrypoint", ""), *arguments),
        env=env,
        secrets={name: _source(name, preamble, folder) for name in flags.get("--env", []) if "=" not in name},
        labels=labels,
        shm_size=read_size(one.get("--shm-size")),
        memory=read_size(one.get("--memory")),
        cpus=read_cpus(one.get("--cpus")),
        devices=_gpus(one.get("--gpus")) | ({"nodes": " ".join(flags["--device"])} if "--device" in flags else {}),
        mounts=(
            *map(read_tmpfs, flags.get("--tmpfs", [])),
            *(_mount(value, folder) for value in flags.get("--mount", [])),
        ),
        health=one.get("--health-cmd"),
        health_times=_health_times(one),
        user=one.get("--user"),
        groups=tuple(flags.get("--group-add", [])),
        working_dir=one.get("--workdir"),
        read_only="--read-only" in flags,
        stop_signal=one.get("--stop-signal"),
        stop_timeout=int(one["--stop-timeout"]) if one.get("--stop-timeout", "").isdecimal() else None,
        ulimits={name: (int(soft), int(hard)) for name, soft, hard in _ulimits(flags)},
        rest=_rest(run, flags, preamble),
    )


def _flags(words: list[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Return each flag with its values, and the words from the image on."""
    flags: dict[str, list[str]] = {}
    left = iter(words)
    for word in left:
        if not word.startswith("-"):
            return flags, [word, *left]
        flags.setdefault(word, []).append("" if word in _SWITCHES else next(left, ""))
    return flags, []


_KNOWN = (
    _SWITCHES
    | _REPEATED
    | set(_TIMES.values())
    | {
        *("--name", "--pull", "--entrypoint", "--shm-size", "--memory", "--cpus", "--gpus", "--health-cmd"),
        *("--health-retries", "--user", "--workdir", "--stop-signal", "--stop-timeout"),
    }
)


def _rest(run: list[str], flags: Mapping[str, list[str]], preamble: list[list[str]]) -> dict[str, object]:
    """Return the start of the command, switches, repeated and unknown flags, and the commands before docker's."""
    rest: dict[str, object] = {"command": " ".join(run[:3])}
    rest |= {flag: True for flag in ("--rm", "--init") if flag in flags}
    rest |= {flag: tuple(values) for flag, values in flags.items() if flag not in _KNOWN}
    rest |= {f"{flag} twice": values for flag, values in flags.items() if len(values) > 1 and flag not in _REPEATED}
    rest |= {f"{what} twice": True for what in _named_twice(flags)}
    if preamble:
        rest["commands before"] = tuple(map(tuple, preamble))
    return rest


def _named_twice(flags: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield each variable, label and limit that two flags state: docker takes the last and says nothing."""
    for flag in ("--env", "--label", "--ulimit"):
        names = [value.partition("=")[0] for value in flags.get(flag, [])]
        yield from (f"{flag} {name}" for name in dict.fromkeys(names) if names.count(name) > 1)


def _source(name: str, preamble: list[list[str]], folder: Path) -> str:
    """Return the host variable or file behind `name`, marked where its absence doesn't end the script with 125."""
    exported = {word for words in preamble if words[0] == "export" for word in words[1:]}
    assigned = dict(words[0].partition("=")[::2] for words in preamble if len(words) == 1 and "=" in words[0])
    files = {words[0].removesuffix(_READ): words[1] for words in preamble if words[0].endswith(_READ)}
    source = tested = name
    if name in assigned:
        temporary = re.sub(r"[<>$]", "", assigned[name])
        source = tested = re.sub(r"<\$\{(\w+):-\}>", r"\1", assigned.get(temporary, ""))
        if temporary in files:
            source, tested = f"file {absolute(files[temporary].removesuffix('<)>'), folder)}", temporary
    guard = ["if", "<[>", "-z", f"<${{{tested}:-}}>", "<]>"]
    at = next((index for index, words in enumerate(preamble) if words == guard), None)
    stops = at is not None and preamble[at + 1][0] == "then" and ["exit", "125"] in preamble[at + 1 : at + 4]
    return source if stops and name in exported else f"{source}, unguarded"


def _gpus(value: str | None) -> dict[str, str]:
    """Return how docker reads `--gpus`: a CSV record, in which a bare number is a count and the last one wins."""
    if value is None:
        return {}
    fields = next(csv.reader([value]), [])
    ids = [field.removeprefix("device=") for field in fields if field.startswith("device=")]
    counts = [field for field in fields if field.isdecimal() or field == "all"]
    return {"gpus": ids[-1] if ids and not counts else counts[-1] if counts and not ids else value}


def _mount(value: str, folder: Path) -> ReadMount:
    fields = dict(field.partition("=")[::2] for field in next(csv.reader([value], strict=True), []))
    kind, source = fields.get("type", "volume"), fields.get("source")
    if not set(fields) <= {"type", "source", "target", "readonly"}:
        return ReadMount(value, source, fields.get("target", ""), "readonly" in fields)
    if kind == "bind":
        source = absolute(source, folder)
    if kind == "volume" and source is None:
        kind = "scratch"
    return ReadMount(kind, source, fields.get("target", ""), "readonly" in fields)


def _health_times(one: Mapping[str, str]) -> dict[str, int]:
    times = {key: parse_duration(one[flag]) for key, flag in _TIMES.items() if flag in one}
    return times | ({"retries": int(one["--health-retries"])} if "--health-retries" in one else {})


def _ulimits(flags: Mapping[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    for value in flags.get("--ulimit", []):
        name, _, limits = value.partition("=")
        soft, _, hard = limits.partition(":")
        yield name, soft, hard or soft
