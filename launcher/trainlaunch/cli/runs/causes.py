"""How `doctor` prints causes: each with its evidence, its place in the log and its commands; echoes as such."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trainlaunch.cli.output.report import document
from trainlaunch.cli.output.streams import Streams
from trainlaunch.cli.output.text_style import Look, look
from trainlaunch.cli.runs.runs import bare_evidence, framed_diagnosis, shown

if TYPE_CHECKING:
    from trainlaunch.diagnose.base.diagnosis import Diagnosis, Seen
    from trainlaunch.diagnose.base.evidence import Evidence


def tell(evidence: Evidence, streams: Streams, *, output: str) -> int:
    """Print what is known of an end; returns 0 where a cause is named, else 1."""
    from trainlaunch.diagnose import all_causes

    causes = all_causes(evidence)
    named = any(each.symptom != "unknown" for each in causes)
    if output == "json":
        streams.result(document({"diagnoses": [as_json(each) for each in causes]}))
        return 0 if named else 1
    seen_as = look(streams.out)
    for each in causes:
        if each.symptom != "unknown":
            streams.result(f"{_told(each, seen_as)}\n")
    if not named:
        well = ": exit code 0 is that of a job that ended well" if evidence.exit_code == 0 else ""
        streams.row(f"no known cause{well}; {bare_evidence(evidence)}")
    return 0 if named else 1


def as_json(diagnosis: Diagnosis) -> dict[str, object]:
    """Return a diagnosis as documents have it."""
    return {
        "code": diagnosis.code,
        "symptom": diagnosis.symptom,
        "confidence": diagnosis.confidence,
        "evidence": [_seen(each) for each in diagnosis.evidence],
        "cause": shown(diagnosis.sentence),
        "fix": shown(diagnosis.fix),
        "commands": list(diagnosis.commands),
        "echo_of": diagnosis.echo_of or None,
    }


def _seen(seen: Seen) -> dict[str, object]:
    return {"source": seen.source, "line": seen.line, "text": shown(seen.text)}


def _told(diagnosis: Diagnosis, seen_as: Look) -> str:
    if diagnosis.echo_of:
        return f"an echo of {diagnosis.echo_of}: {shown(diagnosis.sentence)} ({shown(diagnosis.saw)})"
    text = framed_diagnosis(diagnosis, seen_as)
    places = ", ".join(f"line {each.line}" for each in diagnosis.evidence if each.line)
    more = f"\n   = at: {places} of the log" if places else ""
    return text + more + "".join(f"\n   = run: {each}" for each in diagnosis.commands)
