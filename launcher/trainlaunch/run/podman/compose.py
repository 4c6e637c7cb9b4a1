"""Target compose on Podman: Compose creates through Podman's service, and each container is treated as Podman's.

Podman resolves container names by a helper of its network backend, and without it starts containers all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.backend import Say
from trainlaunch.run.compose.backend import ComposeBackend
from trainlaunch.run.docker.checks import shares_this_host
from trainlaunch.run.podman.backend import PodmanBackend, in_podmans_words


class Helper(NamedTuple):
    """Resolves names for a network backend; `beside` is the backend's own program, in one of the same folders."""

    name: str
    beside: str
    folders: tuple[str, ...]
    package: str


HELPERS = {
    "netavark": Helper(
        "aardvark-dns",
        "netavark",
        ("/usr/local/libexec/podman", "/usr/local/lib/podman", "/usr/libexec/podman", "/usr/lib/podman"),
        "aardvark-dns",
    ),
    "cni": Helper(
        "dnsname",
        "bridge",
        ("/usr/local/libexec/cni", "/usr/libexec/cni", "/usr/local/lib/cni", "/usr/lib/cni", "/opt/cni/bin"),
        "golang-github-containernetworking-plugin-dnsname",
    ),
}


class PodmanCompose(ComposeBackend, PodmanBackend):
    """Creates as target compose does; attaches, reads and stops as on Podman."""

    place = "Compose on this Podman"

    def prepare(self, plan: LaunchPlan, say: Say) -> None:
        """Refuse nodes that could not find each other; then as on Docker."""
        if plan.nodes > 1 and (lacking := self._lacking()) is not None:
            raise TargetUnavailable([_no_names(plan, lacking)])
        super().prepare(plan, say)

    def create(self, plan: LaunchPlan, run: str, attempt: int) -> str:
        """Create as on Docker."""
        with in_podmans_words():
            return super().create(plan, run, attempt)

    def _is_used(self, network: Mapping[str, Any]) -> bool:
        """Whether somebody's container runs on it; Podman removes it from under that one when asked by the id."""
        members = filter(None, map(self._inspect, network.get("Containers") or ()))
        return any(each["State"]["Running"] for each in members)

    def _lacking(self) -> Helper | None:
        """Return the helper that this Podman needs and has not; None where it has one, or where that can't be seen."""
        with self.engine.attempting("read Podman's info") as client:
            host = client.get(f"{client.base_url}/v4.0.0/libpod/info").json()["host"]
        here = {"KernelVersion": host.get("kernel"), "Name": host.get("hostname")}
        local = shares_this_host(here, self.engine.endpoint.socket_path)
        helper = HELPERS.get(host.get("networkBackend") or "cni")
        known = host.get("networkBackendInfo")  # since Podman 4.4
        if helper is None or (known and (known.get("dns") or {}).get("path")):
            return None
        return helper if known or (local and _is_missing(helper)) else None


def _is_missing(helper: Helper) -> bool:
    """Whether the usual folders have the backend and not its helper; containers.conf may name others."""
    found = {name for name in (helper.name, helper.beside) for each in helper.folders if Path(each, name).exists()}
    return found == {helper.beside}


def _no_names(plan: LaunchPlan, lacking: Helper) -> Diagnostic:
    return Diagnostic(
        code="TL516",
        message=f"torchrun.nnodes is {plan.nodes} and this Podman resolves no container names",
        why=f"{lacking.name}, the DNS server of its network backend, is not installed; no node would find node 0",
        fix=f"run `sudo apt-get install {lacking.package}`, or use a Docker engine, or add `--set torchrun.nnodes=1`",
        span=plan.job.span("torchrun.nnodes"),
        field="torchrun.nnodes",
    )
