"""The lock of a job file: what it fills in, what it doesn't, and what is said where it fits no more."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from trainlaunch.cli.arguments.measuring import keep_probe, keep_tune
from trainlaunch.committed.lock_writer import ImageFacts, known_facts, lock_text
from trainlaunch.container.container import container_of
from trainlaunch.diagnostics import Report
from trainlaunch.errors import JobFileRejected
from trainlaunch.job.loader_spec import ProbedLoader, ProbeMeasurement, Tune
from trainlaunch.job.reading.lock_reader import part_texts, read_lock, with_part
from trainlaunch.policy import read_job, stated_images
from trainlaunch.render import render
from trainlaunch.repository.root import Reach
from trainlaunch.rules import plan_job
from trainlaunch.targets import text_targets
from trainlaunch.verify import verified
from trainlaunch.yamltree.text_file import MAX_BYTES

from tests import plain_yaml
from tests.conftest import ROOT, Runs
from tests.jobs import codes_of, write_job

DIGEST = "sha256:" + "5a" * 32
OTHER = "sha256:" + "b6" * 32
PORTABLE = {"resources": {"cpus": 4, "memory": "8Gi"}}


def write_lock(
    job: Path, *, image: str = "trainer:1", digest: str = DIGEST, entrypoint: tuple[str, ...] = (), python: str = ""
) -> Path:
    """Write the lock of a job with one image and return its path."""
    path = job.with_name("job.lock.yaml")
    facts = ImageFacts(digest, entrypoint, python, "2.14.1+cpu" if python else "")
    path.write_text(lock_text(job, {image: facts}), encoding="utf-8")
    return path


@pytest.mark.parametrize("entrypoint", [(), ("/front",), ("/bin/sh", "-c", 'a "b" $c; exec "$@"\n', "no", "08", "")])
@pytest.mark.parametrize("target", text_targets())
def test_a_lock_pins_the_image_and_its_entrypoint(tmp_path: Path, target: str, entrypoint: tuple[str, ...]) -> None:
    """name:tag@digest stands in the rendering, and the ENTRYPOINT in front of the preflight, byte for byte."""
    job_file = write_job(tmp_path, **PORTABLE)
    unlocked = plan_job(read_job(job_file, target=target))
    lock = write_lock(job_file, entrypoint=entrypoint)
    job = read_job(job_file, target=target)
    assert job.image == f"trainer:1@{DIGEST}"
    assert job.image_entrypoint == entrypoint
    assert str(job.origin("image")) == f"{lock}:6 (lock)"
    plan = plan_job(job)
    text = verified(plan, render(plan))
    assert job.image in text
    assert "# image and image_entrypoint from job.lock.yaml, which `trainlaunch lock` writes.\n" in text
    assert container_of(plan).entrypoint == (*entrypoint, *container_of(unlocked).entrypoint)
    assert codes_of(plan) == codes_of(unlocked)


def test_a_lock_tells_the_python_of_its_image(tmp_path: Path) -> None:
    """As it was written; a target that starts no image has another, and a version that is none makes it no lock."""
    job_file = write_job(tmp_path)
    lock = write_lock(job_file, python="3.14.0rc1", entrypoint=("/front",))
    assert known_facts(job_file)[DIGEST] == ImageFacts(DIGEST, ("/front",), "3.14.0rc1", "2.14.1+cpu")
    measured = read_job(job_file).measured
    assert measured is not None
    assert measured.python is not None
    assert (measured.python.version, measured.python.torch) == ("3.14.0rc1", "2.14.1+cpu")
    assert read_job(job_file, target="local").measured is None
    text = lock.read_text()
    lock.write_text(text.replace('"3.14.0rc1"', '"3.14; rm"'))
    assert known_facts(job_file) == {}
    with pytest.raises(JobFileRejected):
        read_job(job_file)


def test_the_same_facts_give_the_same_bytes(tmp_path: Path) -> None:
    """The order in which an engine was asked changes nothing, nor does the folder."""
    one, two = ImageFacts(DIGEST, ()), ImageFacts(OTHER, ("/front", "x"))
    here, there = tmp_path / "job.yaml", tmp_path / "sub" / "job.yaml"
    assert lock_text(here, {"a:1": one, "b:1": two}) == lock_text(there, {"b:1": two, "a:1": one})


def test_what_the_job_states_is_kept(tmp_path: Path) -> None:
    """A stated image_entrypoint, null of an override and a digest of the job's own."""
    job_file = write_job(tmp_path, image_entrypoint=["/mine"], target_overrides={"compose": {"image_entrypoint": None}})
    write_lock(job_file, entrypoint=("/front",))
    assert read_job(job_file).image_entrypoint == ("/mine",)
    assert read_job(job_file, target="compose").image_entrypoint == ("/front",)
    image = f"trainer:1@{OTHER}"
    job_file = write_job(tmp_path, image=image)
    write_lock(job_file, image=image, digest=OTHER, entrypoint=("/front",))
    assert read_job(job_file).image == image
    assert read_job(job_file).image_entrypoint == ("/front",)


def test_a_lock_of_another_image_names_the_command(tmp_path: Path) -> None:
    """TL125 at the image of the job file: a lock that fits no more is never dropped in silence."""
    job_file = write_job(tmp_path, image="trainer:2")
    write_lock(job_file)
    with pytest.raises(JobFileRejected) as caught:
        read_job(job_file)
    (problem,) = caught.value.diagnostics
    assert problem.code == "TL125"
    assert "trainer:2 is not in the lock job.lock.yaml, which has trainer:1" in problem.message
    assert f"trainlaunch lock {job_file}" in problem.fix
    assert problem.span
    assert problem.span.file == str(job_file)


def test_set_chooses_another_image_for_once(tmp_path: Path) -> None:
    """--set image is one invocation's: the lock has nothing to say about it, and says it about one that it knows."""
    job_file = write_job(tmp_path)
    write_lock(job_file, entrypoint=("/front",))
    other = read_job(job_file, sets=["image=mine:dev"])
    assert (other.image, other.image_entrypoint) == ("mine:dev", None)
    assert read_job(job_file, sets=["image=trainer:1"]).image == f"trainer:1@{DIGEST}"


def test_a_lock_holds_the_images_of_all_targets(tmp_path: Path) -> None:
    """Those of target_overrides are asked for too, each with its place."""
    job_file = write_job(tmp_path, target_overrides={"kubernetes": {"image": "registry/trainer:1"}, "compose": {}})
    images = stated_images(job_file)
    assert list(images) == ["trainer:1", "registry/trainer:1"]
    assert images["registry/trainer:1"].line > images["trainer:1"].line
    job_file.with_name("job.lock.yaml").write_text(
        lock_text(job_file, {"trainer:1": ImageFacts(DIGEST, ()), "registry/trainer:1": ImageFacts(OTHER, ())})
    )
    over = {"resources": {"cpus": 1, "memory": "2Gi"}}
    write_job(tmp_path, target_overrides={"kubernetes": {"image": "registry/trainer:1", **over}})
    assert read_job(job_file, target="kubernetes").image == f"registry/trainer:1@{OTHER}"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", "TL126"),
        ("[]\n", "TL126"),
        ("version: 3\nimages: {}\n", "TL126"),
        ("version: 2\nimages: []\n", "TL126"),
        ("version: 2\nprobe: 1\n", "TL126"),
        ("version: 2\nimages: {}\nmore: {}\n", "TL126"),
        ("version: 1\nimages: {}\nprobe: {}\n", "TL126"),
        ("version: 1\n", "TL126"),
        ("probe: {}\n", "TL126"),
        ("version: 1\nimages: []\n", "TL126"),
        ("version: 1\nimages: {}\nmore: 1\n", "TL126"),
        ("version: 1\nimages: {trainer:1: {digest: sha256:short, entrypoint: []}}\n", "TL126"),
        (f"version: 1\nimages: {{trainer:1: {{digest: {DIGEST}}}}}\n", "TL126"),
        (f"version: 1\nimages: {{trainer:1: {{digest: {DIGEST}, entrypoint: /front}}}}\n", "TL126"),
        (f"version: 1\nimages: {{trainer:1: {{digest: {DIGEST}, entrypoint: [[x]]}}}}\n", "TL126"),
        ("<<<<<<< HEAD\nversion: 1\n", "TL102"),
        ("version: 1\nversion: 1\nimages: {}\n", "TL103"),
        (b"\xff\xfe", "TL126"),
    ],
)
def test_a_lock_that_cannot_be_read_is_an_error(tmp_path: Path, text: str | bytes, code: str) -> None:
    """It would pin nothing, so the job is refused and the lock named; `down` and `logs` by file go on working."""
    job_file = write_job(tmp_path)
    lock = job_file.with_name("job.lock.yaml")
    lock.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(JobFileRejected) as caught:
        read_job(job_file)
    problem = caught.value.diagnostics[0]
    assert problem.code == code
    assert "job.lock.yaml" in (f"{problem.span}" if code != "TL126" else problem.message)
    assert read_job(job_file, use_lock=False).name == "digits"


def test_plan_shows_what_the_lock_gave(trainlaunch: Runs, tmp_path: Path) -> None:
    """Both fields with the lock's file and line, as text and as JSON."""
    job_file = write_job(tmp_path)
    before = json.loads(trainlaunch("plan", "job.yaml", "-o", "json", cwd=tmp_path).stdout)
    write_lock(job_file, entrypoint=("/front", "a b"))
    shown = " ".join(trainlaunch("plan", "job.yaml", "--why", cwd=tmp_path).stdout.split())
    assert f"= trainer:1@{DIGEST} (job.lock.yaml:6 (lock))" in shown
    assert "= /front 'a b' (job.lock.yaml:8 (lock))" in shown
    document = json.loads(trainlaunch("plan", "job.yaml", "-o", "json", cwd=tmp_path).stdout)
    assert document["image"] == f"trainer:1@{DIGEST}"
    assert document["image_entrypoint"] == ["/front", "a b"]
    assert document["derivations"]["image"] == {"derivation": "locked", "origin": "job.lock.yaml:6 (lock)"}
    assert before["derivations"]["image_entrypoint"] == {"derivation": "not set", "origin": "default"}
    assert before["image_entrypoint"] is None


def test_a_changed_lock_makes_committed_renderings_differ(trainlaunch: Runs, tmp_path: Path) -> None:
    """check reads the lock as render does: a new digest is a change to review."""
    job_file = write_job(tmp_path, **PORTABLE)
    write_lock(job_file)
    trainlaunch("render", "job.yaml", "--target", "all", "--write-to", "deploy", cwd=tmp_path)
    assert trainlaunch("check", cwd=tmp_path).returncode == 0
    write_lock(job_file, digest=OTHER)
    done = trainlaunch("check", cwd=tmp_path)
    assert done.returncode == 1
    assert f'+          image: "trainer:1@{OTHER}"' in done.stdout


def test_the_page_shows_what_lock_writes() -> None:
    """The YAML block of docs/check-and-lock.md is the text for the facts that stand in it."""
    page = (ROOT / "docs" / "check-and-lock.md").read_text(encoding="utf-8")
    block = page.split("```yaml\n")[1].split("```")[0]
    facts = {
        name: ImageFacts(each["digest"], tuple(each["entrypoint"]), each["python"], each["torch"])
        for name, each in plain_yaml.load(block)["images"].items()
    }
    assert lock_text(Path("job.yaml"), facts) == block


PROBE = """\
probe:
  # measured on the old machine
  input: "sha256:0"
  target: docker
  torch: "2.9.1"
  python: "3.11.7"
  start_method: fork
  loaders_run: together
  batches_seen: 20
  loaders:
    - at: "train.py:48"
      num_workers: 2
      batches_held: 2
      batch: {storages: [4096, 512], varying: true}
      script: {num_workers: 2, prefetch_factor: 4, persistent_workers: false}
  dataset_tensor_bytes: 0
"""
TUNE = """\
tune:
  docker:
    input: "sha256:0"
    cpus: 1.5
    num_workers: 3
    prefetch_factor: 2
"""


@pytest.mark.parametrize("text", ["version: 2\n", "version: 2\nimages: {}\n", f"version: 2\n{PROBE}"])
def test_a_lock_without_images_pins_none_and_is_no_error(tmp_path: Path, text: str) -> None:
    """It was written by what measures the job; the image is what the job file says."""
    job_file = write_job(tmp_path)
    job_file.with_name("job.lock.yaml").write_text(text)
    job = read_job(job_file)
    assert (job.image, job.image_entrypoint) == ("trainer:1", None)


def test_a_lock_of_version_1_is_read(tmp_path: Path) -> None:
    """As before; the next `lock` writes it as version 2."""
    job_file = write_job(tmp_path)
    lock = write_lock(job_file, entrypoint=("/front",))
    lock.write_text(lock.read_text().replace("version: 2\n", "version: 1\n"))
    assert read_job(job_file).image_entrypoint == ("/front",)


@pytest.mark.parametrize("other", [PROBE, f"{PROBE}{TUNE}", f"tune: {{}}\n\n{PROBE}\n\n"])
def test_other_parts_are_kept_byte_for_byte(tmp_path: Path, other: str) -> None:
    """Each writer rewrites its own part: images before or after them, comments and all, and twice the same."""
    job_file = write_job(tmp_path)
    lock = job_file.with_name("job.lock.yaml")
    old = lock_text(job_file, {"trainer:1": ImageFacts(OTHER, ("/old",))}).split("version: 2\n")[1]
    texts = set()
    for before in (f"version: 2\n{old}{other}", f"version: 2\n{other.rstrip()}\n{old}"):
        parts = part_texts(before, lock)
        assert parts is not None
        after = lock_text(job_file, {"trainer:1": ImageFacts(DIGEST, ())}, parts)
        assert PROBE in after
        assert "/old" not in after
        assert ("num_workers: 3" in after) is (TUNE in other)
        assert lock_text(job_file, {"trainer:1": ImageFacts(DIGEST, ())}, part_texts(after, lock)) == after
        lock.write_text(after)
        assert read_job(job_file).image == f"trainer:1@{DIGEST}"
        texts.add(after)
    assert len(texts) == 1


@pytest.mark.parametrize("text", ["{version: 2, probe: {}}\n", "<<<<<<<\n", "version: 9\n", "version: 2\rprobe: {}\r"])
def test_parts_without_lines_of_their_own_are_not_kept_by_halves(tmp_path: Path, text: str) -> None:
    """None says so, and `lock` says it aloud."""
    assert part_texts(text, tmp_path / "job.lock.yaml") is None


def test_two_jobs_with_one_lock_are_refused(trainlaunch: Runs, tmp_path: Path) -> None:
    """job.yaml and job.yml: each would replace the other's; nothing is asked and nothing written."""
    job_file = write_job(tmp_path)
    job_file.with_suffix(".yml").write_bytes(job_file.read_bytes())
    done = trainlaunch("lock", "job.yaml", "job.yml", cwd=tmp_path)
    assert done.returncode == 2
    assert "TL128" in done.stderr
    assert not (tmp_path / "job.lock.yaml").exists()


IMAGES = f"images:\n  'trainer:1':\n    digest: {DIGEST}\n    entrypoint: []\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"# mine\nversion: 2\n{IMAGES}# of tune\n{TUNE}", f"# mine\nversion: 2\n{IMAGES}# of tune\n{TUNE}{PROBE}"),
        (f"version: 2\n{PROBE.replace('48', '7')}\n# of tune\n{TUNE}", f"version: 2\n{PROBE}\n# of tune\n{TUNE}"),
        (f"version: 2\n{TUNE}{PROBE.replace('48', '7')}", f"version: 2\n{TUNE}{PROBE}"),
        (f"version: 1\n{IMAGES}", f"version: 2\n{IMAGES}{PROBE}"),
        (f"version: 2\n{IMAGES.rstrip()}", f"version: 2\n{IMAGES}{PROBE}"),
    ],
    ids=["new", "replaced", "last", "of version 1", "without an end of line"],
)
def test_a_measurement_replaces_its_own_part_alone(tmp_path: Path, before: str, after: str) -> None:
    """Whoever measures writes what was measured; the pinned images and comments are other people's."""
    lock = tmp_path / "job.lock.yaml"
    assert with_part(before, lock, "probe", PROBE) == after
    assert with_part(after, lock, "probe", PROBE) == after


@pytest.mark.parametrize("text", ["{version: 2, images: {}}\n", "<<<<<<<\n", "version: 9\n", "probe: 1\n"])
def test_a_measurement_is_not_written_into_what_is_no_lock(tmp_path: Path, text: str) -> None:
    """None; the verb says so, and the file stays."""
    assert with_part(text, tmp_path / "job.lock.yaml", "probe", PROBE) is None


def test_what_was_measured_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Places aside; twice the same bytes."""
    job_file = write_job(tmp_path)
    own = ProbedLoader("train.py:48", 2, 2, (4096, 512), True, own_workers=2, own_prefetch=4, own_persistent=False)
    own = own._replace(against_workers=("handle-in-init", "worker-hang"))
    plain = ProbedLoader('odd "name"\\n.py:1', 0, 1, (), False, None, None, None)
    probe = ProbeMeasurement("sha256:0", "local", "2.9.1", "3.11.7", "spawn", "in_turn", 20, (own, plain), 7)
    tunes = {"docker": Tune("sha256:1", 1500, 3, 2), "local": Tune("sha256:2", None, 0, 4, 1, usable_cpus=2)}
    keep_probe(job_file, probe)
    for target, tune in tunes.items():
        lock = keep_tune(job_file, target, tune)
    text = lock.read_text()
    keep_probe(job_file, probe)
    assert lock.read_text() == text
    report = Report()
    read = read_lock(job_file, report)
    assert read is not None
    assert read.probe is not None
    loaders = tuple(each._replace(span=None) for each in read.probe.loaders)
    assert read.probe._replace(span=None, loaders=loaders) == probe
    assert {target: each._replace(span=None) for target, each in read.tunes.items()} == tunes


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('  torch: "2.9.1"\n', ""),
        ("target: docker", "target: github-actions"),
        ("start_method: fork", "start_method: thread"),
        ("loaders_run: together", "loaders_run: [together]"),
        ("batches_seen: 20", "batches_seen: 1e3"),
        ("batches_held: 2", "batches_held: 0"),
        ("[4096, 512]", "[4096, -1]"),
        ("[4096, 512]", "[4096, 99999999999999999999999999]"),
        ("[4096, 512]", "4096"),
        ("dataset_tensor_bytes: 0", "dataset_tensor_bytes: ~"),
        ("varying: true", "varying: 1"),
        ("batches_held: 2", 'batches_held: 2\n      against_workers: ["handle\\e[31m"]'),
        ("batches_held: 2", "batches_held: 2\n      against_workers: handle-in-init"),
        ("cpus: 1.5", "cpus: many"),
        ("tune:\n  docker", "tune:\n  github-actions"),
        ("prefetch_factor: 2", "prefetch_factor: 0"),
    ],
)
def test_a_damaged_measurement_is_one_clear_error(trainlaunch: Runs, tmp_path: Path, old: str, new: str) -> None:
    """It says which part and where; nothing of it is guessed."""
    job_file = write_job(tmp_path)
    whole = f"version: 2\n{PROBE}{TUNE}"
    assert old in whole
    job_file.with_name("job.lock.yaml").write_text(whole.replace(old, new, 1))
    done = trainlaunch("plan", str(job_file))
    assert done.returncode == 1
    assert done.stderr.count("error[") == 1
    assert "error[TL126]" in done.stderr
    assert re.search(r"has a part (probe|tune) that is not what `trainlaunch \1` writes", done.stderr)
    assert "job.lock.yaml:" in done.stderr


@pytest.mark.parametrize("kind", ["FIFO", "device", "large"])
def test_a_lock_that_is_no_small_file_is_told(tmp_path: Path, kind: str) -> None:
    """A FIFO would be waited for, and a device or a large file would fill the memory."""
    lock, report = tmp_path / "job.lock.yaml", Report()
    if kind == "FIFO":
        os.mkfifo(lock)
    elif kind == "device":
        lock.symlink_to("/dev/zero")
    else:
        lock.write_bytes(b"#" * (MAX_BYTES + 1))
    assert read_lock(tmp_path / "job.yaml", report, Reach(allowed=(Path("/dev"),))) is None
    assert [each.code for each in report.found()] == ["TL126"]
