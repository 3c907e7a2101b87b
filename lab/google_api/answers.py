"""Answers of Google's APIs, reading only, from the state of one lab at the moment of a call.

Every service account exists whose project does. Every zone has every machine type.

In the conditions each quota is one metric, such as `NVIDIA_B200_GPUS`. Compute Engine's regions
list the older ones, the Cloud Quotas API all of them: for the newer GPUs it has one quota, with a
limit for each family.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from berth.components.hardware.machines import GPUS, MACHINES
from berth.lab.home import LabHome
from berth.lab.plugins.gcp import conditions, supply
from berth.lab.plugins.gcp.cluster import gke_version
from berth.lab.plugins.gcp.conditions import Project
from berth.lab.plugins.gcp.errors import GoogleApiError
from berth.lab.plugins.gcp.fleet import SimulatedFleet
from berth.lab.plugins.gcp.locations import REGIONS, ZONES
from berth.lab.plugins.gcp.nodes import expected
from berth.lab.plugins.gcp.pools import PoolInputs
from berth.lab.plugins.gcp.store import Store

Answer = dict[str, Any]
"""JSON of an answer."""

CHANNELS = ("RAPID", "REGULAR", "STABLE", "EXTENDED")

_NUMBER = "000000000000"
_AGENTS = [
    f"serviceAccount:service-{_NUMBER}@container-engine-robot.iam.gserviceaccount.com",
    f"serviceAccount:{_NUMBER}@cloudservices.gserviceaccount.com",
]
"""GKE's agents of every project, since all have one number."""

_TITLES = {"compute": "Compute Engine API", "container": "Kubernetes Engine API"}
_GLOBAL = "global"
"""Name of all regions together in the conditions."""

_MODELS = {
    "spot": "SPOT",
    "flex-start": "FLEX_START",
    "on-demand": "STANDARD",
    "reservation": "RESERVATION_BOUND",
}
_LINK = "https://www.googleapis.com/compute/v1/"
_NEWER = tuple(gpu.quota for gpu in GPUS.values() if not gpu.own_quota)
_FAMILY_QUOTA = "GPUS-PER-GPU-FAMILY-per-project-region"
_REGIONAL = "-per-project-region"
_EVERYWHERE = "-per-project"
_NO_LIMIT = "-1"

_ROUTES: dict[str, dict[str, str]] = yaml.safe_load(
    Path(__file__).with_name("routes.yaml").read_text()
)
_NAME = re.compile(r"\\{(\w+)\\}")


class Google:
    """Google Cloud of one lab during one call.

    A method answers one kind of call, whose path gives its arguments; None says that there is no
    such resource.
    """

    def __init__(self, home: LabHome, query: dict[str, list[str]], body: dict[str, Any]) -> None:
        self._fleet = SimulatedFleet(home.kubeconfig)
        self._store = Store(home.cloud)
        self._conditions = conditions.of_cloud(home.cloud)
        self._query = query
        self._body = body
        self._id = self._path = ""  # project that the path names, and the path

    def answer(self, service: str, path: str) -> Answer:
        """Return what Google would answer."""
        self._path = path
        for pattern, method in _ROUTES.get(service, {}).items():
            match = re.fullmatch(_NAME.sub(r"(?P<\1>[^/:]+)", re.escape(pattern)), path)
            if match is None:
                continue
            named = match.groupdict()
            self._id = named.pop("project", "")
            if self._id and service != "serviceusage":
                self._enabled(self._id, service)
            found: Answer | None = getattr(self, method)(**named)
            if found is not None:
                return found
        raise GoogleApiError("not-found", path=path)

    def _enabled(self, name: str, service: str) -> Project:
        """Return a project with an API enabled."""
        project = self._conditions.project(name)
        if project is None:
            raise GoogleApiError("no-project", name=name)
        api = f"{service}.googleapis.com"
        if api not in project.services:
            raise GoogleApiError("api-off", title=_TITLES.get(service, api), name=name)
        return project

    def _held(self, project: Project) -> Answer:
        return {
            "permissions": [
                entry for entry in self._body.get("permissions") or [] if project.may(entry)
            ]
        }

    def project(self) -> Answer:
        """projects.get of the Resource Manager."""
        return {"projectId": self._id, "projectNumber": _NUMBER, "lifecycleState": "ACTIVE"}

    def permissions(self) -> Answer:
        """projects.testIamPermissions."""
        return self._held(self._enabled(self._id, "cloudresourcemanager"))

    def project_policy(self) -> Answer:
        """projects.getIamPolicy: the roles of GKE's agents, of whatever project."""
        project = self._enabled(self._id, "cloudresourcemanager")
        _may(project, "resourcemanager.projects.getIamPolicy")
        return _policy(project.agent_roles)

    def subnetwork_policy(self, **_: str) -> Answer:
        """subnetworks.getIamPolicy: no subnetwork has a policy of its own."""
        _may(self._enabled(self._id, "compute"), "compute.subnetworks.getIamPolicy")
        return _policy([])

    def services(self) -> Answer:
        """services.batchGet."""
        found = self._conditions.project(self._id)
        if found is None:
            raise GoogleApiError("no-project", name=self._id)
        enabled = {True: "ENABLED", False: "DISABLED"}
        return {
            "services": [
                {"name": name, "state": enabled[name.rsplit("/", 1)[-1] in found.services]}
                for name in self._query.get("names") or []
            ]
        }

    def account(self, account: str) -> Answer:
        """serviceAccounts.get: each is there whose project is."""
        self._enabled(_project_of(account), "iam")
        return {"email": account}

    def account_permissions(self, account: str) -> Answer:
        """TestIamPermissions of a service account."""
        return self._held(self._enabled(_project_of(account), "iam"))

    def cluster(self, **_: str) -> Answer | None:
        """clusters.get."""
        record = self._store.get(self._path)
        if record is None:
            return None
        version = gke_version(str(record.state.get("version", "")))
        return {"name": record.name, "status": "RUNNING", "currentMasterVersion": version}

    def server_config(self, location: str) -> Answer | None:
        """getServerConfig: GKE has the version of the lab's API server."""
        if location not in ZONES and location not in REGIONS:
            return None
        version = gke_version(self._fleet.version())
        channels = [
            {"channel": entry, "defaultVersion": version, "validVersions": [version]}
            for entry in CHANNELS
        ]
        return {
            "defaultClusterVersion": version,
            "validMasterVersions": [version],
            "channels": channels,
        }

    def compute_project(self) -> Answer:
        """projects.get of Compute Engine, with the quotas of all regions."""
        return {"name": self._id, "quotas": self._quotas(_GLOBAL)}

    def region(self, region: str) -> Answer | None:
        """regions.get, with its quotas."""
        return {"name": region, "quotas": self._quotas(region)} if region in REGIONS else None

    def _quotas(self, region: str) -> list[Answer]:
        used = supply.taken(self._store.list("nodePools"), self._id, region)
        return [
            {"metric": metric, "limit": float(limit), "usage": float(used[metric])}
            for metric, limit in self._limits().get(region, {}).items()
            if metric.removeprefix("PREEMPTIBLE_").removesuffix("_GPUS") not in _NEWER
        ]

    def _limits(self) -> dict[str, dict[str, int]]:
        entry = self._conditions.project(self._id)
        return entry.quotas if entry else {}

    def machine_type(self, zone: str, name: str) -> Answer | None:
        """machineTypes.get."""
        machine = MACHINES.get(name)
        if zone not in ZONES or machine is None:
            return None
        accelerators = [
            {"guestAcceleratorType": machine.gpu.accelerator, "guestAcceleratorCount": machine.gpus}
        ]
        return {
            "name": name,
            "guestCpus": machine.vcpus,
            **({"accelerators": accelerators} if machine.gpus else {}),
        }

    def accelerator_type(self, zone: str, name: str) -> Answer | None:
        """acceleratorTypes.get."""
        return {"name": name} if zone in ZONES and name in GPUS else None

    def network_profile(self, name: str) -> Answer | None:
        """networkProfiles.get: every zone has the one for RoCE."""
        return {"name": name} if name.removesuffix("-vpc-roce") in ZONES else None

    def network(self, **_: str) -> Answer | None:
        """networks.get and subnetworks.get: the records' inputs have the API's own names."""
        record = self._store.get(self._path)
        if record is None:
            return None
        return {**record.inputs, "name": record.name, "selfLink": _LINK + record.id}

    def reservation(self, zone: str, name: str) -> Answer | None:
        """reservations.get; numbers are text, as in Google's answers."""
        found = self._conditions.reservation(self._id, name)
        if found is None or found.zone != zone:
            return None
        return {
            "name": name,
            "zone": f"{_LINK}projects/{self._id}/zones/{zone}",
            "status": "READY",
            "specificReservationRequired": True,
            "specificReservation": {
                "count": str(found.count),
                "inUseCount": str(supply.in_use(found, self._store.list("nodePools"))),
                "instanceProperties": {"machineType": found.machine_type},
            },
        }

    def reservation_block(self, zone: str, name: str, block: str) -> Answer | None:
        """reservationBlocks.get; every block has all machines of the reservation."""
        found = self._conditions.reservation(self._id, name)
        if found is None or found.zone != zone or block not in found.blocks:
            return None
        used = supply.in_use(found, self._store.list("nodePools"))
        return {"resource": {"name": block, "count": found.count, "inUseCount": used}}

    def reservation_sub_block(
        self, zone: str, name: str, block: str, sub_block: str
    ) -> Answer | None:
        """reservationSubBlocks.get; every sub-block has all machines of the reservation."""
        found = self._conditions.reservation(self._id, name)
        of_block = self.reservation_block(zone, name, block)
        if found is None or of_block is None or sub_block not in found.sub_blocks:
            return None
        return {"resource": {**of_block["resource"], "name": sub_block}}

    def instances(self) -> Answer:
        """instances.aggregatedList: the nodes of every pool."""
        places: dict[str, Any] = {}
        for pool in self._store.list("nodePools", self._id):
            read = PoolInputs(pool.inputs)
            model = _MODELS[supply.capacity_of(read)]
            for name, (zone, _) in expected(pool).items():
                at = f"{_LINK}projects/{self._id}/zones/{zone}"
                instance = {
                    "name": name,
                    "zone": at,
                    "machineType": f"{at}/machineTypes/{read.machine_name}",
                    "guestAccelerators": _accelerators(read, at),
                    "labels": {
                        "goog-k8s-cluster-name": pool.id.split("/")[5],
                        "goog-k8s-node-pool-name": pool.name,
                    },
                    "scheduling": {"provisioningModel": model, "preemptible": model == "SPOT"},
                }
                places.setdefault(f"zones/{zone}", {"instances": []})["instances"].append(instance)
        return {"items": places}

    def quota(self, quota: str) -> Answer | None:
        """quotaInfos.get: the limits of one quota, with an entry for all that none is given for."""
        limits = self._limits()
        infos: list[Answer] = [{"details": {"value": _NO_LIMIT}}]
        if quota == _FAMILY_QUOTA:
            infos += [
                {
                    "dimensions": {"region": region, "gpu_family": family},
                    "details": {"value": str(metrics[f"{family}_GPUS"])},
                }
                for region, metrics in limits.items()
                for family in _NEWER
                if f"{family}_GPUS" in metrics
            ]
        elif quota.endswith(_REGIONAL):
            metric = quota.removesuffix(_REGIONAL).replace("-", "_")
            infos += [
                {"dimensions": {"region": region}, "details": {"value": str(metrics[metric])}}
                for region, metrics in limits.items()
                if metric in metrics
            ]
        elif quota.endswith(_EVERYWHERE):
            limit = limits.get(_GLOBAL, {}).get(
                quota.removesuffix(_EVERYWHERE).replace("-", "_"), _NO_LIMIT
            )
            infos = [{"details": {"value": str(limit)}}]
        else:
            return None
        return {"quotaId": quota, "service": "compute.googleapis.com", "dimensionsInfos": infos}


def _may(project: Project, permission: str) -> None:
    if not project.may(permission):
        raise GoogleApiError("no-permission", permission=permission)


def _policy(roles: Iterable[str]) -> Answer:
    """Return an IAM policy that gives the roles to both agents of every project."""
    bindings = [{"role": role, "members": _AGENTS} for role in roles]
    return {"version": 1, "bindings": bindings}


def _project_of(account: str) -> str:
    return account.partition("@")[2].split(".")[0]


def _accelerators(pool: PoolInputs, at: str) -> list[dict[str, Any]]:
    """Return the GPUs of a pool's instance, in a zone's link."""
    gpus = pool.accelerator
    if not gpus:
        return []
    kind = f"{at}/acceleratorTypes/{gpus['type']}"
    return [{"acceleratorType": kind, "acceleratorCount": gpus["count"]}]
