"""Tokens of a command and of env: what the preflight puts in the place of `{num_workers}`, alone or after an `=`."""

from __future__ import annotations

import re

from trainlaunch.did_you_mean import closest

TOKENS = ("num_workers", "prefetch_factor", "batch_size", "nproc_per_node")
OF_LOADERS = TOKENS[:3]
_TOKEN = rf"(?:|.*=)(\{{*)\{{({'|'.join(TOKENS)})\}}(\}}*)"
_IN_BRACES = re.compile(r"(?:|.*=)\{([A-Za-z_-]+)\}", re.DOTALL)
_NEAR = 0.85  # `{workers}` may be somebody's own template, `{num_worker}` hardly


def _token_in(argument: str) -> re.Match[str] | None:
    """Return the token in braces that an argument is or ends in; few have any, and the pattern takes long to make."""
    return re.fullmatch(_TOKEN, argument, re.DOTALL) if "}" in argument else None


def token_of(argument: str) -> str | None:
    """Return the name of the token that an argument is, or has right after its last `=`; None for none.

    In doubled braces it is a literal, and has no name here.
    """
    match = _token_in(argument)
    return match[2] if match and not match[1] and not match[3] else None


def has_token(argument: str) -> bool:
    """Return whether the preflight changes an argument: a token, or one in more braces, which loses a pair of them."""
    match = _token_in(argument)
    return match is not None and len(match[1]) == len(match[3])


def literal_of(argument: str) -> str:
    """Return how a job file writes an argument so that it arrives as it is: a token of its own in a pair more."""
    match = _token_in(argument)
    if match is None or not has_token(argument):
        return argument
    return f"{argument[: match.start(1)]}{{{argument[match.start(1) :]}}}"


def near_token(argument: str) -> str | None:
    """Return the token that an argument nearly is, where it or what follows its last `=` is a word in braces."""
    match = _IN_BRACES.fullmatch(argument)
    if match is None or match[1] in TOKENS:
        return None
    return closest(match[1].lower().replace("-", "_"), TOKENS, cutoff=_NEAR) or None
