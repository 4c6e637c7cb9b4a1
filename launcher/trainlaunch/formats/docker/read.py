"""Reads the `docker run` lines of a shell text, whoever wrote it, into Workloads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from trainlaunch.formats.docker import table
from trainlaunch.formats.docker.line import Line, ParsedFlag, run_lines
from trainlaunch.formats.docker.placed_values import PlacedText, mounts_of, shm_of
from trainlaunch.formats.docker.table import FLAGS, REPEATED
from trainlaunch.formats.docker.values import FALSE, TRUE, cpu_thousandths, gpu_request, ulimit, whole_number
from trainlaunch.formats.quantities import engine_bytes, engine_seconds
from trainlaunch.formats.workload import ABSENT, SIZE, Known, ShmSetting, Unknown, Value, Workload

_PARSERS: dict[str, Callable[[str], Any]] = {
    table.TEXT: str,
    table.CHECK: str,
    table.INTEGER: whole_number,
    table.SIZE: engine_bytes,
    table.CPUS: cpu_thousandths,
    table.DURATION: engine_seconds,
    table.GPUS: gpu_request,
}
# Fields that a line leaves to what can't be read of it, where nothing else sets them.
_ONE = frozenset(each.field for each in FLAGS.values() if each.field and each.form not in REPEATED) - {"health_times"}
_NAMED = ("env", "label", "ulimit")
Flags = Mapping[str, Sequence[ParsedFlag]]


def read_docker_run(text: str, file: str) -> tuple[Workload, ...]:
    """Return what each line of a text starts by `docker run` or `create`, or Podman's; `file` is for the places.

    `rest` has `command`, the words up to `run`; each flag `--NAME` without a field of its own; `refused --NAME`, what
    docker would refuse; `--NAME twice`; `commands before` and `commands after`; and `unclear`, words of which only a
    shell could say what they are. What is set nowhere is then Unknown, since one of those may set it.
    """
    source = PlacedText(text, file)
    return tuple(workload_of(line, source, number) for number, line in enumerate(run_lines(text)))


def workload_of(line: Line, source: PlacedText, number: int = 0) -> Workload:
    """Return what one line starts; `number` counts the lines of a text, from 0."""
    flags: dict[str, list[ParsedFlag]] = {}
    for each in line.flags:
        flags.setdefault(each.name, []).append(each)
    mounts = tuple(mounts_of(flags, source))
    unclear = [source.unknown(each.start, each.end) for each in line.unclear]
    shm = shm_of(flags, mounts, source, podman=any("podman" in each for each in line.command))
    if shm.kind == ABSENT and unclear:
        shm = ShmSetting(SIZE, unclear[0], unclear[0].span, shm.declared)
    fields = dict.fromkeys(_ONE, unclear[0]) if unclear else {}
    image = source.word(line.image) if line.image else unclear[0] if unclear else None
    if line.image is None and line.arguments:
        command: Value[tuple[str, ...]] = source.unknown(line.arguments[0].start, line.arguments[-1].end)
    else:
        command = source.words(line.arguments) if line.arguments else None
    env, passed = _variables(flags, source)
    return Workload(
        format="docker_run",
        place=" ".join(line.command) + (f" ({number + 1})" if number else ""),
        span=source.span(line.run.start, line.run.end),
        image=image,
        command=command,
        env=env,
        secrets=passed,
        labels=dict(_pairs(flags.get("label", ()), source)),
        shm=shm,
        devices=_devices(flags, source),
        mounts=mounts,
        groups=tuple(_marked(each, source) for each in flags.get("group-add", ())),
        ulimits={each[0]: (each[1], each[2]) for each in _limits(flags)},
        rest=_rest(line, flags, source, unclear),
        **{**fields, **_single(flags, source)},
    )


def _single(flags: Flags, source: PlacedText) -> dict[str, Any]:
    """Return the fields that one flag each sets; of several the last holds."""
    found: dict[str, Any] = {}
    times: dict[str, Known[int] | Unknown] = {}
    for name, given in flags.items():
        flag = FLAGS.get(name)
        if flag is None or not flag.field:
            continue
        last = given[-1]
        if flag.field == "health_times":
            times[name.removeprefix("health-").replace("-", "_")] = source.given(last, _PARSERS[flag.form])
        elif flag.form == table.SWITCH:
            found[flag.field] = _switch(last, source)
        elif flag.field == "entrypoint":
            found[flag.field] = source.given(last, lambda text: (text,) if text else ())
        elif flag.form not in REPEATED:
            found[flag.field] = source.given(last, _PARSERS[flag.form])
    if "cpus" not in found and "cpu-quota" in flags:
        found["cpus"] = source.given(flags["cpu-quota"][-1], _quota(flags, source))
    return found | ({"health_times": times} if times else {})


def _switch(given: ParsedFlag, source: PlacedText) -> Known[bool] | Unknown:
    if given.value is None:
        return source.value(True, given.at.start, given.at.end)
    return source.given(given, lambda text: True if text in TRUE else False if text in FALSE else None)


def _quota(flags: Flags, source: PlacedText) -> Callable[[str], int | None]:
    """Return a reader of --cpu-quota, microseconds of each --cpu-period, as thousandths of a CPU."""
    given = flags.get("cpu-period")
    period = whole_number(given[-1].value or "") if given and source.is_known(given[-1]) else None if given else 100_000

    def read(text: str) -> int | None:
        quota = whole_number(text)
        return None if not period or quota is None or quota * 1000 % period else quota * 1000 // period

    return read


def _variables(flags: Flags, source: PlacedText) -> tuple[dict[str, Known[str] | Unknown], dict[str, str]]:
    """Return the variables with values, and those that are passed on from the shell, by the name of their source."""
    given = flags.get("env", ())
    passed = {
        each.value: each.value for each in given if each.value and "=" not in each.value and source.is_known(each)
    }
    return dict(_pairs([each for each in given if "=" in (each.value or "")], source)), passed


def _pairs(given: Sequence[ParsedFlag], source: PlacedText) -> Iterator[tuple[str, Known[str] | Unknown]]:
    for each in given:
        key, equals, _ = (each.value or "").partition("=")
        if source.is_known(each, 0, len(key)):
            yield key, source.given(each, str, len(key) + len(equals))


def _limits(flags: Flags) -> Iterator[tuple[str, int, int]]:
    return filter(None, (ulimit(each.value or "") for each in flags.get("ulimit", ())))


def _devices(flags: Flags, source: PlacedText) -> dict[str, str]:
    nodes = [_marked(each, source) for each in flags.get("device", ())]
    return {"nodes": " ".join(nodes)} if nodes else {}


def _rest(line: Line, flags: Flags, source: PlacedText, unclear: Sequence[Unknown]) -> dict[str, object]:
    rest: dict[str, object] = {"command": " ".join(line.command)}
    for name, given in flags.items():
        flag = FLAGS.get(name)
        if flag is not None and flag.form == table.SWITCH:
            if not flag.field:
                value = _switch(given[-1], source)
                rest[f"--{name}"] = value.value if isinstance(value, Known) else f"<{value.text}>"
        elif flag is None or name == "volume" or (not flag.field and name != "shm-size"):
            rest[f"--{name}"] = tuple(_marked(each, source) for each in given)
        if len(given) > 1 and (flag is None or flag.form not in REPEATED or name == "entrypoint"):
            rest[f"--{name} twice"] = tuple(_marked(each, source) for each in given)
        refused = [each.value for each in given if _is_refused(each, source)]
        if refused:
            rest[f"refused --{name}"] = refused[-1]
        unnamed = [each for each in given if name in _NAMED and not _is_named(each, source)]
        if unnamed:
            rest[f"--{name}"] = tuple(_marked(each, source) for each in unnamed)
    rest |= {f"{what} twice": True for what in _named_twice(flags)}
    around = {"commands before": line.before, "commands after": line.after}
    rest |= {name: commands for name, commands in around.items() if commands}
    if line.carriage:
        rest["line ends"] = "CR LF"
    if unclear:
        rest["unclear"] = tuple(each.text for each in unclear)
    return rest


def _is_named(given: ParsedFlag, source: PlacedText) -> bool:
    """Return whether the text decides the variable, label or limit that a flag is about, and a limit's value."""
    name = (given.value or "").partition("=")[0]
    return source.is_known(given) if given.name == "ulimit" else source.is_known(given, 0, len(name))


def _marked(given: ParsedFlag, source: PlacedText) -> str:
    value = given.value or ""
    return value if source.is_known(given) else f"<{value}>"


def _is_refused(given: ParsedFlag, source: PlacedText) -> bool:
    """Return whether docker itself refuses a flag, or a value that a Workload has a field for."""
    flag = FLAGS.get(given.name)
    if flag is None or given.value is None or not source.is_known(given):
        return not given.listed and given.at.known
    parse = ulimit if flag.form == table.LIMIT else _PARSERS.get(flag.form)
    return parse is not None and parse(given.value or "") is None


def _named_twice(flags: Flags) -> Iterator[str]:
    """Yield each variable, label and limit that two flags set: docker takes the last and says nothing."""
    for flag in _NAMED:
        names = [(each.value or "").partition("=")[0] for each in flags.get(flag, ())]
        yield from (f"--{flag} {name}" for name in dict.fromkeys(names) if names.count(name) > 1)
