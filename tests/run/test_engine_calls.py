"""How often `up` asks the engine before the job starts: each question is time that a start takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.conftest import Runs

pytestmark = pytest.mark.docker
MOST = 9  # ping, info, the name, the image, runs whose time is over; create, attach, wait, start


def test_a_start_asks_no_more_where_other_runs_are_kept(
    make_job: Callable[..., Path], job_name: str, trainlaunch: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ended runs of the same job and of others are not looked at one by one, nor those whose time can't be over."""
    calls: list[str] = []
    send = requests.Session.send

    def counted(self: requests.Session, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        calls.append(str(request.url))
        return send(self, request, **options)

    job = str(make_job(command=["true"], ttl_after_finished="1h"))
    assert trainlaunch("up", job).returncode == 0
    monkeypatch.setattr(requests.Session, "send", counted)
    assert trainlaunch("up", job, "--name", f"{job_name}-two").returncode == 0
    started = next(at for at, url in enumerate(calls) if url.endswith("/start"))
    assert started + 1 <= MOST, calls
