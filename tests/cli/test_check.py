"""`trainlaunch check`: current, changed, orphaned and unreadable renderings, and what is said of each."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from trainlaunch.committed.check_renderings import find_renderings
from trainlaunch.errors import UsageError

from tests import plain_yaml
from tests.conftest import ROOT, Runs
from tests.jobs import write_job

TARGETS = ("docker", "compose", "kubernetes")
PORTABLE = {
    "resources": {"cpus": 4, "memory": "8Gi"},
    "target_overrides": {"docker": {"mounts": [{"type": "bind", "source": "./src", "target": "/workspace"}]}},
}
SUFFIXES = {"docker": "docker-run.sh", "compose": "compose.yaml", "kubernetes": "kubernetes.yaml"}


@pytest.fixture(scope="session")
def rendered(trainlaunch: Runs, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with jobs/job.yaml and its three renderings in deploy/, which no test changes."""
    folder = tmp_path_factory.mktemp("rendered")
    _render(trainlaunch, write_job(folder / "jobs", **PORTABLE), folder / "deploy")
    return folder


@pytest.fixture
def kept(rendered: Path, tmp_path: Path) -> Path:
    """Return a copy of that folder for one test: what render wrote is current wherever all of it lies."""
    return shutil.copytree(rendered, tmp_path / "kept")


def _render(trainlaunch: Runs, job: Path, folder: Path, *options: str) -> None:
    done = trainlaunch("render", str(job), "--target", "all", "--write-to", str(folder), *options)
    assert done.returncode == 0, done.stderr


def _change_job(folder: Path, **fields: object) -> None:
    path = folder / "jobs" / "job.yaml"
    path.write_text(plain_yaml.dump({**plain_yaml.load(path.read_text()), **fields}, sort_keys=False))


def _bytes(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_what_render_wrote_is_current(trainlaunch: Runs, kept: Path) -> None:
    """Exit 0 and nothing on stdout; stderr says how many were compared, so that none can't pass for all."""
    done = trainlaunch("check", cwd=kept)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "checked 3 rendered files: 3 current\n"


def test_the_repositorys_own_renderings_are_current(trainlaunch: Runs) -> None:
    """compose/ and k8s/ are what the examples render, and check finds each of them."""
    done = trainlaunch("check", "compose", "k8s", "-o", "json", cwd=ROOT)
    assert done.returncode == 0, done.stdout
    checked = {each["path"] for each in json.loads(done.stdout)["renderings"]}
    assert checked == {str(path.relative_to(ROOT)) for each in ("compose", "k8s") for path in (ROOT / each).iterdir()}


@pytest.mark.parametrize(
    ("cwd", "path"), [(".", "deploy"), ("deploy", "."), ("jobs", "../deploy"), (".", "{kept}/deploy"), ("/", "{kept}")]
)
def test_it_does_not_matter_where_check_runs(trainlaunch: Runs, kept: Path, cwd: str, path: str) -> None:
    """Neither the folder, nor relative or absolute paths, nor the environment change the result."""
    (kept / ".git").mkdir()
    environment = {"PYTHONHASHSEED": "7", "TZ": "Asia/Tokyo", "LC_ALL": "C", "COLUMNS": "20", "HOME": "/nowhere"}
    done = trainlaunch("check", path.format(kept=kept), cwd=kept / cwd, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_changed_job_gives_a_diff_that_patch_takes(trainlaunch: Runs, kept: Path) -> None:
    """Exit 1; the unified diff on stdout, applied by `patch -p1`, makes every rendering current."""
    _change_job(kept, resources={"cpus": 4, "memory": "6Gi"})
    before = _bytes(kept / "deploy")
    done = trainlaunch("check", cwd=kept)
    assert done.returncode == 1
    assert "checked 3 rendered files: 3 differ" in done.stderr
    assert "error[TL120]: deploy/digits.compose.yaml is not what jobs/job.yaml renders now" in done.stderr
    assert "fix: run `trainlaunch check --fix`" in done.stderr
    for line in (
        '-    shm_size: "4096m" #',
        '-    mem_limit: "8192m"\n',
        '+    shm_size: "3072m" #',
        '+    mem_limit: "6144m"\n',
    ):
        assert line in done.stdout
    assert _bytes(kept / "deploy") == before
    subprocess.run(["patch", "-p1", "--quiet"], input=done.stdout, text=True, cwd=kept, check=True, timeout=60)
    assert trainlaunch("check", cwd=kept).returncode == 0


def test_a_rendering_of_an_older_format_is_one_line(trainlaunch: Runs, kept: Path) -> None:
    """All of its lines differ, which says nothing of the job; a Job that gets another name starts again."""
    for path in (kept / "deploy").iterdir():
        text = path.read_text().replace("# rendering format 3\n", "# rendering format 2\n")
        path.write_text(text.replace("tl_say", "tl_tell"))
    done = trainlaunch("check", cwd=kept)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("has rendering format 2, and this trainlaunch writes format 3") == 3
    assert done.stderr.count("fix: run `trainlaunch check --fix`") == 3
    assert done.stderr.count("starts again where Git applies it") == 1
    assert trainlaunch("check", "--fix", cwd=kept).returncode == 0
    assert trainlaunch("check", cwd=kept).returncode == 0


def test_fix_writes_what_differs_and_keeps_its_mode(trainlaunch: Runs, kept: Path) -> None:
    """Exit 0 afterwards; a current file isn't touched, and no temporary file is left."""
    script, manifest = (kept / "deploy" / f"digits.{SUFFIXES[target]}" for target in ("docker", "kubernetes"))
    script.chmod(0o755)
    good, untouched = script.read_bytes(), manifest.stat().st_mtime_ns
    script.write_bytes(good.replace(b"--memory 8192m", b"--memory 1m"))
    names = sorted(each.name for each in script.parent.iterdir())
    done = trainlaunch("check", "--fix", cwd=kept)
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "wrote deploy/digits.docker-run.sh\nchecked 3 rendered files: 2 current, 1 written again\n"
    assert script.read_bytes() == good
    assert script.stat().st_mode & 0o777 == 0o755
    assert manifest.stat().st_mtime_ns == untouched
    assert sorted(each.name for each in script.parent.iterdir()) == names


def test_fix_writes_through_a_link(trainlaunch: Runs, kept: Path) -> None:
    """A link stays a link; the file that it names is written."""
    real = kept / "deploy" / "digits.compose.yaml"
    moved = real.rename(kept / "elsewhere")
    real.symlink_to(moved)
    moved.write_text(moved.read_text().replace("8192m", "1m"))
    assert trainlaunch("check", "--fix", "deploy", cwd=kept).returncode == 0
    assert real.is_symlink()
    assert "8192m" in moved.read_text()


def test_a_file_that_cannot_be_written_stays_as_it_is(trainlaunch: Runs, kept: Path) -> None:
    """--fix on a full disk: one clear error, the file unchanged, nothing beside it."""
    import resource
    import signal

    def no_file_may_grow() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    _change_job(kept, image="trainer:2")
    before = _bytes(kept / "deploy")
    done = trainlaunch("check", "--fix", cwd=kept, preexec_fn=no_file_may_grow)
    assert done.returncode == 2
    assert "TL116" in done.stderr
    assert "is not a folder" not in done.stderr
    assert _bytes(kept / "deploy") == before


@pytest.mark.parametrize(
    "options",
    [
        ["--set", "data_loader.num_workers=3"],
        ["--set", "env.TEAM=a b", "--set", 'env.TEXT="quoted \\" $x\\n\\u200b"', "--name", "other"],
        ["--set", "env.LINES=|\n  one\n  two\n"],
        ["--kind", "pod"],
    ],
)
def test_options_that_gave_a_rendering_are_in_its_header(trainlaunch: Runs, tmp_path: Path, options: list[str]) -> None:
    """Without them check would call it changed; with them it is current, and follows the job file."""
    job = write_job(tmp_path / "jobs", **PORTABLE)
    _render(trainlaunch, job, tmp_path / "deploy", *options)
    done = trainlaunch("check", cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    _change_job(tmp_path, image="trainer:2")
    assert trainlaunch("check", cwd=tmp_path).returncode == 1


def test_a_rendering_made_with_force_is_refused_with_the_command_to_type(trainlaunch: Runs, tmp_path: Path) -> None:
    """Exit 1 at its header, whose other options stay in force; that command makes it current."""
    job = write_job(tmp_path / "jobs", **PORTABLE)
    _render(trainlaunch, job, tmp_path / "deploy", "--set", "env.TEAM=a b", "--name", "other")
    kept = tmp_path / "deploy" / f"other.{SUFFIXES['docker']}"
    current = kept.read_text()
    kept.write_text(re.sub("^(# options: .*)$", r"\1 --force", current, flags=re.MULTILINE))
    done = trainlaunch("check", "--fix", cwd=tmp_path)
    assert done.returncode == 1
    assert "was rendered with --force, which is no option any more" in done.stderr
    (command,) = re.findall("`trainlaunch (render .*?)`", done.stderr)
    assert trainlaunch(*shlex.split(command), cwd=tmp_path).returncode == 0
    assert kept.read_text() == current


def test_a_rendering_without_options_has_no_options_line(kept: Path) -> None:
    """A plain rendering's header is as short as before."""
    assert all(b"# options:" not in text for text in _bytes(kept / "deploy").values())


@pytest.mark.parametrize("target", TARGETS)
def test_a_rendering_from_a_pipe_is_current_beside_its_job(trainlaunch: Runs, tmp_path: Path, target: str) -> None:
    """`render job.yaml > file` in the job's folder gives relative mounts as a pipe has them, and check knows."""
    job = write_job(tmp_path, **PORTABLE)
    text = trainlaunch("render", job.name, "--target", target, cwd=tmp_path).stdout
    (tmp_path / f"kept.{SUFFIXES[target]}").write_text(text)
    assert trainlaunch("check", str(tmp_path)).returncode == 0


def test_a_rendering_whose_job_file_is_gone_is_said_with_its_place(trainlaunch: Runs, kept: Path) -> None:
    """Exit 1, file and line of the header that names it; --fix changes nothing."""
    (kept / "jobs" / "job.yaml").unlink()
    before = _bytes(kept / "deploy")
    done = trainlaunch("check", "--fix", cwd=kept)
    assert done.returncode == 1
    assert "error[TL121]: the job file jobs/job.yaml, which deploy/digits.compose.yaml was rendered from" in done.stderr
    assert "--> deploy/digits.docker-run.sh:2:1" in done.stderr
    assert "3 can't be compared" in done.stderr
    assert _bytes(kept / "deploy") == before


def test_a_job_that_no_longer_renders_is_said_once(trainlaunch: Runs, kept: Path) -> None:
    """Its own errors once with their place, then each rendering that can't be compared for them."""
    _change_job(kept, imgae="x")
    done = trainlaunch("check", cwd=kept)
    assert done.returncode == 1
    assert done.stderr.count("error[TL104]") == 1
    assert "--> jobs/job.yaml:" in done.stderr
    assert done.stderr.count("error[TL122]") == 3


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("# rendering format 3", "# rendering format 9", "rendering format 9, and this trainlaunch writes format 3"),
        ("# rendering format 3", "# format 3", "no line `rendering format N"),
        (" for compose: ", " for swarm: ", "names the target swarm"),
        ("\nname:", "\n# options: --sets x=1\nname:", "'--sets', which has no meaning there"),
        ("\nname:", '\n# options: --set "x=1\nname:', "quote that is never closed"),
        ("\nname:", "\n# options: --set\nname:", "'--set', which has no meaning there"),
    ],
)
def test_a_header_that_cannot_be_read_is_an_error(
    trainlaunch: Runs, kept: Path, old: str, new: str, words: str
) -> None:
    """A rendering of a newer version, or with a changed header, is never called current and never written again."""
    path = kept / "deploy" / "digits.compose.yaml"
    changed = path.read_text().replace(old, new, 1)
    path.write_text(changed)
    done = trainlaunch("check", "--fix", cwd=kept)
    assert done.returncode == 1
    assert "TL121" in done.stderr
    assert words in done.stderr
    assert path.read_text() == changed


def test_several_renderings_in_one_file_are_refused(trainlaunch: Runs, kept: Path) -> None:
    """--fix would put one in the place of all of them."""
    path = kept / "jobs" / "all.yaml"
    path.write_text(trainlaunch("render", "job.yaml", "--target", "all", cwd=kept / "jobs").stdout)
    before = path.read_bytes()
    done = trainlaunch("check", "--fix", "jobs", cwd=kept)
    assert done.returncode == 1
    assert "it holds several rendered files; keep one in each" in done.stderr
    assert path.read_bytes() == before


def test_nothing_to_check_is_no_success(trainlaunch: Runs, tmp_path: Path) -> None:
    """An empty folder, and one without renderings, give exit 1 and a sentence."""
    (tmp_path / "values.yaml").write_text("a: 1\n")
    done = trainlaunch("check", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "error[TL123]: found no rendered files in ." in done.stderr


@pytest.mark.parametrize("path", ["nowhere", "values.yaml"])
def test_a_named_path_that_is_no_rendering_is_a_usage_error(trainlaunch: Runs, kept: Path, path: str) -> None:
    """Exit 2: a typo in CI must not shrink what is checked."""
    (kept / "values.yaml").write_text("a: 1\n")
    done = trainlaunch("check", path, "deploy", cwd=kept)
    assert done.returncode == 2
    assert "TL124" in done.stderr


def test_a_folder_that_cannot_be_read_is_said(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What lies there would be left out of the check. The reading itself is refused, since tests may run as root."""
    scandir = os.scandir

    def refuse(path: str) -> Any:
        if Path(path).name == "deploy":
            raise PermissionError(13, "Permission denied", path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refuse)
    with pytest.raises(UsageError) as caught:
        find_renderings([kept])
    (found,) = caught.value.diagnostics
    assert found.message == f"{kept / 'deploy'} can't be read: Permission denied"


def test_a_folder_is_searched_without_hidden_ones_and_pipes(trainlaunch: Runs, kept: Path) -> None:
    """Nested folders are entered; hidden ones, dangling links and pipes neither stop it nor hold it up."""
    shutil.copytree(kept / "deploy", kept / ".cache" / "deploy")
    shutil.move(kept / "deploy", kept / "a" / "b")
    (kept / "gone.yaml").symlink_to("nothing")
    os.mkfifo(kept / "pipe.yaml")
    text = (kept / "a" / "b" / "digits.compose.yaml").read_text()
    (kept / "a" / "b" / "digits.compose.yaml").write_text(text.replace("../jobs", "../../jobs"))
    done = trainlaunch("check", "-o", "json", cwd=kept, timeout=60)
    paths = {each["path"]: each["status"] for each in json.loads(done.stdout)["renderings"]}
    assert paths == {
        "a/b/digits.compose.yaml": "current",
        "a/b/digits.docker-run.sh": "rejected",
        "a/b/digits.kubernetes.yaml": "rejected",
    }


def test_json_is_one_document_with_each_rendering(trainlaunch: Runs, kept: Path) -> None:
    """Status, job, target and diff of each; findings with places."""
    path = kept / "deploy" / "digits.compose.yaml"
    path.write_text(path.read_text().replace("8192m", "1m"))
    done = trainlaunch("check", "-o", "json", cwd=kept)
    document = json.loads(done.stdout)
    assert (done.returncode, document["schema_version"]) == (1, 3)
    by_target = {each["target"]: each for each in document["renderings"]}
    assert {target: each["status"] for target, each in by_target.items()} == {
        "docker": "current",
        "compose": "differs",
        "kubernetes": "current",
    }
    assert by_target["compose"]["job"] == "jobs/job.yaml"
    assert '+    mem_limit: "8192m"' in by_target["compose"]["diff"]
    (finding,) = document["findings"]
    assert finding["code"] == "TL120"
    lines = path.read_text().splitlines()
    assert "1m" in lines[finding["span"]["line"] - 1]


def test_json_without_renderings_is_a_document_too(trainlaunch: Runs, tmp_path: Path) -> None:
    """A machine that asked for JSON reads JSON."""
    document = json.loads(trainlaunch("check", "-o", "json", cwd=tmp_path).stdout)
    assert document["renderings"] == []
    assert document["findings"][0]["code"] == "TL123"


def test_github_gets_one_annotation_a_finding(trainlaunch: Runs, kept: Path) -> None:
    """`::error file=…,line=…` with what would end the command or its properties escaped."""
    strange = kept / "100%, a:b"
    shutil.move(kept / "deploy", strange)
    path = strange / "digits.compose.yaml"
    path.write_text(path.read_text().replace("8192m", "1m"))
    done = trainlaunch("check", "--output", "github", cwd=kept)
    assert done.returncode == 1
    line = path.read_text().splitlines().index('    mem_limit: "1m"') + 1
    (only,) = done.stdout.splitlines()
    assert only.startswith(f"::error file=100%25%2C a%3Ab/digits.compose.yaml,line={line},title=TL120::100%25, a:b/")


def test_windows_line_ends_are_a_difference(trainlaunch: Runs, kept: Path) -> None:
    """A shell script with carriage returns doesn't run, so bytes are compared; --fix restores them."""
    path = kept / "deploy" / "digits.docker-run.sh"
    good = path.read_bytes()
    path.write_bytes(good.replace(b"\n", b"\r\n"))
    assert trainlaunch("check", cwd=kept).returncode == 1
    assert trainlaunch("check", "--fix", cwd=kept).returncode == 0
    assert path.read_bytes() == good


@pytest.mark.parametrize("change", [lambda text: text + b"\xff", lambda text: text[:-1], lambda text: text + b"\n"])
def test_each_byte_counts(trainlaunch: Runs, kept: Path, change: object) -> None:
    """Bytes that are no UTF-8, a missing last line end and one too many are differences."""
    assert callable(change)
    path = kept / "deploy" / "digits.kubernetes.yaml"
    path.write_bytes(change(path.read_bytes()))
    assert trainlaunch("check", cwd=kept).returncode == 1


def test_check_imports_no_heavy_package(trainlaunch: Runs, kept: Path) -> None:
    """It starts fast: no pydantic, rich, docker or kubernetes."""
    done = trainlaunch("check", cwd=kept, env={"PYTHONPROFILEIMPORTTIME": "1"})
    imported = {line.rsplit("|", 1)[-1].strip().split(".")[0] for line in done.stderr.splitlines() if "|" in line}
    assert "trainlaunch" in imported
    assert imported & {"pydantic", "rich", "docker", "kubernetes", "torch", "requests"} == set()
