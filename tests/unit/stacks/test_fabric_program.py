"""Objects that an environment's program installs for the fabric, and their version of
resource.k8s.io.
"""

from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml

from berth.components.cluster.api import ClusterApi, ClusterError
from berth.stacks.load.stack import Environment, SettingsError
from berth.stacks.program import claims_api
from berth.stacks.program.environment import register_environment
from tests.unit.cases import table
from tests.unit.loaded import environment_of
from tests.unit.recording import Recorder, run

A4: dict[str, Any] = {"machineType": "a4-highgpu-8g", "nodes": 2, "capacity": "spot"}
A4X: dict[str, Any] = {
    "machineType": "a4x-highgpu-4g",
    "nodes": 2,
    "capacity": {"kind": "reservation", "reservation": "nvl"},
}
MANAGED_RDMA = {"rdma": "managed"}
NETWORKS = A4 | {"rdma": "networks"}
MANAGED = A4 | MANAGED_RDMA
CLAIMED = A4 | {"gpuAllocation": "dra"}

RELEASE = "kubernetes:helm.sh/v3:Release"
DAEMON_SET = "kubernetes:apps/v1:DaemonSet"
INSTALLER = "nvidia-driver-installer"
GIB = "nccl-rdma-installer"


def settings_of(operators: dict[str, Any] | None = None, **pools: Any) -> Environment:
    cpu = {"machineType": "n2-standard-16", "nodes": 1}
    values = {
        "project": "berth-lab",
        "zone": "us-central1-b",
        "pools": {"cpu": cpu, **pools},
        "operators": operators or {},
    }
    return environment_of("some", values)


def serves(monkeypatch: pytest.MonkeyPatch, answer: str | ClusterError | None) -> list[ClusterApi]:
    """Have every API server serve this version of resource.k8s.io, or not answer."""
    asked: list[ClusterApi] = []

    def served(api: ClusterApi) -> str | None:
        asked.append(api)
        if isinstance(answer, ClusterError):
            raise answer
        return answer

    monkeypatch.setattr(claims_api, "served_version", served)
    # The recorded kubeconfig's credential plugin is none of this machine's.
    monkeypatch.setattr(ClusterApi, "__init__", lambda _self, _kubeconfig: None)
    monkeypatch.setattr(ClusterApi, "metadata", lambda *_, **__: [])
    return asked


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Names of releases, DaemonSets and device classes that an environment registers."""

    def names(settings: Environment, api: str = "v1") -> dict[str, set[str]]:
        serves(monkeypatch, api)
        recorder = run(lambda: register_environment(settings), "some")
        return {
            "releases": (
                {resource.inputs["name"] for resource in recorder.of_type(RELEASE)}
                - {"kuberay-operator"}
            ),
            "daemons": {
                resource.inputs["metadata"]["name"] for resource in recorder.of_type(DAEMON_SET)
            },
            "classes": {
                resource.type
                for resource in recorder.registrations
                if resource.type.endswith(":DeviceClass")
            },
        }

    return names


CLASS = "kubernetes:resource.k8s.io/v1:DeviceClass"


@pytest.mark.parametrize(
    ("pools", "operators", "releases", "daemons", "classes"),
    [
        ({"train": A4}, {}, set(), set(), set()),
        ({"train": NETWORKS}, {}, {"dranet"}, {GIB}, {CLASS}),
        ({"train": MANAGED}, {}, set(), {GIB}, set()),
        ({"train": A4X}, {}, set(), set(), set()),
        ({"train": A4X | MANAGED_RDMA}, {}, {"dra-driver-nvidia-gpu"}, {f"{GIB}-arm64"}, set()),
        (
            {"train": A4X | MANAGED_RDMA, "b": MANAGED},
            {},
            {"dra-driver-nvidia-gpu"},
            {GIB, f"{GIB}-arm64"},
            set(),
        ),
        ({"dev": CLAIMED}, {}, {"dra-driver-nvidia-gpu"}, {INSTALLER}, set()),
        (
            {"dev": CLAIMED | {"driver": "preinstalled"}},
            {},
            {"dra-driver-nvidia-gpu"},
            set(),
            set(),
        ),
        (
            {
                "train": NETWORKS | CLAIMED,
                "dev": CLAIMED,
                "own": A4 | {"gpuManagement": "operator"},
            },
            {},
            {"dranet", "dra-driver-nvidia-gpu", "gpu-operator"},
            {INSTALLER, GIB},
            {CLASS},
        ),
        (
            {"train": NETWORKS | {"gpuAllocation": "dra"}},
            {
                "dranet": {"source": "present"},
                "gpuDra": {"source": "present"},
                "gib": {"source": "present"},
            },
            set(),
            {INSTALLER},
            {CLASS},
        ),
    ],
)
def test_what_pools_need_is_installed_once(
    installed: Any,
    pools: dict[str, Any],
    operators: dict[str, Any],
    releases: set[str],
    daemons: set[str],
    classes: set[str],
) -> None:
    assert installed(settings_of(operators, **pools)) == {
        "releases": releases,
        "daemons": daemons,
        "classes": classes,
    }


def test_a_workload_policy_places_a4x_in_one_domain_of_nvlink(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Fabric of Google's blueprint for A4X (cluster-toolkit, examples/gke-a4x/gke-a4x.yaml)."""
    serves(monkeypatch, "v1")
    recorder = run(lambda: register_environment(settings_of(train=A4X, other=A4)), "some")
    (policy,) = recorder.of_type("gcp:compute/resourcePolicy:ResourcePolicy")
    assert policy.inputs == {
        "name": "some-train",
        "region": "us-central1",
        "workloadPolicy": {"type": "HIGH_THROUGHPUT", "acceleratorTopology": "1x72"},
    }
    pools = recorder.of_type("gcp:container/nodePool:NodePool")
    placed = {pool.name: pool.inputs.get("placementPolicy") for pool in pools}
    assert placed == {
        "cpu": None,
        "other": None,
        "train": {"type": "COMPACT", "policyName": "some-train"},
    }


@pytest.mark.parametrize(("given", "registered"), table(__file__, "dranet_charts.yaml"))
def test_dranets_chart(
    monkeypatch: pytest.MonkeyPatch, given: dict[str, Any], registered: list[Any]
) -> None:
    serves(monkeypatch, "v1")
    recorder = run(
        lambda: register_environment(settings_of({"dranet": given}, train=NETWORKS)), "some"
    )
    (release,) = (
        resource.inputs for resource in recorder.of_type(RELEASE) if resource.name == "dranet"
    )
    repository = (release.get("repositoryOpts") or {}).get("repo")
    assert [
        release["chart"],
        release.get("version"),
        repository,
        release["namespace"],
    ] == registered
    namespaces = {
        resource.inputs["metadata"]["name"]
        for resource in recorder.of_type("kubernetes:core/v1:Namespace")
    }
    assert ("dranet" in namespaces) is (release["namespace"] == "dranet"), (
        "kube-system is in every cluster"
    )


MANIFEST = """\
apiVersion: v1
kind: ServiceAccount
metadata: {name: dranet, namespace: kube-system}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: dranet, namespace: kube-system}
spec:
  template: {spec: {hostNetwork: true}}
"""


def by_manifest(path: Path) -> Environment:
    return settings_of({"dranet": {"source": "manifest", "manifest": str(path)}}, train=NETWORKS)


def test_dranet_by_a_manifest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    serves(monkeypatch, "v1")
    path = tmp_path / "install.yaml"
    path.write_text(MANIFEST)
    recorder = run(lambda: register_environment(by_manifest(path)), "some")
    assert "dranet" not in {resource.name for resource in recorder.of_type(RELEASE)}
    assert "kube-system/dranet" in {
        resource.name for resource in recorder.of_type("kubernetes:core/v1:ServiceAccount")
    }
    (daemons,) = (
        resource.inputs
        for resource in recorder.of_type(DAEMON_SET)
        if resource.name == "kube-system/dranet"
    )
    (term,) = daemons["spec"]["template"]["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["train"]
    assert len(recorder.of_type(CLASS)) == 1


def test_a_manifest_with_the_class_in_it_brings_its_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    serves(monkeypatch, "v1")
    path = tmp_path / "install.yaml"
    its_class = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "dranet"},
        "spec": {},
    }
    path.write_text(f"{MANIFEST}---\n{yaml.safe_dump(its_class)}")
    (found,) = run(lambda: register_environment(by_manifest(path)), "some").of_type(CLASS)
    assert found.inputs["spec"] == {}


def test_a_manifest_that_is_none_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    path = tmp_path / "install.yaml"
    path.write_text("kind: [\n")
    recorded: list[str] = []

    async def program() -> None:
        try:
            await register_environment(by_manifest(path))
        except SettingsError as error:
            recorded.append(error.lines[0])

    assert run(program, "some").registrations == []
    assert recorded[0].startswith("environment.operators.dranet.manifest: ")
    assert "install.yaml:2: this is not YAML" in recorded[0]


def outcome(settings: Environment) -> tuple[Recorder, list[str]]:
    """Registrations of a program, and the error that it ended with."""
    recorded: list[str] = []

    async def program() -> None:
        try:
            await register_environment(settings)
        except pulumi.RunError as error:
            recorded.append(str(error))

    return run(program, "some"), recorded


def test_classes_are_written_in_the_version_that_the_cluster_serves(installed: Any) -> None:
    found = installed(settings_of(train=NETWORKS), "v1beta2")
    assert found["classes"] == {"kubernetes:resource.k8s.io/v1beta2:DeviceClass"}


def test_a_cluster_is_not_asked_where_nothing_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = serves(monkeypatch, None)
    recorder, errors = outcome(settings_of(train=A4))
    assert (asked, errors) == ([], [])
    assert recorder.of_type(RELEASE) != []


@pytest.mark.parametrize("pool", [NETWORKS, MANAGED, CLAIMED])
def test_a_cluster_without_claims_is_refused_where_a_pool_needs_them(
    monkeypatch: pytest.MonkeyPatch, pool: dict[str, Any]
) -> None:
    serves(monkeypatch, None)
    recorder, errors = outcome(settings_of(train=pool))
    assert len(errors) == 1
    assert (
        "serves no version of resource.k8s.io, so nothing could claim the NICs or GPUs of pool"
        " 'train'" in errors[0]
    )
    assert "upgrade it to Kubernetes 1.34 or newer" in errors[0]
    assert recorder.of_type(RELEASE) == []


def test_a_preview_goes_on_where_the_cluster_cannot_be_reached(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    serves(monkeypatch, ClusterError("the API server x does not answer: refused"))
    recorder, errors = outcome(settings_of(train=NETWORKS))
    assert errors == []
    assert len(recorder.of_type(CLASS)) == 1
    assert "the API server x does not answer: refused; the preview assumes v1" in caplog.text


def test_an_update_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    serves(monkeypatch, ClusterError("the API server x does not answer: refused"))
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: False)
    recorder, errors = outcome(settings_of(train=NETWORKS))
    assert errors == [
        (
            "cannot tell which version of resource.k8s.io the cluster serves: the API server x"
            " does not answer: refused; run the update again"
        )
    ]
    assert recorder.of_type(CLASS) == []
