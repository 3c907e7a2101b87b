"""MIG: into which instances each GPU can be cut.

Source: NVIDIA Multi-Instance GPU User Guide, "Supported MIG Profiles"
(https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html).
"""

from __future__ import annotations

import re

_PROFILE = re.compile(r"\d+g\.(\d+)gb")

INSTANCES: dict[str, dict[str, int]] = {
    "nvidia-b200": {
        "1g.23gb": 7,
        "1g.45gb": 4,
        "2g.45gb": 3,
        "3g.90gb": 2,
        "4g.90gb": 1,
        "7g.180gb": 1,
    },
    "nvidia-h200-141gb": {
        "1g.18gb": 7,
        "1g.35gb": 4,
        "2g.35gb": 3,
        "3g.71gb": 2,
        "4g.71gb": 1,
        "7g.141gb": 1,
    },
    "nvidia-h100-80gb": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    "nvidia-h100-mega-80gb": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    "nvidia-a100-80gb": {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    "nvidia-tesla-a100": {"1g.5gb": 7, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
}
"""Instances of a profile that one GPU holds, by GKE's name of the GPU and by profile. A GPU not listed has no MIG."""


def memory_gib(profile: str) -> int:
    """Memory of one instance, as its name has it.

    Raises:
        ValueError: the name is no profile's.
    """
    match = _PROFILE.fullmatch(profile)
    if not match:
        raise ValueError(f"{profile!r} is no MIG profile; write for example 1g.23gb")
    return int(match[1])
