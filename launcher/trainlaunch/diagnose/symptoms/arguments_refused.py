from __future__ import annotations

from trainlaunch.diagnose.base.case import LIKELY, Case, Diagnosis, seen
from trainlaunch.diagnose.base.log_patterns import LogPattern

CODE = "TL675"
NAME = "arguments-refused"
_ARGPARSE = LogPattern(
    ": error: ",
    r"^(?P<program>[\w./ -]{1,120}): error: (?P<words>(?:unrecognized arguments|the following arguments are required"
    r"|argument [^:]+|ambiguous option|one of the arguments|invalid choice|too few arguments|expected \w+ argument).*)",
)
_CLICK = LogPattern(
    "Error: ", r"^Error: (?P<words>(?:No such option|Missing (?:option|argument|parameter)|Invalid value for) .*)"
)
_HYDRA = LogPattern("rror", r"(?P<words>Could not override '[^']+'.*|(?:LexerNoViableAlt|mismatched input) .*)")
_PARSER = LogPattern(
    "rror: ", r"ValueError: (?P<words>Some specified arguments are not used by the HfArgumentParser: .*)"
)


def diagnose(case: Case) -> Diagnosis | None:
    """Match the words of argument parsers, which end with 2."""
    hit = case.first(_ARGPARSE, _CLICK, _HYDRA, _PARSER)
    if hit is None or case.exit_code == 0:
        return None
    program = (hit.match.groupdict().get("program") or "the script").strip()
    return Diagnosis(
        CODE,
        NAME,
        f"{program} does not take the arguments that it was given: {hit.match['words'].strip()}",
        seen(hit),
        f"correct the arguments of command; `{program} --help` lists them"
        if program != "the script"
        else "correct the arguments of command; its --help lists them",
        LIKELY if case.exit_code not in {1, 2} else "certain",
    )
