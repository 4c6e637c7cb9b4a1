"""The DataLoaders that a plan was made for, as far as its numbers tell: candidates, of which one gives it back."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from trainlaunch.init.takeover.job_draft import size, word
from trainlaunch.init.takeover.prologue import Wrapped
from trainlaunch.plan.instrumentation import FORCED, INJECTED, OVERRIDING, WORKERS
from trainlaunch.plan.memory_and_files import SPARE
from trainlaunch.plan.plan_label import Planned
from trainlaunch.plan.shared_memory import PAGE, semaphores
from trainlaunch.units import KIB

_MAX_HELD = 8
_DEFAULT_HELD = 2
_CONTEXTS = ("fork", "spawn")


class Guess(NamedTuple):
    """DataLoaders that may have given the plan's numbers: the fields `data_loader` and `shm_extra`."""

    data_loader: dict[str, Any]
    shm_extra: list[dict[str, Any]]


class _Known(NamedTuple):
    """The plan's numbers of one rank, in bytes; `stated` are the workers of the loader that sets most."""

    ranks: int
    workers: int
    alive: int
    stated: int
    prefetch: int
    files: int
    need: int


def guesses(plan: Wrapped, planned: Planned) -> Iterator[Guess]:
    """Yield what may have been the job's DataLoaders, the simplest first."""
    plan = plan.without_own_files()
    ranks = max(plan.number("ranks"), 1)
    known = _Known(
        ranks=ranks,
        workers=_workers_of(plan),
        alive=(planned.processes or 0) // ranks,
        # Of workers that share the CPUs, which `plan` has said by then, the preflight has no number to say it again.
        stated=plan.number("stated") // ranks or (0 if plan.lines("first") else plan.number("workers")),
        prefetch=plan.number("prefetch") or 2,
        files=plan.number("files"),
        need=plan.number("need"),
    )
    common = _common(plan, known)
    found: Iterator[Guess]
    if plan.numbers.get("unsized") == "1":
        found = _unsized(known)
    elif plan.lines("first"):
        found = _automatic(plan, known)
    else:
        found = _stated(known)
    for guess in found:
        for context in _CONTEXTS if known.alive else _CONTEXTS[:1]:
            given = {} if context == "fork" else {"multiprocessing_context": word(context)}
            loaders = _with_sizes({**common, **given, **guess.data_loader}, plan.injected())
            yield guess._replace(data_loader=loaders)
            if plan.lines("first"):
                yield guess._replace(data_loader={**loaders, "max_workers": known.workers})


def _with_sizes(fields: dict[str, Any], injected: list[dict[str, Any]]) -> dict[str, Any]:
    """Return data_loader with the batch_size of each loader, which texts that give workers to loaders carry."""
    loaders = fields.get("loaders") or {}
    if not loaders or len(loaders) != len(injected):
        return fields
    sizes = dict(zip(loaders, (each.get("batch_size") for each in injected), strict=True))
    named = {
        name: each if sizes[name] == fields["batch_size"] else {"batch_size": sizes[name], **each}
        for name, each in loaders.items()
    }
    return {**fields, "loaders": named}


def _workers_of(plan: Wrapped) -> int:
    """Return the plan's own number of workers; without GPUs the preflight starts with 8 at most."""
    need = plan.number("need")
    exact = (divmod(need - rest, slope) for slope, rest in plan.lines("first") if slope > 0)
    return next((whole for whole, beside in exact if not beside and whole > 0), plan.number("workers"))


def _common(plan: Wrapped, known: _Known) -> dict[str, Any]:
    """Return what the preflight passes on of the loader that it names, and what it leaves out of the others."""
    fields: dict[str, Any] = {}
    batch = plan.numbers.get("batch", "")
    fields["batch_size"] = int(batch) if batch.isdigit() else None
    if known.workers:
        if known.prefetch != 2:
            fields["prefetch_factor"] = known.prefetch
        if plan.numbers.get("persistent") == "1":
            fields["persistent_workers"] = True
        if plan.number("timeout"):
            fields["timeout"] = plan.number("timeout")
    fields["pin_memory"] = plan.numbers.get("pin") == "1"
    old = plan.begins_script and "export TRAINLAUNCH_NUM_WORKERS=" not in plan.text
    if old or plan.numbers.get("inject") == "off":
        fields["inject"] = word("off")
    if WORKERS in plan.names("parts"):
        fields["inject"] = word(OVERRIDING if f"export {FORCED}=" in plan.text else INJECTED)
    if known.alive and not known.files:
        fields["sharing_strategy"] = word("file_system")
    return fields


def _unsized(known: _Known) -> Iterator[Guess]:
    """Yield loaders of which nobody said how large a batch is."""
    own = {"num_workers": known.stated} if known.stated else {}
    count = max(known.alive // max(known.stated or known.workers, 1), 1)
    yield Guess(own, [])
    if count > 1:
        yield Guess({**own, "loaders": {f"loader-{number}": {} for number in range(1, count + 1)}}, [])


def _stated(known: _Known) -> Iterator[Guess]:
    """Yield loaders that all set their workers, each with the same batch; the rest of the size has another owner."""
    if not known.alive:
        yield Guess({"num_workers": 0}, _extra(known.need))
        return
    parts = _shares(known.alive, known.stated)
    pages = sum(semaphores(each) for each in parts) * PAGE
    inner = known.need // known.ranks - pages
    for exact in (True, False):
        for held in sorted(range(1, _MAX_HELD + 1), key=lambda each: (abs(each - _DEFAULT_HELD), each)):
            batches = known.alive * known.prefetch + len(parts) * held
            unit = inner // batches // PAGE * PAGE
            left = known.need - known.ranks * (unit * batches + pages)
            if unit <= 0 or (left == 0) is not exact:
                continue
            for tensors in _tensors(known, len(parts), held):
                own = {"num_workers": parts[0], **_batch(known, unit, tensors, held)}
                loaders = {f"loader-{at}": _workers(each, parts[0]) for at, each in enumerate(parts, start=1)}
                yield Guess({**own, **({"loaders": loaders} if len(parts) > 1 else {})}, _extra(left))


def _workers(number: int, usual: int) -> dict[str, Any]:
    return {} if number == usual else {"num_workers": number}


def _shares(alive: int, most: int) -> list[int]:
    """Return how many workers each loader has: as many as may be have most."""
    most = max(most, 1)
    return [most] * (alive // most) + ([alive % most] if alive % most else [])


def _automatic(plan: Wrapped, known: _Known) -> Iterator[Guess]:
    """Yield loaders of which at least one has automatic workers: its bytes are lines A·W + B."""
    yield from _together(plan, known)
    yield from _in_turn(plan, known)


def _together(plan: Wrapped, known: _Known) -> Iterator[Guess]:
    """Yield automatic loaders that are alive with each other, and beside one that sets its workers."""
    (slope, rest), *others = plan.lines("first")
    every = plan.lines("every")
    if others or len(every) != 1:
        return
    without = plan.number("without")
    for count in range(1, max(known.alive // known.workers, 1) + 1):
        stated = known.alive - count * known.workers
        units, odd = divmod(slope // known.ranks - 3 * PAGE * count, known.prefetch)
        rest_of_held = (rest - without) // known.ranks - 8 * PAGE * count
        held, beside = divmod(rest_of_held, units) if units > 0 else (0, 1)
        if odd or units % PAGE or beside or not 0 < held <= _MAX_HELD:
            continue
        for tensors in _tensors(known, count, held):
            loaders = _same_but_for_units(known, units, count, tensors, held)
            if not stated:
                own = {"loaders": loaders} if count > 1 else loaders["loader-1"]
                yield Guess(own, _extra(without))
                continue
            for other in _stated(known._replace(alive=stated, stated=known.stated or stated, need=without)):
                yield Guess({"loaders": {**loaders, **_named(other.data_loader)}}, other.shm_extra)
        if count > 1 and not stated:
            first = _batch(
                known, units - (count - 1) * PAGE, max((known.files - SPARE) // (known.prefetch + 2), 1), held
            )
            smallest = {f"loader-{at}": _batch(known, PAGE, 1, held) for at in range(2, count + 1)}
            yield Guess({"loaders": {"loader-1": first, **smallest}}, _extra(without))


def _same_but_for_units(known: _Known, units: int, count: int, tensors: int, held: int) -> dict[str, Any]:
    """Return automatic loaders whose batches take `units` together, each as near to the others as pages allow."""
    each = units // PAGE // count * PAGE
    sizes = [units - each * (count - 1), *[each] * (count - 1)]
    return {f"loader-{at}": _batch(known, unit, tensors, held) for at, unit in enumerate(sizes, start=1) if unit}


def _named(stated: dict[str, Any]) -> dict[str, Any]:
    """Return loaders that set their workers, each with all of its own fields."""
    inner = stated.get("loaders") or {"": {}}
    common = {key: value for key, value in stated.items() if key != "loaders"}
    return {f"stated-{at}": {**common, **own} for at, own in enumerate(inner.values(), start=1)}


def _in_turn(plan: Wrapped, known: _Known) -> Iterator[Guess]:
    """Yield automatic loaders that run one after the other: the largest, and what the others hold meanwhile."""
    (slope, rest), *_ = plan.lines("first")
    (slope_of_all, rest_of_all), *_ = plan.lines("every") or ((0, 0),)
    unit, odd = divmod(slope // known.ranks - 3 * PAGE, known.prefetch)
    held, rest_of_held = divmod((rest - plan.number("without")) // known.ranks - 8 * PAGE, unit) if unit > 0 else (0, 1)
    count = (slope_of_all - slope) // known.ranks // (3 * PAGE)
    if odd or unit % PAGE or rest_of_held or not 0 < held <= _MAX_HELD or not 1 < count <= 16:
        return
    kept = (rest_of_all - rest) // known.ranks - 8 * PAGE * count
    others = kept // max(held - 1, 1) - unit
    each = others // (count - 1) // PAGE * PAGE
    if held < 2 or each <= 0 or each > unit:
        return
    for tensors in _tensors(known, count, held):
        last = others - each * (count - 2)
        loaders: dict[str, Any] = {"largest": {}}
        for number in range(2, count + 1):
            loaders[f"loader-{number}"] = _batch(known, last if number == count else each, 1, _DEFAULT_HELD)
        own = _batch(known, unit, tensors, held)
        yield Guess({**own, "loaders_run": word("in_turn"), "loaders": loaders}, _extra(plan.number("without")))


def _tensors(known: _Known, loaders: int, held: int) -> Iterator[int]:
    """Yield how many storages a batch has, by the open files that the plan counts."""
    files = known.files - SPARE
    counts = (files // max(loaders * held, known.prefetch + 2), files // max(held, known.prefetch + 2), 1)
    yield from dict.fromkeys(each for each in counts if each > 0)


def _batch(known: _Known, unit: int, tensors: int, held: int) -> dict[str, Any]:
    """Return the fields of a loader whose batch takes `unit` bytes of pages in so many storages."""
    tensors = min(tensors, unit // PAGE)
    header = 0 if known.files else 64 * tensors
    least = (unit // PAGE - tensors) * PAGE + tensors - header
    number = max(-(-least // KIB) * KIB, KIB)
    fields: dict[str, Any] = {"batch_bytes": {"size": size(number), "tensors": tensors}}
    return fields if held == _DEFAULT_HELD else {**fields, "batches_held": held}


def _extra(left: int) -> list[dict[str, Any]]:
    """Return the owner of what no DataLoader explains; whole pages, which is what a plan counts."""
    return [{"name": word("other-owners"), "size": size(left)}] if left > 0 else []
