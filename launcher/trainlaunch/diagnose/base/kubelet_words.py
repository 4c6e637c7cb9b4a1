"""What a kubelet says of a container that it can't create, and what to do about it."""

from __future__ import annotations

import re

NEVER_STARTED = frozenset({"StartError", "ContainerCannotRun"})  # the runtime refused, once: the pod has ended
NO_PROGRAM = re.compile(r'exec: "(?!/bin/sh")[^"]+": (?:executable file not found|stat [^:]*: no such file)')
_STORIES = (
    (
        "GPU is lost",
        "a GPU of the node has failed",
        "run on another node, and have this one looked at (`kubectl cordon NODE`, then `dmesg | grep -i xid` on it)",
    ),
    (
        r"Allocate failed due to (?:(?!Allocate ).)*(?:rpc|plugin)",
        "a device plugin of the node refused the pod's devices",
        "look at that plugin's pod on the node, and at what the words after `desc =` want",
    ),
    (
        "runAsNonRoot|non-numeric user|will run as root",
        "the image runs as root, or as a user without a number",
        'set user to a number, as in user: "1000"',
    ),
    ("/bin/sh", "the image has no /bin/sh, which the preflight needs", "use an image with a shell; busybox is enough"),
    (
        r"error during container init: (?:mkdir|chdir|stat)|chdir to cwd",
        "working_dir is no folder that can be made or entered in the image",
        "correct working_dir, or give its folder to the job's user",
    ),
    (
        "Multi-Attach",
        "a volume that one node may use at a time is still attached to another",
        "wait until the earlier pod is gone, or use a PVC with access mode ReadWriteMany",
    ),
    (
        "(?i)persistentvolumeclaim",
        "the PVC that a volume names is not in the job's namespace",
        "look with `kubectl get pvc`, and correct the source of the mount of type pvc",
    ),
    (
        "(?i)volume",
        "the node can't mount a volume of the pod",
        "look whether the PVC, Secret or ConfigMap it names exists",
    ),
)


def refusal(reason: str, words: str) -> tuple[str, str]:
    """Return why there is no container, as a sentence, and what to type."""
    missing = re.search(r'(secret|configmap) "([^"]+)" not found', words, re.I)
    if missing is not None:
        make = f"create {kind} generic" if (kind := missing[1].lower()) == "secret" else "create configmap"
        return (
            f"the job refers to the {kind} {missing[2]}, which its namespace does not have",
            f"run `kubectl {make} {missing[2]} …` in the job's namespace, or correct its name in the job file",
        )
    key = re.search(r"couldn't find key (\S+) in (\w+) (\S+)", words)
    if key is not None:
        return (
            f"{key[2]} {key[3]} has no key {key[1]}",
            f"add the key {key[1]} to it, or correct what follows the slash in secrets",
        )
    if mounted := re.search(r"references non-existent (secret|config) key: ([-._a-zA-Z0-9]+)", words):
        kind = "Secret" if mounted[1] == "secret" else "ConfigMap"
        return f"a {kind} that the job mounts has no key {mounted[2]}", "add that key to it, or correct the job file"
    if devices := re.search(r"devices unavailable for ([\w./-]+)\. Requested: (\d+), Available: (\d+)", words):
        return (
            f"the node had {devices[3]} of {devices[1]} free when the pod arrived, which asks for {devices[2]}",
            "start it again; where the node has that many, look at the device plugin's pod there",
        )
    told = next((each[1:] for each in _STORIES if re.search(each[0], words)), None)
    if told is None and (reason.startswith("OutOf") or reason == "UnexpectedAdmissionError" or "Allocate" in words):
        return "the node had no room for the pod when it arrived", "start it again, or set restart.max_attempts to 2"
    if told is None and reason in NEVER_STARTED:
        return "the node's runtime could not start the container", "change what its words name, then start it again"
    return told or (
        "the node can't create the container",
        "change what the node names; it tries again by itself until then",
    )
