"""What a rendered file's object says to controllers that prune, taken back to `kubernetes.prune` and the job's own."""

from __future__ import annotations

from typing import Any

from trainlaunch.container.kubernetes import ARGO_CD, FLUX_PRUNE
from trainlaunch.init.takeover.job_draft import JobDraft


def drop_prune(draft: JobDraft, own: dict[str, Any], *, before: bool) -> None:
    """Take out what keeps controllers from deleting the object, of which rendered files before format 3 say nothing."""
    stated = draft.fields.get("annotations", {})
    if not before and FLUX_PRUNE not in stated:
        own["prune"] = True
        return
    for key, option in (*ARGO_CD.items(), (FLUX_PRUNE, "disabled")):
        left = [each for each in stated.get(key, "").split(",") if each not in ("", option)]
        stated[key] = ",".join(left)
        if not left:
            del stated[key]
    of_pods = own.get("annotations", {})
    for key in [key for key, value in of_pods.items() if stated.get(key) == value]:
        del of_pods[key]
    for fields, notes in ((draft.fields, stated), (own, of_pods)):
        if not notes:
            fields.pop("annotations", None)
