from __future__ import annotations

import pytest

from berth.lab.devices.advertised import GPU
from berth.lab.devices.gke_device_plugin import devices

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
