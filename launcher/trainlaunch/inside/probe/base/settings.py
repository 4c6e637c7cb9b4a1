"""What a run of probe was asked to do: JSON in TRAINLAUNCH_PROBE."""

from __future__ import annotations

import json
import os
from typing import NamedTuple

VARIABLE = "TRAINLAUNCH_PROBE"


class Settings(NamedTuple):
    """The script ends after `batches` of the loader that trains, or `seconds` after its first batch was asked for.

    `through`: the script goes on to its own end, and each of its loops is cut to `batches`. `deadline`: seconds after
    torch was imported at which it ends anyhow, 0 for none: whoever started it may be gone.
    """

    batches: int = 32  # twice what Hugging Face's Trainer holds with 8 steps of accumulation
    seconds: float = 60.0
    through: bool = False
    deadline: float = 0.0


def read() -> Settings:
    """Return the settings of this process; what isn't stated has its default."""
    stated = json.loads(os.environ.get(VARIABLE) or "{}")
    return Settings(**{name: stated[name] for name in Settings._fields if name in stated})
