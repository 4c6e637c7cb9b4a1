"""Pods whose container is a process of this host: the job's own command, without the preflight in front of it."""

from __future__ import annotations

import base64
import contextlib
import os
import signal
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO, Any

from trainlaunch.formats.kubernetes.environment import expanded

from tests.kubernetes.kinds import CONFIG_MAPS, PODS
from tests.kubernetes.pods import Pod
from tests.kubernetes.store import SPEED

# A part of a second, as a loop waits between two looks, is the world's: shorter ones would only cost CPU.
SLEEP = f"""#!/bin/sh
case $1 in *.*) exec /bin/sleep "$1" ;; esac
milliseconds=$(($1 * 1000 / {SPEED:.0f}))
exec /bin/sleep "$((milliseconds / 1000)).$(printf %03d $((milliseconds % 1000)))"
"""
PASSED = "trainlaunch: preflight passed: /dev/shm 64 MiB (needs 0), memory 256 MiB, 1 CPUs, num_workers 0\n"


def runs_its_command(pod: Pod) -> None:
    """Script: start the pod, run its args, print what they print, and end with their exit code.

    SIGTERM arrives as it does from a kubelet: at the deletion of the pod, with SIGKILL after the grace period.
    """
    pod.start()
    container = pod.containers[0]
    if "args" in container:
        pod.say(PASSED)
    env: dict[str, str] = {}
    for each in container.get("env") or []:
        if "value" in each:
            env[each["name"]] = expanded(each["value"], env)
    # A rendering's command is the preflight in front; what has no args is all its own.
    argv = [expanded(each, env) for each in container.get("args") or container["command"]]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, **env, "HOSTNAME": pod.name, "HOME": folder}
        env["PATH"] = f"{_commands(Path(folder))}:{env['PATH']}"
        _mount(pod, container, Path(folder))
        inside = Path(f"{folder}/{container.get('workingDir', '')}")
        try:
            process = subprocess.Popen(
                argv,
                env=env,
                cwd=inside if inside.is_dir() else folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except FileNotFoundError:
            pod.say(f"sh: exec: {argv[0]}: not found\n")
            pod.exit(127)
            return
        with process:
            code = _attended(pod, process)
    pod.exit(code)


def _commands(home: Path) -> Path:
    """Return a folder for the beginning of PATH, whose `sleep` counts in the cluster's seconds."""
    folder = home / ".commands"
    folder.mkdir()
    sleep = folder / "sleep"
    sleep.write_text(SLEEP)
    sleep.chmod(0o755)
    return folder


def _mount(pod: Pod, container: dict[str, Any], root: Path) -> None:
    """Write the files of mounted ConfigMaps below a folder, as a kubelet does below the container's root."""
    volumes = {each["name"]: each["configMap"] for each in pod.made["spec"].get("volumes", ()) if "configMap" in each}
    for mount in container.get("volumeMounts") or ():
        source = volumes.get(mount["name"])
        found = pod.store.find(CONFIG_MAPS, pod.namespace, source["name"]) if source else None
        if source is None or found is None:
            continue
        held = {key: text.encode() for key, text in (found.get("data") or {}).items()}
        held |= {key: base64.b64decode(text) for key, text in (found.get("binaryData") or {}).items()}
        for item in source.get("items") or [{"key": key, "path": key} for key in held]:
            path = Path(f"{root}{mount['mountPath']}/{item['path']}")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(held[item["key"]])
            path.chmod(item.get("mode", 0o644))


def _attended(pod: Pod, process: subprocess.Popen[bytes]) -> int:
    """Pass output on and signals in; return the exit code as a container has it."""
    assert process.stdout is not None
    reader = threading.Thread(target=_copy, args=(pod, process.stdout), daemon=True)
    reader.start()
    while process.poll() is None and not pod.stopping.wait(0.02):
        pass
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(pod.store.clock.real(_grace(pod)))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    with contextlib.suppress(ProcessLookupError):  # what it left goes with its container
        os.killpg(process.pid, signal.SIGKILL)
    reader.join(10)
    return 128 - code if code < 0 else code


def _grace(pod: Pod) -> float:
    found = pod.store.find(PODS, pod.namespace, pod.name)
    if found and "deletionTimestamp" not in found["metadata"]:  # stopped by its kubelet alone
        return float(found["spec"]["terminationGracePeriodSeconds"])
    return float(found["metadata"].get("deletionGracePeriodSeconds", 0)) if found else 0.0


def _copy(pod: Pod, stream: IO[bytes]) -> None:
    waiting = b""
    while data := os.read(stream.fileno(), 1 << 16):
        whole, newline, rest = (waiting + data).rpartition(b"\n")
        if newline:
            pod.log.write(whole + newline, pod.store.clock.nanoseconds())
        waiting = rest
    if waiting:
        pod.log.write(waiting, pod.store.clock.nanoseconds())
