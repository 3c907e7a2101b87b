"""Effects of changes of RayClusters, operators and fabric on running workloads."""

from __future__ import annotations

from typing import Any

import pytest

from berth.components.operators import GibSettings, gib
from tests.unit.components.plan.plans import (
    POOL,
    RAY,
    RELEASE,
    Inputs,
    edited,
    effects,
    event,
    pool,
    ray,
    report,
    same,
    texts_of,
    who,
)

ALICE = ray("alice")
LESS = "; a group that stays with `workers: 0`, or with `max: 0` where it has bounds, ends its workers alone"
OTHERS = [edited(ray("zoe"), metadata__labels={"berth/engineer": "zoe", "berth/stack": "zoe"})]


# RayClusters


def ray_changes(new: Inputs, live: list[Inputs] | None = None) -> list[Any]:
    return effects(event("update", RAY, "alice", ALICE, new), same(POOL, "train", pool()), live=live)


def test_another_pod_template_restarts_the_berth() -> None:
    found = ray_changes(edited(ALICE, spec__headGroupSpec__template__spec__containers=[{"image": "ray:2"}]))
    assert texts_of(found) == [
        ("destroys", "berth alice restarts: KubeRay recreates all its pods, and what runs in them is lost")
    ]
    assert who(found) == [["berth alice (3 pods, 16 GPUs)"]]


def test_without_recreate_only_later_pods_are_other_ones() -> None:
    old = edited(ALICE, spec__upgradeStrategy=None)
    new = edited(old, spec__rayVersion="2.61.0")
    assert texts_of(effects(event("update", RAY, "alice", old, new))) == [
        ("harmless", "berth alice: only pods that are created later change")
    ]


def test_fewer_workers_disturb() -> None:
    found = ray_changes(edited(ALICE, spec__workerGroupSpecs__0__replicas=1, spec__workerGroupSpecs__0__maxReplicas=1))
    ((level, text),) = texts_of(found)
    assert level == "disturbs"
    assert text.startswith("berth alice: 2 workers become 1;")


def test_more_workers_are_harmless() -> None:
    assert ray_changes(edited(ALICE, spec__workerGroupSpecs__0__replicas=3)) == []


def with_groups(**workers: int) -> Inputs:
    """ALICE with groups of workers by name."""
    (group,) = ALICE["spec"]["workerGroupSpecs"]
    specs = [edited(group, groupName=name, replicas=count, maxReplicas=count) for name, count in workers.items()]
    return edited(ALICE, spec__workerGroupSpecs=specs)


def group_changes(old: Inputs, new: Inputs) -> list[tuple[str, str]]:
    return texts_of(effects(event("update", RAY, "alice", old, new), same(POOL, "train", pool())))


def test_only_the_group_that_shrinks_loses_workers() -> None:
    ((level, text),) = group_changes(with_groups(cpu=2, gpu=2), with_groups(cpu=4, gpu=1))
    assert level == "disturbs"
    assert text.startswith("berth alice: 2 workers of group gpu become 1; Ray reruns the tasks")
    assert group_changes(with_groups(cpu=2, gpu=1), with_groups(cpu=3, gpu=1)) == []


@pytest.mark.parametrize(
    ("old", "new", "since", "less"),
    [
        ({"cpu": 1}, {"cpu": 1, "gpu": 1}, ", since worker group gpu is added", ""),
        (
            {"cpu": 1, "gpu": 1, "a4": 1},
            {"cpu": 1},
            ", since worker groups a4 and gpu are removed",
            LESS,
        ),
        (
            {"cpu": 1, "old": 1},
            {"cpu": 1, "new": 1},
            ", since worker group new is added and worker group old is removed",
            LESS,
        ),
    ],
)
def test_groups_that_come_or_go_restart_all(old: dict[str, int], new: dict[str, int], since: str, less: str) -> None:
    ((level, text),) = group_changes(with_groups(**old), with_groups(**new))
    assert level == "destroys"
    assert text == (f"berth alice restarts{since}: KubeRay recreates all its pods, and what runs in them is lost{less}")


def test_a_group_whose_pods_change_restarts_all_and_is_named() -> None:
    old = with_groups(cpu=1, gpu=1)
    containers = [{"resources": {"limits": {"nvidia.com/gpu": 4}}}]
    new = edited(old, spec__workerGroupSpecs__1__template__spec__containers=containers)
    ((_, text),) = group_changes(old, new)
    assert text.startswith("berth alice restarts, since worker group gpu is changed: KubeRay recreates all its pods")
    ((_, text),) = group_changes(old, edited(new, spec__workerGroupSpecs__0__rayStartParams={"num-gpus": "1"}))
    assert text.startswith("berth alice restarts: KubeRay recreates all its pods"), "an edit of all groups"
    ((_, text),) = group_changes(old, edited(old, spec__enableInTreeAutoscaling=True))
    assert text.startswith("berth alice restarts, since Ray's autoscaler comes or goes: KubeRay")


def test_a_suspended_cluster_loses_its_pods() -> None:
    ((level, text),) = texts_of(ray_changes(edited(ALICE, spec__suspend=True)))
    assert (level, text) == (
        "destroys",
        "berth alice is suspended: its pods are deleted, and what runs in them is lost",
    )


def test_a_suspended_cluster_has_no_pods_that_an_edit_reaches() -> None:
    old = edited(ALICE, spec__suspend=True)
    found = effects(event("update", RAY, "alice", old, edited(old, spec__rayVersion="2.61.0")))
    assert texts_of(found) == [("harmless", "berth alice has no pods that the change could reach")]


def test_labels_and_tolerations_reach_no_running_pod() -> None:
    new = edited(ALICE, spec__headGroupSpec__template__spec__tolerations=[{"operator": "Exists"}])
    assert ray_changes(edited(new, metadata__labels__team="x")) == []


def test_the_clusters_own_count_is_newer_than_the_states() -> None:
    found = effects(
        event("delete", RAY, "alice", ALICE, None), live=[edited(ALICE, spec__workerGroupSpecs__0__replicas=5)]
    )
    assert who(found) == [["berth alice (6 pods, 40 GPUs)"]]


# Helm releases


def operator(version: str = "v26.7.0", **values: Any) -> Inputs:
    return {"chart": "oci://registry/gpu-operator", "version": version, "values": values}


def operator_changes(old: Inputs, new: Inputs) -> list[Any]:
    served = pool(labels={"gke-no-default-nvidia-gpu-device-plugin": "true", "nvidia.com/device-plugin.config": "any"})
    return effects(
        event("update", RELEASE, "gpu-operator", old, new), same(POOL, "train", served), same(RAY, "alice", ALICE)
    )


def test_another_driver_evicts_gpu_pods() -> None:
    found = operator_changes(
        operator(driver={"enabled": True, "version": "570"}), operator(driver={"enabled": True, "version": "580"})
    )
    assert texts_of(found)[0][0] == "destroys"
    assert "evicts the GPU pods of one node after the other and reloads it" in texts_of(found)[0][1]
    assert who(found)[0] == ["berth alice (2 pods, 16 shares of GPUs)"]


def test_another_operator_brings_its_own_driver() -> None:
    found = operator_changes(operator(driver={"enabled": True}), operator("v26.7.1", driver={"enabled": True}))
    assert [effect.level.word for effect in found] == ["destroys", "disturbs"]


def test_another_operator_without_a_driver_disturbs() -> None:
    found = operator_changes(operator(driver={"enabled": False}), operator("v26.7.1", driver={"enabled": False}))
    ((level, text),) = texts_of(found)
    assert (level, text.startswith("another version of the GPU Operator: its daemons restart")) == ("disturbs", True)


def test_another_config_of_the_device_plugin_disturbs_those_who_read_it() -> None:
    old, new = ({"config": {"name": name, "data": {"any": data}}} for name, data in (("a", "4"), ("b", "2")))
    ((level, text),) = texts_of(operator_changes(operator(devicePlugin=old), operator(devicePlugin=new)))
    assert level == "disturbs"
    assert text.startswith("pool train: sharing profile 'any' changes; the device plugin restarts on its nodes")


def test_on_a_cluster_that_another_made_those_with_gpus_are_reached() -> None:
    """No node pool is the stack's: who is there is texts_of by the cluster alone."""
    old, new = (operator(driver={"enabled": True, "version": version}) for version in ("570", "580"))
    found = effects(
        event("update", RELEASE, "gpu-operator", old, new), live=[*OTHERS, ray("idle", pool="slow", gpus=0)]
    )
    assert texts_of(found)[0][0] == "destroys"
    assert who(found)[0] == ["berth zoe (2 pods, 16 GPUs)"]


def test_operators_that_go() -> None:
    found = effects(event("delete", RELEASE, "gpu-operator", operator(), None))
    found += effects(event("delete", RELEASE, "kuberay", {"chart": "kuberay-operator"}, None))
    found += effects(event("delete", RELEASE, "x", {"chart": "x"}, None))
    assert {effect.level.word for effect in found} == {"destroys"}


def test_another_kuberay_leaves_clusters_running() -> None:
    old = {"chart": "kuberay-operator", "version": "1.6.2"}
    ((level, text),) = texts_of(effects(event("update", RELEASE, "kuberay", old, old | {"version": "1.7.0"})))
    assert level == "disturbs"
    assert "RayClusters keep running" in text


# The fabric

WITH_NICS = pool() | {"networkConfig": {"additionalNodeNetworkConfigs": [{"network": "rdma"}]}}
CLAIMED = pool(labels={"cloud.google.com/gke-nvidia-gpu-dra-driver": "true"})
DAEMON_SET = "kubernetes:apps/v1:DaemonSet"


@pytest.mark.parametrize(
    ("chart", "its_pool", "devices"),
    [
        ("oci://registry.k8s.io/networking/charts/dranet", WITH_NICS, "NICs"),
        ("./charts/dra-driver-nvidia-gpu", CLAIMED, "GPUs"),
    ],
)
def test_another_driver_of_devices_keeps_them_with_those_who_have_them(
    chart: str, its_pool: Inputs, devices: str
) -> None:
    old = {"chart": chart, "version": "1.4.0"}
    there = (same(POOL, "train", its_pool), same(POOL, "other", pool("other")), same(RAY, "alice", ALICE))
    found = effects(event("update", RELEASE, "x", old, old | {"version": "1.4.1"}), *there)
    assert [(level, f"running pods keep their {devices}" in text) for level, text in texts_of(found)] == [
        ("disturbs", True)
    ]
    assert who(found) == [["berth alice (2 pods, 16 GPUs)"]]
    found = effects(event("delete", RELEASE, "x", old, None), *there)
    assert [(level, "those that end hang" in text) for level, text in texts_of(found)] == [("destroys", True)]
    assert effects(event("update", RELEASE, "x", old, old | {"timeout": 900}), *there) == []


def test_another_plugin_for_nccl_is_written_over_the_one_that_runs() -> None:
    old = {"metadata": {"name": "nccl-rdma-installer"}, "spec": {"template": {"image": "v1.1.1"}}}
    new = edited(old, spec__template__image="v1.1.2")
    there = (same(POOL, "train", WITH_NICS), same(RAY, "alice", ALICE))
    found = effects(event("update", DAEMON_SET, "x", old, new), *there)
    assert [(level, "change it while none runs" in text) for level, text in texts_of(found)] == [("destroys", True)]
    assert who(found) == [["berth alice (2 pods, 16 GPUs)"]]
    idle = effects(event("update", DAEMON_SET, "x", old, new), same(POOL, "train", WITH_NICS), live=[])
    assert [effect.level.word for effect in idle] == ["disturbs"]
    assert effects(event("update", DAEMON_SET, "x", old, edited(old, metadata__labels={"a": "b"})), *there) == []
    gone = effects(event("delete", DAEMON_SET, "x", old, None), *there)
    assert [effect.level.word for effect in gone] == ["disturbs"]


# Everything else


@pytest.mark.parametrize(
    ("operation", "of_type", "level"),
    [
        ("delete", "kubernetes:core/v1:ConfigMap", None),
        ("replace", "kubernetes:batch/v1:Job", None),
        ("delete", "kubernetes:core/v1:Namespace", "destroys"),
        ("replace", "kubernetes:core/v1:Namespace", "destroys"),
        ("delete", "kubernetes:core/v1:PersistentVolumeClaim", "destroys"),
        ("delete", "kubernetes:networking.k8s.io/v1:NetworkPolicy", "disturbs"),
        ("replace", "gcp:compute/firewall:Firewall", "disturbs"),
        ("delete", "gcp:compute/routerNat:RouterNat", "disturbs"),
        ("replace", "gcp:compute/network:Network", "destroys"),
        ("replace", "gcp:compute/subnetwork:Subnetwork", "destroys"),
        ("delete", "gcp:storage/bucket:Bucket", "destroys"),
        ("update", "gcp:storage/bucket:Bucket", "disturbs"),
        ("update", "kubernetes:core/v1:ConfigMap", None),
        ("update", "kubernetes:core/v1:Namespace", None),
        ("update", "kubernetes:apps/v1:DaemonSet", "disturbs"),
        ("delete", "kubernetes:resource.k8s.io/v1:DeviceClass", "disturbs"),
        ("replace", "kubernetes:resource.k8s.io/v1beta1:DeviceClass", "disturbs"),
        ("delete", "kubernetes:resource.k8s.io/v1beta2:ResourceClaimTemplate", "disturbs"),
        ("update", "kubernetes:resource.k8s.io/v1:DeviceClass", None),
        ("create", "gcp:storage/bucket:Bucket", None),
    ],
)
def test_by_type(operation: str, of_type: str, level: str | None) -> None:
    old = None if operation == "create" else {"name": "x"}
    new = None if operation == "delete" else {"name": "y"}
    found = effects(event(operation, of_type, "x", old, new))
    assert [effect.level.word for effect in found] == ([level] if level else [])


def claim(size: str, storage_class: str = "") -> dict[str, Any]:
    named = {"storageClassName": storage_class} if storage_class else {}
    return {
        "metadata": {"name": "home", "namespace": "berth-alice"},
        "spec": {"resources": {"requests": {"storage": size}}, **named},
    }


@pytest.mark.parametrize(
    ("operation", "new", "retained", "words"),
    [
        ("update", claim("60Gi"), False, ""),
        ("replace", claim("60Gi"), True, ""),
        ("replace", claim("60Gi"), False, "the data on the volume may be lost with it"),
        ("update", claim("40Gi"), True, "Kubernetes refuses a smaller disk"),
        ("replace", claim("50Gi", "premium-rwo"), True, "Kubernetes refuses another StorageClass"),
        ("delete", None, True, "berth-alice/home stays, with what is in it"),
    ],
)
def test_a_claim_on_a_disk(operation: str, new: dict[str, Any] | None, retained: bool, words: str) -> None:  # noqa: FBT001
    happening = event(operation, "kubernetes:core/v1:PersistentVolumeClaim", "home", claim("50Gi"), new)
    happening["resourcePreEvent"]["metadata"]["old"]["retainOnDelete"] = retained
    found = effects(happening)
    assert [words in effect.text for effect in found] == ([True] if words else [])


def test_registrations_of_providers_and_components_are_nothing() -> None:
    provider = event("replace", "pulumi:providers:kubernetes", "cluster", {}, {})
    component = event("delete", "berth:index:Berth", "alice", {}, None, custom=False)
    assert report(provider, component).verdict == "nothing"


# Upgrades of installed programs

LEAVES = "the NCCL that the installer put there before stays"


def installer(script: str) -> Inputs:
    manifest: dict[str, Any] = gib.installer(GibSettings(), ["train"])
    manifest["spec"]["template"]["spec"]["initContainers"][0]["args"] = [script]
    return manifest


@pytest.mark.parametrize(
    ("before", "after", "leaves"), [("--install-nccl", "", True), ("", "cp", False), ("", "--install-nccl", False)]
)
def test_an_installer_of_gib_that_installs_no_nccl_any_more_leaves_the_old_one(
    before: str, after: str, *, leaves: bool
) -> None:
    step = event("update", "kubernetes:apps/v1:DaemonSet", "nccl-rdma-installer", installer(before), installer(after))
    (found,) = effects(step)
    assert (LEAVES in found.text) is leaves
