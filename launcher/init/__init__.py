"""Drafts a commented job file from flags and from what a training script's text says; the script is never run."""

from __future__ import annotations

from launcher.init.facts import Loader, Option, ScriptFacts, Value
from launcher.init.script import read_script
from launcher.init.text import Asked, draft

__all__ = ["Asked", "Loader", "Option", "ScriptFacts", "Value", "draft", "read_script"]
