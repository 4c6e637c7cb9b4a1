"""The field reports of tests/cases whose cause `up` knows come out right, and no other is blamed on /dev/shm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from launcher.diagnose import explain_end
from launcher.diagnose.evidence import Evidence
from launcher.units import parse_size

CASES = Path(__file__).resolve().parents[1] / "cases" / "cases.jsonl"
SHM = {"feeder-thread-lost-batch", "shm-full-semaphore", "shm-full", "shm-bus-error"}
EXPECTED: dict[str, set[str]] = {
    "log-sigbus-classic-64m": {"shm-bus-error"},
    "log-sigbus-ipc-host-leaked-host-shm": {"shm-bus-error"},
    "log-fallocate-enospc-then-hang": {"feeder-thread-lost-batch"},
    "log-fallocate-success-0": {"shm-full"},
    "log-feeder-unable-to-write-old": {"shm-full"},
    "log-semlock-enospc-tiny-shm": {"shm-full-semaphore"},
    "log-exit-137-oomkilled-shm-equals-limit": {"oom-killed"},
    "log-worker-killed-oom": {"worker-killed"},
    "log-segfault-worker-lmdb": {"segmentation-fault"},
    "log-ancdata": {"open-files-exhausted"},
    "log-too-many-open-files-shm-object": {"open-files-exhausted"},
    "log-af-unix-path-too-long": {"temp-dir-unusable"},
    "log-shm-manager-no-tmp": {"temp-dir-unusable"},
    "log-exit-125-podman-ipc-shm": {"engine-refused"},
    "log-k8s-evicted-request-0": {"killed-from-outside"},
    # Other causes, which a full doctor explains: `up` must not guess.
    "log-exception-lost-in-reraise": set(),
    "log-file-system-race-pin-memory": set(),
    "log-mosaic-stale-shm": set(),
    "log-pthread-eagain-nproc": set(),
    "log-ray-false-positive-46gb": set(),
    "log-removeipc-semlock": set(),
    "log-torch-cuda-fork": set(),
    "log-worker-exited-unexpectedly-code": set(),
}


def cases() -> dict[str, dict[str, Any]]:
    """Return the field reports by id."""
    return {case["id"]: case for case in map(json.loads, CASES.read_text().splitlines())}


def evidence_for(case: dict[str, Any]) -> Evidence:
    """Return what `up` would know about a case."""
    inspect = case.get("inspect", {})
    host = inspect.get("HostConfig", {})
    ipc = host.get("IpcMode", "")
    return Evidence(
        exit_code=case["exit_code"],
        log=case["input"],
        oom_killed=inspect.get("State", {}).get("OOMKilled", "OOMKilled" in case["input"]),
        ipc_mode=ipc,
        private_shm=ipc in {"", "private", "shareable"},
        shm_size=host.get("ShmSize") or parse_size(inspect.get("sizeLimit", "0Mi")),
        memory=host.get("Memory") or parse_size(inspect.get("memory_limit", "0Mi")),
    )


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_a_field_report_gets_its_own_cause_and_no_other(name: str) -> None:
    """Each known case gets exactly the causes of the table, and the others get none."""
    assert {each.name for each in explain_end(evidence_for(cases()[name]))} == EXPECTED[name]


def test_every_log_case_has_an_expectation() -> None:
    """A new field report can't stay untested."""
    logs = {name for name, case in cases().items() if case["kind"] == "log"}
    assert logs <= EXPECTED.keys()


def test_inspect_shm_size_is_not_believed_with_ipc_host() -> None:
    """With ipc host the engine still reports 64 MiB, which no process sees: neither text names it."""
    evidence = Evidence(exit_code=135, ipc_mode="host", private_shm=False, shm_size=64 << 20)
    (diagnosis,) = explain_end(evidence)
    assert "64 MiB" not in diagnosis.sentence + diagnosis.fix
    assert "host's /dev/shm" in diagnosis.sentence
    assert "ls -l /dev/shm" in diagnosis.fix
