"""What good job files mean: defaults, spellings, inheritance, overrides, --set and the origin of each value."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.loader_spec import BatchBytes, LoaderSpec, TensorSpec
from trainlaunch.job.spec import DEFAULT, Gpus, HealthCheck, JobSpec, Mount, Secret, ShmExtra, Torchrun, Ulimit
from trainlaunch.policy import read_job
from trainlaunch.units import GIB, MIB

VALID = Path(__file__).parent / "valid"
FILES = sorted(VALID.glob("*.yaml"))
MINIMAL = "name: job\nimage: trainer:1\ncommand: [python, train.py]\n"
Read = Callable[..., JobSpec]


def targets_of(path: Path) -> list[str]:
    """Return the targets that a valid job's first comment names."""
    found = re.search(r"^# targets: (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    assert found, path
    return found[1].split()


@pytest.fixture
def job(tmp_path: Path) -> Read:
    """Read MINIMAL with `text` below it."""

    def read(text: str = "", *, target: str | None = None, sets: tuple[str, ...] = ()) -> JobSpec:
        path = tmp_path / "job.yaml"
        path.write_text(MINIMAL + text, encoding="utf-8")
        return read_job(path, target=target, sets=sets)

    return read


def codes(read: Callable[[], object]) -> list[str]:
    """Return the codes with which a call is refused."""
    with pytest.raises(JobFileRejected) as caught:
        read()
    return [each.code for each in caught.value.diagnostics]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_valid_job_reads_for_each_of_its_targets(path: Path) -> None:
    """The file's own comment names the targets; every other target refuses it."""
    for target in ("docker", "compose", "kubernetes"):
        if target in targets_of(path):
            assert read_job(path, target=target).target == target
        else:
            assert codes(lambda target=target: read_job(path, target=target))  # type: ignore[misc]


def test_defaults_are_those_of_the_design(job: Read) -> None:
    """A minimal job gets the table's defaults."""
    found = job()
    assert (found.target, found.pull_policy, found.read_only, found.stop_grace_period) == (
        "docker",
        "missing",
        False,
        30,
    )
    assert (found.max_attempts, found.active_deadline, found.ttl_after_finished) == (1, None, None)
    assert (found.shm_size, found.ranks_per_container, found.torchrun) == (None, None, None)
    assert (found.script, found.image_entrypoint, found.working_dir, found.user) == (None, None, None, None)
    assert (found.env, found.labels, found.secrets, found.mounts, found.ulimits) == ({}, {}, {}, (), ())
    assert found.healthcheck == HealthCheck(30, 10, 3, 1800, "report")
    assert found.resources.gpus == Gpus(0, (), False)
    assert found.resources.gpu_resource == "nvidia.com/gpu"
    assert (found.kubernetes.kind, found.kubernetes.namespace) == ("job", None)
    assert found.data_loader.loaders == (LoaderSpec("train", None, None, None, None, 2, False, False, 0, "stack", 2),)
    assert (found.data_loader.max_workers, found.data_loader.inject) == (16, "env")
    assert (found.data_loader.sharing_strategy, found.data_loader.multiprocessing_context) == (
        "file_descriptor",
        "fork",
    )


def test_every_field_arrives_typed() -> None:
    """One file states every field that this version supports; sizes are bytes, CPUs thousandths, durations seconds."""
    found = read_job(VALID / "every_field.yaml")
    assert found.target == "compose"
    assert found.resources.cpus == 1500
    assert found.resources.memory == 16 * GIB
    assert found.resources.gpus == Gpus(2, ("0", "GPU-1b2c3d4e-0000-1111-2222-333344445555"), False)
    assert (found.shm_size, found.shm_extra) == (2 * GIB, (ShmExtra("ray", 512 * MIB),))
    assert found.secrets == {"TOKEN": Secret("HUB_TOKEN", None, "hub/token", False)}
    assert found.mounts[1] == Mount("volume", "data", "/data", True)
    assert found.mounts[3] == Mount("scratch", None, "/scratch", False)
    assert found.torchrun == Torchrun(2, 1, "c10d", 29501, 1)
    assert found.ulimits == (Ulimit("memlock", -1, -1), Ulimit("nofile", 1024, 65536))
    assert found.healthcheck == HealthCheck(60, 5, 5, 5400, "stop", 2700)
    assert (found.active_deadline, found.stop_grace_period, found.ttl_after_finished) == (172800, 90, 3600)
    assert found.script == "set -x\nexec python train.py --lr=1e-3\n"
    assert found.command is None
    assert found.image_entrypoint == ("/opt/entrypoint.sh",)
    assert found.data_loader.dataset_tensor_bytes == MIB
    assert found.data_loader.inject == "env"


def test_strings_keep_their_source_spelling() -> None:
    """A plain scalar in env or labels is the text that the file shows, whatever YAML would make of it."""
    found = read_job(VALID / "every_field.yaml")
    assert found.env == {
        "A": "no", "B": "1e3", "C": "08", "D": "0123", "E": "12:30:45",
        "F": "true", "G": "", "H": "~x", "I": "1.0", "J": "null",
    }  # fmt: skip
    assert found.labels["com.example/cost-centre"] == "0042"
    assert found.group_add == ("100", "video")


def test_loaders_inherit_from_data_loader() -> None:
    """A loader takes what it doesn't state; its own batch_bytes replaces an inherited sample."""
    train, val, stream = read_job(VALID / "every_field.yaml").data_loader.loaders
    sample = (TensorSpec((3, 32, 32), "uint8"),)
    assert train == LoaderSpec("train", 32, sample, None, 2, 4, False, True, 60, "list", 3)
    assert val == LoaderSpec("val", 32, None, BatchBytes(3 * MIB, 2), None, 4, True, True, 60, "list", 3)
    assert (stream.batch_size, stream.sample) == (None, sample)


def test_pin_memory_defaults_to_gpus(job: Read) -> None:
    """Unstated, pin_memory is whether GPUs are asked for; all of the machine's counts as some."""
    assert not job().data_loader.loaders[0].pin_memory
    assert job("resources: {gpus: 1}\n").data_loader.loaders[0].pin_memory
    assert job("resources: {gpus: all}\nranks_per_container: 1\n").data_loader.loaders[0].pin_memory
    stated = "resources: {gpus: 1}\ndata_loader: {loaders: {val: {pin_memory: false}}}\n"
    assert not job(stated).data_loader.loaders[0].pin_memory


def test_a_null_batch_size_needs_no_batch_size(job: Read) -> None:
    """null says that the dataset yields batches; leaving the field out while a sample is given says nothing."""
    sample = "sample: {shape: [8, 3], dtype: float32}"
    assert job(f"data_loader: {{batch_size: null, {sample}}}\n").data_loader.loaders[0].sized
    assert codes(lambda: job(f"data_loader: {{{sample}}}\n")) == ["TL106"]


def test_merge_keys_and_aliases_are_read() -> None:
    """`<<` adds what isn't stated beside it, the first of several mappings wins, and an alias is its value."""
    train, val, test = read_job(VALID / "aliases.yaml").data_loader.loaders
    assert (val.batch_size, val.prefetch_factor, val.sample) == (16, 3, train.sample)
    assert (test.collate, test.prefetch_factor, test.sample) == ("list", 3, train.sample)


def test_overrides_merge_mappings_and_replace_lists() -> None:
    """target_overrides.T is laid over the job for T only; null is the default."""
    path = VALID / "every_field.yaml"
    here, there = read_job(path, target="docker"), read_job(path, target="kubernetes")
    assert (len(here.mounts), [each.type for each in there.mounts]) == (4, ["pvc", "config"])
    assert there.resources.memory == here.resources.memory
    assert there.resources.gpus == Gpus(2, (), False)
    assert there.labels == {"team": "vision"}
    assert (there.stop_signal, there.ulimits) == (None, ())


def test_an_override_of_batch_size_may_be_null(job: Read) -> None:
    """null is a value of batch_size, so an override or a --set can state it."""
    base = "data_loader: {batch_size: 8, sample: {shape: [3], dtype: float32}}\n"
    over = "target_overrides: {docker: {data_loader: {batch_size: null}}}\n"
    assert job(base + over).data_loader.loaders[0].batch_size is None
    assert job(base, sets=("data_loader.batch_size=null",)).data_loader.loaders[0].batch_size is None


def test_a_set_at_the_end_of_a_list_appends(job: Read) -> None:
    """The index that comes next, also of a list that the file doesn't state; several build one item."""
    before = job().command or ()
    sets = tuple(f"command.{len(before) + index}={word}" for index, word in enumerate(("--amp", "--fast")))
    assert job(sets=sets).command == (*before, "--amp", "--fast")
    sets = ("mounts.0.type=bind", "mounts.0.source=./src", "mounts.0.target=/src")
    assert [(each.source, each.target) for each in job(sets=sets).mounts] == [("./src", "/src")]


def test_set_is_last_and_reaches_everything(job: Read) -> None:
    """--set wins over target_overrides; it reaches list items, free keys with dots and loaders not yet there."""
    text = "shm_size: 1Gi\nenv: {A: b}\ntarget_overrides: {docker: {shm_size: 2Gi}}\n"
    sets = ("shm_size=3Gi", "command.1=eval.py", "labels.com.example/a.b=08", "env.A=null", "env.B=a=b",
            "data_loader.loaders.val.batch_size=4", "resources={memory: 8Gi}", "resources.cpus=2")  # fmt: skip
    found = job(text, sets=sets)
    assert found.shm_size == 3 * GIB
    assert found.command == ("python", "eval.py")
    assert found.labels == {"com.example/a.b": "08"}
    assert found.env == {"B": "a=b"}
    assert [each.name for each in found.data_loader.loaders] == ["val"]
    assert (found.resources.memory, found.resources.cpus) == (8 * GIB, 2000)


def test_set_of_target_chooses_the_target(job: Read) -> None:
    """--set target=T counts before the job's own; an explicit target counts before both."""
    text = "target: kubernetes\n"
    assert job(text, sets=("target=compose",)).target == "compose"
    assert job(text, sets=("target=compose",), target="docker").target == "docker"


def test_later_sets_win(job: Read) -> None:
    """Sets are laid on in order."""
    assert job(sets=("shm_size=1Gi", "shm_size=2Gi")).shm_size == 2 * GIB


def test_each_stated_value_knows_its_origin() -> None:
    """Origins have the line of the job file, say which came from target_overrides, and have no place for --set."""
    path = VALID / "every_field.yaml"
    found = read_job(path, target="kubernetes", sets=("shm_size=4Gi", "script=null", "command=[a, b]"))
    lines = path.read_text(encoding="utf-8").splitlines()
    for field, text in (
        ("resources.memory", "16g"),
        ("env.C", "08"),
        ("data_loader.loaders.val.batch_bytes.size", "3Mi"),
        ("shm_extra.0.size", "512m"),
        ("image_entrypoint.0", "/opt/entrypoint.sh"),
        ("torchrun.rdzv_port", "29501"),
    ):
        span = found.span(field)
        assert span is not None
        assert (span.file, found.origin(field).kind) == (str(path), "job")
        assert lines[span.line - 1][span.column - 1 : span.end_column - 1] == text
    assert found.origin("resources.extended.rdma/hca").kind == "target_overrides"
    assert found.origin("mounts.1.source").kind == "target_overrides"
    assert found.origin("shm_size").kind == "--set"
    assert found.span("command.1") is None
    assert found.origin("pull_policy").kind == "job"
    assert found.origin("stop_signal") is DEFAULT
    assert "ulimits" not in found.origins


def test_unknown_targets_are_refused(job: Read) -> None:
    """One that nobody knows."""
    assert codes(lambda: job(target="podmann")) == ["TL107"]


def test_errors_of_all_targets_come_at_once(job: Read) -> None:
    """An override's errors are said whatever the target, in the order of the file, each once."""
    text = "shm_size: 8G\ntarget_overrides:\n  compose: {shm_size: 8M}\n  docker: {shm_size: 9G}\n"
    with pytest.raises(JobFileRejected) as caught:
        job(text, target="docker")
    places = [(each.span.line, each.code) for each in caught.value.diagnostics if each.span]
    assert places == [(4, "TL108"), (6, "TL108"), (7, "TL108")]


def test_a_secret_written_into_the_file_is_not_repeated(tmp_path: Path) -> None:
    """No message, reason, fix or --set label holds what someone put where a reference belongs."""
    path = Path(__file__).parent / "invalid" / "secret_in_the_file.yaml"
    with pytest.raises(JobFileRejected) as from_file:
        read_job(path)
    small = tmp_path / "job.yaml"
    small.write_text(MINIMAL, encoding="utf-8")
    with pytest.raises(JobFileRejected) as from_set:
        read_job(small, sets=("secrets.TOKEN=hunter2",))
    for each in (*from_file.value.diagnostics, *from_set.value.diagnostics):
        assert "hunter" not in repr(each)


def test_unknown_keys_get_suggestions_only_while_they_help(job: Read) -> None:
    """Thousands of unknown keys are all named, without comparing each with every field."""
    with pytest.raises(JobFileRejected) as caught:
        job("".join(f"imagee{number}: 1\n" for number in range(200)))
    fixes = [each.fix for each in caught.value.diagnostics]
    assert len(fixes) == 200
    assert fixes[0] == "write image"
    assert "docs/job-file.md" in fixes[-1]
