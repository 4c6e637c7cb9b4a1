"""Sizes whose unit is another one than meant, or none, or which their reader refuses."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from trainlaunch.diagnostics import Edit, Severity
from trainlaunch.formats.workload import Known, Unknown
from trainlaunch.rules.base.rule import Problem
from trainlaunch.rules.base.text_rule import container_rule
from trainlaunch.rules.sources.container_facts import of_reader
from trainlaunch.rules.sources.purpose import trains
from trainlaunch.rules.sources.source_text import COMPOSE, ECS, KUBERNETES, SourceContainer, at, text_at
from trainlaunch.units import GIB, MIB

_DECIMAL = re.compile(r"[\"']?([0-9.]+)([MGT])[\"']?", re.ASCII)
_FRACTION = re.compile(r"([\"']?)([0-9]{1,15}\.[0-9]{1,15})([KMGT])i\1", re.ASCII)
_MILLI = re.compile(r"([\"']?)([0-9]+)m\1", re.ASCII)
_SIZE = re.compile(r"[\"']?([0-9]+(?:[.,][0-9]+)?)[ _]*([KMGT])i?(?:b|bytes?)?[\"']?", re.ASCII | re.IGNORECASE)
_BINARY = re.compile(r"([\"']?)([0-9]+)([KMGT])i\1", re.ASCII | re.IGNORECASE)
_BEGINS_AS_SIZE = re.compile(r"""["']?[.\d][^$`{!<>\[\]*+/]*\Z""")  # no placeholder, variable or sum
_MAX_DIGITS = 6  # of a size in thousandths; a longer one was written by a machine, and is right


@container_rule("TL302", Severity.ERROR)
def size_without_unit(container: SourceContainer) -> Iterator[Problem]:
    """A size is a bare number below one MiB."""
    for what, value in (("/dev/shm", container.workload.shm.size), ("memory", container.workload.memory)):
        if not isinstance(value, Known) or not 0 < value.value < MIB:
            continue
        number = value.text.strip("\"'").rstrip("bB")
        if number.isdecimal():
            unit = {KUBERNETES: "Gi", COMPOSE: "gb"}.get(container.workload.format, "g")
            if value.value >= 1024:
                unit = {KUBERNETES: "Mi", COMPOSE: "mb"}.get(container.workload.format, "m")
            yield Problem(
                f"the size of {what} is {value.text}: {value.value} bytes, less than one MiB",
                f"write {number}{unit}",
                "a number without a unit counts bytes",
                span=value.span,
                severity=of_reader(container),
            )


@container_rule("TL303", Severity.ERROR, KUBERNETES)
def size_in_thousandths(container: SourceContainer) -> Iterator[Problem]:
    """A size of a pod is in thousandths of a byte."""
    workload = container.workload
    for what, value in (("sizeLimit", workload.shm.size or workload.shm.declared), ("memory", workload.memory)):
        match = _MILLI.fullmatch(value.text) if isinstance(value, Known) else None
        if match and value is not None and len(match[2]) <= _MAX_DIGITS:
            quote, number = match[1], match[2]
            yield Problem(
                f"{what} {number}m is {int(number) / 1000:g} bytes",
                f"write {number}Mi",
                "in Kubernetes m is a thousandth; 512m means 512 MiB only in Docker",
                span=value.span,
                severity=_of_milli(container),
                edits=(Edit(value.span, f"{quote}{number}Mi{quote}"),),
            )


def _of_milli(container: SourceContainer) -> Severity | None:
    """Return how grave thousandths are: Windows counts a memory limit in MiB, and takes one of 0 for none."""
    labels = at(container.pod, "nodeSelector")
    systems = {text_at(labels, "kubernetes.io/os"), text_at(labels, "beta.kubernetes.io/os")}
    windows = "windows" in systems | {text_at(container.pod, "os", "name")}
    return Severity.INFO if windows else of_reader(container)


@container_rule("TL304", Severity.ERROR)
def size_not_read(container: SourceContainer) -> Iterator[Problem]:
    """A size is a Kubernetes quantity in docker or Compose, or no size at all to its reader."""
    workload = container.workload
    shm = workload.shm
    for what, value in (("/dev/shm", shm.size), ("/dev/shm", shm.declared), ("memory", workload.memory)):
        if not isinstance(value, Unknown) or "unclear" in workload.rest or not _BEGINS_AS_SIZE.match(value.text):
            continue
        message = f"the size of {what} is {value.text}, which is not a size here"
        match = _BINARY.fullmatch(value.text) if workload.format not in {KUBERNETES, ECS} else None
        if match is None:
            yield Problem(
                message,
                _size_of(value.text, workload.format),
                "the reader of this file knows other units, and stops with an error",
                span=value.span,
                severity=of_reader(container),
            )
            continue
        size = match[2] + match[3].lower() + ("b" if workload.format == COMPOSE else "")
        yield Problem(
            message,
            f"write {size}",
            "Ki, Mi and Gi are Kubernetes' suffixes; docker and Compose read k, m and g, in the same powers of two",
            span=value.span,
            severity=of_reader(container),  # old versions of Podman take them
            edits=(Edit(value.span, f"{match[1]}{size}{match[1]}"),),
        )


def _size_of(text: str, reader: str) -> str:
    """Return the fix for a text that is no size to its reader: the nearest that is one."""
    if reader == ECS:
        return "write a whole number of MiB, as 2048"
    form = {KUBERNETES: "Gi", COMPOSE: "gb"}.get(reader, "g")
    match = _SIZE.fullmatch(text)
    if match is None:
        return f"write a size like 8{form}"
    return f"write {match[1].replace(',', '.')}{form.replace('g', match[2].lower()).replace('G', match[2].upper())}"


@container_rule("TL305", Severity.INFO, KUBERNETES)
def size_decimal(container: SourceContainer) -> Iterator[Problem]:
    """Kubernetes reads a size of /dev/shm in powers of ten."""
    size = container.workload.shm.size
    match = _DECIMAL.fullmatch(size.text) if isinstance(size, Known) else None
    if match and isinstance(size, Known):
        number, letter = match[1], match[2]
        yield Problem(
            f"sizeLimit {number}{letter} is {size.value / GIB:.1f} GiB",
            f"write {number}{letter}i for powers of two; in Docker this size is {size.value // MIB}m",
            f"{letter} counts in powers of ten in Kubernetes and in powers of two in Docker",
            span=size.span,
        )


@container_rule("TL306", Severity.WARNING, KUBERNETES)
def size_fractional(container: SourceContainer) -> Iterator[Problem]:
    """A size of a pod is not a whole number of bytes."""
    workload = container.workload
    for what, value in (("sizeLimit", workload.shm.size), ("memory", workload.memory)):
        match = _FRACTION.fullmatch(value.text) if isinstance(value, Known) else None
        if match is None or value is None:
            continue
        exact = Fraction(match[2]) * 2 ** (10 * ("KMGT".index(match[3]) + 1))
        if exact.denominator != 1:
            rounded = f"{-(-exact // MIB)}Mi"
            yield Problem(
                f"{what} {match[2]}{match[3]}i is not a whole number of bytes",
                f"write {rounded}",
                "the API server stores it in thousandths of a byte and warns; other readers refuse it",
                span=value.span,
                severity=None if what == "sizeLimit" or trains(container) else Severity.INFO,
                edits=(Edit(value.span, f"{match[1]}{rounded}{match[1]}"),),
            )
