"""GKE versions: which is older.

Answers to (read): https://docs.cloud.google.com/kubernetes-engine/versioning (order of versions,
    partial versions).
"""

from __future__ import annotations

import math
import re


def older(version: str, than: str) -> bool:
    """Whether a version is older than another.

    Args:
        version: such as `v1.36.3`, `1.35` or `1.32.1-gke.1729000`; what is left out stands for the newest.
        than: the same; what is left out stands for the first.
    """
    return _parts(version, math.inf) < _parts(than, 0)


def _parts(text: str, rest: float) -> tuple[float, ...]:
    numbers = [float(number) for number in re.findall(r"\d+", text)[:4]]
    return (*numbers, *[rest] * (4 - len(numbers)))
