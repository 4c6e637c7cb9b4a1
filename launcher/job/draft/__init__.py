"""Drafts a commented job file from flags and from what a training script's text says; the script is never run."""

from __future__ import annotations

from launcher.job.draft.facts import Loader, Option, ScriptFacts, Value
from launcher.job.draft.script import read_script
from launcher.job.draft.text import Asked, draft

__all__ = ["Asked", "Loader", "Option", "ScriptFacts", "Value", "draft", "read_script"]
