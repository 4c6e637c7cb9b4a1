"""What probe measures of real libraries sizes /dev/shm for all their epochs, close to what they then take."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from trainlaunch.units import MIB

from tests.conftest import ROOT, Runs
from tests.jobs import write_job

pytestmark = [pytest.mark.docker, pytest.mark.libraries]

SCRIPTS = Path(__file__).parent / "scripts"
SAMPLER = ROOT / "bench" / "shm_accuracy" / "sample.py"
SECONDS = 600  # on a machine that does much else
OFFLINE = {"HF_HUB_OFFLINE": "1", "PYTHONDONTWRITEBYTECODE": "1"}


class Script(NamedTuple):
    """A script of SCRIPTS, the loaders that its job file names, and whether only its end shows their order."""

    name: str
    loaders: tuple[str, ...] = ("train",)
    through: bool = False


ALL = (
    Script("in_turn", ("train", "val", "test"), through=True),
    Script("lightning_fit", ("train", "val")),
    Script("hugging_face", ("train", "val")),
    Script("accelerate_loop"),
    Script("timm_loader", ("train", "val")),
    Script("geometric"),
    Script("monai_images"),
    Script("webdataset_shuffle", through=True),
    Script("mosaic_streaming"),
    Script("detection"),
)


def job_of(folder: Path, script: Script, image: str, label: str) -> Path:
    """Write the job of a script, which states nothing of its batches."""
    key, _, value = label.partition("=")
    fields: dict[str, Any] = {
        "name": f"{script.name.replace('_', '-')}-{value}",
        "image": image,
        "command": ["python", f"{script.name}.py"],
        "working_dir": "/scripts",
        "env": OFFLINE,
        "labels": {key: value},
        "mounts": [{"type": "bind", "source": str(SCRIPTS), "target": "/scripts", "read_only": True}],
        "resources": {"cpus": 2, "memory": "4Gi"},
        "data_loader": {"loaders": {name: {} for name in script.loaders}},
    }
    return write_job(folder, **fields)


@pytest.mark.parametrize("script", ALL, ids=[each.name for each in ALL])
def test_a_probed_library_is_planned_within_a_batch_of_each_loader(
    script: Script, examples_image: str, own_label: str, docker_run: Runs, trainlaunch: Runs, tmp_path: Path
) -> None:
    """peak ≤ multi_epoch ≤ peak + one batch of each loader + 1 MiB, and a /dev/shm of multi_epoch trains to the end."""
    job_file = job_of(tmp_path, script, examples_image, own_label)
    through = ["--through"] if script.through else []
    probed = trainlaunch("probe", str(job_file), "--seconds", "400", "--write", *through, timeout=SECONDS)
    assert probed.returncode in {0, 1}, probed.stderr
    shm = json.loads(trainlaunch("plan", str(job_file), "-o", "json").stdout)["shm"]
    assert shm["unsized"] is False, probed.stderr

    peak = peak_of(script, examples_image, docker_run)
    batches = sum(each["batch_bytes"] for each in shm["loaders"] if each["num_workers"])
    figures = {"peak": peak, "multi_epoch": shm["multi_epoch"], "batches": batches}
    print(script.name, figures)
    assert peak <= shm["multi_epoch"] <= peak + batches + MIB, (figures, probed.stdout)

    size = f"shm_size={shm['multi_epoch']}"
    run = trainlaunch("up", str(job_file), "--set", size, timeout=SECONDS)
    trainlaunch("down", str(job_file), timeout=SECONDS)
    assert run.returncode == 0, run.stderr


def peak_of(script: Script, image: str, docker_run: Runs) -> int:
    """Return the most of /dev/shm that the script had in use, with nothing of ours and nothing that limits it."""
    mounts = [f"--volume={SCRIPTS}:/scripts:ro", f"--volume={SAMPLER}:/sample.py:ro", "--workdir=/scripts"]
    env = [f"--env={name}={value}" for name, value in {**OFFLINE, "OMP_NUM_THREADS": "1"}.items()]
    argv = ["--shm-size=1g", *env, *mounts, image, "python3", "/sample.py", "python", f"{script.name}.py"]
    found = json.loads(docker_run(*argv, timeout=SECONDS).stdout)
    assert found["exit_code"] == 0
    return int(found["peak"])
