"""Judges an object by admission policies as an API server does: variables in their order, then each validation."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from trainlaunch.policy import api_server


def refusals(
    documents: Iterable[dict[str, Any]], submitted: dict[str, Any], part: str = "", user: str = "alice", **how: Any
) -> list[str]:
    """Return what the policies say of an object that `user` makes, or changes where `old` is given, in its namespace.

    `part` is the subresource by which it is changed.
    """
    request = api_server.Request(submitted, user, part, **how)
    return [said for _, said in api_server.refusals(documents, request)]
