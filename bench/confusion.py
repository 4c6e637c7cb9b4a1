"""Which symptom each field report gets, and which it should: a table by kind over files of cases.

    python bench/confusion.py                          the rows of tests/cases; exit 1 on any wrong first symptom
    python bench/confusion.py FILE.jsonl …             the rows of these files
    python bench/confusion.py --harmless 5000          as many harmless lines before and after each log
    python bench/confusion.py --caught                 each of ten errors that a run went on after, put before each log
    python bench/confusion.py --all                    the three of them
    python bench/confusion.py --output json

A row is right when its first symptom is one that it accepts, or where it wants nothing and nothing is certain; partly
where that stands further down or is only possible, silent where nothing is named, else wrong. Rows that accept
nothing
by name are listed for a person.
Ten ordinary logs without an exit code follow: they name nothing certain.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "launcher")]

from trainlaunch.diagnose import all_causes  # noqa: E402 - the checkout's own package, whatever is installed
from trainlaunch.diagnose.base.evidence import Evidence  # noqa: E402

from tests.diagnose.corpus import CASES, CAUGHT, ORDINARY_ENDS, evidence_for, harmless, rows_of  # noqa: E402

VERDICTS = ("right", "partly", "silent", "wrong")


class Answer(NamedTuple):
    """What one row got: `put` says what stood around its log."""

    row: str
    kind: str
    put: str
    accepted: list[str]
    got: list[str]
    verdict: str


def answered(row: dict[str, Any], put: str, log: str) -> Answer:
    """Return what is said of a log, judged by its row."""
    causes = [each for each in all_causes(evidence_for(row, log)) if each.symptom != "unknown"]
    got = [each.symptom for each in causes]
    accepted = row["symptom"]
    verdict = "silent" if not got else "wrong"
    if got and got[0] in accepted:
        verdict = "right"
    elif set(got) & set(accepted) and causes[0].confidence == "possible":
        verdict = "partly"
    if row.get("nothing") and verdict in {"wrong", "silent"}:
        verdict = "wrong" if any(each.confidence == "certain" for each in causes) else "right"
    elif not accepted:
        verdict = ""
    return Answer(row["id"], row.get("topic", row["kind"]), put, accepted, got, verdict)


def answers(rows: dict[str, dict[str, Any]], noise: int, caught: bool, plain: bool) -> Iterator[Answer]:
    """Yield what each row gets in each of its dresses."""
    for row in rows.values():
        if plain:
            yield answered(row, "plain", row["input"])
        if noise:
            yield answered(row, "harmless", harmless(noise) + row["input"] + harmless(noise, seed=3))
        for name, text in CAUGHT.items() if caught else ():
            yield answered(row, f"caught: {name}", text + row["input"])


def table(found: list[Answer]) -> None:
    """Print the counts by kind, then each row that isn't right."""
    for put in ("plain", "harmless", "caught"):
        here = [each for each in found if each.put.startswith(put) and each.verdict]
        if not here:
            continue
        print(f"{put:24} " + " ".join(f"{each:>7}" for each in VERDICTS))
        counts = Counter((each.kind, each.verdict) for each in here)
        for kind in sorted({each.kind for each in here}):
            print(f"  {kind:22} " + " ".join(f"{counts[kind, each] or '':>7}" for each in VERDICTS))
        total = Counter(each.verdict for each in here)
        print(f"  {'all':22} " + " ".join(f"{total[each]:7}" for each in VERDICTS))
    for each in found:
        if each.verdict != "right":
            print(f"{each.verdict or 'to judge':8} {each.row} ({each.put}): {each.got}, accepted {each.accepted}")


def ordinary() -> int:
    """Print which ordinary logs without an exit code name something, and return how many call it certain."""
    certain = 0
    for name, text in ORDINARY_ENDS.items():
        causes = all_causes(Evidence(None, text))
        certain += any(each.confidence == "certain" for each in causes)
        if causes:
            print(f"ordinary {name}: {[(each.symptom, each.confidence) for each in causes]}")
    return certain


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, and return 1 where a row is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", nargs="*", type=Path, default=sorted(CASES.glob("*.jsonl")))
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.add_argument("--harmless", type=int, default=0, metavar="LINES")
    parser.add_argument("--caught", action="store_true")
    parser.add_argument("--all", action="store_true")
    args = parser.parse_args(argv)
    noise = args.harmless or 5000 * args.all
    plain = args.all or not (args.harmless or args.caught)
    found = list(answers(rows_of(*args.files), noise, args.caught or args.all, plain))
    wrong = [each for each in found if each.verdict == "wrong"]
    if args.output == "json":
        print(json.dumps({"schema_version": 2, "answers": [each._asdict() for each in found]}))
        return 1 if wrong else 0
    table(found)
    return 1 if ordinary() or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
