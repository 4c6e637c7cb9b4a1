"""Delivered as sitecustomize.py: runs the one that it hides, and installs trainlaunch's parts when torch comes.

A part that raises is off, said in one line; the job goes on. Older Pythons of an image read this file too.
"""

import os
import sys

MYPY = False  # typing takes longer to load than all that a start of Python does here
if MYPY:
    from typing import Any

MODULE = "torch.utils.data.dataloader"
HERE = os.path.dirname(os.path.abspath(__file__))


def install_parts() -> None:
    """Import the parts that TRAINLAUNCH_INSIDE names, and install each."""
    from importlib import import_module

    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True  # this folder's room is planned for its files
    for part in os.environ.get("TRAINLAUNCH_INSIDE", "").split():
        try:
            import_module("launcher.inside." + part).install()
        except Exception as problem:
            reason = f"{type(problem).__name__}: {' '.join(str(problem).split())}"
            print(f"trainlaunch: {part} is off in process {os.getpid()}: {reason}", file=sys.stderr)
    sys.dont_write_bytecode = writes


class TorchFinder:
    """Leaves the search for torch's module to the other finders, and installs the parts once it was executed."""

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        """Return the others' answer for torch's module, None for every other name."""
        if name != MODULE:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self else None
            if spec is not None:
                self._follow(spec.loader)
                return spec
        return None

    def _follow(self, loader: "Any") -> None:
        """Make `loader` install the parts after the module."""
        execute = loader.exec_module

        def exec_module(module: "Any") -> None:
            execute(module)
            if self in sys.meta_path:
                sys.meta_path.remove(self)
                install_parts()

        loader.exec_module = exec_module


def run_next() -> None:
    """Run the sitecustomize that Python would have found without this one, as that module."""
    path = sys.path[:]
    sys.path[:] = [each for each in path if os.path.abspath(each) != HERE]
    try:
        found = (finder.find_spec("sitecustomize", None) for finder in sys.meta_path if hasattr(finder, "find_spec"))
        spec = next((each for each in found if each is not None and each.loader is not None), None)
    finally:
        sys.path[:] = path
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec

        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    if MODULE in sys.modules:
        install_parts()
    else:
        sys.meta_path.insert(0, TorchFinder())
    run_next()
