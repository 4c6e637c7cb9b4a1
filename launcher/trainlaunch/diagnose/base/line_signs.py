"""What a line is beside the texts that it has: work, words of one that goes on, a quotation of an error."""

from __future__ import annotations

import re

# What a run prints that does its work: a count beside a word of training, a bar, a rate.
WORKS = re.compile(
    r"(?i)\b(?:epoch|(?:global_)?steps?|iter(?:ation)?s?|batch(?:es)?|(?:train|val|eval)?_?loss|lr|acc(?:uracy)?|ppl|"
    r"samples?|tokens|throughput|reward)\b[\"':=#(\[ ]{1,4}\d|\d%\||\b(?:it/s|s/it)\b|\b(?:batch size|rank) \d+\s*$"
    r"|^ *Normal +(?:Started|Pulled|Scheduled|Created) "
    r"|^(?:saved|saving|loaded|downloaded|resum(?:ed|ing)|restored|validating|evaluating|training) "
)
# What a program says that goes on after an error.
GOES_ON = re.compile(
    r"(?i)\bretry(?:ing)? (?!: |count|limit)|\b(?:re)?trying (?!to )|\bfall(?:s|ing)? ?back\b|\bignor(?:ed?|ing)\b|"
    r"\b(?:will|and) continue\b|\bcontinuing\b|\bskipp(?:ed|ing)\b|\bfrom scratch\b|\brecovered\b|\bhandled\b|"
    r"\busing \S.{0,40} (?:instead|in ?stead)|\busing (?:the |a )?(?:slow|default|cpu)|\bdevice cpu\b|"
    r"\brestarting the \w+|\b(?:attempt|try) \d+ of \d+"
)
WARNED = re.compile(r"\b(?:User|Future|Runtime|Deprecation)Warning: ")
# Prose without a number; what stands below an error and belongs to it, or comes of it, names one or gives advice.
_PROSE = re.compile(r"[A-Za-z][\w'-]*,? [\w(/'\"]|[A-Z][a-z]+[.!]$")
_OF_AN_END = re.compile(
    r"(?i)error|exception|fail|abort|kill|terminat|exit|core dump|warn|traceback|wandb|s?run:|slurm|make\b|conda|cuda"
    r"|nccl|torch|process \w+-\d|for debugging|compile with|command|https?://|\b(?:see|please|try|set|consider|use|note"
    r"|hint|check|run)\b|finished at|cannot|could ?n[o']t|can't|unable|denied|missing|not (?:found|supported|available)"
)
_TEACHES = re.compile(
    r"(?i)^\W*(?:tip|hint|note|help|usage|faq|todo|example|known issue|troubleshooting|remember|reminder"
    r"|common (?:error|cause|problem)s?)\b.{0,3}[:-]|\b(?:if|when(?:ever)?|in case) (?:you|we|it|this|the \w+|there) "
    r"(?:ever )?(?:sees?|gets?|hits?|meets?|encounters?|runs? into|says?|shows?|prints?|is an?)\b"
    r"|\b(?:e\.g\.|for example|such as) "
)
_SOURCE = re.compile(
    r"\s*(?:[+-]\s+|>{1,3}\s*)?(?:raise |except |(?:el)?if |assert |print\(|echo |log(?:ger|ging)?\.\w+\(|return |//"
    r"|#(?!\d)|warnings\.warn\()|\++ \S|\s{1,8}-{1,2}\w"  # a number behind # is a step of BuildKit's
)
_TELLS = re.compile(
    r"(?i)\b(?:msg|message|err|error|reason|text|details?|exception|stderr|output|log|desc|info)['\"]?[:= ]+$"
)
_AT_EASE = re.compile(
    r"""["']?\b(?:level|levelname|severity|lvl)["']?[:=] ?["']?(?:info|debug|trace)\b|\[I\d{4} """, re.I
)
_ENCLOSED = re.compile(r"(?:^|[\s,\[])['\"]$")


def is_quoted(line: str, at: int) -> bool:
    """Whether what stands at a place of a line is quoted: by source code, a help, advice, a sample or a calm log."""
    before = line[:at]
    if _SOURCE.match(line) or _TEACHES.search(before) or _AT_EASE.search(line):
        return True
    if is_enclosed(line, at):
        return True
    opened = max(before.rfind(mark) if before.count(mark) % 2 else -1 for mark in '"`')
    return opened >= 0 and line.find(line[opened], at) > 0 and _TELLS.search(before[:opened]) is None


def is_enclosed(line: str, at: int) -> bool:
    """Whether what stands at a place of a line begins right behind a quotation mark that is closed."""
    enclosed = _ENCLOSED.search(line[:at]) is not None and line.find(line[at - 1], at) > 0
    return enclosed and _TELLS.search(line[: at - 1]) is None


def is_prose(line: str) -> bool:
    """Whether a line says something that neither belongs to an error nor comes of one."""
    return _PROSE.match(line) is not None and _OF_AN_END.search(line) is None
