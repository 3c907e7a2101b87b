"""The DaemonSets of Google's driver installer: one for each version that pools name."""

from typing import Any

import pytest

from berth.components.core.manifest import Manifest
from berth.components.hardware.names import ACCELERATOR_LABEL, POOL_LABEL
from berth.components.operators import DriverInstaller, Site
from berth.components.operators.parts import Object
from berth.components.plan.effect import Level
from berth.components.plan.fleet import PlannedFleet
from berth.components.plan.plan import Operation, Step
from berth.lab.devices.scheduling import selected
from berth.stacks.settings.resolve import resolve_environment
from tests.unit.loaded import environment_of

NAME = "nvidia-driver-installer"
SHARED: dict[str, Any] = {
    "machineType": "g2-standard-24",
    "nodes": 1,
    "gpuManagement": "operator",
}


def installers(**pools: dict[str, Any]) -> dict[str, Manifest]:
    environment = {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "pools": {"cpu": {"machineType": "n2-standard-16", "nodes": 1}, **pools},
    }
    resolved = resolve_environment(environment_of("test", environment).settings)
    parts = DriverInstaller(None, Site(resolved.pools)).parts("")
    return {part.name: part.manifest for part in parts if isinstance(part, Object)}


def install_command(manifest: Manifest) -> str:
    script: str = manifest["spec"]["template"]["spec"]["initContainers"][0]["command"][-1]
    lines = [line.strip() for line in script.splitlines() if "cos-gpu-installer" in line]
    assert len(lines) == 1
    return lines[0]


def test_each_version_has_an_installer_of_its_own() -> None:
    made = installers(
        dev=SHARED,
        older=SHARED | {"driverVersion": "570.195.03"},
        newest=SHARED | {"driverVersion": "latest"},
    )
    assert {name: install_command(manifest) for name, manifest in made.items()} == {
        NAME: "/cos-gpu-installer install",
        f"{NAME}-570-195-03": "/cos-gpu-installer install --version=570.195.03",
        f"{NAME}-latest": "/cos-gpu-installer install --version=latest",
    }


@pytest.mark.parametrize(
    ("pool", "installer"),
    [("dev", NAME), ("older", f"{NAME}-570-195-03"), ("newest", f"{NAME}-latest")],
)
def test_a_node_has_one_installer(pool: str, installer: str) -> None:
    made = installers(
        dev=SHARED,
        older=SHARED | {"driverVersion": "570.195.03"},
        newest=SHARED | {"driverVersion": "latest"},
    )
    labels = {ACCELERATOR_LABEL: "nvidia-l4", POOL_LABEL: pool}
    runs = [
        name
        for name, manifest in made.items()
        if selected(manifest["spec"]["template"]["spec"], labels)
    ]
    assert runs == [installer]


def test_the_pods_of_two_installers_have_other_labels() -> None:
    made = installers(dev=SHARED, newest=SHARED | {"driverVersion": "latest"})
    selectors = [manifest["spec"]["selector"]["matchLabels"] for manifest in made.values()]
    assert selectors == [{"k8s-app": NAME}, {"k8s-app": f"{NAME}-latest"}]
    for manifest, selector in zip(made.values(), selectors, strict=True):
        assert selector.items() <= manifest["spec"]["template"]["metadata"]["labels"].items()


def test_pools_of_one_version_have_one_installer() -> None:
    made = installers(dev=SHARED | {"driverVersion": "latest"})
    assert list(made) == [f"{NAME}-latest"]


@pytest.mark.parametrize(
    ("operation", "level", "words"),
    [("update", Level.HARMLESS, "keep the driver"), ("delete", Level.DISTURBS, "or none")],
)
def test_no_loaded_driver_is_replaced(operation: Operation, level: Level, words: str) -> None:
    kind = "kubernetes:apps/v1:DaemonSet"
    step = Step(
        operation=operation,
        urn=f"urn:pulumi:x::berth::{kind}::{NAME}",
        type=kind,
        name=NAME,
        custom=True,
        old=None,
        new=None,
    )
    (effect,) = DriverInstaller.effects(step, PlannedFleet("x", {}, {}), [])
    assert effect.level == level
    assert words in effect.text
