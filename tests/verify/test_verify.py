"""A text that says anything else than the plan is refused: each flag and key is deleted or changed in turn."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from trainlaunch.container.container import container_of
from trainlaunch.errors import RenderingDisagrees
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render import render
from trainlaunch.verify import verified, verify

from tests import plain_yaml
from tests.jobs import plan_with
from tests.render.jobs import JOBS, NODES, TARGETS, job_plan


def refusals(plan: LaunchPlan, text: str) -> list[str]:
    """Return verify's messages about a text, none if it accepts it."""
    try:
        verify(plan, text)
    except RenderingDisagrees as refused:
        return [f"{each.code} {each.message}" for each in refused.diagnostics]
    return []


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("job", JOBS)
def test_what_was_rendered_is_accepted(job: str, target: str) -> None:
    """An unchanged text comes back as it is."""
    plan = job_plan(job, target)
    text = render(plan)
    assert verified(plan, text) == text


def flags_of(script: str) -> list[str]:
    """Return each flag of a script with its value, as it stands there."""
    start = script.index("exec docker run \\\n") + len("exec docker run \\\n")
    end = script.index("    --entrypoint")
    flags = re.findall(rf" --[a-z-]+(?: (?:{VALUE}))?(?=[ \n])", script[start:end])
    assert "".join(flags).split() == script[start:end].replace("\\\n", "").split(), "the flags are all of the file"
    return flags


VALUE = r"""'(?:[^']|'\\'')*'|"[^"]*"|[^\s'"\\-][^\s'"\\]*"""


@pytest.mark.parametrize("job", JOBS)
def test_no_flag_of_docker_run_can_be_left_out(job: str) -> None:
    """Without any one of its flags, and with any one doubled value changed, the script is refused."""
    plan = job_plan(job, "docker")
    script = render(plan)
    for flag in flags_of(script):
        assert refusals(plan, script.replace(flag, "", 1)), f"accepted without {flag}"


@pytest.mark.parametrize("job", JOBS)
def test_no_word_of_the_command_can_be_left_out(job: str) -> None:
    """The image, the preflight and each argument must stand behind the flags, in their order."""
    plan = job_plan(job, "docker")
    script = render(plan)
    run, below = script.split("\n}\nplan() {")
    last = run.rsplit(" ", 1)[1]
    for part in (" -c ", ' "$(preflight)"', " trainlaunch \\\n", f" {last}", f"    {plan.job.image} \\\n"):
        before, found, after = run.rpartition(part)
        assert found
        text = f"{before} {after}\n}}\nplan() {{{below}"
        assert refusals(plan, text), f"accepted without {part}"
    assert refusals(plan, re.sub(r" --entrypoint \S+ \\\n", "", script))


@pytest.mark.parametrize(
    "flag",
    [
        "--ipc host",
        "--ipc=host",
        "--shm-size 64m",
        "--shm-size=64m",
        "--tmpfs /dev/shm",
        "--mount type=tmpfs,target=/dev/shm",
        "-v /dev/shm:/dev/shm",
        "--volume /tmp:/dev/shm",
        "--no-healthcheck",
        "--memory 1g",
        "--privileged",
        "--restart always",
        "--env EXTRA=1",
        "--detach",
    ],
)
def test_no_flag_can_be_added(flag: str) -> None:
    """What the plan doesn't ask for is refused, above all what would give /dev/shm another size."""
    plan = job_plan("minimal", "docker")
    assert refusals(plan, render(plan).replace("    --rm ", f"    {flag} --rm "))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("--shm-size 8192m", "--shm-size 8191m"),
        ("--shm-size 8192m", '--shm-size "$SIZE"'),
        ("--shm-size 8192m", "--shm-size 8G"),
        ("exec docker run", "docker run"),
        ("exec docker run", "exec docker create"),
        ("python train.py", "python train.py *"),
        ("python train.py", "python $(train).py"),
        ("python train.py", "python `train`.py"),
        ("python train.py", "python train.py; true"),
        ("python train.py", "python train.py | tee log"),
    ],
)
def test_changed_words_are_refused(before: str, after: str) -> None:
    """Another value, and anything that this shell would expand, is refused."""
    plan = job_plan("minimal", "docker")
    script = render(plan)
    assert before in script
    assert refusals(plan, script.replace(before, after))


def test_a_changed_preflight_or_health_check_is_refused() -> None:
    """One character more in either text is another text, on each target."""
    for target in TARGETS:
        plan = job_plan("full", target)
        container = container_of(plan)
        text = render(plan)
        for field, part in (("health", container.health), ("process", container.entrypoint[-2])):
            line = max((each for each in part.splitlines() if not set(each) & set("'$")), key=len)
            assert line in text
            assert any(f" {field} " in each for each in refusals(plan, text.replace(line, f"{line} ")))


def test_a_secret_without_its_guard_is_refused() -> None:
    """The script must stop with 125 before docker where a source is missing, and export what docker reads."""
    plan = job_plan("full", "docker")
    script = render(plan)
    for before, after in (
        ('if [ -z "${MY_HF_TOKEN:-}" ]; then', 'if [ -z "${OTHER:-}" ]; then'),
        ("  exit 125\n", "  exit 1\n"),
        ("export WANDB_API_KEY HF_TOKEN\n", "export WANDB_API_KEY\n"),
        ("HF_TOKEN=$trainlaunch_secret_1\n", ""),
        ("--env HF_TOKEN \\", "--env HF_TOKEN=hf_x \\"),
    ):
        assert before in script
        assert refusals(plan, script.replace(before, after))
    compose = job_plan("full", "compose")
    text = render(compose)
    assert refusals(compose, text.replace("${MY_HF_TOKEN:?", "${MY_HF_TOKEN:-"))
    assert refusals(compose, re.sub(r'"HF_TOKEN": ".*"', '"HF_TOKEN": "hf_x"', text))


Path_ = tuple[Any, ...]


def places(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of everything in a parsed document below its top, containers included."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def changed(document: Any, path: Path_, *, delete: bool) -> str:
    """Return the document as YAML with what is at `path` deleted, or made another scalar."""
    other = copy.deepcopy(document)
    inner = other
    for key in path[:-1]:
        inner = inner[key]
    if delete:
        del inner[path[-1]]
    else:
        inner[path[-1]] = inner[path[-1]] + 1 if type(inner[path[-1]]) is int else f"{inner[path[-1]]}x"
    return dumped(other)


class Dumper(getattr(yaml, "CSafeDumper", yaml.SafeDumper)):  # type: ignore[misc]
    """Writes strings in quotes, by libyaml where PyYAML has it: to kubectl a plain `y` is a truth value."""


Dumper.add_representer(str, lambda self, text: self.represent_scalar("tag:yaml.org,2002:str", text, style='"'))


def dumped(document: Any) -> str:
    """Return a document as YAML."""
    text: str = yaml.dump(document, Dumper=Dumper, sort_keys=False)
    return text


def value_at(document: Any, path: Path_) -> Any:
    """Return what is at `path`."""
    for key in path:
        document = document[key]
    return document


def scalar_at(document: Any, path: Path_) -> bool:
    """Return whether a string or a number is at `path`."""
    return isinstance(value_at(document, path), (str, int))


def tried(job: str, target: str, seen: set[str]) -> list[Path_]:
    """Return the places whose text is taken without them, or with another scalar there; what was seen is skipped."""
    plan = job_plan(job, target)
    document = plain_yaml.load(render(plan))
    assert refusals(plan, dumped(document)) == []
    accepted = []
    for path in places(document):
        said = json.dumps([path, value_at(document, path)]).replace(json.dumps(plan.name), "NAME")
        if said in seen:
            continue
        seen.add(said)
        texts = [changed(document, path, delete=True)]
        texts += [changed(document, path, delete=False)] if scalar_at(document, path) else []
        accepted += [path for text in texts if not refusals(plan, text)]
    return accepted


@pytest.mark.parametrize("target", ["compose", "kubernetes"])
def test_no_key_can_be_left_out_or_changed(target: str) -> None:
    """Without any one key or item, and with any one scalar changed, it is refused; of each job what is its own."""
    seen: set[str] = set()
    assert [(job, path) for job in JOBS for path in tried(job, target, seen)] == []


@pytest.mark.long
@pytest.mark.parametrize("target", ["compose", "kubernetes"])
@pytest.mark.parametrize("job", JOBS)
def test_no_key_of_any_job_can_be_left_out_or_changed(job: str, target: str) -> None:
    """Of each job everything, also what another one says at the same place."""
    assert tried(job, target, set()) == []


def whole(text: str) -> Any:
    """Return a Compose file with each service written out, nothing taken from another one."""
    return json.loads(json.dumps(plain_yaml.load(text)))


def test_no_node_may_differ_from_the_plan() -> None:
    """Of each service: without any one key or item, and with any one scalar changed, the file is refused."""
    plan = job_plan(NODES, "compose", "torchrun.nnodes=2")
    document = whole(render(plan))
    assert refusals(plan, dumped(document)) == []
    paths = [path for path in places(document) if path[:2] != ("services", f"{plan.name}-0")]
    accepted = [path for path in paths if not refusals(plan, changed(document, path, delete=True))]
    scalars = [path for path in paths if scalar_at(document, path)]
    accepted += [path for path in scalars if not refusals(plan, changed(document, path, delete=False))]
    assert accepted == []


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("ipc", "host"),
        ("tmpfs", ["/dev/shm"]),
        ("shm_size", "64m"),
        ("image", "other:1"),
        ("network_mode", "none"),
        ("environment", {}),
    ],
)
def test_a_node_with_something_of_its_own_is_refused(key: str, value: object) -> None:
    """Above all what would give one of the nodes another /dev/shm; the message names the node."""
    plan = job_plan(NODES, "compose")
    document = whole(render(plan))
    document["services"]["several-2"][key] = value
    found = refusals(plan, dumped(document))
    assert found
    assert all("nodes.2." in each for each in found)


def test_a_missing_and_a_further_node_are_refused() -> None:
    """As many services as nodes."""
    plan = job_plan(NODES, "compose")
    document = whole(render(plan))
    last = document["services"].pop("several-2")
    assert refusals(plan, dumped(document))
    document["services"] |= {"several-2": last, "several-3": last}
    assert refusals(plan, dumped(document))


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        ((), "x-note", {"a": "b"}),
        (("services", "minimal"), "ipc", "host"),
        (("services", "minimal"), "tmpfs", ["/dev/shm"]),
        (("services", "minimal"), "privileged", True),
        (("services", "minimal"), "volumes", [{"type": "tmpfs", "target": "/dev/shm"}]),
        (("services", "minimal"), "build", {"shm_size": "1g"}),
        (("services",), "second", {"image": "a:1"}),
        (("services", "minimal"), "deploy", {"resources": {"limits": {"memory": "1g"}}}),
        (("services", "minimal"), "env_file", ".env"),
    ],
)
def test_no_key_of_compose_can_be_added(place: Path_, key: str, value: object) -> None:
    """What the plan doesn't ask for is refused, above all what would give /dev/shm another size."""
    plan = job_plan("minimal", "compose")
    document = plain_yaml.load(render(plan))
    inner = document
    for part in place:
        inner = inner[plan.name if part == "minimal" else part]
    inner[key] = value
    assert refusals(plan, dumped(document))


SPEC = ("spec", "template", "spec")
FIRST = (*SPEC, "containers", 0)


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [
        (SPEC, "hostIPC", True),
        (SPEC, "hostNetwork", True),
        (SPEC, "initContainers", [{"name": "a", "image": "a:1"}]),
        (FIRST, "livenessProbe", {"exec": {"command": ["true"]}}),
        (FIRST, "lifecycle", {"preStop": {"exec": {"command": ["true"]}}}),
        ((*FIRST, "volumeMounts", 0), "subPath", "a"),
        ((*FIRST, "volumeMounts", 0), "readOnly", True),
        ((*FIRST, "securityContext"), "privileged", True),
        ((*SPEC, "volumes", 0, "emptyDir"), "medium", "memory"),
        ((*SPEC, "volumes", 0, "emptyDir"), "sizeLimit", "2G"),
        ((*SPEC, "volumes", 0, "emptyDir"), "sizeLimit", "500m"),
        ((*SPEC, "volumes", 0, "emptyDir"), "sizeLimit", 2.5),
        ((*FIRST, "resources", "requests"), "memory", "1Gi"),
        (("spec",), "suspend", True),
        (("metadata",), "finalizers", ["x"]),
    ],
)
def test_no_key_of_a_manifest_can_be_added_or_replaced(place: Path_, key: str, value: object) -> None:
    """Fields that would move /dev/shm, its size or the pod's rights are refused."""
    plan = job_plan("minimal", "kubernetes")
    document = plain_yaml.load(render(plan))
    inner = document
    for part in place:
        inner = inner[part]
    inner[key] = value
    assert refusals(plan, dumped(document))


def test_a_sidecar_must_see_the_same_shm() -> None:
    """A second container that mounts nothing on /dev/shm would have 64 MiB there, and is refused for that too."""
    plan = job_plan("minimal", "kubernetes")
    document = plain_yaml.load(render(plan))
    document["spec"]["template"]["spec"]["containers"].append({"name": "side", "image": "a:1"})
    found = refusals(plan, dumped(document))
    assert any("shm_size" in each for each in found)


@pytest.mark.parametrize("dollars", ["$", "$$$"])
@pytest.mark.parametrize(("target", "behind"), [("compose", "{EUR}"), ("kubernetes", "(HOME)")])
def test_a_wrong_number_of_dollars_is_refused(target: str, behind: str, dollars: str) -> None:
    """A `$` that the reader would expand, or leave doubled, is another argument or variable."""
    plan = job_plan("full", target, "env.HOME=/h")
    text = render(plan)
    assert f"$${behind}" in text
    assert refusals(plan, text.replace(f"$${behind}", f"{dollars}{behind}"))


def test_a_bind_relative_to_another_folder_is_refused(tmp_path: Path) -> None:
    """The same words mean another folder when the file lies elsewhere."""
    for target in ("docker", "compose"):
        plan = plan_with(tmp_path / "jobs", target, mounts=[{"type": "bind", "source": "./src", "target": "/w"}])
        with pytest.raises(RenderingDisagrees, match="mounts"):
            verify(plan, render(plan), base=tmp_path / "out")


@pytest.mark.parametrize(
    "text", ["", "\n", "a: [", "exec docker run", "- a", "kind: Job", "services: {}", "services:\n  a:\n"]
)
@pytest.mark.parametrize("target", TARGETS)
def test_a_text_that_is_no_rendering_is_refused(target: str, text: str) -> None:
    """Half a text, another document or none at all is a difference, not a crash."""
    assert refusals(job_plan("minimal", target), text)


def test_messages_name_both_sides() -> None:
    """The message says what the text says and what the plan says."""
    plan = job_plan("minimal", "docker")
    found = refusals(plan, render(plan).replace("--shm-size 8192m", "--shm-size 64m"))
    assert found == ["TL902 the rendered docker file says shm_size 67108864, the plan says 8589934592"]
