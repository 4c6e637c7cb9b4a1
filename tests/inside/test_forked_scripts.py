"""A script that is forked from a Python with torch in it sees what a container of its own would show it."""

from __future__ import annotations

import json

import pytest

from tests.inside.conftest import Inner, Ran

pytestmark = pytest.mark.docker

SHOWS = """
import json, os, random, signal, sys, threading, torch.utils.data
def frames(frame): return [] if frame is None else [frame.f_code.co_filename, *frames(frame.f_back)]
shown = {
    "main": [__name__, __file__, __spec__ is None, sorted(globals())],
    "start": [sys.argv, sys.path, list(sys.flags), frames(sys._getframe()), os.getcwd()],
    "customization": sys.modules["sitecustomize"].__file__,
    "environment": {name: value for name, value in os.environ.items() if name != "HOSTNAME"},
    "process": [os.getuid(), os.umask(0o22), threading.active_count(), os.listdir("/proc/self/task").__len__()],
    "descriptors": sorted(os.listdir("/proc/self/fd")),
    "streams": [[each.isatty(), each.line_buffering, each.encoding] for each in (sys.stdin, sys.stdout, sys.stderr)],
    "read": sys.stdin.read(),
    "signals": [str(signal.getsignal(each)) for each in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
    "places": [sorted(os.listdir(each)) for each in ("/dev/shm", "/tmp", "/job", "/var/tmp", "/root")],
    "processes": len([each for each in os.listdir("/proc") if each.isdecimal()]) <= 3,
    "leader": os.getsid(0) == os.getpid() or os.getsid(0) == 1,
    "imported": [each for each in sys.modules if "fork" in each or "pristine" in each],
}
print("SHOWN" + json.dumps(shown))
print("DRAWN", random.random())
"""


def shown(ran: Ran) -> dict[str, object]:
    found: dict[str, object] = json.loads(ran.out.splitlines()[0].removeprefix("SHOWN"))
    return found


def test_it_sees_what_a_container_of_its_own_shows(inside: Inner) -> None:
    """Python's start, variables, streams and folders; and nothing of the script before it."""
    alone = inside(SHOWS, alone=True)
    first, second = inside(SHOWS), inside(SHOWS)
    assert (alone.code, alone.err, first.code, first.err) == (0, "", 0, "")
    assert shown(first) == shown(alone)
    assert shown(second) == shown(alone)
    assert first.out.splitlines()[1] != second.out.splitlines()[1]


@pytest.mark.parametrize(
    ("end", "code"),
    [("sys.exit(3)", 3), ("raise ValueError('mine')", 1), ("os.kill(os.getpid(), 9)", 137), ("os._exit(5)", 5)],
    ids=["exit", "raises", "killed", "at-once"],
)
def test_its_end_is_its_own(inside: Inner, end: str, code: int) -> None:
    """With what Python says of it."""
    ran = inside(f"import os, sys\nprint('said', flush=True)\n{end}\n")
    assert (ran.code, ran.out) == (code, "said\n")
    assert ran.err.endswith("ValueError: mine\n") == (code == 1)
    assert "fork_server" not in ran.err


ENDS = """
import atexit, ctypes, multiprocessing, os, sys, threading, time, torch.utils.data
lock = multiprocessing.get_context("spawn").Lock()  # unlinked by a handler of a module of the server's
class Said:
    def __del__(self): os.write(1, b'freed\\n')
said = Said()
said.batch = torch.utils.data.default_collate([torch.ones(1)])
atexit.register(print, "at exit")
def late(): time.sleep(0.2); print("thread")
threading.Thread(target=late).start()
print("unflushed", end=" ")
ctypes.CDLL(None).printf(b"by C ")
sys.exit(6)
"""


def test_it_ends_as_any_script_does(inside: Inner) -> None:
    """Its threads, then its handlers, then its objects; and what is in a buffer comes out, with its code."""
    ran = inside(ENDS)
    words = [word for word in ran.out.split() if word not in {"by", "C"}]
    assert (ran.code, words, ran.err) == (6, ["unflushed", "thread", "at", "exit", "freed"], "")
    assert "by C" in ran.out


@pytest.mark.parametrize("left", ["/dev/shm/left", "/tmp/left", "/usr/local/lib/python3.11/dist-packages/left.py"])
def test_what_a_script_leaves_behind_fails_its_own_test(inside: Inner, left: str) -> None:
    """And is gone before the next one."""
    with pytest.raises(AssertionError, match="left behind"):
        inside(f"open({left!r}, 'w').close()")
    ran = inside(f"import os\nprint(os.path.exists({left!r}))")
    assert ran.out == "False\n"


def test_what_cannot_be_undone_ends_the_container(inside: Inner) -> None:
    """The next script has another one, with the image's own file."""
    with pytest.raises(AssertionError, match="left behind"):
        inside("open('/etc/shells', 'a').write('mine')")
    assert inside("print('mine' in open('/etc/shells').read())").out == "False\n"


def test_processes_of_a_script_end_with_it(inside: Inner) -> None:
    """As those of a container whose first process has ended."""
    inside("import subprocess\nsubprocess.Popen(['sleep', '1000'], start_new_session=True)")
    ran = inside("import os\nprint(len([each for each in os.listdir('/proc') if each.isdecimal()]))")
    assert ran.out == "3\n"  # init, the server of forks, and this one
