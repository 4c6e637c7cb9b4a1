"""What a real 1.36.2 server said of thirty small pods and jobs, and one of two nodes: scenarios for the fake one.

Each plays its pod as it went there; `events` are all that was recorded of its objects, one line for those that were
only counted on, with NAME for a name and POD for a pod's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tests.kubernetes.pods import Pod

PULLED = 'Pulled Container image "trainer:1" already present on machine and can be accessed by the pod'
SCHEDULED = "Scheduled Successfully assigned team/POD to node-1"
RAN = (SCHEDULED, PULLED, "Created Container created", "Started Container started")
KILLED = "Killing Stopping container train"
NO_BATCH = "Liveness probe failed: unhealthy: no batch for 12 s\n"
NO_DEALLOCATION = "no new claims to deallocate, preemption: 0/1 nodes are available: 1 Preemption is not helpful"
LOOKUP = "dial tcp: lookup absent.invalid on 10.255.255.53:53: no such host"
NO_PULL = (
    'failed to pull and unpack image "absent.invalid/x:1": failed to resolve reference "absent.invalid/x:1": failed to '
    f'do request: Head "https://absent.invalid/v2/x/manifests/1": {LOOKUP}'
)
NO_SHIM = (
    "failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: "
    "unable to start container process: "
)
NO_PROGRAM = f'{NO_SHIM}exec: "absent-program": executable file not found in $PATH: unknown'
NO_FOLDER = f"{NO_SHIM}error during container init: mkdir /proc/absent: no such file or directory: unknown"
AS_ROOT = "container has runAsNonRoot and image will run as root (pod: POD, container: train)"
NO_PRIORITY = "no PriorityClass with name absent was found"
NO_ACCOUNT = 'error looking up service account team/absent: serviceaccount "absent" not found'
QUOTA = "exceeded quota: q, requested: pods=1, used: pods=0, limited: pods=0"
INSECURE = (
    'violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false (container "train" must set '
    "securityContext.allowPrivilegeEscalation=false)"
)
LATE_POD = "Pod was active on the node longer than the specified deadline"
BACKOFF = "BackoffLimitExceeded Job has reached the specified backoff limit"
TOO_FULL = 'Usage of EmptyDir volume "v" exceeds the limit "8Mi". '
RULE_78 = "Container train for pod team/POD failed with exit code 78 matching FailJob rule at index 0"
IGNORED = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}]}
ON_78 = {"containerName": "train", "operator": "In", "values": [78]}
FINAL_78 = {"podFailurePolicy": {"rules": [{"action": "FailJob", "onExitCodes": ON_78}]}}


class Scenario(NamedTuple):
    """One object, what its pod does, all events of both, and what must be said of it.

    `code` is the exit code of one that ends, None for one that waits: then `patience` is how many seconds `up` waits.
    `says` is all codes of the causes and parts of what they quote, or is in the sentence of the wait, `$` at its end.
    `spec` goes over the kind's own, `probe`: it has a liveness probe, `refused`: what the server has against each pod.
    """

    kind: str
    play: Callable[[Pod], None]
    events: tuple[str, ...]
    code: int | None = None
    patience: int | None = None
    says: tuple[str, ...] = ()
    spec: Mapping[str, Any] = {}
    probe: bool = False
    refused: str = ""


def _ends(code: int, reason: str = "", **status: str) -> Callable[[Pod], None]:
    def play(pod: Pod) -> None:
        pod.start()
        pod.exit(code, reason, status=status or None)

    return play


def _stalls(pod: Pod) -> None:
    pod.start()
    for _ in range(2):
        pod.event("Warning", "Unhealthy", NO_BATCH)
    pod.killing()
    pod.exit(143)


def _is_not_ready(pod: Pod) -> None:
    pod.start()
    pod.event("Warning", "Unhealthy", "Readiness probe failed: unhealthy: /dev/shm is gone\n")
    pod.exit(0)


def _drained(code: int) -> Callable[[Pod], None]:
    def play(pod: Pod) -> None:
        pod.start()
        if pod.attempt == 1:
            pod.drain(code)
        else:
            pod.sleep()

    return play


def _waits(reason: str, words: str, *said: tuple[str, str]) -> Callable[[Pod], None]:
    def play(pod: Pod) -> None:
        pod.wait(reason, words.replace("POD", pod.name))
        for word, message in said:
            pod.event("Warning" if word != "Pulling" else "Normal", word, message.replace("POD", pod.name))

    return play


def _cannot_mount(words: str) -> Callable[[Pod], None]:
    def play(pod: Pod) -> None:
        pod.schedule()
        pod.event("Warning", "FailedMount", f'MountVolume.SetUp failed for volume "v" : {words}')

    return play


def _no_node(words: str) -> Callable[[Pod], None]:
    return lambda pod: pod.unschedulable(f"0/1 nodes are available: {words}")


def _not_created(words: str) -> Callable[[Pod], None]:
    def play(pod: Pod) -> None:
        pod.schedule()
        pod.event("Normal", "Pulled", PULLED.partition(" ")[2])
        pod.event("Normal", "Created", "Container created")
        pod.event("Warning", "Failed", f"Error: {words}")
        pod.never_started(128, "StartError", words)

    return play


def _saves_at_its_deadline(pod: Pod) -> None:
    pod.start()
    pod.event("Normal", "DeadlineExceeded", LATE_POD)
    pod.doom("DeadlineExceeded", LATE_POD)
    pod.killing()
    pod.exit(0)


def _fills_a_volume(pod: Pod) -> None:
    pod.start()
    pod.evict(TOO_FULL)


def _unpullable(pod: Pod) -> None:
    _waits(
        "ImagePullBackOff",
        f'Back-off pulling image "absent.invalid/x:1": ErrImagePull: {NO_PULL}',
        ("Pulling", 'Pulling image "absent.invalid/x:1"'),
        ("Failed", f'Failed to pull image "absent.invalid/x:1": {NO_PULL}'),
        ("Failed", "Error: ErrImagePull"),
    )(pod)


def _mount_failed(words: str) -> tuple[str, ...]:
    return SCHEDULED, f'FailedMount MountVolume.SetUp failed for volume "v" : {words}'


def _scheduling_failed(words: str) -> tuple[str, ...]:
    return (f"FailedScheduling 0/1 nodes are available: {words}",)


NO_MAP, NO_SECRET = 'configmap "absent" not found', 'secret "absent" not found'
NO_KEY = "configmap references non-existent config key: absent"
NO_CLAIM = 'persistentvolumeclaim "absent" not found. not found'
NO_CPU, NO_GPU = (f"1 Insufficient {each}. {NO_DEALLOCATION}" for each in ("cpu", "nvidia.com/gpu"))
NO_MATCH = f"1 node(s) didn't match Pod's node affinity/selector. {NO_DEALLOCATION}"
NEVER = 'Container image "absent:1" is not present with pull policy of Never'
MADE = "SuccessfulCreate Created pod: POD"
PROBE = {"exec": {"command": ["false"]}, "periodSeconds": 2, "failureThreshold": 2}
STALLED = (*RAN, f"Unhealthy {NO_BATCH}", KILLED)

SCENARIOS: dict[str, Scenario] = {
    "live-pod": Scenario("Pod", _stalls, STALLED, 143, says=("TL671", "no batch for 12 s"), probe=True),
    "live-job": Scenario("Job", _stalls, (MADE, *STALLED, BACKOFF), 143, says=("TL671", "no batch"), probe=True),
    "notready": Scenario(
        "Pod", _is_not_ready, (*RAN, "Unhealthy Readiness probe failed: unhealthy: /dev/shm is gone\n"), 0
    ),
    "evict-saves": Scenario(
        "Job", _drained(0), (MADE, *RAN, KILLED, "Completed Job completed"), 75, says=("TL623", "drained")
    ),
    "evict-dies": Scenario(
        "Job",
        _drained(137),
        (MADE, *RAN, KILLED, MADE, *RAN),
        None,
        spec={"backoffLimit": 1, "podFailurePolicy": IGNORED},
    ),
    "evict-pod": Scenario("Pod", _drained(0), (*RAN, KILLED), 75, says=("TL623", "drained")),
    "no-configmap": Scenario("Pod", _cannot_mount(NO_MAP), _mount_failed(NO_MAP), patience=20, says=(NO_MAP,)),
    "no-secret": Scenario("Pod", _cannot_mount(NO_SECRET), _mount_failed(NO_SECRET), patience=20, says=(NO_SECRET,)),
    "no-claim": Scenario(
        "Pod", _no_node(NO_CLAIM), _scheduling_failed(NO_CLAIM), patience=20, says=('claim "absent" not found$',)
    ),
    "no-key": Scenario("Pod", _cannot_mount(NO_KEY), _mount_failed(NO_KEY), patience=20, says=(NO_KEY,)),
    "no-env-secret": Scenario(
        "Pod",
        _waits("CreateContainerConfigError", NO_SECRET, ("Failed", f"Error: {NO_SECRET}")),
        (SCHEDULED, f"Failed Error: {NO_SECRET}"),
        patience=20,
        says=(NO_SECRET,),
    ),
    "no-image": Scenario(
        "Pod",
        _unpullable,
        (
            SCHEDULED,
            'Pulling Pulling image "absent.invalid/x:1"',
            f'Failed Failed to pull image "absent.invalid/x:1": {NO_PULL}',
            "Failed Error: ErrImagePull",
        ),
        patience=300,
        says=(LOOKUP,),
    ),
    "never-image": Scenario(
        "Pod",
        _waits("ErrImageNeverPull", NEVER, ("ErrImageNeverPull", NEVER), ("Failed", "Error: ErrImageNeverPull")),
        (SCHEDULED, f"ErrImageNeverPull {NEVER}", "Failed Error: ErrImageNeverPull"),
        patience=10,
        says=("absent:1",),
    ),
    "no-priority": Scenario(
        "Job",
        _ends(0),
        (f'FailedCreate Error creating: pods "NAME-" is forbidden: {NO_PRIORITY}',),
        patience=20,
        says=(NO_PRIORITY,),
        refused=NO_PRIORITY,
    ),
    "no-account": Scenario(
        "Job",
        _ends(0),
        (f'FailedCreate Error creating: pods "NAME-" is forbidden: {NO_ACCOUNT}',),
        patience=20,
        says=(NO_ACCOUNT,),
        refused=NO_ACCOUNT,
    ),
    "too-large": Scenario("Pod", _no_node(NO_CPU), _scheduling_failed(NO_CPU), patience=86400, says=("cient cpu$",)),
    "no-gpu": Scenario("Pod", _no_node(NO_GPU), _scheduling_failed(NO_GPU), patience=86400, says=(".com/gpu$",)),
    "oom": Scenario("Pod", _ends(137, "OOMKilled"), RAN, 137, says=("TL610",)),
    "deadline": Scenario(
        "Job",
        Pod.start,
        (
            MADE,
            *RAN,
            "SuccessfulDelete Deleted pod: POD",
            KILLED,
            "DeadlineExceeded Job was active longer than specified deadline",
        ),
        143,
        says=("TL622",),
        spec={"activeDeadlineSeconds": 2},
    ),
    "deadline-pod": Scenario(
        "Pod", _saves_at_its_deadline, (*RAN, f"DeadlineExceeded {LATE_POD}", KILLED), 125, says=("TL622",)
    ),
    "not-found": Scenario(
        "Pod",
        _not_created(NO_PROGRAM),
        (*RAN[:3], f"Failed Error: {NO_PROGRAM}"),
        125,
        says=("TL614", "absent-prog"),
    ),
    "no-such-dir": Scenario(
        "Pod", _not_created(NO_FOLDER), (*RAN[:3], f"Failed Error: {NO_FOLDER}"), 125, says=("TL626", "/proc/absent")
    ),
    "over-disk": Scenario("Pod", _fills_a_volume, (*RAN, f"Evicted {TOO_FULL}", KILLED), 137, says=("TL621",)),
    "shm-full": Scenario("Pod", _ends(1), RAN, 1),
    "shm-oom": Scenario("Pod", _ends(137, "OOMKilled"), RAN, 137, says=("TL610",)),
    "selector": Scenario("Pod", _no_node(NO_MATCH), _scheduling_failed(NO_MATCH), patience=86400, says=("selector$",)),
    "root-refused": Scenario(
        "Pod",
        _waits("CreateContainerConfigError", AS_ROOT, ("Failed", f"Error: {AS_ROOT}")),
        (SCHEDULED, f"Failed Error: {AS_ROOT}"),
        patience=20,
        says=("runAsNonRoot",),
    ),
    "retry": Scenario("Job", _ends(3), (MADE, *RAN, MADE, *RAN, BACKOFF), 3, spec={"backoffLimit": 1}),
    "fail78": Scenario(
        "Job",
        _ends(78),
        (MADE, *RAN, f"PodFailurePolicy {RULE_78}"),
        78,
        says=("TL615",),
        spec=FINAL_78,
    ),
    "quota": Scenario(
        "Job",
        _ends(0),
        (f'FailedCreate Error creating: pods "POD" is forbidden: {QUOTA}',),
        patience=86400,
        says=(QUOTA,),
        refused=QUOTA,
    ),
    "pss": Scenario(
        "Job",
        _ends(0),
        (f'FailedCreate Error creating: pods "POD" is forbidden: {INSECURE}',),
        patience=20,
        says=("allowPrivilegeEscalation",),
        refused=INSECURE,
    ),
}
