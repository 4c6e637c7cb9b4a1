"""Reads a Compose file back: YAML, then Compose's own interpolation, then what each key does to the container."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from launcher.units import parse_duration
from launcher.verify.plain import ReadMount
from launcher.verify.readback import ReadBack, absolute, flat, read_cpus, read_size, read_tmpfs, read_yaml

_DOLLAR = re.compile(r"\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|(\{[^}]*\}?))")
_REQUIRED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*):\?[^}]*\}")


def interpolated(text: str) -> str:
    """Return `text` as Compose passes it on; a variable, whose value no file can tell, reads as `<variable …>`."""
    return _DOLLAR.sub(lambda match: "$" if match[1] else f"<variable {match[2] or match[3]}>", text)


def reread_compose(text: str, folder: Path) -> ReadBack:
    """Return what the first service says; `rest` has what each other one says differently, and all that is beside them.

    Relative binds are read from `folder`.
    """
    document: dict[str, Any] = read_yaml(text)
    services = document.pop("services")
    # Services share what they take from an anchor, and files of secrets: reading one takes away what it knows.
    whole = copy.deepcopy(document)
    first, *others = (
        _service(name, copy.deepcopy(raw), folder, beside=copy.deepcopy(whole) if number else document)
        for number, (name, raw) in enumerate(services.items())
    )
    nodes = {str(number): _differing(first, other) for number, other in enumerate(others, start=1)}
    beside = dict(flat({"nodes": nodes, **_each_string(document)}))
    return first._replace(rest={**first.rest, **beside})


def _service(name: str, raw: dict[str, Any], folder: Path, *, beside: dict[str, Any]) -> ReadBack:
    environment = raw.pop("environment", {})
    references = {name: _REQUIRED.fullmatch(value) for name, value in environment.items()}
    service: dict[str, Any] = _each_string(raw)
    health = service.pop("healthcheck", {})
    test = health.pop("test", [])
    return ReadBack(
        name=name,
        image=service.pop("image", None),
        pull=service.pop("pull_policy", None),
        process=(*service.pop("entrypoint", ()), *service.pop("command", ())),
        env={name: interpolated(value) for name, value in environment.items() if not references[name]},
        secrets={name: match[1] for name, match in references.items() if match},
        labels=service.pop("labels", {}),
        shm_size=read_size(service.pop("shm_size", None)),
        memory=read_size(service.pop("mem_limit", None)),
        cpus=read_cpus(service.pop("cpus", None)),
        devices=_devices(service),
        mounts=(
            *map(read_tmpfs, service.pop("tmpfs", [])),
            *(_mount(each, folder) for each in service.pop("volumes", [])),
            *_secret_files(service, beside, folder),
        ),
        health=test[1] if test[:1] == ["CMD-SHELL"] and len(test) == 2 else None,
        health_times={key: value if isinstance(value, int) else parse_duration(value) for key, value in health.items()},
        user=service.pop("user", None),
        groups=tuple(service.pop("group_add", ())),
        working_dir=service.pop("working_dir", None),
        read_only=service.pop("read_only", False),
        stop_signal=service.pop("stop_signal", None),
        stop_timeout=parse_duration(service.pop("stop_grace_period", "0s")),
        ulimits={name: (each["soft"], each["hard"]) for name, each in service.pop("ulimits", {}).items()},
        rest=dict(flat({"service": service})),
    )


def _differing(first: ReadBack, other: ReadBack) -> dict[str, object]:
    """Return each field of `other` that is not as in `first`; of mappings the items."""
    found: dict[str, object] = {}
    for field, value in other._asdict().items():
        before = getattr(first, field)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            keys = [key for key in {**before, **value} if before.get(key) != value.get(key)]
            found |= {f"{field} {key}": value.get(key, "nothing") for key in keys}
        elif value != before:
            found[field] = "nothing" if value in (None, ()) else value  # an empty list would say nothing
    return found


def _each_string(value: Any) -> Any:
    """Return `value` with each string interpolated; keys are not, as Compose does."""
    if isinstance(value, dict):
        return {key: _each_string(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_each_string(item) for item in value]
    return interpolated(value) if isinstance(value, str) else value


def _devices(service: dict[str, Any]) -> dict[str, str]:
    """Return the GPUs that are reserved, and device nodes; anything else under `deploy` stays in the service."""
    nodes = service.pop("devices", [])
    return ({"nodes": " ".join(nodes)} if nodes else {}) | _reserved(service)


def _reserved(service: dict[str, Any]) -> dict[str, str]:
    devices = service.get("deploy", {}).get("resources", {}).get("reservations", {}).pop("devices", [])
    gpus = [each for each in devices if each.get("driver") == "nvidia" and each.get("capabilities") == ["gpu"]]
    if len(gpus) != 1 or len(devices) != 1:
        return {"gpus": repr(devices)} if devices else {}
    service.pop("deploy")
    if "device_ids" in gpus[0]:
        return {"gpus": ",".join(gpus[0]["device_ids"])}
    return {"gpus": str(gpus[0].get("count", "of no stated number"))}


def _secret_files(service: dict[str, Any], document: dict[str, Any], folder: Path) -> Iterator[ReadMount]:
    """Yield the files that Compose mounts as secrets; those that the service doesn't take stay in the document."""
    files = document.get("secrets", {})
    for secret in service.pop("secrets", []):
        source = files.pop(secret.pop("source"), {})
        path, target = source.pop("file", None), secret.pop("target", None)
        kind = f"bind with {secret} of {source}" if secret or source else "bind"
        yield ReadMount(kind, absolute(path and interpolated(path), folder), target, True)


def _mount(mount: dict[str, Any], folder: Path) -> ReadMount:
    kind, source = mount.get("type", ""), mount.get("source")
    options = {key: value for key, value in mount.items() if key not in {"type", "source", "target", "read_only"}}
    # Without create_host_path: false Compose makes an empty folder where the data set should be.
    if options != ({"bind": {"create_host_path": False}} if kind == "bind" else {}):
        return ReadMount(f"{kind} with {options}", source, *_where(mount))
    if kind == "bind":
        return ReadMount(kind, absolute(source, folder), *_where(mount))
    return ReadMount("scratch" if kind == "volume" and source is None else kind, source, *_where(mount))


def _where(mount: dict[str, Any]) -> tuple[str, bool]:
    return mount.get("target", ""), mount.get("read_only", False)
