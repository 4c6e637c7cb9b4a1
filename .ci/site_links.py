"""Names what lies outside docs/ by its path: the site has docs/ alone, and the repository has no fixed address."""

from __future__ import annotations

import re
from typing import Any

_OUTSIDE = re.compile(r"\[([^\]]+)\]\((?:\.\./)+([^)#]*)(#[^)]*)?\)")


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Return the page with each link that leaves docs/ as its text and the path in the repository."""
    depth = page.file.src_uri.count("/") + 1
    return _OUTSIDE.sub(lambda link: link[0] if link[0].count("../") < depth else _path(link[1], link[2]), markdown)


def _path(text: str, path: str) -> str:
    return f"`{path}`" if text.strip("`").rstrip("/") == path.rstrip("/") else f"{text} (`{path}`)"
