"""A drafted job file says what its script's text says, plans as it stands, and asks for what nobody can know.

The drafts of tests/job/draft/scripts stand beside them; `--update-goldens` writes them anew.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from trainlaunch.errors import UsageError
from trainlaunch.init import DraftOptions, draft, read_script
from trainlaunch.job.spec import JobSpec
from trainlaunch.policy import read_job
from trainlaunch.rules import plan_job

from tests.conftest import ROOT, Runs

SCRIPTS = Path(__file__).parent / "scripts"
DRAFTED = sorted({*SCRIPTS.glob("*.py"), *SCRIPTS.glob("*/main.py")})
OURS = sorted(path for folder in ("examples", "bench", "launcher", "tests") for path in (ROOT / folder).rglob("*.py"))


def drafted(path: Path, **flags: str) -> str:
    """Return the draft for a script, as `init` makes it in the script's folder."""
    name = (path.parent if path.stem == "main" else path).stem.replace("_", "-").strip("-")
    return draft(DraftOptions(name=name, program=path.name, **flags), read_script(path))


def job_of(text: str, folder: Path, target: str | None = None) -> JobSpec:
    """Return the job that a text is, planned too."""
    path = folder / "job.yaml"
    path.write_text(text, encoding="utf-8")
    job = read_job(path, target=target)
    plan_job(job)
    return job


def script(folder: Path, text: str) -> Path:
    """Write a script and return its path."""
    path = folder / "train.py"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("path", DRAFTED, ids=lambda path: path.relative_to(SCRIPTS).as_posix())
def test_the_draft_of_a_script(path: Path, golden: Callable[[Path, str], None]) -> None:
    """Each line of it was reviewed against its script."""
    golden(path.with_suffix(".yaml"), drafted(path))


@pytest.mark.parametrize("path", DRAFTED, ids=lambda path: path.relative_to(SCRIPTS).as_posix())
@pytest.mark.parametrize("flags", [(), ("--gpus", "2", "--cpus", "16", "--memory", "64Gi"), ("--cpus", "2")])
def test_the_written_file_plans(trainlaunch: Runs, tmp_path: Path, path: Path, flags: tuple[str, ...]) -> None:
    """`init` and then `plan`, with nothing in between."""
    job = tmp_path / "job.yaml"
    assert trainlaunch("init", str(path), *flags, "--write-to", str(job)).returncode == 0
    done = trainlaunch("plan", str(job))
    assert done.returncode == 0, done.stderr


def test_python_files_of_this_repository_get_drafts_that_plan(tmp_path: Path) -> None:
    """Whatever a file holds, its draft is a right job file; one of 96 is tried."""
    assert len(OURS) > 100
    for path in OURS[::96]:  # each of them with the modules that it imports
        job_of(draft(DraftOptions(name="any", program=path.name), read_script(path)), tmp_path)


@pytest.mark.parametrize("path", DRAFTED, ids=lambda path: path.relative_to(SCRIPTS).as_posix())
def test_a_draft_plans_on_kubernetes_once_its_comments_are_fields(tmp_path: Path, path: Path) -> None:
    """What stands in comments as fields is right where it stands: sample, torchrun, the claim."""
    text = drafted(path, cpus="16", memory="256Gi", gpus="2")
    job = job_of(text, tmp_path)
    told = re.sub(r"(?m)^# (torchrun|target_overrides):", r"\1:", text)
    told = re.sub(r"(?m)^#(   +)(kubernetes|mounts):", r"\1\2:", told)
    batches = [f"data_loader.loaders.{each.name}.batch_size" for each in job.data_loader.loaders]
    if "data_loader.batch_size" in job.origins or job.origins.keys() >= set(batches):
        told = told.replace("\n  # sample: ", "\n  sample: ")
    on_cluster = job_of(told, tmp_path, "kubernetes")
    assert [mount.type for mount in on_cluster.mounts] == ["code"]
    joins = {"ddp", "accelerated", "hugging_face", "hugging_face_fixed"}
    assert (on_cluster.torchrun is not None) == (path.stem in joins)


def test_a_draft_without_a_script_plans_once_its_comments_are_fields(tmp_path: Path) -> None:
    """A block that is all comments is right when each line loses its first #."""
    text = draft(DraftOptions(name="any")).partition("# A node of Kubernetes")[0]
    head, block = text.split("# data_loader:\n")
    job = job_of(f"{head}data_loader:\n{re.sub('(?m)^#', '', block)}", tmp_path)
    assert [(each.batch_size, each.sized) for each in job.data_loader.loaders] == [(32, True)]


def loaders_of(job: JobSpec) -> dict[str, tuple[int | None, int | None]]:
    """Return batch size and workers of each loader."""
    return {each.name: (each.batch_size, each.num_workers) for each in job.data_loader.loaders}


@pytest.mark.parametrize(
    ("path", "loaders", "argv"),
    [
        ("mnist.py", {"train": (64, 1), "test": (1000, 1)}, ["--batch-size={batch_size}"]),
        ("imagenet.py", {"train": (None, None), "val": (None, None)}, ["--workers={num_workers}"]),
        (
            "click_options.py",
            {"train": (48, None), "validation": (48, None)},
            ["--num-workers={num_workers}", "--batch-size={batch_size}"],
        ),
        ("accelerated.py", {"train": (24, 6), "eval": (48, 6)}, []),
        ("helper.py", {"train": (16, 4), "val": (50, 0)}, ["-b", "{batch_size}"]),
        ("two_files/main.py", {"train": (96, 3)}, []),
        (
            "lightning_module.py",
            {"train": (128, None), "val": (256, None)},
            ["--workers={num_workers}", "--batch-size={batch_size}"],
        ),
        (
            "hugging_face.py",
            {"train": (8, None), "eval": (8, None)},
            ["--dataloader_num_workers={num_workers}", "--per_device_train_batch_size={batch_size}"],
        ),
    ],
)
def test_loaders_and_options_come_from_the_text(
    tmp_path: Path, path: str, loaders: dict[str, tuple[int | None, int | None]], argv: list[str]
) -> None:
    """Literals become fields, options become tokens, and defaults of options the values that the tokens pass."""
    job = job_of(drafted(SCRIPTS / path), tmp_path)
    assert loaders_of(job) == loaders
    assert list(job.command or ())[2:] == argv


def test_a_script_is_read_and_never_run(trainlaunch: Runs, tmp_path: Path) -> None:
    """Neither its own lines nor those of a module that it imports are executed."""
    (tmp_path / "helper.py").write_text("open('ran', 'w')\nraise SystemExit(9)\n")
    path = script(tmp_path, "import helper\nopen('ran', 'w')\nraise SystemExit(9)\n")
    done = trainlaunch("init", path.name, cwd=tmp_path)
    assert done.returncode == 0
    assert sorted(each.name for each in tmp_path.iterdir()) == ["helper.py", "train.py"]


@pytest.mark.parametrize(
    "line",
    [
        "DataLoader([1], 8, num_workers=args.workers)",
        "DataLoader([1], batch_size=8, num_workers=int(args.workers))",
        "DataLoader([1], 8, **dict(num_workers=args.workers))",
        "DataLoader([1], 8, **{'num_workers': args.workers})",
        "torch.utils.data.DataLoader([1], 8, None, None, None, args.workers)",
        "StatefulDataLoader([1], 8, num_workers=vars(args)['workers'])",
    ],
)
def test_the_workers_option_is_found_however_it_is_passed(tmp_path: Path, line: str) -> None:
    """The token goes to the option that the loader takes, whatever its name."""
    text = "p = argparse.ArgumentParser()\np.add_argument('--procs', dest='workers', type=int)\nargs = p.parse_args()\n"
    job = job_of(drafted(script(tmp_path, f"{text}loader = {line}\n")), tmp_path)
    assert (job.command or ())[2:] == ("--procs={num_workers}",)
    assert loaders_of(job) == {"train": (8, None)}


@pytest.mark.parametrize("workers", ["cfg.workers", "os.cpu_count()", "4 if cuda else 0", "**kwargs", "min(8, n)", "W"])
def test_what_can_t_be_read_gets_the_planned_number(tmp_path: Path, workers: str) -> None:
    """The plan would else count workers that the script doesn't have; the comment says how it keeps its own."""
    argument = workers if workers.startswith("**") else f"num_workers={workers}"
    path = script(tmp_path, f"for W in (1, 2):\n    pass\nloader = DataLoader([1], batch_size=8, {argument})\n")
    text = drafted(path)
    assert f"train.py:3 takes {workers}: the planned number is put in its place" in text
    job = job_of(text, tmp_path)
    assert (loaders_of(job), job.data_loader.inject) == ({"train": (8, None)}, "force")


@pytest.mark.parametrize("workers", ["-1", "True", "'4'"])
def test_what_is_no_number_is_asked_for(tmp_path: Path, workers: str) -> None:
    """Nothing is guessed, and nothing overridden: num_workers stays auto, and a comment has the place."""
    text = drafted(script(tmp_path, f"loader = DataLoader([1], batch_size=8, num_workers={workers})\n"))
    assert f"train.py:1 takes {workers}; say here what it is, like num_workers: 4" in text
    assert job_of(text, tmp_path).data_loader.inject == "env"


def test_an_option_that_the_script_changes_gets_no_token(tmp_path: Path) -> None:
    """`args.batch_size //= ranks`: the option is not what one process loads."""
    text = drafted(SCRIPTS / "imagenet.py")
    assert "{batch_size}" not in text
    assert "takes --batch-size, and the script changes it" in " ".join(text.replace("#", "").split())


def test_prefetch_is_passed_only_where_workers_are_certain(tmp_path: Path) -> None:
    """Torch refuses a prefetch factor without workers, and a small CPU-only job gets none."""
    assert "{prefetch_factor}" not in drafted(SCRIPTS / "ddp.py", cpus="2")
    assert "num_workers: 1 # ddp.py:" in drafted(SCRIPTS / "ddp.py", cpus="2")
    assert "fewer than 4 CPUs gets 0" in " ".join(drafted(SCRIPTS / "ddp.py").replace("#", "").split())
    assert "--prefetch_factor={prefetch_factor}" in drafted(SCRIPTS / "ddp.py", gpus="1")
    assert "--prefetch_factor={prefetch_factor}" in drafted(SCRIPTS / "ddp.py", cpus="8")
    assert "{prefetch_factor}" not in drafted(SCRIPTS / "ddp.py", cpus="4")  # one CPU of two ranks each is too few


def test_distributed_use_suggests_the_torchrun_block() -> None:
    """With as many processes as GPUs are asked; Lightning starts its own and gets none."""
    assert "\ntorchrun: {nproc_per_node: 4}" in drafted(SCRIPTS / "ddp.py", gpus="4")
    assert "\ntorchrun: {nproc_per_node: 1}" in drafted(SCRIPTS / "ddp.py", gpus="1")
    assert "torchrun" not in drafted(SCRIPTS / "lightning_module.py")


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("missing.py", None, "No such file"),
        ("broken.py", b"def train(:\n", "broken.py:1:"),
        ("latin.py", "# caf\xe9\n".encode("latin-1"), "is not UTF-8"),
        ("binary.py", b"\0\1\2", "can't parse"),
        ("deep.py", b"x = " + b"-" * 100_000 + b"1\n", "can't parse"),
        ("data.py", b"#" * (2**20 + 1), "larger than"),
        (".", None, "folder"),
    ],
)
def test_a_script_that_can_t_be_read_is_one_error(
    trainlaunch: Runs, tmp_path: Path, name: str, data: bytes | None, said: str
) -> None:
    """Exit 2 with code, reason and place; no traceback."""
    if data is not None:
        (tmp_path / name).write_bytes(data)
    done = trainlaunch("init", name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "error[TL132]" in done.stderr
    assert said.lower() in done.stderr.lower()


def test_a_module_that_can_t_be_read_is_left_out(tmp_path: Path) -> None:
    """The script itself is what counts."""
    (tmp_path / "broken.py").write_text("def build(:\n")
    path = script(tmp_path, "import broken\nloader = DataLoader([1], 8, num_workers=2)\n")
    assert loaders_of(job_of(drafted(path), tmp_path)) == {"train": (8, 2)}


def test_reading_raises_a_usage_error(tmp_path: Path) -> None:
    """Callers in Python get the same error as the command line."""
    with pytest.raises(UsageError):
        read_script(tmp_path / "nowhere.py")
