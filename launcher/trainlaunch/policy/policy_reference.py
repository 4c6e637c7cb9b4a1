"""The reference of a policy file, from its table of fields: the table of docs/policy-fields.md and the JSON Schema."""

from __future__ import annotations

from typing import Any

from trainlaunch.job.fields.reference import schema_of, table_line, type_words
from trainlaunch.job.fields.table import rows
from trainlaunch.policy.fields import OVERRIDE_OF_POLICY, POLICY_FILE


def policy_markdown() -> str:
    """Return the table of a policy's fields, for docs/policy-fields.md."""
    cells = (
        (f"`{path}`", type_words(field.type), field.default_text, field.meaning) for path, field in rows(POLICY_FILE)
    )
    return "| field | type | default | meaning |\n|---|---|---|---|\n" + "".join(map(table_line, cells))


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema of a policy file."""
    return schema_of("trainlaunch policy", POLICY_FILE, OVERRIDE_OF_POLICY)
