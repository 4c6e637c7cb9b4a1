"""The text of a target with the job's patch: rendered without it, and edited, so that all else stays as it was.

Nothing of the rendered file is escaped again. What a merge patch brings into a Compose file is literal, as all strings
of a job file are, so each `$` of it is doubled; a JSON Patch speaks Kubernetes' own language, `$(NAME)` included.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import yaml

from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import JobFileRejected, RenderingDisagrees
from trainlaunch.job.patch import Leaf, Operation
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render.json_patch import PatchFailed, after, changes_of, merge_changes, merged_after
from trainlaunch.templating.quoting import dollars
from trainlaunch.yamltree.changes import Change, EditRefused
from trainlaunch.yamltree.editor import Editor

Documents = list[dict[str, Any]]


def patched(plan: LaunchPlan, bare: str) -> str:
    """Return `bare`, the text without the patch, with it.

    Raises JobFileRejected (TL145) where an operation can't be done, and RenderingDisagrees (TL902) where the edited
    text is not what the patch makes of the values.
    """
    wanted = patched_documents(plan, bare)
    *_, text = (bare, *patched_texts(plan, bare))
    if _exact(documents_of(text)) != _exact(wanted):
        raise RenderingDisagrees([_misedited(plan)])
    return text


def patched_texts(plan: LaunchPlan, bare: str) -> Iterator[str]:
    """Yield `bare`, the text without the patch, after each step of it. Raises as `patched` does."""
    editor, documents = Editor(bare), documents_of(bare)
    for step in steps(plan):
        index, made = _done(plan, documents, step)
        before, documents[index] = documents[index], made
        if isinstance(step, Operation):  # it names one place, and an edit at an anchor would change each alias too
            editor = editor.expanded(index)
        changes = merge_changes(before, made, step.keys) if isinstance(step, Leaf) else changes_of(before, step)
        try:
            for change in changes:
                editor = _edited(editor, change, index)
        except EditRefused as cause:
            raise RenderingDisagrees([_misedited(plan)]) from cause
        yield editor.text


def _edited(editor: Editor, change: Change, index: int) -> Editor:
    """Return the text after a change; what other nodes of a Compose file merge is written out first where need be."""
    try:
        return editor.after(change, index)
    except EditRefused:
        return editor.expanded(index).after(change, index)


def steps(plan: LaunchPlan) -> tuple[Operation | Leaf, ...]:
    """Return what the patch does to a file of documents, one after the other."""
    patch = plan.job.patch
    return () if patch is None else (*patch.operations, *patch.leaves)


def patched_documents(plan: LaunchPlan, bare: str) -> Documents:
    """Return the documents of `bare`, the text without the patch, after it. Raises JobFileRejected (TL145)."""
    documents = documents_of(bare)
    known = set(documents[0].get("services", {}))
    for step in steps(plan):
        index, made = _done(plan, documents, step)
        documents[index] = made
    if plan.target_record.patch == "merge":
        services = documents[0].get("services")
        for name, service in services.items() if isinstance(services, dict) else ():
            if name not in known and not (isinstance(service, dict) and {"image", "build"} & service.keys()):
                _refuse_service(plan, name, known)
    return documents


def documents_of(text: str) -> Documents:
    """Return the documents of a rendered file, which are the caller's own to change, each alias a value of its own."""
    found: Documents = _unshared(_parsed(text))
    return found


def _unshared(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _unshared(item) for key, item in value.items()}
    return [_unshared(each) for each in value] if isinstance(value, list) else value


@lru_cache(maxsize=8)
def _parsed(text: str) -> Documents:
    """Return them as they were parsed once: a patched file and the one below it are each asked for ten times."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return list(yaml.load_all(text, loader))


def _done(plan: LaunchPlan, documents: Documents, step: Operation | Leaf) -> tuple[int, dict[str, Any]]:
    """Return which document a step changes, and what it makes of it."""
    return (0, _merged(documents[0], step)) if isinstance(step, Leaf) else _operated(plan, documents, step)


def _exact(documents: Documents) -> str:
    """Return documents as a text that tells 1 from 1.0 and true, and one order of keys not from another."""
    return json.dumps(documents, sort_keys=True, default=repr)


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


def _operated(plan: LaunchPlan, documents: Documents, operation: Operation) -> tuple[int, dict[str, Any]]:
    index = next(_chosen(plan, documents, operation), None)
    if index is None:
        kinds = ", ".join(str(each.get("kind")) for each in documents)
        raise JobFileRejected([_failed(operation, f"names the kind {operation.kind}, and the file has {kinds}")])
    try:
        made = after(documents[index], operation)
    except PatchFailed as cause:
        raise JobFileRejected([_failed(operation, str(cause))]) from cause
    if not isinstance(made, dict):
        raise JobFileRejected([_failed(operation, "replaces the whole object by something that is none")])
    return index, made


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
        why="an operation that can't be done would leave a file that nobody asked for",
        span=operation.span,
        field=operation.field,
    )


def _misedited(plan: LaunchPlan) -> Diagnostic:
    return Diagnostic(
        "TL902",
        f"the rendered {plan.target} file with the job's patch does not say what the patch makes of its values",
        "report it with the job file",
        why="a patched file is edited where the patch changes it, and then read back; this one would start another job",
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
