"""Shares of an engine's time by what it did, from the CPU profile that `pulumi --profiling` writes.

The file is a message of Go's pprof (https://github.com/google/pprof, proto/profile.proto), of which
five fields are read.
"""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

# Functions of pulumi 3.250, from the outside to the inside: a sample counts for the first that is
# on its stack.
_WORK = {
    "saving snapshots": ("SaveSnapshot", "saveSnapshot", "saveCheckpoint", "(*SnapshotManager)", "SerializeDeployment"),
    "garbage collection": ("runtime.gcBgMarkWorker", "runtime.gcAssistAlloc", "runtime.bgsweep"),
    "calls to the program and to plugins": ("google.golang.org/grpc",),
}
OTHER = "the rest"


def shares(path: Path) -> dict[str, float]:
    """Return the share of samples by what the engine did, from 0 to 1; empty without samples."""
    data = path.read_bytes()
    texts: list[str] = []
    names: dict[int, int] = {}
    functions: dict[int, list[int]] = defaultdict(list)
    samples: list[tuple[list[int], int]] = []
    for number, value in _fields(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data):
        if not isinstance(value, bytes):
            continue
        if number == 2:  # noqa: PLR2004 - Profile.sample
            inner = list(_fields(value))
            samples.append((_numbers(inner, 1), _numbers(inner, 2)[-1]))
        elif number == 4:  # noqa: PLR2004 - Profile.location
            inner = list(_fields(value))
            for line, content in inner:
                if line == 4 and isinstance(content, bytes):  # noqa: PLR2004 - Location.line
                    functions[_numbers(inner, 1)[0]] += _numbers(list(_fields(content)), 1)
        elif number == 5:  # noqa: PLR2004 - Profile.function
            inner = list(_fields(value))
            names[_numbers(inner, 1)[0]] = _numbers(inner, 2)[0]
        elif number == 6:  # noqa: PLR2004 - Profile.string_table
            texts.append(value.decode(errors="replace"))
    found: Counter[str] = Counter()
    for locations, weight in samples:
        stack = [texts[names[function]] for place in locations for function in functions[place]]
        found[_work(stack)] += weight
    total = found.total()
    return {name: round(weight / total, 3) for name, weight in found.most_common()} if total else {}


def _work(stack: list[str]) -> str:
    for work, functions in _WORK.items():
        if any(part in name for name in stack for part in functions):
            return work
    return OTHER


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """Yield the fields of a message by number: integers, and the bytes of texts and messages."""
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        if tag & 7 == 0:
            value, at = _varint(data, at)
            yield tag >> 3, value
        else:
            size, at = _varint(data, at)
            yield tag >> 3, data[at : at + size]
            at += size


def _numbers(fields: list[tuple[int, int | bytes]], field: int) -> list[int]:
    """Return the integers of a field, packed or not."""
    found = []
    for number, value in fields:
        if number != field:
            continue
        if isinstance(value, int):
            found.append(value)
        else:
            at = 0
            while at < len(value):
                one, at = _varint(value, at)
                found.append(one)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:  # noqa: PLR2004 - the last byte of a number has no continuation bit
            return value, at
        shift += 7
