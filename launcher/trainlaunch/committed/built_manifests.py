"""Compares what Kustomize, or another tool, made of committed rendered files with them: its changes are unproved."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from trainlaunch.committed.comparison import Checked
from trainlaunch.diagnostics import Diagnostic, Severity, Span
from trainlaunch.errors import UsageError
from trainlaunch.formats.workload import flat
from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX
from trainlaunch.kinds import objects
from trainlaunch.repository.regular_files import read_regular
from trainlaunch.units import counted

CODE = "TL159"
MAX_LINES = 20  # of what differs in one object
MAX_SHOWN = 80  # characters of a value
_JOB_LABEL = KUBERNETES_LABEL_PREFIX + "job"
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Object(NamedTuple):
    """An object, and the rendered file that it stands in; None in what was built."""

    document: Mapping[str, Any]
    path: Path | None = None

    @property
    def kind(self) -> str:
        return str(self.document["kind"])

    @property
    def name(self) -> str:
        return str(self.document["metadata"]["name"])

    @property
    def job(self) -> str:
        """The job that its label names, empty without one."""
        return str((self.document["metadata"].get("labels") or {}).get(_JOB_LABEL, ""))


def changed_after_proof(built: str, renderings: Iterable[Checked]) -> Iterator[Diagnostic]:
    """Yield what `built` says otherwise than the rendered files, object by object; what is in none of them is ignored.

    Raises UsageError where it is no YAML, and where it holds no object of a rendered file.
    """
    known = [each for checked in renderings for each in _objects(read_regular(checked.path, 1 << 22).decode(), checked)]
    found = _objects(built)
    pairs = [(each, _origin(each, known)) for each in found]
    ours = [(each, origin) for each, origin in pairs if origin is not None or each.job]
    if not ours:
        message = f"stdin holds {counted(len(found), 'object')}, and none comes from a rendered file that was found"
        raise UsageError([Diagnostic("TL124", message, "name the folder of the rendered files: `check - k8s/`")])
    for each, origin in ours:
        if origin is None:
            yield _unknown(each)
        else:
            yield from _differences(each, origin)


def _objects(text: str, checked: Checked | None = None) -> list[_Object]:
    try:
        documents = list(yaml.load_all(text, Loader=_LOADER))
    except yaml.YAMLError as cause:
        where = str(checked.path) if checked else "stdin"
        problem = f"{where} is no YAML: {' '.join(str(cause).split())}"
        raise UsageError([Diagnostic("TL124", problem, "pipe the output of `kustomize build` here")]) from cause
    whole = (each for each in documents if isinstance(each, Mapping) and isinstance(each.get("metadata"), Mapping))
    named = (each for each in whole if each.get("kind") in objects() and each["metadata"].get("name"))
    return [_Object(each, checked.path if checked else None) for each in named]


def _origin(built: _Object, known: Sequence[_Object]) -> _Object | None:
    """Return the rendered object that `built` was made of: of its kind and job, the name in its own, or alone."""
    alike = [each for each in known if each.kind == built.kind and (not built.job or each.job == built.job)]
    named = [each for each in alike if re.search(rf"(?:^|-){re.escape(each.name)}(?:$|-)", built.name)]
    return named[0] if named else alike[0] if built.job and len(alike) == 1 else None


def _differences(built: _Object, origin: _Object) -> Iterator[Diagnostic]:
    """Yield one finding for what runs otherwise than it was proved, an error, and one for the rest, a warning."""
    old, new = dict(flat(origin.document)), dict(flat(built.document))
    changed = [path for path in {**old, **new} if old.get(path) != new.get(path)]
    proved = [path for path in changed if not _is_outside(path)]
    rest = [each for each in changed if each not in proved]
    for paths, severity in ((proved, Severity.ERROR), (rest, Severity.WARNING)):
        if not paths:
            continue
        lines = [f"{path}: {_shown(old.get(path))} → {_shown(new.get(path))}" for path in paths[:MAX_LINES]]
        lines += [f"and {len(paths) - MAX_LINES} more"] * (len(paths) > MAX_LINES)
        number = counted(len(paths), "value")
        yield Diagnostic(
            CODE,
            f"{built.kind} {built.name} differs in {number} from {origin.path}: {'; '.join(lines)}",
            "set it in the job file, target_overrides, a policy, --set or patches: verified, and in the name",
            why="an overlay changed it after the rendered file was read back, and the hash in its name does not know "
            "it",
            severity=severity,
            span=Span(str(origin.path), 1, 1, 1, 1),
        )


def _is_outside(path: str) -> bool:
    """Whether it is only about where the object is and how it is found: no pod differs for it."""
    return path.startswith(("metadata.namespace", "metadata.labels.", "metadata.annotations."))


def _shown(value: object) -> str:
    text = "nothing" if value is None else " ".join(str(value).split())
    return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}…"


def _unknown(built: _Object) -> Diagnostic:
    return Diagnostic(
        CODE,
        f"{built.kind} {built.name} is of job {built.job}, and no rendered file that was found holds it",
        "name the folder of that file too: `check - k8s/`",
        why="what is applied was never read back",
    )
