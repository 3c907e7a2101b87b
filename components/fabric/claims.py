"""The ResourceClaimTemplate of a worker: the NICs and the GPUs that its pods claim. Pure.

A template cannot be changed, and the kubernetes provider plans a change as an update that then fails. So its name comes from its
content: other content is another template, the RayCluster follows to it, and the old one is deleted after.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from berth.components.core.manifest import Manifest
from berth.components.fabric.workers import Devices
from berth.components.hardware.names import DRANET, DRANET_DRIVER, GPU, MANAGED_RDMA, PCIE_ROOT, ResourceApi
from berth.components.sharing import Pool

_HASH_LENGTH = 8


@dataclass(frozen=True)
class Request:
    """Some devices of one kind.

    Attributes:
        name: the request's name in its claim.
        device_class: their class.
        count: how many.
        expression: a CEL expression that is true for them, "" for any of the class.
    """

    name: str
    device_class: str
    count: int
    expression: str = ""

    def written(self, api: ResourceApi) -> dict[str, Any]:
        """As it stands in a claim: v1beta1 has no `exactly` (https://pkg.go.dev/k8s.io/api/resource/v1beta1#DeviceRequest)."""
        devices: dict[str, Any] = {"deviceClassName": self.device_class, "count": self.count}
        if self.expression:
            devices["selectors"] = [{"cel": {"expression": self.expression}}]
        return {"name": self.name, **(devices if api == "v1beta1" else {"exactly": devices})}


@dataclass(frozen=True)
class Claim:
    """What one worker pod claims.

    Attributes:
        name: the claim's name in the pod.
        kind: what it is called in the template's name: `8-gpu-nic`.
        requests: the devices.
        pairs: names of requests whose devices must be on one PCIe root.
        gpus: how many GPUs, or MIG instances, are among them.
    """

    name: str
    kind: str
    requests: tuple[Request, ...]
    pairs: tuple[tuple[str, str], ...] = ()
    gpus: int = 0

    def spec(self, api: ResourceApi) -> dict[str, Any]:
        """The claim's spec.

        Args:
            api: the version of resource.k8s.io to write it in.
        """
        devices: dict[str, Any] = {"requests": [request.written(api) for request in self.requests]}
        if self.pairs:
            devices["constraints"] = [{"requests": list(pair), "matchAttribute": PCIE_ROOT} for pair in self.pairs]
        return {"devices": devices}

    @property
    def template_name(self) -> str:
        """The template's name: what it is about, and a hash of its content, whatever the version it is written in."""
        content = json.dumps(self.spec("v1"), sort_keys=True).encode()
        return f"{self.kind}-{hashlib.sha256(content).hexdigest()[:_HASH_LENGTH]}"


def claim_of(worker: Devices, pool: Pool) -> Claim | None:
    """What one worker pod claims; None where it claims nothing.

    Args:
        worker: the worker.
        pool: its pool. One with NICs for claimed GPUs gives each GPU the NIC of its PCIe root: as many of one as of the other.
    """
    gpus = worker.gpus if pool.settings.by_dra else 0
    if gpus and worker.nics:
        return _pairs(gpus, pool)
    if gpus:
        name, device_class, selector = pool.profile.facts.device
        request = Request(name, device_class, gpus, selector)
        return Claim("gpus", f"{_amount(gpus, pool.per_node)}-{name}", (request,), gpus=gpus)
    if worker.nics:
        return Claim("nics", f"{_amount(worker.nics, pool.settings.nics)}-nic", (_nic("nic", worker.nics, pool),))
    return None


def claim_template(claim: Claim, api: ResourceApi, namespace: str, labels: dict[str, str]) -> Manifest:
    """The template from which each worker pod gets a claim of its own.

    Args:
        claim: what a pod claims.
        api: the version of resource.k8s.io to write it in.
        namespace: that of the pods.
        labels: labels of the template.
    """
    return {
        "apiVersion": f"resource.k8s.io/{api}",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": claim.template_name, "namespace": namespace, "labels": labels},
        "spec": {"spec": claim.spec(api)},
    }


def _pairs(count: int, pool: Pool) -> Claim:
    """A request and a constraint for each pair: one constraint over all of them would force all on one PCIe root."""
    names = [(f"gpu-{number}", f"nic-{number}") for number in range(count)]
    requests = [request for gpu, nic in names for request in (Request(gpu, GPU, 1), _nic(nic, 1, pool))]
    kind = f"{_amount(count, pool.per_node)}-gpu-nic"
    return Claim("gpus-and-nics", kind, tuple(requests), tuple(names), gpus=count)


def _nic(name: str, count: int, pool: Pool) -> Request:
    if pool.settings.rdma == "managed":
        return Request(name, MANAGED_RDMA, count)
    # DraNet's class has all interfaces that it finds, the gVNICs too.
    return Request(name, DRANET, count, f'device.attributes["{DRANET_DRIVER}"].rdma == true')


def _amount(count: int, whole: int) -> str:
    if count == whole:
        return "all"
    return "one" if count == 1 else str(count)
