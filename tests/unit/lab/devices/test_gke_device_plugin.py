from __future__ import annotations

import pytest

from lab.devices.gke_device_plugin import GPU, devices, status_change

B200 = {
    "cloud.google.com/gke-accelerator": "nvidia-b200",
    "cloud.google.com/gke-accelerator-count": "8",
    "cloud.google.com/gke-gpu-driver-version": "latest",
}


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (B200, {GPU: 8}),
        (B200 | {"cloud.google.com/gke-max-shared-clients-per-gpu": "4"}, {GPU: 32}),
        (B200 | {"gke-no-default-nvidia-gpu-device-plugin": "true"}, {}),
        ({key: value for key, value in B200.items() if "driver" not in key}, {}),
        ({"kubernetes.io/os": "linux"}, {}),
        (B200 | {"cloud.google.com/gke-accelerator-count": "many"}, {}),
    ],
)
def test_gpus_are_advertised_where_gkes_plugin_runs(labels: dict[str, str], found: dict[str, int]) -> None:
    assert devices(labels) == found


def test_only_what_differs_is_changed() -> None:
    assert status_change({GPU: 8}, {"cpu": "4"}, {"cpu": "4"}) == {"capacity": {GPU: "8"}, "allocatable": {GPU: "8"}}
    assert status_change({GPU: 8}, {GPU: "8"}, {GPU: "0"}) == {"allocatable": {GPU: "8"}}
    assert status_change({GPU: 8}, {GPU: "8"}, {GPU: "8"}) == {}


def test_what_is_no_longer_advertised_goes_and_others_stay() -> None:
    there = {GPU: "8", "example.com/other": "1"}
    assert status_change({}, there, there) == {"capacity": {GPU: None}, "allocatable": {GPU: None}}
    assert status_change({}, {"example.com/other": "1"}, {}) == {}
