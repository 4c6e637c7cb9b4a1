"""The text of a target with the job's patch: rendered without it, read, changed, and written in the same style.

Nothing of the rendered text is escaped again. What a merge patch brings into a Compose file is literal, as all strings
of a job file are, so each `$` of it is doubled; a JSON Patch speaks Kubernetes' own language, `$(NAME)` included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from launcher.diagnostics import Diagnostic
from launcher.errors import JobFileRejected
from launcher.job.patch import Leaf, Operation
from launcher.plan.launch_plan import LaunchPlan
from launcher.render.json_patch import PatchFailed, after, merged_after
from launcher.templating.quoting import dollars
from launcher.yamltree.emitter import yaml_block

Documents = list[dict[str, Any]]
_HEADER = re.compile(r"(?:#.*\n)*")


def patched(plan: LaunchPlan, bare: str) -> str:
    """Return `bare`, the text without the patch, with it. Raises JobFileRejected (TL145) where a step can't be done."""
    return written(bare, patched_documents(plan, bare))


def steps(plan: LaunchPlan) -> tuple[Operation | Leaf, ...]:
    """Return what the patch does to a file of documents, one after the other."""
    patch = plan.job.patch
    return () if patch is None else (*patch.operations, *patch.leaves)


def patched_documents(plan: LaunchPlan, bare: str, count: int | None = None) -> Documents:
    """Return the documents of `bare`, the text without the patch, after its first `count` steps (None: all)."""
    documents = documents_of(bare)
    known = set(documents[0].get("services", {}))
    for step in steps(plan)[:count]:
        if isinstance(step, Leaf):
            documents[0] = _merged(documents[0], step)
        else:
            _operate(plan, documents, step)
    if plan.target_record.patch == "merge" and count is None:
        services = documents[0].get("services")
        for name, service in services.items() if isinstance(services, dict) else ():
            if name not in known and not (isinstance(service, dict) and {"image", "build"} & service.keys()):
                _refuse_service(plan, name, known)
    return documents


def documents_of(text: str) -> Documents:
    """Return the documents of a rendering."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return list(yaml.load_all(text, loader))


def written(bare: str, documents: Documents) -> str:
    """Return documents under the header of `bare`, in the style of the templates."""
    header = _HEADER.match(bare)
    return (header[0] if header else "") + "---\n".join(f"{yaml_block(each)}\n" for each in documents)


def _merged(document: dict[str, Any], leaf: Leaf) -> dict[str, Any]:
    value = _literal(leaf.value)
    for key in reversed(leaf.keys):
        value = {key: value}
    made: dict[str, Any] = merged_after(document, value)
    return made


def _literal(value: Any) -> Any:
    """Return a value whose strings Compose's interpolation leaves as they were."""
    if isinstance(value, dict):
        return {key: _literal(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_literal(item) for item in value]
    return dollars(value) if isinstance(value, str) else value


def _operate(plan: LaunchPlan, documents: Documents, operation: Operation) -> None:
    index = next(_chosen(plan, documents, operation), None)
    if index is None:
        kinds = ", ".join(str(each.get("kind")) for each in documents)
        raise JobFileRejected([_failed(operation, f"names the kind {operation.kind}, and the text has {kinds}")])
    try:
        made = after(documents[index], operation)
    except PatchFailed as cause:
        raise JobFileRejected([_failed(operation, str(cause))]) from cause
    if not isinstance(made, dict):
        raise JobFileRejected([_failed(operation, "replaces the whole object by something that is none")])
    documents[index] = made


def _chosen(plan: LaunchPlan, documents: Documents, operation: Operation) -> Iterator[int]:
    """Yield the documents of the operation's kind; without one: that which runs the job."""
    wanted = operation.kind.lower() if operation.kind else plan.job.kubernetes.kind
    for index, document in enumerate(documents):
        if str(document.get("kind")).lower() == wanted:
            yield index


def _failed(operation: Operation, what: str) -> Diagnostic:
    return Diagnostic(
        "TL145",
        f"{operation.field} ({operation.op}) {what}",
        "correct it: `trainlaunch render` without the patch prints what it is applied to",
        why="an operation that can't be done would leave a text that nobody asked for",
        span=operation.span,
        field=operation.field,
    )


def _refuse_service(plan: LaunchPlan, name: str, known: set[str]) -> None:
    leaf = next(each for each in steps(plan) if isinstance(each, Leaf) and each.keys[:2] == ("services", name))
    raise JobFileRejected(
        [
            Diagnostic(
                "TL145",
                f"patches.compose adds the service {name} without image or build; the file has {', '.join(known)}",
                f"write services: {{{next(iter(known), 'NAME')}: …}} to change that one, or give {name} an image",
                why="Compose refuses a service that it can't start",
                span=leaf.span,
                field=leaf.field,
            )
        ]
    )
