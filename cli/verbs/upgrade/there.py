"""Versions of the parts of an environment: by its cluster where it is up, else by its settings."""

import json
from collections import Counter
from dataclasses import dataclass, field

from berth.cli.verbs.upgrade.supported import PARTS, TABLE, Version
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
from berth.components.operators import OPERATORS
from berth.components.operators.gib import NAME as GIB
from berth.components.operators.record import deployed_versions
from berth.components.plan.occupants import occupant_of
from berth.components.sharing import offered_pools
from berth.stacks.load.stack import Environment
from berth.stacks.policies.planned import ray_specs
from berth.stacks.policies.policy import Planned

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_RAY = {"RayCluster": RAY_CLUSTERS, "RayJob": RAY_JOBS, "RayService": RAY_SERVICES}
_OURS = ("chart", "installer")
"""Values of an operator's `source` with which its settings say the version."""


@dataclass
class There:
    """Versions in an environment, and what their upgrade would reach."""

    rays: list[Object]
    """RayClusters, RayJobs and RayServices."""
    found: dict[str, list[Version]] = field(default_factory=dict)
    """Versions by part."""
    nodes: Counter[str] = field(default_factory=Counter)
    """Number of nodes by pool."""
    definitions: dict[str, int] = field(default_factory=dict)
    """Number of objects that the removal of a CRD deletes, by the CRD's name."""
    refused: list[str] = field(default_factory=list)
    """Errors of what this user may not read."""

    def put(self, part: str, *versions: tuple[str, str], asked: str = "cluster") -> None:
        """Put versions, each with somebody who has it, in the place of known ones."""
        who = {
            version: {name for other, name in versions if other == version and name}
            for version, _ in versions
        }
        self.found[part] = [
            Version(part, version, asked, tuple(sorted(who[version]))) for version in sorted(who)
        ]


def by_settings(loaded: Environment) -> There:
    """Return the versions that the settings ask for; none for what berth does not install."""
    settings, there = loaded.settings, There([berth.manifests.main for berth in loaded.berths])
    there.put("control-plane", (settings.cluster.version or "", ""), asked="settings")
    pools = offered_pools(settings.pools, settings.sharing)
    for operator in OPERATORS:
        if operator.setting and operator.served(pools):
            given = settings.operators.of(operator)
            version = _tag(given.image) if operator.setting == "gib" else given.version
            there.put(
                operator.setting, (version if given.source in _OURS else "", ""), asked="settings"
            )
    there.put(
        "machines",
        *(
            (pool.machine.series.name, "")
            for pool in settings.pools.values()
            if pool.rdma != "none"
        ),
    )
    there.put("ray", *map(_of_ray, there.rays), asked="settings")
    return there


def ask(api: ClusterApi, there: There) -> None:
    """Put the versions that a cluster has in the place of those of the settings."""
    for question in (_control_plane, _nodes, _operators, _definitions, _rays):
        try:
            question(api, there)
        except RefusedError as error:
            there.refused.append(error.problem)


def _control_plane(api: ClusterApi, there: There) -> None:
    there.put(
        "control-plane", (json.loads(api.text("/version"))["gitVersion"].removeprefix("v"), "")
    )


def _nodes(api: ClusterApi, there: There) -> None:
    nodes = [
        (node["metadata"]["labels"].get(POOL_LABEL, ""), node["status"]["nodeInfo"])
        for node in api.list(NODES)[0]
    ]
    there.nodes.update(pool for pool, _ in nodes)
    there.put("nodes", *((info["kubeletVersion"].removeprefix("v"), pool) for pool, info in nodes))
    there.put("node-image", *((info["osImage"], pool) for pool, info in nodes))


def _operators(api: ClusterApi, there: There) -> None:
    daemons = api.get(f"/apis/apps/v1/namespaces/kube-system/daemonsets/{GIB}")
    if daemons and "gib" in there.found:
        there.put(
            "gib", (_tag(daemons["spec"]["template"]["spec"]["initContainers"][0]["image"]), "")
        )
    releases = {
        operator.release: operator.setting
        for operator in OPERATORS
        if operator.setting in there.found
    }
    for release, version in deployed_versions(api, releases).items():
        there.put(releases[release], (version, ""))


def _definitions(api: ClusterApi, there: There) -> None:
    known = PARTS["kuberay-crds"]["crd"]
    for crd in api.list(_DEFINITIONS)[0]:
        name, spec = crd["metadata"]["name"], crd["spec"]
        stored = next(version for version in spec["versions"] if version["storage"])
        if name == known["name"]:
            fields = stored["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
            there.put(
                "kuberay-crds",
                (known["since"] if known["field"] in fields else known["before"], ""),
            )
        if spec["group"] in TABLE["groups"]:
            path = f"/apis/{spec['group']}/{stored['name']}/{spec['names']['plural']}"
            there.definitions[name] = len(api.metadata(path))


def _rays(api: ClusterApi, there: There) -> None:
    found = [
        {**item, "apiVersion": "ray.io/v1", "kind": kind}
        for kind in _RAY
        for item in api.list(_RAY[kind])[0]
    ]
    there.rays = [
        item for item in found if version_of(item) and not item["metadata"].get("ownerReferences")
    ]
    there.put("ray", *map(_of_ray, there.rays))


def _of_ray(ray: Object) -> tuple[str, str]:
    return version_of(ray), occupant_of(ray).name


def version_of(ray: Object) -> str:
    """Return the version of an object's RayCluster; empty for a job on another's."""
    return str(next(ray_specs(Planned(resource_type(ray), "", ray)), {}).get("rayVersion", ""))


def _tag(image: str) -> str:
    """Return the tag of an image; empty for a digest alone."""
    return image.partition("@")[0].rpartition("/")[2].partition(":")[2]
