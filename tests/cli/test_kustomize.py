"""`render --layout kustomize`: a folder that `kubectl kustomize` builds, and that `check` keeps current."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests import plain_yaml
from tests.conftest import Runs
from tests.jobs import write_job

LIMITS = {"resources": {"cpus": 2, "memory": "4Gi"}}


@pytest.fixture
def base(trainlaunch: Runs, tmp_path: Path) -> Path:
    """Return a folder with the renderings of two jobs, one of them on two nodes."""
    (tmp_path / ".git").mkdir()
    write_job(tmp_path / "a", name="alone", **LIMITS)
    write_job(tmp_path / "b", name="together", torchrun={"nnodes": 2}, env={"PRICE": "5$ $(HOME)"}, **LIMITS)
    for folder in ("b", "a"):
        done = render(trainlaunch, tmp_path / folder / "job.yaml", tmp_path / "base")
        assert done.returncode == 0, done.stderr
    return tmp_path / "base"


def render(trainlaunch: Runs, job: Path, folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """Render a job into a folder for Kustomize."""
    return trainlaunch("render", str(job), "--layout", "kustomize", "--write-to", str(folder), *options)


def built(folder: Path) -> list[dict[str, Any]]:
    """Return what kubectl's own Kustomize makes of a folder."""
    try:
        done = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("kubectl is not on PATH, so Kustomize can't be asked")
    assert done.returncode == 0, done.stderr
    return list(plain_yaml.load_all(done.stdout))


def test_kustomize_builds_what_was_rendered(base: Path) -> None:
    """The objects of all renderings, none changed, each Service before its Job."""
    rendered = [
        document
        for name in ("alone", "together")
        for document in plain_yaml.load_all((base / f"{name}.kubernetes.yaml").read_text())
    ]
    assert [each["kind"] for each in rendered] == ["Job", "Service", "Job"]
    made = built(base)
    assert sorted(map(str, map(sorted_keys, made))) == sorted(map(str, map(sorted_keys, rendered)))
    kinds = [each["kind"] for each in made]
    assert kinds.index("Service") < len(kinds) - 1


def sorted_keys(value: Any) -> Any:
    """Return a document with its keys in one order."""
    if isinstance(value, dict):
        return {key: sorted_keys(value[key]) for key in sorted(value)}
    return list(map(sorted_keys, value)) if isinstance(value, list) else value


def test_rendering_again_changes_nothing(trainlaunch: Runs, base: Path, tmp_path: Path) -> None:
    """The same folder has the same bytes, whatever the order of rendering was."""
    before = (base / "kustomization.yaml").read_bytes()
    assert render(trainlaunch, tmp_path / "a" / "job.yaml", base).returncode == 0
    assert (base / "kustomization.yaml").read_bytes() == before
    resources = plain_yaml.load(before)["resources"]
    assert resources == ["alone.kubernetes.yaml", "together.kubernetes.yaml"]


def test_check_keeps_the_list(trainlaunch: Runs, base: Path) -> None:
    """A rendering that is gone makes the list differ; --fix writes it again."""
    assert trainlaunch("check", str(base)).returncode == 0
    (base / "alone.kubernetes.yaml").unlink()
    found = trainlaunch("check", str(base))
    assert found.returncode == 1
    assert '-  - "alone.kubernetes.yaml"' in found.stdout
    assert "TL120" in found.stderr
    assert trainlaunch("check", "--fix", str(base)).returncode == 0
    assert trainlaunch("check", str(base)).returncode == 0
    assert len(built(base)) == 2


def test_a_kustomization_of_somebody_else_is_left_alone(trainlaunch: Runs, tmp_path: Path) -> None:
    """Neither render nor check touches it; --overwrite does."""
    job = write_job(tmp_path, **LIMITS)
    folder = tmp_path / "base"
    folder.mkdir()
    own = folder / "kustomization.yaml"
    own.write_text("resources: []\n")
    done = render(trainlaunch, job, folder)
    assert done.returncode == 2
    assert "TL115" in done.stderr
    assert [each.name for each in folder.iterdir()] == ["kustomization.yaml"]
    assert own.read_text() == "resources: []\n"
    assert render(trainlaunch, job, folder, "--overwrite").returncode == 0
    assert "digits.kubernetes.yaml" in own.read_text()


@pytest.mark.parametrize(
    ("options", "fix"),
    [(("--target", "docker", "--write-to", "x"), "drop --target"), ((), "add --write-to DIR")],
)
def test_what_the_layout_needs_is_said(trainlaunch: Runs, tmp_path: Path, options: tuple[str, ...], fix: str) -> None:
    """It is for Kubernetes, and keeps a folder."""
    job = write_job(tmp_path, **LIMITS)
    done = trainlaunch("render", str(job), "--layout", "kustomize", *options, cwd=tmp_path)
    assert done.returncode == 2
    assert "TL118" in done.stderr
    assert fix in done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["job.yaml"]


def test_many_jobs_are_one_base(trainlaunch: Runs, tmp_path: Path) -> None:
    """A folder of jobs gives one kustomization.yaml, which check keeps, and which a new job is added to."""
    (tmp_path / ".git").mkdir()
    for name in ("first", "second"):
        write_job(tmp_path / "jobs" / name, name=name, **LIMITS)
    done = trainlaunch("render", "jobs", "--layout", "kustomize", "--write-to", "base", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    listed = plain_yaml.load((tmp_path / "base" / "kustomization.yaml").read_text())["resources"]
    assert listed == ["first.kubernetes.yaml", "second.kubernetes.yaml"]
    assert trainlaunch("check", "base", cwd=tmp_path).returncode == 0
    write_job(tmp_path / "jobs" / "third", name="third", **LIMITS)
    assert trainlaunch("render", "jobs", "--layout", "kustomize", "--write-to", "base", cwd=tmp_path).returncode == 0
    assert len(built(tmp_path / "base")) == 3
    refused = trainlaunch("render", "jobs", "--layout", "kustomize", cwd=tmp_path)
    assert (refused.returncode, "--write-to names none" in refused.stderr) == (2, True)


def overlay(folder: Path, **fields: Any) -> None:
    """Write an overlay of the base beside it."""
    folder.mkdir()
    (folder / "kustomization.yaml").write_text(plain_yaml.dump({"resources": ["../base"], **fields}))


@pytest.mark.parametrize(
    ("fields", "code", "says"),
    [
        ({}, 0, []),
        ({"namespace": "prod"}, 0, ["warning[TL159]", "metadata.namespace: nothing → prod"]),
        (
            {"images": [{"name": "trainer", "newTag": "2"}]},
            1,
            ["error[TL159]", "image: trainer:1 → trainer:2"],
        ),
        ({"namePrefix": "prod-"}, 1, ["Job prod-alone-", "metadata.name: alone-"]),
    ],
    ids=["nothing", "namespace", "image", "prefix"],
)
def test_what_an_overlay_changed_after_the_proof_is_said(
    trainlaunch: Runs, base: Path, fields: dict[str, Any], code: int, says: list[str]
) -> None:
    """What kubectl's own Kustomize builds, compared with the renderings that it was built of."""
    overlay(base.parent / "prod", **fields)
    documents = plain_yaml.dump_all(built(base.parent / "prod"))
    done = trainlaunch("check", "-", "base", cwd=base.parent, input=documents)
    assert (done.returncode, [each for each in says if each not in done.stderr]) == (code, []), done.stderr
    assert ("TL159" in done.stderr) == bool(says)


def test_a_build_of_nothing_known_is_no_success(trainlaunch: Runs, base: Path) -> None:
    """Nor one of a job whose rendering isn't there, nor what is no YAML."""
    for text in ("", "kind: List", "{"):
        assert trainlaunch("check", "-", "base", cwd=base.parent, input=text).returncode == 2
    (base / "alone.kubernetes.yaml").rename(base.parent / "alone.yaml")
    stray = (base.parent / "alone.yaml").read_text()
    done = trainlaunch("check", "-", "base", cwd=base.parent, input=stray)
    assert (done.returncode, "no rendered file that was found holds it" in done.stderr) == (1, True), done.stderr
