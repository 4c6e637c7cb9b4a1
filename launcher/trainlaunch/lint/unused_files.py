"""Files of a repository that nothing runs as they are: those of another one, and what its tests read."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePath

from trainlaunch.repository.root import repository_of

_WORKFLOWS = (".github", "workflows")
_ON_PURPOSE = frozenset(
    {"templates", "template", "testdata", "fixtures", "invalid", "broken", "tests", "test", "cookiecutter"}
)
KUSTOMIZATIONS = frozenset({"kustomization.yaml", "kustomization.yml", "Kustomization"})
_VENDORED = frozenset(
    {"vendor", "vendored", "third_party", "third-party", "thirdparty", "node_modules", "site-packages"}
)
_DATA = re.compile(r"test[-_]?data|golden(?:s|[-_]files)?")
_OF_TESTS = re.compile(r"fixtures?|snapshots?|expected|\w*regressions")


def is_on_purpose(name: str) -> bool:
    """Return whether a text lies where some are broken on purpose."""
    return not _ON_PURPOSE.isdisjoint(PurePath(name).parts)


def is_test_data(name: str) -> bool:
    """Return whether a text of a repository is what its tests compare with, and nobody runs."""
    own = _folders(name)
    tests = next((index for index, each in enumerate(own) if each in {"test", "tests"}), len(own))
    return any(map(_DATA.fullmatch, own)) or any(map(_OF_TESTS.fullmatch, own[tests:]))


def is_filled_by_mlflow(name: str) -> bool:
    """Return whether a manifest is a template of MLflow, which puts its own image and command in before it starts."""
    return PurePath(name).name == "kubernetes_job_template.yaml"


def is_vendored(name: str) -> bool:
    """Return whether a text came with the files of others, whose readers look for it elsewhere."""
    return not _VENDORED.isdisjoint(_folders(name))


def _folders(name: str) -> tuple[str, ...]:
    """Return the folders of a repository in which a file lies; none outside of one."""
    found, path = repository_of(Path(name)), Path(os.path.abspath(name))  # noqa: PTH100 - a link stays one
    if found is None or name == "-" or not path.is_relative_to(found.root):
        return ()
    return path.relative_to(found.root).parts[:-1]


def is_patched(name: str) -> bool:
    """Return whether a manifest lies beside a kustomization, whose overlays may set what it lacks."""
    folder = Path(os.path.abspath(name)).parent  # noqa: PTH100 - a link stays one
    return name != "-" and any((folder / each).exists() for each in KUSTOMIZATIONS)


def is_foreign_workflow(name: str) -> bool:
    """Return whether GitHub never runs a workflow: it came with the files of another repository, into this one's."""
    path = Path(os.path.abspath(name))  # noqa: PTH100 - a link stays one
    folder = next((each for each in path.parents if each.parts[-2:] == _WORKFLOWS), None)
    if folder is None or repository_of(path) is None:
        return False
    return not os.path.lexists(folder.parents[1] / ".git")
