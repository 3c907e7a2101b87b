from __future__ import annotations

import pytest

from berth.lab.devices.gpus import GPUS, slices
from berth.lab.plugins.gcp.machines import MACHINES


def test_every_gpu_of_the_simulated_machines_is_known() -> None:
    assert {machine.accelerator for machine in MACHINES.values() if machine.accelerators} == set(GPUS)


@pytest.mark.parametrize(("accelerator", "gpu"), GPUS.items())
def test_profiles_fit_a_gpu(accelerator: str, gpu: object) -> None:
    found = GPUS[accelerator]
    assert found is gpu
    for profile, count in found.mig.items():
        assert slices(profile) * count <= 7
    # Every profile's memory, as its name has it, is what the GPU has, rounded up for each instance.
    for profile, count in found.mig.items():
        assert int(profile.partition(".")[2].removesuffix("gb")) * count <= found.memory_mib / 1000 * 1.1


@pytest.mark.parametrize(
    ("accelerator", "balanced"),
    [
        ("nvidia-b200", {"1g.23gb": 2, "2g.45gb": 1, "3g.90gb": 1}),
        ("nvidia-h200-141gb", {"1g.18gb": 2, "2g.35gb": 1, "3g.71gb": 1}),
        ("nvidia-h100-80gb", {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}),
        ("nvidia-tesla-a100", {"1g.5gb": 2, "2g.10gb": 1, "3g.20gb": 1}),
        ("nvidia-l4", {}),
    ],
)
def test_the_balanced_layout_is_mig_parteds(accelerator: str, balanced: dict[str, int]) -> None:
    assert GPUS[accelerator].balanced() == balanced


@pytest.mark.parametrize("name", ["1g", "g.5gb", "1g.5gb+me", "nvidia.com/mig-1g.5gb"])
def test_other_names_are_no_profiles(name: str) -> None:
    with pytest.raises(ValueError, match="is no MIG profile"):
        slices(name)
