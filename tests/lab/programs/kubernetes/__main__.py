"""The resources whose handling by the real kubernetes plugin is recorded, in three steps.

Config: `step` is `create`, `update` or `errors`; `kubeconfig` is the path of the cluster's
    kubeconfig. The recorded program
also waits by `pulumi.com/waitFor` and has a Patch resource, which the stand-in refuses.
"""

# ruff: noqa: INP001 (the engine runs it as a program; it is no package)

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pulumi
import pulumi_kubernetes as kubernetes

# As in berth's own program: the engine interrupts it when an update fails, and says why.
signal.signal(signal.SIGINT, lambda *_: os._exit(32))

config = pulumi.Config()
step = config.get("step") or "create"
first = step == "create"
provider = kubernetes.Provider(
    "lab", kubeconfig=Path(config.require("kubeconfig")).read_text(encoding="utf-8"), enable_server_side_apply=True
)
options = pulumi.ResourceOptions(provider=provider)


def pod_template(container: str, image: str, **limits: str) -> dict[str, Any]:
    """A pod template with one container."""
    return {"spec": {"containers": [{"name": container, "image": image, "resources": {"limits": limits}}]}}


namespace = kubernetes.core.v1.Namespace(
    "ns", metadata={"name": "rec", "labels": {"team": "a" if first else "b"}}, opts=options
)
inside = namespace.metadata.name
kubernetes.core.v1.ConfigMap("cm", metadata={"namespace": inside}, data={"k": "v1" if first else "v2"}, opts=options)
device_class = kubernetes.resource.v1.DeviceClass(
    "dc",
    metadata={"name": "rec-dranet"},
    spec={"selectors": [{"cel": {"expression": 'device.driver == "dra.net"'}}]},
    opts=options,
)
count = 8 if first else 4
exactly = {"device_class_name": "rec-dranet", "allocation_mode": "ExactCount", "count": count}
kubernetes.resource.v1.ResourceClaimTemplate(
    "rct",
    metadata={"name": "nics", "namespace": inside},
    spec={"spec": {"devices": {"requests": [{"name": "nic", "exactly": exactly}]}}},
    opts=pulumi.ResourceOptions(provider=provider, depends_on=[device_class]),
)
image = "rayproject/ray:2.47.1"
kubernetes.apiextensions.CustomResource(
    "ray",
    api_version="ray.io/v1",
    kind="RayCluster",
    metadata={"name": "dev", "namespace": inside},
    spec={
        "rayVersion": "2.47.1",
        "headGroupSpec": {"rayStartParams": {}, "template": pod_template("ray-head", image, cpu="1", memory="2Gi")},
        "workerGroupSpecs": [
            {
                "groupName": "w",
                "replicas": 1 if first else 2,
                "minReplicas": 0,
                "maxReplicas": 4,
                "rayStartParams": {},
                "template": pod_template("ray-worker", image, cpu="1", memory="2Gi"),
            }
        ],
    },
    opts=options,
)
kubernetes.helm.v3.Release(
    "rel",
    name="rec-rel",
    chart="./chart",
    namespace=inside,
    values={"color": "red" if first else "green"},
    opts=options,
)
kubernetes.core.v1.Secret(
    "sec",
    metadata={"name": "tok", "namespace": inside},
    string_data={"t": pulumi.Output.secret("canary")},
    opts=options,
)
if step == "errors":
    kubernetes.core.v1.Namespace("dup", metadata={"name": "rec"}, opts=options)
    kubernetes.apiextensions.CustomResource(
        "nocrd",
        api_version="nope.io/v1",
        kind="Thing",
        metadata={"name": "x", "namespace": "rec"},
        spec={},
        opts=options,
    )
    kubernetes.core.v1.ConfigMap("nons", metadata={"name": "x", "namespace": "absent"}, data={}, opts=options)
    kubernetes.apiextensions.CustomResource(
        "invalid",
        api_version="ray.io/v1",
        kind="RayCluster",
        metadata={"name": "bad", "namespace": "rec"},
        spec={"headGroupSpec": {"rayStartParams": 3}},
        opts=options,
    )
