"""Drafts a commented job file from flags and from what a training script's text says; the script is never run."""

from __future__ import annotations

from trainlaunch.init.facts import Loader, Option, ScriptFacts, Value
from trainlaunch.init.script import read_script
from trainlaunch.init.text import Asked, draft

__all__ = ["Asked", "Loader", "Option", "ScriptFacts", "Value", "draft", "read_script"]
