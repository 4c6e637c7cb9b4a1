"""The reader of Compose files."""

from trainlaunch.formats.compose.read import read_compose, read_documents

__all__ = ["read_compose", "read_documents"]
