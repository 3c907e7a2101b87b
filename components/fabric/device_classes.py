"""The device class that berth makes: DraNet's. Pure.

GKE's managed DRANET brings its own, and so does NVIDIA's DRA driver; DraNet brings none
(https://github.com/kubernetes-sigs/dranet, site/content/docs/user/gke-rdma.md).
"""

from __future__ import annotations

from berth.components.core.manifest import MANAGED_BY, Manifest
from berth.components.hardware.names import DRANET, DRANET_DRIVER, ResourceApi


def dranet_class(api: ResourceApi) -> Manifest:
    """The class of all devices that DraNet publishes; which of them are RDMA NICs, a claim says.

    Args:
        api: the version of resource.k8s.io that the cluster serves; a class is written alike in all of them.
    """
    return {
        "apiVersion": f"resource.k8s.io/{api}",
        "kind": "DeviceClass",
        "metadata": {"name": DRANET, "labels": dict(MANAGED_BY)},
        "spec": {"selectors": [{"cel": {"expression": f'device.driver == "{DRANET_DRIVER}"'}}]},
    }
