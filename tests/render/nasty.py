"""Strings that some reader between a job file and a process is known to change, and seeded mixtures of them."""

from __future__ import annotations

import random

# Bare, these are other things than strings to PyYAML, to Go's YAML, or to both.
LOOK_ALIKES = (
    *("y", "n", "Y", "N", "yes", "No", "on", "OFF", "true", "False", "null", "~", "Null", "NULL", "", " ", "=", "<<"),
    *("1e3", "1e+3", "00215e6", "08", "0o14", "0123", "0x1F", "0b11", "1_000", "12:30:45", "190:20:30", "1.0", ".5"),
    *(".inf", "-.INF", ".nan", "+1", "-0", "2001-12-14", "2001-12-14t21:59:43.10-05:00", "3e-4", "1E5", "0.", "1__0"),
)
DOLLARS = (
    *("$", "$$", "$$$", "$_", "$A", "${A}", "${A:-b}", "${A:?no}", "${", "${}", "${1}", "$1", "$?", "$@", "$*", "$-"),
    *(
        "$(A)",
        "$(HOME)",
        "$$(HOME)",
        "$$$(HOME)",
        "$(",
        "$()",
        "$(nproc)",
        "$((1+2))",
        "$HOME",
        "$$HOME",
        "a$b$c",
        "$\n",
    ),
    *("$(TRAINLAUNCH)", "$ {A}", "\\$A", "\\${A}", "'$A'", '"$A"', "`id`", "$'a\\n'", '$"a"', "a$"),
)
SHELL = (
    *(
        "'",
        '"',
        "''",
        '""',
        "'\\''",
        "\\",
        "\\\\",
        "\\n",
        "\\'",
        "\\\n",
        "a\\",
        "!",
        "!!",
        "*",
        "?",
        "[a]",
        "{a,b}",
        "~",
    ),
    *("~root", "#", "# no", "a #b", ";", "&", "|", ">", "<", "(", ")", "&&", ">/dev/null", "-", "--", "-e", "--env"),
    *("-c", "--help", "-$A", "=", "a=b", "=a", "%s", "%", "a b", " a", "a ", "\ta", "a\t", "\n", "\n\n", "a\n", "\na"),
    *(
        "\r",
        "\r\n",
        "a\r\nb",
        "line\n  two\n\tthree\n",
        "  two\nlines",
        "trailing \nblank",
        "x\n \n",
        " \nx",
        "a\n\n\nb",
    ),
)
YAML = (
    *(
        "- a",
        "a: b",
        ": ",
        "a:",
        "? a",
        "& a",
        "&a",
        "*a",
        "!a",
        "!!str a",
        "|",
        ">",
        "|-\n a",
        "%YAML",
        "@a",
        "`a",
        "{a: b}",
    ),
    *(
        "[a",
        "]",
        "{",
        "}",
        ",",
        "a, b",
        "---",
        "...",
        "---\na: b",
        "\\x41",
        "\\u0041",
        '\\"',
        "a #",
        "#a",
        "a\n#b\n",
        "'a",
        '"a',
    ),
)
UNICODE = (
    *(
        "é",
        "ß",
        "中文",
        "عربى",
        "🙂",
        "👩‍👩‍👧",
        "e\u0301",
        "\u0085",
        "\u2028",
        "\u2029",
        "\ufeff",
        "a\ufeffb",
        "\u00a0",
        "\u200b",
    ),
    *(
        "\u202eabc",
        "\u2066x\u2069",
        "\x01",
        "\x07",
        "\x08",
        "\x0b",
        "\x0c",
        "\x1b[31m",
        "\x1f",
        "\x7f",
        "\x80",
        "\x9f",
        "\u00ad",
    ),
    *(
        "\ue000",
        "\ufffd",
        "\ufffe",
        "\uffff",
        "\U0001fffe",
        "\U000e0041",
        "\U0010ffff",
        "\U0010fffd",
        "\x85\n",
        "a\u2028b\n",
    ),
)
TOKENS = (
    "{num_workers",
    "num_workers}",
    "x{num_workers}",
    '{"a": {"b": 1}}',
    "{}",
    "{{",
    "}}",
    "{% x %}",
    "{{ x }}",
    "{# c #}",
)
PARTS = (*LOOK_ALIKES, *DOLLARS, *SHELL, *YAML, *UNICODE, *TOKENS)


def nasty_strings(count: int = 2_200, seed: int = 20_260) -> list[str]:
    """Return `count` different strings: every part above, then mixtures of two to six of them."""
    chance = random.Random(seed)  # noqa: S311  reproducible on purpose
    found = dict.fromkeys(PARTS)
    while len(found) < count:
        found["".join(chance.choices(PARTS, k=chance.randint(2, 6)))] = None
    return list(found)[:count]
