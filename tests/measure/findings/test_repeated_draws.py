"""Random numbers that repeat between workers, or between epochs."""

from __future__ import annotations

import pytest
from trainlaunch.diagnostics import Severity

from tests.measure.findings.saying import saying

GENERATOR = {"generator": "dataset.rng", "class": "numpy.random.Generator"}


def test_workers_that_draw_alike_are_an_error_with_the_line_to_type() -> None:
    """The line seeds this generator, by its path, from what torch gives each worker."""
    said = saying("repeated-augmentation", how="equal", num_workers=4, **GENERATOR)
    assert (said.code, said.severity) == ("TL708", Severity.ERROR)
    assert said.message == "all 4 workers draw the same random numbers from dataset.rng (numpy.random.Generator)"
    assert said.fix == (
        "in worker_init_fn: torch.utils.data.get_worker_info().dataset.rng = "
        "np.random.default_rng(torch.initial_seed() % 2**32)"
    )


def test_generators_that_repeat_together_are_one_finding() -> None:
    """A pipeline of ten transforms has ten."""
    others = ["dataset.flip", "dataset.t[1].R"]
    said = saying("repeated-augmentation", how="equal", num_workers=4, others=others, **GENERATOR)
    assert said.message.endswith("dataset.rng (numpy.random.Generator), and from dataset.flip, dataset.t[1].R")
    said = saying("repeated-epochs", num_workers=4, others=["dataset.flip"], **GENERATOR)
    assert said.message.endswith("again from dataset.rng (numpy.random.Generator), and from dataset.flip")


def test_a_script_without_workers_is_warned_of_what_they_would_do() -> None:
    """A plan may give it some."""
    said = saying("repeated-augmentation", how="equal", num_workers=0, **GENERATOR)
    assert said.severity is Severity.WARNING
    assert said.message.startswith("with num_workers above 1, all workers would draw the same random numbers from")


def test_a_division_of_the_seed_is_told_from_equal_draws() -> None:
    """Its workers differ, by their number alone."""
    facts = {"generator": "numpy.random", "class": "numpy.random", "how": "low bits", "num_workers": 2}
    said = saying("repeated-augmentation", **facts)
    assert said.message == "worker_init_fn seeds numpy.random without the low 32 bits of torch.initial_seed()"
    assert said.fix == "in worker_init_fn: np.random.seed(torch.initial_seed() % 2**32)"
    assert said.severity is Severity.WARNING


@pytest.mark.parametrize(
    ("generator", "kind", "line"),
    [
        ("random", "random", "random.seed(torch.initial_seed() % 2**32)"),
        ("dataset.t.r", "random.Random", "torch.utils.data.get_worker_info().dataset.t.r.seed(torch.initial_seed())"),
        ("collate_fn.state", "numpy.random.RandomState", "collate_fn.state.seed(torch.initial_seed() % 2**32)"),
        ("data.g", "torch.Generator", "data.g.manual_seed(torch.initial_seed())"),
    ],
)
def test_each_kind_of_generator_has_its_own_line(generator: str, kind: str, line: str) -> None:
    """What seeds one raises for another."""
    said = saying("repeated-epochs", generator=generator, num_workers=2, **{"class": kind})
    assert said.code == "TL709"
    assert said.fix == f"in worker_init_fn: {line}"
    assert said.message == f"each epoch draws the random numbers of the first again from {generator} ({kind})"


def test_torch_that_a_script_seeds_alike_needs_no_line_but_one_less() -> None:
    """torch has seeded each worker before worker_init_fn ran."""
    said = saying(
        "repeated-augmentation", generator="torch", how="equal", num_workers=2, **{"class": "torch.Generator"}
    )
    assert "drop the call of torch.manual_seed" in said.fix


def test_an_epoch_that_never_changes_is_said_with_its_number() -> None:
    """And the call that changes it."""
    said = saying("epoch-never-set", epoch=0, epochs=3)
    assert (said.code, said.severity) == ("TL731", Severity.WARNING)
    assert said.message == "3 epochs began with epoch 0 of the DistributedSampler"
    assert "sampler.set_epoch(epoch)" in said.fix
