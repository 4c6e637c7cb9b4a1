"""Scripts for pods that several tests use."""

from __future__ import annotations

from collections.abc import Callable

from tests.kubernetes.faults import Fault
from tests.kubernetes.pods import Pod

COUNT = 400
NUMBERS = [str(each) for each in range(COUNT)]


def prints(*lines: str, code: int = 0, pause: float = 0.0) -> Callable[[Pod], None]:
    """Return a script that prints these lines, with a pause after each, and ends."""

    def script(pod: Pod) -> None:
        for line in lines:
            pod.say(f"{line}\n")
            pod.sleep(pause)
        pod.exit(code)

    return script


def counting(pause: float = 0.004, code: int = 0, fault: Fault | None = None) -> Callable[[Pod], None]:
    """Return a script that prints the numbers, several of one moment among them; half of them once a fault is over."""

    def script(pod: Pod) -> None:
        pod.start()
        for number in NUMBERS:
            while fault is not None and fault.seen < fault.times and number == NUMBERS[COUNT // 2]:
                pod.sleep(0.1)
            at = pod.store.clock.nanoseconds() // 50_000_000 * 50_000_000
            pod.say(number + "\n", at=at)
            pod.sleep(pause)
        pod.exit(code)

    return script


def cannot_mount(volume: str, why: str) -> Callable[[Pod], None]:
    """Return a script whose node can't mount a volume: ContainerCreating for ever, and the event again and again."""

    def script(pod: Pod) -> None:
        pod.schedule()
        while True:
            pod.event("Warning", "FailedMount", f'MountVolume.SetUp failed for volume "{volume}" : {why}')
            pod.sleep(1.0)

    return script
