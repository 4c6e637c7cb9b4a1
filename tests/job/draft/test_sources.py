"""Where a script has its numbers from: options of every parser, variables, keys of configurations, files beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.init import DraftOptions, draft, read_script
from trainlaunch.job.spec import JobSpec
from trainlaunch.plan import make_plan
from trainlaunch.policy import read_job
from trainlaunch.rules import check_plan
from trainlaunch.rules.sources.deciding_workers import deciding_workers

from tests.conftest import Runs

LOADER = "from torch.utils.data import DataLoader\n"
YAML = "seed: 1\ndata:\n  batch_size: 12\n  workers: 7\n"
HYDRA = (
    f"{LOADER}import hydra\n"
    "@hydra.main(version_base=None, config_path='conf', config_name='config')\n"
    "def main(cfg):\n    DataLoader(d, batch_size=cfg.data.batch_size, num_workers=cfg.data.workers)\nmain()\n"
)
SIGNATURE = "def train({}):\n    DataLoader(d, batch_size=bs, num_workers=workers)\n"


class Case(NamedTuple):
    """A script, what lies beside it, and what its job then says; `workers` of None are the planned ones."""

    script: str
    argv: tuple[str, ...] = ()
    files: Mapping[str, str] = MappingProxyType({})
    batch: int = 12
    workers: int | None = None
    env: Mapping[str, str] = MappingProxyType({})


def read_by(how: str, *, then: str = "") -> str:
    """Return a script that reads c.yaml and takes both numbers from it."""
    return f"{LOADER}import json, yaml, sys\nfrom omegaconf import OmegaConf\n{how}{then}"


PLAIN = "DataLoader(d, batch_size=cfg['data']['batch_size'], num_workers=cfg['data']['workers'])\n"
KEYS = ("data.workers={num_workers}", "data.batch_size={batch_size}")
CASES = {
    "hydra": Case(HYDRA, KEYS, {"conf/config.yaml": YAML}),
    "hydra, groups": Case(
        HYDRA, KEYS,
        {
            "conf/config.yaml": "defaults:\n  - data: images\n  - _self_\nbatch: 12\n",
            "conf/data/images.yaml": "defaults:\n  - base\nbatch_size: ${batch}\n",
            "conf/data/base.yaml": "batch_size: 3\nworkers: 2\n",
        },
    ),
    "hydra, a package of its own": Case(
        HYDRA, KEYS,
        {
            "conf/config.yaml": "defaults: [_self_, loading@data: big]\ndata: {batch_size: 1, workers: 1}\n",
            "conf/loading/big.yaml": "batch_size: 12\nworkers: 5\n",
        },
    ),
    "OmegaConf's command line": Case(
        read_by("cfg = OmegaConf.merge(OmegaConf.load('c.yaml'), OmegaConf.from_cli())\n", then=PLAIN),
        KEYS, {"c.yaml": YAML},
    ),
    "OmegaConf without one": Case(
        read_by("cfg = OmegaConf.load('c.yaml')\n", then=PLAIN), (), {"c.yaml": YAML}, workers=7
    ),
    "YAML through a function": Case(
        read_by(
            "def conf(path):\n    with open(path) as f:\n        return yaml.safe_load(f)\n"
            "cfg = conf('c.yaml')\n", then=PLAIN,
        ),
        (), {"c.yaml": YAML}, workers=7,
    ),
    "JSON whose name is an option's default": Case(
        read_by(
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--config', default='c.json')\n"
            "cfg = json.load(open(p.parse_args().config))\n", then=PLAIN,
        ),
        (), {"c.json": '{"data": {"batch_size": 12,\n"workers": 7}}'}, workers=7,
    ),
    "spread into a module's parameters": Case(
        read_by(
            "class Data:\n    def __init__(self, batch_size, workers):\n        self.b, self.w = batch_size, workers\n"
            "        self.batch_size = batch_size\n        self.workers = workers\n"
            "    def train_dataloader(self):\n"
            "        return DataLoader(d, batch_size=self.batch_size, num_workers=self.workers)\n"
            "cfg = yaml.safe_load(open('c.yaml'))\n"
            "for each in sys.argv[1:]:\n    key, value = each.split('=', 1)\n    a, b = key.split('.')\n"
            "    cfg[a][b] = value\n"
            "Data(**cfg['data']).train_dataloader()\n",
        ),
        KEYS, {"c.yaml": YAML},
    ),
    "variables": Case(
        f"{LOADER}import os\nDataLoader(d, int(os.getenv('BATCH', '12')), num_workers=int(os.getenv('N', '4')))\n",
        env={"N": "{num_workers}", "BATCH": "{batch_size}"},
    ),
    "typer, annotated": Case(
        f"{LOADER}import typer\nfrom typing import Annotated\napp = typer.Typer()\n@app.command()\n"
        + SIGNATURE.format("bs: int = 12, workers: Annotated[int, typer.Option('--n-workers', '-j')] = 3")
        + "app()\n",
        ("--n-workers={num_workers}", "--bs={batch_size}"),
    ),
    "typer, by defaults": Case(
        f"{LOADER}import typer\n{SIGNATURE.format('bs: int = typer.Option(12), workers: int = 3')}typer.run(train)\n",
        ("--workers={num_workers}", "--bs={batch_size}"),
    ),
    "fire": Case(
        f"{LOADER}import fire\n{SIGNATURE.format('bs=12, workers=2')}fire.Fire(train)\n",
        ("--workers={num_workers}", "--bs={batch_size}"),
    ),
    "tyro": Case(
        f"{LOADER}import tyro, dataclasses\n@dataclasses.dataclass\nclass Args:\n    batch_size: int = 12\n"
        "    num_workers: int = 4\nargs = tyro.cli(Args)\n"
        "DataLoader(d, batch_size=args.batch_size, num_workers=args.num_workers)\n",
        ("--num-workers={num_workers}", "--batch-size={batch_size}"),
    ),
    "hydra's instantiate": Case(
        "import hydra\n@hydra.main(version_base=None, config_path='conf', config_name='config')\n"
        "def main(cfg):\n    hydra.utils.instantiate(cfg.data).train_dataloader()\nmain()\n",
        KEYS,
        {
            "conf/config.yaml": "data:\n  _target_: module.Data\n  batch_size: 12\n  workers: 3\n",
            "module.py": f"{LOADER}class Data:\n    def __init__(self, batch_size, workers):\n"
            "        self.batch_size = batch_size\n        self.workers = workers\n    def train_dataloader(self):\n"
            "        return DataLoader(d, batch_size=self.batch_size, num_workers=self.workers)\n",
        },
    ),
    "a class of constants": Case(
        f"{LOADER}class C:\n    bs: int = 12\n    n: int = 7\nc = C()\nDataLoader(d, c.bs, num_workers=c.n)\n",
        workers=7,
    ),
    "as Linux decides": Case(
        f"{LOADER}import os, sys\nn = 7 if os.name != 'linux' else 0\nb = 3 if sys.platform.startswith('win') else 12\n"
        "DataLoader(d, b, num_workers=n if device.type != 'mps' else 0)\n",
        workers=7,
    ),
    "a subcommand": Case(
        f"{LOADER}import argparse\np = argparse.ArgumentParser()\ns = p.add_subparsers()\ns.add_parser('eval')\n"
        "t = s.add_parser('train')\nt.add_argument('--w', type=int, default=2)\na = p.parse_args()\n"
        "DataLoader(d, 12, num_workers=a.w)\n",
        ("train", "--w={num_workers}"),
    ),
    "a dictionary of options": Case(
        f"{LOADER}import argparse\np = argparse.ArgumentParser()\np.add_argument('--w', type=int, default=4)\n"
        "a = p.parse_args()\ncfg = {'bs': 12, 'w': a.w}\nDataLoader(d, cfg['bs'], num_workers=cfg['w'])\n",
        ("--w={num_workers}",),
    ),
}  # fmt: skip
# What looks like one of them and isn't: nothing is passed, and the planned number is put in its place.
NEAR = {
    "two files": Case(
        read_by("cfg = yaml.safe_load(open(name))\nA, B = 'a.yaml', 'b.yaml'\n", then=PLAIN),
        files={"a.yaml": YAML, "b.yaml": YAML},
    ),
    "changed later": Case(
        f"{LOADER}class C:\n    bs: int = 12\n    n: int = 7\nc = C()\nc.n, c.bs = x, y\n"
        "DataLoader(d, c.bs, num_workers=c.n)\n"
    ),
    "as something else decides": Case(
        f"{LOADER}DataLoader(d, 12 if size == 'large' else 3, num_workers=7 if a.sequence == 'nt' else 2)\n"
    ),
    "a list": Case(read_by("cfg = yaml.safe_load(open('c.yaml'))\n", then=PLAIN), files={"c.yaml": "- 1\n"}),
    "broken": Case(read_by("cfg = yaml.safe_load(open('c.yaml'))\n", then=PLAIN), files={"c.yaml": "a: [\n"}),
    "hydra without its files": Case(HYDRA),
    "a function that fire doesn't start": Case(
        f"{LOADER}import fire\n{SIGNATURE.format('bs, workers')}fire.Fire(other)\ntrain(*x)\n"
    ),
}


def job_of(folder: Path, case: Case) -> JobSpec:
    """Return the job that is drafted from a script among its files."""
    for name, text in {"train.py": case.script, **case.files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (folder / "job.yaml").write_text(draft(DraftOptions(name="digits", cpus="8"), read_script(folder / "train.py")))
    return read_job(folder / "job.yaml")


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_numbers_come_from_where_the_script_has_them(tmp_path: Path, case: Case) -> None:
    """They are passed where the command can, else stated with the line that has them."""
    job = job_of(tmp_path, case)
    assert (job.command or ())[2:] == case.argv
    assert job.env == case.env
    assert [(each.batch_size, each.num_workers) for each in job.data_loader.loaders] == [(case.batch, case.workers)]
    assert deciding_workers(job).kind == ("constant" if case.workers else "plan")


@pytest.mark.parametrize("case", NEAR.values(), ids=NEAR)
def test_what_is_unsure_is_not_taken(tmp_path: Path, case: Case) -> None:
    """A number from the wrong file is worse than none."""
    job = job_of(tmp_path, case)
    assert (job.command or ())[2:] == ()
    assert [(each.batch_size, each.num_workers) for each in job.data_loader.loaders] == [(None, None)]
    assert job.data_loader.inject == "force"


def test_a_text_too_long_for_a_path_names_no_file(tmp_path: Path) -> None:
    """A help text may end like the name of one."""
    (tmp_path / "train.py").write_text(f"{LOADER}TOLD = '{'word ' * 80}c.yaml'\nDataLoader(d, num_workers=2)\n")
    assert len(read_script(tmp_path / "train.py").loaders) == 1


def test_a_file_that_the_command_replaces_decides_nothing(tmp_path: Path) -> None:
    """Its line is nobody's to change then."""
    job = job_of(tmp_path, CASES["JSON whose name is an option's default"])
    assert deciding_workers(job).place == "c.json:2"
    other = job._replace(command=(*(job.command or ()), "--config", "other.json"))
    assert deciding_workers(other).kind == "unknown"


ONE = "def one(split):\n    return DataLoader(d, 2)\n"


@pytest.mark.parametrize(
    ("loops", "names"),
    [
        ("def both():\n    return DataLoader(d, 2), DataLoader(d, 2)\ntrain_dl, val_dl = both()\n", ["train", "val"]),
        (ONE + "for s in ('train', 'val', 'test'):\n    dl = one(s)\n", ["train", "val", "test"]),
        (ONE + "x = {s: one(s) for s in ['a', 'b']}\n", ["a", "b"]),
        (ONE + "for e in range(3):\n    dl = one(e)\n", ["train"]),
    ],
)  # fmt: skip
def test_loaders_of_a_factory_have_their_own_names(tmp_path: Path, loops: str, names: list[str]) -> None:
    """One for each that it makes."""
    job = job_of(tmp_path, Case(LOADER + loops))
    assert [each.name for each in job.data_loader.loaders] == names


CLICK = "import click\n@click.command()\n@click.{}\ndef main(data): pass\nmain()\n"
PARSER = (
    "import argparse\ndef main(argv=None):\n    p = argparse.ArgumentParser()\n    p.add_argument('data')\n"
    "    p.parse_args(argv)\nmain({})\n"
)
REQUIRED = {
    "click": (CLICK.format("option('--data', required=True)"), "--data"),
    "click's argument": (CLICK.format("argument('data')"), "data"),
    "typer": ("import typer\ndef main(data: str): pass\ntyper.run(main)\n", "data"),
    "fire": ("import fire\ndef main(data, lr=1): pass\nfire.Fire(main)\n", "--data"),
    "HfArgumentParser": (
        "from transformers import HfArgumentParser\nclass A:\n    data: str\n    lr: float = 1.0\n"
        "HfArgumentParser(A).parse_args_into_dataclasses()\n",
        "--data",
    ),
    "argparse, in a function": (PARSER.format(""), "data"),
}
GIVEN = {
    "click, by a variable": CLICK.format("option('--data', required=True, envvar='D')"),
    "click's group": "import click\n@click.group()\ndef cli(): pass\n" + CLICK.format("argument('data')"),
    "typer, with a default": "import typer\ndef main(data: str = typer.Argument('x')): pass\ntyper.run(main)\n",
    "a list of its own": PARSER.format("['x']"),
}


@pytest.mark.parametrize(("script", "name"), REQUIRED.values(), ids=REQUIRED)
def test_what_is_required_is_refused_where_it_is_not_given(tmp_path: Path, script: str, name: str) -> None:
    """Whichever parser would end the script."""
    job = job_of(tmp_path, Case(script))
    with pytest.raises(JobFileRejected, match=rf"gives no {name} \(train.py:\d"):
        check_plan(make_plan(job))
    given = job._replace(command=(*(job.command or ()), *([name] if name.startswith("-") else []), "/data"))
    check_plan(make_plan(given))


@pytest.mark.parametrize("script", GIVEN.values(), ids=GIVEN)
def test_what_may_come_from_elsewhere_is_not_required(tmp_path: Path, script: str) -> None:
    """A refusal of a command that runs would be worse than none."""
    check_plan(make_plan(job_of(tmp_path, Case(script))))


@pytest.mark.parametrize(
    ("path", "text", "argv", "env"),
    [
        ("pkg/sub/train.py", "from .data import x\n", ["-m", "sub.train"], {}),
        ("pkg/sub/train.py", "from ..data import x\n", ["-m", "pkg.sub.train"], {}),
        ("src/train.py", "from src.data import x\n", ["-m", "src.train"], {}),
        ("tools/train.py", "from mine.data import x\n", ["tools/train.py"], {"PYTHONPATH": "/workspace/src"}),
        ("tools/train.py", "import sys\nsys.path.append('.')\nfrom mine.data import x\n", ["tools/train.py"], {}),
        ("tools/train.py", "import sys\nsys.path.append('../src')\nfrom mine.data import x\n", ["train.py"], {}),
        ("tools/train.py", "import torch\n", ["train.py"], {}),
        ("pkg/train.py", "import data\nfrom src import data\n", ["pkg/train.py"], {"PYTHONPATH": "/workspace"}),
        ("pkg/train.py", "import data\nfrom pkg import data\n", ["-m", "pkg.train"], {}),
        ("tools/train.py", "open('conf/a.yaml')\n", ["tools/train.py"], {}),
        ("tools/train.py", "open('../conf/a.yaml')\n", ["train.py"], {}),
    ],
)
def test_a_script_is_started_where_its_imports_are_found(
    trainlaunch: Runs, tmp_path: Path, path: str, text: str, argv: list[str], env: dict[str, str]
) -> None:
    """Python looks in the script's own folder alone, and knows no package around it."""
    for name in (
        "pyproject.toml",
        "src/mine/data.py",
        "src/data.py",
        "pkg/data.py",
        "pkg/sub/data.py",
        "conf/a.yaml",
        path,
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / path).write_text(text)
    folder = (tmp_path / path).parent
    assert trainlaunch("init", "train.py", "--write-to", "job.yaml", cwd=folder).returncode == 0
    job = read_job(folder / "job.yaml")
    mounted = Path(job.mounts[0].source or "")
    assert (
        folder / mounted / str(job.working_dir).removeprefix("/workspace").lstrip("/") / argv[-1]
    ).is_file() or argv[0] == "-m"
    assert "conf" not in text or (folder / mounted / "conf/a.yaml").is_file()
    assert list(job.command or ())[1:] == argv
    assert job.env == env
    assert check_plan(make_plan(job)) is not None
