"""A mount of type code: a read-only bind where paths of this machine are mounted, a ConfigMap on Kubernetes."""

from __future__ import annotations

import base64
import os
import random
import string
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
from trainlaunch.errors import JobFileRejected, RenderingDisagrees
from trainlaunch.kinds import KINDS
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.verify import verified

from tests import plain_yaml
from tests.conftest import Runs
from tests.jobs import plan_with, write_job
from tests.render.jobs import GOLDENS, job_plan

LIMITS = {"cpus": 2, "memory": "4Gi"}
CODE = {"type": "code", "source": "./src", "target": "/workspace"}


@pytest.fixture
def src(tmp_path: Path) -> Path:
    """Return a folder of code beside the job file."""
    package = tmp_path / "src" / "pkg"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "model.py").write_text("WIDTH = 8\n")
    (package.parent / "train.py").write_text("import pkg.model\n\n\ndef main():\n\tprint('$(HOME) $$', pkg)\n")
    return package.parent


def plan(folder: Path, target: str = "kubernetes", **fields: Any) -> LaunchPlan:
    """Return the plan of a job that mounts it."""
    return plan_with(folder, target, **{"resources": LIMITS, "mounts": [CODE], **fields})


def documents(made: LaunchPlan) -> list[dict[str, Any]]:
    """Return the objects of its verified manifest."""
    return [each for each in plain_yaml.load_all(verified(made, render(made))) if each]


def config_map(made: LaunchPlan) -> dict[str, Any]:
    """Return the only ConfigMap."""
    (found,) = [each for each in documents(made) if each["kind"] == "ConfigMap"]
    return found


def pods(thing: Any) -> list[dict[str, Any]]:
    """Return every pod's spec below an object."""
    if isinstance(thing, list):
        return [each for item in thing for each in pods(item)]
    if not isinstance(thing, dict):
        return []
    return [thing] if "containers" in thing else [each for item in thing.values() for each in pods(item)]


def mounted(made: LaunchPlan) -> dict[str, tuple[bytes, int]]:
    """Return what the pod finds below /workspace: contents and modes by path, as a kubelet writes them."""
    held = config_map(made)
    data = {key: text.encode() for key, text in held.get("data", {}).items()}
    data |= {key: base64.b64decode(text) for key, text in held.get("binaryData", {}).items()}
    (pod,) = pods(documents(made))
    (mount,) = [each for each in pod["containers"][0]["volumeMounts"] if each["mountPath"] == "/workspace"]
    assert mount["readOnly"] is True
    (volume,) = [each["configMap"] for each in pod["volumes"] if each["name"] == mount["name"]]
    assert volume["name"] == held["metadata"]["name"]
    assert sorted(each["key"] for each in volume["items"]) == sorted(data)
    return {each["path"]: (data[each["key"]], each.get("mode", 0o644)) for each in volume["items"]}


@pytest.mark.parametrize("target", ["docker", "compose"])
def test_an_engine_has_a_read_only_bind(src: Path, tmp_path: Path, target: str) -> None:
    """All of the folder, as it is while the job runs: the same text as of a bind that says so."""
    bind = {**CODE, "type": "bind", "read_only": True}
    assert render(plan(tmp_path, target)) == render(plan(tmp_path, target, mounts=[bind]))


def test_the_text_is_the_one_reviewed(golden: Callable[[Path, str], None]) -> None:
    """A ConfigMap that a reviewer can read, and each file's path and executable bit in the pod."""
    golden(GOLDENS / "code" / "kubernetes.yaml", render(job_plan("code", "kubernetes")))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_the_code_before_it(src: Path, tmp_path: Path, kind: str) -> None:
    """The pods of each wait for what they mount; the API's own schema takes the ConfigMap."""
    found = documents(plan(tmp_path, kubernetes={"kind": kind, "namespace": "team"}))
    assert [each["kind"] for each in found].index("ConfigMap") == 0
    kubernetes_validate.validate(found[0], kubernetes_validate.latest_version(), strict=True)
    assert found[0]["immutable"] is True
    assert found[0]["metadata"]["namespace"] == "team"
    for pod in pods(found):
        assert any(each.get("configMap", {}).get("name") == found[0]["metadata"]["name"] for each in pod["volumes"])


def test_files_arrive_byte_for_byte(src: Path, tmp_path: Path) -> None:
    """Dollars, tabs, empty files, Windows' line ends, bytes that are no text, odd names, executable bits."""
    odd = {
        "crlf.py": b"a\r\nb\r\n",
        "weights.bin": bytes(range(256)),
        "nul.txt": b"a\0b",
        "sub dir/na\xc3\xafve $(x).py": b"\xef\xbb\xbf# bom\n",
        "sub_dir/naïve__x_.py": b"second",
        "no_end": b"  indented\nlast",
        "blank": b"\n\n\n",
        "line\nend": b"---\n...\n# Rendered by trainlaunch from x for docker: change that file and render again.\n",
        ".hidden": b"\xe2\x80\xa8\xc2\x85\x0c",
    }
    for name, data in odd.items():
        path = src / (name if isinstance(name, str) else os.fsdecode(name))
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data)
    (src / "run.sh").write_text("#!/bin/sh\n")
    (src / "run.sh").chmod(0o755)
    found = mounted(plan(tmp_path))
    expected = {str(path.relative_to(src)): path.read_bytes() for path in src.rglob("*") if path.is_file()}
    assert {path: data for path, (data, _) in found.items()} == expected
    assert [path for path, (_, mode) in found.items() if mode != 0o644] == ["run.sh"]
    assert found["run.sh"][1] == 0o755


def test_random_trees_arrive_whole(tmp_path: Path) -> None:
    """Whatever names collide as keys: each key is one that the API takes, and no file is lost."""
    chosen = random.Random(7)  # noqa: S311 - the same trees each time
    letters = string.ascii_lowercase[:2] + "_- .$é\"'"
    for number in range(30):
        folder = tmp_path / str(number)
        for _ in range(12):
            names = ["".join(chosen.choices(letters, k=chosen.randint(1, 3))) for _ in range(chosen.randint(1, 3))]
            path = folder.joinpath("src", *(each.replace(".", "x") for each in names))
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(chosen.randbytes(chosen.randint(0, 9)))
            except (FileExistsError, NotADirectoryError, IsADirectoryError):
                continue
        made = plan(folder)
        files = {
            str(each.relative_to(folder / "src")): each.read_bytes()
            for each in (folder / "src").rglob("*")
            if each.is_file()
        }
        assert {path: data for path, (data, _) in mounted(made).items()} == files


def test_the_name_follows_the_content(src: Path, tmp_path: Path) -> None:
    """The same content gives the same bytes; another gives another ConfigMap and another Job, even under --name."""
    first = render(plan(tmp_path))
    assert render(plan(tmp_path)) == first
    name = config_map(plan(tmp_path))["metadata"]["name"]
    fixed = config_map(plan(tmp_path, kubernetes={"stable_name": True}))["metadata"]["name"]
    (src / "pkg" / "model.py").write_text("WIDTH = 16\n")
    assert config_map(plan(tmp_path))["metadata"]["name"] != name
    assert config_map(plan(tmp_path, kubernetes={"stable_name": True}))["metadata"]["name"] != fixed
    assert fixed.startswith("digits-code-")


def test_two_mounts_of_one_content_are_one_config_map(src: Path, tmp_path: Path) -> None:
    """Their names would be the same."""
    twice = [CODE, {**CODE, "target": "/code"}]
    assert len([each for each in documents(plan(tmp_path, mounts=twice)) if each["kind"] == "ConfigMap"]) == 1


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("WIDTH = 8", "WIDTH = 9"),
        ('path: "pkg/model.py"', 'path: "pkg/other.py"'),
        ("immutable: true", "immutable: false"),
        ("-code-", "-cod-"),
    ],
)
def test_a_text_with_other_code_is_refused(src: Path, tmp_path: Path, old: str, new: str) -> None:
    """What is applied is read back, the code too."""
    made = plan(tmp_path)
    text = render(made)
    assert old in text
    with pytest.raises(RenderingDisagrees):
        verified(made, text.replace(old, new, 1))


def test_a_patch_changes_no_code(src: Path, tmp_path: Path) -> None:
    """The hash in its name would say something else than what runs; labels of it are the patch's."""
    operation = {"op": "replace", "path": "/data/train.py", "value": "print()\n", "kind": "ConfigMap"}
    with pytest.raises(JobFileRejected) as caught:
        render_patched(plan(tmp_path, patches={"kubernetes": [operation]}))
    assert [each.code for each in caught.value.diagnostics] == ["TL146"]
    label = {"op": "add", "path": "/metadata/labels/team", "value": "vision", "kind": "ConfigMap"}
    assert 'team: "vision"' in render_patched(plan(tmp_path, patches={"kubernetes": [label]}))


def render_patched(made: LaunchPlan) -> str:
    """Return the text with its patch, proved."""
    text = render(made)
    verified(made, text)
    return text


def test_check_reads_the_folder_again(src: Path, tmp_path: Path, trainlaunch: Runs) -> None:
    """A committed rendering with yesterday's code is not current, and --fix writes today's."""
    job = write_job(tmp_path, mounts=[CODE], resources=LIMITS)
    out = tmp_path / "out"
    assert trainlaunch("render", str(job), "--target", "all", "--write-to", str(out)).returncode == 0
    assert trainlaunch("check", str(out)).returncode == 0
    (src / "train.py").write_text("print('another')\n")
    done = trainlaunch("check", str(out))
    assert done.returncode == 1
    assert "kubernetes.yaml is not what" in done.stdout + done.stderr
    assert "docker-run.sh is not what" not in done.stdout + done.stderr
    assert trainlaunch("check", "--fix", str(out)).returncode == 0
    assert trainlaunch("check", str(out)).returncode == 0


def test_lint_takes_a_rendering_with_braces_in_its_code_for_no_template(
    src: Path, tmp_path: Path, trainlaunch: Runs
) -> None:
    """An f-string's doubled braces are Helm's too."""
    (src / "train.py").write_text('print(f"{{ {1} }}", "{{ .Values.x }}")\n')
    job = write_job(tmp_path, mounts=[CODE], resources=LIMITS)
    done = trainlaunch("render", str(job), "--target", "kubernetes")
    (tmp_path / "out.yaml").write_text(done.stdout)
    assert "TL394" not in trainlaunch("lint", str(tmp_path / "out.yaml")).stdout


def test_lint_leaves_an_allowance_in_the_code_alone(src: Path, tmp_path: Path, trainlaunch: Runs) -> None:
    """It is about the script, which lint reads where it stands."""
    (src / "train.py").write_text("x = 1\n# trainlaunch: allow=TL351 a test\n")
    job = write_job(tmp_path, mounts=[CODE], resources=LIMITS)
    (tmp_path / "out.yaml").write_text(trainlaunch("render", str(job), "--target", "kubernetes").stdout)
    done = trainlaunch("lint", str(tmp_path / "out.yaml"))
    assert (done.returncode, done.stdout) == (0, "")


def test_large_code_says_how_kubectl_takes_it(src: Path, tmp_path: Path) -> None:
    """`kubectl apply` copies what it applies into an annotation of at most 256 KiB."""
    (src / "table.py").write_text("#" * 240 * 1024)
    assert "--server-side" not in render(plan(tmp_path))
    (src / "table.py").write_text("#" * 256 * 1024)
    assert "--server-side" in render(plan(tmp_path))


def test_plan_says_what_is_taken_and_what_git_does_not_know(src: Path, tmp_path: Path, trainlaunch: Runs) -> None:
    """A new module that nobody added is told before the cluster misses it."""
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    subprocess.run(["git", "-C", str(tmp_path), "add", "src"], check=True)
    (src / "new.py").touch()
    job = write_job(tmp_path, mounts=[CODE], resources=LIMITS)
    done = trainlaunch("plan", str(job), "--target", "kubernetes", "--why")
    assert "3 files that git tracks in ./src, at /workspace" in " ".join(done.stdout.split())
    assert "warning[TL212]: git doesn't track new.py in ./src, so the cluster doesn't get them" in done.stderr
    assert "TL212" not in trainlaunch("plan", str(job)).stderr


def test_a_writable_code_mount_is_refused_everywhere(src: Path, tmp_path: Path) -> None:
    """It would be writable on one target and not on another."""
    for target in ("docker", "kubernetes", "local"):
        with pytest.raises(JobFileRejected) as caught:
            plan(tmp_path, target, mounts=[{**CODE, "read_only": False}])
        assert "TL109" in [each.code for each in caught.value.diagnostics]


@pytest.mark.parametrize("target", ["docker", "compose", "kubernetes", "local"])
def test_a_file_is_no_folder_of_code_on_any_target(tmp_path: Path, target: str) -> None:
    """It would be mounted as a file by an engine, at the path of the folder."""
    (tmp_path / "src").touch()
    with pytest.raises(JobFileRejected) as caught:
        plan(tmp_path, target, working_dir="/workspace")
    assert [each.code for each in caught.value.diagnostics] == ["TL134"]


def test_local_maps_it_like_a_bind(src: Path, tmp_path: Path) -> None:
    """working_dir leads to the folder itself."""
    from trainlaunch.run.local.process_spec import working_dir

    assert working_dir(plan(tmp_path, "local", working_dir="/workspace/pkg")) == str(src / "pkg")
