"""Who decides how many workers a script has, and what every advice on their number then says to type."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from trainlaunch.diagnose.base.evidence import Evidence
from trainlaunch.diagnose.base.memory_advice import more_memory
from trainlaunch.rules import check_plan
from trainlaunch.rules.sources.deciding_workers import WorkersDecision, deciding_workers
from trainlaunch.run.base.run_evidence import advice_in_options, with_job

from tests.jobs import job_with, plan_with

LOADER = "from torch.utils.data import DataLoader\nimport argparse, os\n"
PARSED = 'p = argparse.ArgumentParser()\np.add_argument("-j", "--readers", type=int, default=4)\na = p.parse_args()\n'
CALL = "loader = DataLoader([], 8, num_workers={})\n"
ABSL = 'from absl import flags\nN = flags.DEFINE_integer("readers", 4, "")\n'
HUGGING_FACE = (
    "import transformers\nclass Own(transformers.TrainingArguments): pass\n"
    "(a,) = transformers.HfArgumentParser(Own).parse_args_into_dataclasses()\n"
)
FALLBACK = "def made(n=None):\n    if n is None:\n        n = 8\n    return DataLoader([], 8, num_workers=n)\n"
CONFIG = 'import yaml\ncfg = yaml.safe_load(open("c.yaml"))\nloader = DataLoader([], 8, **cfg["data"])\n'
# Script, further words of the command, env, data_loader.inject: kind, and what lowers the number to 2.
WAYS: dict[str, tuple[str, list[str], dict[str, str], str, str, str]] = {
    "constant": (CALL.format(8), [], {}, "env", "constant", "write num_workers=2 at train.py:3 or "),
    "constant in a dictionary": (
        'C = {"n": 8}\n' + CALL.format('C["n"]'), [], {}, "env", "constant", "write num_workers=2 at train.py:4 or ",
    ),
    "constant, overridden": (CALL.format(8), [], {}, "force", "plan", "set data_loader.num_workers to 2"),
    "option, not passed": (PARSED + CALL.format("a.readers"), [], {}, "env", "option", "add --readers=2 in command"),
    "option, passed": (
        PARSED + CALL.format("a.readers"), ["--readers", "8"], {}, "env", "option", "write --readers 2 in command",
    ),
    "option, passed by its short name": (
        PARSED + CALL.format("a.readers"), ["-j8"], {}, "env", "option", "write -j2 in command",
    ),
    "option, with the token": (
        PARSED + CALL.format("a.readers"), ["--readers={num_workers}"], {}, "env", "plan", "set data_loader.num_wor",
    ),
    "variable, not set": (CALL.format('int(os.getenv("N", "4"))'), [], {}, "env", "variable", 'add N: "2" in env'),
    "variable, set": (
        CALL.format('int(os.environ["N"])'), [], {"N": "8"}, "env", "variable", 'write N: "2" in env',
    ),
    "variable, with the token": (
        CALL.format('int(os.environ["N"])'), [], {"N": "{num_workers}"}, "env", "plan", "set data_loader.num_workers",
    ),
    "our variable": (
        CALL.format('int(os.environ["TRAINLAUNCH_NUM_WORKERS"])'), [], {}, "env", "plan", "set data_loader.num_worker",
    ),
    "override": (CONFIG, ["data.num_workers=8"], {}, "env", "override", "write data.num_workers=2 in command"),
    "not passed": (CONFIG, [], {}, "env", "unknown", "let the script start 2 where"),
    "spread over a default": (
        "def made(workers=4):\n    return DataLoader([], 8, num_workers=workers)\n"
        "made(**read('conf.yaml'))\n",
        [], {}, "env", "unknown", "let the script start 2 where",
    ),
    "absl, with the token": (
        ABSL + CALL.format("flags.FLAGS.readers"), ["--readers={num_workers}"], {}, "env", "plan", "set data_loader",
    ),
    "absl, by its holder": (ABSL + CALL.format("N.value"), ["-readers=8"], {}, "env", "option", "write -readers=2 in"),
    "the Trainer's option in another loader": (
        HUGGING_FACE + CALL.format("a.dataloader_num_workers"), ["--dataloader-num-workers={num_workers}"],
        {}, "env", "plan", "set data_loader",
    ),
    "the Trainer's option that no parser takes": (
        HUGGING_FACE.replace("(transformers.TrainingArguments)", "") + CALL.format("a.dataloader_num_workers"),
        [], {}, "env", "unknown", "let the script start 2",
    ),
    "the Trainer's constant": (
        "from transformers import Trainer, TrainingArguments\na = TrainingArguments(\n    dataloader_num_workers=8)\n"
        "Trainer(args=a)\n", [], {}, "env", "constant", "write dataloader_num_workers=2 at train.py:5 or ",
    ),
    "the Trainer's, in a dictionary": (
        "from transformers import Trainer, TrainingArguments\nkw = dict(\n    dataloader_num_workers=8)\n"
        "Trainer(args=TrainingArguments(**kw))\n", [], {}, "env", "constant", "write dataloader_num_workers=2 at train",
    ),
    "the Trainer's, in a dictionary that nobody knows": (
        "from transformers import Trainer, TrainingArguments\nTrainer(args=TrainingArguments(**read()))\n",
        [], {}, "env", "unknown", "let the script start 2 where",
    ),
    "the Trainer's default": (
        "from transformers import Trainer, TrainingArguments\nTrainer(args=TrainingArguments())\n",
        [], {}, "env", "constant", "write dataloader_num_workers=2 at train.py:4 or data_loader.inject: force",
    ),
    "another library's loader": (
        "import mxnet\nmxnet.gluon.data.DataLoader([], 8)\n", [], {}, "env", "unknown", "let the script start 2",
    ),
    "a parameter that got none": (
        f"{FALLBACK}made()\n", [], {}, "env", "constant", "write num_workers=2 at train.py:6 or ",
    ),
    "a parameter that got an option": (
        f"{PARSED}{FALLBACK}made(a.readers)\n", [], {}, "env", "option", "add --readers=2",
    ),
    "a parameter that a condition replaces": (
        FALLBACK.replace("n is None", "os.name == 'nt'") + "made(4)\n", [], {}, "env", "unknown", "let the script",
    ),
    "a dictionary that may be another": (
        "def made(kw=None):\n    if kw is None:\n        kw = {}\n    return DataLoader([], 8, **kw)\nmade(read())\n",
        [], {}, "env", "unknown", "let the script start 2 where",
    ),
    "passed on by **": (
        f"{PARSED}def made(**kw):\n    return DataLoader([], 8, **kw)\nmade(num_workers=a.readers)\n",
        [], {}, "env", "option", "add --readers=2",
    ),
    "a key that is set later": (
        f'{PARSED}kw = {{"batch_size": 8}}\nkw["num_workers"] = a.readers\nDataLoader([], **kw)\n',
        [], {}, "env", "option", "add --readers=2",
    ),
    "a key that is set on a condition": (
        'kw = {"num_workers": 2}\nif os.name == "nt":\n    kw["num_workers"] = 0\nDataLoader([], 8, **kw)\n',
        [], {}, "env", "unknown", "let the script start 2",
    ),
    "left to torch": ("loader = DataLoader([], 8)\n", [], {}, "env", "library", "write num_workers=2 at train.py:3"),
    "left to torch, injected": ("loader = DataLoader([], 8)\n", [], {}, "num_workers", "plan", "set data_loader.num_w"),
}  # fmt: skip


def job_of(folder: Path, script: str, words: list[str], **fields: Any) -> dict[str, Any]:
    """Return the fields of a job that mounts a folder with a script and runs it."""
    (folder / "src").mkdir()
    (folder / "src" / "train.py").write_text(LOADER + script)
    mounts = [{"type": "bind", "source": "./src", "target": "/workspace"}]
    return {
        "command": ["uv", "run", "python", "-u", "train.py", *words],
        "working_dir": "/workspace",
        "mounts": mounts,
        **fields,
    }


@pytest.mark.parametrize(("script", "words", "env", "inject", "kind", "way"), WAYS.values(), ids=WAYS)
def test_the_script_says_who_decides(
    tmp_path: Path, script: str, words: list[str], env: dict[str, str], inject: str, kind: str, way: str
) -> None:
    """An advice that names another place changes nothing."""
    fields = job_of(tmp_path, script, words, env=env, data_loader={"num_workers": 8, "inject": inject})
    decision = deciding_workers(job_with(tmp_path, **fields))
    assert decision.kind == kind
    assert way in decision.to_have(2)
    assert (decision.take_planned() == "") == (kind == "plan")


def test_a_script_in_the_image_is_known_by_its_command_alone(tmp_path: Path) -> None:
    """Nobody can read it; an option that says workers is one all the same, `make -j` is none."""
    said = {
        ("python", "/opt/train.py", "--num_workers", "8"): "option",
        ("python", "/opt/train.py", "data.num_workers={num_workers}"): "plan",
        ("python", "/opt/train.py"): "unknown",
        ("make", "--workers=8"): "unknown",
    }
    for words, kind in said.items():
        assert deciding_workers(job_with(tmp_path, command=list(words))).kind == kind, words


def test_a_script_in_a_folder_that_is_mounted_at_its_own_path_is_read(tmp_path: Path) -> None:
    """As `run --image` mounts the folder, and the job file that a run leaves says so."""
    fields = job_of(tmp_path, "DataLoader(data, num_workers=3)\n", [])
    at = str(tmp_path / "src")
    fields |= {"working_dir": at, "mounts": [{"type": "bind", "source": at, "target": at}]}
    assert deciding_workers(job_with(tmp_path, **fields)).words == "train.py:3 sets 3"


def test_a_script_outside_of_the_jobs_repository_is_not_read(tmp_path: Path) -> None:
    """A job file may be a stranger's, and what is said of a file quotes it."""
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "train.py").write_text(LOADER + CALL.format(8))
    (tmp_path / "own" / ".git").mkdir(parents=True)
    mounts = [{"type": "bind", "source": str(tmp_path / "other"), "target": "/workspace"}]
    job = job_with(tmp_path / "own", command=["python", "/workspace/train.py"], mounts=mounts)
    assert deciding_workers(job).kind == "unknown"


def test_too_many_workers_are_lowered_where_they_are_decided(tmp_path: Path) -> None:
    """TL206 names the script's own line."""
    fields = job_of(
        tmp_path, CALL.format(8), [], resources={"cpus": 2}, data_loader={"num_workers": 8, "collate": "none"}
    )
    (found,) = [each for each in check_plan(plan_with(tmp_path, **fields)) if each.code == "TL206"]
    assert found.fix == (
        "set data_loader.num_workers to 2, and write num_workers=2 at train.py:3 or data_loader.inject: force"
    )
    fix = more_memory(with_job(Evidence(137, memory=2**31), job_with(tmp_path, **fields)))
    assert "or lower num_workers in the script and in data_loader.num_workers (train.py:3 sets 8)" in fix


SIZED = {"batch_size": 4, "sample": {"shape": [8], "dtype": "float32"}}
# Script, words of the command, data_loader: what TL220 says to do, empty where it is silent.
PLANNED_FOR: dict[str, tuple[str, list[str], dict[str, Any], str]] = {
    "a constant above": (CALL.format(8), [], {"num_workers": 2}, "write data_loader.inject: force, or set"),
    "above an automatic number": (CALL.format(8), [], {}, "write data_loader.inject: force, or set"),
    "an option above": (
        PARSED + CALL.format("a.readers"), ["--readers", "8"], {"num_workers": 2}, "write --readers {num_workers} in",
    ),
    "its default above": (PARSED + CALL.format("a.readers"), [], {"num_workers": 2}, "write --readers={num_workers}"),
    "as many": (CALL.format(2), [], {"num_workers": 2}, ""),
    "fewer": (CALL.format(1), [], {"num_workers": 2}, ""),
    "forced": (CALL.format(8), [], {"num_workers": 2, "inject": "force"}, ""),
    "the token": (PARSED + CALL.format("a.readers"), ["--readers", "{num_workers}"], {"num_workers": 2}, ""),
    "a variable that an image may set": (CALL.format('int(os.getenv("N", "8"))'), [], {"num_workers": 2}, ""),
    "an option that is changed later": (
        PARSED + "a.readers = min(a.readers, 2)\n" + CALL.format("a.readers"), [], {"num_workers": 2}, "",
    ),
    "one of two loaders": (CALL.format(2) + CALL.format(1), [], {"num_workers": 2}, ""),
    "one of two branches": (
        f"if os.cpu_count() > 9:\n    {CALL.format(8)}else:\n    {CALL.format(2)}", [], {"num_workers": 2}, "",
    ),
    "an option within a sum": (
        PARSED + CALL.format("min(a.readers, 2)"), ["--num-workers", "8"], {"num_workers": 2}, "",
    ),
    "an option on a condition": (
        PARSED + CALL.format("a.readers if os.cpu_count() > 9 else 2"), ["--num-workers", "8"], {"num_workers": 2}, "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PLANNED_FOR)
def test_a_script_with_more_workers_than_planned_is_told(tmp_path: Path, name: str) -> None:
    """/dev/shm would be planned for fewer than there are; only where the number is certain."""
    script, words, loader, fix = PLANNED_FOR[name]
    fields = job_of(tmp_path, script, words, resources={"cpus": 4, "memory": "4Gi"}, data_loader=SIZED | loader)
    found = [each for each in check_plan(plan_with(tmp_path, **fields)) if each.code == "TL220"]
    assert [each.fix.startswith(fix) for each in found] == [True] * bool(fix), found


@pytest.mark.parametrize(
    ("decision", "to_have", "lower"),
    [
        (("constant", "", "a.py:3", 8), "give `--workers 2`", "lower num_workers (a.py:3 sets 8)"),
        (("plan", "data_loader.inject"), "give `--workers 2`", "lower num_workers (`--workers`)"),
        (("variable", "N", "a.py:3", 8, True), "write N=2", "lower N"),
        (("option", "--readers ", "a.py:3", 8, True), "write --readers 2", "lower --readers"),
        (("unknown",), "let it start 2 workers where it sets num_workers (an option", "lower num_workers"),
    ],
)
def test_a_command_of_run_gets_its_workers_by_its_own_words_and_options(
    decision: tuple[Any, ...], to_have: str, lower: str
) -> None:
    """No field of a job file is one of them, and what --workers gave is taken back by it."""
    advice = advice_in_options(WorkersDecision(*decision))
    assert advice.to_have(2).startswith(to_have)
    assert advice.lower() == lower
