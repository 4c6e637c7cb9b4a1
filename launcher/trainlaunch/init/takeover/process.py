"""What a container runs, as the job's command."""

from __future__ import annotations

from trainlaunch.formats.workload import Known, Unknown, Workload
from trainlaunch.init.takeover.draft import Draft, flow
from trainlaunch.job.tokens import literal_of
from trainlaunch.rules.written.commands import stated_workers
from trainlaunch.rules.written.model import SourceContainer

PLACEHOLDER = ("python", "train.py")


def take_process(draft: Draft, written: SourceContainer) -> None:
    """State command and image_entrypoint, and the workers that the command itself states."""
    workload = written.workload
    entrypoint, command = workload.entrypoint, workload.command
    for each in (entrypoint, command):
        if isinstance(each, Unknown):
            _undecided(draft, each)
            return
    stated = [each.value for each in (entrypoint, command) if isinstance(each, Known)]
    words = tuple(word for each in stated for word in each)
    if not words:
        why = "the text leaves the command to the image, and a job states it: the preflight runs before it"
        image = _image(workload)
        fix = f"put it into command; `docker image inspect {image}` shows the image's ENTRYPOINT and CMD"
        draft.note("the image's own command", why, fix, workload.span)
        draft.set("command", flow(PLACEHOLDER), "The text runs the image's own command: put that here.")
        return
    draft.set("command", flow(tuple(map(literal_of, words))))
    if entrypoint is not None:
        draft.set("image_entrypoint", flow(()))
    else:
        draft.comment(
            "command",
            "The image's ENTRYPOINT, if it has one, stays in front: `trainlaunch up` tells the line to add then.",
        )
    workers = stated_workers(written.argvs, workload.env)
    if workers is not None:
        draft.set("data_loader.num_workers", workers, "The command states this number of workers itself.")


def _image(workload: Workload) -> str:
    return workload.image.value if isinstance(workload.image, Known) else "IMAGE"


def _undecided(draft: Draft, value: Unknown) -> None:
    shown = " ".join(value.text.split())
    why = "a variable or a template decides a part of it, and a job file has no variables of the shell"
    draft.note(f"the command {shown[:100]}", why, "write the words that it stands for into command", value.span)
    draft.set("command", flow(PLACEHOLDER), f"The text runs `{shown[:300]}`: put what that stands for here.")
