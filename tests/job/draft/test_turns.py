"""`init` drafts `loaders_run: in_turn` only where the text shows that each loop ends before the next starts."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import pytest
from trainlaunch.init import DraftOptions, draft, read_script
from trainlaunch.policy import read_job

from tests.conftest import ROOT

HEAD = "import torch\nfrom torch.utils.data import DataLoader\n"
MADE = HEAD + "train = DataLoader(a, 8, num_workers=2)\nval = DataLoader(b, 8, num_workers=2)\n"
FUNCTIONS = (
    MADE
    + "def fit(model, loader):\n    model.train()\n    for x, y in loader:\n        model(x).backward()\n"
    + "@torch.no_grad()\ndef evaluate(model, loader):\n    return sum(model(x) for x in loader)\n"
)


def drafted(folder: Path, text: str, **modules: str) -> str:
    """Return the draft of a script, with modules beside it."""
    for name, body in {"train": text, **modules}.items():
        (folder / f"{name}.py").write_text(textwrap.dedent(body))
    return draft(DraftOptions(name="digits", program="train.py"), read_script(folder / "train.py"))


IN_TURN = {
    "one after the other": MADE + "for x in train:\n    f(x)\nfor x in val:\n    f(x)\n",
    "in each epoch": MADE + "for epoch in range(3):\n    for x in train:\n        f(x)\n    if epoch % 2:\n"
    "        for x in val:\n            f(x)\n",
    "counted": MADE + "for i, x in enumerate(train, 1):\n    f(x)\nfor i, (x, y) in enumerate(val):\n    f(x)\n",
    "with a bar": "from tqdm.auto import tqdm\n"
    + MADE
    + "for x in tqdm(enumerate(train), total=len(train)):\n    f(x)\nfor x in tqdm(val):\n    f(x)\n",
    "an inner loop's break": MADE
    + "for x in train:\n    for y in x:\n        break\n    while True:\n        break\nfor x in val:\n    f(x)\n",
    "functions": FUNCTIONS + "for _ in range(3):\n    fit(m, train)\n    print(evaluate(m, loader=val))\n",
    "methods": HEAD
    + "class Run:\n    def __init__(self):\n        self.one = DataLoader(a)\n        self.two = DataLoader(b)\n"
    "    def fit(self):\n        for x in self.one:\n            f(x)\n        self.check()\n"
    "    def check(self):\n        for x in self.two:\n            f(x)\nRun().fit()\n",
    "returned": HEAD
    + "def build():\n    one = DataLoader(a)\n    two = DataLoader(b) if b else None\n    return one, two, 10\n"
    "one, two, classes = build()\nnet(classes)\nfor x in one:\n    f(x)\n"
    "if two is not None:\n    [f(x) for x in two]\n",
    "by phase": HEAD + "loaders = {'train': DataLoader(a), 'val': DataLoader(b)}\n"
    "for phase in ('train', 'val'):\n    for x in loaders[phase]:\n        f(x)\n    g(len(loaders[phase].dataset))\n",
    "a list": HEAD
    + "one, two = DataLoader(a), DataLoader(b)\nfor each in [one, two]:\n    for x in each:\n        f(x)\n",
    "an error within a round": MADE
    + "for x in train:\n    try:\n        f(x)\n    except ValueError:\n        continue\nfor x in val:\n    f(x)\n",
    "main under try": FUNCTIONS + "def main():\n    fit(m, train)\n    evaluate(m, val)\n"
    "try:\n    main()\nexcept KeyboardInterrupt:\n    print()\n",
    "a flag of the name": FUNCTIONS
    + "def data(fit, root):\n    return root if fit else None\ndata(True, 'x')\nfit(m, train)\nevaluate(m, val)\n",
    "ranks of their own": "import torch.multiprocessing as mp\n"
    + FUNCTIONS
    + "def work(rank):\n    fit(m, train)\n    evaluate(m, val)\nmp.spawn(work, nprocs=2)\n",
}


@pytest.mark.parametrize("text", IN_TURN.values(), ids=IN_TURN)
def test_loops_one_after_another_are_in_turn(tmp_path: Path, text: str) -> None:
    """However the loaders reach them."""
    assert "\n  loaders_run: in_turn # " in drafted(tmp_path, text)


LOOP = "for x in val:\n    f(x)\n"
SCORE = MADE + "def score():\n    for x in val:\n        f(x)\n"
TOGETHER = {
    "break": (
        MADE + "for x in train:\n    if x:\n        break\n" + LOOP,
        "train.py:7 may leave the loop of train.py:5",
    ),
    "break of an else": (
        MADE + "for x in train:\n    for y in x:\n        pass\n    else:\n        break\n" + LOOP,
        "train.py:9 may leave",
    ),
    "return": (
        MADE + "def fit():\n    for x in train:\n        return x\nfit()\n" + LOOP,
        "train.py:7 may leave the loop of train.py:6",
    ),
    "iter": (
        MADE + "it = iter(train)\nwhile True:\n    next(it)\n" + LOOP,
        "hands a loader to iter, which may keep it",
    ),
    "zip": (MADE + "for x, y in zip(train, val):\n    f(x)\n", "hands a loader to zip"),
    "cycle": (
        "from itertools import cycle\n" + MADE + "for x in cycle(val):\n    f(x)\n",
        "hands a loader to itertools.cycle",
    ),
    "kept enumerate": (MADE + "e = enumerate(train)\n" + LOOP, "train.py:5 keeps enumerate(…) of a loader"),
    "nested": (MADE + "for x in train:\n    for y in val:\n        f(y)\n", "inside the loop of train.py:5"),
    "nested in a comprehension": (MADE + "s = [x for x in train for y in val]\n", "inside a comprehension"),
    "evaluation inside an epoch": (
        FUNCTIONS + "for x in train:\n    evaluate(m, val)\n",
        "train.py:13 loads data inside the loop of train.py:12",
    ),
    "inside by a third": (
        FUNCTIONS + "def every(step):\n    if step:\n        evaluate(m, val)\nfor x in train:\n    every(1)\n",
        "loads data inside the loop of train.py:15",
    ),
    "inside, by an alias": (SCORE + "check = score\nfor x in train:\n    check()\n", "passes score on"),
    "inside, by a parameter": (
        SCORE + "def run(loader, score):\n    for x in loader:\n        score()\nrun(train, score)\n",
        "train.py:11 passes score on, which loads data whenever it is called",
    ),
    "a thread": (
        "import threading\n" + SCORE + "threading.Thread(target=score).start()\nfor x in train:\n    f(x)\n",
        "train.py:9 passes score on",
    ),
    "a callback": (
        FUNCTIONS + "engine.on('epoch', lambda: evaluate(m, val))\nfit(m, train)\n",
        "loads data whenever something asks for it",
    ),
    "a framework's handler": (
        FUNCTIONS + "@engine.on('epoch')\ndef check():\n    evaluate(m, val)\nfit(m, train)\n",
        "loads data in check, which others call",
    ),
    "a generator": (
        MADE + "def flow():\n    for x in train:\n        yield x\nfor x in flow():\n    f(x)\n" + LOOP,
        "train.py:5 loads data in flow, which may be left halfway",
    ),
    "a lazy sum": (
        FUNCTIONS + "scores = (evaluate(m, val) for m in models)\nfor x in train:\n    next(scores)\n",
        "loads data whenever something asks for it",
    ),
    "any": (MADE + "any(x for x in train)\n" + LOOP, "train.py:5 loads data whenever something asks for it"),
    "caught": (
        MADE + "for _ in range(3):\n    try:\n        for x in train:\n            f(x)\n    except ValueError:\n"
        "        pass\n    for x in val:\n        f(x)\n",
        "train.py:6 goes on after an exception",
    ),
    "caught at the top, and on": (
        MADE + "try:\n    for x in train:\n        f(x)\nexcept ValueError:\n    pass\n" + LOOP,
        "goes on after an exception",
    ),
    "while it is handled": (
        MADE + "try:\n    for x in train:\n        f(x)\nfinally:\n    for x in val:\n        f(x)\n",
        "where an exception may still hold another loop",
    ),
    "suppressed": (
        "import contextlib\n" + MADE + "with contextlib.suppress(OSError):\n    for x in train:\n        f(x)\n" + LOOP,
        "goes on after an exception",
    ),
    "a framework's loop": (MADE + "trainer.fit(m, train, val)\n", "hands a loader to trainer.fit, which may keep it"),
    "prepared": (MADE + "train, val = accelerator.prepare(train, val)\n" + LOOP, "accelerator.prepare"),
    "another class": (
        HEAD + "from yolo import InfiniteDataLoader\none = InfiniteDataLoader(a)\nval = DataLoader(b)\n" + LOOP,
        "train.py:4 makes a loader of a class of its own",
    ),
    "global": (
        HEAD
        + "def build():\n    global train, val\n    train = DataLoader(a)\n    val = DataLoader(b)\nbuild()\n"
        + LOOP,
        "where any function may change it",
    ),
    "unpacked": (MADE + "first, *rest = train\n" + LOOP, "does with a loader what can't be followed"),
    "its own iterator": (MADE + "train._get_iterator()\n" + LOOP, "does with a loader what can't be followed"),
    "no loop": (MADE, "no loop over one was found"),
}


@pytest.mark.parametrize(("text", "why"), TOGETHER.values(), ids=TOGETHER)
def test_what_the_text_does_not_show_stays_together_and_says_why(tmp_path: Path, text: str, why: str) -> None:
    """The place and the reason stand where the field would."""
    text = drafted(tmp_path, text)
    assert "\n  loaders_run:" not in text
    words = " ".join(text.replace("#", "").split())
    assert "They count together, since " in words
    assert why in words


def test_loaders_and_loops_in_modules_are_followed(tmp_path: Path) -> None:
    """By the functions that are imported; a variable that another module reads is not."""
    data = HEAD + "def build():\n    return DataLoader(a), DataLoader(b)\n"
    engine = "def run(model, loader):\n    for x in loader:\n        model(x)\n"
    text = "import engine\nfrom data import build as make\none, two = make()\nengine.run(m, one)\nengine.run(m, two)\n"
    shown = drafted(tmp_path, text, data=data, engine=engine)
    assert "loaders_run: in_turn # each loop over a loader ends before the next starts: engine.py:2" in shown
    module = HEAD + "one = DataLoader(a)\ntwo = DataLoader(b)\n"
    text = "from data import one, two\nfor x in one:\n    for y in two:\n        f(x)\n"
    assert "train.py:1 takes the loader one of another module" in drafted(tmp_path, text, data=module)


def test_one_loader_has_nobody_to_take_turns_with(tmp_path: Path) -> None:
    """Neither the field nor a word about it."""
    text = drafted(tmp_path, HEAD + "one = DataLoader(a)\nfor x in one:\n    f(x)\n")
    assert "loaders_run" not in text
    assert "together" not in text


def test_the_quickstarts_loaders_are_in_turn(tmp_path: Path) -> None:
    """It trains by a loop in an epoch and tests by a sum; the job file has the field."""
    shutil.copy(ROOT / "examples/quickstart/train.py", tmp_path)
    path = tmp_path / "job.yaml"
    path.write_text(draft(DraftOptions(name="digits", program="train.py"), read_script(tmp_path / "train.py")))
    job = read_job(path)
    assert (job.data_loader.loaders_run, [each.name for each in job.data_loader.loaders]) == (
        "in_turn",
        ["train", "test"],
    )
