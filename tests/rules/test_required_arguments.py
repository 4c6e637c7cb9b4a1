"""A command that its script's own parser refuses is refused before it starts, and no other is."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.plan import make_plan
from trainlaunch.rules.plan.code_mounts import script_not_mounted
from trainlaunch.rules.plan.job_process import required_argument_missing

from tests.jobs import job_with
from tests.rules.test_deciding_workers import job_of

PARSER = "p = argparse.ArgumentParser()\n{}\np.parse_args({})\n"
DATA, CONFIG = 'p.add_argument("data")', 'p.add_argument("-c", "--config", required=True)'
FLAGS = (
    "from absl import app, flags\nflags.DEFINE_string('data', None, ''); flags.DEFINE_string('out', None, '')\n"
    "flags.mark_flags_as_required(['data', 'out'])\napp.run(main)\n"
)
COMMANDS = (
    "import typer\napp = typer.Typer({})\n@app.command()\ndef fit_all(): pass\n"
    "@app.command('test')\ndef other(): pass\napp()\n"
)
FOUND = {
    "positional": (PARSER.format(DATA, ""), ["--workers=2"], ["data (train.py:4)"]),
    "second positional": (PARSER.format(f'{DATA}; p.add_argument("out")', ""), ["/data"], ["out (train.py:4)"]),
    "option": (PARSER.format(CONFIG, ""), ["x"], ["--config (train.py:4)"]),
    "one or more": (PARSER.format('p.add_argument("data", nargs="+")', ""), [], ["data"]),
    "in a function of that name": (
        f"def parse_args():\n    p = argparse.ArgumentParser()\n    {CONFIG}\n    return p.parse_args()\n"
        "parse_args()\n", [], ["--config (train.py:5)"],
    ),
    "click, beside a group of re": (
        "import click, re\n@click.command()\n@click.option('--data', required=True)\n"
        "def main(data): re.match('a', data).group()\nmain()\n", [], ["--data (train.py:5)"],
    ),
    "absl": (FLAGS, ["--out=x"], ["--data (train.py:4)"]),
    "a subcommand of a subcommand": (
        f"{COMMANDS.format('')}more = typer.Typer()\napp.add_typer(more)\n", [], ["no subcommand (train.py:6)"],
    ),
    "a subcommand": (COMMANDS.format(""), ["--lr=1"], ["subcommand (train.py:6)"]),
}  # fmt: skip
CLICK = 'import click\n@click.command({})\n@click.option("--data", required=True)\ndef main(data): pass\nmain({})\n'
NEAR = {
    "declared by what nothing calls": (
        f"def more(p):\n    {CONFIG}\n{PARSER.format('', '')}",
        [],
    ),
    "declared on a condition": (PARSER.format(f"if 'x' in sys.argv:\n    {CONFIG}", ""), []),
    "not required any more": (PARSER.format(f"o = {CONFIG}\no.required = False", ""), []),
    "words of its own": (f"import sys\nsys.argv += ['x']\n{PARSER.format(DATA, '')}", []),
    "words of its own, appended": (f"import sys\nsys.argv.append('x')\n{PARSER.format(DATA, '')}", []),
    "an exit that is caught": (
        f"import argparse\np = argparse.ArgumentParser()\n{DATA}\ntry: p.parse_args()\nexcept SystemExit: pass\n",
        [],
    ),
    "a return before": (
        f"import sys\ndef parse():\n    if len(sys.argv) < 2: return None\n    p = argparse.ArgumentParser()\n"
        f"    {DATA}\n    return p.parse_args()\nparse()\n",
        [],
    ),
    "in a file of configargparse": (f"import configargparse as argparse\n{PARSER.format(CONFIG, '')}", []),
    "variables of click": (CLICK.format("", "auto_envvar_prefix='X'"), []),
    "variables in click's settings": (CLICK.format("context_settings={'auto_envvar_prefix': 'X'}", ""), []),
    "words of its own for click": (CLICK.format("", "['--data', 'x']"), []),
    "absl, in a file": (FLAGS, ["--flagfile=x"]),
    "absl, with one dash": (FLAGS, ["-data=x", "-out=y"]),
    "a subcommand": (COMMANDS.format(""), ["fit-all"]),
    "commands beside a parser": (f"{COMMANDS.format('')}{PARSER.format('', '')}", []),
    "a command without one": (COMMANDS.format("invoke_without_command=True"), []),
    "commands of their own": (
        "import click\n@click.command()\ndef a(): pass\n@click.command()\ndef b(): pass\na()\n",
        [],
    ),
    "given": (PARSER.format(DATA, ""), ["/data"]),
    "a value that may be it": (PARSER.format(DATA, ""), ["--workers", "2"]),
    "option given": (PARSER.format(CONFIG, ""), ["--config", "x"]),
    "option by its beginning": (PARSER.format(CONFIG, ""), ["--conf=x"]),
    "option by its short name": (PARSER.format(CONFIG, ""), ["-cx"]),
    "maybe none": (PARSER.format('p.add_argument("data", nargs="*")', ""), []),
    "rest": (PARSER.format('p.add_argument("data", nargs=argparse.REMAINDER)', ""), []),
    "a list of its own": (PARSER.format(DATA, '["x"]'), []),
    "subcommands": (PARSER.format(f"{CONFIG}; s = p.add_subparsers()", ""), ["train"]),
    "defaults elsewhere": (PARSER.format(f"{CONFIG}; p.set_defaults(config=1)", ""), []),
    "another parser": ("p = argparse.ArgumentParser()\n" + PARSER.format(DATA, ""), []),
    "parsed on a condition": (
        "import argparse, sys\np = argparse.ArgumentParser()\np.add_argument('data')\n"
        "if len(sys.argv) > 1:\n    p.parse_args()\n",
        [],
    ),
    "a method of that name": (
        "import fire\ndef run(a=1): pass\nclass T:\n    def run(self, data): pass\nfire.Fire(run)\n",
        [],
    ),
    "click": ('import click\n@click.command()\n@click.argument("data", required=False)\ndef main(data): pass\n', []),
}  # fmt: skip


@pytest.mark.parametrize(("script", "words", "named"), FOUND.values(), ids=FOUND)
def test_what_the_parser_requires_is_named(tmp_path: Path, script: str, words: list[str], named: list[str]) -> None:
    """With the line that declares it."""
    job = job_with(tmp_path, **job_of(tmp_path, script, words))
    (found,) = required_argument_missing.check(make_plan(job))
    assert all(each in found.message for each in named)


@pytest.mark.parametrize(("script", "words"), NEAR.values(), ids=NEAR)
def test_what_may_be_given_is_no_error(tmp_path: Path, script: str, words: list[str]) -> None:
    """A refusal of a command that runs would be worse than none."""
    job = job_with(tmp_path, **job_of(tmp_path, script, words))
    assert not list(required_argument_missing.check(make_plan(job)))


@pytest.mark.parametrize(
    ("command", "there", "found"),
    [
        (["python", "train.py"], "src/train.py", False),
        (["python", "trian.py"], "src/train.py", True),
        (["torchrun", "src/train.py"], "src/train.py", True),
        (["python", "/opt/app/train.py"], "src/other.py", False),
        (["python", "-m", "mine.train"], "src/other.py", False),
        (["sh", "-c", "cd sub && python train.py"], "src/other.py", False),
        (["python", "train.py"], "elsewhere/train.py", False),
        (["python", "data/train.py"], "src/other.py", False),
        (["env", "-C", "/workspace/sub", "python", "train.py"], "src/other.py", False),
        (["torchrun", "--no-python", "./run.sh", "conf.py"], "src/other.py", False),
        (["ray", "job", "submit", "--working-dir", "sub", "--", "python", "train.py"], "src/other.py", False),
        (["torchrun", "--log-dir", "/tmp/logs", "trian.py"], "src/train.py", True),
    ],
)
def test_a_script_that_the_mounted_folder_has_not_is_an_error(
    tmp_path: Path, command: list[str], there: str, found: bool
) -> None:
    """What is in the image, on another mount, or in a folder that isn't on this machine, is unknown."""
    (tmp_path / there).parent.mkdir()
    (tmp_path / there).write_text("")
    data = {"type": "tmpfs", "target": "/workspace/data"}
    mounts = [{"type": "bind", "source": "./src", "target": "/workspace"}, data]
    job = job_with(tmp_path, command=command, working_dir="/workspace", mounts=mounts)
    assert [each.code for each in script_not_mounted.check(make_plan(job))] == ["TL218"] * found
