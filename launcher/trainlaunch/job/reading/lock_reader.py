"""The lock of a job file: what was asked or measured once, beside the job file, so that reading a job needs neither.

Its parts are optional: `images` has the registry digest and the ENTRYPOINT of each image, `probe` and `tune` what was
measured of the script. Version 1, which is still read, has `images` alone.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from trainlaunch.diagnostics import Diagnostic, Report, Span
from trainlaunch.job.loader_spec import KIND, ProbeMeasurement, Tune
from trainlaunch.job.spec import ImagePython
from trainlaunch.repository.regular_files import read_regular
from trainlaunch.repository.root import ITS_OWN, Reach, link_outside
from trainlaunch.yamltree.strict import MappingNode, Node, ScalarNode, SequenceNode, parse_yaml
from trainlaunch.yamltree.text_file import MAX_BYTES

VERSION = 2
PARTS = ("images", "probe", "tune")
RELEASE = r"\d{1,4}(\.\w{1,20}){1,3}(\+[\w.]{1,40})?"  # of Python and of torch: 3.14.0, 2.14.1+cu128
DIGEST = r"sha256:[0-9a-f]{64}"


class LockedImage(NamedTuple):
    """One image's facts as the lock has them: nodes, so that what they give has a place. Older locks have no Python."""

    digest: ScalarNode
    entrypoint: SequenceNode
    python: ScalarNode | None = None
    torch: ScalarNode | None = None


class Lock(NamedTuple):
    """A lock file: images as the job file spells them, what `probe` measured, what `tune` did by target, its text."""

    path: Path
    images: Mapping[str, LockedImage]
    probe: ProbeMeasurement | None = None
    tunes: Mapping[str, Tune] = {}
    text: str = ""


def lock_path(job_file: Path) -> Path:
    """Return where the lock of a job file lies: `job.yaml` → `job.lock.yaml` beside it."""
    return job_file.with_name(f"{job_file.stem}.lock.yaml")


def lock_elsewhere(job_file: Path, reach: Reach) -> Diagnostic | None:
    """Return the error for a lock that is a link out of the job file's repository, None for any other."""
    path = lock_path(job_file)
    return link_outside(path, reach, f"delete {path}, and run `trainlaunch lock {job_file}`")


def read_lock(job_file: Path, report: Report, reach: Reach = ITS_OWN) -> Lock | None:
    """Return the lock of `job_file`; None where it has none, or once `report` says what is wrong with it."""
    path = lock_path(job_file)
    elsewhere = lock_elsewhere(job_file, reach)
    if elsewhere:
        report.take(elsewhere)
        return None
    try:
        text = read_regular(path, MAX_BYTES).decode()
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as cause:
        reason = cause.strerror if isinstance(cause, OSError) else cause
        report.take(unreadable_lock(job_file, f"can't be read: {reason}"))
        return None
    before = len(report)
    root = parse_yaml(text, str(path), report)
    if len(report) > before:
        return None
    lock, problem = _lock_of(root, path)
    if lock is None:
        said, span = problem or ("is not what `trainlaunch lock` writes", root.span if root else None)
        report.take(unreadable_lock(job_file, said, span))
        return None
    return lock._replace(text=text)


def _lock_of(root: Node | None, path: Path) -> tuple[Lock | None, tuple[str, Span] | None]:
    """Return the lock, or None where the file has another form, and which part of a measurement shows that."""
    images, top = _images(root), _parts(root) or {}
    if images is None:
        return None, None
    if not {"probe", "tune"} & top.keys():
        return Lock(path, images), None
    from trainlaunch.job.reading.lock_measurements import (  # most locks have images alone
        NotAsWritten,
        probe_of,
        tunes_of,
    )

    part = "probe"
    try:
        probe = probe_of(top["probe"]) if "probe" in top else None
        part = "tune"
        return Lock(path, images, probe, tunes_of(top["tune"]) if "tune" in top else {}), None
    except NotAsWritten as problem:
        return None, (f"has a part {part} that is not what `trainlaunch {part}` writes: {problem}", problem.node.span)


def locked(root: MappingNode, lock: Lock, job_file: Path, report: Report) -> MappingNode:
    """Return the job's tree with what `lock` knows of its image, where the job leaves it open.

    An image that the lock doesn't know is an error where it knows others, unless --set chose it for this once.
    """
    key, image = root.items.get("image", (None, None))
    if key is None or not isinstance(image, ScalarNode):
        return root  # the reader says what is wrong with it
    found = lock.images.get(image.text)
    if found is None:
        if lock.images and image.kind != "--set":
            report.take(_other_image(image, lock, job_file))
        return root
    items = dict(root.items)
    if "@" not in image.text:
        items["image"] = (key, ScalarNode(f"{image.text}@{found.digest.text}", False, found.digest.span, KIND))
    if "image_entrypoint" not in items:
        items["image_entrypoint"] = (ScalarNode("image_entrypoint", True, key.span, KIND), found.entrypoint)
    return MappingNode(items, root.span, root.kind)


def image_python(root: MappingNode, lock: Lock) -> ImagePython | None:
    """Return the Python of the image of a job that `locked` returned, None where the lock doesn't have it."""
    _, image = root.items.get("image", (None, None))
    name = image.text if isinstance(image, ScalarNode) else ""
    found = lock.images.get(name) or lock.images.get(name.partition("@")[0])
    if found is None or found.python is None:
        return None
    return ImagePython(found.python.text, found.torch.text if found.torch else "", found.python.span)


def _images(root: Node | None) -> dict[str, LockedImage] | None:
    """Return the facts by image, or None where the file has another form."""
    top = _parts(root)
    if top is None or not all(isinstance(each, MappingNode) for each in top.values()):
        return None
    listed = top.get("images")
    if not isinstance(listed, MappingNode):
        return {}
    images: dict[str, LockedImage] = {}
    for name, (_, node) in listed.items.items():
        if not isinstance(node, MappingNode) or set(node.items) - {"python", "torch"} != {"digest", "entrypoint"}:
            return None
        python, torch = (node.items[each][1] if each in node.items else None for each in ("python", "torch"))
        if not all(each is None or _is_version(each) for each in (python, torch)):
            return None
        (_, digest), (_, entrypoint) = node.items["digest"], node.items["entrypoint"]
        if not isinstance(digest, ScalarNode) or not isinstance(entrypoint, SequenceNode):
            return None
        words = tuple(
            ScalarNode(each.text, False, each.span, KIND) for each in entrypoint.items if isinstance(each, ScalarNode)
        )
        if len(words) < len(entrypoint.items) or not re.fullmatch(DIGEST, digest.text):
            return None
        images[name] = LockedImage(digest, SequenceNode(words, entrypoint.span, KIND), python, torch)  # type: ignore[arg-type]
    return images


def _is_version(node: Node) -> bool:
    return isinstance(node, ScalarNode) and re.fullmatch(RELEASE, node.text) is not None


def _parts(root: Node | None) -> dict[str, Node] | None:
    """Return the parts of a lock; None where the file isn't one of a version that is known."""
    if not isinstance(root, MappingNode) or "version" not in root.items:
        return None
    version = root.items["version"][1]
    text = version.text if isinstance(version, ScalarNode) else ""
    parts = {name: value for name, (_, value) in root.items.items() if name != "version"}
    known = {"1": set(parts) == {"images"}, str(VERSION): set(parts) <= set(PARTS)}
    return parts if known.get(text, False) else None


def part_texts(text: str, path: Path) -> dict[str, str] | None:
    """Return the lines of each part of a lock's text by its name, so that a writer of one keeps the others.

    None where it is no lock, or none whose parts have lines of their own.
    """
    root = _lock_tree(text, path)
    if root is None:
        return None
    if set(root.items) <= {"version", "images"}:
        return {}
    lines = text.split("\n")
    blocks = {name: lines[start:end] for name, (start, end) in (_blocks(root, text) or {}).items()}
    kept = {name: "\n".join(block).rstrip("\n") + "\n" for name, block in blocks.items() if name in PARTS}
    return kept if blocks else None


def with_part(text: str, path: Path, part: str, block: str) -> str | None:
    """Return a lock's text with `block` as its part of that name; all other lines stay byte for byte.

    None where it is no lock, or none whose parts have lines of their own.
    """
    root = _lock_tree(text, path)
    blocks = None if root is None else _blocks(root, text)
    if root is None or blocks is None:
        return None
    lines = text.split("\n")
    start, end = blocks.get(part, (len(lines), len(lines)))
    while end > start + 1 and not lines[end - 1].startswith(" "):
        end -= 1  # blank lines and comments at the margin stand before what follows
    if part not in blocks:
        return _of_version_2(root, text.rstrip("\n") + "\n") + block
    rest = "\n".join(lines[end:])
    return _of_version_2(root, "\n".join([*lines[:start], ""])) + block + rest


def _of_version_2(root: MappingNode, text: str) -> str:
    """Return the first lines of a lock with the version that has more parts than images."""
    line = root.items["version"][0].span.line - 1
    lines = text.split("\n")
    lines[line] = lines[line].replace("1", str(VERSION), 1)
    return "\n".join(lines)


def _lock_tree(text: str, path: Path) -> MappingNode | None:
    report = Report()
    root = parse_yaml(text, str(path), report)
    is_lock = not len(report) and _lock_of(root, path)[0] is not None
    return root if is_lock and isinstance(root, MappingNode) else None


def _blocks(root: MappingNode, text: str) -> dict[str, tuple[int, int]] | None:
    """Return the lines of each of a lock's keys, the first and the one after the last, from 0.

    None where some share a line.
    """
    starts = sorted((key.span.line, key.span.column, name) for name, (key, _) in root.items.items())
    lines = text.split("\n")
    if any(column != 1 for _, column, _ in starts) or len(text.splitlines()) > len(lines):
        return None  # in braces, or with line breaks that only YAML knows
    ends = [line for line, _, _ in starts[1:]] + [len(lines) + 1]
    return {name: (line - 1, end - 1) for (line, _, name), end in zip(starts, ends, strict=True)}


def unreadable_lock(job_file: Path, problem: str, span: Span | None = None) -> Diagnostic:
    """Return what is said of a lock that is there and is of no use; `problem` goes on where its path ends."""
    return Diagnostic(
        "TL126",
        f"the lock {lock_path(job_file)} {problem}",
        f"run `trainlaunch lock {job_file}` to write it again, or delete it",
        why="a lock that can't be read would pin nothing",
        span=span,
    )


def _other_image(image: ScalarNode, lock: Lock, job_file: Path) -> Diagnostic:
    known = ", ".join(lock.images) or "no image"
    return Diagnostic(
        "TL125",
        f"image {image.text} is not in the lock {lock.path.name}, which has {known}",
        f"run `trainlaunch lock {job_file}`, or delete {lock.path}",
        why="the job file's image was changed and its lock was not, so nothing pins the image",
        span=image.span,
        field="image",
    )
