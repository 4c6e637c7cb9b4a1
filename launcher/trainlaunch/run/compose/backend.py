"""The compose target: the rendered file through the real Compose, a project an attempt, on the engine below it.

On Podman, Compose creates through its service, and each container is treated as Podman's. Podman resolves container
names by a helper of its network backend, and without it starts containers all the same.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from trainlaunch.container.job_variables import attempt_variables
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import LaunchError, TargetUnavailable
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.target_names import node_names
from trainlaunch.render import render
from trainlaunch.run.base.backend import ContainerInfo, Say, Session
from trainlaunch.run.base.multi_node import SessionGroup, at_once, by_node
from trainlaunch.run.compose.command import Compose, find_compose
from trainlaunch.run.docker.backend import JOB, DockerBackend
from trainlaunch.run.docker.checks import NOT_FOR_UP, name_taken, shares_this_host
from trainlaunch.run.docker.client import GONE, REFUSED, Engine, EngineRefused
from trainlaunch.run.docker.containers import COMPOSE_PROJECT, run_labels
from trainlaunch.run.podman.backend import PodmanBackend, in_podmans_words
from trainlaunch.verify import verified

FORBIDDEN = 403
_CONTAINER_ID = re.compile(r"[0-9a-f]{64}")
_SAID_LINES = 5


class ComposeBackend(DockerBackend):
    """Creates by Compose; attaches, starts, reads and stops by the engine itself, as Compose does.

    A run's id is its container's, or its project's name where it has several.
    """

    place = "Compose on this engine"

    def __init__(self, engine: Engine | None = None, *, proc: Path = Path("/proc"), say: Say = lambda _: None) -> None:
        super().__init__(engine, proc=proc, say=say)
        self._asked_to_stop: set[str] = set()

    @cached_property
    def compose(self) -> Compose:
        """The Compose that is used; raises TargetUnavailable where there is none."""
        return find_compose()

    def prepare(self, plan: LaunchPlan, say: Say) -> None:
        """Find Compose, then check as for a single container, and say who creates."""
        used = self.compose
        added = sorted(_added_services(plan))
        if added:
            raise TargetUnavailable([_not_started(plan, added[0])])
        super().prepare(plan, say)
        say(f"Compose is {used}")

    def create(self, plan: LaunchPlan, run: str, attempt: int) -> str:
        """Create an attempt as a project of its own, so that ended ones keep their containers.

        Compose creates the first node before the others, and its container's name is the one that two racers want.
        """
        for holder in self._make_way(plan):
            if holder.project:  # a network of each ended run would use up the engine's address ranges
                self._remove_networks(COMPOSE_PROJECT, holder.project)
        project = f"{plan.name}-{run}" if attempt == 1 else f"{plan.name}-{run}-{attempt}"
        more = {
            "labels": run_labels(plan, run=run, attempt=attempt),
            "environment": attempt_variables(plan, attempt),
        }
        text, variables = verified(plan, render(plan)), self.engine.endpoint.variables
        said = self.compose.create(plan, text, project=project, more=more, variables=variables)
        made = self._members(project)
        if len(made) == plan.nodes:
            return made[0].id if plan.nodes == 1 else project
        self._discard(project)
        holders = filter(None, map(self.inspect, node_names(plan.name, plan.nodes)))
        taken = [name_taken(plan, holder) for holder in holders]
        raise TargetUnavailable(taken[:1] or [_refused(self.compose, project, said)])

    def begin(self, container: str) -> Session:
        """Attach to each container and start it, the first node first; where one can't start, nothing is left."""
        members = self._members(container)
        sessions: list[Session] = []
        try:
            # Where somebody has removed them meanwhile, the engine says so of the name.
            for each in [member.id for member in members] or [container]:
                sessions.append(super().begin(each))
        except LaunchError:
            for session in sessions:
                session.close()
            for project in {member.project for member in members}:
                self._discard(project)
            raise
        if members[0].node is None:
            return sessions[0]
        return SessionGroup(sessions, lambda: self._stop_peers(container))

    def resume(self, container: str) -> Session:
        """Read the logs of all nodes and wait for their ends; where one fails the others are stopped, as by `begin`."""
        members = self._members(container)
        if len(members) < 2:
            return super().resume(members[0].id if members else container)
        return SessionGroup([super().resume(each.id) for each in members], lambda: self._stop_peers(container))

    def stop(self, container: str) -> None:
        """Stop all nodes at once, each within its own grace period; a second signal would cut short who saves."""
        if container not in self._asked_to_stop:
            self._asked_to_stop.add(container)
            self._each(super().stop, container)

    def kill(self, container: str) -> None:
        """Send SIGKILL to all nodes."""
        self._asked_to_stop.add(container)
        self._each(super().kill, container)

    def _is_of_this_target(self, project: str) -> bool:
        return bool(project)

    def remove(self, container: str) -> None:
        """Remove a container with its anonymous volumes, and networks of its job that no run has any more."""
        removed = self.inspect(container)
        super().remove(container)
        if removed is not None:
            used = {each.project for each in self.listed(removed.job)}
            self._remove_networks(JOB, removed.job, but=used)

    def _stop_peers(self, project: str) -> None:
        """Stop the nodes that a failed one leaves."""
        with contextlib.suppress(LaunchError):  # the follower says it when the engine is lost
            self.stop(project)

    def _each(self, action: Callable[[str], None], container: str) -> None:
        members = [each.id for each in self._members(container) if not each.ended]
        at_once(action, members, most=len(members))

    def _members(self, container: str) -> tuple[ContainerInfo, ...]:
        if _CONTAINER_ID.fullmatch(container):
            one = self.inspect(container)
            return () if one is None else (one,)
        return by_node(iter(self._described_each(self._entries({COMPOSE_PROJECT: container}))))

    def _discard(self, project: str) -> None:
        """Remove what was made of a project that can't run as a whole."""
        for each in self._members(project):
            super().kill(each.id)
            super().wait(each.id)
            super().remove(each.id)
        self._remove_networks(COMPOSE_PROJECT, project)

    def _remove_networks(self, label: str, value: str, *, but: Iterable[str] = ()) -> None:
        with self.engine.attempting("list networks") as client:
            listed = client.networks(filters={"label": [f"{label}={value}", JOB]})
        for network in listed:
            if network["Labels"].get(COMPOSE_PROJECT) in but or self._is_used(network):
                continue
            try:
                with self.engine.attempting(f"remove network {network['Name']}") as client:
                    client.remove_network(network["Id"])
            except EngineRefused as refused:
                if refused.status not in {GONE, FORBIDDEN}:  # 403: somebody's container is on it
                    raise

    def _is_used(self, network: Mapping[str, Any]) -> bool:
        """Whether a network must stay though the engine would remove it; Docker itself keeps what somebody is on."""
        return False


def _added_services(plan: LaunchPlan) -> set[str]:
    """Return the services that only the job's patch brings."""
    leaves = plan.job.patch.leaves if plan.job.patch else ()
    named = {each.keys[1] for each in leaves if each.keys[0] == "services" and each.value is not None}
    return named - set(node_names(plan.name, plan.nodes))


def _not_started(plan: LaunchPlan, service: str) -> Diagnostic:
    leaves = plan.job.patch.leaves if plan.job.patch else ()
    first = next(each for each in leaves if each.keys[:2] == ("services", service))
    return Diagnostic(
        code=NOT_FOR_UP,
        message=f"`up` starts the job's own services, and the patch adds {service}",
        why="an added service has no end that ends the job, and `down` would not know it",
        fix="start it by itself, or run the file by hand: `trainlaunch render --target compose`, `docker compose up`",
        span=first.span,
        field=first.field,
    )


def _refused(compose: Compose, project: str, said: str) -> Diagnostic:
    words = [line.strip() for line in said.splitlines() if line.strip()][-_SAID_LINES:]
    return Diagnostic(
        code=REFUSED,
        message=f"compose: create project {project}: {compose} refuses",
        why=f"it says: {' / '.join(words) or 'nothing'}",
        fix="change what it names; the same call gives the same answer until then",
    )


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
