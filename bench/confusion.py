"""Which symptom each field report gets, and which it should: the table over all rows of tests/cases.

    python bench/confusion.py                  the table; exit 1 on any wrong first symptom
    python bench/confusion.py --output json    the same as one JSON document
    python bench/confusion.py --harmless 10000 with as many harmless lines before and after each log

A row counts as right when its first symptom is one that the row accepts.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "launcher")]

from trainlaunch.diagnose import all_causes  # noqa: E402 - the checkout's own package, whatever is installed

from tests.diagnose.corpus import evidence_for, harmless, rows  # noqa: E402


def answers(noise: int) -> dict[str, tuple[list[str], str]]:
    """Return what each row accepts and what it got, by its id."""
    found = {}
    for name, row in rows().items():
        log = harmless(noise) + row["input"] + harmless(noise, seed=3)
        causes = all_causes(evidence_for(row, log))
        found[name] = (row["symptom"], causes[0].symptom if causes else "nothing")
    return found


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table, and return 1 where a row is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--output", choices=("text", "json"), default="text")
    parser.add_argument("--harmless", type=int, default=0, metavar="LINES")
    args = parser.parse_args(argv)
    found = answers(args.harmless)
    wrong = {name for name, (accepted, got) in found.items() if got not in accepted}
    if args.output == "json":
        listed = [{"row": name, "accepted": accepted, "got": got} for name, (accepted, got) in found.items()]
        print(json.dumps({"schema_version": 1, "rows": listed, "wrong": sorted(wrong)}))
    else:
        pairs = Counter((got if got in accepted else accepted[0], got) for accepted, got in found.values())
        print(f"{'should be':24} {'is':24} rows")
        for (expected, got), count in sorted(pairs.items()):
            print(f"{expected:24} {got:24} {count:4}{'' if expected == got else '  WRONG'}")
        print(
            f"{len(found) - len(wrong)} of {len(found)} right" + "".join(f"\nwrong: {name}" for name in sorted(wrong))
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
