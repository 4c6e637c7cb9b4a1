"""What `init` takes from a script's program: its modules, its live functions, who starts its ranks."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.errors import UsageError
from trainlaunch.init import DraftOptions, draft, read_script

LOADER = "from torch.utils.data import DataLoader\n"


def drafted(folder: Path, files: dict[str, str], script: str = "train.py", **asked: str) -> str:
    """Return the draft for a script among some files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return draft(DraftOptions(name="digits", program=script, **asked), read_script(folder / script))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("starter", "block"),
    [
        ("from accelerate import Accelerator\nAccelerator()\n", "torchrun: {nproc_per_node: 4}"),
        ("from transformers import Trainer\nTrainer().train()\n", "torchrun: {nproc_per_node: 4}"),
        ("import torch.distributed as dist\ndist.init_process_group()\n", "torchrun: {nproc_per_node: 4}"),
        ("import lightning as L\nL.Trainer(devices=4)\n", "ranks_per_container: 4"),
        ("import torch.multiprocessing as mp\nmp.spawn(f, nprocs=4)\n", "ranks_per_container: 4"),
        ("import torch.multiprocessing as mp\nif x:\n    mp.spawn(f, nprocs=4)\n", ""),
        ("print('alone')\n", "ranks_per_container: 1"),
    ],
)
def test_torchrun_is_drafted_where_nothing_else_starts_the_ranks(tmp_path: Path, starter: str, block: str) -> None:
    """Accelerate and the Trainer join what a launcher starts; Lightning and mp.spawn are launchers themselves."""
    lines = drafted(tmp_path, {"train.py": starter}, gpus="4").splitlines()
    found = [each.partition(" #")[0] for each in lines if each.startswith(("torchrun:", "ranks_per_container:"))]
    assert found == [block] * bool(block)


def test_what_another_parser_requires_is_not_the_scripts(tmp_path: Path) -> None:
    """A module that is started by itself too has a parser of its own."""
    parser = (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--{}', required=True)\na = p.parse_args()\n"
    )
    files = {"train.py": f"import helper\n{parser.format('data')}", "helper.py": parser.format("rate")}
    (told,) = [each for each in drafted(tmp_path, files).splitlines() if "also requires" in each]
    assert "requires --data:" in told


RANK_OPTION = (
    "import argparse, os, deepspeed\np = argparse.ArgumentParser()\np.add_argument('--local_rank', type=int)\n"
)


@pytest.mark.parametrize(
    ("script", "command"),
    [
        (f"{RANK_OPTION}deepspeed.init_distributed()\n", '[deepspeed, "--num_gpus=2", train.py]'),
        (
            f"{RANK_OPTION}deepspeed.init_distributed()\nos.environ['LOCAL_RANK'] = '0'\n",
            '[deepspeed, "--num_gpus=2", train.py]',
        ),
        (f"{RANK_OPTION}deepspeed.init_distributed()\nr = os.environ['LOCAL_RANK']\n", "[python, train.py]"),
        (f"{RANK_OPTION}import torch.distributed as d\nd.init_process_group()\n", "[python, train.py]"),
    ],
)
def test_a_rank_that_only_deepspeed_passes_is_passed_by_it(tmp_path: Path, script: str, command: str) -> None:
    """torchrun sets variables and passes no option: all ranks would take the first GPU, or none join."""
    text = drafted(tmp_path, {"train.py": script}, gpus="2")
    assert f"command: {command}" in text
    assert ("torchrun:" in text) == ("[python" in command)
    assert ("which torchrun doesn't pass" in text.replace("\n# ", " ")) == ("init_process_group" in script)


@pytest.mark.parametrize(
    ("starts", "lines"),
    [
        ("import torch.multiprocessing as mp\nmp.spawn(run, nprocs=2)\n", ["multiprocessing_context: spawn"]),
        (
            "import torch.multiprocessing as mp\nmp.set_start_method('fork')\nmp.spawn(run)\n",
            ["multiprocessing_context: fork"],
        ),
        ("import shop\nshop.spawn(run)\n", []),
        ("run(0)\n", []),
    ],
)
def test_workers_of_ranks_that_mp_spawn_starts_are_spawned(tmp_path: Path, starts: str, lines: list[str]) -> None:
    """A spawned process has spawn as its default; what the script sets itself is what it says."""
    loop = "    for batch in DataLoader(data, 2, num_workers=2): pass\n"
    run = f"from torch.utils.data import DataLoader\ndef run(rank):\n{loop}"
    text = drafted(tmp_path, {"train.py": f"{run}{starts}"})
    found = [each.strip().partition(" #")[0] for each in text.splitlines() if "multiprocessing_context" in each]
    assert [each.strip() for each in found] == lines


def test_one_gpu_leaves_the_block_a_comment(tmp_path: Path) -> None:
    """One process needs no launcher."""
    text = drafted(tmp_path, {"train.py": "from accelerate import Accelerator\nAccelerator()\n"}, gpus="1")
    assert "# torchrun: {nproc_per_node: 2}" in text
    assert "\ntorchrun:" not in text


def test_nothing_is_taken_from_functions_that_nobody_calls(tmp_path: Path) -> None:
    """Not from one that only a dead one calls either; methods are a framework's to call, aliases are followed."""
    files = {
        "train.py": LOADER + "from data import live as build\n"
        "def unused():\n    return dead()\ndef dead():\n    return DataLoader(d, batch_size=11)\n"
        "class Module:\n    def train_dataloader(self):\n        return DataLoader(d, batch_size=22)\n"
        "if __name__ == '__main__':\n    build()\n",
        "data.py": LOADER + "def live():\n    return DataLoader(d, batch_size=33)\n"
        "def other():\n    return DataLoader(d, batch_size=44)\n",
    }
    text = drafted(tmp_path, files)
    assert [number for number in (11, 22, 33, 44) if f"batch_size: {number}" in text] == [22, 33]


@pytest.mark.parametrize(
    ("script", "module", "line"),
    [
        ("train.py", "data/__init__.py", "import data; data.build()"),
        ("train.py", "lib/data/loaders.py", "from lib.data.loaders import build; build()"),
        ("scripts/train.py", "digits/data.py", "from digits.data import build; build()"),
        ("scripts/train.py", "src/digits/__init__.py", "from digits import build; build()"),
    ],
)
def test_packages_beside_and_above_the_script_are_read(tmp_path: Path, script: str, module: str, line: str) -> None:
    """As far as the top of the project; a place names the file as seen from the script."""
    files = {
        script: f"{line.partition(';')[0]}\n{line.partition('; ')[2]}\n",
        module: LOADER + "def build():\n    return DataLoader(d, batch_size=33)\n",
        "pyproject.toml": "",
    }
    assert "batch_size: 33" in drafted(tmp_path, files, script)


def test_modules_above_the_project_are_not(tmp_path: Path) -> None:
    """They are somebody else's."""
    files = {
        "project/pyproject.toml": "",
        "project/train.py": "import data\ndata.build()\n",
        "data.py": LOADER + "def build():\n    return DataLoader(d, batch_size=33)\n",
    }
    assert "batch_size: 33" not in drafted(tmp_path, files, "project/train.py")


def test_what_was_not_found_is_said_with_where_it_was_looked_for(tmp_path: Path) -> None:
    """So that nobody takes a missing block for a job without loaders."""
    text = drafted(tmp_path, {"train.py": "import helper\n", "helper.py": "x = 1\n"})
    assert "# No DataLoader was found in train.py, helper.py; " in text
    assert "No DataLoader was found" not in drafted(tmp_path, {"train.py": LOADER + "DataLoader(d)\n"})


def test_what_only_workers_have_is_not_drafted_for_none(tmp_path: Path) -> None:
    """torch refuses it, so that the script can't mean it for these loaders."""
    call = "DataLoader(d, num_workers={}, prefetch_factor=4, persistent_workers=True)\n"
    text = drafted(tmp_path, {"train.py": LOADER + call.format(0)})
    assert "prefetch_factor: 4" not in text
    assert "persistent_workers" not in text
    assert "prefetch_factor: 4" in drafted(tmp_path, {"train.py": LOADER + call.format(2)})


@pytest.mark.parametrize("name", ["config.json", "job.yaml", "compose.yml", "nb.ipynb"])
def test_a_file_of_data_is_no_script(tmp_path: Path, name: str) -> None:
    """JSON is an expression of Python, and would be the program of the command."""
    (tmp_path / name).write_text("{}")
    with pytest.raises(UsageError) as caught:
        read_script(tmp_path / name)
    assert caught.value.diagnostics[0].code == "TL132"
    assert f"--from {tmp_path / name}" in caught.value.diagnostics[0].fix


JOINS = "import os, torch.distributed as dist\n"
JOIN = "dist.init_process_group('gloo')\n"
LAUNCHED = {
    "joins": (f"{JOINS}def main():\n    {JOIN}if __name__ == '__main__':\n    main()\n", True),
    "reads RANK": (f"{JOINS}rank = int(os.environ['RANK'])\ndist.is_available()\n", True),
    "joins if asked": (f"{JOINS}def main():\n    if 'RANK' in os.environ:\n        {JOIN}main()\n", False),
    "called if asked": (f"{JOINS}def join():\n    {JOIN}if os.cpu_count() > 1:\n    join()\n", False),
    "alone": (f"{JOINS}dist.init_process_group('gloo', rank=0, world_size=1, init_method='tcp://h:1')\n", False),
    "after a return": (f"{JOINS}def join():\n    return 0\n    {JOIN}join()\n", False),
}


@pytest.mark.parametrize(("script", "certain"), LAUNCHED.values(), ids=LAUNCHED)
def test_a_script_that_fails_without_a_launcher_gets_one(tmp_path: Path, script: str, certain: bool) -> None:
    """Without GPUs too; one that asks first runs alone as well."""
    lines = drafted(tmp_path, {"train.py": script}, cpus="8").splitlines()
    assert ("torchrun: {nproc_per_node: 2}" in lines) == certain


def test_a_loader_is_called_as_the_method_that_returns_it(tmp_path: Path) -> None:
    """Where the loop that asks for it gives it no name."""
    files = {
        "train.py": "from data import Module\nm = Module()\nfor b in m.train_dataloader(): pass\n"
        "for b in m.val_dataloader(): pass\n",
        "data.py": LOADER
        + "class Module:\n    def train_dataloader(self):\n        return DataLoader(d, batch_size=2)\n"
        "    def val_dataloader(self):\n        return DataLoader(e, batch_size=4)\n",
    }
    text = drafted(tmp_path, files)
    assert "train: {batch_size: 2}" in text
    assert "val: {batch_size: 4}" in text


def test_workers_of_ray_train_are_ranks_and_its_object_store_is_named(tmp_path: Path) -> None:
    """They are no DataLoader's, and the store lies in /dev/shm."""
    script = (
        "import ray, torch\nfrom ray.train import ScalingConfig\nfrom ray.train.torch import TorchTrainer\n"
        "def loop():\n    torch.utils.data.DataLoader(d, batch_size=8, num_workers=4)\n"
        "ray.init(object_store_memory=%s)\nTorchTrainer(loop, scaling_config=ScalingConfig(num_workers=8)).fit()\n"
    )
    text = drafted(tmp_path, {"train.py": script % "20 * 2**30"}, gpus="8")
    assert "ranks_per_container: 8 # " in text
    assert "num_workers: 4" in text
    assert "size: 22Gi}]" in " ".join(text.replace("\n#", " ").split())
    for unknown in ("size", "4096 ** 4096"):
        text = drafted(tmp_path, {"train.py": script % unknown})
        assert "size: …}]" in " ".join(text.replace("\n#", " ").split())
