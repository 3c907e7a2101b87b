"""KubeRay's operator as a program of the lab, and GKE's add-on in its place."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import kopf
import pytest
import yaml

from berth.lab.devices import kuberay
from berth.lab.devices.kuberay import ADD_ON, Operators, launch_of
from berth.lab.devices.runner import Launch
from berth.lab.home import CLONE, Home
from berth.lab.plugins.gcp.store import Record, Store
from berth.lab.toolchain.tools import KUBERAY

CHART = "kuberay-system/kuberay-operator"
CLUSTER = "projects/p/locations/us-central1-b/clusters/fleet"


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
    chart, version = CLONE / "lab" / "charts" / "kuberay-operator", f"v{KUBERAY.version}"
    values = yaml.safe_load((chart / "values.yaml").read_text())
    assert values["image"]["tag"] == version == yaml.safe_load((chart / "Chart.yaml").read_text())["appVersion"]


def test_the_operator_runs_with_the_containers_flags_but_the_labs_addresses() -> None:
    arguments = ["--feature-gates=RayCronJob=false", "--enable-leader-election=true", "--metrics-addr=:8080"]
    arguments += ["--watch-namespace", "a,b", "--enable-metrics", "--health-probe-bind-address", ":8082"]
    variables = [
        {"name": "ENABLE_PROBES_INJECTION", "value": "false"},
        {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "ENABLE_WEBHOOKS", "value": "true"},
    ]
    assert launch_of(deployment(args=arguments, env=variables)) == Launch(
        ("-feature-gates=RayCronJob=false", "-watch-namespace=a,b", "-enable-metrics"),
        (("ENABLE_PROBES_INJECTION", "false"), ("POD_NAMESPACE", "kuberay-system")),
    )


@pytest.mark.parametrize(
    "body", [deployment(available=0), deployment(replicas=0), deployment(image="quay.io/other/thing:v1")]
)
def test_nothing_runs_for_a_deployment_that_is_not_available_or_another_program(body: Any) -> None:
    assert launch_of(body) is None


def test_an_operator_runs_for_the_chart_and_for_the_add_on_and_in_the_labs_version_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running, events = set(), []

    class Runner:
        def __init__(self, home: Home, name: str, launch: Launch) -> None:
            del home
            self.name, self.launch = name, launch
            running.add(name)

        async def close(self) -> None:
            running.discard(self.name)

    monkeypatch.setattr(kuberay, "OperatorRunner", Runner)
    monkeypatch.setattr(kopf, "warn", lambda _, *, reason, message: events.append((reason, message)))
    store, body = Store(tmp_path / "cloud"), kopf.Body(deployment())
    operators = Operators(Home(tmp_path), store)

    async def story() -> None:
        await operators.deployment("ADDED", body)
        assert running == {CHART}
        store.put(Record(CLUSTER, {"addonsConfig": {"rayOperatorConfigs": [{"enabled": True}]}}))
        await operators.look()
        assert running == {CHART, ADD_ON}
        store.remove(CLUSTER)
        await operators.look()
        assert running == {CHART}
        for image in ("quay.io/kuberay/operator:v1.7.0", "registry.example:5000/kuberay/operator@sha256:0"):
            await operators.deployment("MODIFIED", kopf.Body(deployment(image=image)))
        assert running == set()
        await operators.close()
        assert running == set()

    asyncio.run(story())
    assert {reason for reason, _ in events} == {"OperatorVersionNotBuilt"}
    assert "has built v1.6.2 only; quay.io/kuberay/operator:v1.7.0 is not run" in events[0][1]
