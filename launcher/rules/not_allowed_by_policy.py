r"""A value lies in none of those that a policy allows.

**Why it matters**:
an allow-list says where a team's jobs may run and what they may take from the host and the cluster. Several policies
are in force at once, and each of their lists counts.

**Example**:

```sh
printf 'allowed_host_paths: [/data]\n' > trainlaunch-policy.yaml
trainlaunch plan job.yaml --set 'mounts=[{type: bind, source: /etc, target: /etc/host}]'
```

**Use instead**:

```sh
printf 'allowed_host_paths: [/data]\n' > trainlaunch-policy.yaml
trainlaunch plan job.yaml --set 'mounts=[{type: bind, source: /data/set, target: /data}]'
```

**Fix**: write an allowed value; which of them is the job's author's to say, and a further one the policy's owner's.

**References**: docs/policy.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from launcher.diagnostics import Diagnostic, Severity, Span
from launcher.formats.docker.flags import flag_name
from launcher.job.ceilings import Allowed
from launcher.job.spec import JobSpec
from launcher.plan.launch_plan import LaunchPlan
from launcher.rules.job_demands import refused_demands

CODE = "TL152"
NAME = "not-allowed-by-policy"
SEVERITY = Severity.ERROR
_WHY = "a policy's lists hold for every job below its folder; no option, override or patch passes them"
_UNLESS_STATED = ("restricted", "baseline")  # what allowed_pod_security allows where no policy states it


class _Asked(NamedTuple):
    """A value of the job: its field, None where it states none, and what then is in effect."""

    field: str
    value: str | None
    otherwise: str = ""


def check(plan: LaunchPlan) -> Iterator[Diagnostic]:
    """Yield an error for each value that a list doesn't have, and each that a list asks for and is not stated."""
    job = plan.job
    if job.policy is None:
        return
    if plan.target_record.has_kinds:
        yield from _of_cluster(job)
    yield from (each for each in refused_demands(plan) if each.code == CODE)
    yield from _patch(job)


def _of_cluster(job: JobSpec) -> Iterator[Diagnostic]:
    asked = job.kubernetes
    account = _Asked("kubernetes.service_account", asked.service_account or "default", "the account `default`")
    for name, each in {
        "allowed_namespaces": _Asked("kubernetes.namespace", asked.namespace, "the namespace of whoever applies it"),
        "allowed_queues": _Asked("kubernetes.queue", asked.queue, "no queue and no quota"),
        "allowed_service_accounts": account,
    }.items():
        yield from _listed(job, name, each)
    if asked.priority_class is not None:
        yield from _listed(job, "allowed_priority_classes", _Asked("kubernetes.priority_class", asked.priority_class))
    yield from _pod_security(job)
    if asked.token and job.policy is not None and job.policy.token_span is not None:
        yield _error(
            job, "kubernetes.token", "kubernetes.token is true", "delete it", job.policy.token_span, "no token"
        )


def _pod_security(job: JobSpec) -> Iterator[Diagnostic]:
    asked = _Asked("kubernetes.pod_security", job.kubernetes.pod_security)
    if job.policy is not None and "allowed_pod_security" in job.policy.allowed:
        yield from _listed(job, "allowed_pod_security", asked)
    elif job.policy is not None and asked.value not in _UNLESS_STATED:
        place = Span(job.policy.files[0], 1, 1, 1, 1)
        fix = "delete it, or add allowed_pod_security: [privileged] to each policy in force"
        yield _error(job, asked.field, f"{asked.field} is {asked.value}", fix, place, " and ".join(_UNLESS_STATED))


def _listed(job: JobSpec, name: str, asked: _Asked) -> Iterator[Diagnostic]:
    for values, span in _lists(job, name):
        if asked.value in values:
            continue
        stated = asked.value is not None and job.span(asked.field) is not None
        said = (
            f"{asked.field} is {asked.value}"
            if stated
            else f"{asked.field} is not stated, which gives {asked.otherwise}"
        )
        fix = f"set {asked.field} to {_either(values)}, or add it to {span.file}:{span.line}"
        yield _error(job, asked.field, said, fix, span, ", ".join(values))


def _patch(job: JobSpec) -> Iterator[Diagnostic]:
    if job.patch is None:
        return
    for flag in job.patch.flags:
        field = f"patches.docker.extra_args.{flag.at}"
        for values, span in _lists(job, "allowed_extra_args"):
            if flag.name not in {flag_name(each)[0] for each in values}:
                fix = f"delete it, or add --{flag.name} to {span.file}:{span.line}"
                yield _error(job, field, f"--{flag.name} is stated", fix, span, ", ".join(values))._replace(
                    span=flag.span
                )
    changed = [(each.field, each.span, each.keys) for each in job.patch.leaves]
    changed += [
        (each.field, each.span, _keys(path))
        for each in job.patch.operations
        if each.op != "test"
        for path in ((each.path, each.source or each.path) if each.op == "move" else (each.path,))
    ]
    for field, span, keys in changed:
        yield from _patch_path(job, field, span, keys)


def _patch_path(job: JobSpec, field: str, span: Span, keys: tuple[str, ...]) -> Iterator[Diagnostic]:
    for values, place in _lists(job, "allowed_patch_paths"):
        if not any(_below(keys, _keys(each)) for each in values):
            pointer = "".join(f"/{each.replace('~', '~0').replace('/', '~1')}" for each in keys)
            fix = f"delete it, or add {pointer} to {place.file}:{place.line}"
            yield _error(job, field, f"{field} changes {pointer or 'all'}", fix, place, ", ".join(values))._replace(
                span=span
            )


def _keys(pointer: str) -> tuple[str, ...]:
    return tuple(each.replace("~1", "/").replace("~0", "~") for each in pointer.split("/")[1:])


def _below(keys: tuple[str, ...], allowed: tuple[str, ...]) -> bool:
    return len(keys) >= len(allowed) and all(each in {"*", key} for each, key in zip(allowed, keys, strict=False))


def _lists(job: JobSpec, name: str) -> tuple[Allowed, ...]:
    return job.policy.allowed.get(name, ()) if job.policy else ()


def _either(values: tuple[str, ...]) -> str:
    return values[0] if len(values) == 1 else f"one of {', '.join(values)}"


def _error(job: JobSpec, field: str, said: str, fix: str, place: Span, allowed: str) -> Diagnostic:
    return Diagnostic(
        CODE,
        f"{said}, and the policy allows {allowed} ({place.file}:{place.line})",
        fix,
        why=_WHY,
        severity=SEVERITY,
        span=job.span(field) or job.span(field.partition(".")[0]),
        field=field,
    )
