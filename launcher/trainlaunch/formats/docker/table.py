"""The flags of `docker run` (CLI 28), each once: how it is written, read, asked of the engine, and whose it is.

The text that `render` writes, the request that `up` makes, a job's own flags, verify and lines that people wrote are
all read by this table.
"""

from __future__ import annotations

from typing import NamedTuple

# How a value is read, by forms; those of REPEATED may stand several times, of others the last one holds.
TEXT, SWITCH, INTEGER, SIZE, SWAP, CPUS, DURATION = "text", "switch", "integer", "size", "swap", "cpus", "duration"
LIST, MAP, ENV, LIMIT, GPUS, CHECK = "list", "map", "env", "limit", "gpus", "check"
PORT, EXPOSED, DEVICE, TMPFS, VOLUME, MOUNT, NETWORK, SECURITY = (
    *("port", "exposed", "device", "tmpfs", "volume", "mount", "network", "security"),
)
REPEATED = frozenset({LIST, MAP, ENV, LIMIT, PORT, EXPOSED, DEVICE, TMPFS, VOLUME, MOUNT, SECURITY})


class DockerFlag(NamedTuple):
    """One flag by its long name without dashes.

    `api_path` is its place in the body of `POST /containers/create`, empty where only the command line has its effect.
    `field` is the Workload's. `job_field` is the job's field that says the same, `""` where trainlaunch alone decides,
    None where a patch may add it.
    """

    name: str
    form: str = TEXT
    api_path: str = ""
    field: str = ""
    short: str = ""
    aliases: tuple[str, ...] = ()
    job_field: str | None = None


_TABLE = (
    DockerFlag("add-host", LIST, "HostConfig.ExtraHosts"),
    DockerFlag("annotation", LIST),
    DockerFlag("attach", LIST, short="a", job_field=""),
    DockerFlag("blkio-weight", INTEGER, "HostConfig.BlkioWeight"),
    DockerFlag("blkio-weight-device", LIST),
    DockerFlag("cap-add", LIST, "HostConfig.CapAdd"),
    DockerFlag("cap-drop", LIST, "HostConfig.CapDrop"),
    DockerFlag("cgroup-parent", TEXT, "HostConfig.CgroupParent"),
    DockerFlag("cgroupns", TEXT, "HostConfig.CgroupnsMode"),
    DockerFlag("cidfile", job_field=""),
    DockerFlag("cpu-period", INTEGER, job_field="resources.cpus"),
    DockerFlag("cpu-quota", INTEGER, job_field="resources.cpus"),
    DockerFlag("cpu-rt-period"),
    DockerFlag("cpu-rt-runtime"),
    DockerFlag("cpu-shares", INTEGER, "HostConfig.CpuShares", short="c"),
    DockerFlag("cpus", CPUS, "HostConfig.NanoCpus", "cpus", job_field="resources.cpus"),
    DockerFlag("cpuset-cpus", TEXT, "HostConfig.CpusetCpus"),
    DockerFlag("cpuset-mems", TEXT, "HostConfig.CpusetMems"),
    DockerFlag("detach", SWITCH, short="d", job_field=""),
    DockerFlag("detach-keys", job_field=""),
    DockerFlag("device", DEVICE, "HostConfig.Devices", "devices"),
    DockerFlag("device-cgroup-rule", LIST, "HostConfig.DeviceCgroupRules"),
    DockerFlag("device-read-bps", LIST),
    DockerFlag("device-read-iops", LIST),
    DockerFlag("device-write-bps", LIST),
    DockerFlag("device-write-iops", LIST),
    DockerFlag("disable-content-trust", SWITCH),
    DockerFlag("dns", LIST, "HostConfig.Dns"),
    DockerFlag("dns-option", LIST, "HostConfig.DnsOptions", aliases=("dns-opt",)),
    DockerFlag("dns-search", LIST, "HostConfig.DnsSearch"),
    DockerFlag("domainname", TEXT, "Domainname"),
    DockerFlag("entrypoint", LIST, "Entrypoint", "entrypoint", job_field="image_entrypoint"),
    DockerFlag("env", ENV, "Env", "env", short="e"),
    DockerFlag("env-file", LIST, job_field="env"),
    DockerFlag("expose", EXPOSED, "ExposedPorts"),
    DockerFlag("gpus", GPUS, "HostConfig.DeviceRequests", "gpus", job_field="resources.gpus"),
    DockerFlag("group-add", LIST, "HostConfig.GroupAdd", "groups", job_field="group_add"),
    DockerFlag("health-cmd", CHECK, "Healthcheck.Test", "health", job_field="healthcheck"),
    DockerFlag("health-interval", DURATION, "Healthcheck.Interval", "health_times", job_field="healthcheck.interval"),
    DockerFlag("health-retries", INTEGER, "Healthcheck.Retries", "health_times", job_field="healthcheck.retries"),
    DockerFlag("health-start-interval", DURATION, job_field="healthcheck"),
    DockerFlag(
        "health-start-period", DURATION, "Healthcheck.StartPeriod", "health_times", job_field="healthcheck.start_period"
    ),
    DockerFlag("health-timeout", DURATION, "Healthcheck.Timeout", "health_times", job_field="healthcheck.timeout"),
    DockerFlag("help", SWITCH, job_field=""),
    DockerFlag("hostname", TEXT, "Hostname", short="h"),
    DockerFlag("init", SWITCH, "HostConfig.Init", job_field=""),
    DockerFlag("interactive", SWITCH, short="i", job_field=""),
    DockerFlag("ip"),
    DockerFlag("ip6"),
    DockerFlag("ipc", job_field="shm_size"),
    DockerFlag("isolation"),
    DockerFlag("kernel-memory"),
    DockerFlag("label", MAP, "Labels", "labels", short="l"),
    DockerFlag("label-file", LIST, job_field="labels"),
    DockerFlag("link", LIST),
    DockerFlag("link-local-ip", LIST),
    DockerFlag("log-driver", TEXT, "HostConfig.LogConfig.Type"),
    DockerFlag("log-opt", MAP, "HostConfig.LogConfig.Config"),
    DockerFlag("mac-address"),
    DockerFlag("memory", SIZE, "HostConfig.Memory", "memory", short="m", job_field="resources.memory"),
    DockerFlag("memory-reservation", SIZE, "HostConfig.MemoryReservation"),
    DockerFlag("memory-swap", SWAP, "HostConfig.MemorySwap"),
    DockerFlag("memory-swappiness", INTEGER, "HostConfig.MemorySwappiness"),
    DockerFlag("mount", MOUNT, "HostConfig.Mounts", "mounts"),
    DockerFlag("name", TEXT, field="name", job_field="name"),
    DockerFlag("network", NETWORK, "HostConfig.NetworkMode", aliases=("net",)),
    DockerFlag("network-alias", LIST, aliases=("net-alias",)),
    DockerFlag("no-healthcheck", SWITCH, job_field="healthcheck"),
    DockerFlag("oom-kill-disable", SWITCH, "HostConfig.OomKillDisable"),
    DockerFlag("oom-score-adj", INTEGER, "HostConfig.OomScoreAdj"),
    DockerFlag("pid", TEXT, "HostConfig.PidMode"),
    DockerFlag("pids-limit", INTEGER, "HostConfig.PidsLimit"),
    DockerFlag("platform"),
    DockerFlag("privileged", SWITCH, "HostConfig.Privileged"),
    DockerFlag("publish", PORT, "HostConfig.PortBindings", short="p"),
    DockerFlag("publish-all", SWITCH, "HostConfig.PublishAllPorts", short="P"),
    DockerFlag("pull", TEXT, field="pull_policy", job_field="pull_policy"),
    DockerFlag("quiet", SWITCH, short="q"),
    DockerFlag("read-only", SWITCH, "HostConfig.ReadonlyRootfs", "read_only", job_field="read_only"),
    DockerFlag("restart", job_field="restart.max_attempts"),
    DockerFlag("rm", SWITCH, job_field=""),
    DockerFlag("runtime", TEXT, "HostConfig.Runtime"),
    DockerFlag("security-opt", SECURITY, "HostConfig.SecurityOpt"),
    DockerFlag("shm-size", SIZE, "HostConfig.ShmSize", job_field="shm_size"),
    DockerFlag("sig-proxy", SWITCH, job_field=""),
    DockerFlag("stop-signal", TEXT, "StopSignal", "stop_signal", job_field="stop_signal"),
    DockerFlag("stop-timeout", INTEGER, "StopTimeout", "stop_timeout", job_field="stop_grace_period"),
    DockerFlag("storage-opt", MAP, "HostConfig.StorageOpt"),
    DockerFlag("sysctl", MAP, "HostConfig.Sysctls"),
    DockerFlag("tmpfs", TMPFS, "HostConfig.Tmpfs", "mounts"),
    DockerFlag("tty", SWITCH, short="t", job_field=""),
    DockerFlag("ulimit", LIMIT, "HostConfig.Ulimits", "ulimits"),
    DockerFlag("use-api-socket", SWITCH),
    DockerFlag("user", TEXT, "User", "user", short="u", job_field="user"),
    DockerFlag("userns", TEXT, "HostConfig.UsernsMode"),
    DockerFlag("uts", TEXT, "HostConfig.UTSMode"),
    DockerFlag("volume", VOLUME, "HostConfig.Binds", "mounts", short="v"),
    DockerFlag("volume-driver"),
    DockerFlag("volumes-from", LIST, job_field="mounts"),
    DockerFlag("workdir", TEXT, "WorkingDir", "working_dir", short="w", job_field="working_dir"),
)
FLAGS = {each.name: each for each in _TABLE}
SHORT = {each.short: each for each in _TABLE if each.short}
ALIASES = {alias: each.name for each in _TABLE for alias in each.aliases}
SWITCHES = frozenset(each.name for each in _TABLE if each.form == SWITCH)
# Those that the engine's create request can give as the command line does; `up` refuses the rest.
FOR_UP = frozenset(each.name for each in _TABLE if each.api_path and each.job_field is None)

# Podman's own, which no text of ours has and no patch may add.
PODMAN_SWITCHES = frozenset({
    *("env-host", "http-proxy", "no-hosts", "no-hostname", "passwd", "read-only-tmpfs", "replace", "rmi", "rootfs"),
    *("tls-verify", "unsetenv-all"),
})  # fmt: skip
PODMAN_VALUES = frozenset({
    *("arch", "authfile", "cert-dir", "cgroup-conf", "cgroups", "chrootdirs", "conmon-pidfile", "creds"),
    *("decryption-key", "env-merge", "gidmap", "group-entry", "health-log-destination", "health-max-log-count"),
    *("health-max-log-size", "health-on-failure", "health-startup-cmd", "health-startup-interval"),
    *("health-startup-retries", "health-startup-success", "health-startup-timeout", "hosts-file", "hostuser"),
    *("image-volume", "init-path", "intel-rdt-closid", "os", "passwd-entry", "personality", "pidfile", "pod"),
    *("pod-id-file", "preserve-fd", "preserve-fds", "rdt-class", "requires", "retry", "retry-delay", "sdnotify"),
    *("seccomp-policy", "secret", "shm-size-systemd", "subgidname", "subuidname", "systemd", "timeout", "tz", "uidmap"),
    *("umask", "unsetenv", "variant"),
})  # fmt: skip
