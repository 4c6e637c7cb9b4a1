"""All texts that some symptom asks for, from the symptoms' own modules."""

from __future__ import annotations

from functools import cache

from trainlaunch.diagnose.base import bus_error
from trainlaunch.diagnose.base.texts import Text
from trainlaunch.diagnose.ranking import ORDER


@cache
def all_texts() -> tuple[Text, ...]:
    """Return each text once; a symptom may ask for another's."""
    modules = (bus_error, *ORDER)
    return tuple(dict.fromkeys(each for module in modules for each in vars(module).values() if isinstance(each, Text)))
