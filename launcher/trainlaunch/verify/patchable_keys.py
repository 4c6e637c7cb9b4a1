"""The keys that a patch may add, target by target: everything else that a rendering doesn't have is refused.

Names are the APIs' own. What is missing on purpose gives a container another process, another /dev/shm, more of its
kind, or a program that runs beside it.
"""

from __future__ import annotations

from collections.abc import Mapping

# One row a list, as a table reads.
# fmt: off
POD = frozenset((
    "affinity", "automountServiceAccountToken", "containers", "dnsConfig", "dnsPolicy", "enableServiceLinks",
    "hostAliases", "hostNetwork", "hostPID", "hostUsers", "hostname", "imagePullSecrets", "initContainers",
    "nodeName", "nodeSelector", "os", "overhead", "preemptionPolicy", "priority", "priorityClassName",
    "readinessGates", "resourceClaims", "runtimeClassName", "schedulerName", "schedulingGates", "securityContext",
    "serviceAccountName", "setHostnameAsFQDN", "subdomain", "tolerations", "topologySpreadConstraints", "volumes",
))
CONTAINER = frozenset((
    "env", "envFrom", "ports", "resizePolicy", "resources", "securityContext",
    "terminationMessagePolicy", "volumeDevices", "volumeMounts",
))
CONTEXT = frozenset((
    "allowPrivilegeEscalation", "appArmorProfile", "capabilities", "fsGroup", "fsGroupChangePolicy", "privileged",
    "procMount", "runAsGroup", "runAsNonRoot", "runAsUser", "seLinuxChangePolicy", "seLinuxOptions",
    "seccompProfile", "supplementalGroups", "supplementalGroupsPolicy", "sysctls",
))
RESOURCES = frozenset({"claims", "limits", "requests"})
POD_LISTS = ("containers", "initContainers", "ephemeralContainers")
# Beside pods, by the object's kind: paths with a dot that a rendering need not have. The rest of an object is ours.
BESIDE_PODS: Mapping[str, str] = {
    "Job": r"spec\.(?:suspend|podReplacementPolicy|managedBy)",
    "JobSet": r"spec\.(suspend|managedBy|coordinator|startupPolicy|successPolicy)",
    "TrainJob": r"spec\.(suspend|managedBy|labels|annotations)",
    "PyTorchJob": r"spec\.runPolicy\.(schedulingPolicy|suspend|managedBy)",
    "Service": r"spec\.(ipFamilies|ipFamilyPolicy|sessionAffinity|internalTrafficPolicy)",
}
METADATA = r"(?:.*\.)?metadata\.(?:labels|annotations)"
SERVICE = frozenset((
    "annotations", "attach", "blkio_config", "cap_add", "cap_drop", "cgroup", "cgroup_parent", "configs",
    "cpu_rt_period", "cpu_rt_runtime", "cpu_shares", "cpuset", "depends_on", "devices", "device_cgroup_rules",
    "dns", "dns_opt", "dns_search", "domainname", "environment", "expose", "external_links", "extra_hosts",
    "group_add", "hostname", "labels", "links", "logging", "mac_address", "mem_reservation", "mem_swappiness",
    "memswap_limit", "network_mode", "networks", "oom_kill_disable", "oom_score_adj", "pid", "pids_limit",
    "platform", "ports", "privileged", "runtime", "secrets", "security_opt", "storage_opt", "sysctls", "tmpfs",
    "ulimits", "userns_mode", "uts", "volumes",
))
TOP = frozenset({"services", "networks", "volumes", "secrets", "configs"})
# What gets another container started, another program run, or a file read that nobody checks.
NEVER_IN_SERVICES = frozenset({"provider", "extends", "env_file", "label_file", "use_api_socket"})
