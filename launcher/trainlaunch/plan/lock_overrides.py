"""What the lock's measurements fill in: only what the job leaves open, and only while they are of this very job."""

from __future__ import annotations

import re

from trainlaunch.diagnostics import Span
from trainlaunch.job.loader_spec import KIND, DataLoaderSpec, LoaderSpec, ProbedLoader, ProbeMeasurement, Tune
from trainlaunch.job.spec import JobSpec, Origin
from trainlaunch.plan.instrumentation import OVERRIDING
from trainlaunch.plan.ranks import ranks_of, torchrun_prefix
from trainlaunch.targets import TARGETS

MATH = ("OMP_NUM_THREADS", "MKL_NUM_THREADS")  # torch's threads


def default_start_method(python: str) -> str:
    """Return how this Python's workers start on Linux where the script says nothing."""
    major, minor = (int(each) for each in re.findall(r"\d+", f"{python}.0")[:2])
    return "forkserver" if (major, minor) >= (3, 14) else "fork"


def start_method_derivation(job: JobSpec) -> str:
    """Return how the start method of a job's workers is known."""
    origin, measured = job.origin("data_loader.multiprocessing_context"), job.measured
    if origin.kind == "default":
        return "assumed: it is forkserver from Python 3.14 on, and spawn in ranks of mp.spawn"
    if origin.kind != KIND or measured is None:
        return "set"
    python = measured.python
    if python is not None and origin.span == python.span:
        return f"the default of the image's Python {python.version}"
    return "as `trainlaunch probe` saw it"


_TUNED = r"\b(?:num_workers|prefetch_factor|inject)\W+\w+"


def input_of(job: JobSpec, *, tuned: bool = False) -> str:
    """Return what stands for the job that a measurement is of: image, command, data_loader as set, and ranks.

    The digest that a lock adds to the image is not in it: `trainlaunch lock` makes no measurement stale. Of what `tune`
    finds, nor is what it says to write or to delete then.
    """
    import hashlib  # few jobs were measured

    image = job.image.partition("@")[0] if job.origin("image").kind == KIND else job.image
    ranks = ranks_of(job).value
    stated: str | list[str] = job.data_loader.stated
    if tuned:
        others = re.sub(_TUNED, "", job.data_loader.stated)
        stated = re.findall(r"\w+", others)
    whole = (image, job.command, job.script, torchrun_prefix(job, ranks), stated, ranks)
    return f"sha256:{hashlib.sha256(repr(whole).encode()).hexdigest()}"


def fresh_probe(job: JobSpec) -> ProbeMeasurement | None:
    """Return the lock's probe, None where there is none or it was measured of another job than this one is now.

    Where `inject: force` was written since, as `tune` advises for a constant, the script's own number of workers counts
    no more; its prefetch_factor does, since nothing overrides it.
    """
    measured = job.measured
    if measured is None or measured.probe is None or measured.probed is None:
        return None
    probe, now = measured.probe, measured.probed
    if len(probe.loaders) != len(job.data_loader.loaders):
        return None
    if input_of(now) == probe.input:
        return probe
    if now.data_loader.inject != OVERRIDING or input_of(now, tuned=True) != probe.forced_input:
        return None
    return probe._replace(loaders=tuple(each._replace(own_workers=None) for each in probe.loaders))


def fresh_tune(job: JobSpec) -> Tune | None:
    """Return what tune found for this job on its target with its CPUs, None where there is none or it was of others."""
    tune = job.measured.tune if job.measured else None
    if tune is None or tune.cpus != job.resources.cpus:
        return None
    known = (input_of(job, tuned=True), input_of(job))  # the latter of a lock that an earlier release wrote
    return tune if tune.input in known else None


def measuring_command(verb: str, job: JobSpec, target: str | None = None) -> str:
    """Return the line by which `probe` or `tune` measures a job and keeps the result.

    It is for `target`, else for the job's own where that runs something.
    """
    import shlex  # few plans say it

    target = target or (job.target if job.target in TARGETS else None)
    where = ["--target", target] if target else []
    return shlex.join(["trainlaunch", verb, job.path, *where, "--write"])


def states(job: JobSpec, loader: LoaderSpec | None, field: str) -> bool:
    """Whether the job itself sets a field of data_loader, for this loader or for all."""
    own = () if loader is None else (f"data_loader.loaders.{loader.name}.{field}",)
    return any(job.origin(each).kind not in {"default", KIND} for each in (*own, f"data_loader.{field}"))


def states_batch(job: JobSpec, loader: LoaderSpec) -> bool:
    """Whether the job itself sets the bytes of a loader's batch; `collate: none` says that there are none."""
    return loader.stated_size or (loader.collate == "none" and states(job, loader, "collate"))


def with_measured(job: JobSpec) -> JobSpec:
    """Return the job with what its lock's measurements fill in, each with the lock's line as its origin."""
    if job.measured is None:
        return job
    found = _Filled(job, fresh_tune(job))
    probe = fresh_probe(job)
    if probe is None and found.tune is None and job.measured.python is None:
        return job
    spec = job.data_loader
    loaders = tuple(
        found.loader(each, None if probe is None else probe.loaders[index]) for index, each in enumerate(spec.loaders)
    )
    spec = found.started(spec._replace(loaders=loaders))
    if probe is not None:
        spec = found.shared(spec, probe)
    env = {**found.threads(), **job.env}  # what the job sets wins
    return job._replace(data_loader=spec, env=env, origins={**job.origins, **found.origins})


class _Filled:
    """Fills in what a job leaves open, and keeps where each value came from."""

    def __init__(self, job: JobSpec, tune: Tune | None) -> None:
        self.job = job
        self.tune = tune
        self.origins: dict[str, Origin] = {}

    def started(self, spec: DataLoaderSpec) -> DataLoaderSpec:
        """Return what all loaders share with the start method of the image's Python, where the job leaves it open."""
        python = self.job.measured.python if self.job.measured else None
        if python is None or states(self.job, None, "multiprocessing_context"):
            return spec
        method = default_start_method(python.version)
        self._note("data_loader", {"multiprocessing_context": method}, python.span)
        return spec._replace(multiprocessing_context=method)

    def threads(self) -> dict[str, str]:
        """Return torch's threads as variables, where tune found others than the plan has, and the job takes some."""
        spec = self.job.data_loader
        stated = spec.inject == "off" or any(states(self.job, each, "num_workers") for each in spec.loaders[:1])
        if self.tune is None or self.tune.threads is None or stated:
            return {}
        opened = {name: str(self.tune.threads) for name in MATH if name not in self.job.env}
        self.origins.update({f"env.{name}": Origin(KIND, self.tune.span) for name in opened})
        return opened

    def shared(self, spec: DataLoaderSpec, probe: ProbeMeasurement) -> DataLoaderSpec:
        """Return what all loaders share."""
        measured = {
            "loaders_run": probe.loaders_run,
            "multiprocessing_context": probe.start_method,
            "dataset_tensor_bytes": probe.dataset_tensor_bytes,
        }
        opened = {field: value for field, value in measured.items() if not states(self.job, None, field)}
        self._note("data_loader", opened, probe.span)
        return spec._replace(**opened)  # type: ignore[arg-type]  # the names of fields, with their types

    def loader(self, spec: LoaderSpec, probed: ProbedLoader | None) -> LoaderSpec:
        """Return one loader."""
        measured: dict[str, tuple[object, Span | None]] = {}
        if self.tune is not None:
            measured["prefetch_factor"] = self.tune.prefetch_factor, self.tune.span
        if probed is not None:
            own = {
                "num_workers": probed.own_workers,
                "prefetch_factor": probed.own_prefetch,
                "persistent_workers": probed.own_persistent,
                "batches_held": probed.batches_held,
                "batches_kept": None if states(self.job, spec, "batches_held") else probed.batches_kept,
            }
            measured |= {field: (value, probed.span) for field, value in own.items() if value is not None}
        opened = {field: each for field, each in measured.items() if not states(self.job, spec, field)}
        if probed is not None and not states_batch(self.job, spec):
            opened |= {field: (getattr(probed, field), probed.span) for field in ("storages", "varying")}
        if probed is not None and probed.against_workers:
            opened["against_workers"] = probed.against_workers, probed.span
        for field, (value, span) in opened.items():
            self._note(f"data_loader.loaders.{spec.name}", {field: value}, span)
        return spec._replace(**{field: value for field, (value, _) in opened.items()})  # type: ignore[arg-type]

    def _note(self, path: str, values: dict[str, object], span: Span | None) -> None:
        self.origins.update({f"{path}.{field}": Origin(KIND, span) for field in values})
