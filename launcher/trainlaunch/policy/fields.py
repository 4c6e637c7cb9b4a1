"""The table of a policy file's fields: what a platform team gives to all jobs below a folder, and asks of them."""

from __future__ import annotations

from trainlaunch.job.fields.container_rows import RESOURCE_NAME
from trainlaunch.job.fields.table import JOB, OVERRIDE
from trainlaunch.job.fields.types import (
    BOOL,
    NAME,
    SUBDOMAIN,
    Field,
    Type,
    choice,
    duration,
    integer,
    listing,
    mapping,
    record,
    size,
    text,
)
from trainlaunch.least_shm import LEAST_SHM
from trainlaunch.targets import TEXTS, text_targets
from trainlaunch.units import MIB

OWN = ("name", "policy")
OFF = "off"


def _extendable(type_: Type) -> Type:
    """Return a type whose lists take `{extend: […]}` too; what stands in a list replaces as a whole."""
    if type_.kind == "object":
        fields = (each._replace(type=_extendable(each.type)) for each in type_.fields)
        return record(*fields, instead=type_.instead)._replace(what=type_.what)
    if type_.kind == "map" and type_.item is not None:
        return type_._replace(item=_extendable(type_.item))
    return type_._replace(extends=True) if type_.kind == "list" else type_


OVERRIDE_OF_POLICY = _extendable(OVERRIDE)
DEFAULTS = record(*(each._replace(type=_extendable(each.type)) for each in JOB.fields if each.name not in OWN))
PROFILE = record(*(each for each in DEFAULTS.fields if each.name != "profile"))
_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_REGISTRY = rf"(?:localhost|[a-z0-9](?:[-a-z0-9]*\.[-.a-z0-9]*)[a-z0-9]|[-.a-z0-9]+(?=:))(?::[0-9]+)?(?:/{_PART})*"
_VERSION = r"[0-9]+(?:\.[0-9]+){0,2}"
_FIELD = text("a field of the job file, like active_deadline or resources.cpus", r"[a-z_]+(?:\.\S+)?")
_PATCH_PATH = text("a JSON Pointer, in which * is any one key, like /spec/template/spec/dnsConfig", r"(?:/[^/]+)+")
_SHARE = "|".join(f"{part}/{whole}" for whole in range(2, 11) for part in range(1, whole))
_HOST_PATH = text("a path of the host, relative ones as seen from this file", r"(?!~)[^\0]+")


def _names(what: str, pattern: str) -> Type:
    return listing(text(what, pattern), low=1)


# One row a paragraph, as a table reads.
# fmt: off
MAX = record(
    Field("shm_size", size(LEAST_SHM), "`shm_size`; it lowers an automatic one"),
    Field("cpus", Type("cpus", "a number of CPUs", low=10, high=10**7),
          "limit of one container: `resources.cpus`, which a job must then set"),
    Field("memory", size(6 * MIB), "limit of one container: `resources.memory`, which a job must then set"),
    Field("gpus", integer(0, 4096), "`resources.gpus`: GPUs of one container"),
    Field("total_gpus", integer(0, 10**6), "GPUs of all containers: `resources.gpus` × `torchrun.nnodes`"),
    Field("num_workers", integer(0, 4096), "`data_loader.num_workers` of each loader; it lowers an automatic one"),
    Field("active_deadline", duration(1), "`active_deadline`, which a job must then set"),
)

POLICY_FILE = record(
    Field("requires", text("versions like >=1.2 or >=1.2,<2", rf">=\s*{_VERSION}(?:\s*,\s*<\s*{_VERSION})?"),
          "the trainlaunch that may read this file: the oldest, and the first that no longer may"),
    Field("extends", text("a path", r"(?!~)[^\0]+"), "another policy file, relative to this one, that lies beneath it"),
    Field("defaults", DEFAULTS, "any field of the job file but `name` and `policy`; a job's own value wins",
          default={}),
    Field("profiles", mapping(PROFILE, NAME, "a name of lower-case letters, digits and -"),
          "fields by a name that a job asks for with `profile`; they lie between the defaults and the job", default={}),
    Field("max", MAX, "limits: a job that asks for more is an error", default={}),
    Field("shm_share", text("a share below 1, like 1/2 or 3/4", _SHARE),
          "part of its memory limit that a pod's [repair](admission.md#pods-that-nobody-rendered) gives to /dev/shm",
          shown="1/2"),
    Field("required", listing(_FIELD, low=1), "fields that must have a value, set by the job or given to it"),
    Field("required_labels", Type("labels", "a list of names, or {name: pattern}"),
          "labels that a job must have; a pattern is a regular expression (RE2) of the whole value", shown="none"),
    Field("allowed_registries", listing(text("a registry, like registry.example.com/team or docker.io", _REGISTRY),
                                        low=1),
          "where images may come from: a registry, or whole parts of a path in it", shown="all"),
    Field("require_digest", BOOL, "whether images must be pinned by a digest, in the job file or its lock",
          default=False),
    Field("allowed_namespaces", _names("a DNS-1123 label", NAME),
          "`kubernetes.namespace`, which a job must then set", shown="all"),
    Field("allowed_queues", _names("a DNS-1123 label", NAME),
          "`kubernetes.queue`, which a job must then set", shown="all"),
    Field("allowed_priority_classes", _names("the name of an object", SUBDOMAIN),
          "`kubernetes.priority_class`", shown="all"),
    Field("allowed_service_accounts", _names("the name of an object", SUBDOMAIN),
          "`kubernetes.service_account`; a job that sets none has the account `default`", shown="all"),
    Field("forbid_token", BOOL, "whether `kubernetes.token` may not be true", default=False),
    Field("allowed_claims", _names("the name of an object", SUBDOMAIN),
          "PVCs that a mount of type `pvc`, or a patch, may name; no volume has storage without one", shown="all"),
    Field("allowed_host_paths", listing(_HOST_PATH, low=1),
          "folders of the host that mounts, code, files of secrets and patches may take something from", shown="all"),
    Field("allowed_extended", _names("a resource's name, like volcano.sh/vgpu-number", RESOURCE_NAME),
          "other names in `resources.extended` that jobs may ask for; GPUs are counted, and RDMA and its like are free",
          shown="none under a limit of GPUs, else all"),
    Field("allowed_pod_security", listing(choice("restricted", "baseline", "privileged"), low=1),
          "`kubernetes.pod_security`; without `privileged` no patch makes a container privileged either",
          shown="[restricted, baseline]"),
    Field("allowed_capabilities", _names("a Linux capability, like SYS_PTRACE", r"[A-Z][A-Z_]*"),
          "capabilities that a patch may add", shown="none"),
    Field("allowed_patch_paths", listing(_PATCH_PATH, low=1),
          "what patches of kubernetes and compose may change, and all below it", shown="all"),
    Field("allowed_extra_args", _names("a flag of docker run, like --log-driver", r"--?[a-z][-a-z0-9]*"),
          "flags that `patches.docker.extra_args` may have", shown="all"),
    Field("render", record(
        Field("path", text("a path in which {target}, {name} and {file} stand for a rendered file's own",
                           r"(?!/)(?:[^{}\0]|\{target\})*\{(?:name|file)\}(?:[^{}\0]|\{(?:target|name|file)\})*"),
              "where rendered files of many jobs belong, relative to this file; `{file}` is the target's usual name",
              example='"{target}/{name}.yaml"'),
        Field("targets", listing(choice(*text_targets(), *TEXTS), low=1), "what they are rendered for",
              shown="the job's target"),
    ), "what `render` does with several jobs", default={}),
    Field("severities", mapping(choice("error", "warning", "info", OFF), r"TL[0-9]{3}", "a code, like TL206"),
          "how much a finding of `plan` or `lint` matters; errors of `plan` stay errors", default={}),
)
