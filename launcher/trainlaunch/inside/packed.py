"""Delivered as the package's __init__.py with probe and tune, whose modules come compressed in one text beside it.

Written out they would be longer than one argument of a process may be, which is what carries them.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import zlib
from importlib.util import spec_from_loader
from typing import Any

PACKED = "packed.txt"


class PackedModules:
    """Finds and runs modules from `sources`, their texts by path; `folder` is where they would stand."""

    def __init__(self, folder: str, sources: dict[str, str]) -> None:
        self.folder, self.sources = folder, sources

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the place of a module of ours, None for every other name."""
        stem = name.replace(".", "/")
        for file in (stem + "/__init__.py", stem + ".py"):
            if file in self.sources:
                package, origin = file.endswith("/__init__.py"), os.path.join(self.folder, file)
                spec = spec_from_loader(name, self, origin=origin, is_package=package)  # type: ignore[arg-type]
                if spec is not None:
                    spec.has_location = True  # gives the module a __file__
                return spec
        return None

    def create_module(self, spec: Any) -> None:
        """Leave it to Python."""

    def exec_module(self, module: Any) -> None:
        """Run the text of a module."""
        origin = module.__spec__.origin
        source = self.sources[os.path.relpath(origin, self.folder)]
        exec(compile(source, origin, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - it is ours


def unpacked(text: str) -> dict[str, str]:
    """Return the texts of modules by path, which come as JSON, zlib and base64."""
    found: dict[str, str] = json.loads(zlib.decompress(base64.b64decode(text)))
    return found


if __name__ == "trainlaunch_inside":
    _here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(_here, PACKED), encoding="ascii") as _file:
        sys.meta_path.insert(0, PackedModules(os.path.dirname(_here), unpacked(_file.read())))
