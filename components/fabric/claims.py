"""ResourceClaimTemplates of workers, the device class of DraNet's NICs, and the ComputeDomain.

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
from typing import Any

from berth.components.core.manifest import MANAGED_BY, Manifest, manifest_of, short_hash, unawaited
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


@dataclass(frozen=True)
class WorkerClaim:
    """Claim of one worker pod."""

    name: str
    kind: str
    """Prefix of the template's name: `8-gpu-nic`."""
    requests: list[dict[str, Any]]
    """Requests for devices, as v1 has them."""
    pairs: tuple[tuple[str, str], ...] = ()
    """Names of requests whose devices must be on one PCIe root."""
    gpus: int = 0
    """Number of GPUs, or MIG instances, among the devices."""

    def spec(self, api: ResourceApi) -> dict[str, Any]:
        """Return the claim's spec in a version of resource.k8s.io.

        v1beta1 has no `exactly` (https://pkg.go.dev/k8s.io/api/resource/v1beta1#DeviceRequest).
        """
        requests = self.requests
        if api == "v1beta1":
            requests = [{"name": request["name"], **request["exactly"]} for request in requests]
        devices: dict[str, Any] = {"requests": requests}
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
        request = _request(name, device_class, gpus, selector)
        return WorkerClaim("gpus", f"{_amount(gpus, pool.per_node)}-{name}", [request], gpus=gpus)
    if worker.nics:
        return WorkerClaim(
            "nics",
            f"{_amount(worker.nics, pool.settings.nics)}-nic",
            [_nic("nic", worker.nics, pool)],
        )
    return None


def claim_template(
    claim: WorkerClaim, api: ResourceApi, namespace: str, labels: dict[str, str]
) -> Manifest:
    """Return the template from which each worker pod in a namespace gets a claim of its own."""
    place = {"name": claim.template_name, "namespace": namespace, "labels": labels}
    return manifest_of(__file__, "claim_template", api=api, spec=claim.spec(api), **place)


def dranet_class(api: ResourceApi) -> Manifest:
    """Return the class of the RDMA NICs of DraNet, which publishes all interfaces that it finds.

    GKE's managed DRANET brings a class of its own, and so does NVIDIA's DRA driver; DraNet brings
    none (https://github.com/kubernetes-sigs/dranet, site/content/docs/user/gke-rdma.md).
    """
    expression = f'device.driver == "{DRANET_DRIVER}" && {_RDMA}'
    return manifest_of(
        __file__,
        "device_class",
        api=api,
        name=DRANET,
        labels=dict(MANAGED_BY),
        expression=expression,
    )


def joined_by_nvlink(worker: Worker, pool: Pool) -> bool:
    """Return whether NVLink joins a worker with those on other nodes: one that takes all NICs."""
    return pool.settings.nvlink and worker.nics == pool.settings.nics


def compute_domain(namespace: str, labels: dict[str, str]) -> Manifest:
    """Return the domain of a namespace; workers join and leave it, so it has no number of nodes."""
    return unawaited(
        manifest_of(__file__, "compute_domain", name=NVLINK, namespace=namespace, labels=labels)
    )


def _pairs(count: int, pool: Pool) -> WorkerClaim:
    """Return a claim with a constraint a pair: one over all would force all on one PCIe root."""
    names = [(f"gpu-{number}", f"nic-{number}") for number in range(count)]
    requests = [
        request for gpu, nic in names for request in (_request(gpu, GPU, 1), _nic(nic, 1, pool))
    ]
    kind = f"{_amount(count, pool.per_node)}-gpu-nic"
    return WorkerClaim("gpus-and-nics", kind, requests, tuple(names), gpus=count)


def _nic(name: str, count: int, pool: Pool) -> dict[str, Any]:
    if pool.settings.rdma == "managed":
        return _request(name, MANAGED_RDMA, count)
    # The class of an older berth, or of another installation, has the gVNICs too.
    return _request(name, DRANET, count, _RDMA)


def _request(name: str, device_class: str, count: int, expression: str = "") -> dict[str, Any]:
    """Return a request for devices of a class, of those that a CEL expression selects."""
    devices: dict[str, Any] = {"deviceClassName": device_class, "count": count}
    if expression:
        devices["selectors"] = [{"cel": {"expression": expression}}]
    return {"name": name, "exactly": devices}


def _amount(count: int, whole: int) -> str:
    if count == whole:
        return "all"
    return "one" if count == 1 else str(count)
