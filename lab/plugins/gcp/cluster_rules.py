"""What GKE refuses of a cluster.

Texts that public reports quote are used as they are; the others keep the API's shape and say what the
page on the feature says.

Answers to (read):
    https://github.com/terraform-google-modules/terraform-google-kubernetes-engine/issues/1012 and
    issues/153 (private endpoints),
    https://github.com/hashicorp/terraform-provider-google/issues/22167 and
    https://github.com/sassoftware/viya4-iac-gcp/issues/58 (versions).
Answers to (read):
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/setup-multinetwork-support-for-pods
    (multi-networking needs Dataplane V2).
Answers to (believed): the texts of the other refusals. Asking GKE for such a cluster would settle
    each.
"""

from __future__ import annotations

import ipaddress
import re
from typing import TYPE_CHECKING, Any

from berth.lab.plugins.gcp.errors import GoogleApiError, bad_request
from berth.lab.plugins.gcp.locations import region_of
from berth.lab.plugins.gcp.node_pool_rules import check_zones
from berth.lab.plugins.gcp.pools import cluster_zones
from berth.lab.plugins.gcp.references import find_network, find_subnetwork, rdma_zone
from berth.lab.plugins.gcp.resource import Cloud, last_part
from berth.lab.plugins.gcp.versions import older
from berth.lab.plugins.provider import ProviderError

if TYPE_CHECKING:
    from berth.lab.plugins.gcp.store import Record

# Options of the cluster that a simulation of Standard clusters cannot grant.
_REFUSED = {"enableAutopilot": "Autopilot clusters", "enableKubernetesAlpha": "alpha clusters", "enableTpu": "TPUs"}

_WHOLE_VERSION = re.compile(r"\d+\.\d+\.\d+-gke\.\d+")


def check_cluster(cloud: Cloud, record: Record) -> None:
    """Refuse what GKE refuses.

    Raises:
        ProviderError: with the first thing that is wrong.
    """
    inputs = record.inputs
    for key, what in _REFUSED.items():
        if inputs.get(key):
            raise ProviderError(f"{key}: the simulated GKE has Standard clusters, no {what}")
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


def check_version(wanted: object, version: str) -> None:
    """GKE has versions up to a point: the lab has the one of its API server.

    Raises:
        GoogleApiError: naming the version that is asked for.
    """
    if not wanted or wanted in {"latest", "-"} or not older(version, str(wanted)):
        return
    if _WHOLE_VERSION.fullmatch(str(wanted)):
        raise bad_request(f'Master version "{wanted}" is unsupported.')
    raise bad_request(f'No valid versions with the prefix "{wanted}" found.')


def _check_network(cloud: Cloud, record: Record) -> None:
    network = record.inputs.get("network")
    if network is None:
        raise bad_request('Network "default" does not exist.')
    try:
        found = find_network(cloud, network, record.project)
    except GoogleApiError:
        raise bad_request(f'Network "{last_part(network)}" does not exist.') from None
    if rdma_zone(found):
        raise bad_request(f'Network "{found.name}" has a network profile and cannot be a cluster\'s network.')
    _check_subnetwork(cloud, record, found)


def _check_subnetwork(cloud: Cloud, record: Record, network: Record) -> None:
    reference = record.inputs.get("subnetwork")
    if reference is None:
        raise bad_request(f'Network "{network.name}" requires a subnetwork to be specified.')
    region = region_of(str(record.inputs["location"]))
    path, subnetwork = find_subnetwork(cloud, reference, record.project, region)
    if subnetwork is None or last_part(subnetwork.inputs["network"]) != network.name:
        raise bad_request(f'Subnetwork "{path}" is not valid for Network "{network.name}".')
    there = {item["rangeName"] for item in subnetwork.inputs.get("secondaryIpRanges") or []}
    policy = record.inputs.get("ipAllocationPolicy") or {}
    for key in ("clusterSecondaryRangeName", "servicesSecondaryRangeName"):
        if policy.get(key) and policy[key] not in there:
            raise bad_request(
                f'Pod/services secondary range "{policy[key]}" does not exist in subnetwork "{subnetwork.name}".'
            )


def _check_control_plane(inputs: dict[str, Any]) -> None:
    """Private nodes and endpoint, and from where the control plane can be reached."""
    private = inputs.get("privateClusterConfig") or {}
    if private.get("enablePrivateNodes") and inputs.get("networkingMode") == "ROUTES":
        raise bad_request("Private nodes require a VPC-native cluster (networking_mode VPC_NATIVE).")
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
