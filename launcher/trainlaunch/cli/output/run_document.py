"""The one JSON document of `up -o json` and `run -o json`; what the job prints is on stderr then."""

from __future__ import annotations

from trainlaunch.cli.output.report import as_json, document
from trainlaunch.cli.output.streams import Streams
from trainlaunch.errors import LaunchError
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.run.base.store import Followed, Tell


def beside_document(streams: Streams) -> Streams:
    """Return streams that leave stdout to a document."""
    return Streams(streams.err, streams.err)


def with_document(tell: Tell, plan: LaunchPlan, streams: Streams, run: str = "") -> Tell:
    """Return what tells a run's end as `tell` does, and as a document on stdout."""

    def both(followed: Followed) -> None:
        content = _content(followed, plan, run)
        if isinstance(followed.error, LaunchError):
            content["findings"] = as_json(followed.error.diagnostics)
            followed.error.documented = True
        streams.result(document(content))
        tell(followed)

    return both


def _content(followed: Followed, plan: LaunchPlan, run: str) -> dict[str, object]:
    from trainlaunch.diagnose import causes_json, explain_end

    evidence = followed.evidence
    wait = followed.data_wait
    state = "started" if followed.started else "left" if followed.goes_on else "lost" if followed.error else "ended"
    return {
        "job": plan.job.name,
        "name": plan.name,
        "target": plan.target,
        "run": run or None,
        "state": state,
        "exit_code": followed.exit_code if state == "ended" else None,
        "causes": [] if evidence is None else causes_json(explain_end(evidence)),
        "shm": {"size": evidence and evidence.shm_size, "peak": evidence and evidence.shm_peak},
        "data_wait": None if wait is None else wait.document(followed.seconds),
        "remarks": [each for each in (followed.verdict, *followed.remarks, followed.goes_on) if each],
    }
