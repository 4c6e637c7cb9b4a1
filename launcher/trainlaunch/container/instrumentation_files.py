"""The files that the wrapper unpacks for the parts of a plan, and the text that does it."""

from __future__ import annotations

import functools
from pathlib import Path, PurePosixPath

from trainlaunch.plan.instrumentation import DATA_WAIT, HEARTBEAT, PROBE, TUNE, WORKERS
from trainlaunch.plan.launch_plan import LaunchPlan

PACKAGE = "trainlaunch_inside"
PACKED = "packed.txt"  # as launcher/trainlaunch/inside/packed.py reads it
END_OF_FILE = "TRAINLAUNCH_FILE_ENDS"
_SOURCES = Path(__file__).resolve().parent.parent / "inside"
_SHARED = {  # by the parts that share it
    "marked.py": {PROBE, TUNE},
    "code_places.py": {PROBE, TUNE, DATA_WAIT},
    "batch_waits.py": {HEARTBEAT, DATA_WAIT},
    "spawned.py": {WORKERS},
}


def inside_files(plan: LaunchPlan) -> tuple[tuple[str, str], ...]:
    """Return (path, text) of each file, relative to the folder in front of PYTHONPATH; none without parts."""
    return _files(plan.inside.parts)


@functools.lru_cache(maxsize=16)
def _files(parts: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    if not parts:
        return ()
    reports = {PROBE, TUNE}.intersection(parts)
    shared = [name for name, users in _SHARED.items() if users.intersection(parts)]
    found = [_SOURCES / each for each in ("__init__.py", "process.py", *shared)]
    for part in parts:
        folder = _SOURCES / part
        found += sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]
    named = [(f"{PACKAGE}/{path.relative_to(_SOURCES).as_posix()}", path) for path in found]
    delivered = {name: _delivered(path) for name, path in named}
    if reports:  # nobody reviews what runs once; written out it would be too long for one argument
        package = _delivered(_SOURCES / "packed.py")
        del delivered[f"{PACKAGE}/__init__.py"]
        delivered = {f"{PACKAGE}/__init__.py": package, f"{PACKAGE}/{PACKED}": _packed(delivered)}
    return (("sitecustomize.py", _delivered(_SOURCES / "site.py")), *delivered.items())


def _delivered(path: Path) -> str:
    """Return a module's text under the name that its package has in the container."""
    return path.read_text(encoding="utf-8").replace("trainlaunch.inside", PACKAGE)


def _packed(modules: dict[str, str]) -> str:
    import base64  # only what measures is packed
    import json
    import zlib

    data = base64.b64encode(zlib.compress(json.dumps(modules).encode("ascii"), 9)).decode("ascii")
    return "".join(f"{data[at : at + 120]}\n" for at in range(0, len(data), 120))


def unpacking(plan: LaunchPlan) -> str:
    """Return the lines of shell that write the files into the current folder, which has none of them yet."""
    files = inside_files(plan)
    folders = {str(each) for name, _ in files for each in PurePosixPath(name).parents} - {"."}
    made = "".join(f"mkdir {each} && : >{each}/__pycache__ || exit 1\n" for each in sorted(folders))
    page = "printf '%4096s' '' >heartbeat || exit 1\n" if HEARTBEAT in plan.inside.parts else ""
    return made + page + "".join(_written(name, text) for name, text in files)


def _written(name: str, text: str) -> str:
    return f"cat >{name} <<'{END_OF_FILE}' || exit 1\n{text}{END_OF_FILE}\n"
