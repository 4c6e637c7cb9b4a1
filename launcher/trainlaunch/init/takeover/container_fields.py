"""One container of a text as fields of a job file, whatever the text's format, and what it runs as the command."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

from trainlaunch.formats import workload as of
from trainlaunch.formats.gpus import is_gpu_resource
from trainlaunch.formats.workload import Known, ShmSetting, Unknown, Value, Workload, stated
from trainlaunch.gpu_names import ALL_GPUS, AMD_GPU, NVIDIA_GPU
from trainlaunch.init.command_text import SECRET_NAME
from trainlaunch.init.job_text import scalar
from trainlaunch.init.takeover.job_draft import JobDraft, flow, label, size, word
from trainlaunch.init.takeover.mounts import known_here, take_mounts
from trainlaunch.init.takeover.owners import take_owners
from trainlaunch.job.reserved import KUBERNETES_LABEL_PREFIX, LABEL_PREFIX
from trainlaunch.job.tokens import literal_of
from trainlaunch.least_shm import LEAST_SHM
from trainlaunch.rules.sources.source_text import SourceContainer
from trainlaunch.rules.sources.training_commands import stated_workers
from trainlaunch.units import format_cpus, format_duration

_ONE_VARIABLE = re.compile(r"""["']?(?:(\w+)=)?["']?\$\{?([A-Za-z_]\w*)\}?["']?""")
_FETCHED = re.compile(r"^(?:docker|dockerd|oras)://")
_VARIABLE = re.compile(r"[A-Za-z_]\w*")
_PULL = {
    **dict.fromkeys(("always", "Always"), "always"),
    **dict.fromkeys(("missing", "IfNotPresent", "if_not_present"), "missing"),
    **dict.fromkeys(("never", "Never"), "never"),
}
_OURS = (LABEL_PREFIX, KUBERNETES_LABEL_PREFIX)
_OF_SHM = {
    of.UNSIZED: "it is a tmpfs without a size, and every rendered file sets one",
    of.HOST: "it shares the host's, which every process of the host fills",
    of.CONTAINER: "it shares another container's",
    of.NONE: "it has none, and a DataLoader with workers needs it",
    of.BIND: "it is a folder of the host",
    of.DISK: "it is on a disk, over which batches are slow",
}


def take_container(draft: JobDraft, workload: Workload) -> None:
    """Set all that a Workload says beside its process."""
    _take_name(draft, workload)
    _take_image(draft, workload)
    _take_plain(draft, workload)
    _take_env(draft, workload)
    labels = {key: value for key, value in workload.labels.items() if not key.startswith(_OURS)}
    _take_texts(draft, "labels", labels)
    take_mounts(draft, workload.mounts)
    _take_limits(draft, workload)
    take_gpus(draft, workload)
    take_shm(draft, workload.shm, workload)


def _take_name(draft: JobDraft, workload: Workload) -> None:
    name = stated(workload.name) or ""
    image = stated(workload.image) or ""
    made = label(name) or label(posixpath.basename(image.partition("@")[0]).partition(":")[0]) or "my-job"
    draft.set("name", word(scalar(made)))
    if name and made != name:
        draft.comment("name", f"The file calls it {name}, which is not a DNS-1123 label of at most 50 characters.")


def _take_image(draft: JobDraft, workload: Workload) -> None:
    image = workload.image
    if isinstance(image, Known) and image.value:
        # What only says how the image is fetched is no part of its name.
        draft.set("image", word(scalar(_FETCHED.sub("", image.value).replace("#", "/"))))
        return
    if isinstance(image, Unknown):
        draft.leave_open("image", f"The file leaves the image to {image.text}: write what that stands for as image.")
        why, shown = "a variable or a template decides it", image.text
    else:
        draft.leave_open("image", "The file builds its image, or names none: write its name as image.")
        why, shown = "the file names none; one that is built there has no name here", "of the file"
    draft.note(f"the image {shown}", why, "write the image with its tag or digest", workload.span)


def _take_plain(draft: JobDraft, workload: Workload) -> None:
    """Set the fields that are one word, and say which a variable decides."""
    values: Mapping[str, Value[str]] = {
        "working_dir": workload.working_dir,
        "user": workload.user,
        "stop_signal": workload.stop_signal,
        "pull_policy": workload.pull_policy,
    }
    for field, each in values.items():
        value = known_here(draft, field, each) if isinstance(each, Unknown) and field == "working_dir" else each
        if isinstance(value, Unknown):
            _undecided(draft, field, value)
        elif value is not None and field == "pull_policy" and value.value not in _PULL:
            draft.note(f"pull_policy {value.value}", "a job has always, missing and never", "choose one", value.span)
        elif value is not None and value.value.strip(":"):
            draft.set(field, _PULL.get(value.value, value.value) if field == "pull_policy" else value.value)
    if workload.groups:
        draft.set("group_add", flow(workload.groups))
    if isinstance(workload.read_only, Unknown):
        _undecided(draft, "read_only", workload.read_only)
    elif workload.read_only is not None and workload.read_only.value:
        draft.set("read_only", True)
    grace = workload.stop_timeout
    if isinstance(grace, Known):
        if grace.value != 30:
            draft.set("stop_grace_period", word(format_duration(grace.value)))
    elif grace is not None:
        _undecided(draft, "stop_grace_period", grace)
    for name, (soft, hard) in workload.ulimits.items():
        draft.set(f"ulimits.{name}", soft if soft == hard else {"soft": soft, "hard": hard})
    if workload.health is not None:
        draft.note(
            "the health check",
            "a job has its own: /dev/shm is there, writable and of the planned size",
            "watch what it checked from the training script",
            workload.health.span,
        )


def _undecided(draft: JobDraft, field: str, value: Unknown) -> None:
    draft.note(
        f"{field} {' '.join(value.text.split())[:80]}",
        "only a shell, a template or the format's own reader could say what it is",
        f"write the value into {field}",
        value.span,
    )


def _take_env(draft: JobDraft, workload: Workload) -> None:
    """Set variables; what a variable of the shell decides, and what is called a secret, as a secret's source."""
    texts: dict[str, Value[str]] = {}
    for name, written in workload.env.items():
        source = _ONE_VARIABLE.fullmatch(written.text) if isinstance(written, Unknown) else None
        here = isinstance(written, Unknown) and (source is None or source[2] == "PWD")
        value = known_here(draft, "env", written) if here and isinstance(written, Unknown) else written
        if isinstance(value, Unknown) and value.text == name and _VARIABLE.fullmatch(name):
            draft.set(f"secrets.{name}", {"env": name})
        elif source and value is written and _VARIABLE.fullmatch(name) and source[1] in (None, name):
            draft.set(f"secrets.{name}", {"env": source[2]})
            draft.comment("secrets", f"{name} is what the variable {source[2]} of this host holds.")
        elif isinstance(value, Known) and value.value and SECRET_NAME.search(name) and _VARIABLE.fullmatch(name):
            draft.set(f"secrets.{name}", {"env": name})
            draft.note(
                f"the value of {name}",
                "a secret stands in no job file, and no rendered file shows one",
                f"export {name} before `up`, or name a file or a Kubernetes Secret",
                value.span,
            )
        else:
            texts[name] = value
    _take_texts(draft, "env", texts)
    for name, found in workload.secrets.items():
        if draft.record.has_kinds:
            draft.set(f"secrets.{name}", {"kubernetes": found})
        elif _VARIABLE.fullmatch(found) or found.startswith("file "):
            draft.set(f"secrets.{name}", {"env": found})


def _take_texts(draft: JobDraft, field: str, values: Mapping[str, Value[str]]) -> None:
    for name, value in values.items():
        if isinstance(value, Unknown):
            _undecided(draft, f"{field}.{name}", value)
        elif value is not None:
            draft.fields.setdefault(field, {})[name] = value.value


def _take_limits(draft: JobDraft, workload: Workload) -> None:
    for field, value in {"resources.cpus": workload.cpus, "resources.memory": workload.memory}.items():
        if isinstance(value, Unknown):
            _undecided(draft, field, value)
        elif value is not None and value.value > 0:
            draft.set(field, word(format_cpus(value.value)) if field.endswith("cpus") else size(value.value))


def take_gpus(draft: JobDraft, workload: Workload) -> None:
    """Set the GPUs, by NVIDIA's count, ids or all, or as AMD's device nodes."""
    gpus = workload.gpus
    if isinstance(gpus, Unknown):
        _undecided(draft, "resources.gpus", gpus)
    elif gpus is not None:
        asked = gpus.value
        if asked.all:
            draft.set("resources.gpus", word(ALL_GPUS))
            draft.set(
                "ranks_per_container", 1, "All GPUs are another number on each machine: set the number of processes."
            )
        elif asked.ids:
            draft.set("resources.gpus", flow(asked.ids))
        elif asked.number:
            draft.set("resources.gpus", asked.number)
        if asked.resource == AMD_GPU:
            draft.set("resources.gpu_vendor", word("amd"))
        elif asked.resource not in ("", NVIDIA_GPU):
            draft.set("resources.gpu_resource", asked.resource)
    elif amd_nodes(workload):
        _take_amd(draft, amd_nodes(workload))
    _take_extended(draft, workload)


def amd_nodes(workload: Workload) -> tuple[str, ...]:
    """Return the device nodes that are GPUs of AMD's, with the one that all of them share; none without that one."""
    nodes = workload.devices.get("nodes", "").split()
    found = tuple(each for each in nodes if each.startswith(("/dev/kfd", "/dev/dri")))
    return found if "/dev/kfd" in found and len(found) > 1 else ()


def _take_amd(draft: JobDraft, nodes: tuple[str, ...]) -> None:
    draft.set("resources.gpu_vendor", word("amd"))
    numbers = [re.fullmatch(r"/dev/dri/renderD(\d+)", each) for each in nodes if each != "/dev/kfd"]
    if all(numbers):
        draft.set("resources.gpus", flow(tuple(str(int(each[1]) - 128) for each in numbers if each)))
    else:
        draft.set("resources.gpus", word(ALL_GPUS))
        draft.set("ranks_per_container", 1, "All GPUs are another number on each machine: set the number of processes.")


def _take_extended(draft: JobDraft, workload: Workload) -> None:
    """Set a cluster's other resources by their names."""
    for name, count in workload.devices.items():
        if name == "nodes":
            continue
        if name == "ephemeral-storage" and count.isdigit():
            draft.set("resources.ephemeral_storage", size(int(count)))
        elif count.isdigit() and "/" in name and not is_gpu_resource(name):
            draft.fields.setdefault("resources", {}).setdefault("extended", {})[name] = int(count)
        else:
            draft.note(f"{name}: {count}", "resources.extended takes whole numbers", "set it there", workload.span)


def take_shm(draft: JobDraft, shm: ShmSetting, workload: Workload) -> None:
    """Set /dev/shm where the text gives it a size of its own; else the plan sizes it."""
    if shm.kind in (of.SIZE, of.TMPFS) and isinstance(shm.size, Known) and shm.size.value > 0:
        draft.set("shm_size", size(shm.size.value))
        return
    if shm.kind in (of.SIZE, of.TMPFS) and isinstance(shm.size, Unknown):
        _undecided(draft, "shm_size", shm.size)
        return
    if shm.kind in _OF_SHM:
        draft.note(
            f"/dev/shm as the file has it ({shm.kind})",
            f"{_OF_SHM[shm.kind]}; a job has one of its own",
            "set shm_size, or leave it to the plan",
            shm.span or workload.span,
        )
        if isinstance(shm.declared, Known) and shm.declared.value >= LEAST_SHM:
            draft.set("shm_size", size(shm.declared.value))
        return
    draft.note(
        "the default of 64 MiB for /dev/shm",
        "the file sets no size, and workers need more; the plan sizes it",
        "give data_loader a sample, or set shm_size",
        workload.span,
    )


def take_process(draft: JobDraft, written: SourceContainer) -> None:
    """Set command and image_entrypoint, and the workers that the command itself sets."""
    workload = written.workload
    entrypoint, command = workload.entrypoint, workload.command
    for each in (entrypoint, command):
        if isinstance(each, Unknown):
            _leave_command_open(draft, each)
            return
    stated = [each.value for each in (entrypoint, command) if isinstance(each, Known)]
    words = tuple(word for each in stated for word in each)
    if not words:
        image = workload.image.value if isinstance(workload.image, Known) else "IMAGE"
        draft.note(
            "the image's own command",
            "the file leaves the command to the image, and a job sets it: the preflight runs before it",
            f"put it into command; `docker image inspect {image}` shows the image's ENTRYPOINT and CMD",
            workload.span,
        )
        draft.leave_open("command", "The file runs the image's own command: write that as command.")
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
        draft.set("data_loader.num_workers", workers, "The command sets this number of workers itself.")
    take_owners(draft, written.argvs)


def _leave_command_open(draft: JobDraft, value: Unknown) -> None:
    shown = " ".join(value.text.split())
    draft.note(
        f"the command {shown[:100]}",
        "a variable or a template decides a part of it, and a job file has no variables of the shell",
        "write the words that it stands for into command",
        value.span,
    )
    draft.leave_open("command", f"The file runs `{shown[:300]}`: write what that stands for as command.")
