from pathlib import Path

import pytest

from berth.lab.home import LabHome
from berth.lab.plugins.gcp.conditions import SHIPPED, of_cloud
from berth.lab.plugins.gcp.errors import ProviderError


def test_a_new_lab_gets_the_shipped_conditions_once(tmp_path: Path) -> None:
    home = LabHome(tmp_path)
    assert of_cloud(home.cloud).project("anything") is not None
    assert (home.cloud / SHIPPED.name).read_text() == SHIPPED.read_text()
    (home.cloud / SHIPPED.name).write_text("projects: {mine: {}}\n")
    assert of_cloud(home.cloud).project("anything") is None
    assert (home.cloud / SHIPPED.name).read_text() == "projects: {mine: {}}\n"
    assert [path.name for path in home.cloud.iterdir()] == ["conditions.yaml"]


def test_a_projects_own_entry_counts_alone(tmp_path: Path) -> None:
    file = tmp_path / "conditions.yaml"
    file.write_text(
        """
projects:
  "*": {services: [compute.googleapis.com]}
  mine: {permissions: [compute.networks.list], quotas: {us-central1: {NVIDIA_B200_GPUS: 0}}}
stock:
  - {zone: us-central1-b, machineType: a4-highgpu-8g, capacity: spot, available: 3}
"""
    )
    found = of_cloud(tmp_path)
    mine = found.project("mine")
    assert mine is not None
    assert "container.googleapis.com" in mine.services
    assert mine.may("compute.networks.list")
    assert not mine.may("compute.networks.create")
    assert found.limit("mine", "us-central1", "NVIDIA_B200_GPUS") == 0
    assert found.limit("other", "us-central1", "NVIDIA_B200_GPUS") is None
    assert found.available("us-central1-b", "a4-highgpu-8g", "spot") == 3
    assert found.available("us-central1-b", "a4-highgpu-8g", "on-demand") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("projects: {p: {service: []}}", "projects.p.service: Extra inputs are not permitted"),
        (
            "stock: [{zone: z, machineType: m, capacity: reserved, available: 0}]",
            "stock.0.capacity: Input should be",
        ),
        ("reservations: [", "while parsing"),
    ],
)
def test_a_broken_file_is_said_in_one_sentence_with_what_mends_it(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "conditions.yaml"
    file.write_text(text)
    with pytest.raises(ProviderError) as caught:
        of_cloud(tmp_path)
    assert message in str(caught.value)
    assert "fix the file, or delete it" in str(caught.value)
