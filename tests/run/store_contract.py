"""What the verbs about runs do on every target, by the command line only. A target's test module subclasses it.

The subclass gives three fixtures: `trainlaunch` runs a verb to its end, `make_job` writes a small job of that target
with a name of its own, and `options` are those by which a verb finds the target's runs without a job file.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema

from tests.conftest import Runs
from tests.run.keeper_contract import causes

MakeJob = Callable[..., Path]
SCHEMA = json.loads((Path(__file__).parent / "run_status.schema.json").read_text())
SAYS = "RuntimeError: unable to write to file </torch_1_2>: No space left on device (28)"
FAILS = f"echo one; echo '{SAYS}' >&2; sleep 1; exit 4"
GOES_ON = "echo ready; sleep 3600"
ONLY_LOOKED_AT = ("waits", "never_ran", "keeper", "messages", "causes", "suggestion")


def shaped(text: str, kind: str) -> dict[str, Any]:
    """Return a document that has the one shape: every key, and none besides."""
    document: dict[str, Any] = json.loads(text)
    jsonschema.Draft202012Validator({**SCHEMA, "$ref": f"#/$defs/{kind}"}).validate(document)
    return document


def not_looked_at(status: dict[str, Any]) -> dict[str, Any]:
    """Return what `status` says of an ended run as `ps` has it, which asks nobody for a peak."""
    containers = [{**each, "shm": {**each["shm"], "peak": None}} for each in status["containers"]]
    return {**status, **dict.fromkeys(ONLY_LOOKED_AT), "containers": containers}


class StoreContract:
    """Tests of `ps`, `status`, `wait`, `logs`, `attach`, `doctor`, `shell` and `down`."""

    def test_a_run_that_goes_on_has_the_one_shape(
        self, trainlaunch: Runs, make_job: MakeJob, options: tuple[str, ...]
    ) -> None:
        """A script for one target reads it on all; `down` then leaves nothing of it."""
        job = str(make_job(script=GOES_ON))
        started = trainlaunch("up", "-d", job)
        assert started.returncode == 0, started.stderr
        status = shaped(trainlaunch("status", job, "-o", "json").stdout, "status")
        until = time.monotonic() + 60
        while status["state"] == "pending" and time.monotonic() < until:
            status = shaped(trainlaunch("status", job, "-o", "json").stdout, "status")
        assert (status["state"], status["exit_code"], status["finished"]) == ("running", None, None)
        assert (status["attempt"], status["never_ran"], status["causes"], status["waits"]) == (1, False, [], [])
        assert status["name"] in started.stdout
        (container,) = status["containers"]
        assert (container["state"], container["exit_code"], container["attempt"]) == ("running", None, 1)
        assert container["oom_killed"] is None
        (listed,) = self.listed(trainlaunch, options, status["job"])
        assert {listed[each] for each in ONLY_LOOKED_AT} == {None}
        same = ("run", "name", "target", "owner", "state", "exit_code", "attempt", "created", "started")
        assert [listed[each] for each in same] == [status[each] for each in same]
        inside = trainlaunch("shell", status["run"], *options, "--", "sh", "-c", "exit 6")
        assert inside.returncode == 6, inside.stderr
        assert trainlaunch("down", status["run"], *options).returncode == 0
        assert self.listed(trainlaunch, options, status["job"]) == []
        assert trainlaunch("status", status["run"], *options).returncode == 3

    def test_a_run_that_failed_has_the_one_shape_and_is_told_alike_by_every_verb(
        self, trainlaunch: Runs, make_job: MakeJob, options: tuple[str, ...]
    ) -> None:
        """`status`, `ps` and `wait` say the same of it, with the causes that `up` gave."""
        job = str(make_job(script=FAILS))
        up = trainlaunch("up", job)
        assert up.returncode == 4, up.stderr
        done = trainlaunch("status", job, "-o", "json")
        status = shaped(done.stdout, "status")
        assert (done.returncode, status["state"], status["exit_code"]) == (1, "failed", 4)
        assert status["finished"] >= status["started"] > 0
        assert [each["state"] for each in status["containers"]] == ["failed"]
        assert [f"cause[{each['code']}]" in up.stderr for each in status["causes"]] == [True]
        waited = trainlaunch("wait", job, "-o", "json")
        assert (waited.returncode, shaped(waited.stdout, "status")) == (4, status)
        (listed,) = self.listed(trainlaunch, options, status["job"])
        assert {"schema_version": 3, **listed} == not_looked_at(status)
        assert "one\n" in trainlaunch("logs", job).stdout
        for verb in (["wait"], ["logs", "-f"], ["attach"]):
            again = trainlaunch(*verb, job)
            assert (again.returncode, causes(again.stderr)) == (4, causes(up.stderr)), (verb, again.stderr)
        assert causes(trainlaunch("status", job).stdout) == causes(up.stderr)
        assert trainlaunch("doctor", *options, job).returncode == 0
        assert trainlaunch("down", job).returncode == 0

    def test_a_run_that_ended_well_has_succeeded(
        self, trainlaunch: Runs, make_job: MakeJob, options: tuple[str, ...]
    ) -> None:
        """In the same word everywhere; `wait -o json` of a run that is not there is a document too."""
        job = str(make_job(script="echo done"))
        assert trainlaunch("up", job).returncode == 0
        done = trainlaunch("status", job, "-o", "json")
        status = shaped(done.stdout, "status")
        assert (done.returncode, status["state"], status["exit_code"], status["causes"]) == (0, "succeeded", 0, [])
        assert trainlaunch("down", status["name"], *options).returncode == 0
        missing = trainlaunch("wait", job, "-o", "json")
        assert missing.returncode == 125
        assert json.loads(missing.stdout)["findings"][0]["code"] == "TL510"

    def listed(self, trainlaunch: Runs, options: tuple[str, ...], job: str) -> list[dict[str, Any]]:
        """Return the runs of a job as `ps` has them in JSON."""
        runs = shaped(trainlaunch("ps", *options, "-o", "json").stdout, "ps")["runs"]
        return [each for each in runs if each["job"] == job]
