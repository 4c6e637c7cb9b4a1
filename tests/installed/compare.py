"""Compares what an installed trainlaunch renders with what this checkout renders, byte for byte.

    python tests/installed/compare.py VENV/bin/python

All job files of examples/ and tests/render/jobs/, each as docker run, as Compose and as every kind of Kubernetes, exit
code and messages included. Exit 1 where one differs, or where the installed package imports Jinja2.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
Rendered = dict[str, list[object]]


def renderings(step: int) -> Rendered:
    """Return exit code, text and messages of each STEPth `render`, by its arguments, of the launcher on `sys.path`."""
    from trainlaunch.cli.main import main

    found: Rendered = {}
    for arguments in islice(cases(), 0, None, step):
        out, messages = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(messages):
            code = main(["render", *arguments])
        found[" ".join(arguments)] = [code, out.getvalue(), messages.getvalue()]
    return found


def cases() -> Iterator[list[str]]:
    """Yield the arguments of each `render`."""
    from trainlaunch.kinds import KINDS
    from trainlaunch.targets import KUBERNETES, TEXTS, text_targets

    for job in sorted([*ROOT.glob("examples/*/*.yaml"), *ROOT.glob("tests/render/jobs/*.yaml")]):
        for target in (*text_targets(), *TEXTS):
            of_kind = [["--kind", kind] for kind in KINDS] if target == KUBERNETES.name else [[]]
            yield from ([str(job), "--target", target, *kind] for kind in of_kind)


def start(step: int, *python: str, empty: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    """Start this file in another Python; it prints its renderings as JSON."""
    argv = [*python, __file__, str(step)]
    return subprocess.Popen(argv, cwd=empty, env=environment, stdout=subprocess.PIPE, text=True)


def differences(python: str, step: int = 1) -> list[str]:
    """Return a line for each STEPth rendering by `python`'s installed package that differs from this checkout's."""
    with tempfile.TemporaryDirectory() as empty:
        ours = start(
            step, sys.executable, empty=empty, environment={**os.environ, "PYTHONPATH": str(ROOT / "launcher")}
        )
        theirs = start(step, python, "-I", empty=empty, environment=dict(os.environ))
        made = [json.loads(each.communicate()[0] or "null") for each in (ours, theirs)]
    if ours.returncode or theirs.returncode:
        return ["one of the two ended early"]
    (checkout, _, at), (installed, jinja2, elsewhere) = made
    texts = sum(not code for code, *_ in checkout.values())
    print(f"{len(checkout)} renderings compared: {texts} texts, the others errors", file=sys.stderr)
    found = [f"differs: render {each}" for each in checkout if checkout[each] != installed.get(each)]
    found += ["nothing was rendered"] if not texts else []
    found += ["the installed package imports Jinja2"] if jinja2 else []
    found += [f"the checkout was compared with itself: {at}"] if at == elsewhere else []
    return found


if __name__ == "__main__":
    if not sys.argv[1].isdecimal():
        lines = differences(sys.argv[1])
        raise SystemExit("\n".join(lines) if lines else 0)
    texts = renderings(int(sys.argv[1]))
    import trainlaunch

    print(json.dumps([texts, "jinja2" in sys.modules, trainlaunch.__file__]))
