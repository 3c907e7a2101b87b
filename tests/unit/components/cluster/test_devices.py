"""Holders of devices, and why a claim gets none, in every version of resource.k8s.io."""

from typing import Any

import pytest

from berth.components.cluster.devices import why_without_devices
from berth.components.cluster.inventory import Inventory, inventory_of_objects

POOL = {"cloud.google.com/gke-nodepool": "train"}
RDMA = 'device.attributes["dra.net"].rdma == true'
CLASSES = {
    "dranet": 'device.driver == "dra.net"',
    "gpu.nvidia.com": (
        "device.driver == 'gpu.nvidia.com' && device.attributes['gpu.nvidia.com'].type == 'gpu'"
    ),
}


def node(name: str, **labels: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": POOL | labels}}


def published(
    name: str,
    driver: str,
    attributes: dict[str, Any],
    count: int,
    *,
    generation: int = 1,
    api: str = "v1",
) -> dict[str, Any]:
    devices = []
    for number in range(count):
        content = {"attributes": attributes}
        devices.append(
            {"name": f"device-{number}", **({"basic": content} if api == "v1beta1" else content)}
        )
    pool = {"name": name, "generation": generation}
    return {"spec": {"driver": driver, "nodeName": name, "pool": pool, "devices": devices}}


def nics(name: str, count: int = 8, *, generation: int = 1, api: str = "v1") -> dict[str, Any]:
    return published(
        name, "dra.net", {"dra.net/rdma": {"bool": True}}, count, generation=generation, api=api
    )


def claim(
    name: str,
    count: int | None = 8,
    *,
    held: tuple[str, int] | None = None,
    owner: str = "train",
    device_class: str = "dranet",
    api: str = "v1",
    first: int = 0,
) -> dict[str, Any]:
    expected: dict[str, Any] = {
        "deviceClassName": device_class,
        "selectors": [{"cel": {"expression": RDMA}}],
    }
    if device_class != "dranet":
        del expected["selectors"]
    expected |= (
        {"allocationMode": "All"}
        if count is None
        else {"allocationMode": "ExactCount", "count": count}
    )
    request = {"name": "nic", **(expected if api == "v1beta1" else {"exactly": expected})}
    status: dict[str, Any] = {}
    if held:
        driver = "dra.net" if device_class == "dranet" else device_class
        results = [
            {"driver": driver, "pool": held[0], "device": f"device-{number}"}
            for number in range(first, first + held[1])
        ]
        status = {
            "allocation": {"devices": {"results": results}},
            "reservedFor": [{"resource": "pods", "name": name}],
        }
    metadata = {"name": f"{name}-claim", "namespace": f"berth-{owner}"}
    return {"metadata": metadata, "spec": {"devices": {"requests": [request]}}, "status": status}


def pod(name: str = "waits", owner: str = "train", *, bound: bool = True) -> dict[str, Any]:
    statuses = [{"name": "nics", "resourceClaimName": f"{name}-claim"}] if bound else []
    return {
        "metadata": {"name": name, "namespace": f"berth-{owner}"},
        "spec": {
            "nodeSelector": POOL,
            "resourceClaims": [{"name": "nics", "resourceClaimTemplateName": "all-nic"}],
        },
        "status": {"resourceClaimStatuses": statuses},
    }


def seen(slices: list[Any], claims: list[Any], classes: dict[str, str] | None = None) -> Inventory:
    created = [
        {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}
        for name, expression in (CLASSES if classes is None else classes).items()
    ]
    return inventory_of_objects(
        slices, claims, created, [{"metadata": {"namespace": "berth-train", "name": "all-nic"}}]
    )


@pytest.mark.parametrize("api", ["v1", "v1beta2", "v1beta1"])
def test_who_holds_the_nics_is_said_node_by_node(api: str) -> None:
    claims = [
        claim("waits", api=api),
        claim("one", held=("a", 8), api=api),
        claim("two", 6, held=("b", 6), owner="alice", api=api),
    ]
    found = seen([nics("a", api=api), nics("b", api=api)], claims)
    assert (
        why_without_devices(pod(), found, [node("a"), node("b")])
        == "it wants 8 NICs; node a: 8 of 8 held by train (pod one); node b: 6 of 8 held by alice"
        " (pod two), 2 free"
    )


def test_a_pod_that_has_its_devices_is_not_spoken_of() -> None:
    assert (
        why_without_devices(
            pod("one"), seen([nics("a")], [claim("one", held=("a", 8))]), [node("a")]
        )
        == ""
    )


@pytest.mark.parametrize(
    ("labels", "where"),
    [
        ({}, "DraNet does not run there (kubectl get pods -A -l k8s-app=dranet -o wide)"),
        (
            {"cloud.google.com/gke-networking-dra-driver": "true"},
            "-n gke-managed-networking-dra-driver",
        ),
    ],
)
def test_nodes_that_publish_nothing_are_said_with_where_to_look(
    labels: dict[str, str], where: str
) -> None:
    report = why_without_devices(
        pod(), seen([nics("elsewhere")], [claim("waits")]), [node("a", **labels)]
    )
    assert report.startswith("it wants 8 NICs, but no node of pool train has published any NICs: ")
    assert where in report
    # An ordinary interface is no NIC that could serve.
    plain = published("a", "dra.net", {"dra.net/rdma": {"bool": False}}, 1)
    assert "has published any NICs" in why_without_devices(
        pod(), seen([plain], [claim("waits")]), [node("a", **labels)]
    )


def test_without_a_node_the_autoscaler_knows_better() -> None:
    assert why_without_devices(pod(), seen([], [claim("waits")]), []) == ""


def test_what_is_missing_is_said_with_who_makes_it() -> None:
    found = seen([nics("a")], [claim("waits")], classes={})
    assert (
        why_without_devices(pod(), found, [node("a")])
        == "it claims devices of class dranet, but there is no such DeviceClass: `berth up` of the"
        " environment creates it"
    )
    gone = inventory_of_objects([], [], [], [])
    assert (
        "its ResourceClaimTemplate all-nic is not in namespace berth-train"
        in why_without_devices(pod(bound=False), gone, [node("a")])
    )
    refused = why_without_devices(
        pod(bound=False), seen([], []), [node("a")], refused="exceeded quota"
    )
    assert refused == "its ResourceClaim could not be created: exceeded quota"
    assert why_without_devices(pod(bound=False), seen([], []), [node("a")]) == "", (
        "it may come at any moment"
    )


def test_all_devices_of_a_node_are_wanted_where_no_count_is_given() -> None:
    found = seen([nics("a")], [claim("waits", None), claim("one", 1, held=("a", 1))])
    assert (
        why_without_devices(pod(), found, [node("a")])
        == "it wants all NICs; node a: 1 of 8 held by train (pod one), 7 free"
    )


def test_pairs_are_counted_by_kind_and_free_ones_blamed_on_their_roots() -> None:
    both = claim("waits", 1)
    gpu = claim("gpu", 1, device_class="gpu.nvidia.com")
    kinds = [*both["spec"]["devices"]["requests"], *gpu["spec"]["devices"]["requests"]] * 2
    requests = [{**kind, "name": f"request-{number}"} for number, kind in enumerate(kinds)]
    both["spec"]["devices"] = {
        "requests": requests,
        "constraints": [{"matchAttribute": "resource.kubernetes.io/pcieRoot"}],
    }
    gpus = published("a", "gpu.nvidia.com", {"type": {"string": "gpu"}}, 8)
    holder = claim("one", 6, held=("a", 6), device_class="gpu.nvidia.com")
    report = why_without_devices(pod(), seen([nics("a"), gpus], [both, holder]), [node("a")])
    assert (
        report
        == "it wants 2 NICs and 2 GPUs; node a: none of 8 held (NICs), 6 of 8 held by train (pod"
        " one), 2 free (GPUs); where enough are free, devices that are free have no PCIe root in"
        " common, or the node lacks something else"
    )


def test_an_older_generation_of_a_pool_does_not_count_and_many_nodes_are_cut_short() -> None:
    nodes = [node(f"n{number}") for number in range(6)]
    slices = [nics(item["metadata"]["name"]) for item in nodes]
    found = seen([*slices, nics("n0", 3, generation=0)], [claim("waits", 9)])
    report = why_without_devices(pod(), found, nodes)
    assert report.startswith("it wants 9 NICs; node n0: none of 8 held; node n1")
    assert report.endswith("; and 2 more nodes")


def test_what_the_scheduler_cannot_bind_is_said_with_what_mends_it() -> None:
    stuck = pod("one")
    words = (
        'running PreBind plugin "DynamicResources": nil or empty request mappings, no update of pod'
    )
    stuck["status"]["conditions"] = [{"type": "PodScheduled", "status": "False", "message": words}]
    report = why_without_devices(
        stuck, seen([nics("a")], [claim("one", held=("a", 8))]), [node("a")]
    )
    assert "`gpuAllocation: dra` on its pool lets it claim its GPUs too" in report
