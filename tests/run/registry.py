"""A registry of one image, on this host: enough of the distribution protocol for the engine to pull from it."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"


@dataclass(frozen=True)
class Image:
    """The documents of an image of one layer by path, and its reference at this registry."""

    blobs: dict[str, bytes]
    manifest: bytes


def image_of(files: dict[str, bytes], config: dict[str, Any]) -> Image:
    """Make an image with executable `files` under / and a runtime config."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for path, content in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(content), 0o755
            tar.addfile(entry, io.BytesIO(content))
    layer = gzip.compress(buffer.getvalue(), compresslevel=1)
    rootfs = {"type": "layers", "diff_ids": [digest_of(buffer.getvalue())]}
    document = json.dumps({"architecture": "amd64", "os": "linux", "config": config, "rootfs": rootfs}).encode()
    manifest = {
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": _described(document, "application/vnd.docker.container.image.v1+json"),
        "layers": [_described(layer, "application/vnd.docker.image.rootfs.diff.tar.gzip")],
    }
    return Image({digest_of(each): each for each in (document, layer)}, json.dumps(manifest).encode())


def digest_of(data: bytes) -> str:
    """Return a blob's digest."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def _described(data: bytes, media_type: str) -> dict[str, Any]:
    return {"mediaType": media_type, "size": len(data), "digest": digest_of(data)}


@contextlib.contextmanager
def registry_of(image: Image) -> Iterator[str]:
    """Serve it as every repository and tag; give the host and port, which the engine accepts without TLS."""

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._answer(body=True)

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def _answer(self, *, body: bool) -> None:
            kind, data = "application/octet-stream", image.blobs.get(self.path.rpartition("/")[2])
            if "/manifests/" in self.path and not self.path.endswith("/absent"):
                kind, data = MANIFEST, image.manifest
            elif self.path == "/v2/":
                data = b"{}"
            self.send_response(404 if data is None else 200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data or b"")))
            if data is not None:
                self.send_header("Docker-Content-Digest", digest_of(data))
            self.end_headers()
            if body and data:
                self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:
            """Print nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
