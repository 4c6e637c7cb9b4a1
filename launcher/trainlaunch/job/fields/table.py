"""The table of fields: the one source of validation, defaults, the reference page and the JSON Schema."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from typing import Any

from trainlaunch.job.fields.container_rows import CONTAINER, TRAINING
from trainlaunch.job.fields.kubernetes import KUBERNETES
from trainlaunch.job.fields.types import (
    ABSOLUTE_PATH,
    BOOL,
    NAME,
    VERBATIM,
    Field,
    Type,
    choice,
    duration,
    integer,
    listing,
    mapping,
    record,
    size,
    text,
)
from trainlaunch.kinds import KINDS
from trainlaunch.targets import DEFAULT_TARGET, TARGETS

_ULIMITS = (
    "core|cpu|data|fsize|locks|memlock|msgqueue|nice|nofile|nproc|rss|rtprio|rttime|sigpending|stack",
    "a limit that Docker knows, like nofile",
)

_POINTER = r"(?:/(?:[^~/]|~[01])*)*"

# One row a paragraph, as a table reads.
# fmt: off
_HEALTHCHECK = record(
    Field("interval", duration(1), "time between checks", default=30,
          docker="`--health-interval`", compose="`interval`", kubernetes="`periodSeconds`"),
    Field("timeout", duration(1), "time that one check may take", default=10,
          docker="`--health-timeout`", compose="`timeout`", kubernetes="`timeoutSeconds`"),
    Field("retries", integer(1, 10**6), "failures in a row that make it unhealthy", default=3,
          docker="`--health-retries`", compose="`retries`", kubernetes="`failureThreshold`"),
    Field("start_period", duration(), "time in which failures don't count", default=30 * 60,
          docker="`--health-start-period`", compose="`start_period`", kubernetes="readiness only reports"),
    Field("stall_after", duration(1), "longest wait of a rank for one batch; one that waits longer is unhealthy "
          "(docs/health.md)", shown="not watched"),
    Field("on_unhealthy", choice("report", "stop"), "what becomes of an unhealthy job; stop needs stall_after",
          default="report", docker="`up`; comment", compose="`up`; comment", kubernetes="`livenessProbe`"),
)

RUNNING = (
    Field("ulimits", mapping(Type("ulimit", "a number, or {soft: n, hard: n}", low=-1, high=2**63 - 1), *_ULIMITS),
          "limits, -1 for no limit; rendered only when set",
          docker="`--ulimit`", compose="`ulimits`", kubernetes="TL401"),
    Field("healthcheck", _HEALTHCHECK, "health check settings", shown="on"),
    Field("observe", BOOL, "whether its processes note how long they wait for data ([data wait](data-wait.md)), in "
          "rendered files too", shown="where `run` and `up` start it on this host"),
    Field("restart", record(
        Field("max_attempts", integer(1, 1000), "runs in all; never again after 78, 125–127 or a stop", default=1,
              docker="`up`; comment", compose="`up`; comment", kubernetes="`backoffLimit` n−1"),
        Field("on_exit_codes", listing(integer(1, 255), low=1), "exit codes after which another attempt follows; "
              "75 always is one, 78 and 125–127 never are", shown="any",
              docker="`up`", compose="`up`", kubernetes="`podFailurePolicy`, kinds job and jobset"),
        Field("backoff", duration(1), "wait before the second attempt, twice as long before each further one",
              docker="`up`", compose="`up`", kubernetes="comment: 10 s, then twice as long"),
    ), "attempts", default={}),
    Field("checkpoint_dir", ABSOLUTE_PATH,
          "where attempts leave what the next one goes on from: below a bind, volume or pvc that can be written. The "
          "preflight proves it and exports TRAINLAUNCH_CHECKPOINT_DIR"),
    Field("checkpoint_bytes", size(), "room that the preflight asks for there"),
    Field("active_deadline", duration(1), "longest run",
          docker="`up`; comment", compose="`up`; comment", kubernetes="`activeDeadlineSeconds`"),
    Field("stop_grace_period", duration(), "time between the stop signal and the kill", default=30,
          docker="`--stop-timeout`", compose="`stop_grace_period`", kubernetes="`terminationGracePeriodSeconds`"),
    Field("ttl_after_finished", duration(), "time until a finished job is removed",
          docker="the next `up`; comment", compose="comment", kubernetes="`ttlSecondsAfterFinished`"),
    Field("kubernetes", KUBERNETES, "what only Kubernetes knows", default={}, docker="–", compose="–"),
)

_OPERATION = record(
    Field("op", choice("add", "remove", "replace", "move", "copy", "test"), "what is done", required=True,
          example="add"),
    Field("path", text('a JSON Pointer: "" or /key/0/key', _POINTER), "where, in the rendered object", required=True,
          example="/spec/template/spec/schedulerName"),
    Field("from", text('a JSON Pointer: "" or /key/0/key', _POINTER), "what move and copy take"),
    Field("value", VERBATIM, "what add, replace and test need"),
    Field("kind", text("a kind, like Service", r"[A-Z][A-Za-z]*"), "which of several objects",
          shown="the one that runs the job"),
    Field("kinds", listing(choice(*KINDS), low=1), "`kubernetes.kind` of the jobs that it is for", shown="all"),
)

PATCHES = Field("patches", record(
    Field("docker", record(
        Field("extra_args", listing(text("a flag of docker run or its value", r"[^\0]+")), "flags after ours",
              default=()),
    ), "more of `docker run`", default={}, docker="flags", compose="–", kubernetes="–"),
    Field("compose", Type("verbatim", "a mapping, as in {services: {NAME: {…}}}"), "JSON Merge Patch of the file",
          default={}, docker="–", compose="any key", kubernetes="–"),
    Field("kubernetes", listing(_OPERATION), "JSON Patch of the objects", default=(),
          docker="–", compose="–", kubernetes="any field"),
), "changes to the rendered file of one target, which is then read back (docs/patches.md)", default={})
POLICY = Field("policy", text("a path", r"(?!~)[^\0]+"),
               "policy file, relative to the job file, beside each `trainlaunch-policy.yaml` from its folder up to the "
               "repository's root (docs/policy.md)")
PROFILE = Field("profile", text("a name of lower-case letters, digits and -", NAME),
                "profile of a policy, whose fields lie between the policies' defaults and the job")
TARGET = Field("target", choice(*TARGETS), "default of `--target`", default=DEFAULT_TARGET)
# fmt: on

_OVERRIDABLE = (*CONTAINER, *TRAINING, *RUNNING, PROFILE)

OVERRIDE = record(*_OVERRIDABLE)
OVERRIDES = Field(
    "target_overrides",
    record(*(Field(name, OVERRIDE, f"fields for {name}", default={}) for name in TARGETS)),
    "any field above for one target: mappings merge, lists and scalars replace, null is the default",
    default={},
)  # fmt: skip
_NOT_REPEATED = (OVERRIDES.name, "data_loader.loaders", "defaults", "profiles")
# Kubernetes' own objects: its documentation has their rows.
_NOT_OURS = ("kubernetes.affinity", "kubernetes.tolerations", "kubernetes.topology_spread")
JOB = record(*_OVERRIDABLE, OVERRIDES, PATCHES, TARGET, POLICY)


def rows(type_: Type = JOB, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Yield each field with its dotted path; `[]` stands for a list's items and NAME for a free key.

    What `target_overrides.T`, `data_loader.loaders.NAME` and a policy's `defaults` and `profiles` take stands elsewhere
    already, and so does what Kubernetes' own objects hold.
    """
    for field in type_.fields:
        path = prefix + field.name
        yield path, field
        if path in _NOT_REPEATED or path in _NOT_OURS:
            continue
        if field.type.kind == "object":
            yield from rows(field.type, f"{path}.")
        item = field.type.item
        if item is not None and item.kind == "object":
            yield from rows(item, f"{path}[]." if field.type.kind == "list" else f"{path}.NAME.")


def named(type_: Type, name: str) -> Field | None:
    """Return the field `name` of an object type."""
    return type_.by_name.get(name)


def child(type_: Type | None, key: str) -> Type | None:
    """Return the type of what stands under `key` of a mapping or list; None for a key that the table doesn't know."""
    if type_ is None:
        return None
    if type_.kind == "object":
        field = named(type_, key)
        return field.type if field else None
    return type_.item if type_.kind in {"map", "list"} else None


def default(path: str) -> Any:
    """Return the default of a dotted field, as the value that reading it would give."""
    parent, _, name = path.rpartition(".")
    return defaults(parent)[name]


@functools.cache
def defaults(path: str) -> Mapping[str, Any]:
    """Return the default of each field below a dotted one, and of a job's own fields below ``."""
    type_: Type | None = JOB
    for name in path.split(".") if path else ():
        type_ = child(type_, name)
    return {name: field.default for name, field in type_.by_name.items()} if type_ else {}
