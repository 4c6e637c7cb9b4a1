"""The reader of Compose files."""

from launcher.formats.compose.read import read_compose

__all__ = ["read_compose"]
