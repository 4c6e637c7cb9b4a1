"""Rows of the table of fields: how the job is watched, stopped and placed, and what differs per target."""

from __future__ import annotations

from trainlaunch.job.fields.kubernetes import KUBERNETES
from trainlaunch.job.fields.types import (
    ABSOLUTE_PATH,
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
          "limits, -1 for no limit; rendered only when stated",
          docker="`--ulimit`", compose="`ulimits`", kubernetes="TL401"),
    Field("healthcheck", _HEALTHCHECK, "how the engine asks after the job", shown="on"),
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
), "changes to the final text of one target, which is then read back (docs/patches.md)", default={})
POLICY = Field("policy", text("a path", r"(?!~)[^\0]+"),
               "policy file, relative to the job file, beside each `trainlaunch-policy.yaml` from its folder up to the "
               "repository's root (docs/policy.md)")
PROFILE = Field("profile", text("a name of lower-case letters, digits and -", NAME),
                "profile of a policy, whose fields lie between the policies' defaults and the job")
TARGET = Field("target", choice(*TARGETS), "default of `--target`", default=DEFAULT_TARGET)
