"""The table of a policy file's fields: what a platform team gives to all jobs below a folder, and asks of them."""

from __future__ import annotations

from launcher.job.fields.table import JOB
from launcher.job.fields.types import BOOL, Field, Type, integer, listing, record, size, text
from launcher.units import MIB

OWN = ("name", "policy")
DEFAULTS = record(*(each for each in JOB.fields if each.name not in OWN))
_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_REGISTRY = rf"(?:localhost|[a-z0-9](?:[-a-z0-9]*\.[-.a-z0-9]*)[a-z0-9]|[-.a-z0-9]+(?=:))(?::[0-9]+)?(?:/{_PART})*"

# One row a paragraph, as a table reads.
# fmt: off
MAX = record(
    Field("shm_size", size(64 * MIB), "`shm_size`; an automatic one is capped"),
    Field("memory", size(6 * MIB), "`resources.memory`, which a job must then state"),
    Field("gpus", integer(0, 4096), "`resources.gpus`: GPUs of one container"),
    Field("total_gpus", integer(0, 10**6), "GPUs of all containers: `resources.gpus` × `torchrun.nnodes`"),
    Field("num_workers", integer(0, 4096), "`data_loader.num_workers` of each loader; an automatic one is capped"),
)

POLICY_FILE = record(
    Field("defaults", DEFAULTS, "any field of the job file but `name` and `policy`; a job's own value wins",
          default={}),
    Field("max", MAX, "ceilings: a job that asks for more is an error", default={}),
    Field("required_labels", Type("labels", "a list of names, or {name: pattern}"),
          "labels that a job must have; a pattern is a regular expression of the whole value", shown="none"),
    Field("allowed_registries", listing(text("a registry, like registry.example.com/team or docker.io", _REGISTRY),
                                        low=1),
          "where images may come from: a registry, or whole parts of a path in it", shown="all"),
    Field("require_digest", BOOL, "whether images must be pinned by a digest, in the job file or its lock",
          default=False),
)
