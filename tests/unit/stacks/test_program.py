import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pulumi
import pytest

from berth.cli.verbs.doctor.kubernetes.rights import rights_for
from berth.components.gke.kubeconfig import gke_kubeconfig
from berth.stacks.files import stack_file
from berth.stacks.load.stack import Environment, SettingsError, load_stack
from berth.stacks.program import main
from berth.stacks.program.engineer import register_engineer
from berth.stacks.program.environment import register_environment
from tests.unit import serving
from tests.unit.cases import table
from tests.unit.loaded import engineer_of, environment_of
from tests.unit.recording import Recorder, run

RAY_CLUSTER = "kubernetes:ray.io/v1:RayCluster"
NAMESPACE = "kubernetes:core/v1:Namespace"
RELEASE = "kubernetes:helm.sh/v3:Release"
APART = [
    "kubernetes:networking.k8s.io/v1:NetworkPolicy",
    "kubernetes:core/v1:ResourceQuota",
    "kubernetes:core/v1:LimitRange",
]
NODE_POOL = "gcp:container/nodePool:NodePool"


def values_of_lab() -> dict[str, Any]:
    values: dict[str, Any] = stack_file.file_of_stack("lab").settings["environment"]
    return values


def shipped(stack: str) -> Environment:
    loaded = load_stack(stack)
    assert isinstance(loaded, Environment)
    return loaded


def lab_with_managed_rdma() -> Environment:
    """The lab, but its NICs are GKE's to hand out."""
    values = values_of_lab()
    for pool in ("train", "bench"):
        values["pools"][pool]["rdma"] = "managed"
    del values["operators"]["dranet"]
    return environment_of("lab", values)


def lab_outputs() -> dict[str, Any]:
    return {
        "environment": shipped("lab")
        .contract()
        .model_dump(mode="json", by_alias=True, exclude_none=True),
        "kubeconfig": gke_kubeconfig("lab", "127.0.0.1:1", "Y2E="),
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
    recorder = run(lambda: register_environment(shipped("lab")), "lab")
    assert {resource.name for resource in recorder.of_type(NODE_POOL)} == {
        "bench",
        "cpu",
        "dev",
        "train",
    }
    assert {resource.name for resource in recorder.of_type(RAY_CLUSTER)} == {
        "bob",
        "carol",
        "train",
    }
    assert {resource.inputs["metadata"]["name"] for resource in recorder.of_type(NAMESPACE)} == {
        "berth-bob",
        "berth-carol",
        "berth-train",
        "gpu-operator",
        "kuberay-operator",
    }
    releases = {resource.name: resource for resource in recorder.of_type(RELEASE)}
    assert releases.keys() == {"dranet", "gpu-operator", "kuberay-operator"}
    release = releases["kuberay-operator"]
    assert release.inputs["chart"] == "./.lab/charts/kuberay-operator"
    assert release.inputs["values"] == {"image": {"tag": "v1.6.2"}}
    assert "disableOpenapiValidation" not in release.inputs
    assert releases["gpu-operator"].inputs["disableOpenapiValidation"] is True, (
        "as NVIDIA's guide upgrades it"
    )
    (provider,) = recorder.of_type("pulumi:providers:kubernetes")
    assert "gke-gcloud-auth-plugin" in provider.inputs["kubeconfig"]["value"], "and it is a secret"
    assert provider.inputs["clusterIdentifier"] == "lab-id"


@pytest.mark.parametrize("stack", ["lab", "prod"])
def test_who_previews_an_environment_reads_all_that_it_applies_and_no_secret(stack: str) -> None:
    values = stack_file.file_of_stack(stack).settings["environment"] | {
        "previewers": ["ci@example.com"],
        "keeper": {},
    }
    recorder = run(lambda: register_environment(environment_of(stack, values)), stack)
    applied = [item for item in recorder.registrations if item.type.startswith("kubernetes:")]
    names = [
        item.type.rpartition(":")[2] for item in applied if item.name == f"berth-previewers-{stack}"
    ]
    assert names == [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ClusterRole",
        "ClusterRoleBinding",
    ]
    (role,) = [
        item.inputs
        for item in applied
        if item.name == f"berth-previewers-{stack}" and "rules" in item.inputs
    ]
    may = {
        (verb, group, resource)
        for rule in role["rules"]
        for verb in rule["verbs"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    rights = rights_for({item.type for item in applied} - {RELEASE})
    read = [("get", group, resource) for verb, group, resource in rights if verb == "create"]
    assert len(read) > 15
    assert set(read) - may == set()
    assert {resource for _, _, resource in may if resource == "secrets" or "/" in resource} == set()
    assert {verb for verb, _, _ in may} == {"get", "list", "watch", "create", "patch"}
    assert [
        group
        for verb, group, _ in may
        if verb == "patch" and group.startswith(("rbac.", "admissionreg"))
    ] == []


def test_an_engineers_stack_registers_one_berth_and_nothing_of_the_cloud() -> None:
    recorder = run(
        lambda: register_engineer(engineer_of("alice", workers=2)),
        "alice",
        {"organization/berth/lab": lab_outputs()},
    )
    custom = [
        resource.type
        for resource in recorder.registrations
        if not resource.type.startswith("berth:")
    ]
    assert sorted(custom) == sorted(
        [
            "pulumi:pulumi:StackReference",
            "pulumi:providers:kubernetes",
            NAMESPACE,
            *APART,
            RAY_CLUSTER,
        ]
    )
    (cluster,) = recorder.of_type(RAY_CLUSTER)
    assert cluster.inputs["spec"]["workerGroupSpecs"][0]["replicas"] == 2
    assert cluster.inputs["metadata"]["labels"] == {
        "app.kubernetes.io/managed-by": "berth",
        "berth/environment": "lab",
        "berth/stack": "alice",
        "berth/engineer": "alice",
    }


def test_the_admins_half_of_a_berth_has_everything_but_the_raycluster() -> None:
    half = engineer_of(
        "alice-isolation", name="alice", part="isolation", access={"users": ["alice@example.com"]}
    )
    recorder = run(
        lambda: register_engineer(half),
        "alice-isolation",
        {"organization/berth/lab": lab_outputs()},
    )
    objects = [
        resource.inputs
        for resource in recorder.registrations
        if resource.type.startswith("kubernetes:")
    ]
    roles = ["berth-owner", "berth-user"]
    expected = [("Role", role) for role in roles] + [("RoleBinding", role) for role in roles]
    expected += [("Namespace", "berth-alice"), ("ConfigMap", "berth-environment")]
    found = [(manifest["kind"], manifest["metadata"]["name"]) for manifest in objects]
    assert set(expected) <= set(found)
    assert {kind for kind, _ in found} - {kind for kind, _ in expected} == {
        "NetworkPolicy",
        "ResourceQuota",
        "LimitRange",
    }
    (contract,) = [
        manifest["data"]["environment"] for manifest in objects if manifest["kind"] == "ConfigMap"
    ]
    assert json.loads(contract)["name"] == "lab"


@pytest.mark.parametrize(("values", "message"), table(__file__, "program_misfits.yaml"))
def test_an_engineer_that_does_not_fit_is_refused_before_anything_is_registered(
    values: dict[str, Any], message: str
) -> None:
    recorded: list[Any] = []

    async def program() -> None:
        try:
            await register_engineer(engineer_of("alice", **values))
        except SettingsError as error:
            recorded.append(str(error))

    recorder = run(program, "alice", {"organization/berth/lab": lab_outputs()})
    assert message in recorded[0]
    assert [resource.type for resource in recorder.registrations] == [
        "pulumi:pulumi:StackReference"
    ]


def test_an_environment_that_was_not_made_is_one_error_with_the_command_that_makes_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    recorded: list[str] = []
    monkeypatch.setattr(pulumi.log, "error", recorded.append)
    monkeypatch.setattr(
        main, "get_config_env", lambda: {"berth:engineer": '{"environment": "lab"}'}
    )

    async def program() -> None:
        try:
            await main.program()
        except SystemExit as end:
            recorded.append(f"exit code {end.code}")

    run(program, "nobody", {})
    assert recorded == [
        "environment 'lab' has no output `environment`; make it first: berth up -s lab",
        # Any other code is an error of its own to the engine.
        "exit code 32",
    ]


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    path = tmp_path / "kubeconfig"
    path.write_text(serving.kubeconfig("https://10.0.0.1:6443", {"token": "some-token"}))
    return path


def on_existing(kubeconfig: Path, **kuberay: str) -> Environment:
    """The lab's environment on a cluster that is there already."""
    values = values_of_lab()
    for key in ("project", "zone"):
        del values[key]
    values["cluster"] = {"existing": {"kubeconfig": str(kubeconfig)}}
    values["operators"]["kuberay"] |= kuberay
    # Nodes of a cluster that berth did not make have no labels by which the GPU Operator would
    # share their GPUs.
    del values["sharing"], values["pools"]["dev"]["sharing"]
    for pool in values["pools"].values():
        pool.pop("capacity", None)  # that is of nodes which berth makes
    return environment_of("lab", values)


def test_an_existing_cluster_gets_operators_and_berths_and_nothing_of_google(
    kubeconfig: Path,
) -> None:
    recorder = run(lambda: register_environment(on_existing(kubeconfig)), "lab")
    assert [
        resource.type
        for resource in recorder.registrations
        if "gcp" in resource.type or "gke" in resource.type
    ] == []
    assert {resource.name for resource in recorder.of_type(RAY_CLUSTER)} == {
        "bob",
        "carol",
        "train",
    }
    (provider,) = recorder.of_type("pulumi:providers:kubernetes")
    assert provider.inputs["clusterIdentifier"] == "https://10.0.0.1:6443"
    assert (provider.inputs["kubeconfig"], provider.inputs["context"]) == (str(kubeconfig), "it")
    assert "some-token" not in str(recorder.registrations), "no credential is in the stack's state"


OURS = {"project": "berth", "stack": "lab", "owner": "cluster-id", "id": "https://10.0.0.1:6443"}


@pytest.mark.parametrize(
    ("mark", "kept"),
    [(OURS, True), (OURS | {"id": None}, False), (OURS | {"stack": "other"}, False), ({}, False)],
)
def test_another_address_of_the_same_cluster_is_no_other_cluster(
    kubeconfig: Path, mark: dict[str, str | None], *, kept: bool
) -> None:
    data = {key: value for key, value in mark.items() if value}

    def handle(handler: serving.Handler) -> None:
        kinds = ["deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"]
        answers: dict[str, Any] = {
            "/apis/resource.k8s.io": {"versions": [{"version": "v1"}]},
            "/apis/resource.k8s.io/v1": {"resources": [{"name": kind} for kind in kinds]},
            "/api/v1/namespaces/kube-system/configmaps/berth-cluster": {"data": data}
            if data
            else None,
        }
        found = answers.get(handler.path)
        serving.answer(handler, found or {}, 200 if found else 404)

    recorder = Recorder()
    with serving.serving(handle) as address:
        kubeconfig.write_text(serving.kubeconfig(address))
        with suppress(SettingsError):  # another environment's mark
            recorder = run(
                lambda: register_environment(on_existing(kubeconfig)), "lab", recorder=recorder
            )
    (provider,) = recorder.of_type("pulumi:providers:kubernetes")
    assert provider.inputs["clusterIdentifier"] == (OURS["id"] if kept else address)
    marks = [
        item.inputs["data"]["id"] for item in recorder.registrations if item.name == "berth-cluster"
    ]
    assert marks in ([provider.inputs["clusterIdentifier"]], [])


def test_an_operator_that_is_there_is_refused_before_anything_is_registered(
    kubeconfig: Path,
) -> None:
    metadata = {"name": "ray", "namespace": "ray"}
    spec = {"template": {"spec": {"containers": [{"image": "quay.io/kuberay/operator:v1.6.2"}]}}}

    def handle(handler: serving.Handler) -> None:
        items = [{"metadata": metadata, "spec": spec}] if "/deployments" in handler.path else []
        serving.answer(handler, {"items": items, "metadata": {}}, 200 if items else 404)

    recorder = Recorder()
    with serving.serving(handle) as address:
        kubeconfig.write_text(serving.kubeconfig(address))
        with pytest.raises(SettingsError, match="kubectl delete deployment ray --namespace=ray"):
            run(lambda: register_environment(on_existing(kubeconfig)), "lab", recorder=recorder)
    assert recorder.registrations == []


@pytest.mark.parametrize("source", ["present", "addon"])
def test_an_operator_that_others_bring_is_not_installed(source: str) -> None:
    values = values_of_lab()
    values["operators"]["kuberay"] = {"source": source}
    recorder = run(lambda: register_environment(environment_of("lab", values)), "lab")
    assert "kuberay-operator" not in {resource.name for resource in recorder.registrations}
    assert {resource.name for resource in recorder.of_type(RAY_CLUSTER)} == {
        "bob",
        "carol",
        "train",
    }


def test_a_version_that_the_channel_gave_and_that_is_too_old_is_refused_before_any_pool() -> None:
    loaded = lab_with_managed_rdma()
    recorded: list[str] = []

    async def program() -> None:
        try:
            await register_environment(loaded)
        except pulumi.RunError as error:
            recorded.append(str(error))

    recorder = run(program, "lab", outputs={"masterVersion": "1.33.4-gke.1000000"})
    assert len(recorded) == 1
    assert recorded[0].startswith(
        "the cluster was created, its pools were not: GKE 1.33.4-gke.1000000 is too old: managed"
    )
    assert recorder.of_type(NODE_POOL) == []


@pytest.mark.parametrize(("settings", "registered"), table(__file__, "program_charts.yaml"))
def test_a_chart_comes_from_a_repository_an_oci_reference_or_a_folder(
    settings: dict[str, Any], registered: dict[str, Any]
) -> None:
    values = values_of_lab()
    values["operators"]["kuberay"] = settings
    recorder = run(lambda: register_environment(environment_of("lab", values)), "lab")
    release = next(
        resource.inputs
        for resource in recorder.registrations
        if resource.inputs.get("name") == "kuberay-operator" and "chart" in resource.inputs
    )
    found = {
        "chart": release["chart"],
        "version": release.get("version"),
        "repo": (release.get("repositoryOpts") or {}).get("repo"),
    }
    assert found == registered
