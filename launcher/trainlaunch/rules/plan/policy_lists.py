"""What a policy's lists don't have, and images that it doesn't allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from trainlaunch.diagnostics import Severity, Span
from trainlaunch.formats.docker.flags import flag_name
from trainlaunch.job.ceilings import Allowed
from trainlaunch.job.patch import pointer_keys
from trainlaunch.job.spec import JobSpec
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.policy.registry import in_registry, parts_of
from trainlaunch.rules.base.rule import Problem, plan_rule
from trainlaunch.rules.plan.job_demands import refused_demands

_UNLESS_STATED = ("restricted", "baseline")  # what allowed_pod_security allows where no policy sets it


class _Asked(NamedTuple):
    """A value of the job: its field, None where it sets none, and what then is in effect."""

    field: str
    value: str | None
    otherwise: str = ""


@plan_rule("TL152", Severity.ERROR)
def not_allowed_by_policy(plan: LaunchPlan) -> Iterator[Problem]:
    """A value is on none of the lists, or one that a list asks for is not set."""
    job = plan.job
    if job.policy is None:
        return
    if plan.target_record.has_kinds:
        yield from _of_cluster(job)
    yield from refused_demands(plan).not_allowed
    yield from _patch(job)


def _of_cluster(job: JobSpec) -> Iterator[Problem]:
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


def _pod_security(job: JobSpec) -> Iterator[Problem]:
    asked = _Asked("kubernetes.pod_security", job.kubernetes.pod_security)
    if job.policy is not None and "allowed_pod_security" in job.policy.allowed:
        yield from _listed(job, "allowed_pod_security", asked)
    elif job.policy is not None and asked.value not in _UNLESS_STATED:
        place = Span(job.policy.files[0], 1, 1, 1, 1)
        yield _error(
            job,
            asked.field,
            f"{asked.field} is {asked.value}",
            "delete it, or add allowed_pod_security: [privileged] to each policy in force",
            place,
            " and ".join(_UNLESS_STATED),
        )


def _listed(job: JobSpec, name: str, asked: _Asked) -> Iterator[Problem]:
    for values, span in _lists(job, name):
        if asked.value in values:
            continue
        stated = asked.value is not None and job.span(asked.field) is not None
        said = (
            f"{asked.field} is {asked.value}" if stated else f"{asked.field} is not set, which gives {asked.otherwise}"
        )
        yield _error(
            job,
            asked.field,
            said,
            f"set {asked.field} to {_either(values)}, or add it to {span.file}:{span.line}",
            span,
            ", ".join(values),
        )


def _patch(job: JobSpec) -> Iterator[Problem]:
    if job.patch is None:
        return
    for flag in job.patch.flags:
        field = f"patches.docker.extra_args.{flag.at}"
        for values, span in _lists(job, "allowed_extra_args"):
            if flag.name not in {flag_name(each)[0] for each in values}:
                yield _error(
                    job,
                    field,
                    f"--{flag.name} is set",
                    f"delete it, or add --{flag.name} to {span.file}:{span.line}",
                    span,
                    ", ".join(values),
                )._replace(span=flag.span)
    changed = [(each.field, each.span, each.keys) for each in job.patch.leaves]
    changed += [
        (each.field, each.span, pointer_keys(path))
        for each in job.patch.operations
        if each.op != "test"
        for path in ((each.path, each.source or each.path) if each.op == "move" else (each.path,))
    ]
    for field, span, keys in changed:
        yield from _patch_path(job, field, span, keys)


def _patch_path(job: JobSpec, field: str, span: Span, keys: tuple[str, ...]) -> Iterator[Problem]:
    for values, place in _lists(job, "allowed_patch_paths"):
        if not any(_below(keys, pointer_keys(each)) for each in values):
            pointer = "".join(f"/{each.replace('~', '~0').replace('/', '~1')}" for each in keys)
            yield _error(
                job,
                field,
                f"{field} changes {pointer or 'all'}",
                f"delete it, or add {pointer} to {place.file}:{place.line}",
                place,
                ", ".join(values),
            )._replace(span=span)


def _below(keys: tuple[str, ...], allowed: tuple[str, ...]) -> bool:
    return len(keys) >= len(allowed) and all(each in {"*", key} for each, key in zip(allowed, keys, strict=False))


def _lists(job: JobSpec, name: str) -> tuple[Allowed, ...]:
    return job.policy.allowed.get(name, ()) if job.policy else ()


def _either(values: tuple[str, ...]) -> str:
    return values[0] if len(values) == 1 else f"one of {', '.join(values)}"


def _error(job: JobSpec, field: str, said: str, fix: str, place: Span, allowed: str) -> Problem:
    return Problem(
        f"{said}, and the policy allows {allowed} ({place.file}:{place.line})",
        fix,
        "a policy's lists hold for every job below its folder; no option, override or patch passes them",
        field,
        job.span(field) or job.span(field.partition(".")[0]),
    )


@plan_rule("TL142", Severity.ERROR)
def registry_not_allowed(plan: LaunchPlan) -> Iterator[Problem]:
    """The image lies in none of the allowed registries; target local starts no image."""
    job = plan.job
    if not plan.target_record.starts_container:
        return
    for allowed, span in _lists(job, "allowed_registries"):
        if not any(in_registry(job.image, each) for each in allowed):
            place = f"{span.file}:{span.line}"
            yield Problem(
                f"image {_image(job)} comes from {'/'.join(parts_of(job.image))}, and the policy allows "
                f"{', '.join(allowed)} ({place})",
                f"set image to one of {', '.join(allowed)}, or add its registry to {place}",
                "an image without a registry in front comes from docker.io, of library/ where it has one part",
                "image",
            )


@plan_rule("TL143", Severity.ERROR)
def image_not_pinned(plan: LaunchPlan) -> Iterator[Problem]:
    """Neither the job nor its lock gives the image a digest; target local starts no image."""
    job = plan.job
    span = job.policy.digest_span if job.policy else None
    if span is not None and plan.target_record.starts_container and "@" not in job.image:
        yield Problem(
            f"image {_image(job)} is not pinned, and the policy requires a digest ({span.file}:{span.line})",
            f"run `trainlaunch lock {job.path}`, or set image to {job.image.rpartition(':')[0] or job.image}@sha256:…",
            "a tag can move to another image while the rendered file stays the same",
            "image",
        )


def _image(job: JobSpec) -> str:
    return job.image + (f" ({job.origin('image')})" if job.span("image") is None else "")
