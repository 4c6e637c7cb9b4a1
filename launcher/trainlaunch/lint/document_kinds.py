"""Which kind of text the documents of YAML and JSON are, by what they hold."""

from __future__ import annotations

from trainlaunch.job.fields.table import JOB
from trainlaunch.rules.sources.source_text import (
    COMPOSE,
    DEVCONTAINER,
    ECS,
    GITHUB,
    GITLAB,
    KUBERNETES,
    SAGEMAKER,
    at,
    text_at,
)
from trainlaunch.yamltree.tolerant import Documents, Mapping, Node, Sequence

JOB_FILE = "job-file"
_OF_AWS = frozenset({"AWS::ECS::TaskDefinition", "AWS::Batch::JobDefinition"})
_OF_JOBS = frozenset(
    {"data_loader", "torchrun", "image_entrypoint", "target_overrides", "ranks_per_container", "shm_extra"}
)


def kind_of_documents(found: Documents) -> str | None:
    """Return the kind of a YAML text by what its documents hold; None for what lint doesn't read."""
    roots = [each for each in found.nodes if isinstance(each, Mapping)]
    if any("apiVersion" in each.items and "kind" in each.items for each in roots):
        return KUBERNETES
    for root in roots:
        kind = _of_root(root)
        if kind is not None:
            return kind
    return None


def _of_root(root: Mapping) -> str | None:
    if at(root, "local", "container_config") is not None or _is_job(root):
        return JOB_FILE if _is_job(root) else SAGEMAKER
    if at(root, "runs", "steps") is not None and at(root, "runs", "using") is not None:
        return GITHUB  # a composite action
    if {"containerDefinitions", "containerProperties"} & {*root.items} or _OF_AWS & _types(root):
        return ECS
    jobs = at(root, "jobs")
    if isinstance(jobs, Mapping) and any(at(each, "runs-on") or at(each, "uses") for each in jobs.items.values()):
        return GITHUB
    services = at(root, "services")
    if isinstance(services, Mapping) and any(_is_service(each) for each in services.items.values()):
        return COMPOSE
    if any(key in root.items for key in ("runArgs", "dockerComposeFile", "hostRequirements")):
        return DEVCONTAINER
    if any(isinstance(at(each, "script"), Sequence) for each in root.items.values()):
        return GITLAB
    return KUBERNETES if _has_pod(root, 0) else None


def _is_job(root: Mapping) -> bool:
    """Return whether a mapping is a job file: fields of one and nothing else, some of which only it has."""
    fields = {each.name for each in JOB.fields}
    keys = {*root.items}
    return keys <= fields and "image" in keys and bool(keys & {"command", "script"}) and bool(keys & _OF_JOBS)


def _types(root: Mapping) -> set[str | None]:
    """Return the types of a CloudFormation stack's resources."""
    resources = at(root, "Resources")
    found = resources.items.values() if isinstance(resources, Mapping) else ()
    return {text_at(each, "Type") for each in found}


def _is_service(node: Node) -> bool:
    keys = ("image", "build", "command", "extends", "shm_size")
    return isinstance(node, Mapping) and any(key in node.items for key in keys)


def _has_pod(node: Node, depth: int) -> bool:
    if depth > 12:
        return False
    if isinstance(node, Sequence):
        return any(_has_pod(each, depth + 1) for each in node.items)
    if not isinstance(node, Mapping):
        return False
    listed = node.items.get("containers")
    if isinstance(listed, Sequence) and any(at(each, "image") is not None for each in listed.items):
        return True
    return any(_has_pod(each, depth + 1) for each in node.items.values())
