"""What the job's own shell text does to the training that it runs, and variables that name GPUs it does not have."""

from __future__ import annotations

from collections.abc import Iterator

from trainlaunch.diagnostics import Severity
from trainlaunch.formats.docker.shell_lexer import statements
from trainlaunch.job.shm_owners import RAY, STORE, TENSOR, VLLM, OwnerLaw, law_of
from trainlaunch.plan.launch_plan import LaunchPlan
from trainlaunch.plan.shm_extra import ShmOwner, shm_owners, surroundings
from trainlaunch.rules.base.rule import Problem, plan_rule
from trainlaunch.rules.sources.deciding_workers import arguments_of, script_facts
from trainlaunch.rules.sources.scripts import PICKLE_WHY
from trainlaunch.rules.sources.training_commands import (
    BACKGROUND,
    BACKGROUND_WHY,
    PIPELINE_WHY,
    hiding_pipe,
    text_of_job,
    waiting_shell,
    waits_in_vain,
)
from trainlaunch.rules.sources.visible_devices import GrantedGpus, contradictions
from trainlaunch.script.script_facts import Option, ScriptOwner
from trainlaunch.units import format_size, human_size

_ENDS_A_PARSER = frozenset({"-h", "--help", "--version", "--helpfull", "--flagfile"})  # or has its words elsewhere


@plan_rule("TL215", Severity.ERROR)
def required_argument_missing(plan: LaunchPlan) -> Iterator[Problem]:
    """The script's own parser would end it; its text is read where the job mounts it."""
    facts, words = script_facts(plan.job), arguments_of(plan.job)
    if facts is None or words is None or not _ENDS_A_PARSER.isdisjoint(each.partition("=")[0] for each in words):
        return
    lacking = [each for each in facts.required if each.flag and not _given(each, words)]
    positional = [each for each in facts.required if not each.flag]
    plain = [each for each in words if not each.startswith("-")]
    lacking += positional[len(plain) :]  # an option's value counts too: fewer words than that are surely too few
    if lacking:
        names = ", ".join(f"{each.flag or each.dest} ({each.place})" for each in lacking)
        first = lacking[0]
        typed = f"{first.flag} VALUE" if first.flag else " or ".join(first.names) or first.dest.upper()
        yield Problem(
            f"the command gives no {names}, which the script requires",
            f"add {typed} to command",
            "its parser ends it with code 2 before anything is loaded",
            "command",
        )


@plan_rule("TL217", Severity.WARNING)
def start_method_of_script(plan: LaunchPlan) -> Iterator[Problem]:
    """The script's workers start otherwise than the plan assumes; loaders that set it themselves aren't judged."""
    job, field = plan.job, "data_loader.multiprocessing_context"
    facts = script_facts(job)
    if facts is None or not plan.shm.workers or job.origin(field).kind != "default":
        return
    method, assumed = facts.shared.get("multiprocessing_context"), job.data_loader.multiprocessing_context
    if method in {None, assumed} or any("multiprocessing_context" in each.settings for each in facts.loaders):
        return
    yield Problem(
        f"the script's workers start by {method}, and the plan assumes {assumed}",
        f"set {field}: {method}, and data_loader.dataset_tensor_bytes where the dataset holds tensors",
        f"{PICKLE_WHY}; a dataset's tensors go through /dev/shm, once a rank, and each worker imports torch anew",
        field,
        job.span("data_loader"),
    )


@plan_rule("TL219", Severity.WARNING)
def shm_owner_of_script(plan: LaunchPlan) -> Iterator[Problem]:
    """The script gives Ray or vLLM a size, and shm_extra counts less, or none."""
    job, facts = plan.job, script_facts(plan.job)
    if facts is None or job.shm_size is not None:
        return
    ranks = plan.ranks.value
    counted_as = {each.name: each for each in shm_owners(job, ranks)}
    for made in facts.shm_owners:
        command = (made.name, {RAY: STORE, VLLM: TENSOR}[made.name][0], str(made.number))
        law = law_of(made.name, surroundings(job, ranks)._replace(commands=(command,))) if made.number else None
        now = counted_as.get(made.name)
        if law is None or not law.size or (now is not None and _counts(now, law, made)):
            continue
        counts = "shm_extra lacks it" if now is None else f"shm_extra counts {human_size(now.size)}"
        yield Problem(
            f"{made.place} starts {made.name}, which takes up to {human_size(law.size)} of /dev/shm; {counts}",
            f"write shm_extra: [{{name: {made.name}, size: {format_size(law.size)}}}]",
            f"{made.name}: {law.derivation}",
            "shm_extra",
            job.span("command"),
        )


def _counts(now: ShmOwner, law: OwnerLaw, made: ScriptOwner) -> bool:
    """Whether an entry of shm_extra holds what the script takes: of Ray's law the store itself.

    A size that is set may be less where the law is only a bound.
    """
    takes = made.number if made.name == RAY else law.size
    return now.size >= (takes or 0) or not (now.derivation or law.needed)


def _given(option: Option, words: tuple[str, ...]) -> bool:
    """Whether a command may set an option: by a name, by the beginning of one, as a parser takes it, or in a file."""
    heads = [each.partition("=")[0] for each in words if each.startswith("-") and len(each) > 1]
    plain = [each for each in words if not each.startswith("-")]
    if any(each.startswith("@") or each.endswith((".json", ".yaml", ".yml")) for each in plain):
        return True
    if option.by_position and plain:
        return True
    return any(
        name.startswith(head) or (len(name) == 2 and head.startswith(name)) for name in option.names for head in heads
    )


@plan_rule("TL329", Severity.INFO)
def pipe_hides_exit_code(plan: LaunchPlan) -> Iterator[Problem]:
    """A warning here: the text is the job's own."""
    text, field = text_of_job(plan.job) or ("", "")
    pipe = hiding_pipe(text)
    if pipe is not None:
        yield Problem(
            f"the container ends with the exit code of {pipe.into}, whatever {pipe.program} ends with",
            f"write the command without its pipe; `trainlaunch logs` has what it prints: {pipe.command}",
            PIPELINE_WHY,
            field,
            severity=Severity.WARNING,
        )


@plan_rule("TL359", Severity.WARNING)
def background_hides_exit_code(plan: LaunchPlan) -> Iterator[Problem]:
    """Several processes need a wait for each."""
    text, field = text_of_job(plan.job) or ("", "")
    if not waits_in_vain(text):
        return
    fix = 'write in its place: wait "$!"'
    if sum(words.count("<&>") for words in statements(text)) > 1:
        fix = (
            """write pids= in front, pids="$pids $!" on a line behind each &, and in wait's place: """
            """for pid in $pids; do wait "$pid" || exit; done"""
        )
    yield Problem(BACKGROUND, fix, BACKGROUND_WHY, field)


@plan_rule("TL322", Severity.WARNING)
def shell_hides_signals(plan: LaunchPlan) -> Iterator[Problem]:
    """The command is such a shell; a `script` has its signals from the preflight."""
    text, field = text_of_job(plan.job) or ("", "")
    waits = waiting_shell(text) if field == "command" else None
    if waits is not None:
        first, following = waits
        yield Problem(
            f"a shell waits for {first}, since {following} follows it, and passes no signal on",
            f"write it as script, whose signals the preflight hands on, or exec in front of {first} and drop the rest",
            "a shell that waits for its child passes SIGTERM on to nobody; the grace period is spent for nothing",
            "command",
        )


@plan_rule("TL351", Severity.WARNING)
def visible_devices_contradict(plan: LaunchPlan) -> Iterator[Problem]:
    """On a host itself they choose among its GPUs, and are right."""
    job, gpus = plan.job, plan.gpus
    if not plan.target_record.starts_container:
        return
    count = None if gpus.all or any("gpu" in each or "mig" in each for each in job.resources.extended) else gpus.count
    granted = GrantedGpus(count, gpus.ids if job.nodes == 1 else None, job.kind is not None)
    for name, message, why in contradictions(job.env, granted):
        fix = f"delete env.{name}" + ("; resources.gpus says which" if job.kind is None else "")
        yield Problem(message, fix, why, f"env.{name}")
