"""The sums behind `need` and `multi_epoch`, each as one line of text."""

from __future__ import annotations

from trainlaunch.job.spec import JobSpec
from trainlaunch.plan.launch_plan import LoaderNeed, SharedMemory
from trainlaunch.plan.shared_memory import PAGE, own_bytes, semaphores
from trainlaunch.plan.shm_extra import shm_owners
from trainlaunch.units import counted, human_size, needed_size, round_up


def need_words(shm: SharedMemory) -> str:
    """Return what a job needs of /dev/shm, by epochs, as every command says it."""
    if not shm.need:
        return "without workers no batch passes through it"
    first, later = needed_size(shm.need), needed_size(shm.multi_epoch)
    return f"one-epoch peak {first}" + f", multi-epoch peak {later}" * (later != first)


def need_derivation(job: JobSpec, shm: SharedMemory, ranks: int) -> str:
    """Return the sum behind `shm.need`."""
    alive = _alive(shm)
    batches = "; ".join(
        f"{each.name}: ({counted(each.workers, 'worker')}·{each.prefetch_factor} + {each.batches_held} in use)"
        f"·{human_size(each.unit)} + {counted(semaphores(each.workers), 'page')}"
        for each in alive
    )
    parts = [f"the largest of [{batches}]" if shm.in_turn and len(alive) > 1 else batches] if alive else []
    if shm.in_turn and len(alive) > 1 and any(each.persistent for each in alive):
        parts.append("pages of the other persistent loaders")
    pickled = round_up(job.data_loader.dataset_tensor_bytes, PAGE)
    if parts and pickled and job.data_loader.multiprocessing_context != "fork":
        parts.append(f"tensors of the dataset {human_size(pickled)}")
    inner = "; ".join(parts) or ("no workers" if shm.loaders else "no DataLoader")
    if parts and job.origin("data_loader.multiprocessing_context").kind == "default":
        inner += ", assumed fork"
    of_all_ranks = f"{ranks} ranks × [{inner}]" if ranks > 1 and parts else inner
    others = [str(each) for each in shm_owners(job, ranks) if each.needed]
    others += [f"trainlaunch's own files {human_size(own)}"] if (own := own_bytes(job)) else []
    return " + ".join([of_all_ranks, *others])


def multi_epoch_derivation(job: JobSpec, shm: SharedMemory, ranks: int) -> str:
    """Return the sum behind `shm.multi_epoch`."""
    alive, forked = _alive(shm), job.data_loader.multiprocessing_context == "fork"
    if not alive or not (forked or shm.in_turn):
        return "one-epoch peak: nothing is inherited"
    kept = "; ".join(f"{each.name}: {each.batches_kept}·{human_size(each.unit)}" for each in alive)
    pages = counted(sum(semaphores(each.workers) for each in alive), "page")
    if not shm.in_turn:
        inherited = f"[{kept}, {pages}] that workers of later epochs inherit"
        return f"one-epoch peak + {f'{ranks} ranks × ' * (ranks > 1)}{inherited}"
    twice = "2 × " if any(each.persistent for each in alive) else ""
    if forked:
        held = f"{twice}[{kept}] that loops still use and workers inherit"
    else:
        held = f"what the other loops still use of [{kept}]"
    return (
        f"{f'{ranks} ranks × ' * (ranks > 1)}(the largest loader + {held} + {pages}) + all else of the one-epoch peak"
    )


def _alive(shm: SharedMemory) -> list[LoaderNeed]:
    return [each for each in shm.loaders if each.workers]
