"""Versions of the parts of an environment: by its cluster where it is up, else by its settings."""

import json
from collections import Counter
from dataclasses import dataclass, field
from itertools import chain

from berth.cli.verbs.upgrade.supported import PartVersion
from berth.components.cluster.api import (
    NODES,
    RAY_CLUSTERS,
    RAY_JOBS,
    RAY_SERVICES,
    ClusterApi,
    Object,
    RefusedError,
)
from berth.components.core.manifest import resource_type
from berth.components.hardware.names import POOL_LABEL
from berth.components.operators import OPERATORS, Gib, deployed_versions
from berth.components.plan.occupants import occupant_of
from berth.components.sharing import offered_pools
from berth.stacks.load.stack import Environment
from berth.stacks.policies.planned import ray_specs
from berth.stacks.policies.policy import Planned

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RAY = {"RayCluster": RAY_CLUSTERS, "RayJob": RAY_JOBS, "RayService": RAY_SERVICES}
_OURS = ("chart", "installer")
"""Values of an operator's `source` with which its settings say the version."""

_GROUPS = ("ray.io", "nvidia.com")
"""Groups of CRDs whose removal deletes their objects."""

_RAY_CLUSTER_CRD = "rayclusters.ray.io"
KUBERAY_CRDS_SINCE = "1.6"
"""Version of KubeRay from which on its CRDs have NEW_FIELD."""
_KUBERAY_CRDS_BEFORE = "1.5"
_NEW_FIELD = "upgradeStrategy"
"""Field of a RayCluster by which the version of its CRD is recognized.

Source: ray-operator/config/crd/bases of KubeRay v1.5.1 and v1.6.2.
"""


@dataclass
class EnvironmentVersions:
    """Versions in an environment, and what their upgrade would reach.

    Attributes:
        rays: RayClusters, RayJobs and RayServices.
        by_part: versions by the part's key.
        nodes: number of nodes by pool.
        definitions: number of objects that the removal of a CRD deletes, by the CRD's name.
        refused: errors of what this user may not read.
    """

    rays: list[Object]
    by_part: dict[str, list[PartVersion]] = field(default_factory=dict)
    nodes: Counter[str] = field(default_factory=Counter)
    definitions: dict[str, int] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)

    def of_all_parts(self) -> list[PartVersion]:
        """Return the versions of all parts."""
        return list(chain.from_iterable(self.by_part.values()))

    def put(self, part: str, *versions: tuple[str, str], asked: str = "cluster") -> None:
        """Put versions of a part in the place of those that are known.

        Args:
            part: key of the part.
            versions: versions, each with the pool or RayCluster that has it, empty for none.
            asked: where the versions are from: `cluster` or `settings`.
        """
        who: dict[str, set[str]] = {}
        for version, name in versions:
            names = who.setdefault(version, set())
            if name:
                names.add(name)
        self.by_part[part] = [
            PartVersion(part, version, asked, tuple(sorted(names)))
            for version, names in sorted(who.items())
        ]


def versions_by_settings(loaded: Environment) -> EnvironmentVersions:
    """Return the versions that the settings ask for; none for what berth does not install."""
    settings = loaded.settings
    versions = EnvironmentVersions([berth.manifests.main for berth in loaded.berths])
    versions.put("control-plane", (settings.cluster.version or "", ""), asked="settings")
    pools = offered_pools(settings.pools, settings.sharing)
    for operator in OPERATORS:
        if not operator.setting or not operator.served(pools):
            continue
        own = settings.operators.of(operator)
        version = ""
        if own.source in _OURS:
            version = _tag(own.image) if operator.setting == "gib" else own.version
        versions.put(operator.setting, (version, ""), asked="settings")
    series = [pool.machine.series.name for pool in settings.pools.values() if pool.rdma != "none"]
    versions.put("machines", *((name, "") for name in series))
    versions.put("ray", *map(_version_and_name, versions.rays), asked="settings")
    return versions


def put_versions_of_cluster(api: ClusterApi, versions: EnvironmentVersions) -> None:
    """Put the versions that a cluster has in the place of those of the settings.

    Raises:
        UnreachableError: the cluster does not answer.
    """
    for question in (_control_plane, _nodes, _operators, _definitions, _rays):
        try:
            question(api, versions)
        except RefusedError as error:
            versions.refused.append(error.problem)


def _control_plane(api: ClusterApi, versions: EnvironmentVersions) -> None:
    answer = json.loads(api.text("/version"))
    versions.put("control-plane", (answer["gitVersion"].removeprefix("v"), ""))


def _nodes(api: ClusterApi, versions: EnvironmentVersions) -> None:
    nodes, _ = api.list(NODES)
    kubelets = []
    images = []
    for node in nodes:
        pool = node["metadata"]["labels"].get(POOL_LABEL, "")
        info = node["status"]["nodeInfo"]
        versions.nodes[pool] += 1
        kubelets.append((info["kubeletVersion"].removeprefix("v"), pool))
        images.append((info["osImage"], pool))
    versions.put("nodes", *kubelets)
    versions.put("node-image", *images)


def _operators(api: ClusterApi, versions: EnvironmentVersions) -> None:
    daemons = api.get(f"/apis/apps/v1/namespaces/kube-system/daemonsets/{Gib.daemon_set}")
    if daemons and "gib" in versions.by_part:
        installer = daemons["spec"]["template"]["spec"]["initContainers"][0]
        versions.put("gib", (_tag(installer["image"]), ""))
    releases = {
        operator.release: operator.setting
        for operator in OPERATORS
        if operator.setting in versions.by_part
    }
    for release, version in deployed_versions(api, releases).items():
        versions.put(releases[release], (version, ""))


def _definitions(api: ClusterApi, versions: EnvironmentVersions) -> None:
    definitions, _ = api.list(_DEFINITIONS)
    for definition in definitions:
        name = definition["metadata"]["name"]
        spec = definition["spec"]
        stored = next(version for version in spec["versions"] if version["storage"])
        if name == _RAY_CLUSTER_CRD:
            fields = stored["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
            since = KUBERAY_CRDS_SINCE if _NEW_FIELD in fields else _KUBERAY_CRDS_BEFORE
            versions.put("kuberay-crds", (since, ""))
        if spec["group"] in _GROUPS:
            path = f"/apis/{spec['group']}/{stored['name']}/{spec['names']['plural']}"
            versions.definitions[name] = len(api.metadata(path))


def _rays(api: ClusterApi, versions: EnvironmentVersions) -> None:
    versions.rays = []
    for kind, path in _RAY.items():
        for item in api.list(path)[0]:
            ray = {**item, "apiVersion": "ray.io/v1", "kind": kind}
            if ray_version_of(ray) and not ray["metadata"].get("ownerReferences"):
                versions.rays.append(ray)
    versions.put("ray", *map(_version_and_name, versions.rays))


def _version_and_name(ray: Object) -> tuple[str, str]:
    return ray_version_of(ray), occupant_of(ray).name


def ray_version_of(ray: Object) -> str:
    """Return the version of an object's RayCluster; empty for a job on another's."""
    specs = ray_specs(Planned(resource_type(ray), "", ray))
    return str(next(specs, {}).get("rayVersion", ""))


def _tag(image: str) -> str:
    """Return the tag of an image; empty for a digest alone."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]
