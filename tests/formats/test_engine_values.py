"""Sizes and durations as docker and Compose read them; each row is what `docker-compose config` made of it."""

from __future__ import annotations

import pytest
from trainlaunch.formats.quantities import Tmpfs, engine_bytes, engine_seconds, is_shm, kernel_bytes, tmpfs_of


@pytest.mark.parametrize(
    ("text", "size"),
    [
        *(("2g", 2**31), ("2G", 2**31), ("2gb", 2**31), ("2GiB", 2**31), ("2 g", 2**31), ("1.5g", 3 * 2**29)),
        *(("2e9", 2 * 10**9), ("1e3k", 1024000), ("1_000", 1000), ("+5", 5), ("2b", 2), ("1.", 1), (".5g", 2**29)),
        *(("1 ", 1), ("2p", 2**51), ("017", 17), ("9e18", 9 * 10**18), ("0", 0)),
        *(("2Gi", None), ("-1", None), (" 2g", None), ("2g ", None), ("2e", None), ("2ib", None), ("", None)),
        *(("0x10", None), ("8192p", None), (".g", None), ("2  g", None), ("1e400", None), ("$X", None), ("g", None)),
    ],
)
def test_sizes(text: str, size: int | None) -> None:
    """Binary whatever the letters' case; `Gi` is Kubernetes' own."""
    assert engine_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "size"), [("200m", 200 << 20), ("1G", 2**30), ("0", 0), ("50%", None), ("2gb", None), ("1.5g", None)]
)
def test_sizes_of_the_kernel(text: str, size: int | None) -> None:
    """What a tmpfs option may say."""
    assert kernel_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("30s", 30), ("1m30s", 90), ("1.5h", 5400), ("1d", 86400), ("0", 0), ("1000ms", 1)),
        *((".5s", None), ("30", None), ("1m 3s", None), ("1M", None), ("", None), ("-1s", None)),
    ],
)
def test_durations(text: str, seconds: int | None) -> None:
    """A unit must stand there; parts of a second are no whole number of them."""
    assert engine_seconds(text) == seconds


def test_a_tmpfs() -> None:
    """Engines mount without exec unless it is said."""
    assert tmpfs_of("/tmp:exec,size=1g") == Tmpfs("/tmp", "1g", "")
    assert tmpfs_of("/run") == Tmpfs("/run", None, "noexec")
    assert tmpfs_of("/s:mode=1777,noexec,size=1,size=2m") == Tmpfs("/s", "2m", "mode=1777,noexec")


@pytest.mark.parametrize("target", ["/dev/shm", "/dev/shm/", "/dev//shm", "/dev/./shm", "//dev/shm", "/a/../dev/shm"])
def test_a_place_of_dev_shm(target: str) -> None:
    """However it is spelled; not what lies above or below."""
    assert is_shm(target)
    assert not is_shm(f"{target}/x")
    assert not is_shm("/dev")
