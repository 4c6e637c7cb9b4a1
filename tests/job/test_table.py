"""The table of fields has the design's rows; the reference page, the schema and the defaults follow it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from trainlaunch.diagnostics import Report
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.fields.reference import json_schema, reference_markdown
from trainlaunch.job.fields.table import JOB, child, default, rows
from trainlaunch.job.reading.job_reader import read_job
from trainlaunch.job.spec import Gpus
from trainlaunch.job.values.value_reader import ValueReader
from trainlaunch.yamltree.strict import ScalarNode, parse_yaml

from tests import plain_yaml
from tests.job.test_valid_jobs import FILES as VALID

ROOT = Path(__file__).parents[2]
DESIGN = Path(__file__).parent / "design_fields.md"
INVALID = sorted((Path(__file__).parent / "invalid").glob("*.yaml"))

# The design's rows: field and default, in its words where it has some.
DESIGN_ROWS = {
    "name": "required",
    "image": "required",
    "pull_policy": "missing",
    "command": "this or script",
    "script": "this or command",
    "image_entrypoint": "unset",
    "working_dir": "image's",
    "user": "image's",
    "group_add": "[]",
    "read_only": "false",
    "stop_signal": "image's",
    "env": "{}",
    "labels": "{}",
    "annotations": "{}",
    "secrets": "{}",
    "secrets.NAME.env": "none",
    "secrets.NAME.file": "none",
    "secrets.NAME.kubernetes": "none",
    "secrets.NAME.as": "env",
    "mounts": "[]",
    "mounts[].type": "required",
    "mounts[].source": "none",
    "mounts[].target": "required",
    "mounts[].read_only": "false",
    "resources": "{}",
    "resources.cpus": "none",
    "resources.memory": "none",
    "resources.gpus": "0",
    "resources.gpu_vendor": "nvidia",
    "resources.gpu_resource": "nvidia.com/gpu",
    "resources.ephemeral_storage": "none",
    "resources.extended": "{}",
    "ranks_per_container": "auto",
    "shm_size": "auto",
    "shm_extra": "[]",
    "shm_extra[].name": "required",
    "shm_extra[].size": "none",
    "data_loader": "{}",
    "data_loader.batch_size": "none",
    "data_loader.sample": "none",
    "data_loader.sample[].shape": "required",
    "data_loader.sample[].dtype": "required",
    "data_loader.batch_bytes": "none",
    "data_loader.batch_bytes.size": "required",
    "data_loader.batch_bytes.tensors": "required",
    "data_loader.num_workers": "auto",
    "data_loader.max_workers": "16",
    "data_loader.prefetch_factor": "2",
    "data_loader.pin_memory": "true with GPUs",
    "data_loader.persistent_workers": "false",
    "data_loader.timeout": "0",
    "data_loader.collate": "stack",
    "data_loader.batches_held": "2",
    "data_loader.sharing_strategy": "file_descriptor",
    "data_loader.multiprocessing_context": "fork",
    "data_loader.dataset_tensor_bytes": "0",
    "data_loader.loaders": "{train: {}}",
    "data_loader.loaders_run": "together",
    "data_loader.inject": "env",
    "torchrun": "off",
    "torchrun.nproc_per_node": "gpus or 1",
    "torchrun.nnodes": "1",
    "torchrun.rdzv_backend": "c10d",
    "torchrun.rdzv_port": "29500",
    "torchrun.max_restarts": "0",
    "ulimits": "none",
    "healthcheck": "on",
    "healthcheck.interval": "30s",
    "healthcheck.timeout": "10s",
    "healthcheck.retries": "3",
    "healthcheck.start_period": "30m",
    "healthcheck.stall_after": "not watched",
    "observe": "where `run` and `up` start it on this host",
    "healthcheck.on_unhealthy": "report",
    "restart": "{}",
    "restart.max_attempts": "1",
    "restart.on_exit_codes": "any",
    "restart.backoff": "none",
    "checkpoint_dir": "none",
    "checkpoint_bytes": "none",
    "active_deadline": "none",
    "stop_grace_period": "30s",
    "ttl_after_finished": "none",
    "kubernetes": "{}",
    "kubernetes.namespace": "the context's",
    "kubernetes.kind": "job",
    "kubernetes.service_account": "none",
    "kubernetes.node_selector": "{}",
    "kubernetes.affinity": "none",
    "kubernetes.tolerations": "[]",
    "kubernetes.topology_spread": "[]",
    "kubernetes.runtime_class": "none",
    "kubernetes.host_network": "false",
    "kubernetes.queue": "none",
    "kubernetes.priority_class": "none",
    "kubernetes.scheduler_name": "none",
    "kubernetes.image_pull_secrets": "[]",
    "kubernetes.run_as": "uid",
    "kubernetes.fs_group": "1000",
    "kubernetes.pod_security": "restricted",
    "kubernetes.cpu_limit": "true",
    "kubernetes.annotations": "{}",
    "kubernetes.stable_name": "false",
    "kubernetes.token": "false",
    "kubernetes.prune": "false",
    "target_overrides": "{}",
    "patches": "{}",
    "patches.docker": "{}",
    "patches.docker.extra_args": "[]",
    "patches.compose": "{}",
    "patches.kubernetes": "[]",
    "patches.kubernetes[].op": "required",
    "patches.kubernetes[].path": "required",
    "patches.kubernetes[].from": "none",
    "patches.kubernetes[].value": "none",
    "patches.kubernetes[].kind": "the one that runs the job",
    "target": "docker",
}
# Not rows of the design's table; policies and their profiles are named beside it.
KNOWN_BESIDES = {"policy": "none", "profile": "none", "patches.kubernetes[].kinds": "all"}


def test_the_table_has_the_rows_of_the_design() -> None:
    """Names and defaults, row by row."""
    assert {path: field.default_text for path, field in rows()} == {**DESIGN_ROWS, **KNOWN_BESIDES}


def test_the_design_text_names_every_field() -> None:
    """Each name in the first column of the design's table is a row here, and each path of ours is named in its text."""
    text = DESIGN.read_text(encoding="utf-8")
    table = re.search(r"^\| field \| default .*?(?=\n\n)", text, re.MULTILINE | re.DOTALL)
    assert table
    first_cells = [line.split("|")[1] for line in table[0].splitlines()[2:]]
    named = {name for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)}
    ours = {path for path, _ in rows()}
    tops = {re.sub(r"\[\]$|\.(\*|T|NAME)$", "", name) for name in named}
    assert tops <= ours
    words = set(re.findall(r"\w+", text))
    rfc6902 = "patches.kubernetes[]."  # its words are JSON Patch's own
    assert {path.rpartition(".")[2] for path in DESIGN_ROWS if not path.startswith(rfc6902)} <= words


def test_defaults_read_back_as_themselves() -> None:
    """Each default that the page shows as a value is one that the reader takes for the same value."""
    for path, field in rows():
        if field.default is None or isinstance(field.default, (dict, tuple)) or "[" in path or "NAME" in path:
            continue
        node = parse_yaml(field.default_text, "default", Report())
        assert isinstance(node, ScalarNode)
        report = Report()
        found = ValueReader(report).read(field.type, node, path)
        assert not report.sorted(), path
        value = found.count if isinstance(found, Gpus) else found
        assert value == field.default == default(path), path


def test_child_follows_the_table() -> None:
    """Paths through maps and lists find their types; unknown names find none."""
    loaders = child(child(JOB, "data_loader"), "loaders")
    assert child(child(loaders, "val"), "batch_size") == child(child(JOB, "data_loader"), "batch_size")
    assert child(JOB, "colour") is None
    assert child(child(JOB, "name"), "x") is None
    with pytest.raises(KeyError):
        default("resources.colour")


def test_the_reference_page_is_current(golden: Callable[[Path, str], None]) -> None:
    """docs/job-file.md is what the table says."""
    golden(ROOT / "docs" / "job-file.md", reference_markdown())


def wrong_by_name(path: Path) -> bool:
    """Return whether an invalid job states an unknown field, or none where a value is asked."""
    beside = path.with_suffix(".txt")  # not there yet for a new file, whose own test says so
    expected = beside.read_text(encoding="utf-8") if beside.is_file() else ""
    return bool(re.search(r"^\d.*(TL104|has no value)", expected, re.MULTILINE))


def as_json(path: Path) -> Any:
    """Return a job file as an editor sees it."""
    return json.loads(json.dumps(plain_yaml.load(path.read_text(encoding="utf-8"))))


def complaints(document: Any) -> list[str]:
    """Return what the schema says about a document."""
    validator = jsonschema.Draft202012Validator(json_schema())
    return [each.message for each in validator.iter_errors(document)]


def test_the_schema_is_a_schema() -> None:
    """It validates against its own draft, and can be printed."""
    jsonschema.Draft202012Validator.check_schema(json_schema())
    assert json.loads(json.dumps(json_schema())) == json_schema()


@pytest.mark.parametrize("path", [each for each in VALID if each.stem != "every_field"], ids=lambda path: path.stem)
def test_the_schema_takes_valid_jobs(path: Path) -> None:
    """An editor shows no error in a job that trainlaunch reads."""
    assert not complaints(as_json(path))


def test_the_schema_takes_every_field() -> None:
    """The same for the file that states all of them."""
    assert not complaints(as_json(Path(__file__).parent / "valid" / "every_field.yaml"))


@pytest.mark.parametrize("path", [each for each in INVALID if wrong_by_name(each)], ids=lambda path: path.stem)
def test_the_schema_refuses_unknown_fields(path: Path) -> None:
    """What is wrong by name alone is wrong in the editor too."""
    assert complaints(as_json(path))


SMALL = {"name": "digits", "image": "a:1", "data_loader": {"batch_size": 1, "sample": {"shape": [2], "dtype": "int8"}}}
ARGV: dict[str, Any] = {"command": ["true"]}


@pytest.mark.parametrize(
    ("changed", "accepted"),
    [
        (ARGV, True),
        ({"script": "true"}, True),
        ({}, False),
        (ARGV | {"image": None}, False),
        (ARGV | {"name": None}, False),
        (ARGV | {"script": "true"}, False),
        ({"target_overrides": {"docker": ARGV}}, True),
        (ARGV | {"image": None, "target_overrides": {"docker": {"image": "b:1"}}}, True),
        (ARGV | {"image": None, "target_overrides": {"docker": {"user": "1"}}}, False),
        (ARGV | {"target_overrides": {"docker": {"command": None, "script": "true"}}}, True),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_the_schema_asks_for_what_a_job_needs(tmp_path: Path, changed: dict[str, Any], *, accepted: bool) -> None:
    """A missing image or command, and both command and script, are errors in the editor as they are of read_job."""
    document = {key: value for key, value in (SMALL | changed).items() if value is not None}
    path = tmp_path / "job.yaml"
    path.write_text(plain_yaml.dump(document))
    try:
        read_job(path, target="docker")
    except JobFileRejected:
        read = False
    else:
        read = True
    assert (not complaints(document), read) == (accepted, accepted)
