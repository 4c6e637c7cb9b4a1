"""How much text a delivery adds to a wrapper and to a manifest."""

from __future__ import annotations

import json

import pytest
from trainlaunch.container.instrumentation_files import END_OF_FILE, inside_files
from trainlaunch.container.preflight import wrapper_words
from trainlaunch.kinds import KINDS
from trainlaunch.plan.instrumentation import DATA_WAIT, HEARTBEAT, PAGES, PROBE, TUNE, WORKERS, Instrumentation
from trainlaunch.units import round_up

from tests.inside.test_site import SITE
from tests.render.jobs import FOLDER
from tests.render.kinds import documents, kind_plan

LONGEST_ARGUMENT = 131_072  # bytes of one element of argv, its end included
PYTHON_OF_RENDERINGS = 42 * 1024
WRAPPER = 96 * 1024
MAIN_OBJECT = 250_000  # kubectl apply keeps it once more in an annotation, of which 262,144 bytes are allowed
JOB = FOLDER / "jobs" / "cluster.yaml"


def is_there(part: str) -> bool:
    return (SITE.parent / part).is_dir() or (SITE.parent / f"{part}.py").is_file()


COMMITTED = tuple(each for each in (HEARTBEAT, WORKERS, DATA_WAIT) if is_there(each))
OWN = 4 * 4096  # bytes of the pages of heartbeat and data waits, and of the health check's peak
DELIVERIES = [COMMITTED, *((*COMMITTED, each) for each in (PROBE, TUNE) if is_there(each))]
EVERY_DELIVERY = pytest.mark.parametrize("parts", DELIVERIES, ids="-".join)


@EVERY_DELIVERY
def test_a_wrapper_stays_one_argument(parts: tuple[str, ...]) -> None:
    """Under 96 KiB, so that what a target escapes in it fits as well."""
    made = kind_plan(JOB, "job", 1)._replace(inside=Instrumentation(parts))
    assert max(len(each.encode()) for each in wrapper_words(made)) <= WRAPPER < LONGEST_ARGUMENT
    assert END_OF_FILE not in "".join(each for _, each in inside_files(made))


@EVERY_DELIVERY
@pytest.mark.parametrize("kind", KINDS)
def test_a_manifest_can_be_applied(kind: str, parts: tuple[str, ...]) -> None:
    """kubectl's own annotation holds the whole object."""
    nodes = 1 if kind == "pod" else 3
    made = kind_plan(JOB, kind, nodes)._replace(inside=Instrumentation(parts))
    sizes = [len(json.dumps(each).encode()) for each in documents(made)]
    assert max(sizes) <= MAIN_OBJECT
    assert all(len(each.splitlines()) > 100 for each in (wrapper_words(made)[2], wrapper_words(made)[-1]))


def test_a_rendering_carries_little_python() -> None:
    """Whoever reviews a manifest reads it."""
    made = kind_plan(JOB, "job", 1)._replace(inside=Instrumentation(COMMITTED))
    assert sum(len(text.encode()) for _, text in inside_files(made)) <= PYTHON_OF_RENDERINGS


@pytest.mark.parametrize("page", [4096, 65536])
def test_planned_pages_hold_the_files(page: int) -> None:
    """Theirs, what those write, and the health check's peak; an empty file takes none."""
    made = kind_plan(JOB, "job", 1)._replace(inside=Instrumentation(COMMITTED))
    files = sum(round_up(len(text.encode()), page) for _, text in inside_files(made))
    assert files + round_up(OWN, page) <= PAGES * page
