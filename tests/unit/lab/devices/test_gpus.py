from __future__ import annotations

import pytest

from berth.lab.devices.gpus import GPUS, slices


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
    with pytest.raises(ValueError, match="is not a MIG profile"):
        slices(name)
