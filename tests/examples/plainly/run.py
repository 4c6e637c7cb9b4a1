"""Runs scripts one after the other as `python SCRIPT ARGS` does, with torch and scikit-learn imported once for all.

    python run.py '[["train.py", "--epochs", "1"], ["other.py"]]'

It prints, as one line of JSON, the exit code, stdout and stderr of each. Each runs in a process of its own; one that
hangs is ended, and its stderr tells where its threads stood.
"""

from __future__ import annotations

import faulthandler
import json
import os
import runpy
import sys
import tempfile
import traceback
from pathlib import Path

import sklearn.datasets
import torch
import torch._dynamo  # what an optimizer's first step imports

assert sklearn.datasets
assert torch._dynamo
SECONDS = 300  # for one script, on a machine that does much else


def run(argv: list[str]) -> int:
    """Run one script in this process and return its exit code."""
    sys.argv = argv
    sys.path[0] = str(Path(argv[0]).parent)
    try:
        runpy.run_path(argv[0], run_name="__main__")
    except SystemExit as ended:
        if ended.code is None or isinstance(ended.code, int):
            return ended.code or 0
        print(ended.code, file=sys.stderr)
        return 1
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def forked(argv: list[str]) -> tuple[int, str, str]:
    """Run one script in a process of its own; return its exit code and what it printed."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            faulthandler.dump_traceback_later(SECONDS, exit=True, file=2)
            code = run(argv)
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
        _, status = os.waitpid(child, 0)
        printed = []
        for file in (out, err):
            file.seek(0)
            printed.append(file.read().decode())
        return os.waitstatus_to_exitcode(status), printed[0], printed[1]


if __name__ == "__main__":
    print(json.dumps([forked(each) for each in json.loads(sys.argv[1])]))
