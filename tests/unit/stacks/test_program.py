from __future__ import annotations

import asyncio
import sys
from typing import Any

import pulumi
import pytest

from stacks import stack_file
from stacks.engineer import engineer
from stacks.environment import environment
from stacks.load import SettingsError, load
from stacks.settings.engineer import EngineerSettings
from stacks.settings.environment import EnvironmentSettings
from stacks.settings.resolve import contract_of, resolve_environment
from tests.unit.recording import run

RAY_CLUSTER = "kubernetes:ray.io/v1:RayCluster"
NAMESPACE = "kubernetes:core/v1:Namespace"
NODE_POOL = "gcp:container/nodePool:NodePool"


def shipped(stack: str) -> Any:
    file = stack_file.read(stack_file.stack_path(stack))
    return load(stack, file.settings, file)


def lab_settings() -> EnvironmentSettings:
    settings = shipped("lab")
    assert isinstance(settings, EnvironmentSettings)
    return settings


def engineer_settings(**values: Any) -> EngineerSettings:
    settings = load("alice", {"engineer": {"environment": "lab"} | values}, None)
    assert isinstance(settings, EngineerSettings)
    return settings


def lab_outputs() -> dict[str, Any]:
    settings = lab_settings()
    contract = contract_of(settings, "lab", resolve_environment(settings))
    return {
        "environment": contract.model_dump(mode="json", by_alias=True, exclude_none=True),
        "kubeconfig": "{}",
        "clusterId": "projects/berth-lab/locations/us-central1-b/clusters/lab",
    }


def test_the_recording_fails_when_an_assertion_in_an_apply_fails() -> None:
    async def program() -> None:
        def wrong(_: str) -> None:
            raise AssertionError("seen")

        await pulumi.Output.from_input("x").apply(wrong).future()

    with pytest.raises(AssertionError, match="seen"):
        run(program, "lab")


def test_an_environment_registers_all_its_parts() -> None:
    recorder = run(lambda: environment("lab", lab_settings()), "lab")
    assert {each.name for each in recorder.of_type(NODE_POOL)} == {"cpu", "dev", "train"}
    assert {each.name for each in recorder.of_type(RAY_CLUSTER)} == {"bob", "carol", "train"}
    assert {each.inputs["metadata"]["name"] for each in recorder.of_type(NAMESPACE)} == {
        "berth-bob",
        "berth-carol",
        "berth-train",
        "gpu-operator",
        "kuberay-operator",
    }
    releases = {each.name: each for each in recorder.of_type("kubernetes:helm.sh/v3:Release")}
    assert releases.keys() == {"kuberay-operator", "gpu-operator"}
    release = releases["kuberay-operator"]
    assert release.inputs["chart"] == "./.lab/charts/kuberay-operator"
    assert release.inputs["values"] == {"image": {"tag": "v1.6.2"}}
    (provider,) = recorder.of_type("pulumi:providers:kubernetes")
    assert "gke-gcloud-auth-plugin" in provider.inputs["kubeconfig"]["value"], "and it is a secret"
    assert provider.inputs["clusterIdentifier"] == "lab-id"


def test_a_gpu_pool_asks_for_the_machines_gpus_and_gkes_driver() -> None:
    recorder = run(lambda: environment("lab", lab_settings()), "lab")
    config = {each.name: each.inputs["nodeConfig"] for each in recorder.of_type(NODE_POOL)}
    assert config["train"]["guestAccelerators"] == [
        {"type": "nvidia-b200", "count": 8, "gpuDriverInstallationConfig": {"gpuDriverVersion": "DEFAULT"}}
    ]
    assert "guestAccelerators" not in config["cpu"]


def test_an_engineers_stack_registers_one_berth_and_nothing_of_the_cloud() -> None:
    recorder = run(
        lambda: engineer("alice", engineer_settings(workers=2), None),
        "alice",
        {"organization/berth/lab": lab_outputs()},
    )
    custom = [each.type for each in recorder.registrations if not each.type.startswith("berth:")]
    assert sorted(custom) == sorted(
        ["pulumi:pulumi:StackReference", "pulumi:providers:kubernetes", NAMESPACE, RAY_CLUSTER]
    )
    (cluster,) = recorder.of_type(RAY_CLUSTER)
    assert cluster.inputs["spec"]["workerGroupSpecs"][0]["replicas"] == 2
    assert cluster.inputs["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "berth",
        "berth/environment": "lab",
        "berth/stack": "alice",
        "berth/engineer": "alice",
    }


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": "bob"}, "environment 'lab' has 'bob' among its own (engineers.bob)"),
        ({"worker": {"pool": "devv"}}, "there is no pool 'devv'; did you mean 'dev'?"),
        ({"workers": 30}, "bob 2 + carol 1 + alice 30 = 33 are asked"),
        (
            {"worker": {"gpus": 33}},
            "a worker asks for 33 shares, but a node of pool 'dev' (a4-highgpu-8g) has 32 shares",
        ),
    ],
)
def test_an_engineer_that_does_not_fit_is_refused_before_anything_is_registered(
    values: dict[str, Any], message: str
) -> None:
    recorded: list[Any] = []

    async def program() -> None:
        try:
            await engineer("alice", engineer_settings(**values), None)
        except SettingsError as error:
            recorded.append(str(error))

    recorder = run(program, "alice", {"organization/berth/lab": lab_outputs()})
    assert message in recorded[0]
    assert [each.type for each in recorder.registrations] == ["pulumi:pulumi:StackReference"]


def test_an_environment_that_was_not_made_is_named_with_the_command_that_makes_it() -> None:
    recorded: list[str] = []

    async def program() -> None:
        try:
            await engineer("alice", engineer_settings(), None)
        except pulumi.RunError as error:
            recorded.append(str(error))

    run(program, "alice", {})
    assert recorded == ["environment 'lab' has no output `environment`; make it first: pulumi up -s lab"]


def test_an_engineers_program_imports_no_pulumi_gcp() -> None:
    async def imported() -> str:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            "import stacks.program, stacks.engineer, sys; print([m for m in sys.modules if m.startswith(('pulumi_gcp', 'lab'))])",
            stdout=asyncio.subprocess.PIPE,
            cwd=stack_file.project(),
        )
        output, _ = await process.communicate()
        return output.decode().strip()

    assert asyncio.run(imported()) == "[]"


def test_a_pool_with_managed_rdma_has_gke_make_its_networks() -> None:
    values = stack_file.read(stack_file.stack_path("lab")).settings["environment"]
    values["pools"]["train"]["rdma"] = "managed"
    settings = load("lab", {"environment": values}, None)
    assert isinstance(settings, EnvironmentSettings)
    recorder = run(lambda: environment("lab", settings), "lab")
    pool = next(each.inputs for each in recorder.of_type(NODE_POOL) if each.name == "train")
    assert pool["networkConfig"] == {"acceleratorNetworkProfile": "auto", "enablePrivateNodes": True}
    assert pool["nodeConfig"]["labels"]["cloud.google.com/gke-networking-dra-driver"] == "true"


@pytest.mark.parametrize(
    ("settings", "registered"),
    [
        ({}, {"chart": "kuberay-operator", "version": "1.6.2", "repo": "https://ray-project.github.io/kuberay-helm/"}),
        (
            {"chart": "oci://example.invalid/kuberay"},
            {"chart": "oci://example.invalid/kuberay", "version": "1.6.2", "repo": None},
        ),
        ({"chart": "./charts/kuberay"}, {"chart": "./charts/kuberay", "version": None, "repo": None}),
    ],
)
def test_a_chart_comes_from_a_repository_an_oci_reference_or_a_folder(
    settings: dict[str, Any], registered: dict[str, Any]
) -> None:
    values = stack_file.read(stack_file.stack_path("lab")).settings["environment"]
    values["operators"]["kuberay"] = settings
    loaded = load("lab", {"environment": values}, None)
    assert isinstance(loaded, EnvironmentSettings)
    recorder = run(lambda: environment("lab", loaded), "lab")
    release = next(
        each.inputs
        for each in recorder.registrations
        if each.inputs.get("name") == "kuberay-operator" and "chart" in each.inputs
    )
    found = {
        "chart": release["chart"],
        "version": release.get("version"),
        "repo": (release.get("repositoryOpts") or {}).get("repo"),
    }
    assert found == registered
