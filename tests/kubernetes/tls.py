"""A certificate for 127.0.0.1 that signs itself, made once for a test run."""

from __future__ import annotations

import atexit
import shutil
import ssl
import subprocess
import tempfile
from functools import cache
from pathlib import Path


@cache
def certificate() -> Path:
    """Return the file of the certificate, which is its own authority."""
    folder = Path(tempfile.mkdtemp(prefix="trainlaunch-tls-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    made = folder / "server.crt"
    says = (
        "subjectAltName=IP:127.0.0.1",
        "keyUsage=critical,digitalSignature,keyCertSign",
        "basicConstraints=critical,CA:TRUE",
    )
    argv = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    argv += ["-subj", "/CN=kubernetes", "-keyout", str(folder / "server.key"), "-out", str(made)]
    argv += [word for each in says for word in ("-addext", each)]
    subprocess.run(argv, check=True, capture_output=True, timeout=60)
    return made


@cache
def server_context() -> ssl.SSLContext:
    """Return the server's side."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate(), certificate().with_suffix(".key"))
    return context
