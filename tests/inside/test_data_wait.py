"""The page in which processes note how long their loops wait for data, as its reader reads it."""

from __future__ import annotations

import base64
import functools
import os
import pickle
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import pytest
from trainlaunch.inside import data_wait as noting
from trainlaunch.inside.batch_waits import SINCE, Notes, follow
from trainlaunch.inside.data_wait import RECORD, RECORDS, DataWait
from trainlaunch.inside.heartbeat import LINE, LINES, Heartbeat
from trainlaunch.run.base.wait_reading import ASIDE, FOLDER, PAGE, AskedPage, LoaderWait, read_page

PAUSE = 0.05


class Torch:
    """What the notes ask torch: the nodes of graphs that a thread has built, and whether gradients are on."""

    def __init__(self) -> None:
        self.nodes, self.grad = 0, True
        self._C = SimpleNamespace(_autograd=SimpleNamespace(_get_sequence_nr=lambda: self.nodes))

    def is_grad_enabled(self) -> bool:
        """Answer as torch does."""
        return self.grad


class Loader:
    """A loader of `count` batches, each of which takes a moment."""

    def __init__(self, kind: Any, count: int, pause: float = PAUSE) -> None:
        self.kind, self.count, self.pause = kind, count, pause

    def __iter__(self) -> Any:
        time.sleep(self.pause)
        return self.kind(self)


class Batches:
    """Its iterator."""

    def __init__(self, loader: Loader) -> None:
        self.loader, self.left = loader, loader.count

    def __iter__(self) -> Any:
        return self

    def __next__(self) -> Any:
        time.sleep(self.loader.pause)
        self.left -= 1
        if self.left < 0:
            raise StopIteration
        return self.left


@pytest.fixture
def torch() -> Torch:
    return Torch()


@pytest.fixture
def page(tmp_path: Path) -> Path:
    return tmp_path / "data_wait"


Kinds = Callable[..., Any]


@pytest.fixture
def kind(page: Path, torch: Torch) -> Iterator[Kinds]:
    """Return an iterator class whose waits are noted, in `page`; `following` gives its batches."""
    made: list[DataWait] = []

    def noted(following: Callable[[Any], Any] = Batches.__next__, at: Path = page) -> Any:
        waits = DataWait(str(at), torch)
        made.append(waits)
        batches: Any = type("Noted", (Batches,), {"__next__": following})
        follow(batches, waits, lambda: None)
        batches.waits = waits
        return batches

    yield noted
    for each in made:  # the processes that other tests fork
        each.on = False


@pytest.fixture
def loop(kind: Kinds) -> Callable[..., Loader]:
    """Return loaders whose waits are noted, of a count of batches."""
    loaders: Any = type("Loaders", (Loader,), {"__iter__": Loader.__iter__})
    batches = kind()
    noting._follow_starts(loaders, batches, batches.waits, lambda: None)
    return lambda count, pause=PAUSE: loaders(batches, count, pause)


def seen(page: Path) -> dict[str, LoaderWait]:
    """Return what the page says by phase, of all lines together."""
    found = read_page(page.read_bytes(), time.time(), lambda pid: False)
    assert found is not None
    assert found.whole
    sums: dict[str, LoaderWait] = {}
    for each in found.loaders:
        of = sums.get(each.phase, each._replace(batches=0, waited=0.0, first=0.0))
        batches, waited, first = of.batches + each.batches, of.waited + each.waited, of.first + each.first
        sums[each.phase] = each._replace(batches=batches, waited=waited, first=first)
    return sums


def trained(torch: Torch, loader: Loader) -> None:
    for _ in loader:
        torch.nodes += 1


def test_a_loop_that_builds_graphs_trains_and_one_that_does_not_evaluates(
    page: Path, torch: Torch, loop: Callable[..., Loader]
) -> None:
    """Also where gradients are on while the batch comes, as in loops that switch them off for the model alone."""
    trained(torch, loop(3))
    for _ in loop(2):
        pass
    torch.grad = False
    for _ in loop(1):
        pass
    found = seen(page)
    assert {phase: each.batches for phase, each in found.items()} == {"training": 3, "evaluation": 3}
    assert found["training"].at.startswith("tests/inside/test_data_wait.py:")
    # A start, three batches and the end; of two loops.
    assert found["training"].waited >= 5 * PAUSE
    assert found["training"].first >= 2 * PAUSE
    assert found["training"].waited - found["training"].first >= 3 * PAUSE
    assert found["evaluation"].waited >= 7 * PAUSE


def test_a_loop_that_trains_late_is_moved_whole(page: Path, torch: Torch, loop: Callable[..., Loader]) -> None:
    """Gradients of several batches may be built at once; a library may ask for one batch ahead."""
    for number, _ in enumerate(loop(4, 0.001)):
        torch.nodes += number == 2
    found = seen(page)
    assert (set(found), found["training"].batches) == ({"training"}, 4)


def test_the_second_epoch_begins_again(page: Path, torch: Torch, loop: Callable[..., Loader]) -> None:
    """Its first batch too belongs to the first ones."""
    loader = loop(2)
    trained(torch, loader)
    trained(torch, loader)
    assert 4 * PAUSE <= seen(page)["training"].first < seen(page)["training"].waited


def test_a_loader_inside_of_a_loader_is_counted_once(torch: Torch, page: Path, kind: Kinds) -> None:
    """The outer one's wait has the inner one's in it."""
    batches = kind()

    def nested(self: Any) -> Any:
        if self.loader.count == 2:
            list(batches(Loader(None, 3, 0.0)))
        return Batches.__next__(self)

    outer = type("Outer", (batches,), {"__next__": nested})
    follow(outer, batches.waits, lambda: None)
    trained(torch, outer(Loader(None, 2, 0.0)))
    assert seen(page)["training"].batches == 2


def test_a_wait_that_goes_on_counts_while_its_process_lives(page: Path, kind: Kinds) -> None:
    """Who died in it waits no longer."""
    found: dict[bool, float] = {}

    def looks(_: Any) -> None:
        for alive in (True, False):
            read = read_page(page.read_bytes(), time.time() + 60, lambda pid, alive=alive: alive)  # type: ignore[misc]
            found[alive] = 0.0 if read is None else read.waited

    next(kind(looks)(Loader(None, 1)))
    assert found[True] >= 60 > found[False]


def test_a_subclass_with_an_iter_of_its_own_is_timed_once(
    page: Path, torch: Torch, loop: Callable[..., Loader]
) -> None:
    """One that calls DataLoader's, and one that doesn't, as torchdata's."""
    plain = loop(1)

    class Calling(type(plain)):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return super().__iter__()

    class Own(type(plain)):  # type: ignore[misc]
        def __iter__(self) -> Any:
            time.sleep(PAUSE)
            return self.kind(self)

    for each in (Calling, Own):
        trained(torch, each(plain.kind, 1, PAUSE))
    found = seen(page)["training"]
    assert 4 * PAUSE <= found.first < 6 * PAUSE


def test_classes_of_a_script_stay_as_usable_as_they_were(loop: Callable[..., Loader], kind: Kinds) -> None:
    """One of `__main__` is pickled with all that its methods hold; `__iter__` may be no function, or not to be set."""
    away = pickle.loads(pickle.dumps(kind().waits))  # noqa: S301 - our own
    assert not away.on
    assert type(away).__module__ == "types"
    plain = loop(1)

    class Sealed(type):
        def __setattr__(cls, name: str, value: object) -> None:
            raise TypeError(name)

    class Sealing(type(plain), metaclass=Sealed):  # type: ignore[misc]
        def __iter__(self) -> Any:
            return iter([3])

    class Partial(type(plain)):  # type: ignore[misc]
        __iter__ = functools.partialmethod(lambda self, found: iter(found), [4])

    assert [next(iter(each(plain.kind, 1, 0.0))) for each in (Sealing, Partial)] == [3, 4]


def test_a_thread_that_loads_for_others_is_told_apart(page: Path, torch: Torch, loop: Callable[..., Loader]) -> None:
    """What it waits is no wait of the training, unless it trains itself."""
    import threading

    for work in (lambda: list(loop(3, 0.001)), lambda: trained(torch, loop(3, 0.001))):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert {phase: each.batches for phase, each in seen(page).items()} == {ASIDE: 3, "training": 3}


def test_a_forked_process_has_records_of_its_own(page: Path, torch: Torch, loop: Callable[..., Loader]) -> None:
    """As ranks that a script forks; the loop that was open in the parent is a new one in the child."""
    iterator = iter(loop(4, 0.001))
    next(iterator)
    torch.nodes += 1
    next(iterator)
    child = os.fork()
    if not child:
        torch.nodes += 1
        next(iterator)
        os._exit(0)
    os.waitpid(child, 0)
    found = read_page(page.read_bytes(), time.time(), lambda pid: False)
    assert found is not None
    assert {each.process: each.batches for each in found.loaders} == {os.getpid(): 2, child: 1}


def test_an_error_of_the_notes_voids_them_and_reaches_no_script(page: Path, torch: Torch, kind: Kinds) -> None:
    """A part of the waits would mislead: the reader says nothing."""
    batches = kind()
    iterator = batches(Loader(None, 3, 0.0))
    assert next(iterator) == 2
    batches.waits._sequence = None
    assert list(iterator) == [1, 0]
    assert read_page(page.read_bytes(), time.time(), lambda pid: False) is None
    nowhere = kind(at=page / "nowhere")
    assert list(nowhere(Loader(None, 2, 0.0))) == [1, 0]


def test_a_full_page_is_seen_to_be_full(page: Path, torch: Torch) -> None:
    """More loops than have room are not noted, and the reader says at least."""
    waits = DataWait(str(page), torch)
    for number in range(RECORDS + 3):
        waits._numbers(f"train.py:{number}", noting.TRAINS)[noting.BATCHES] = 1
    found = read_page(page.read_bytes(), time.time(), lambda pid: False)
    assert found is not None
    assert (len(found.loaders), found.whole) == (RECORDS, False)
    assert found.loaders[-1].at == f"train.py:{RECORDS - 1}"


@pytest.mark.parametrize("data", [b"", b"\0" * (RECORD * RECORDS - 1)])
def test_what_is_no_page_says_nothing(data: bytes) -> None:
    """A page that was made a moment ago may not be whole yet."""
    assert read_page(data, 0.0, lambda pid: False) is None


def test_a_page_without_records_says_that_no_loop_waited() -> None:
    """As of a script that imports torch and iterates no DataLoader."""
    found = read_page(b"\0" * (RECORD * RECORDS), 0.0, lambda pid: False)
    assert (found, found and found.waited) == (found, 0.0)


def test_torchs_compiler_is_kept_away(page: Path, torch: Torch, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would trace the notes of each batch; its own switches are used, as loading it takes seconds."""
    skipped: list[Any] = []
    frames = SimpleNamespace(skip_code=skipped.append)
    monkeypatch.setitem(sys.modules, "torch._C", SimpleNamespace(_dynamo=SimpleNamespace(eval_frame=frames)))
    beats = page.with_name("heartbeat")
    beats.write_bytes(b" " * LINE * LINES)
    made: Any = type("Noted", (Batches,), {"__next__": Batches.__next__})
    for listener in (Heartbeat(str(beats)), DataWait(str(page), torch)):
        follow(made, listener, lambda: None)
        of_both = (made.__next__, Notes.enter, Notes.leave, Notes.end)
        own = (each for each in vars(type(listener)).values() if isinstance(each, FunctionType))
        assert {each.__code__ for each in (*of_both, *own)} <= set(skipped)
    assert made.__next__._torchdynamo_disable
    assert made.__next__.__wrapped__ is Batches.__next__  # one wrapper for both
    assert list(made(Loader(None, 2, 0.0))) == [1, 0]
    assert (seen(page)["evaluation"].batches, beats.read_text().split()[3:]) == (2, ["0", "2"])


@pytest.mark.parametrize("skew", [-900, 0, 900])
def test_a_page_that_a_command_reads_is_read_by_the_time_beside_it(page: Path, kind: Kinds, skew: int) -> None:
    """The clock of a node may be minutes from that of this host."""
    data: list[bytes] = []
    next(kind(lambda _: data.append(page.read_bytes()))(Loader(None, 1)))
    (since,) = (struct.unpack_from("=q", data[0], 8 * SINCE)[0] // 10**9,)
    moved = bytearray(data[0])
    struct.pack_into("=q", moved, 8 * SINCE, (since + skew) * 10**9)
    text = base64.encodebytes(bytes(moved)).decode() + f"\n1 {os.getpid()}\n"
    found = AskedPage(lambda _: f"{text}{since + skew + 7}\n").read()
    assert found
    assert found.waited == 7.0


def test_a_page_of_an_image_without_date_is_read(page: Path, kind: Kinds) -> None:
    """An engine gives what a command says on stderr beside its output; what goes on isn't counted."""
    data: list[bytes] = []
    next(kind(lambda _: data.append(page.read_bytes()))(Loader(None, 1)))
    page.write_bytes(data[0])
    (page.parent / "base64").symlink_to(shutil.which("base64") or "")

    def execute(words: list[str]) -> str:
        look = words[2].replace(f"{FOLDER}/{PAGE}", str(page))
        path = {"PATH": str(page.parent)}
        ran = subprocess.run([*words[:2], look], env=path, stdout=-1, stderr=subprocess.STDOUT, text=True, check=True)
        return ran.stdout

    found = AskedPage(execute).read()
    assert found
    assert (found.waited, found.at) == (0.0, 0.0)
