"""The file that a command of a text names: where it lies in the repository, beside the text or in what an image is of.

What a Dockerfile copies says it for sure; elsewhere it is looked for between the text's folder and the root.
"""

from __future__ import annotations

import functools
import os
import posixpath
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from trainlaunch.repository.root import ITS_OWN

_DEEPEST = 6  # folders above a text that are looked into
_WITH_CHILDREN = 2  # of them, also in the folders that lie in them
_MOST_CHILDREN = 30
_ENDINGS = 4


class BuildContext(NamedTuple):
    """Of what an image is built: a folder, seen from that of the text, and what the Dockerfile copies of it.

    `copies` are paths in the image and in the folder, both of a folder with a slash behind them; a later one lies over
    an earlier one, and one with None has other files. `inside` is the folder in which the image's process begins.
    `is_whole`: the image has the folder as it is, or leaves it to a mount.
    """

    folder: str = ""
    copies: tuple[tuple[str, str | None], ...] = ()
    inside: str = "/"
    is_whole: bool = False

    def copied(self, base: Path, name: str) -> Path | None:
        """Return where a file of the image surely comes from; `base` is the folder of the build."""
        path = posixpath.normpath(posixpath.join(self.inside, name))
        for target, source in reversed(self.copies):
            below = target.endswith("/") and path.startswith(target)
            if source is None and (below or path == target):
                break
            if source is not None and (below or path == target):
                found = base / (source + path.removeprefix(target))
                if is_file(found) or path == target:
                    return found if is_file(found) else None
        return None


NO_CONTEXT = BuildContext()


def near_file(text: str, name: str, context: BuildContext = NO_CONTEXT) -> Path | None:
    """Return the file that a command of the file `text` names; None where it isn't there."""
    if text in {"-", ""} or "$" in name:
        return None
    built = Path(text).parent / context.folder if context.folder and "$" not in context.folder else None
    copied = context.copied(built, name) if built is not None else None
    if copied is not None:
        return copied if ITS_OWN.holds(copied, Path(text)) else None
    parts = [each for each in PurePosixPath(name).parts if each not in {"/", ".", ".."}]
    endings = [Path(*parts[index:]) for index in range(len(parts))][-_ENDINGS:]
    for folders in ((built,) if built is not None else (), *_around(Path(text))):
        places = (next((each / end for end in endings if is_file(each / end)), None) for each in folders)
        found = [each for each in places if each is not None]
        if found:  # of several in neighbouring folders nobody can say which one it is
            return found[0] if len(found) == 1 and ITS_OWN.holds(found[0], Path(text)) else None
    return None


def is_file(path: Path) -> bool:
    """Return whether a path is a file that can be asked for."""
    return os.path.isfile(path)  # noqa: PTH113 - which may raise in a folder that this user can't look into


def _around(text: Path) -> Iterator[Sequence[Path]]:
    """Yield the folders in which a text's scripts may lie: its own, those in it, and those above in its repository.

    Those that lie beside each other come together.
    """
    folders = [*text.absolute().parents][:_DEEPEST]
    root = next((index for index, each in enumerate(folders) if (each / ".git").exists()), len(folders) - 1)
    for index, folder in enumerate(folders[: root + 1]):
        yield (folder,)
        if index < _WITH_CHILDREN or index == root:
            yield _children(folder)


@functools.lru_cache(maxsize=256)
def _children(folder: Path) -> tuple[Path, ...]:
    try:
        names = sorted(each.name for each in os.scandir(folder) if each.is_dir(follow_symlinks=False))
    except OSError:
        return ()
    return tuple(folder / each for each in names if not each.startswith("."))[:_MOST_CHILDREN]
