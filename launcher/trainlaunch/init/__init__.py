"""Drafts a commented job file from flags and from what a training script's text says; the script is never run."""

from __future__ import annotations

from trainlaunch.init.job_text import DraftOptions, draft, job_name
from trainlaunch.script.read_script import read_script
from trainlaunch.script.script_facts import Loader, Option, ScriptFacts, Value

__all__ = ["DraftOptions", "Loader", "Option", "ScriptFacts", "Value", "draft", "job_name", "read_script"]
