"""The GPUs of GKE's machines, as the driver reports them.

Answers to (believed): names and memory, as `nvidia-smi` and GPU feature discovery show them in public reports of such machines
    (`NVIDIA B200`, 183359MiB; an L4 has the labels `gpu.product=NVIDIA-L4`, `gpu.memory=23034`). `nvidia-smi` on each machine type would settle it.
Answers to (read): https://developer.nvidia.com/cuda-gpus (compute capability)
Answers to (read): https://docs.nvidia.com/datacenter/tesla/mig-user-guide/ ("Supported MIG Profiles") and
    https://github.com/NVIDIA/mig-parted/blob/v0.15.0/deployments/systemd/config-default.yaml (MIG profiles)
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROFILE = re.compile(r"(\d+)g\.(\d+)gb")

# By the major and minor compute capability, as feature discovery names them.
_FAMILIES = {(8, 0): "ampere", (8, 9): "ada-lovelace", (9, 0): "hopper", (10, 0): "blackwell"}


@dataclass(frozen=True)
class Gpu:
    """One kind of GPU.

    Attributes:
        name: as the driver reports it.
        memory_mib: its memory, in MiB.
        compute: compute capability, major and minor.
        mig: how many instances of each MIG profile one GPU holds; empty without MIG.
    """

    name: str
    memory_mib: int
    compute: tuple[int, int]
    mig: Mapping[str, int]

    @property
    def product(self) -> str:
        """The name as a label's value."""
        return "-".join(self.name.split())

    @property
    def family(self) -> str:
        """The architecture, as feature discovery names it."""
        return _FAMILIES[self.compute]

    def balanced(self) -> dict[str, int]:
        """The instances of mig-parted's `all-balanced`: two of one slice, one of two, one of three; empty without MIG."""
        smallest: dict[int, str] = {}
        for profile in self.mig:
            smallest.setdefault(slices(profile), profile)
        return {smallest[size]: count for size, count in ((1, 2), (2, 1), (3, 1)) if size in smallest}


def slices(profile: str) -> int:
    """The compute slices of a MIG profile: 3 for `3g.90gb`.

    Raises:
        ValueError: when it is no profile's name.
    """
    match = _PROFILE.fullmatch(profile)
    if match is None:
        raise ValueError(f"{profile!r} is no MIG profile")
    return int(match[1])


def _profiles(*names: str) -> dict[str, int]:
    """Six profiles from the smallest to the whole GPU; how many fit is the same for all GPUs of seven slices."""
    return dict(zip(names, (7, 4, 3, 2, 1, 1), strict=True))


_OF_40_GB = _profiles("1g.5gb", "1g.10gb", "2g.10gb", "3g.20gb", "4g.20gb", "7g.40gb")
_OF_80_GB = _profiles("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
_OF_141_GB = _profiles("1g.18gb", "1g.35gb", "2g.35gb", "3g.71gb", "4g.71gb", "7g.141gb")
_OF_180_GB = _profiles("1g.23gb", "1g.45gb", "2g.45gb", "3g.90gb", "4g.90gb", "7g.180gb")

_H100 = Gpu("NVIDIA H100 80GB HBM3", 81559, (9, 0), _OF_80_GB)

GPUS = {
    "nvidia-b200": Gpu("NVIDIA B200", 183359, (10, 0), _OF_180_GB),
    "nvidia-h200-141gb": Gpu("NVIDIA H200", 143771, (9, 0), _OF_141_GB),
    "nvidia-h100-80gb": _H100,
    "nvidia-h100-mega-80gb": _H100,
    "nvidia-a100-80gb": Gpu("NVIDIA A100-SXM4-80GB", 81920, (8, 0), _OF_80_GB),
    "nvidia-tesla-a100": Gpu("NVIDIA A100-SXM4-40GB", 40960, (8, 0), _OF_40_GB),
    "nvidia-l4": Gpu("NVIDIA L4", 23034, (8, 9), {}),
}
"""By GKE's name: the value of the label `cloud.google.com/gke-accelerator`."""
