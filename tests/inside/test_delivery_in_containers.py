"""The wrapper unpacks Python for the job's processes, in real containers, under each shell."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.container import instrumentation_files as inside
from trainlaunch.container.preflight import plan_variables, wrapper_words
from trainlaunch.plan.instrumentation import Instrumentation
from trainlaunch.plan.launch_plan import LaunchPlan

from tests.inside.test_site import PART, PROCESS, SITE
from tests.preflight.containers import EVERY_SHELL, SHM, Case, RunsCases
from tests.preflight.plans import plan

pytestmark = pytest.mark.docker

FOLDER = "/dev/shm/.trainlaunch"
CLEAN = f"chattr -i {FOLDER} 2>/dev/null; rm -rf {FOLDER}* /var/site /tmp/other"
TORCH = (
    "mkdir -p /var/site/torch/utils/data && echo 'class DataLoader: pass' >/var/site/torch/utils/data/dataloader.py"
    " && chmod -R a+rX /var/site"
)
TRAIN = "import torch.utils.data.dataloader, os; print(os.environ['PYTHONPATH'], os.environ.get('TRAINLAUNCH_INSIDE'))"
INSTALLED = f"installed True\n{FOLDER}:/var/site part\n"
NOTHING = "/var/site None\n"


@pytest.fixture(autouse=True)
def _part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deliver a part that says so, and what a shell might take for its own."""
    for source in (SITE, PROCESS):
        (tmp_path / source.name).write_text(source.read_text())
    (tmp_path / "__init__.py").write_text('"""$HOME `id` \\\\ $(id) \' " ${x?}"""\n')
    (tmp_path / "part.py").write_text(PART + "# " + "x" * 70000 + "\n")
    monkeypatch.setattr(inside, "_SOURCES", tmp_path)
    inside._files.cache_clear()


def delivered(target: str = "docker") -> LaunchPlan:
    """Return a plan whose job loads torch's module, with the part."""
    made = plan(command=["python3", "-c", TRAIN], target=target)
    return made._replace(inside=Instrumentation(("part",), (("TRAINLAUNCH_PART", '{"a": "$HOME"}'),)))


def case(setup: str = ":", user: int = 1000, **env: str) -> Case:
    return Case(
        delivered(), user=user, setup=f"{CLEAN}; {TORCH}; {setup}", env={"HOME": "/", "PYTHONPATH": "/var/site", **env}
    )


@EVERY_SHELL
def test_parts_arrive_for_every_user(run_cases: RunsCases) -> None:
    """In front of the job's own path, byte for byte."""
    for ended in run_cases([case(), case(user=0)], SHM):
        assert (ended.code, ended.out) == (0, INSTALLED), ended
    script = f"cat {FOLDER}/trainlaunch_inside/__init__.py; stat -c '%a' {FOLDER} {FOLDER}/*; echo $TRAINLAUNCH_PART"
    made = plan(command=["sh", "-c", script])._replace(inside=delivered().inside)
    text = dict(inside.inside_files(made))["trainlaunch_inside/__init__.py"]
    (each,) = run_cases([Case(made, user=1000, setup=CLEAN)], SHM)
    assert each.out == f'{text}700\n600\n600\n700\n{{"a": "$HOME"}}\n'


def test_a_path_that_is_not_set_stays_ours_alone(run_cases: RunsCases) -> None:
    """An empty entry would be the current folder."""
    made = plan(command=["sh", "-c", 'echo "$PYTHONPATH"'])._replace(inside=delivered().inside)
    assert [each.out for each in run_cases([Case(made, setup=CLEAN)], SHM)] == [f"{FOLDER}\n"]


@pytest.mark.parametrize(
    "planted",
    [
        f"mkdir -m 777 {FOLDER}",
        f"mkdir /tmp/other; chown 1000 /tmp/other; ln -s /tmp/other {FOLDER}",
        f"echo >{FOLDER}; chown 1000 {FOLDER}",
    ],
    ids=["folder", "link", "file"],
)
def test_what_is_not_ours_is_left_alone(run_cases: RunsCases, planted: str) -> None:
    """Nothing of it comes to PYTHONPATH, and that is said."""
    said = f"trainlaunch: warning: {FOLDER} is not of uid 1000, so part is off"
    (each,) = run_cases([case(planted)], SHM)
    assert (each.code, each.out) == (0, NOTHING), each
    assert each.err.count(said) == 1, each
    assert "trainlaunch_inside" not in each.err


def test_an_earlier_attempt_leaves_nothing_that_is_run(run_cases: RunsCases) -> None:
    """Its folder is of the same uid; others could have written there if it was open. The check's peak stays."""
    left = (
        f"mkdir -p {FOLDER}/trainlaunch_inside/__pycache__ && echo 'raise 1' >{FOLDER}/sitecustomize.py"
        f" && echo 'raise 1' >{FOLDER}/trainlaunch_inside/part.py && echo 7 >{FOLDER}/peak"
        f" && ln -s /etc/passwd {FOLDER}/__pycache__ && chown -R 1000 {FOLDER} && chmod 777 {FOLDER}"
    )
    (each,) = run_cases([case(left)], SHM)
    assert (each.code, each.out) == (0, INSTALLED), each
    kept = plan(command=["sh", "-c", f"cat {FOLDER}/peak; stat -c %a {FOLDER}"])._replace(inside=delivered().inside)
    (each,) = run_cases([Case(kept, user=1000, setup=f"{CLEAN}; {left}")], SHM)
    assert each.out == "7\n700\n"


def test_a_shared_folder_names_the_run(run_cases: RunsCases) -> None:
    """Where /dev/shm is this host's, other runs have theirs."""
    shared = Case(
        delivered("local"),
        user=1000,
        setup=f"{CLEAN}; {TORCH}",
        env={"PYTHONPATH": "/var/site", "TRAINLAUNCH_RUN_ID": "run-1a2b"},
    )
    (each,) = run_cases([shared], SHM)
    assert each.out == f"installed True\n{FOLDER}-run-1a2b:/var/site part\n", each


def test_a_read_only_root_has_room(run_cases: RunsCases) -> None:
    """bash keeps long texts in files; /dev/shm is the only folder that can be written here."""
    flags = ("--read-only", "--tmpfs=/var", "--tmpfs=/tmp:size=16k")
    (each,) = run_cases([case()], SHM, *flags)
    assert (each.code, each.out) == (0, INSTALLED), each


def test_a_folder_that_cannot_be_written_is_said(run_cases: RunsCases) -> None:
    """The job goes on without."""
    fill = f"mkdir -m 700 {FOLDER}; mkdir {FOLDER}/trainlaunch_inside; chown 0 {FOLDER}/trainlaunch_inside"
    full = case(f"{fill}; touch {FOLDER}/trainlaunch_inside/x; chown 1000 {FOLDER}")
    (each,) = run_cases([full], SHM)
    assert (each.code, each.out) == (0, NOTHING), each
    assert f"trainlaunch: warning: uid 1000 can't write {FOLDER}, so part is off" in each.err


def test_python_makes_no_folder_of_its_own_there(run_cases: RunsCases) -> None:
    """Each page of /dev/shm is planned."""
    script = f"python3 -c 'import torch.utils.data.dataloader'; find {FOLDER} | sort"
    made = plan(command=["sh", "-c", script])._replace(inside=delivered().inside)
    listed = Case(made, user=1000, setup=f"{CLEAN}; {TORCH}", env={"PYTHONPATH": "/var/site"})
    names = ("", "/__pycache__", "/sitecustomize.py", "/trainlaunch_inside")
    files = tuple(f"/trainlaunch_inside/{each}" for each in ("__init__.py", "__pycache__", "part.py", "process.py"))
    (each,) = run_cases([listed], SHM)
    assert each.out.splitlines() == ["installed True", *(FOLDER + name for name in (*names, *files))]


def test_text_without_parts_is_as_before() -> None:
    """No rendering of a job that asks for none changes."""
    bare, other = delivered()._replace(inside=Instrumentation()), plan(command=["python3", "-c", TRAIN])
    assert (wrapper_words(bare), plan_variables(bare)) == (wrapper_words(other), plan_variables(other))
    assert len(wrapper_words(bare)) + 1 == len(wrapper_words(delivered())), "the text that unpacks"
