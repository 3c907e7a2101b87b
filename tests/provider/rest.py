"""Stand-in for the REST APIs of Google Cloud, below Google's own provider.

It stores what it is sent, fills in what Google fills in, and records every request. It refuses
nothing by itself: what GKE would refuse is not simulated. A test may ask for a status or for a
failed operation (`refuse`, `fail`).
"""

from __future__ import annotations

import copy
import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

from tests.google.requests import Sent, add_request

Json = dict[str, Any]

VERSION = "1.35.2-gke.1842000"
"""Version of every control plane and node."""
COMPUTE = "https://www.googleapis.com/compute/v1"
CONTAINER = "https://container.googleapis.com/v1beta1"

_NODE_DEFAULTS: Json = {
    "machineType": "e2-medium",
    "diskSizeGb": 100,
    "diskType": "pd-balanced",
    "imageType": "COS_CONTAINERD",
    "serviceAccount": "default",
    "metadata": {"disable-legacy-endpoints": "true"},
    "shieldedInstanceConfig": {"enableIntegrityMonitoring": True},
    "oauthScopes": ["https://www.googleapis.com/auth/devstorage.read_only"],
    "effectiveCgroupMode": "EFFECTIVE_CGROUP_MODE_V2",
    "kubeletConfig": {"insecureKubeletReadonlyPortEnabled": False, "maxParallelImagePulls": 2},
    "windowsNodeConfig": {},
    # The provider expects it of every pool (node_config.go).
    "resourceLabels": {"goog-gke-node-pool-provisioning-model": "on-demand"},
}
_POOL_DEFAULTS: Json = {
    "initialNodeCount": 0,
    "management": {"autoRepair": True, "autoUpgrade": True},
    "maxPodsConstraint": {"maxPodsPerNode": "110"},
    "podIpv4CidrSize": 24,
    "networkConfig": {"podRange": "pods", "podIpv4CidrBlock": "10.4.0.0/14"},
    "version": VERSION,
    "status": "RUNNING",
}
_CLUSTER_DEFAULTS: Json = {
    "status": "RUNNING",
    "id": "0123456789abcdef",
    "createTime": "2026-01-01T00:00:00+00:00",
    "endpoint": "203.0.113.10",
    "currentMasterVersion": VERSION,
    "currentNodeVersion": VERSION,
    "labelFingerprint": "a9dc16a7",
    "clusterIpv4Cidr": "10.4.0.0/14",
    "servicesIpv4Cidr": "10.0.32.0/20",
    "loggingService": "logging.googleapis.com/kubernetes",
    "monitoringService": "monitoring.googleapis.com/kubernetes",
    "masterAuth": {"clusterCaCertificate": "Y2E=", "clientCertificateConfig": {}},
    "networkConfig": {"defaultSnatStatus": {}, "serviceExternalIpsConfig": {}},
    "ipAllocationPolicy": {
        "clusterIpv4CidrBlock": "10.4.0.0/14",
        "servicesIpv4CidrBlock": "10.0.32.0/20",
        "podCidrOverprovisionConfig": {},
        "defaultPodIpv4RangeUtilization": 0.01,
    },
    "privateClusterConfig": {"privateEndpoint": "10.0.0.2", "publicEndpoint": "203.0.113.10"},
    "controlPlaneEndpointsConfig": {
        "dnsEndpointConfig": {
            "endpoint": "gke-0123.us-central1.gke.goog",
            "allowExternalTraffic": False,
        },
        "ipEndpointsConfig": {
            "enabled": True,
            "enablePublicEndpoint": True,
            "globalAccess": False,
            "privateEndpoint": "10.0.0.2",
            "publicEndpoint": "203.0.113.10",
        },
    },
    "releaseChannel": {"channel": "REGULAR"},
    "databaseEncryption": {"state": "DECRYPTED"},
    "shieldedNodes": {"enabled": True},
    "defaultMaxPodsConstraint": {"maxPodsPerNode": "110"},
    "loggingConfig": {"componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS", "WORKLOADS"]}},
    "monitoringConfig": {
        "componentConfig": {"enableComponents": ["SYSTEM_COMPONENTS"]},
        "managedPrometheusConfig": {"enabled": True},
        "advancedDatapathObservabilityConfig": {},
    },
    "addonsConfig": {
        "kubernetesDashboard": {"disabled": True},
        "networkPolicyConfig": {"disabled": True},
        "gcePersistentDiskCsiDriverConfig": {"enabled": True},
        "dnsCacheConfig": {"enabled": True},
    },
    "securityPostureConfig": {"mode": "BASIC", "vulnerabilityMode": "VULNERABILITY_DISABLED"},
    "rbacBindingConfig": {
        "enableInsecureBindingSystemUnauthenticated": True,
        "enableInsecureBindingSystemAuthenticated": True,
    },
    "anonymousAuthenticationConfig": {"mode": "ENABLED"},
    "enterpriseConfig": {"clusterTier": "STANDARD"},
    "autopilot": {},
    "autoscaling": {"autoscalingProfile": "BALANCED"},
    "maintenancePolicy": {"resourceVersion": "e3b0c442"},
    "nodePoolDefaults": {
        "nodeConfigDefaults": {
            "loggingConfig": {"variantConfig": {"variant": "DEFAULT"}},
            "nodeKubeletConfig": {"insecureKubeletReadonlyPortEnabled": False},
        }
    },
}
_COMPUTE_DEFAULTS: Mapping[str, Json] = {
    "networks": {
        "mtu": 1460,
        "routingConfig": {"routingMode": "REGIONAL", "bgpBestPathSelectionMode": "LEGACY"},
        "networkFirewallPolicyEnforcementOrder": "AFTER_CLASSIC_FIREWALL",
    },
    "subnetworks": {
        "purpose": "PRIVATE",
        "privateIpGoogleAccess": False,
        "privateIpv6GoogleAccess": "DISABLE_GOOGLE_ACCESS",
        "gatewayAddress": "10.0.0.1",
        "stackType": "IPV4_ONLY",
        "enableFlowLogs": False,
        "logConfig": {"enable": False},
    },
    "firewalls": {
        "direction": "INGRESS",
        "priority": 1000,
        "disabled": False,
        "logConfig": {"enable": False},
    },
    "routers": {},
    "resourcePolicies": {},
}
_NAT_DEFAULTS: Json = {
    "type": "PUBLIC",
    "autoNetworkTier": "PREMIUM",
    "endpointTypes": ["ENDPOINT_TYPE_VM"],
}
_ZONE = re.compile(r"-[a-z]$")


class Request(NamedTuple):
    """Request that the provider sent; `path` without the API's name and version."""

    method: str
    path: str
    body: Json | None


class ApiError(Exception):
    """Error: an API answers with a status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class _Refusal:
    method: str
    path: re.Pattern[str]
    error: ApiError
    by_operation: bool = False
    """Whether the request is taken, and its operation fails."""


@dataclass
class GoogleApis:
    """The APIs: objects by their paths, and what was asked for."""

    objects: dict[str, Json] = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)
    unanswered: list[Request] = field(default_factory=list)
    """Requests that this stand-in does not know; a test fails if there are any."""
    sent: Sent = field(default_factory=dict)
    """Fields of the bodies of all requests."""
    _refusals: list[_Refusal] = field(default_factory=list)
    _operations: int = 0

    @contextmanager
    def refuse(self, method: str, path: str, status: int, message: str) -> Iterator[None]:
        """Answer requests whose path has a pattern at its end with a status, for a block."""
        with self._refused(_Refusal(method, re.compile(path), ApiError(status, message))):
            yield

    @contextmanager
    def fail(self, method: str, path: str, message: str) -> Iterator[None]:
        """Let the operations of requests fail, which change nothing then, for a block."""
        with self._refused(
            _Refusal(method, re.compile(path), ApiError(8, message), by_operation=True)
        ):
            yield

    @contextmanager
    def _refused(self, refusal: _Refusal) -> Iterator[None]:
        self._refusals.append(refusal)
        try:
            yield
        finally:
            self._refusals.remove(refusal)

    @contextmanager
    def undone(self) -> Iterator[list[Request]]:
        """Yield the list to which requests that change something go; then undo the changes."""
        objects = copy.deepcopy(self.objects)
        self.requests = []
        changing: list[Request] = []
        try:
            yield changing
        finally:
            changing += [request for request in self.requests if _changes(request)]
            self.objects = objects

    def answer(self, api: str, request: Request) -> Json:
        """Return the answer to a request.

        Raises:
            ApiError: the answer is a status.
        """
        self.requests.append(request)
        add_request(self.sent, api, *request)
        for refusal in self._refusals:
            if refusal.method == request.method and refusal.path.search(request.path):
                if not refusal.by_operation:
                    raise refusal.error
                return self._operation(request.path, refusal.error)
        answers: dict[str, Callable[[Request], Json | None]] = {
            "compute": self._compute,
            "container": self._container,
            "iam": self._iam,
            "cloudresourcemanager": self._projects,
        }
        answer = answers[api](request)
        if answer is None:
            self.unanswered.append(request)
            raise ApiError(501, f"the stand-in does not know {request.method} {request.path}")
        return answer

    def _at(self, path: str) -> Json:
        if path not in self.objects:
            raise ApiError(404, f"The resource '{path}' was not found")
        return self.objects[path]

    def _free(self, path: str) -> None:
        if path in self.objects:
            raise ApiError(409, f"The resource '{path}' already exists")

    def _below(self, path: str) -> list[Json]:
        return [value for key, value in self.objects.items() if key.startswith(f"{path}/")]

    def _operation(self, path: str, error: ApiError | None = None) -> Json:
        """Return an operation that is done already, below the place of a path."""
        self._operations += 1
        parts = path.split("/")
        place = "/".join(parts[:3] if parts[2] == "global" else parts[:4])
        name = f"operation-{self._operations}"
        operation: Json = {"name": name, "status": "DONE"}
        root = CONTAINER if "/locations/" in path else COMPUTE
        operation["selfLink"] = f"{root}/{place}/operations/{name}"
        operation["targetLink"] = f"{root}/{path}"
        if error and "/clusters" in path:
            operation["error"] = {"code": error.status, "message": str(error)}
            operation["statusMessage"] = str(error)  # what the provider reads
        elif error:
            details = {"code": "RESOURCE_EXHAUSTED", "message": str(error)}
            operation["error"] = {"errors": [details]}
        self.objects[f"{place}/operations/{name}"] = operation
        return operation

    def _compute(self, request: Request) -> Json | None:
        method, path, _ = request
        kind = path.rpartition("/")[2]
        if "/operations/" in path:
            return self._at(path.removesuffix("/wait"))
        if method == "GET":
            lists = kind in _COMPUTE_DEFAULTS or kind == "instanceGroupManagers"
            return {"items": self._below(path)} if lists else self._at(path)
        if method == "POST":
            return self._post_to_compute(path, kind, request.body or {})
        if method == "PATCH":
            self._patch(path, request.body or {})
        elif method == "DELETE":
            self._at(path)
            del self.objects[path]
        else:
            return None
        return self._operation(path)

    def _post_to_compute(self, path: str, kind: str, body: Json) -> Json:
        if kind in _COMPUTE_DEFAULTS:
            self._make_in_compute(path, kind, body)
        else:
            # Such as subnetworks/NAME/expandIpCidrRange, which is sent what changes.
            off = {"privateIpGoogleAccess": False} if kind == "setPrivateIpGoogleAccess" else {}
            self._at(path.rpartition("/")[0]).update(off | body)
        return self._operation(path)

    def _patch(self, path: str, body: Json) -> None:
        changes = dict(body)
        if "nats" in body:
            changes["nats"] = [_filled(nat, _NAT_DEFAULTS) for nat in body["nats"] or ()]
        self._at(path).update(changes)

    def _make_in_compute(self, path: str, kind: str, body: Json) -> None:
        made = f"{path}/{body['name']}"
        self._free(made)
        link = f"{COMPUTE}/{made}"
        place = path.rpartition("/")[0]
        self.objects[made] = _filled(body, _COMPUTE_DEFAULTS[kind]) | {
            "id": str(4 * 10**18 + len(self.objects)),
            "selfLink": link,
            "selfLinkWithId": link,
            "creationTimestamp": "2026-01-01T00:00:00.000-08:00",
            "fingerprint": "abc=",
            **({} if place.endswith("/global") else {"region": f"{COMPUTE}/{place}"}),
        }

    def _container(self, request: Request) -> Json | None:
        path, _, verb = request.path.partition(":")
        if "/operations/" in path:
            return self._at(path)
        if request.method == "GET":
            return self._read_in_container(path)
        body = request.body or {}
        if request.method == "DELETE":
            self._delete_in_container(path)
        elif verb:
            self._do(verb, self._at(path), body)
        elif request.method == "POST":
            self._make_in_container(path, body)
        elif "/nodePools/" in path:
            self._update_pool(path, body)
        else:
            self._update_cluster(path, body["update"])
        return self._operation(path)

    def _delete_in_container(self, path: str) -> None:
        self._at(path)
        for key in list(self.objects):
            if f"{key}/".startswith(f"{path}/"):
                del self.objects[key]

    def _make_in_container(self, path: str, body: Json) -> None:
        if path.endswith("/clusters"):
            self._make_cluster(path, body["cluster"])
        else:
            self._make_pool(path, body["nodePool"])

    def _read_in_container(self, path: str) -> Json:
        if path.endswith("/serverConfig"):
            versions = [VERSION]
            return {"validMasterVersions": versions, "validNodeVersions": versions}
        if path.endswith("/nodePools"):
            return {"nodePools": self._below(path)}
        found = self._at(path)
        if "/nodePools/" in path:
            return found
        pools = self._below(f"{path}/nodePools")
        first = {key: pools[0][key] for key in ("instanceGroupUrls",)} if pools else {}
        return {**found, "nodePools": pools, **first} | (
            {"nodeConfig": pools[0]["config"]} if pools else {}
        )

    def _make_cluster(self, parent: str, body: Json) -> None:
        path = f"{parent}/{body['name']}"
        self._free(path)
        cluster = copy.deepcopy(body)
        config = cluster.pop("nodeConfig", {})
        count = cluster.get("initialNodeCount", 0)
        default = {"name": "default-pool", "initialNodeCount": count, "config": config}
        pools = cluster.pop("nodePools", None) or [default]
        private = bool((cluster.get("privateClusterConfig") or {}).get("enablePrivateNodes"))
        location = parent.split("/")[3]
        links = {key: cluster.get(key, "").removeprefix(f"{COMPUTE}/") for key in _LINKS}
        network_config = {"defaultEnablePrivateNodes": private, **links}
        cluster["networkConfig"] = {**network_config, **cluster.get("networkConfig", {})}
        self.objects[path] = _filled(cluster, _CLUSTER_DEFAULTS) | {
            "location": location,
            "zone": location,
            "locations": cluster.get("locations") or _zones(location),
            "selfLink": f"{CONTAINER}/{path}",
            **{key: link.rpartition("/")[2] for key, link in links.items()},
        }
        for pool in pools:
            self._make_pool(f"{path}/nodePools", pool)

    def _make_pool(self, parent: str, body: Json) -> None:
        path = f"{parent}/{body['name']}"
        self._free(path)
        cluster = self._at(parent.rpartition("/")[0])
        pool = _filled(body, _POOL_DEFAULTS)
        pool["config"] = _filled(pool.get("config", {}), _NODE_DEFAULTS)
        if "workloadIdentityConfig" in cluster:
            pool["config"].setdefault("workloadMetadataConfig", {"mode": "GKE_METADATA"})
        private = cluster["networkConfig"].get("defaultEnablePrivateNodes")
        pool["networkConfig"].setdefault("enablePrivateNodes", private)
        pool.setdefault("locations", cluster["locations"])
        pool.setdefault("upgradeSettings", {"maxSurge": 1, "strategy": "SURGE"})
        pool["selfLink"] = f"{CONTAINER}/{path}"
        self.objects[path] = pool
        self._place_nodes(path, pool["initialNodeCount"])

    def _place_nodes(self, path: str, count: int | None = None) -> None:
        """Give a pool an instance group in each of its zones; None leaves the sizes as they are."""
        _, project, _, _, _, cluster, _, name = path.split("/")
        pool = self.objects[path]
        sizes = [
            group["targetSize"] for group in map(self._group, pool.get("instanceGroupUrls", ()))
        ]
        pool["instanceGroupUrls"] = []
        for zone in pool["locations"]:
            place = f"projects/{project}/zones/{zone}"
            group = f"{place}/instanceGroupManagers/gke-{cluster}-{name}-{zone[-1]}-grp"
            self.objects[group] = {
                "name": group.rpartition("/")[2],
                "targetSize": count if count is not None else max(sizes, default=0),
                "selfLink": f"{COMPUTE}/{group}",
                "instanceGroup": f"{COMPUTE}/{group}".replace("GroupManagers", "Groups"),
                "zone": f"{COMPUTE}/{place}",
            }
            pool["instanceGroupUrls"].append(f"{COMPUTE}/{group}")

    def _group(self, url: str) -> Json:
        return self.objects[url.removeprefix(f"{COMPUTE}/")]

    def _do(self, verb: str, thing: Json, body: Json) -> None:
        """Carry out a request whose path ends with a verb."""
        if verb == "setSize":
            for url in thing["instanceGroupUrls"]:
                self._group(url)["targetSize"] = body["nodeCount"]
        elif verb == "setResourceLabels":
            thing["resourceLabels"] = body.get("resourceLabels") or {}
        elif verb == "setMaintenancePolicy":
            thing["maintenancePolicy"] = {**body["maintenancePolicy"], "resourceVersion": "2"}
        else:  # setManagement
            thing |= body

    def _update_pool(self, path: str, body: Json) -> None:
        pool = self._at(path)
        for key, value in body.items():
            if key == "locations":
                pool["locations"] = value
                self._place_nodes(path)
            elif key == "nodeVersion":
                pool["version"] = value
            elif key == "nodeNetworkConfig":
                pool["networkConfig"] |= value
            elif key in ("upgradeSettings", "nodeDrainConfig"):
                pool[key] = value
            elif key in ("labels", "resourceLabels", "taints", "tags", "accelerators"):
                # A message around the map or list of the same name, or of "labels".
                pool["config"][key] = value.get("labels" if "abels" in key else key)
            elif key == "diskSizeGb":
                pool["config"][key] = int(value)
            elif key not in ("name", "nodePoolId"):
                pool["config"][key] = value

    def _update_cluster(self, path: str, update: Json) -> None:
        cluster = self._at(path)
        pool = self.objects.get(f"{path}/nodePools/{update.get('desiredNodePoolId')}", {})
        for desired, value in update.items():
            key = desired.removeprefix("desired")
            key = key[:1].lower() + key[1:]
            if key == "nodePoolAutoscaling":
                pool["autoscaling"] = value
            elif key == "imageType":
                pool["config"]["imageType"] = value
            elif key == "masterVersion":
                cluster["currentMasterVersion"] = value
            elif key in ("defaultEnablePrivateNodes", "enableMultiNetworking"):
                cluster["networkConfig"][key] = value
            elif isinstance(value, dict):
                present = cluster.get(key) or {}
                cluster[key] = {
                    name: {**present.get(name, {}), **inner} if isinstance(inner, dict) else inner
                    for name, inner in {**present, **value}.items()
                }
            elif key != "nodePoolId":
                cluster[key] = value

    def _iam(self, request: Request) -> Json | None:
        method, path, body = request
        parts = path.split("/")
        if method == "POST" and parts[-1] == "serviceAccounts" and body:
            email = f"{body['accountId']}@{parts[1]}.iam.gserviceaccount.com"
            made = f"{path}/{email}"
            self._free(made)
            names = {"name": made, "email": email, "uniqueId": "123", "projectId": parts[1]}
            self.objects[made] = {**body.get("serviceAccount", {}), **names}
            return self.objects[made]
        if parts[1] == "-":
            project = parts[-1].partition("@")[2].partition(".")[0]
            path = path.replace("projects/-", f"projects/{project}")
        account = self._at(path)
        if method == "PATCH" and body:
            account |= body["serviceAccount"]
        elif method == "DELETE":
            del self.objects[path]
        return account

    def _projects(self, request: Request) -> Json | None:
        path, _, verb = request.path.partition(":")
        policy = f"{path}/iamPolicy"
        if verb == "setIamPolicy" and request.body:
            self.objects[policy] = request.body["policy"]
        elif verb == "":
            return {"projectId": path.rpartition("/")[2], "projectNumber": "1"}
        return self.objects.setdefault(policy, {"version": 3, "bindings": [], "etag": "BwX="})


_LINKS = ("network", "subnetwork")
_READING = re.compile(r":getIamPolicy$")


def _changes(request: Request) -> bool:
    return request.method != "GET" and not _READING.search(request.path)


def _zones(location: str) -> list[str]:
    """Return the zones of a location: a region has three."""
    return [location] if _ZONE.search(location) else [f"{location}-{letter}" for letter in "abc"]


def _filled(given: Json, defaults: Json) -> Json:
    """Return an object with the defaults of what it lacks, inside of its parts too."""
    filled = copy.deepcopy(defaults)
    for key, value in given.items():
        inner = filled.get(key)
        if isinstance(value, dict) and isinstance(inner, dict):
            filled[key] = _filled(value, inner)
        else:
            filled[key] = copy.deepcopy(value)
    return filled


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, apis: GoogleApis) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.apis = apis
        self.lock = threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _respond(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        text = self.rfile.read(size)
        body = json.loads(text) if text.strip() else None
        _, api, _, path = unquote(urlsplit(self.path).path).split("/", 3)
        with self.server.lock:
            try:
                answer = self.server.apis.answer(api, Request(self.command, path, body))
                status = 200
            except ApiError as error:
                status = error.status
                answer = {"error": {"code": status, "message": str(error)}}
            content = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _respond  # noqa: N815 (the base's names)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""


@contextmanager
def serving(apis: GoogleApis) -> Iterator[str]:
    """Serve the APIs for a block, and yield the server's address."""
    server = _Server(apis)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


APIS = {
    "COMPUTE": "compute/v1",
    "CONTAINER": "container/v1",
    "CONTAINER_BETA": "container/v1beta1",
    "IAM": "iam/v1",
    "IAM_BETA": "iam/v1",
    "RESOURCE_MANAGER": "cloudresourcemanager/v1",
    "SERVICE_USAGE": "serviceusage/v1",
}


def variables(address: str) -> dict[str, str]:
    """Return the environment that leads the provider to a server, and away from Google."""
    endpoints = {
        f"GOOGLE_{name}_CUSTOM_ENDPOINT": f"{address}/{path}/" for name, path in APIS.items()
    }
    return {
        **endpoints,
        "GOOGLE_OAUTH_ACCESS_TOKEN": "stand-in",
        "PULUMI_GCP_SKIP_REGION_VALIDATION": "true",
        "HTTPS_PROXY": "http://127.0.0.1:1",
        "NO_PROXY": "127.0.0.1",
    }
