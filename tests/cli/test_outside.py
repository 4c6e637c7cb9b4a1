"""A stranger's repository: what it names outside of itself is neither read, nor shown, nor written to."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Runs
from tests.jobs import write_job
from tests.repository.git import git, repository

LINE = "SUPERSECRET: [of somebody else"
CODE = {"mounts": [{"type": "code", "source": "../home/.ssh", "target": "/code"}]}
POD = {"resources": {"cpus": 1, "memory": "4Gi"}}
Prepare = Callable[[Path], tuple[str, ...]]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """Return a repository; beside it lie files of somebody else, in `home`."""
    secret = tmp_path / "home" / ".ssh" / "id"
    secret.parent.mkdir(parents=True)
    secret.write_text(LINE)
    (tmp_path / "home" / "job.yaml").write_text(LINE)
    (tmp_path / "home" / "policy.yaml").write_text(LINE)
    made = repository(tmp_path / "repo", README_md="a\n")
    config_with_token(made)
    return made


def config_with_token(repo: Path) -> None:
    """Write into a repository's own folder what actions/checkout leaves there."""
    with (repo / ".git" / "config").open("a") as config:
        config.write(f'[http]\n\textraheader = "{LINE}"\n')


def policy(repo: Path, text: str) -> None:
    """Write a policy into the repository's root."""
    (repo / "trainlaunch-policy.yaml").write_text(text)


def rendered(repo: Path, header: str, options: str = "") -> tuple[str, ...]:
    """Write a rendering with a header of somebody's invention."""
    write_job(repo)
    lines = [f"# Rendered by trainlaunch from {header} for compose: change that file and render again."]
    lines += ["# rendering format 1", *([f"# options: {options}"] if options else [])]
    (repo / "digits.compose.yaml").write_text("\n".join((*lines, "services: {}\n")))
    return ("check", ".")


def linked(repo: Path, name: str, target: str, *verb: str) -> tuple[str, ...]:
    """Put a link into the repository."""
    (repo / name).symlink_to(target)
    return verb


def with_policy(repo: Path, text: str, *verb: str) -> tuple[str, ...]:
    """Write a job and a policy."""
    write_job(repo, **POD)
    policy(repo, text)
    return verb


def job_with(repo: Path, verb: tuple[str, ...], **fields: object) -> tuple[str, ...]:
    """Write a job."""
    write_job(repo, **fields)
    return verb


DOORS: dict[str, Prepare] = {
    "policy": lambda repo: job_with(repo, ("plan", "job.yaml"), policy="../home/policy.yaml"),
    "policy of every target": lambda repo: job_with(
        repo, ("render", ".", "--write-to", "o"), policy="../home/policy.yaml"
    ),
    "absolute policy": lambda repo: job_with(repo, ("plan", "job.yaml"), policy=str(repo.parent / "home/policy.yaml")),
    "extends": lambda repo: with_policy(repo, "extends: ../home/policy.yaml\n", "plan", "job.yaml"),
    "extends in lint": lambda repo: with_policy(repo, "extends: ../home/policy.yaml\n", "lint", str(repo)),
    "extends in export": lambda repo: with_policy(repo, "extends: ../home/policy.yaml\n", "policy", "export"),
    "header": lambda repo: rendered(repo, "../home/job.yaml"),
    "absolute header": lambda repo: rendered(repo, str(repo.parent / "home/job.yaml")),
    "policy of a header": lambda repo: rendered(repo, "job.yaml", "--policy ../home/policy.yaml"),
    "absolute policy of a header": lambda repo: rendered(repo, "job.yaml", f"--policy {repo.parent}/home/policy.yaml"),
    "code": lambda repo: job_with(repo, ("plan", "job.yaml", "--target", "kubernetes"), **POD, **CODE),
    "code on Docker": lambda repo: job_with(repo, ("plan", "job.yaml"), **CODE),
    "code behind a link": lambda repo: (
        linked(repo, "src", "../home/.ssh")
        or job_with(
            repo,
            ("render", "job.yaml", "--target", "kubernetes"),
            **POD,
            mounts=[{"type": "code", "source": "src", "target": "/code"}],
        )
    ),
    "lock": lambda repo: job_with(repo, linked(repo, "job.lock.yaml", "../home/job.yaml", "plan", "job.yaml")),
    "endless lock": lambda repo: job_with(repo, linked(repo, "job.lock.yaml", "/dev/zero", "plan", "job.yaml")),
    "job": lambda repo: linked(repo, "job.yaml", "../home/job.yaml", "plan", "job.yaml"),
    "job of down": lambda repo: linked(repo, "job.yaml", "../home/job.yaml", "down", "job.yaml"),
    "job among many": lambda repo: linked(repo, "job.yaml", "../home/job.yaml", "render", ".", "--write-to", "o"),
    "policy that is a link": lambda repo: job_with(
        repo, linked(repo, "trainlaunch-policy.yaml", "../home/policy.yaml", "plan", "job.yaml")
    ),
    "rendering": lambda repo: linked(repo, "digits.compose.yaml", "../home/job.yaml", "check", "digits.compose.yaml"),
    "render.path": lambda repo: with_policy(
        repo, "render: {path: '../../{file}'}\n", "render", ".", "--target", "compose"
    ),
    "hooks by render.path": lambda repo: with_policy(
        repo, "render: {path: '.git/hooks/{name}'}\n", "render", ".", "--target", "compose"
    ),
    "render.path behind a link": lambda repo: (
        linked(repo, "out", "../home")
        or with_policy(repo, "render: {path: 'out/{file}'}\n", "render", ".", "--target", "compose")
    ),
    "hooks behind a link": lambda repo: (
        linked(repo, "out", ".git/hooks")
        or with_policy(repo, "render: {path: 'out/{file}'}\n", "render", ".", "--target", "compose")
    ),
    "policy in .git": lambda repo: job_with(repo, ("plan", "job.yaml"), policy=".git/config"),
    "header of .git": lambda repo: rendered(repo, ".git/config"),
    "lock in .git": lambda repo: job_with(repo, linked(repo, "job.lock.yaml", ".git/config", "plan", "job.yaml")),
    "hooks by --write-to": lambda repo: job_with(
        repo, linked(repo, "out", ".git/hooks", "render", "job.yaml", "--write-to", "out")
    ),
    "script": lambda repo: linked(repo, "train.py", "../home/job.yaml", "init", "train.py"),
    "text taken over": lambda repo: linked(repo, "run.yaml", "../home/job.yaml", "init", "--from", "run.yaml"),
    "output folder": lambda repo: job_with(
        repo, linked(repo, "out", "../home", "render", "job.yaml", "--write-to", "out")
    ),
    "output folder of many": lambda repo: job_with(
        repo, linked(repo, "out", "../home", "render", ".", "--target", "compose", "--write-to", "out/deep")
    ),
    "output folder of init": lambda repo: linked(repo, "out", "../home", "init", "--write-to", "out/job.yaml"),
}


def tree(folder: Path) -> dict[str, bytes]:
    """Return what lies below a folder."""
    return {str(each): each.read_bytes() for each in folder.rglob("*") if each.is_file() and not each.is_symlink()}


@pytest.mark.parametrize("door", DOORS)
def test_nothing_outside_is_read_shown_or_written(trainlaunch: Runs, repo: Path, door: str) -> None:
    """One error, the same whether the file is there or not, and what lies elsewhere stays as it is."""
    verb = DOORS[door](repo)
    before = {**tree(repo.parent / "home"), **tree(repo / ".git")}
    done = trainlaunch(*verb, cwd=repo)
    assert done.returncode not in {0, 70}, done.stdout
    assert "SUPERSECRET" not in done.stdout + done.stderr
    assert "leads out of" in done.stderr
    assert {**tree(repo.parent / "home"), **tree(repo / ".git")} == before
    shutil.rmtree(repo.parent / "home")
    assert trainlaunch(*verb, cwd=repo).stderr == done.stderr


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("compose.yaml", "services:\n  a:\n    extends: {file: ../home/job.yaml, service: a}\n    image: b:1\n"),
        ("kustomization.yaml", "resources: [a.yaml]\npatches:\n- path: ../home/job.yaml\n"),
        (".gitignore", "a\n"),
    ],
)
def test_lint_reads_what_a_text_names_in_its_repository_alone(
    trainlaunch: Runs, repo: Path, name: str, text: str
) -> None:
    """A FIFO in the place of what lies elsewhere would be waited for, if anything opened it."""
    outside = repo.parent / "home" / "job.yaml"
    outside.unlink()
    os.mkfifo(outside)
    (repo / name).write_text(text)
    (repo / "compose.override.yaml").symlink_to(outside)
    (repo / "loader.py").symlink_to(outside)
    (repo / ".gitignore").unlink(missing_ok=True)
    os.mkfifo(repo / ".gitignore")
    done = trainlaunch("lint", ".", cwd=repo, timeout=60)
    assert done.returncode in {0, 1}, done.stderr


@pytest.mark.parametrize("verb", [("lint", "."), ("check", "."), ("render", ".", "--target", "compose")])
def test_links_in_a_circle_break_nothing(trainlaunch: Runs, repo: Path, verb: tuple[str, ...]) -> None:
    """They lead to no file."""
    for name, target in (("a.yaml", "b.yaml"), ("b.yaml", "a.yaml"), ("Dockerfile", "Dockerfile")):
        (repo / name).symlink_to(target)
    assert trainlaunch(*verb, cwd=repo).returncode != 70


def test_a_baseline_that_has_no_end_is_an_error(trainlaunch: Runs, repo: Path) -> None:
    """It lies in the repository too."""
    os.mkfifo(repo / "baseline")
    done = trainlaunch("lint", ".", "--baseline", "baseline", cwd=repo, timeout=60)
    assert (done.returncode, "a FIFO" in done.stderr) == (2, True)


def test_a_place_that_is_no_file_quotes_none(trainlaunch: Runs, repo: Path) -> None:
    """A link can have the name of an option's value."""
    write_job(repo)
    (repo / "--set shm_size=…").symlink_to("../home/job.yaml")
    done = trainlaunch("plan", "job.yaml", "--set", "shm_size=a", cwd=repo)
    assert (done.returncode, "SUPERSECRET" in done.stderr) == (1, False)
    assert "--set shm_size=…" in done.stderr


def test_a_policy_that_no_file_can_have_as_its_name_is_an_error(trainlaunch: Runs, repo: Path) -> None:
    """The kernel's names end at U+0000."""
    done = trainlaunch("plan", str(write_job(repo, policy="a\0b")), cwd=repo)
    assert (done.returncode, "U+0000" in done.stderr) == (1, True)


def test_a_linked_text_is_told_and_not_read(trainlaunch: Runs, repo: Path) -> None:
    """What is left unread is said."""
    (repo / "Dockerfile").symlink_to("../home/job.yaml")
    done = trainlaunch("lint", ".", cwd=repo)
    assert "it is a link that leads out of" in done.stdout + done.stderr
    assert "SUPERSECRET" not in done.stdout + done.stderr


@pytest.mark.parametrize("name", [".git/config", ".git"])
def test_code_takes_nothing_of_git_along(trainlaunch: Runs, repo: Path, name: str) -> None:
    """The credentials of a checkout lie there, and a rendering is printed."""
    (repo / "code").symlink_to(name)
    git(repo, "add", "code")
    job = write_job(repo, **POD, mounts=[{"type": "code", "source": ".", "target": "/code"}])
    done = trainlaunch("render", str(job), "--target", "kubernetes", cwd=repo)
    assert "SUPERSECRET" not in done.stdout + done.stderr
    assert (done.returncode, "is a link to" in done.stderr) == (1, True)


def test_code_takes_nothing_hidden_of_a_home_along(trainlaunch: Runs, repo: Path) -> None:
    """Also where the home folder itself is the code."""
    home = repo.parent / "home"
    (home / ".netrc").write_text(LINE)
    (home / "policy.yaml").unlink()
    job = write_job(home, **POD, mounts=[{"type": "code", "source": ".", "target": "/code"}])
    done = trainlaunch("render", str(job), "--target", "kubernetes", cwd=home, env={"HOME": str(home)})
    assert done.returncode == 0, done.stderr
    assert "SUPERSECRET" not in done.stdout


@pytest.mark.parametrize("many", [True, False])
@pytest.mark.parametrize("target", ["/dev/zero", "../../home/job.yaml", "../../nowhere", "fifo"])
def test_what_stands_in_the_place_of_a_rendering_is_not_read(
    trainlaunch: Runs, repo: Path, target: str, many: bool
) -> None:
    """Neither its end is waited for, nor is it told whether it is there."""
    write_job(repo)
    (repo / "out").mkdir()
    os.mkfifo(repo / "out" / "fifo")
    (repo / "out" / "digits.compose.yaml").symlink_to(target)
    options = ("--target", "compose", "--write-to", "out")
    done = trainlaunch("render", "." if many else "job.yaml", *options, cwd=repo, timeout=60)
    assert done.returncode in {1, 2}, done.stderr
    regular = not target.startswith("/dev") and target != "fifo"
    assert ("TL115" if regular else "TL116") in done.stderr


def test_a_container_whose_home_is_the_checkout_checks_what_ci_runs(trainlaunch: Runs, repo: Path) -> None:
    """Folders of CI are hidden, and hold no secrets."""
    write_job(repo)
    workflows = ("--target", "github-actions", "--write-to", ".github/workflows")
    home = {"HOME": str(repo)}
    assert trainlaunch("render", "job.yaml", *workflows, cwd=repo, env=home).returncode == 0
    git(repo, "add", ".")
    for verb in (("check",), ("lint", "."), ("render", "job.yaml", *workflows)):
        done = trainlaunch(*verb, cwd=repo, env=home)
        assert done.returncode == 0, done.stderr
        assert "TL135" not in done.stderr


@pytest.mark.parametrize("verb", ["plan", "render"])
def test_the_user_can_allow_it(trainlaunch: Runs, repo: Path, verb: str) -> None:
    """By the policy's name, or by the folder's."""
    home = repo.parent / "home"
    (home / "policy.yaml").write_text("defaults: {stop_grace_period: 1m}\n")
    job = str(write_job(repo, policy="../home/policy.yaml", **CODE))
    assert trainlaunch(verb, job, cwd=repo).stderr.count("TL135]") == 1
    allowed = trainlaunch(verb, job, "--allow-outside", str(home), cwd=repo)
    assert allowed.returncode == 0, allowed.stderr
    write_job(repo, policy="../home/policy.yaml")
    assert trainlaunch(verb, job, "--policy", "../home/policy.yaml", cwd=repo).returncode == 0


@pytest.mark.parametrize("place", ["link", "repo/jobs/link.yaml"])
def test_a_link_to_a_job_escapes_no_policy(trainlaunch: Runs, repo: Path, place: str) -> None:
    """Those of both places hold, or it is refused."""
    job = write_job(repo / "team", **POD)
    (repo / "team" / "trainlaunch-policy.yaml").write_text("max: {memory: 1Gi}\n")
    link = repo.parent / place
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(job)
    done = trainlaunch("plan", str(link), cwd="/")
    assert done.returncode == 1
    assert "TL140" in done.stderr or "TL135" in done.stderr


def test_a_repository_that_nothing_tracks_ends_no_search_for_policies(trainlaunch: Runs, repo: Path) -> None:
    """Anybody can leave a `.git`; a submodule is known, and a folder of dotfiles is nobody's limit."""
    policy(repo, "max: {memory: 1Gi}\n")
    inner = repository(repo / "inner", a="")
    job = str(write_job(inner, **POD))
    done = trainlaunch("plan", job, cwd=repo)
    assert (done.returncode, "TL136" in done.stderr) == (1, True)
    assert trainlaunch("plan", job, cwd=repo, env={"HOME": str(repo)}).returncode == 0
    (repo.parent / "bin").mkdir()
    done = trainlaunch("plan", job, cwd=repo, env={"PATH": str(repo.parent / "bin")})
    assert (done.returncode, "git is not installed here" in done.stderr) == (1, True)
    git(repo, "add", "inner")
    done = trainlaunch("plan", job, cwd=repo)
    assert (done.returncode, "TL140" in done.stderr) == (1, True)


def test_a_link_into_a_repository_within_another_is_searched_to_its_end(trainlaunch: Runs, repo: Path) -> None:
    """The search for policies ends where the link lies, and then where it leads to; neither goes on for ever."""
    job = write_job(repository(repo / "inner", a="") / "jobs", **POD)
    (repo.parent / "link").symlink_to(job.parent)
    linked = str(repo.parent / "link" / job.name)
    assert trainlaunch("plan", linked, cwd=repo.parent).returncode == 0
    policy(repo, "max: {memory: 1Gi}\n")
    done = trainlaunch("plan", linked, cwd=repo.parent)
    assert (done.returncode, done.stderr.count("error[TL136]")) == (1, 1)
