"""Objects by which workers claim devices: ResourceClaimTemplates, a class of NICs, a ComputeDomain.

A template cannot be changed, and the kubernetes provider plans a change as an update that then
fails. Its name comes from its content: other content is another template, the RayCluster follows to
it, and the old one is deleted after.

In a ComputeDomain NVLink joins workers on several nodes. NVIDIA's DRA driver makes the template of
its claims, with its name, and starts a daemon on each node where a pod claims it
(https://github.com/kubernetes-sigs/dra-driver-nvidia-gpu, cmd/compute-domain-controller). A node
has one channel, so that a worker takes a whole node.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, NotRequired, TypedDict

from berth.components.core.manifest import MANAGED_BY, Manifest, short_hash, unawaited
from berth.components.fabric.settings import Worker
from berth.components.hardware.names import (
    DRANET,
    DRANET_DRIVER,
    GPU,
    MANAGED_RDMA,
    PCIE_ROOT,
    ResourceApi,
)
from berth.components.sharing import Pool

_RDMA = f'device.attributes["{DRANET_DRIVER}"].rdma == true'

NVLINK = "nvlink"
"""Name of the ComputeDomain, of the template of claims, and of the claim in a pod."""


class ExactDevices(TypedDict):
    """Devices that a request asks for, as resource.k8s.io/v1 has them."""

    deviceClassName: str
    count: int
    selectors: NotRequired[list[dict[str, dict[str, str]]]]


class ClaimRequest(TypedDict):
    """Request of a claim, as resource.k8s.io/v1 has it."""

    name: str
    exactly: ExactDevices


@dataclass(frozen=True)
class WorkerClaim:
    """Claim of one worker pod."""

    name: str
    kind: str
    """Prefix of the template's name: `8-gpu-nic`."""
    requests: list[ClaimRequest]
    """Requests for devices, as v1 has them."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Names of requests whose devices must be on one PCIe root."""
    gpus: int = 0
    """Number of GPUs, or MIG instances, among the devices."""

    def spec(self, api: ResourceApi) -> dict[str, Any]:
        """Return the claim's spec in a version of resource.k8s.io.

        v1beta1 has no `exactly` (https://pkg.go.dev/k8s.io/api/resource/v1beta1#ClaimRequest).
        """
        devices: dict[str, Any] = {"requests": self.requests}
        if api == "v1beta1":
            devices["requests"] = [
                {"name": request["name"], **request["exactly"]} for request in self.requests
            ]
        if self.pairs:
            devices["constraints"] = [
                {"requests": list(pair), "matchAttribute": PCIE_ROOT} for pair in self.pairs
            ]
        return {"devices": devices}

    @property
    def devices(self) -> dict[str, int]:
        """Number of devices that the claim takes, by device class."""
        counts: Counter[str] = Counter()
        for request in self.requests:
            counts[request["exactly"]["deviceClassName"]] += request["exactly"]["count"]
        return dict(counts)

    @property
    def template_name(self) -> str:
        """Name of the template: its kind, and a hash of its content, the same in all versions."""
        return f"{self.kind}-{short_hash(self.spec('v1'))}"


def claim_of(worker: Worker, pool: Pool) -> WorkerClaim | None:
    """Return the claim of one worker pod on a pool; None for a pod that claims nothing."""
    gpus = worker.gpus if pool.settings.by_dra else 0
    if gpus and worker.nics:
        return _pairs(gpus, pool)
    if gpus:
        name, device_class, selector = pool.profile.facts.device
        kind = f"{_amount(gpus, pool.per_node)}-{name}"
        requests = [_request(name, device_class, gpus, selector)]
        return WorkerClaim("gpus", kind, requests, gpus=gpus)
    if worker.nics:
        kind = f"{_amount(worker.nics, pool.settings.nics)}-nic"
        return WorkerClaim("nics", kind, [_nic("nic", worker.nics, pool)])
    return None


def claim_template(
    claim: WorkerClaim, api: ResourceApi, namespace: str, labels: dict[str, str]
) -> Manifest:
    """Return the template from which each worker pod in a namespace gets a claim of its own."""
    return {
        "apiVersion": f"resource.k8s.io/{api}",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": claim.template_name, "namespace": namespace, "labels": labels},
        "spec": {"spec": claim.spec(api)},
    }


def dranet_class(api: ResourceApi) -> Manifest:
    """Return the class of the RDMA NICs of DraNet, which publishes all interfaces that it finds.

    GKE's managed DRANET brings a class of its own, and so does NVIDIA's DRA driver; DraNet brings
    none (https://github.com/kubernetes-sigs/dranet, site/content/docs/user/gke-rdma.md).
    """
    expression = f'device.driver == "{DRANET_DRIVER}" && {_RDMA}'
    return {
        "apiVersion": f"resource.k8s.io/{api}",
        "kind": "DeviceClass",
        "metadata": {"name": DRANET, "labels": dict(MANAGED_BY)},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def joined_by_nvlink(worker: Worker, pool: Pool) -> bool:
    """Return whether NVLink joins a worker with those on other nodes: one that takes all NICs."""
    return pool.settings.nvlink and worker.nics == pool.settings.nics


def compute_domain(namespace: str, labels: dict[str, str]) -> Manifest:
    """Return the domain of a namespace; workers join and leave it, so it has no number of nodes."""
    domain = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomain",
        "metadata": {"name": NVLINK, "namespace": namespace, "labels": labels},
        "spec": {"numNodes": 0, "channel": {"resourceClaimTemplate": {"name": NVLINK}}},
    }
    return unawaited(domain)


def _pairs(count: int, pool: Pool) -> WorkerClaim:
    """Return a claim with a constraint a pair: one over all would force all on one PCIe root."""
    requests: list[ClaimRequest] = []
    pairs: list[tuple[str, str]] = []
    for number in range(count):
        gpu = _request(f"gpu-{number}", GPU, 1)
        nic = _nic(f"nic-{number}", 1, pool)
        requests += [gpu, nic]
        pairs.append((gpu["name"], nic["name"]))
    kind = f"{_amount(count, pool.per_node)}-gpu-nic"
    return WorkerClaim("gpus-and-nics", kind, requests, tuple(pairs), gpus=count)


def _nic(name: str, count: int, pool: Pool) -> ClaimRequest:
    if pool.settings.rdma == "managed":
        return _request(name, MANAGED_RDMA, count)
    # The class of an older berth, or of another installation, has the gVNICs too.
    return _request(name, DRANET, count, _RDMA)


def _request(name: str, device_class: str, count: int, expression: str = "") -> ClaimRequest:
    """Return a request for devices of a class, of those that a CEL expression selects."""
    devices: ExactDevices = {"deviceClassName": device_class, "count": count}
    if expression:
        devices["selectors"] = [{"cel": {"expression": expression}}]
    return {"name": name, "exactly": devices}


def _amount(count: int, whole: int) -> str:
    if count == whole:
        return "all"
    return "one" if count == 1 else str(count)
