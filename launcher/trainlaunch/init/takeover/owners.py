"""Who takes /dev/shm beside DataLoaders, as the commands of a text tell."""

from __future__ import annotations

from trainlaunch.init.takeover.job_draft import JobDraft, word
from trainlaunch.job.shm_owners import RAY, VLLM, is_vllm, starts_ray
from trainlaunch.rules.sources.programs import Argv


def take_owners(draft: JobDraft, commands: tuple[Argv, ...]) -> None:
    """Name them, each by its own law; a server of vLLM has no DataLoader.

    Ray's store follows the memory limit, and a size that the text sets limits it.
    """
    serves = any(map(is_vllm, commands))
    follows = bool(draft.fields.get("resources", {}).get("memory")) and "shm_size" not in draft.fields
    for owner, named in ((VLLM, serves), (RAY, follows and any(map(starts_ray, commands)))):
        if named:
            draft.fields.setdefault("shm_extra", []).append({"name": word(owner)})
            draft.comment("shm_extra", f"The command starts {owner}, whose own law says what it takes of /dev/shm.")
    if serves and "data_loader" not in draft.fields:
        draft.set("data_loader", word("none"), "vLLM's server has no DataLoader.")
