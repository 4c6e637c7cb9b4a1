"""What the reader says of a Compose file is what Compose's own `config` makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.formats.compose import read_compose
from trainlaunch.formats.workload import ABSENT, SIZE, Known, Unknown, Value, Workload, stated

from tests.render.readers import compose

FILES = sorted((Path(__file__).parent / "compose_files").iterdir())
VARIABLES = {"A": "of the shell", "MEMORY": "1g"}  # one file can't do without


def config(text: str, folder: Path) -> dict[str, Any]:
    """Return the services of a file as Compose writes them out, its doubled dollars single again."""
    done = compose("--profile", "*", "config", "--format", "json", text=text, cwd=folder, env=VARIABLES)
    assert done.returncode == 0, done.stderr
    services: dict[str, Any] = _single(json.loads(done.stdout)["services"])
    return services


def _single(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _single(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_single(each) for each in value]
    return value.replace("$$", "$") if isinstance(value, str) else value


@pytest.mark.parametrize("file", FILES, ids=lambda each: each.stem)
def test_compose_reads_the_same(file: Path, tmp_path: Path) -> None:
    """Each value that the reader knows is Compose's, and what Compose has none of is not stated."""
    text = file.read_text()
    services = config(text, tmp_path)
    read = {str(stated(each.name)): each for each in read_compose(text, file.name)}
    assert set(read) == set(services)
    for name, service in services.items():
        workload = read[name]
        assert_same(workload.image, service.get("image"))
        assert_same(workload.command, service.get("command"))
        assert_same(workload.entrypoint, service.get("entrypoint"))
        limits = service.get("deploy", {}).get("resources", {}).get("limits", {})
        assert_same(workload.memory, _bytes(service.get("mem_limit", limits.get("memory"))))
        assert_same(workload.cpus, _thousandths(service.get("cpus", limits.get("cpus"))))
        assert_shm(workload, service)
        assert_strings(workload, service)
        assert_mounts(workload, service, tmp_path)
        assert_gpus(workload, service)
        for key in ("user", "working_dir", "read_only", "stop_signal", "pull_policy"):
            assert_same(getattr(workload, key), service.get(key))


def assert_same(value: Value[Any], found: Any) -> None:
    """Assert that a value is what Compose has; what a variable of the shell decides is not compared."""
    if isinstance(value, Unknown):
        assert "$" in value.text
        return
    have = None if value is None else list(value.value) if isinstance(value.value, tuple) else value.value
    assert (have or None) == (found or None)


def _bytes(text: str | None) -> int | None:
    return None if text is None else int(text)


def _thousandths(number: float | None) -> int | None:
    return None if number is None else round(number * 1000)


def assert_shm(workload: Workload, service: dict[str, Any]) -> None:
    """shm_size as Compose has it: in effect, or declared where something else decides."""
    size = workload.shm.size if workload.shm.kind == SIZE else None
    declared = workload.shm.declared if workload.shm.kind not in (SIZE, ABSENT) else None
    assert_same(size or declared, _bytes(service.get("shm_size")))


def assert_strings(workload: Workload, service: dict[str, Any]) -> None:
    """Variables, labels and groups."""
    found = dict(service.get("environment", {}))
    for name in workload.secrets:
        assert found.pop(name) == VARIABLES[name]
    assert set(workload.env) == set(found)
    for name, value in workload.env.items():
        if found[name] is None:
            assert isinstance(value, Unknown)
        else:
            assert_same(value, found[name])
    assert {name: stated(each) for name, each in workload.labels.items()} == service.get("labels", {})
    assert list(workload.groups) == service.get("group_add", [])


def assert_mounts(workload: Workload, service: dict[str, Any], folder: Path) -> None:
    """Targets, kinds and sources in their order."""
    types = {"scratch": "volume"}
    ours = [each for each in workload.mounts if each.type in ("bind", "volume", "scratch", "tmpfs", "unknown")]
    short = service.get("tmpfs", [])
    for mount, text in zip(ours, short, strict=False):
        assert_same(mount.target, text.partition(":")[0])
    for mount, found in zip(ours[len(short) :], service.get("volumes", []), strict=True):
        assert (stated(mount.target) or "").rstrip("/") == found["target"]
        assert mount.type == "unknown" or types.get(mount.type, mount.type) == found["type"]
        assert mount.read_only == found.get("read_only", False)
        if isinstance(mount.source, Known) and mount.type == "bind":
            path = Path(mount.source.value).expanduser()
            assert (folder / path).resolve() == Path(found["source"])
        elif mount.type != "unknown":
            assert_same(mount.source, found.get("source"))
        if "tmpfs" in found:
            assert_same(mount.size, _bytes(found["tmpfs"].get("size")))


def assert_gpus(workload: Workload, service: dict[str, Any]) -> None:
    """The devices that are reserved."""
    reserved = service.get("deploy", {}).get("resources", {}).get("reservations", {}).get("devices", [])
    for entry in (reserved or service.get("gpus", []))[:1]:
        gpus = stated(workload.gpus)
        assert gpus is not None
        assert (-1 if gpus.all else gpus.number) == entry.get("count", 0)
        assert list(gpus.ids) == entry.get("device_ids", [])
