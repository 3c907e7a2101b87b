"""GKE clusters that GKE refuses.

Texts that public reports quote are used as they are; the others keep the API's shape and say what
the page on the feature says.

Answers to (read):
    https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/1012 and
    issues/153 (private endpoints),
    https://github.com/hashicorp/terraform-provider-google/issues/22167 and
    https://github.com/sassoftware/viya4-iac-gcp/issues/58 (versions).
Answers to (read):
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/setup-multinetwork-support-for-pods
    (multi-networking needs Dataplane V2), and
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/encrypting-secrets (the key is in
    the location of the cluster).
Answers to (believed): the texts of the other refusals. Asking GKE for such a cluster would settle
    each.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any

from berth.components.gke.versions import parse
from berth.lab.plugins.gcp.errors import GoogleApiError, bad_request
from berth.lab.plugins.gcp.locations import region_of
from berth.lab.plugins.gcp.node_pool_rules import check_zones
from berth.lab.plugins.gcp.pools import cluster_zones
from berth.lab.plugins.gcp.references import find_network, find_subnetwork, rdma_zone
from berth.lab.plugins.gcp.resource import Cloud, last_part

if TYPE_CHECKING:
    from berth.lab.plugins.gcp.store import Record

_WHOLE_VERSION = re.compile(r"\d+\.\d+\.\d+-gke\.\d+")


def check_cluster(cloud: Cloud, record: Record) -> None:
    """Refuse what GKE refuses.

    Raises:
        GoogleApiError: with the first thing that is wrong.
    """
    inputs = record.inputs
    check_zones(cluster_zones(inputs), str(inputs["location"]))
    _check_network(cloud, record)
    pool = (inputs.get("workloadIdentityConfig") or {}).get("workloadPool")
    if pool and pool != f"{record.project}.svc.id.goog":
        raise bad_request(
            f'Invalid value for field "workload_identity_config.workload_pool": currently, the only supported '
            f'value is "{record.project}.svc.id.goog".'
        )
    if inputs.get("enableMultiNetworking") and inputs.get("datapathProvider") != "ADVANCED_DATAPATH":
        raise bad_request("Multi-networking requires Dataplane V2 (datapath_provider ADVANCED_DATAPATH).")
    _check_control_plane(inputs)
    _check_key(inputs)


def check_version(asked: object, version: str) -> None:
    """Refuse a version that is newer than the lab's API server.

    Raises:
        GoogleApiError: naming the version.
    """
    if not asked or asked in {"latest", "-"} or parse(version).at_least(parse(str(asked))):
        return
    if _WHOLE_VERSION.fullmatch(str(asked)):
        raise bad_request(f'Master version "{asked}" is unsupported.')
    raise bad_request(f'No valid versions with the prefix "{asked}" found.')


def _check_network(cloud: Cloud, record: Record) -> None:
    network, reference = record.inputs.get("network") or "default", record.inputs.get("subnetwork")
    try:
        found = find_network(cloud, network, record.project)
    except GoogleApiError:
        raise bad_request(f'Network "{last_part(network)}" does not exist.') from None
    if rdma_zone(found):
        raise bad_request(f'Network "{found.name}" has a network profile and cannot be a cluster\'s network.')
    if reference is None:
        raise bad_request(f'Network "{found.name}" requires a subnetwork to be specified.')
    region = region_of(str(record.inputs["location"]))
    path, subnetwork = find_subnetwork(cloud, reference, record.project, region)
    if subnetwork is None or last_part(subnetwork.inputs["network"]) != found.name:
        raise bad_request(f'Subnetwork "{path}" is not valid for Network "{found.name}".')
    ranges = {item["rangeName"] for item in subnetwork.inputs.get("secondaryIpRanges") or []}
    policy = record.inputs.get("ipAllocationPolicy") or {}
    for key in ("clusterSecondaryRangeName", "servicesSecondaryRangeName"):
        if policy.get(key) and policy[key] not in ranges:
            raise bad_request(
                f'Pod/services secondary range "{policy[key]}" does not exist in subnetwork "{subnetwork.name}".'
            )


def _check_control_plane(inputs: dict[str, Any]) -> None:
    """Refuse combinations of private nodes, private endpoint and authorized networks."""
    private = inputs.get("privateClusterConfig") or {}
    authorized = inputs.get("masterAuthorizedNetworksConfig")
    endpoint = bool(private.get("enablePrivateEndpoint"))
    if endpoint and not private.get("enablePrivateNodes"):
        raise bad_request("Private endpoint can only be enabled if private nodes are enabled.")
    if endpoint and authorized is None:
        raise bad_request("Master authorized networks must be enabled if private endpoint is enabled.")
    for block in (authorized or {}).get("cidrBlocks") or []:
        cidr = block["cidrBlock"]
        if endpoint and not ipaddress.ip_network(str(cidr)).is_private:
            raise bad_request(
                f'Invalid master authorized networks: network "{cidr}" is not a reserved network, which is required '
                "for private endpoints."
            )


def _check_key(inputs: dict[str, Any]) -> None:
    """Refuse a key of Cloud KMS that is not where the cluster is."""
    key = str((inputs.get("databaseEncryption") or {}).get("keyName") or "")
    match = re.search(r"/locations/([^/]+)/", key)
    region = region_of(str(inputs["location"]))
    if key and (match is None or match[1] != region):
        raise bad_request(f'Database encryption key "{key}" must be in the location of the cluster, "{region}".')
