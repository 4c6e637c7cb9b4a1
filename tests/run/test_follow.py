"""A stream that is read beside looks at its container."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from launcher.run.docker.follow import Followed, Seen


def test_what_a_stream_raises_is_raised_where_it_is_read() -> None:
    """After what had come; a stream that breaks in an unknown way has not ended."""

    def stream() -> Iterator[int]:
        yield 1
        raise ValueError("odd")

    followed = iter(Followed(stream(), lambda: Seen(ended=False)))
    assert next(followed) == 1
    with pytest.raises(ValueError, match="odd"):
        next(followed)
