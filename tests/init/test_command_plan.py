"""The plan of a bare command line: what the shell around it says counts, and what can't be planned is one error."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from trainlaunch.cli.arguments.waiting import workers_advice
from trainlaunch.diagnostics import Diagnostic
from trainlaunch.errors import JobFileRejected, UsageError
from trainlaunch.init.command_plan import CommandNumbers, CommandPlan, command_plan
from trainlaunch.run.base.store import Followed
from trainlaunch.run.base.wait_reading import DataWait, LoaderWait


def test_a_variable_of_the_shell_decides_and_a_secret_stays_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command inherits the one; the job file that `init --from` hands on names the other without its value."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("READERS", "8")
    loader = "DataLoader([1], num_workers=int(os.getenv('READERS', '4')))\n"
    (tmp_path / "a.py").write_text("import os\nfrom torch.utils.data import DataLoader\n" + loader)
    planned = command_plan(["python", "a.py"], CommandNumbers(), {"HF_TOKEN": "hf_x", "A": "b"}, "0123456789ab")
    assert [each.words for each in planned.decisions] == ["READERS 8 decides (a.py:3)"]
    assert '\nenv: {A: "b"}\nsecrets: {HF_TOKEN: {env: HF_TOKEN}}\n' in planned.text
    assert planned.plan.job.env["HF_TOKEN"] == "hf_x"
    assert "hf_x" not in planned.text


@pytest.mark.parametrize(
    ("visible", "nodes", "gpus"),
    [
        ("0", 0, (0, False, 1)),
        ("-1", 4, (0, False, 1)),
        ("NoDevFiles", 4, (0, False, 1)),
        ("2,-1,3", 4, (0, True, 1)),
        ("2,3", 4, (0, True, 2)),
        ("MIG-1,MIG-2", 1, (0, True, 2)),
        ("0", None, (0, True, 1)),
    ],
)
def test_gpus_are_those_that_cuda_would_see(
    visible: str, nodes: int | None, gpus: tuple[int, bool, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A variable that hides all of them, or that a machine without any has, asks for none."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    monkeypatch.setattr("trainlaunch.init.command_plan.gpu_nodes", lambda: nodes)
    plan = command_plan(["torchrun", "--nproc_per_node", "gpu", "x.py"], CommandNumbers(), {}, "0123456789ab").plan
    assert (plan.gpus.count, plan.gpus.all, plan.ranks.value) == gpus


def test_words_that_no_job_file_can_hold_are_an_error() -> None:
    """A name of bytes that are no UTF-8."""
    with pytest.raises(UsageError, match="UTF-8"):
        command_plan(["cat", "\udcff"], CommandNumbers(), {}, "0123456789ab")


def test_advice_at_the_end_changes_no_exit_code() -> None:
    """`--workers auto` may be refused for the script, as with a start method that injecting can't serve."""
    loop = LoaderWait(0, 1, "training", "train.py:3", 9, 5.0, 0.0, 0.0, 9.0)
    followed = Followed(0, data_wait=DataWait((loop,)), seconds=9.0)
    decided = SimpleNamespace(decisions=[SimpleNamespace(number=1)])

    def refused() -> CommandPlan:
        raise JobFileRejected([Diagnostic("TL109", "both", "one")])

    def planned() -> CommandPlan:
        return cast("CommandPlan", SimpleNamespace(plan=SimpleNamespace(num_workers=SimpleNamespace(value=2))))

    said = [workers_advice(cast("CommandPlan", decided), each, followed, None) for each in (refused, planned)]
    assert said == ["", "`--workers auto` gives its loaders 2 workers instead of 1"]


def test_a_script_that_no_reader_or_job_file_can_take_runs_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A constant over every limit of a field is told of the script, and a text that breaks the reader is unknown."""
    monkeypatch.chdir(tmp_path)
    loader = "from torch.utils.data import DataLoader\nDataLoader([1], num_workers=5000)\n"
    (tmp_path / "a.py").write_text(loader)
    planned = command_plan(["python", "a.py"], CommandNumbers(), {}, "0123456789ab")
    assert [each.words for each in planned.decisions] == ["a.py:2 sets 5000"]
    assert planned.plan.job.command == ("python", "a.py")
    (tmp_path / "b.py").write_text(loader.replace("5000", "2"))
    small = ("data_loader.batch_bytes={size: 64Mi, tensors: 1}", "shm_size=8Mi")
    with pytest.raises(JobFileRejected, match="TL202"):
        command_plan(["python", "b.py"], CommandNumbers(sets=small), {}, "0123456789ab")
    monkeypatch.setattr("trainlaunch.script.read_script.read_script", lambda _: {}["a reader's own mistake"])
    assert command_plan(["python", "a.py"], CommandNumbers(), {}, "0123456789ab").facts is None


def test_a_variable_that_looks_like_a_token_is_the_commands_own() -> None:
    """In a pair of braces more, which the preflight takes away."""
    env = {"A": "{num_workers}", "B": "x{y}", "C": "{num_worker}"}
    job = command_plan(["true"], CommandNumbers(), env, "0123456789ab").plan.job
    assert job.env == {**env, "A": "{{num_workers}}"}


def test_what_a_script_says_of_its_own_words_is_left_to_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A job file without a required argument is an error; the bare command prints its usage, and its help."""
    monkeypatch.chdir(tmp_path)
    parser = "import argparse\np = argparse.ArgumentParser()\np.add_argument('data')\np.parse_args()\n"
    (tmp_path / "a.py").write_text(parser)
    for words in (["python", "a.py"], ["python", "a.py", "--help"], ["python", "nothere.py"]):
        assert command_plan(words, CommandNumbers(), {}, "0123456789ab").plan.job.command == tuple(words)


def test_workers_reach_a_key_that_the_script_takes_as_an_override(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Behind the command's own words, which stay."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text("data:\n  num_workers: 2\n")
    (tmp_path / "a.py").write_text(
        "import sys, yaml\nfrom torch.utils.data import DataLoader\ncfg = yaml.safe_load(open('c.yaml'))\n"
        "for o in sys.argv[1:]:\n    k, v = o.split('=', 1)\n    a, b = k.split('.')\n    cfg[a][b] = int(v)\n"
        "DataLoader([1], num_workers=cfg['data']['num_workers'])\n"
    )
    planned = command_plan(["python", "a.py"], CommandNumbers(workers="3"), {}, "0123456789ab").plan
    assert planned.job.command == ("python", "a.py", "data.num_workers={num_workers}")
    assert planned.num_workers.value == 3
