"""Ray of a simulated head: what it has of the berth's pods, and what its programs see."""

import re
from pathlib import Path
from typing import Any

import pytest

from berth.components.hardware.versions import RAY
from berth.components.ray.service_code import with_code
from berth.lab.ray import installed, shape


def pod(group: str, limits: dict[str, str], **annotations: str) -> dict[str, Any]:
    kind = "head" if group == "headgroup" else "worker"
    labels = {"ray.io/node-type": kind, "ray.io/group": group}
    resources = {"resources": {"limits": limits}}
    return {
        "metadata": {"labels": labels, "annotations": annotations},
        "spec": {"containers": [resources]},
    }


@pytest.mark.parametrize(
    ("head", "group", "worker", "has"),
    [
        ({}, {}, {"nvidia.com/gpu": "2"}, {"CPU": 9, "GPU": 4, "memory": 10 << 30}),
        ({"num-cpus": "0"}, {}, {}, {"CPU": 8, "GPU": 0, "memory": 10 << 30}),
        (
            {},
            {"num-gpus": "1"},
            {"nvidia.com/gpu.shared": "1"},
            {"CPU": 9, "GPU": 2, "memory": 10 << 30},
        ),
        (
            {},
            {"resources": "'{\"tons\": 2}'"},
            {},
            {"CPU": 9, "GPU": 0, "memory": 10 << 30, "tons": 4},
        ),
    ],
)
def test_one_node_has_the_resources_of_all_pods(
    head: dict[str, str], group: dict[str, str], worker: dict[str, str], has: dict[str, float]
) -> None:
    spec = {
        "headGroupSpec": {"rayStartParams": head},
        "workerGroupSpecs": [{"groupName": "gpu", "rayStartParams": group}],
    }
    limits = {"cpu": "3500m", "memory": "4Gi", **worker}
    pods = [pod("headgroup", {"cpu": "1", "memory": "2Gi"}), pod("gpu", limits), pod("gpu", limits)]
    found = shape.resources({"spec": spec}, pods)
    assert found == has
    start = shape.arguments(found, {"port": 6379}, "folder")
    assert {"--port=6379", f"--num-cpus={has['CPU']}", f"--num-gpus={has['GPU']}"} <= set(start)


def test_a_program_sees_variables_and_secret_values_but_no_path_of_a_volume() -> None:
    container = {
        "volumeMounts": [{"mountPath": "/mnt/home"}],
        "env": [
            {"name": "LEVEL", "value": "3"},
            {"name": "HF_HOME", "value": "/mnt/home/hf"},
            {
                "name": "HF_TOKEN",
                "valueFrom": {"secretKeyRef": {"name": "berth", "key": "HF_TOKEN"}},
            },
            {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "RAY_AUTH_MODE", "value": "token"},
            {"name": "RAY_ADDRESS", "value": "127.0.0.1:6379"},
        ],
    }
    found = dict(shape.variables(container, lambda name, key: f"{name}/{key}"))
    assert found == {"LEVEL": "3", "HF_TOKEN": "berth/HF_TOKEN", "RAY_AUTH_MODE": "token"}


def test_a_head_finds_the_code_of_its_service(tmp_path: Path) -> None:
    files = {"chat.py": "app = 1\n", "parts/voice.py": "loud = True\n"}
    template: dict[str, Any] = {"metadata": {}, "spec": {"containers": [{}]}}
    folder = shape.write_code(with_code(template, files), tmp_path)
    assert {
        path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.py")
    } == files


def test_the_packages_are_those_of_the_default_images_ray() -> None:
    pins = installed.REQUIREMENTS.read_text(encoding="utf-8")
    assert f"\nray=={RAY} \\\n" in re.sub(r"\[.*\]", "", pins)
    assert f"ray[default,serve]=={RAY}\n" in Path(installed.REQUIREMENTS).with_suffix(
        ".in"
    ).read_text(encoding="utf-8")
