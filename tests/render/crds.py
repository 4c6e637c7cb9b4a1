"""Kubernetes' own schemas and those of the CustomResourceDefinitions in tests/schemas, unknown fields refused."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

SCHEMAS = Path(__file__).resolve().parents[1] / "schemas"
VERSIONS = ("1.31", "1.32", "1.33", "1.34", "1.35", "1.36", "1.37")
_FILES = {
    "JobSet": "jobset.x-k8s.io_jobsets.yaml",
    "TrainJob": "trainer.kubeflow.org_trainjobs.yaml",
    "TrainingRuntime": "trainer.kubeflow.org_trainingruntimes.yaml",
    "PyTorchJob": "kubeflow.org_pytorchjobs.yaml",
}
_TEMPLATES = {
    "Pod": (),
    "Job": ("spec", "template"),
    "JobSet": ("spec", "replicatedJobs", "*", "template", "spec", "template"),
    "TrainingRuntime": ("spec", "template", "spec", "replicatedJobs", "*", "template", "spec", "template"),
    "PyTorchJob": ("spec", "pytorchReplicaSpecs", "*", "template"),
}


def pod_templates(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the pod templates of an object: mappings with metadata and spec."""
    if document["kind"] not in _TEMPLATES:
        return []
    places: list[Any] = [document]
    for key in _TEMPLATES[document["kind"]]:
        if key == "*":
            places = [each for place in places for each in (place.values() if isinstance(place, dict) else place)]
        else:
            places = [place[key] for place in places]
    return places


def validate(document: dict[str, Any], version: str) -> None:
    """Raise where an API server of `version` with strict field validation would refuse an object, or its pods."""
    if document["kind"] in _FILES:
        for error in _crd(document["kind"], document["apiVersion"]).iter_errors(document):
            raise error
    else:
        kubernetes_validate.validate(document, version, strict=True)
    for template in pod_templates(document):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]}
        kubernetes_validate.validate(pod, version, strict=True)


def refusal(document: dict[str, Any], version: str) -> str:
    """Return why such a server would refuse an object, empty where it takes it."""
    try:
        validate(document, version)
    except (jsonschema.ValidationError, kubernetes_validate.ValidationError) as refused:
        return f"{document['kind']}: {refused.message}"
    return ""


@cache
def _crd(kind: str, api_version: str) -> jsonschema.Draft202012Validator:
    path = SCHEMAS / _FILES[kind]
    definition = yaml.load(path.read_text(encoding="utf-8"), getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506
    group, version = api_version.split("/")
    assert definition["spec"]["group"] == group
    (found,) = [each for each in definition["spec"]["versions"] if each["name"] == version and each["served"]]
    schema = found["schema"]["openAPIV3Schema"]
    schema["properties"]["metadata"] = {"type": "object"}
    return jsonschema.Draft202012Validator(_strict(schema))


def _strict(schema: Any) -> Any:
    """Return a structural schema as JSON Schema that takes no field beyond those it names."""
    if not isinstance(schema, dict):
        return schema
    strict = dict(schema)
    if schema.get("x-kubernetes-int-or-string"):
        strict["type"] = ["integer", "string"]
    if "properties" in schema:
        strict["properties"] = {name: _strict(each) for name, each in schema["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            strict["additionalProperties"] = False
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            strict[key] = _strict(schema[key])
    return strict
