"""Pods whose container is a process of this host: the job's own command, without the preflight in front of it."""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
from typing import IO

from launcher.formats.kubernetes.expansion import expanded
from tests.kubernetes.kinds import PODS
from tests.kubernetes.pods import Pod

PASSED = "trainlaunch: preflight passed: /dev/shm 64 MiB (needs 0), memory 256 MiB, 1 CPUs, num_workers 0\n"


def runs_its_command(pod: Pod) -> None:
    """Script: start the pod, run its args, print what they print, and end with their exit code.

    SIGTERM arrives as it does from a kubelet: at the deletion of the pod, with SIGKILL after the grace period.
    """
    pod.start()
    pod.say(PASSED)
    container = pod.containers[0]
    env: dict[str, str] = {}
    for each in container.get("env") or []:
        if "value" in each:
            env[each["name"]] = expanded(each["value"], env)
    argv = [expanded(each, env) for each in container["args"]]
    with tempfile.TemporaryDirectory() as folder:
        env = {**os.environ, **env, "HOSTNAME": pod.name, "HOME": folder}
        try:
            process = subprocess.Popen(
                argv,
                env=env,
                cwd=folder,
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
            process.wait(_grace(pod))
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
    code = process.wait()
    reader.join(10)
    return 128 - code if code < 0 else code


def _grace(pod: Pod) -> float:
    found = pod.store.find(PODS, pod.namespace, pod.name)
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
