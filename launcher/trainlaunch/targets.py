"""The targets: one record each, which says what is so of it.

No other module compares a target's name. What a target does stands in a module of its name in each room that has
targets: `job/validation/NAME.py` (its refusals), `render/NAME.py` (its text), `verify/` and `run/NAME/`. Adding a
target: one record here, and those modules.
"""

from importlib import import_module
from typing import Any, NamedTuple


class Target(NamedTuple):
    """What is so of a target.

    `has_text`: `render` writes a text for it, in a file of `file_name`, where {name} is the job's.
    `patch`: how `patches.NAME` changes that text: "flags" of its command, a "merge" into its document, "operations" on
    its documents, or "" where it can't.

    `starts_container`: an image is started, else a process of this host. `private_shm`: each run gets a /dev/shm of its
    own, of the planned size; else the host's is used as it is. `enforces_limits`: memory and CPUs are limits there,
    else they are only compared with the host. `on_this_machine`: its runs are on this host's engine or this host,
    else in a cluster. `mounts_host_paths`: paths of this host are mounted, so a text depends on its folder.
    `has_kinds`: a run is an object of one of `trainlaunch.kinds`, which says what it does by itself.

    `ends_at_deadline`: its text ends a run at active_deadline; on engines `up` does.

    `multi_node_unsupported` says why it can't run several, empty where it can. `secret_sources` are the places of a
    secret that it can read, and `mounted_secrets` which of them, and as what the job sees it, are mounted as files: all
    others are variables when the container starts.

    `runtime` is who starts and stops runs there, and `noun` what a run is called, as a sentence names them.
    """

    name: str
    has_text: bool = True
    file_name: str = ""
    patch: str = ""
    starts_container: bool = True
    private_shm: bool = True
    enforces_limits: bool = True
    on_this_machine: bool = True
    mounts_host_paths: bool = True
    has_kinds: bool = False
    ends_at_deadline: bool = False
    multi_node_unsupported: str = ""
    secret_sources: tuple[str, ...] = ("env", "file")
    mounted_secrets: frozenset[tuple[str, str]] = frozenset({("file", "file")})
    runtime: str = "the engine"
    noun: str = "container"

    def module(self, room: str) -> Any:
        """Return the target's own module of a room like `trainlaunch.render`, imported when it is first asked for."""
        return import_module(f"{room}.{self.name.replace('-', '_')}")


DOCKER = Target(
    "docker", file_name="{name}.docker-run.sh", patch="flags", multi_node_unsupported="docker run starts one container"
)
COMPOSE = Target(
    "compose",
    file_name="{name}.compose.yaml",
    patch="merge",
    mounted_secrets=frozenset({("file", "file"), ("file", "variable")}),
)
KUBERNETES = Target(
    "kubernetes",
    file_name="{name}.kubernetes.yaml",
    patch="operations",
    on_this_machine=False,
    mounts_host_paths=False,
    has_kinds=True,
    secret_sources=("kubernetes",),
    mounted_secrets=frozenset({("kubernetes", "file")}),
    runtime="the cluster",
)
LOCAL = Target(
    "local",
    has_text=False,
    starts_container=False,
    private_shm=False,
    enforces_limits=False,
    multi_node_unsupported="it starts one process of this host",
    runtime="trainlaunch",
    noun="local run",
)
TARGETS = {each.name: each for each in (DOCKER, COMPOSE, KUBERNETES, LOCAL)}
ON_THIS_MACHINE = tuple(each.name for each in TARGETS.values() if each.on_this_machine)
DEFAULT_TARGET = DOCKER.name

# Texts that somebody else's tool runs: `render` writes them and `check` keeps them, `up` and a job's own `target` don't
# know them. They name paths by the repository's root, since that is what a runner has.
_OF_A_REPOSITORY: dict[str, Any] = {
    "mounts_host_paths": False,
    "secret_sources": ("env",),
    "mounted_secrets": frozenset(),
}
GITHUB = Target(
    "github-actions",
    file_name="{name}.github-actions.yaml",
    ends_at_deadline=True,
    multi_node_unsupported="a GitHub job is one container",
    runtime="the runner",
    noun="job",
    **_OF_A_REPOSITORY,
)
GITLAB = Target(
    "gitlab-ci",
    file_name="{name}.gitlab-ci.yml",
    ends_at_deadline=True,
    multi_node_unsupported="a GitLab job is one container",
    runtime="the runner",
    noun="job",
    **_OF_A_REPOSITORY,
)
DEVCONTAINER = Target(
    "devcontainer",
    file_name="devcontainer.json",
    multi_node_unsupported="a devcontainer is one container",
    **_OF_A_REPOSITORY,
)
DOCKERFILE = Target(
    "dockerfile",
    file_name="{name}.Dockerfile",
    multi_node_unsupported="docker run starts one container",
    **_OF_A_REPOSITORY,
)
TEXTS = {each.name: each for each in (GITHUB, GITLAB, DEVCONTAINER, DOCKERFILE)}


def target_record(name: str) -> Target:
    """Return the record of a target or of a text that only `render` and `check` know. Raises KeyError."""
    return TARGETS.get(name) or TEXTS[name]


def is_rendered(name: str) -> bool:
    """Return whether `render` writes a text for that name."""
    return name in TEXTS or (name in TARGETS and TARGETS[name].has_text)


def text_targets() -> tuple[str, ...]:
    """Return the names of the targets that have a text."""
    return tuple(each.name for each in TARGETS.values() if each.has_text)
