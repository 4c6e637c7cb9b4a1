"""A pod's log, each line once and in the order of the node's file, over dropped connections and restarts of the API.

The API continues a log from a second, not from a byte: lines are asked for with their timestamps, and those of the
last seconds that were printed already are left out, by timestamp and text, each as often as it was printed. The log as
the node keeps it also tells which pods completed without a word of the preflight.
"""

from __future__ import annotations

import datetime
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence

from trainlaunch.errors import TargetUnavailable
from trainlaunch.run.base.backend import Say
from trainlaunch.run.base.clock import SECOND, nanoseconds, seconds
from trainlaunch.run.base.log_position import WHOLE, LogPart
from trainlaunch.run.base.run_evidence import BEGINS_SECONDS, PREFLIGHT, lacks_preflight
from trainlaunch.run.kubernetes.api_errors import HTTP_BAD_REQUEST, HTTP_NOT_FOUND, ApiRefused
from trainlaunch.run.kubernetes.client import Cluster
from trainlaunch.run.kubernetes.pod_watch import PAUSES, passes
from trainlaunch.run.kubernetes.pods import Pod

OVERLAP = 2  # seconds: stdout and stderr reach the file by two ways, a little out of order
QUIET_SECONDS = 300.0  # a silent log is asked for again: something in between may have dropped it without a word
SETTLE_SECONDS = 1.0
# A kubelet that starts again knows none of its pods for a second or two, and says so with 404.
UNKNOWN_SECONDS_UNTIL_SAID, UNKNOWN_SECONDS_OF_ENDED = 5.0, 15.0


class LineDeduplicator:
    """Which lines were printed, as far back as the API may send again."""

    def __init__(self) -> None:
        self._recent: deque[tuple[float, int]] = deque()
        self._again: Counter[int] = Counter()
        self._seconds: dict[bytes, float] = {}
        self._newest = 0.0
        self._resumed = False
        self._overlapped = False

    def resume(self) -> str | None:
        """Prepare for the same lines again; returns the time to ask from, None for the beginning."""
        self._again = Counter(key for _, key in self._recent)
        self._resumed, self._overlapped = bool(self._again), False
        if not self._newest:
            return None
        return _rfc3339(int(self._newest) - OVERLAP + 1)

    def is_new(self, stamp: bytes, line: bytes) -> bool:
        """Whether a line was not printed yet; if so it is from now on."""
        key = hash((stamp, line))
        if self._again[key] > 0:
            self._again[key] -= 1
            self._overlapped = True
            return False
        moment = self._moment(stamp)
        self._newest = max(self._newest, moment)
        self._recent.append((moment, key))
        while self._recent[0][0] < self._newest - OVERLAP - 1:
            self._recent.popleft()
        return True

    def gap(self) -> bool:
        """Whether lines may be missing: none of those printed last came again. Told once for each time."""
        missed = self._resumed and not self._overlapped
        self._resumed = False
        return missed

    def _moment(self, stamp: bytes) -> float:
        """Return the second of a timestamp; most lines share it with the line before."""
        second, _, rest = stamp.partition(b".")
        zone = rest.lstrip(b"0123456789") if rest else b""
        key = second + zone
        if key not in self._seconds:
            self._seconds = {key: seconds((second + zone).decode())}
        return self._seconds[key]


class PodLog:
    """Reads a part of one pod's log to its end. `write` gets whole lines, `now` tells how the pod is (None: gone)."""

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        write: Callable[[bytes], None],
        now: Callable[[], Pod | None],
        say: Say,
        part: LogPart = WHOLE,
    ) -> None:
        self._cluster = cluster
        self._pod = pod
        self._write = write
        self._now = now
        self._say = say
        self._part = part
        self._before = part.since is not None
        self._first: int | None = None  # nanoseconds of the first line of a tail
        self._at_beginning = part == WHOLE
        self._resumed = False
        self._seen = LineDeduplicator()
        self._remarks: set[bytes] = set()
        self._unknown_since: float | None = None
        self._unknown_said = False
        self._path = f"/api/v1/namespaces/{cluster.namespace}/pods/{pod.name}/log"

    def read(self, *, follow: bool, stop: threading.Event) -> None:
        """Write it all; with `follow` until the container has ended, else what there is now."""
        failures = 0
        while not stop.is_set():
            last = not follow or self._over()
            try:
                self._read_once(follow=follow and not last)
            except TargetUnavailable as cause:
                if not self._may_go_on(cause, last=last):
                    return
                stop.wait(self._cluster.clock.real(PAUSES[min(failures, len(PAUSES) - 1)]))
                failures += 1
                continue
            failures, self._unknown_since = 0, None
            if last:
                return
            stop.wait(self._cluster.clock.real(SETTLE_SECONDS))  # the log ends a moment before the pod's status says so

    def _may_go_on(self, cause: TargetUnavailable, *, last: bool) -> bool:
        if isinstance(cause, ApiRefused) and cause.status == HTTP_NOT_FOUND:
            return self._comes_back(cause, last=last)
        if isinstance(cause, ApiRefused) and cause.status == HTTP_BAD_REQUEST:
            return not last and not self._over()  # its container is not there yet
        if passes(cause):
            return True
        self._say(f"the log of pod {self._pod.name} can't be read: {cause.diagnostics[0].why}")
        return False

    def _comes_back(self, refused: ApiRefused, *, last: bool) -> bool:
        """Whether to ask again after a 404: a node that starts again forgets its pods for a moment."""
        if self._now() is None:
            return False
        now = self._cluster.clock.now()
        if self._unknown_since is None:
            self._unknown_since = now
        waited, name = now - self._unknown_since, self._pod.name
        if last and waited >= UNKNOWN_SECONDS_OF_ENDED:
            self._say(f"the log of pod {name} can't be read: its node does not have it any more ({refused.words})")
            return False
        if waited >= UNKNOWN_SECONDS_UNTIL_SAID and not self._unknown_said:
            self._unknown_said = True
            self._say(f"the log of pod {name} can't be read for now: its node does not know the pod; asking again")
        return True

    def _over(self) -> bool:
        pod = self._now()
        return pod is None or pod.ended

    def _read_once(self, *, follow: bool) -> None:
        query = [("container", self._pod.container), ("timestamps", "true")]
        query += [("follow", "true")] if follow else []
        since = self._seen.resume()
        self._resumed = since is not None
        if since is None:
            query += self._beginning()
        else:
            query += [("sinceTime", since)]
        what = f"read the log of pod {self._pod.name}"
        with self._cluster.stream(self._path, query, what=what, quiet_seconds=QUIET_SECONDS) as pieces:
            rest = b""
            for piece in pieces:
                *lines, rest = (rest + piece).split(b"\n")
                self._take(line + b"\n" for line in lines)
        if rest and not follow:  # a log may end without a newline; a cut one does not get here
            self._take([rest])

    def _beginning(self) -> list[tuple[str, str]]:
        """Return what asks for the part; the API takes whole seconds, and `_shown` is exact."""
        tail, since = self._part.tail, self._part.since
        asked = [] if tail is None else [("tailLines", str(tail))]
        return asked if since is None else [*asked, ("sinceTime", _rfc3339(since // SECOND))]

    def _shown(self, stamp: bytes, text: bytes) -> bytes:
        """Return a line as it is written: nothing of one before the part."""
        if self._before:
            self._before = nanoseconds(stamp.decode()) < (self._part.since or 0)
        if self._before:
            return b""
        return stamp + b" " + text if self._part.timestamps else text

    def _take(self, lines: Iterator[bytes] | list[bytes]) -> None:
        new: list[bytes] = []
        for line in self._from_beginning(lines):
            stamp, _, text = line.partition(b" ")
            if not _is_stamp(stamp):
                self._remark(line)
            elif self._in_tail(stamp) and self._seen.is_new(stamp, text):
                if self._seen.gap():
                    self._say(
                        f"lines of pod {self._pod.name} may be missing before the next one: its node rotated the log "
                        "while it could not be read"
                    )
                new.append(self._shown(stamp, text))
        if any(new):
            self._write(b"".join(new))

    def _from_beginning(self, lines: Iterator[bytes] | list[bytes]) -> Iterator[bytes]:
        """Yield lines; say once where the first of all shows that the node has rotated away what came before.

        Each of our pods says something when it starts, its preflight; where its image has a program in front of that,
        nobody knows when.
        """
        for line in lines:
            stamp = line.partition(b" ")[0]
            if self._at_beginning and _is_stamp(stamp):
                self._at_beginning = False
                late = nanoseconds(stamp.decode()) / SECOND - self._pod.started > BEGINS_SECONDS
                spoke = line.partition(b" ")[2].startswith(b"trainlaunch: ")  # the beginning of the preflight's lines
                if late and not spoke and self._pod.planned.need is not None and not self._pod.fronted:
                    self._say(
                        f"the log of pod {self._pod.name} begins at {stamp.decode()}: its node has rotated away what "
                        "came before, and the API reads a container's newest log file only"
                    )
            yield line

    def _in_tail(self, stamp: bytes) -> bool:
        """Whether a line is none of those before the last ones that were asked for: a log goes on from a second."""
        if self._part.tail is None:
            return True
        moment = nanoseconds(stamp.decode())
        if not self._resumed:
            self._first = moment if self._first is None else min(self._first, moment)
        return self._first is None or moment >= self._first

    def _remark(self, line: bytes) -> None:
        """Say what the kubelet itself puts into a log, once: it has no timestamp."""
        if line.strip() and line not in self._remarks:
            self._remarks.add(line)
            self._say(f"the node says in the log of pod {self._pod.name}: {line.decode(errors='replace').strip()}")


def _rfc3339(since: int) -> str:
    return datetime.datetime.fromtimestamp(since, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _is_stamp(word: bytes) -> bool:
    return len(word) >= 20 and word[4:5] == b"-" and word[10:11] == b"T" and word[:4].isdigit()


def is_silent(cluster: Cluster, pods: Sequence[Pod]) -> bool:
    """Return whether a run that completed has a pod that never came to its preflight; False where nobody can know."""
    return any(each.fronted and each.exit_code == 0 and _lacks_preflight(cluster, each) for each in pods)


def _lacks_preflight(cluster: Cluster, pod: Pod) -> bool:
    pieces: list[tuple[bool, bytes]] = []
    refusals: list[str] = []
    stop = threading.Event()

    def write(data: bytes) -> None:
        pieces.extend((False, line) for line in data.splitlines(keepends=True))
        if PREFLIGHT in data:
            stop.set()

    PodLog(cluster, pod, write, lambda: pod, refusals.append, LogPart(timestamps=True)).read(follow=False, stop=stop)
    return not refusals and lacks_preflight(pieces, pod.started, pod.finished)
