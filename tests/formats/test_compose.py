"""Near-misses of Compose files: what looks like a size, a variable, a mount or a word, and is none, or another."""

from __future__ import annotations

from typing import Any

import pytest
from trainlaunch.formats.compose import read_compose
from trainlaunch.formats.compose.values import literal, pieces, readable, required
from trainlaunch.formats.workload import (
    ABSENT,
    BIND,
    CONTAINER,
    DISK,
    HOST,
    NONE,
    SIZE,
    TMPFS,
    UNSIZED,
    GpuRequest,
    Known,
    Unknown,
    Value,
    Workload,
    stated,
)

GIB = 2**30
UNKNOWN = "unknown"


def service(*lines: str, beside: str = "") -> Workload:
    """Return the reading of one service with these lines."""
    text = "services:\n  t:\n" + "".join(f"    {each}\n" for each in lines) + beside
    (read,) = read_compose(text, "compose.yaml")
    return read


def shown(value: Value[Any]) -> object:
    """Return a value, `UNKNOWN` for what nobody can tell."""
    return UNKNOWN if isinstance(value, Unknown) else stated(value)


@pytest.mark.parametrize(
    ("lines", "kind", "size", "declared"),
    [
        (["image: a"], ABSENT, None, None),
        (["shm_size: 1g"], SIZE, GIB, None),
        (["shm_size:"], ABSENT, None, None),
        (["shm_size: '0'"], ABSENT, None, 0),
        (["shm_size: 1.5"], ABSENT, None, 1),
        (["shm_size: '1.5'"], SIZE, 1, None),
        (["shm_size: 1e9"], ABSENT, None, 10**9),
        (["shm_size: '1e9'"], SIZE, 10**9, None),
        (["shm_size: .inf"], SIZE, UNKNOWN, None),
        (["shm_size: 1Gi"], SIZE, UNKNOWN, None),
        (["shm_size: -1"], SIZE, UNKNOWN, None),
        (["shm_size: [1g]"], SIZE, UNKNOWN, None),
        (["shm_size: '{{ size }}'"], SIZE, UNKNOWN, None),
        (["shm_size: $SHM"], SIZE, UNKNOWN, None),
        (["shm_size: ${SHM:-1g}"], SIZE, UNKNOWN, None),
        (["shmsize: 1g"], ABSENT, None, None),
        (["build: {context: ., shm_size: 1g}"], ABSENT, None, None),
        (["build:", "  shm_size: 1g", "shm_size: 2g"], SIZE, 2 * GIB, None),
        (["ipc: host"], HOST, None, None),
        (["ipc: host", "shm_size: 1g"], HOST, None, GIB),
        (["ipc: private", "shm_size: 1g"], SIZE, GIB, None),
        (["ipc: shareable"], ABSENT, None, None),
        (["ipc: ''"], ABSENT, None, None),
        (["ipc: none"], NONE, None, None),
        (["ipc: service:other"], CONTAINER, None, None),
        (["ipc: 'container:x'", "shm_size: 1g"], CONTAINER, None, GIB),
        (["ipc: $IPC", "shm_size: 1g"], SIZE, UNKNOWN, GIB),
        (["tmpfs: /dev/shm"], UNSIZED, None, None),
        (["tmpfs: /dev/shm:size=0"], UNSIZED, None, None),
        (["tmpfs: [/dev/shm:size=1g]", "shm_size: 2g"], TMPFS, GIB, 2 * GIB),
        (["tmpfs: /dev/shm:size=1gb"], TMPFS, UNKNOWN, None),
        (["tmpfs: /dev/shm:size=50%"], TMPFS, UNKNOWN, None),
        (["tmpfs: '/dev/shm:size=${X:-1g}'"], TMPFS, UNKNOWN, None),
        (["tmpfs: '/dev/shm:$OPTIONS'"], TMPFS, UNKNOWN, None),
        (["tmpfs: /dev/shm/sub:size=1g"], ABSENT, None, None),
        (["tmpfs: /dev:size=1g"], ABSENT, None, None),
        (["tmpfs: /dev/shm:size=1g", "ipc: host"], TMPFS, GIB, None),
        (["tmpfs: /dev/shm:size=1g", "volumes: [{type: tmpfs, target: /dev/shm}]"], UNSIZED, None, None),
        (["volumes: [{type: tmpfs, target: /dev/shm, tmpfs: {size: 1g}}]"], TMPFS, GIB, None),
        (["volumes: [{type: tmpfs, target: /dev/shm, tmpfs: {size: 1e9}}]"], UNSIZED, None, None),
        (["volumes: [{type: tmpfs, target: /dev/shm, tmpfs: {size: '1e9'}}]"], TMPFS, 10**9, None),
        (["volumes: ['/dev/shm:/dev/shm']", "shm_size: 1g"], BIND, None, GIB),
        (["volumes: ['./a:/dev/shm/']"], BIND, None, None),
        (["volumes: ['shm:/dev/shm']"], DISK, None, None),
        (["volumes: [/dev/shm]"], DISK, None, None),
        (["volumes: ['$X:/dev/shm']"], SIZE, UNKNOWN, None),
        (["volumes: ['/dev/shm:/shm']"], ABSENT, None, None),
        (["extends: {service: x, file: other.yaml}"], SIZE, UNKNOWN, None),
        (["extends: {service: x, file: other.yaml}", "shm_size: 1g"], SIZE, GIB, None),
    ],
)
def test_dev_shm(lines: list[str], kind: str, size: object, declared: object) -> None:
    """What decides it, and what is only written."""
    shm = service(*lines).shm
    assert (shm.kind, shown(shm.size), shown(shm.declared)) == (kind, size, declared)


@pytest.mark.parametrize(
    ("options", "kind", "size"),
    [
        ("type: tmpfs, o: 'size=1g'", TMPFS, GIB),
        ("type: tmpfs", UNSIZED, None),
        ("type: nfs, o: 'size=1g'", DISK, None),
        ("type: tmpfs, o: 'size=$X'", TMPFS, UNKNOWN),
    ],
)
def test_a_volume_that_lies_in_memory(options: str, kind: str, size: object) -> None:
    """The options of its driver say so."""
    beside = f"volumes:\n  shm:\n    driver_opts: {{{options}}}\n"
    shm = service("volumes: ['shm:/dev/shm']", beside=beside).shm
    assert (shm.kind, shown(shm.size)) == (kind, size)


@pytest.mark.parametrize(
    ("lines", "memory", "cpus"),
    [
        (["mem_limit: 1g", "cpus: 1.5"], GIB, 1500),
        (["mem_limit: '1g'", "cpus: '.5'"], GIB, 500),
        (["mem_limit: 1e9", "cpus: 0"], None, None),
        (["mem_limit: 1Gi", "cpus: many"], UNKNOWN, UNKNOWN),
        (["mem_reservation: 1g", "cpu_shares: 2"], None, None),
        (["deploy: {resources: {limits: {memory: 1g, cpus: '2'}}}"], GIB, 2000),
        (["deploy: {resources: {reservations: {memory: 1g, cpus: '2'}}}"], None, None),
        (["mem_limit: 0", "deploy: {resources: {limits: {memory: 1g}}}"], GIB, None),
        (["mem_limit: $M", "cpus: ${C-2}"], UNKNOWN, UNKNOWN),
        (["deploy: none"], None, None),
    ],
)
def test_limits(lines: list[str], memory: object, cpus: object) -> None:
    """Limits, and not what is reserved or shared."""
    read = service(*lines)
    assert (shown(read.memory), shown(read.cpus)) == (memory, cpus)


def test_what_is_not_in_effect_stays_in_the_rest() -> None:
    """A limit that Compose drops, and one beside the winner."""
    both = service("mem_limit: 1g", "deploy: {resources: {limits: {memory: 2g}}}")
    assert both.rest == {"service.deploy.resources.limits.memory": "2g"}
    assert service("mem_limit: 1e9").rest == {"service.mem_limit": 1e9}


def test_what_compose_refuses_is_told() -> None:
    """A value that no variable decides and no reader takes."""
    read = service("shm_size: 2Gi", "deploy: {resources: {limits: {memory: lots}}}", "cpus: $CPUS", "command: a 'b")
    assert read.rest == {
        "refused service.shm_size": "2Gi",
        "refused service.deploy.resources.limits.memory": "lots",
        "refused service.command": "a 'b",
    }


RESERVED = "deploy: {resources: {reservations: {devices: [%s]}}}"


@pytest.mark.parametrize(
    ("lines", "gpus"),
    [
        ([RESERVED % "{driver: nvidia, count: 2, capabilities: [gpu]}"], GpuRequest(2)),
        ([RESERVED % "{driver: nvidia, count: '2', capabilities: [gpu]}"], GpuRequest(2)),
        ([RESERVED % "{capabilities: [gpu]}"], GpuRequest(all=True)),
        ([RESERVED % "{count: all, capabilities: [gpu]}"], GpuRequest(all=True)),
        ([RESERVED % "{count: -1, capabilities: [gpu]}"], GpuRequest(all=True)),
        ([RESERVED % "{device_ids: ['0', '2'], capabilities: [gpu]}"], GpuRequest(ids=("0", "2"))),
        ([RESERVED % "{count: $N, capabilities: [gpu]}"], UNKNOWN),
        ([RESERVED % "{device_ids: ['$ID'], capabilities: [gpu]}"], UNKNOWN),
        ([RESERVED % "{driver: cdi, device_ids: [nvidia.com/gpu=all], capabilities: [gpu]}"], GpuRequest(all=True)),
        ([RESERVED % "{driver: other, capabilities: [tpu]}"], None),
        ([RESERVED % "{driver: other, capabilities: [tpu]}, {count: 1, capabilities: [gpu]}"], GpuRequest(1)),
        (["gpus: all"], GpuRequest(all=True)),
        (["gpus: 2"], UNKNOWN),
        (["gpus: [{count: 2}]"], GpuRequest(2)),
        (["devices: [nvidia.com/gpu=all]"], GpuRequest(all=True)),
        (["devices: [nvidia.com/gpu=0, 'nvidia.com/gpu=1']"], GpuRequest(ids=("0", "1"))),
        (["devices: [/dev/nvidia0]"], None),
        (["runtime: nvidia"], UNKNOWN),
        (["runtime: runc"], None),
        (["runtime: nvidia", "environment: {NVIDIA_VISIBLE_DEVICES: all}"], GpuRequest(all=True)),
        (["runtime: nvidia", "environment: [NVIDIA_VISIBLE_DEVICES=0]"], GpuRequest(ids=("0",))),
        (["runtime: nvidia", "environment: [NVIDIA_VISIBLE_DEVICES=void]"], None),
        (["runtime: nvidia", "environment: [NVIDIA_VISIBLE_DEVICES]"], UNKNOWN),
        (["environment: {NVIDIA_VISIBLE_DEVICES: all}"], None),
    ],
)
def test_gpus(lines: list[str], gpus: object) -> None:
    """Every place that asks for them."""
    assert shown(service(*lines).gpus) == gpus


@pytest.mark.parametrize(
    ("text", "meaning", "name"),
    [
        ("plain", "plain", None),
        ("$$HOME", "$HOME", None),
        ("$$$$", "$$", None),
        ("$1 $(x) $? $", "$1 $(x) $? $", None),
        ("$$$x", None, None),
        ("${x}", None, None),
        ("$_", None, None),
        ("${x:?why}", None, "x"),
        ("${x:?}", None, "x"),
        ("${x?why}", None, None),
        ("a${x:?why}", None, None),
        ("${x:?a}b}", None, None),
        ("$${x:?why}", "${x:?why}", None),
        ("${x:-${y:-z}}", None, None),
        ("${", None, None),
    ],
)
def test_interpolation(text: str, meaning: str | None, name: str | None) -> None:
    """A default is not certain either; only a required variable is a source by itself."""
    assert literal(text) == meaning
    assert required(text) == name
    if meaning is not None:
        assert readable(text) == meaning


def test_a_default_ends_where_it_ends() -> None:
    """Also one with a variable in it."""
    assert pieces("a${x:-${y}b}c$$$z") == (("a", False), ("${x:-${y}b}", True), ("c$", False), ("$z", True))
    assert readable("a $x ${y:-1}") == "a <variable x> <variable {y:-1}>"


@pytest.mark.parametrize(
    ("lines", "argv"),
    [
        (["command: a 'b c' \"d e\""], ("a", "b c", "d e")),
        (["command: [a, 'b c']"], ("a", "b c")),
        (["command:", "- a", "- |", "  b", "  c"], ("a", "b\nc\n")),
        (["command: []"], ()),
        (["command: ''"], ()),
        (["command:"], None),
        (["command: a && b"], ("a",)),
        (["command: a (b)"], UNKNOWN),
        (["command: a 'b"], UNKNOWN),
        (["command: a $B"], UNKNOWN),
        (["command: [a, $B]"], UNKNOWN),
        (["command: a $$B"], ("a", "$B")),
        (["command: [a, 1, 1.0, true]"], ("a", "1", "1.0", "true")),
        (["command: {a: b}"], UNKNOWN),
        (["command: [a, [b]]"], UNKNOWN),
    ],
)
def test_a_command(lines: list[str], argv: object) -> None:
    """In one string or in several; a shell's own signs end it, as they do in Compose."""
    assert shown(service(*lines).command) == argv


def test_variables_without_a_value_are_the_shells() -> None:
    """In both forms; an empty one is empty."""
    for lines in (["environment: [A, B=, C=1]"], ["environment: {A: , B: '', C: 1}"]):
        env = service(*lines).env
        assert {name: shown(value) for name, value in env.items()} == {"A": UNKNOWN, "B": "", "C": "1"}
    assert service("environment: {A: '${B:?no B}'}").secrets == {"A": "B"}


def test_a_part_of_an_item_has_its_own_place() -> None:
    """Of a list's variable the value, of a short mount its source and target."""
    read = service("environment:", "- A=b c", "- 'D=it''s'", "volumes: ['./a:/b:ro']")
    assert isinstance(read.env["A"], Known)
    assert (read.env["A"].text, read.env["A"].span[1:3]) == ("b c", (4, 9))
    assert isinstance(read.env["D"], Known)
    assert (read.env["D"].value, read.env["D"].text) == ("it's", "'D=it''s'")
    (mount,) = read.mounts
    assert isinstance(mount.target, Known)
    assert (mount.target.text, mount.target.span[1:3]) == ("/b", (6, 20))
    assert (mount.type, shown(mount.source), mount.read_only, mount.options) == (
        "bind",
        "./a",
        True,
        "create_host_path",
    )


@pytest.mark.parametrize(
    ("item", "kind", "source", "target"),
    [
        ("data:/data", "volume", "data", "/data"),
        ("/data", "scratch", None, "/data"),
        ("~/a:/b", "bind", "~/a", "/b"),
        ("C:\\a:/b", "bind", "C:\\a", "/b"),
        ("a:/b", "scratch", None, "a:/b"),  # Compose takes one letter for a drive
        ("${DATA:-./d}:/data", UNKNOWN, UNKNOWN, "/data"),
        ("./a:${B}", "bind", "./a", UNKNOWN),
        ("$ALL", UNKNOWN, None, UNKNOWN),
        ("./aa:/bb:ro:z", UNKNOWN, None, UNKNOWN),
        ("::", UNKNOWN, None, UNKNOWN),
    ],
)
def test_a_short_mount(item: str, kind: str, source: object, target: object) -> None:
    """A path, a name, a drive; colons of a default are no separators."""
    (mount,) = service(f"volumes: ['{item}']").mounts
    assert (mount.type, shown(mount.source), shown(mount.target)) == (kind, source, target)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a",
        "[]",
        "services:",
        "services: []",
        "services: {a: }",
        "a: 1",
        "services: {a: b}",
        "services: {a: {]",
        "\0",
    ],
)
def test_what_is_no_compose_file_has_no_services(text: str) -> None:
    """Whatever it is, nothing is raised."""
    assert read_compose(text, "compose.yaml") == ()


def test_extends_goes_round_no_circle() -> None:
    """Compose refuses it; reading ends."""
    one, two = read_compose("services:\n  a: {extends: b, image: x}\n  b: {extends: a, cpus: 1}\n", "compose.yaml")
    assert (shown(one.image), shown(two.image), shown(one.cpus)) == ("x", "x", 1000)


def test_what_stands_beside_the_services_is_in_the_first_ones_rest() -> None:
    """Also what YAML allows and Compose refuses."""
    first, second = read_compose("name: n\nname: m\nservices: {a: {tty: true}, b: {image: x}}\nx-a: {b: 1}\n", "f")
    assert first.rest == {"service.tty": True, "yaml.0": "the key name twice", "name": "m", "x-a.b": 1}
    assert second.rest == {}


def test_a_health_check_that_runs_no_shell_is_told() -> None:
    """Its words are in the rest."""
    read = service("healthcheck: {test: [CMD, a, 'b c'], interval: 1m, timeout: 1.5s, retries: 3}")
    assert (shown(read.health), read.rest["service.healthcheck.test.0"]) == ("a b c", "CMD")
    assert {name: shown(each) for name, each in read.health_times.items()} == {
        "interval": 60,
        "timeout": UNKNOWN,
        "retries": 3,
    }
