"""The fix of a common mistake is what its author meant, spelled as the field takes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from trainlaunch.errors import JobFileRejected
from trainlaunch.policy import read_job

HEAD = "name: digits\nimage: trainer:1\n"
WHOLE = f"{HEAD}command: [python, train.py]\n"


def findings(tmp_path: Path, text: str) -> list[tuple[int, int, str]]:
    """Return line, column and fix of each error of a job file."""
    path = tmp_path / "job.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(JobFileRejected) as caught:
        read_job(path)
    return [(each.span.line, each.span.column, each.fix) for each in caught.value.diagnostics if each.span]


@pytest.mark.parametrize(
    ("wrong", "fix"),
    [
        ("resources: {memory: 8GiB}", "write 8Gi"),
        ("resources: {memory: 512 mb}", "write 512Mi"),
        ("resources: {memory: 8gi}", "write 8Gi"),
        ("resources: {memory: 65536}", "write 65536Mi, or 64Ki for bytes"),
        ("resources: {gpus: 'device=0,2'}", "write [0, 2]"),
        ("resources: {gpus: GPU-1a}", "write [GPU-1a]"),
        ("resources: {mem: 8Gi}", "write memory"),
        ("memory: 8Gi", "write memory under resources, as in resources: {memory: …}"),
        ("resources.cpus: 4", "write cpus under resources, as in resources: {cpus: …}"),
        ("mounts: [./src:/workspace]", "write {type: bind, source: ./src, target: /workspace}"),
        ("mounts: [/data:/d:ro]", "write {type: bind, source: /data, target: /d, read_only: true}"),
        ("mounts: [cache:/cache]", "write {type: volume, source: cache, target: /cache}"),
        ("env: [A=1, B=x=y]", 'write {A: "1", B: "x=y"}'),
        ("secrets: [TOKEN]", "write {NAME: {env: NAME}}"),
        ("data_loader: {loaders: [train, val]}", "write {train: {}, val: {}}"),
        ("data_loader: {batch_bytes: 77Mi}", "write {size: 77Mi, tensors: 1}, with the number of tensors in a batch"),
        ("data_loader: {batch_size: 1, sample: {shape: 3x224x224, dtype: int8}}", "write [3, 224, 224]"),
        ("torchrun: true", "write {}"),
        ("target_overrides: {k8s: {}}", "write kubernetes"),
    ],
)
def test_a_common_mistake_has_the_value_to_type(tmp_path: Path, wrong: str, fix: str) -> None:
    """Spellings of other tools and of other fields of this file are recognised."""
    assert [each for *_, each in findings(tmp_path, f"{WHOLE}{wrong}\n")] == [fix]


@pytest.mark.parametrize(
    ("dtype", "fix"),
    [("bf16", "bfloat16"), ("fp16", "float16"), ("torch.float", "float32"), ("Int64", "int64"), ("flaot32", "float32")],
)
def test_a_dtype_by_another_name_gets_the_right_type(tmp_path: Path, dtype: str, fix: str) -> None:
    """Sizes follow from it, so a type of another size would be worse than no advice."""
    wrong = f"data_loader: {{batch_size: 1, sample: {{shape: [3], dtype: {dtype}}}}}"
    assert [each for *_, each in findings(tmp_path, f"{WHOLE}{wrong}\n")] == [f"write {fix}"]


@pytest.mark.parametrize("dtype", ["int128", "quaternion", "uint4"])
def test_a_dtype_that_torch_lacks_gets_all_names_once(tmp_path: Path, dtype: str) -> None:
    """None is near enough to be meant."""
    wrong = f"data_loader: {{batch_size: 1, sample: {{shape: [3], dtype: {dtype}}}}}"
    path = tmp_path / "job.yaml"
    path.write_text(f"{WHOLE}{wrong}\n", encoding="utf-8")
    with pytest.raises(JobFileRejected) as caught:
        read_job(path)
    (found,) = caught.value.diagnostics
    assert found.fix.startswith("write one of float32, float64, ")
    assert f"{found.message} {found.fix}".count("bfloat16") == 1


@pytest.mark.parametrize(
    ("image", "fix"),
    [("https://ghcr.io/a/b:1", "write ghcr.io/a/b:1"), ("docker://a/B:1", "write a/b:1")],
)
def test_an_image_with_a_scheme_is_named_without_it(tmp_path: Path, image: str, fix: str) -> None:
    """References have no scheme and no capitals."""
    assert findings(tmp_path, f"name: digits\nimage: {image}\ncommand: [x]\n") == [(2, 8, fix)]


def test_a_token_without_quotes_in_a_list_is_quoted(tmp_path: Path) -> None:
    """`--size={batch_size}` is how tokens are meant to be used, and inside brackets YAML wants quotes around it."""
    text = f"{HEAD}command: [python, --size={{batch_size}}]\n"
    assert findings(tmp_path, text) == [(3, 26, 'put it in double quotes: "--size={batch_size}"')]


def test_a_colon_without_its_space_is_found_on_its_own_line(tmp_path: Path) -> None:
    """The parser itself gives up a line later, where nothing is wrong."""
    assert findings(tmp_path, "name:digits\nimage: a:1\ncommand: [x]\n") == [(1, 5, "write name: digits")]


def test_a_missing_bracket_at_the_end_is_a_missing_bracket(tmp_path: Path) -> None:
    """Not a line that fits no key."""
    [(_, _, fix)] = findings(tmp_path, f"{HEAD}command: [\n")
    assert fix == "write the value, or close the bracket that is open"


def test_a_target_in_quotes_is_that_target(tmp_path: Path) -> None:
    """--set takes a YAML value, and both spellings are the same one; null is the default."""
    path = tmp_path / "job.yaml"
    path.write_text(f"{WHOLE}target: compose\n", encoding="utf-8")
    for value, target in (('"compose"', "compose"), ("docker # here", "docker"), ("", "docker")):
        assert read_job(path, sets=(f"target={value}",)).target == target


def test_an_empty_program_is_refused_in_the_entrypoint_too(tmp_path: Path) -> None:
    """docker takes an empty --entrypoint for none, Kubernetes for a program without a name."""
    assert findings(tmp_path, f'{WHOLE}image_entrypoint: ["", x]\n') == [
        (4, 20, "write the program, like /entrypoint.sh")
    ]


def test_gpus_are_asked_for_once(tmp_path: Path) -> None:
    """Two numbers for one resource would let one of them win in silence."""
    path = tmp_path / "job.yaml"
    asked = "resources: {cpus: 4, memory: 8Gi, gpus: 1, extended: {nvidia.com/gpu: 2}}"
    path.write_text(f"{WHOLE}{asked}\n", encoding="utf-8")
    with pytest.raises(
        JobFileRejected, match=r"TL109: resources\.gpus and resources\.extended both ask for nvidia\.com/gpu"
    ):
        read_job(path, target="kubernetes")


def test_an_empty_required_name_is_not_told_to_be_an_empty_string(tmp_path: Path) -> None:
    """An empty string is only offered where one would be taken."""
    [(_, _, fix)] = findings(tmp_path, "name:\nimage: a:1\ncommand: [x]\n")
    assert '""' not in fix


@pytest.mark.parametrize(("value", "differs"), [("08", True), ("1e1", True), ("many", False)])
def test_only_a_look_alike_is_read_apart(tmp_path: Path, value: str, differs: bool) -> None:
    """A word is no number to any reader of YAML, so there is no such reason to give."""
    path = tmp_path / "job.yaml"
    path.write_text(f"{WHOLE}data_loader: {{batch_size: {value}}}\n", encoding="utf-8")
    with pytest.raises(JobFileRejected) as caught:
        read_job(path)
    assert [bool(each.why) for each in caught.value.diagnostics] == [differs]
