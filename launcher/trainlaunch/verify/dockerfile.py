"""The dockerfile target: what its text must say, and what it says, each as a Workload.

The image's part stands in instructions, the rest in the `docker run` line of the header: together they are the job.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from trainlaunch.container.container import container_of
from trainlaunch.container.paths import checkouts
from trainlaunch.formats.docker.read import read_docker_run
from trainlaunch.formats.quantities import engine_seconds
from trainlaunch.formats.workload import Workload, stated
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.render.dockerfile import REQUIREMENTS, has_requirements, image_name
from trainlaunch.verify.expected_workload import engine_workload, kept_mounts, planned

_INSTRUCTION = re.compile(r"([A-Z]+) (.*)", re.DOTALL)
_PAIR = re.compile(r'(\w+|"(?:\\.|[^"\\])*")="((?:\\.|[^"\\])*)"')
_OPTION = re.compile(r"(?<!\S)--([a-z-]+)=(\S+) ")
_ONCE = frozenset({"FROM", "WORKDIR", "USER", "STOPSIGNAL", "HEALTHCHECK", "ENTRYPOINT", "CMD"})


def expected(plan: LaunchPlan, base: Path | None) -> Workload:
    """Return what the text says when it says what the plan says; `base` changes nothing of it."""
    copies = checkouts(plan)
    runs = {each.target: has_requirements(plan, each) for each in copies}
    steps = [*(_copy(each.path, each.target, REQUIREMENTS) for each in copies if runs[each.target])]
    steps += [_install(each.target) for each in copies if runs[each.target]]
    steps += [_copy(each.path, each.target, "") for each in copies]
    container = container_of(plan)
    wanted = engine_workload(plan)
    return wanted._replace(
        name=None,
        pull_policy=None,
        labels={key: planned(value) for key, value in plan.job.labels.items()},
        mounts=kept_mounts(plan, wanted),
        read_only=planned(True) if plan.job.read_only else None,
        entrypoint=planned(container.entrypoint),
        rest={"--init": True, "--rm": True, "steps": tuple(steps), "image that is started": image_name(plan)},
    )


def _copy(path: str, target: str, name: str) -> str:
    source = f"{path}/{name}" if name else f"{path}/"
    return f"COPY {[source.removeprefix('./') if name and path == '.' else source, f'{target}/{name}']}"


def _install(target: str) -> str:
    words = ["python", "-m", "pip", "install", "--no-cache-dir", "--requirement", f"{target}/{REQUIREMENTS}"]
    return f"RUN {words}"


def parse_rendering(text: str, folder: Path) -> Workload:
    """Return what a Dockerfile and the line in its header start. Raises ValueError where it is not one of ours."""
    comments, instructions = _parts(text)
    lines = [each for each in comments if each.startswith("docker run ")]
    if len(lines) != 1:
        raise ValueError(f"{len(lines)} lines of the header start the image, not one")
    (run,) = read_docker_run(lines[0], "")
    once: dict[str, str] = {}
    steps: list[str] = []
    pairs: dict[str, dict[str, str]] = {"ENV": {}, "LABEL": {}}
    for name, value in instructions:
        if name in pairs:
            pairs[name] |= dict(_pairs(value))
        elif name in ("COPY", "RUN"):
            steps.append(f"{name} {_words(value)}")
        elif name in _ONCE and name not in once:
            once[name] = value
        else:
            raise ValueError(f"{name} stands twice, or is not an instruction that trainlaunch writes")
    started = stated(run.image)
    options, _, health = once["HEALTHCHECK"].rpartition("CMD [")
    check = _words(f"[{health}")
    rest = {key: each for key, each in run.rest.items() if key != "command"}
    return run._replace(
        image=planned(once["FROM"]),
        env={key: planned(value) for key, value in pairs["ENV"].items()},
        labels={key: planned(value) for key, value in pairs["LABEL"].items()},
        working_dir=planned(_unquoted(once["WORKDIR"])) if "WORKDIR" in once else None,
        user=planned(once.get("USER")),
        stop_signal=planned(once.get("STOPSIGNAL")),
        health=planned(check[2] if check[:2] == ["/bin/sh", "-c"] and len(check) == 3 else str(check)),
        health_times={key.replace("-", "_"): planned(_time(value)) for key, value in _OPTION.findall(options)},
        entrypoint=planned(tuple(_words(once["ENTRYPOINT"]))),
        command=planned(tuple(_words(once["CMD"]))),
        rest={**rest, "steps": tuple(steps), "image that is started": started},
    )


def _parts(text: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Return the comments and the instructions, joined as Docker joins their lines."""
    comments: list[str] = []
    instructions: list[tuple[str, str]] = []
    waiting = ""
    for line in text.split("\n"):
        if not line.strip() or line.lstrip().startswith("#"):
            comments.append(line.lstrip("# "))
            continue  # also in the middle of an instruction
        joined = re.fullmatch(r"(.*[^\\]|)\\[ \t]*", line)
        waiting += joined[1] if joined else line
        if joined:
            continue
        match = _INSTRUCTION.fullmatch(waiting)
        if match is None:
            raise ValueError(f"a line is no instruction: {waiting[:60]}")
        instructions.append((match[1], match[2]))
        waiting = ""
    if waiting:
        raise ValueError("the last instruction is not ended")
    return comments, instructions


def _words(value: str) -> list[str]:
    words = json.loads(value)
    if not isinstance(words, list) or not all(isinstance(each, str) for each in words):
        raise ValueError("an instruction is not in its exec form")
    return words


def _pairs(value: str) -> Iterator[tuple[str, str]]:
    match = _PAIR.fullmatch(value)
    if match is None:
        raise ValueError(f'{value[:60]} is not NAME="VALUE"')
    name, value = (re.sub(r"\\(.)", r"\1", each) for each in match.groups())
    yield name.removeprefix('"').removesuffix('"'), value


def _unquoted(value: str) -> str:
    return dict(_pairs(f"value={value}"))["value"]


def _time(text: str) -> int | None:
    return int(text) if text.isdigit() else engine_seconds(text)
