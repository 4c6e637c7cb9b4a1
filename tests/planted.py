"""Secrets of every kind: a job that states them, the values that are planted, and what the job says it saw."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

# Markers, not real ones: each is looked for in everything that trainlaunch and the engine say.
VARIABLES = {
    "PLAIN": "pl4nted-variable $HOME 'x' \"y\" \\z",
    "HOST_RENAMED": "pl4nted-renamed",
    "WRITTEN": "pl4nted-written\nin two lines",
    "HOST_WRITTEN_TOO": "pl4nted-written-too",
}
FILES = {"read": b"pl4nted-file `x` $(y)\n\n", "bound": b"pl4nted-bound \xff\x00\n"}
MARK = "pl4nted-"
# What tells of a run afterwards in words of ours; `attach` and `logs` show the job's own output besides.
READERS = [[verb, *form] for verb in ("status", "doctor") for form in ((), ("-o", "json"))] + [["wait"]]
# Base64, so that what the job prints of them is not what is looked for.
TELL = """
import base64, json, os
names = ["PLAIN", "RENAMED", "WRITTEN", "WRITTEN_TOO", "READ", "BOUND"]
told = {}
for name in names:
    path = os.environ.get(name + "_FILE")
    if name in os.environ:
        told[name] = ["variable", base64.b64encode(os.environb[name.encode()]).decode()]
    if path is not None:
        with open(path, "rb") as file:
            told[name + " file"] = [path, base64.b64encode(file.read()).decode()]
        told[name + " mode"] = [oct(os.stat(path).st_mode & 0o777), os.stat(path).st_uid == os.getuid()]
print(json.dumps(told), flush=True)
"""


def secret_fields(folder: Path, *, kubernetes: bool = False) -> dict[str, Any]:
    """Write the files of secrets and return the fields of a job that states one of each kind."""
    for name, value in FILES.items():
        (folder / f"{name}, $1").write_bytes(value)
        (folder / f"{name}, $1").chmod(0o444)
    secrets: dict[str, dict[str, str]] = {
        "PLAIN": {"env": "PLAIN"},
        "RENAMED": {"env": "HOST_RENAMED"},
        "WRITTEN": {"env": "WRITTEN", "as": "file"},
        "WRITTEN_TOO": {"env": "HOST_WRITTEN_TOO", "as": "file"},
        "READ": {"file": "./read, $1"},
        "BOUND": {"file": str(folder / "bound, $1"), "as": "file"},
    }
    for name, secret in secrets.items() if kubernetes else ():
        secret["kubernetes"] = f"planted/{name.lower()}"
    return {"secrets": secrets, "command": ["python3", "-c", TELL]}


def expected_values() -> dict[str, bytes]:
    """Return what the job must see, by the names that TELL gives it."""
    return {
        "PLAIN": VARIABLES["PLAIN"].encode(),
        "RENAMED": VARIABLES["HOST_RENAMED"].encode(),
        "WRITTEN file": VARIABLES["WRITTEN"].encode(),
        "WRITTEN_TOO file": VARIABLES["HOST_WRITTEN_TOO"].encode(),
        "READ": FILES["read"].rstrip(b"\n"),
        "BOUND file": FILES["bound"],
    }


def told_values(output: str) -> tuple[dict[str, bytes], dict[str, str], dict[str, Any]]:
    """Return what a job saw: values, paths of files, and each file's mode with whether the job owns it."""
    import base64

    told = json.loads(output)
    values = {name: base64.b64decode(each[1]) for name, each in told.items() if not name.endswith(" mode")}
    paths = {name.removesuffix(" file"): each[0] for name, each in told.items() if name.endswith(" file")}
    modes = {name.removesuffix(" mode"): each for name, each in told.items() if name.endswith(" mode")}
    return values, paths, modes
