"""`trainlaunch doctor`: logs from anywhere, inspections, this machine; its documents and exit codes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.run import host_check

from tests import plain_yaml
from tests.conftest import Runs
from tests.diagnose.corpus import rows
from tests.jobs import write_job

ROWS = rows()
ENOSPC = "RuntimeError: unable to allocate shared memory(shm) for file </torch_1_2_3>: No space left on device (28)\n"
POD: dict[str, Any] = {
    "kind": "Pod",
    "spec": {
        "containers": [
            {
                "image": "ml/train:1",
                "resources": {"limits": {"memory": "8Gi"}},
                "volumeMounts": [{"name": "cache", "mountPath": "/dev/shm"}],
            }
        ],
        "volumes": [
            {"name": "cache", "emptyDir": {"medium": "Memory", "sizeLimit": "1Gi"}},
            {"name": "scratch", "emptyDir": {"medium": "Memory"}},
            {"name": "disk", "emptyDir": {}},
        ],
    },
    "status": {"phase": "Failed", "reason": "Evicted", "message": ""},
}


@pytest.fixture
def doctor(trainlaunch: Runs, tmp_path: Path) -> Callable[..., tuple[int, list[dict[str, Any]]]]:
    """Run it on a log, an inspection or both, and return its exit code and its diagnoses."""

    def explain(log: str | None = None, inspect: object = None, *more: str) -> tuple[int, list[dict[str, Any]]]:
        arguments = ["doctor", "--output", "json", *more]
        if log is not None:
            (tmp_path / "a.log").write_text(log)
            arguments += ["--log", str(tmp_path / "a.log")]
        if inspect is not None:
            (tmp_path / "inspect").write_text(inspect if isinstance(inspect, str) else json.dumps(inspect))
            arguments += ["--inspect", str(tmp_path / "inspect")]
        done = trainlaunch(*arguments)
        return done.returncode, json.loads(done.stdout)["diagnoses"]

    return explain


@pytest.mark.parametrize("name", ROWS)
def test_each_field_report_is_explained_from_its_own_files(name: str, doctor: Any) -> None:
    """As its row has them: the log, the exit code, what the engine says."""
    row = ROWS[name]
    code = [] if row.get("exit_code") is None else ["--exit-code", str(row["exit_code"])]
    returned, found = doctor(row["input"], row.get("inspect"), *code)
    assert returned == 0
    assert found[0]["symptom"] in row["symptom"]


def test_a_diagnosis_has_its_line_and_its_commands(doctor: Any) -> None:
    """The keys of a document."""
    _, (found,) = doctor(f"a\nb\n{ENOSPC}c\n")
    assert found["evidence"] == [{"source": "log", "line": 3, "text": ENOSPC.strip()}]
    assert found.keys() == {"code", "symptom", "confidence", "evidence", "cause", "fix", "commands", "echo_of"}
    assert (found["code"], found["confidence"]) == ("TL605", "certain")


def test_nothing_known_is_1_and_no_guess(trainlaunch: Runs, tmp_path: Path) -> None:
    """Thin evidence names what to look at next; a clean log names nothing."""
    log = tmp_path / "a.log"
    log.write_text("step 1\nsomething went\n")
    done = trainlaunch("doctor", "--log", str(log), "--exit-code", "3")
    assert done.returncode == 1
    assert "no known cause\n   = exit code: 3\n" in done.stdout
    document = json.loads(trainlaunch("doctor", "--log", str(log), "--output", "json").stdout)
    assert document["diagnoses"] == []


def test_a_job_that_ended_well_is_told_so(trainlaunch: Runs, tmp_path: Path) -> None:
    """Whoever asks why it died learns that it didn't."""
    log = tmp_path / "a.log"
    log.write_text("accuracy 0.98\n")
    done = trainlaunch("doctor", "--log", str(log), "--exit-code", "0")
    assert done.returncode == 0
    assert "no known cause: exit code 0 is that of a job that ended well\n   = exit code: 0\n" in done.stdout


@pytest.mark.parametrize(
    ("words", "cause"),
    [
        ('Usage of EmptyDir volume "cache" exceeds the limit "1Gi".', "/dev/shm took more than its size"),
        ('Usage of EmptyDir volume "scratch" exceeds the limit "1Gi".', "kept in memory"),
        ('Usage of EmptyDir volume "disk" exceeds the limit "1Gi".', "for its disk"),
        ("The node was low on resource: memory.", "the node ran out of memory"),
    ],
)
@pytest.mark.parametrize("as_yaml", [False, True])
def test_a_pods_own_volumes_tell_shm_from_disk(words: str, cause: str, as_yaml: bool, doctor: Any) -> None:
    """By where a volume is mounted, whatever its name, and by its medium."""

    pod = {**POD, "status": {**POD["status"], "message": words}}
    returned, found = doctor(None, plain_yaml.dump({"kind": "List", "items": [pod]}) if as_yaml else pod)
    assert (returned, found[0]["symptom"]) == (0, "evicted")
    assert cause in found[0]["cause"]


def test_without_the_pod_a_name_makes_shm_only_likely(doctor: Any) -> None:
    """An event alone."""
    event = {
        "kind": "Event",
        "reason": "Evicted",
        "message": 'Usage of EmptyDir volume "dshm" exceeds the limit "1Gi".',
    }
    _, found = doctor(None, event)
    assert (found[0]["symptom"], found[0]["confidence"]) == ("evicted", "likely")
    assert "/dev/shm" in found[0]["cause"]


def test_shm_size_of_docker_inspect_counts_only_where_it_is_in_effect(doctor: Any) -> None:
    """With ipc host it is what nobody uses."""
    own = {"HostConfig": {"IpcMode": "private", "ShmSize": 67108864}, "State": {"ExitCode": 1}}
    assert "/dev/shm of 64 MiB is full" in doctor(ENOSPC, [own])[1][0]["cause"]
    host = {"HostConfig": {"IpcMode": "host", "ShmSize": 67108864}, "State": {"ExitCode": 1}}
    assert "64 MiB" not in json.dumps(doctor(ENOSPC, [host])[1])


def test_a_job_file_gives_the_numbers_and_the_target(doctor: Any, tmp_path: Path) -> None:
    """A fix for a pod has no ulimits; one on workers names the script's own line."""
    (tmp_path / "train.py").write_text("from torch.utils.data import DataLoader\nDataLoader([], num_workers=8)\n")
    (tmp_path / "job.yaml").write_text(
        "name: job\nimage: a:1\ncommand: [python, /w/train.py]\nresources: {cpus: 2, memory: 8Gi}\nshm_size: 3Gi\n"
        "target_overrides: {docker: {mounts: [{type: bind, source: ., target: /w}]}}\n"
    )
    job = ("--job", str(tmp_path / "job.yaml"))
    assert "/dev/shm of 3.0 GiB is full" in doctor(ENOSPC, None, *job)[1][0]["cause"]
    files = doctor("RuntimeError: received 0 items of ancdata\n", None, *job, "--target", "kubernetes")[1][0]
    assert "ulimits" not in files["fix"]
    shared = "UserWarning: This DataLoader will create 8 worker processes in total. Our suggested max number of worker "
    shared += "in current system is 2, which is smaller than what this DataLoader is going to create.\n"
    assert "num_workers=2 at train.py:2" in doctor(shared, None, *job)[1][0]["fix"]


def test_a_job_that_no_plan_passes_has_numbers_too(doctor: Any, tmp_path: Path) -> None:
    """Its shm_size is below the need: whoever ran it all the same asks what it died of."""
    loader = "{num_workers: 4, batch_bytes: {size: 1Gi, tensors: 1}}"
    (tmp_path / "job.yaml").write_text(
        f"name: job\nimage: a:1\ncommand: [python]\nshm_size: 64Mi\ndata_loader: {loader}\n"
    )
    assert "/dev/shm of 64 MiB is full" in doctor(ENOSPC, None, "--job", str(tmp_path / "job.yaml"))[1][0]["cause"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("doctor", "mnist", "--log", "x"),
        ("doctor", "--exit-code", "1"),
        ("doctor", "--log", "/nowhere/at/all"),
        ("doctor", "--log", "-", "--inspect", "-"),
    ],
)
def test_arguments_that_mean_two_things_are_refused(arguments: tuple[str, ...], trainlaunch: Runs) -> None:
    """With one sentence, and 2."""
    done = trainlaunch(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error[TL118]" in done.stderr


@pytest.mark.parametrize("text", ["[1, 2]", "a: [", "{}", "just words"])
def test_an_inspection_that_is_none_is_refused(text: str, trainlaunch: Runs, tmp_path: Path) -> None:
    """Never silently left out."""
    (tmp_path / "x").write_text(text)
    done = trainlaunch("doctor", "--inspect", str(tmp_path / "x"))
    assert done.returncode == 2
    assert "docker inspect NAME" in done.stderr


def test_this_machine_is_looked_at_without_arguments(trainlaunch: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """0 where all is well, 1 and the value to type where something is wrong."""
    fine = host_check.HostCheck("engine", "docker 28.1, cgroup v2")
    monkeypatch.setattr(host_check, "check_host", lambda: (fine,))
    done = trainlaunch("doctor")
    assert (done.returncode, done.stdout) == (0, "engine       docker 28.1, cgroup v2\n")
    wrong = host_check.HostCheck(
        "/dev/shm", "missing", Diagnostic("TL628", "this host has no /dev/shm", fix="run `mount`")
    )
    monkeypatch.setattr(host_check, "check_host", lambda: (fine, wrong))
    done = trainlaunch("doctor", "--output", "json")
    document = json.loads(done.stdout)
    assert done.returncode == 1
    assert [each["symptom"] for each in document["diagnoses"]] == ["shm-missing"]
    assert [each["fine"] for each in document["machine"]] == [True, False]


def test_each_look_at_this_machine_tells_what_it_saw() -> None:
    """By the real machine: nothing is raised, and what is wrong has a fix."""
    found = host_check.check_host()
    assert {"engine", "GPUs", "/dev/shm", "open files", "memory", "cluster"} <= {each.name for each in found}
    assert all(each.seen for each in found)
    assert all(each.wrong.fix for each in found if each.wrong is not None)


def test_what_nobody_asked_an_engine_about_is_unknown(trainlaunch: Runs, tmp_path: Path) -> None:
    """Without an inspection it is not said that there was no OOM, nor that there was no limit."""
    log, inspected = tmp_path / "log", tmp_path / "inspect.json"
    log.write_text("step 3\n")
    done = trainlaunch("doctor", "--log", str(log), "--exit-code", "3")
    assert "exit code: 3\n   = OOMKilled: unknown\n   = memory limit: unknown\n" in done.stdout
    state = {"Status": "exited", "ExitCode": 3, "OOMKilled": False}
    inspected.write_text(json.dumps([{"Name": "/mnist", "State": state, "HostConfig": {"Memory": 0}}]))
    done = trainlaunch("doctor", "--log", str(log), "--inspect", str(inspected))
    assert "exit code: 3\n   = OOMKilled: false\n   = memory limit: none\n" in done.stdout


def test_a_command_names_the_container_of_an_inspection(trainlaunch: Runs, tmp_path: Path) -> None:
    """Podman's has no slash before it, and its own program."""
    inspected = tmp_path / "inspect.json"
    log = tmp_path / "log"
    log.write_text("RuntimeError: unable to write to file </torch_18692_1954506624>\n")
    state = {"Status": "running", "OOMKilled": False}
    inspected.write_text(json.dumps([{"Name": "mnist", "OCIRuntime": "crun", "State": state, "HostConfig": {}}]))
    done = trainlaunch("doctor", "--log", str(log), "--inspect", str(inspected))
    assert "= run: podman exec mnist df -h /dev/shm\n" in done.stdout


BUS_ERROR = "RuntimeError: DataLoader worker (pid 42) is killed by signal: Bus error.\n"
INSPECTED = '[{"Id": "x", "State": {"ExitCode": 137, "OOMKilled": true}, "RestartCount": 0}]'


def test_doctor_is_handed_anything(trainlaunch: Runs, tmp_path: Path) -> None:
    """A log by any name, stdin, an inspection beside it, several logs, a job file that never ran, a run that isn't."""
    log, other, inspected = tmp_path / "crash", tmp_path / "other.txt", tmp_path / "state.json"
    log.write_text(BUS_ERROR)
    other.write_text("nothing of note\n")
    inspected.write_text(INSPECTED)
    assert "cause[TL606]" in trainlaunch("doctor", str(log)).stdout
    assert "cause[TL606]" in trainlaunch("doctor", "-", input=BUS_ERROR).stdout
    both = trainlaunch("doctor", str(log), str(inspected)).stdout
    assert "cause[TL606]" in both
    assert "OOMKilled true" in both
    several = trainlaunch("doctor", str(log), str(other))
    assert (several.returncode, several.stdout.count(str(tmp_path))) == (1, 2)
    assert "TL510" in trainlaunch("doctor", "no-such-run", "--target", "local").stderr
    assert "only one can be what --inspect names" in trainlaunch("doctor", str(inspected), str(inspected)).stderr
    job = write_job(tmp_path, target="local")
    assert "TL510" in trainlaunch("doctor", str(job)).stderr
