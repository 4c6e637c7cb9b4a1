"""Delivered as sitecustomize.py: runs the one that it hides, and installs trainlaunch's parts when torch comes.

Older Pythons of an image read this file too.
"""

import os
import sys

MYPY = False  # typing loads slowly
if MYPY:
    from typing import Any

MODULE = "torch.utils.data.dataloader"
HERE = os.path.dirname(os.path.abspath(__file__))


def install_parts() -> None:
    """Install the parts, once: a job in a job has two deliveries."""
    if "trainlaunch.inside" in sys.modules:
        return
    sys.path.insert(0, HERE)  # the script may have emptied it
    try:
        from trainlaunch.inside.process import install

        install()
    except Exception as problem:
        print(f"trainlaunch: its Python is off in process {os.getpid()}: {problem}", file=sys.stderr)
    sys.path.remove(HERE)


class TorchFinder:
    """Installs the parts once torch's module, which the other finders find, was executed."""

    asks = False  # them, of which one may ask all

    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        """Return their answer for torch's module, None for others."""
        if name != MODULE or self.asks:
            return None
        self.asks = True
        spec = found(sys.meta_path, name, path)
        self.asks = False
        if spec and hasattr(spec.loader, "exec_module") and hasattr(spec.loader, "__dict__"):
            self._follow(spec.loader)
        return spec

    def _follow(self, loader: "Any") -> None:
        """Make a loader, which may load others too, install the parts after it."""
        execute = loader.exec_module

        def exec_module(module: "Any") -> None:
            execute(module)
            if module.__name__ == MODULE and self in sys.meta_path:
                sys.meta_path.remove(self)
                install_parts()

        loader.exec_module = exec_module


def found(finders: "Any", name: str, path: "Any") -> "Any":
    """Return the first answer; an old finder can't be asked."""
    specs = (each.find_spec(name, path) for each in finders if hasattr(each, "find_spec"))
    return next((each for each in specs if each and each.loader), None)


def run_next() -> None:
    """Run the sitecustomize behind this one on the path, as that module; it may do likewise, and must not find us."""
    at = sys.path.index(HERE)
    spec = found(sys.meta_path, "sitecustomize", sys.path[at + 1 :])
    if spec:
        from _frozen_importlib import module_from_spec  # importlib.util is slow

        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        sys.path.remove(HERE)
        try:
            spec.loader.exec_module(module)
        finally:
            sys.path.insert(at, HERE)


if __name__ == "sitecustomize":
    if MODULE in sys.modules:
        install_parts()
    else:
        sys.meta_path.insert(0, TorchFinder())
    run_next()
