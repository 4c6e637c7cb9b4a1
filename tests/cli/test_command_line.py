"""The command line's manners: exit codes, streams, help, and files written whole or not at all."""

from __future__ import annotations

import json
import os
import re
import shlex
from pathlib import Path

import pytest
from trainlaunch.cli.arguments.verb_table import VERBS

from tests.conftest import Runs
from tests.jobs import write_job
from tests.runners import no_file_may_grow

PORTABLE = {"resources": {"cpus": 4, "memory": "8Gi"}, "image_entrypoint": []}


def line_of(path: Path, text: str) -> int:
    """Return the number of the first line that holds `text`."""
    return next(n for n, line in enumerate(path.read_text().splitlines(), start=1) if text in line)


def test_no_verb_is_a_usage_error(trainlaunch: Runs) -> None:
    """Exit 2, and the usage on stderr."""
    done = trainlaunch()
    assert done.returncode == 2
    assert done.stdout == ""
    assert "usage: trainlaunch" in done.stderr


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_each_verb_has_help_with_examples_and_exit_codes(trainlaunch: Runs, verb: str) -> None:
    """Help suffices to use a verb."""
    done = trainlaunch(verb, "--help")
    assert done.returncode == 0
    assert "examples:" in done.stdout
    assert "exit codes:" in done.stdout


def test_an_unknown_verb_names_the_nearest(trainlaunch: Runs) -> None:
    """A typo is one suggestion away."""
    done = trainlaunch("rendr")
    assert done.returncode == 2
    assert "fix: write render" in done.stderr


def test_swapped_letters_of_a_verb_are_a_typo(trainlaunch: Runs) -> None:
    """Two letters in the wrong order are the commonest slip, and change a short word much."""
    assert "fix: write plan" in trainlaunch("plna", "job.yaml").stderr


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["plan", "job.yaml", "--sett", "a=b"], "write --set"),
        (["plan", "job.yaml", "--taget=docker"], "write --target"),
        (["plan", "job.yaml", "--target", "dockr"], "write --target docker"),
        (["plan", "job.yaml", "-o", "jsno"], "write --output json"),
        (
            ["plan", "job.yaml", "--memory", "8Gi"],
            "write --set resources.memory=8Gi, or resources.memory in the job file",
        ),
        (["plan", "job.yaml", "--elsewhere", "8Gi"], "`trainlaunch plan --help` tells what it takes"),
        (["plan", "job.yaml", "other.yaml"], "`trainlaunch plan --help` tells what it takes"),
    ],
)
def test_a_misspelt_argument_gets_the_nearest_and_the_verbs_usage(
    trainlaunch: Runs, words: list[str], fix: str
) -> None:
    """An option or one of its words; what is near to nothing leads to the verb's help."""
    done = trainlaunch(*words)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: trainlaunch plan [-h]")
    assert f"fix: {fix}\n" in done.stderr


def test_a_file_of_another_kind_is_told_by_its_first_errors(trainlaunch: Runs, tmp_path: Path) -> None:
    """Ten are printed, all are counted, and who asks for JSON gets all."""
    job = write_job(tmp_path, **{f"wrong{number}": number for number in range(37)})
    done = trainlaunch("plan", str(job))
    assert done.stderr.count("error[TL104]") == 10
    assert done.stderr.endswith("37 problems; these are the first 10\n")
    document = json.loads(trainlaunch("plan", str(job), "-o", "json").stdout)
    assert len(document["findings"]) == 37


def test_a_verb_that_is_another_word_is_no_typo(trainlaunch: Runs) -> None:
    """`hint` shares letters with `lint` and means something else."""
    done = trainlaunch("hint")
    assert done.returncode == 2
    assert "fix: `trainlaunch --help` lists the commands" in done.stderr


def test_plan_json_is_one_stable_document(trainlaunch: Runs, tmp_path: Path) -> None:
    """Bytes are integers, and every number has a derivation and an origin."""
    job = write_job(tmp_path, resources={"cpus": 8, "memory": "32Gi", "gpus": 1}, data_loader={"collate": "none"})
    document = json.loads(trainlaunch("plan", str(job), "-o", "json").stdout)
    assert document["schema_version"] == 3
    assert document["num_workers"] == 8
    assert document["shm"]["size"] == 2**31
    assert {"need", "worst_case", "size"} <= set(document["shm"])
    assert document["derivations"]["num_workers"]["origin"] == f"{job}:{line_of(job, 'cpus:')}"


def test_plan_json_stays_one_document_when_the_job_is_bad(trainlaunch: Runs, tmp_path: Path) -> None:
    """A machine that asked for JSON reads JSON, with the findings, also on failure."""
    done = trainlaunch("plan", str(write_job(tmp_path, image=None, nmae="x")), "-o", "json")
    assert done.returncode == 1
    document = json.loads(done.stdout)
    assert document["schema_version"] == 3
    assert {each["code"] for each in document["findings"]} == {"TL104", "TL106"}


@pytest.mark.parametrize("verb", ["plan", "render"])
def test_all_errors_of_a_file_come_at_once(trainlaunch: Runs, tmp_path: Path, verb: str) -> None:
    """Exit 1, nothing on stdout, each error with file:line:column."""
    job = write_job(tmp_path, imgae="x", resources={"memory": "8G", "cpus": "many"})
    done = trainlaunch(verb, str(job))
    assert (done.returncode, done.stdout) == (1, "")
    for code in ("TL104", "TL108"):
        assert f"error[{code}]" in done.stderr
    assert f"{job}:{line_of(job, 'imgae:')}:1" in done.stderr


def test_set_overrides_one_invocation_and_plan_shows_it(trainlaunch: Runs, tmp_path: Path) -> None:
    """--set is last in the precedence and visible as an origin."""
    job = write_job(tmp_path, data_loader={"num_workers": 1, "collate": "none"})
    done = trainlaunch("plan", str(job), "--why", "--set", "data_loader.num_workers=3")
    assert re.search(r"num_workers +3 ", done.stdout)
    assert "--set" in done.stdout


def test_render_writes_files_and_refuses_to_overwrite_a_change(trainlaunch: Runs, tmp_path: Path) -> None:
    """A file that differs stays as it is, and so do the others."""
    job, out = write_job(tmp_path, **PORTABLE), tmp_path / "deploy"
    assert trainlaunch("render", str(job), "--target", "all", "--write-to", str(out)).returncode == 0
    names = sorted(path.name for path in out.iterdir())
    assert names == ["digits.compose.yaml", "digits.docker-run.sh", "digits.kubernetes.yaml"]
    (out / names[0]).write_text("mine\n")
    (out / names[1]).unlink()
    again = trainlaunch("render", str(job), "--target", "all", "--write-to", str(out))
    assert again.returncode == 2
    assert "TL115" in again.stderr
    assert (out / names[0]).read_text() == "mine\n"
    assert not (out / names[1]).exists()
    assert trainlaunch("render", str(job), "--target", "all", "--write-to", str(out), "--overwrite").returncode == 0
    assert (out / names[0]).read_text() != "mine\n"


def test_render_says_once_how_to_measure_an_unsized_job(trainlaunch: Runs, tmp_path: Path) -> None:
    """For all targets together, beside the text; one whose batches are stated is silent."""
    job = write_job(tmp_path, **PORTABLE, data_loader={})
    done = trainlaunch("render", str(job), "--target", "all")
    assert done.returncode == 0
    assert done.stderr.count("trainlaunch probe") == 1
    sized = ("--set", "data_loader.batch_bytes={size: 1Mi, tensors: 1}")
    assert "trainlaunch probe" not in trainlaunch("render", str(job), "--target", "all", *sized).stderr


def test_render_leaves_nothing_half_written_on_a_full_disk(trainlaunch: Runs, tmp_path: Path) -> None:
    """One clear error; no partial or temporary file."""
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("this host has no /dev/full")
    job, out = write_job(tmp_path, **PORTABLE), tmp_path / "out"
    done = trainlaunch("render", str(job), "--target", "docker", "--write-to", str(out), preexec_fn=no_file_may_grow)
    assert done.returncode == 2
    assert "TL116" in done.stderr
    assert list(out.iterdir()) == []


def test_a_reader_that_goes_away_is_no_traceback(trainlaunch: Runs, tmp_path: Path) -> None:
    """`trainlaunch render … | head -0` ends quietly."""
    job = write_job(tmp_path, **PORTABLE)
    reader, writer = os.pipe()
    os.close(reader)
    done = trainlaunch("render", str(job), stdout=writer, stderr=-1, capture_output=False)
    os.close(writer)
    assert "Traceback" not in done.stderr
    assert "Exception" not in done.stderr


def test_colour_follows_the_stream_and_no_color(trainlaunch: Runs, tmp_path: Path) -> None:
    """No escape codes off-terminal; FORCE_COLOR brings them, NO_COLOR wins."""
    job = str(write_job(tmp_path, image=None))
    assert "\x1b[" not in trainlaunch("plan", job).stderr
    assert "\x1b[" in trainlaunch("plan", job, env={"FORCE_COLOR": "1", "NO_COLOR": ""}).stderr
    assert "\x1b[" not in trainlaunch("plan", job, env={"FORCE_COLOR": "1", "NO_COLOR": "1"}).stderr


def test_a_missing_file_is_one_clear_error(trainlaunch: Runs) -> None:
    """A wrong path names the path."""
    done = trainlaunch("plan", "nowhere.yaml")
    assert done.returncode == 1
    assert "nowhere.yaml does not exist" in done.stderr


def test_a_missing_file_is_told_the_nearest_one(trainlaunch: Runs, tmp_path: Path) -> None:
    """Swapped letters are the commonest slip here too; a lock is no job file."""
    write_job(tmp_path)
    (tmp_path / "jbo.lock.yaml").write_text("")
    assert f"fix: write {tmp_path / 'job.yaml'}\n" in trainlaunch("plan", str(tmp_path / "jbo.yaml")).stderr


@pytest.mark.parametrize("verb", ["plan", "up", "probe", "tune"])
def test_a_script_in_the_place_of_a_job_file_is_told_what_drafts_one(
    trainlaunch: Runs, tmp_path: Path, verb: str
) -> None:
    """The command can be pasted, whatever the folder is called."""
    script = tmp_path / "my jobs" / "train.py"
    script.parent.mkdir()
    script.write_text('"""Trains."""\n')
    done = trainlaunch(verb, str(script))
    assert done.returncode == (125 if verb == "up" else 1)
    (command,) = re.findall("fix: `(.*)` drafts a job file", done.stderr)
    assert shlex.split(command) == ["trainlaunch", "init", str(script), "--write-to", "job.yaml"]
    drafted = trainlaunch(*shlex.split(command)[1:], cwd=tmp_path)
    assert drafted.returncode == 0
    assert "`trainlaunch plan job.yaml` shows what follows" in drafted.stderr


def test_the_schema_is_json(trainlaunch: Runs) -> None:
    """`schema` prints the JSON Schema of the job file."""
    schema = json.loads(trainlaunch("schema").stdout)
    assert "shm_size" in schema["properties"]


def test_up_gives_125_for_a_bad_job_file(trainlaunch: Runs, tmp_path: Path) -> None:
    """Nothing of the job ran, so the code is docker's own for that."""
    assert trainlaunch("up", str(write_job(tmp_path, image=None))).returncode == 125


@pytest.mark.parametrize("verb", ["plan", "render", "schema"])
def test_planning_verbs_import_no_heavy_package(trainlaunch: Runs, tmp_path: Path, verb: str) -> None:
    """They start fast: no pydantic, rich, docker or kubernetes."""
    job = [] if verb == "schema" else [str(write_job(tmp_path, **PORTABLE))]
    done = trainlaunch(verb, *job, env={"PYTHONPROFILEIMPORTTIME": "1"})
    assert done.returncode == 0
    imported = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "trainlaunch" in imported
    assert imported & {"pydantic", "rich", "docker", "kubernetes", "torch", "requests"} == set()


@pytest.mark.parametrize("verb", ["up", "render"])
@pytest.mark.parametrize("option", ["--namespace=research", "--kind=jobset"])
def test_an_option_of_a_cluster_is_refused_elsewhere(trainlaunch: Runs, tmp_path: Path, verb: str, option: str) -> None:
    """It would do nothing there, and a rendering's header would name it."""
    done = trainlaunch(verb, str(write_job(tmp_path, **PORTABLE)), "--target", "compose", option)
    assert (done.returncode, done.stdout) == (2, "")
    name = option.partition("=")[0]
    assert f"error[TL118]: {name} names " in done.stderr
    assert f"and the target is compose\n   = fix: add `--target kubernetes`, or leave out {name}\n" in done.stderr


def test_a_cluster_is_named_for_all_targets_at_once(trainlaunch: Runs, tmp_path: Path) -> None:
    """Of all targets one is a cluster."""
    job = str(write_job(tmp_path, **PORTABLE))
    done = trainlaunch("render", job, "--target", "all", "--namespace", "research", "--kind", "jobset")
    assert done.returncode == 0, done.stderr
    assert 'namespace: "research"' in done.stdout
    assert 'kind: "JobSet"' in done.stdout


OTHERS = {
    ("exec", "digits", "bash"): "write trainlaunch shell RUN -- COMMAND",
    ("stop", "digits"): "write trainlaunch down RUN",
    ("apply", "-f", "job.yaml"): "write trainlaunch up JOB",
    ("up", "job.yaml", "--gpus", "1"): "write --set resources.gpus=1, or resources.gpus in the job file",
    ("plan", "job.yaml", "--shm-size=2g"): "write --set shm_size=2g, or shm_size in the job file",
    ("up", "job.yaml", "-e", "A=b"): "write --set env.A=b, or env in the job file",
}


@pytest.mark.parametrize("words", OTHERS, ids=" ".join)
def test_what_other_programs_take_names_what_does_it_here(trainlaunch: Runs, words: tuple[str, ...]) -> None:
    """A verb of docker or kubectl, an option of docker run; nothing is started."""
    done = trainlaunch(*words)
    assert done.returncode == 2
    assert OTHERS[words] in " ".join(done.stderr.split())


def test_the_job_of_this_folder_needs_no_name(
    trainlaunch: Runs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And k8s is kubernetes."""
    write_job(tmp_path, **PORTABLE)
    monkeypatch.chdir(tmp_path)
    assert "(job.yaml)" in trainlaunch("plan").stdout
    assert "target kubernetes" in trainlaunch("plan", "--target", "k8s").stdout


def test_help_shows_the_verbs_in_groups(trainlaunch: Runs) -> None:
    """Each verb once, those that need no job file first."""
    shown = trainlaunch("--help").stdout
    places = [
        shown.index(f"    {verb} ") if f"    {verb} " in shown else shown.index(f"    {verb}\n") for verb in VERBS
    ]
    assert places == sorted(places)
    assert shown.index("start here:") < places[0] < shown.index("with a job file:") < shown.index("measure:")


def test_a_plan_is_eight_lines_of_at_most_a_hundred_characters(trainlaunch: Runs, tmp_path: Path) -> None:
    """What is decided and who decides the workers; how each number follows is asked for by --why."""
    loader = "from torch.utils.data import DataLoader\nDataLoader([], 2, num_workers=3)\n"
    (tmp_path / "train.py").write_text(loader)
    mounts = [{"type": "bind", "source": ".", "target": "/workspace"}]
    resources, loaders = {"cpus": 2, "memory": "2Gi"}, {"batch_size": 2, "num_workers": 3}
    fields = {"working_dir": "/workspace", "mounts": mounts, "resources": resources, "data_loader": loaders}
    write_job(tmp_path, **fields)
    done = trainlaunch("plan", "job.yaml", cwd=tmp_path)
    rows = dict(each.split(maxsplit=1) for each in done.stdout.splitlines())
    assert list(rows) == ["job", "/dev/shm", "memory", "workers", "threads", "GPUs", "checks", "findings"]
    assert max(map(len, done.stdout.splitlines())) <= 100
    assert rows["workers"] == "3 per loader; train.py:2 sets 3"
    assert rows["findings"].startswith("1 warning, 1 note, below")
    assert "/dev/shm  1Gi; what the DataLoaders take is unknown" in done.stdout
    write_job(tmp_path, **fields | {"data_loader": loaders | {"sample": {"shape": [4], "dtype": "float32"}}})
    (need,) = re.findall(r"one-epoch peak ([\d.]+ \w+)", trainlaunch("plan", "job.yaml", cwd=tmp_path).stdout)
    refused = trainlaunch("plan", "job.yaml", "--set", "shm_size=64k", cwd=tmp_path)
    assert f"shm_size 64Ki is below the one-epoch peak of the DataLoaders, {need}" in refused.stderr
