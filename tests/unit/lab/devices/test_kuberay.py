from __future__ import annotations

from typing import Any

import pytest
import yaml

from berth.lab.devices.kuberay import Launch, WrongVersionError, built_version, split_image, wanted
from berth.lab.home import CLONE


def deployment(
    image: str = "quay.io/kuberay/operator:v1.6.2", available: int = 1, replicas: int = 1, **more: Any
) -> Any:
    container = {"name": "kuberay-operator", "image": image} | more
    return {
        "metadata": {"namespace": "kuberay-system", "name": "kuberay-operator"},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}},
        "status": {"availableReplicas": available},
    }


def test_the_chart_and_the_lab_are_of_one_version() -> None:
    chart = CLONE / "lab" / "charts" / "kuberay-operator"
    values = yaml.safe_load((chart / "values.yaml").read_text())
    assert values["image"]["tag"] == built_version() == yaml.safe_load((chart / "Chart.yaml").read_text())["appVersion"]


def test_the_operator_runs_with_the_containers_flags_but_the_labs_addresses() -> None:
    arguments = [
        "--feature-gates=RayCronJob=false",
        "--enable-leader-election=true",
        "--metrics-addr=:8080",
        "--watch-namespace",
        "a,b",
        "--enable-metrics",
        "--health-probe-bind-address",
        ":8082",
    ]
    launch = wanted(deployment(args=arguments), "v1.6.2")
    assert launch == Launch(("-feature-gates=RayCronJob=false", "-watch-namespace=a,b", "-enable-metrics"), ())


def test_the_operator_gets_the_variables_that_are_known_without_a_pod() -> None:
    variables = [
        {"name": "ENABLE_PROBES_INJECTION", "value": "false"},
        {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "ENABLE_WEBHOOKS", "value": "true"},
    ]
    launch = wanted(deployment(env=variables), "v1.6.2")
    assert launch is not None
    assert launch.environment == (("ENABLE_PROBES_INJECTION", "false"), ("POD_NAMESPACE", "kuberay-system"))


@pytest.mark.parametrize(
    "body",
    [
        deployment(available=0),
        deployment(replicas=0),
        deployment(image="quay.io/other/thing:v1"),
        deployment(image="registry.k8s.io/gpu/operator:v1"),
    ],
)
def test_nothing_runs_for_what_is_not_available_or_another_program(body: Any) -> None:
    assert wanted(body, "v1.6.2") is None


@pytest.mark.parametrize("image", ["quay.io/kuberay/operator:v1.7.0", "quay.io/kuberay/operator"])
def test_another_version_is_refused_saying_which_one_there_is(image: str) -> None:
    with pytest.raises(WrongVersionError, match=r"has built v1\.6\.2 only; .* is not run"):
        wanted(deployment(image=image), "v1.6.2")


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("quay.io/kuberay/operator:v1.6.2", ("quay.io/kuberay/operator", "v1.6.2")),
        ("registry.example:5000/kuberay/operator", ("registry.example:5000/kuberay/operator", "")),
        ("kuberay/operator:v1@sha256:0", ("kuberay/operator", "v1")),
    ],
)
def test_images_are_read_as_registries_do(image: str, parts: tuple[str, str]) -> None:
    assert split_image(image) == parts
