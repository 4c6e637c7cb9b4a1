"""The ConfigMaps that bring a job's code to a cluster: one for each folder, named by its content."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from trainlaunch.container.kubernetes import kubernetes_name
from trainlaunch.plan.launch_plan import LaunchPlan, cache_last_plan
from trainlaunch.plan.target_names import HASH_DIGITS

if TYPE_CHECKING:
    from trainlaunch.job.code_folder import CodeFile, CodeFolder

# What `kubectl apply` copies an object into has room for this many bytes; --server-side makes no such copy.
MAX_APPLIED_BYTES = 256 * 1024
_MAX_KEY_LENGTH = 253
_NOT_IN_KEY = r"[^-._a-zA-Z0-9]"
_EXECUTABLE = 0o755


class CodeItem(NamedTuple):
    """Where a key of the ConfigMap lies as a file; `mode` is None for the volume's own 0644."""

    key: str
    path: str
    mode: int | None


class CodeMap(NamedTuple):
    """An immutable ConfigMap: texts and, in base64, all other files, by key; `items` are in the order of the paths."""

    name: str
    texts: dict[str, str]
    binary: dict[str, str]
    items: tuple[CodeItem, ...]

    @property
    def needs_server_side(self) -> bool:
        """Whether it is too large for the copy that `kubectl apply` keeps of it."""
        import json  # few jobs have code to bring

        return len(json.dumps([self.texts, self.binary], ensure_ascii=False).encode()) > MAX_APPLIED_BYTES - 8192


@cache_last_plan
def code_maps(plan: LaunchPlan) -> dict[int, CodeMap]:
    """Return the ConfigMap of each mount of type code by the mount's index; two of the same content are one."""
    return {index: _code_map(plan, folder) for index, folder in plan.job.code.items()}


def _code_map(plan: LaunchPlan, folder: CodeFolder) -> CodeMap:
    import base64  # few jobs have code to bring

    texts: dict[str, str] = {}
    binary: dict[str, str] = {}
    items: list[CodeItem] = []
    for file in folder.files:
        key = _key(file.path, {*texts, *binary})
        text = _text(file)
        if text is None:
            binary[key] = base64.b64encode(file.data).decode()
        else:
            texts[key] = text
        items.append(CodeItem(key, file.path, _EXECUTABLE if file.executable else None))
    return CodeMap(f"{kubernetes_name(plan)}-code-{folder.digest[:HASH_DIGITS]}", texts, binary, tuple(items))


def _key(path: str, taken: set[str]) -> str:
    """Return a key that tells a reviewer the path, with a number behind it where another file has it already."""
    plain = re.sub(_NOT_IN_KEY, "_", path)[: _MAX_KEY_LENGTH - 8]
    key, number = plain, 1
    while key in taken or key in {".", ".."} or key.startswith(".."):
        number += 1
        key = f"{plain.lstrip('.')}-{number}"
    return key


def _text(file: CodeFile) -> str | None:
    """Return a file as text, None for one that is not: no UTF-8, or with a byte that no text has."""
    try:
        text = file.data.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
