"""Times settings of the DataLoader that trains, in the script's own loop, and reports each as a record.

Records: `tune-loader` (which loader, and whether settings can be changed under its loop), `tune-start` and
`tune-setting` for each setting, `tune-end`. The process is ended after the last one.
"""

from __future__ import annotations

import json
import os


def install() -> None:
    """Watch the iterators of torch's DataLoader as TRAINLAUNCH_TUNE says; without it nothing is done."""
    text = os.environ.get("TRAINLAUNCH_TUNE")
    if not text:
        return
    from trainlaunch.inside.tune.task import task_of
    from trainlaunch.inside.tune.tuner import Tuner
    from trainlaunch.inside.tune.watched_loops import watch

    watch(Tuner(task_of(json.loads(text))))
