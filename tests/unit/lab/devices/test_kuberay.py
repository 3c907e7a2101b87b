"""KubeRay's operator as a program of the lab, and GKE's add-on in its place."""

from pathlib import Path
from typing import Any

import pytest

from berth.lab.api import DEPLOYMENTS, Api
from berth.lab.devices.kuberay import PROCESS, RayOperator, process_of
from berth.lab.home import LabHome
from berth.lab.plugins.gcp.store import Store, StoredRecord
from berth.lab.processes import LabProcess, Supervisor

CLUSTER = "projects/p/locations/us-central1-b/clusters/fleet"


def deployment(
    image: str = "quay.io/kuberay/operator:v1.6.2",
    available: int = 1,
    replicas: int = 1,
    **more: Any,
) -> Any:
    container = {"name": "kuberay-operator", "image": image} | more
    return {
        "metadata": {"namespace": "kuberay-system", "name": "kuberay-operator"},
        "spec": {"replicas": replicas, "template": {"spec": {"containers": [container]}}},
        "status": {"availableReplicas": available},
    }


def test_the_operator_runs_with_the_containers_flags_but_the_labs_addresses() -> None:
    arguments = [
        "--feature-gates=RayCronJob=false",
        "--enable-leader-election=true",
        "--metrics-addr=:8080",
    ]
    arguments += ["--watch-namespace=a,b", "--enable-metrics", "--health-probe-bind-address=:8082"]
    variables = [
        {"name": "ENABLE_PROBES_INJECTION", "value": "false"},
        {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        {"name": "SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "ENABLE_WEBHOOKS", "value": "true"},
    ]
    process = process_of(LabHome(Path("/lab")), deployment(args=arguments, env=variables))
    assert process
    assert process.argv[1:4] == (
        "-feature-gates=RayCronJob=false",
        "-watch-namespace=a,b",
        "-enable-metrics",
    )
    assert {"-metrics-addr=127.0.0.1:0", "-kubeconfig=/lab/kubeconfig.yaml"} <= {*process.argv[4:]}
    assert process.environment == {
        "ENABLE_PROBES_INJECTION": "false",
        "POD_NAMESPACE": "kuberay-system",
    }


@pytest.mark.parametrize(
    "body",
    [deployment(available=0), deployment(replicas=0), deployment(image="quay.io/other/thing:v1")],
)
def test_nothing_runs_for_a_deployment_that_is_not_available_or_another_program(body: Any) -> None:
    assert process_of(LabHome(Path("/lab")), body) is None


class Deployments(Api):
    """Cluster with one Deployment, or none."""

    def __init__(self, *deployments: Any) -> None:
        self.deployments = [*deployments]
        self.events: list[tuple[str, str]] = []

    def list(self, path: str, **query: str) -> list[Any]:
        assert (path, query) == (DEPLOYMENTS, {})
        return self.deployments

    def event(self, about: Any, source: str, kind: str, reason: str, message: str) -> None:
        assert (about["kind"], source, kind) == ("Deployment", "berth-lab", "Warning")
        self.events.append((reason, message))


def test_an_operator_runs_for_the_chart_or_for_the_add_on_and_in_the_labs_version_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    running: list[str] = []

    def start(_: Supervisor, processes: list[LabProcess]) -> None:
        running[:] = [process.version for process in processes]

    def stop(_: Supervisor, names: list[str]) -> None:
        assert names == [PROCESS]
        running.clear()

    monkeypatch.setattr(Supervisor, "start", start)
    monkeypatch.setattr(Supervisor, "stop", stop)
    store = Store(tmp_path / "cloud")
    cluster = Deployments(deployment())
    operator = RayOperator(LabHome(tmp_path), store, cluster)
    operator.step()
    of_chart = running.copy()
    assert len(of_chart) == 1
    for image in (
        "quay.io/kuberay/operator:v1.7.0",
        "registry.example:5000/kuberay/operator@sha256:0",
    ):
        cluster.deployments = [deployment(image=image)]
        operator.see()
        operator.step()
    assert running == []
    assert {reason for reason, _ in cluster.events} == {"OperatorVersionNotBuilt"}
    assert (
        "has built v1.6.2 only; quay.io/kuberay/operator:v1.7.0 is not run" in cluster.events[0][1]
    )
    store.put(StoredRecord(CLUSTER, {"addonsConfig": {"rayOperatorConfigs": [{"enabled": True}]}}))
    operator.step()
    assert len(running) == 1
    assert running != of_chart
    cluster.deployments = [deployment()]
    operator.see()
    operator.step()
    assert running == of_chart
    operator.stop()
    assert running == []
