"""KubeRay's operator of a lab, as a process of this machine: for its chart, or for GKE's add-on.

Simplified: of several Deployments of the operator, the first one's runs.
"""

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from berth.components.cluster.api import Object
from berth.lab.api import DEPLOYMENTS, Api
from berth.lab.home import LabHome
from berth.lab.plugins.gcp.contents import ray_operator
from berth.lab.plugins.gcp.store import Store
from berth.lab.processes import LabProcess, Supervisor
from berth.lab.toolchain.tools import KUBERAY

PROCESS = "kuberay-operator"

_IMAGE = re.compile(r".*kuberay.*/operator(?::v?(?P<version>[^/@]+))?(?:@.+)?")

# Flags that name addresses, files and identities of the container: the lab gives its own. A single
# process needs no election of a leader.
_OURS = {
    *(
        "config",
        "enable-leader-election",
        "health-probe-bind-address",
        "kubeconfig",
        "leader-election-namespace",
    ),
    *("log-file-path", "log-file-encoder", "metrics-addr"),
}
# Variable that opens a port on all addresses, for webhooks that no API server calls here.
_LEFT_OUT_VARIABLES = {"ENABLE_WEBHOOKS"}


def _operator(deployment: Object) -> tuple[dict[str, Any], str]:
    """Return the container of the KubeRay operator and its version; empty without one."""
    for container in deployment["spec"]["template"]["spec"].get("containers") or []:
        if match := _IMAGE.fullmatch(str(container.get("image", ""))):
            return dict(container), match["version"] or ""
    return {}, ""


def _process(home: LabHome, flags: list[str], variables: Mapping[str, str]) -> LabProcess:
    """Return the operator with these flags of its container."""
    own = [f"-{flag}" for flag in flags if flag.partition("=")[0] not in _OURS]
    # Any free ports; services and pods can be reached from here through the API server only.
    ours = [
        "-metrics-addr=127.0.0.1:0",
        "-health-probe-bind-address=127.0.0.1:0",
        "-use-kubernetes-proxy",
    ]
    ours += [f"-kubeconfig={home.kubeconfig}", "-enable-leader-election=false"]
    argv = (str(home.bin / PROCESS), *own, *ours)
    version = hashlib.sha256(repr((argv, sorted(variables.items()))).encode()).hexdigest()
    needs = ("kube-apiserver",)
    return LabProcess(
        PROCESS, argv, "runs RayClusters", needs, environment=variables, version=version
    )


def process_of(home: LabHome, deployment: Object) -> LabProcess | None:
    """Return the operator of a Deployment; None while it should not, or cannot yet, run.

    A pod has to be available: an unschedulable operator does not work in a real cluster either.
    """
    container, version = _operator(deployment)
    available = (deployment.get("status") or {}).get("availableReplicas") or 0
    if (
        version != KUBERAY.version
        or int(deployment["spec"].get("replicas", 1)) < 1
        or int(available) < 1
    ):
        return None
    flags = [str(argument).lstrip("-") for argument in container.get("args") or []]
    return _process(home, flags, _environment(container.get("env") or [], deployment["metadata"]))


def _environment(variables: list[dict[str, Any]], metadata: Mapping[str, Any]) -> dict[str, str]:
    """Plain values, and the two facts about the pod that are known without one."""
    facts = {
        "metadata.namespace": str(metadata["namespace"]),
        "metadata.name": str(metadata["name"]),
    }
    found = {}
    for variable in variables:
        field = ((variable.get("valueFrom") or {}).get("fieldRef") or {}).get("fieldPath")
        if field in facts:
            found[str(variable["name"])] = facts[field]
        elif "valueFrom" not in variable:
            found[str(variable["name"])] = str(variable.get("value") or "")
    return {name: value for name, value in found.items() if name not in _LEFT_OUT_VARIABLES}


class RayOperator:
    """The operator of one lab."""

    def __init__(self, home: LabHome, store: Store, api: Api) -> None:
        self._home = home
        self._store = store
        self._api = api
        self._supervisor = Supervisor(home)
        self._deployments: list[Object] = []
        self._stale = True
        self._refused: set[str] = set()

    def see(self) -> None:
        """Take note that a Deployment has changed."""
        self._stale = True

    def step(self) -> None:
        """Run the operator that a Deployment or the cluster asks for, or none."""
        if self._stale:
            self._stale = False
            self._deployments = [
                entry for entry in self._api.list(DEPLOYMENTS) if _operator(entry)[0]
            ]
            for deployment in self._deployments:
                self._refuse(deployment)
        wanted = [process_of(self._home, deployment) for deployment in self._deployments]
        if any(ray_operator(cluster.inputs) for cluster in self._store.list("clusters")):
            # GKE runs a version of its own choice beside the control plane.
            wanted.append(_process(self._home, ["enable-metrics"], {}))
        if process := next(filter(None, wanted), None):
            self._supervisor.start([process])
        else:
            self.stop()

    def _refuse(self, deployment: Object) -> None:
        """Say once of an image that the lab does not run it."""
        container, version = _operator(deployment)
        if version != KUBERAY.version and container["image"] not in self._refused:
            self._refused.add(container["image"])
            message = (
                "the lab runs the KubeRay operator as a local program and has built"
                f" v{KUBERAY.version} only; {container['image']} is not run. Set the image's tag to"
                f" v{KUBERAY.version}"
            )
            about = {**deployment, "kind": "Deployment"}
            self._api.event(about, "berth-lab", "Warning", "OperatorVersionNotBuilt", message)

    def stop(self) -> None:
        """Stop the operator."""
        self._supervisor.stop([PROCESS])
