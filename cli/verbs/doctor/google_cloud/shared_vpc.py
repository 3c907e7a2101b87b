"""Checks of the roles that GKE's own agents have in the host project of a Shared VPC.

Sources: "Set up clusters with Shared VPC"
(https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cluster-shared-vpc) and
GoogleCloudPlatform/cloud-foundation-fabric, modules/project/sharedvpc-agent-iam.yaml.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.cli.reach.google_cloud import GoogleClient, GoogleError
from berth.cli.verbs.doctor.findings import DoctorFinding, Topic
from berth.components.core.words import first_names
from berth.components.gke import ExistingNetwork
from berth.stacks.settings.environment import EnvironmentSettings

SHARED_VPC = Topic("Shared VPC")

NETWORK_USER = "roles/compute.networkUser"
HOST_AGENT_USER = "roles/container.hostServiceAgentUser"

_OWNERS = ("roles/owner", "roles/editor")
_CONTAINING = {
    NETWORK_USER: ("roles/compute.networkAdmin", "roles/compute.admin", *_OWNERS),
    HOST_AGENT_USER: ("roles/owner",),
}
"""Google's roles that have the permissions of another one."""

_WITH_CONDITION = "_withcond_"
"""Mark of a role with a condition, in the version of a policy that Google answers by default. The
condition is taken to hold."""

_SHOWN = 4

Policy = Mapping[str, Any]
"""IAM policy of a project or a subnetwork, as Google answers it."""


@dataclass(frozen=True)
class SharedVpc:
    """Shared VPC as one agent of the environment's project needs it.

    Attributes:
        host: the host project.
        region: region of the subnetworks.
        subnetworks: names of the subnetworks that nodes use.
    """

    host: str
    region: str
    subnetworks: Sequence[str]

    def grant(self, agent: str, role: str) -> str:
        """Return the command that gives an agent a role in the host project."""
        return (
            f"gcloud projects add-iam-policy-binding {self.host} --member=serviceAccount:{agent}"
            f" --role={role} --condition=None"
        )

    def grant_subnetwork(self, agent: str, subnetwork: str) -> str:
        """Return the command that lets an agent use a subnetwork."""
        return (
            f"gcloud compute networks subnets add-iam-policy-binding {subnetwork}"
            f" --project={self.host} --region={self.region} --member=serviceAccount:{agent}"
            f" --role={NETWORK_USER}"
        )


def host_project(settings: EnvironmentSettings) -> str:
    """Return the host project of a Shared VPC; empty for networks of the environment's project."""
    existing = settings.network.existing
    host = existing.project if existing else None
    return host if host and host != settings.project else ""


def check_shared_vpc(
    google: GoogleClient, settings: EnvironmentSettings
) -> Iterable[DoctorFinding]:
    """Check that GKE's agents may use the subnetworks of the host project.

    Raises:
        GoogleError: Google Cloud cannot be asked.
    """
    existing = settings.network.existing
    if existing is None:
        return
    vpc = SharedVpc(host_project(settings), settings.in_region, _subnetworks(existing))
    number = google.get("cloudresourcemanager", f"projects/{google.project}").get("projectNumber")
    gke = f"service-{number}@container-engine-robot.iam.gserviceaccount.com"
    google_apis = f"{number}@cloudservices.gserviceaccount.com"
    of_host = _readable(lambda: google.project_policy(vpc.host))
    of_subnetworks = {name: _subnetwork_policy(google, vpc, name) for name in vpc.subnetworks}
    yield _host_agent(vpc, gke, of_host)
    for agent in (gke, google_apis):
        yield _network_user(vpc, agent, of_host, of_subnetworks)


def _subnetworks(existing: ExistingNetwork) -> list[str]:
    names = [existing.subnetwork]
    if existing.gvnic:
        names.append(existing.gvnic.subnetwork)
    if existing.rdma:
        names += existing.rdma.subnetworks
    return list(dict.fromkeys(names))


def _host_agent(vpc: SharedVpc, agent: str, of_host: Policy | None) -> DoctorFinding:
    held = _holds(of_host, agent, HOST_AGENT_USER)
    grant = vpc.grant(agent, HOST_AGENT_USER)
    if held is None:
        return SHARED_VPC.unchecked(
            f"whether {agent} has {HOST_AGENT_USER} in {vpc.host}: {_why(of_host)}", grant
        )
    if not held:
        return SHARED_VPC.missing(
            f"{agent} lacks {HOST_AGENT_USER} in {vpc.host}, without which GKE creates no cluster"
            " there",
            grant,
        )
    return SHARED_VPC.fine(f"{agent} has {HOST_AGENT_USER} in {vpc.host}")


def _network_user(
    vpc: SharedVpc, agent: str, of_host: Policy | None, of_subnetworks: Mapping[str, Policy | None]
) -> DoctorFinding:
    everywhere = _holds(of_host, agent, NETWORK_USER)
    if everywhere:
        return SHARED_VPC.fine(f"{agent} may use all subnetworks of {vpc.host}")
    held = {name: _holds(policy, agent, NETWORK_USER) for name, policy in of_subnetworks.items()}
    lacking = [name for name, holds in held.items() if not holds]
    if not lacking:
        return SHARED_VPC.fine(f"{agent} may use the subnetworks of the settings in {vpc.host}")
    grants = "\n".join(vpc.grant_subnetwork(agent, name) for name in lacking)
    shown = first_names(lacking, _SHOWN)
    known = everywhere is not None and all(held[name] is not None for name in lacking)
    if known:
        return SHARED_VPC.missing(
            f"{agent} lacks {NETWORK_USER} on {shown} in {vpc.host}, without which nodes get no"
            " address there",
            grants,
        )
    unread = [policy for policy in (of_host, *of_subnetworks.values()) if policy is None]
    why = _why(None if unread else of_host)
    return SHARED_VPC.unchecked(
        f"whether {agent} has {NETWORK_USER} on {shown} in {vpc.host}: {why}", grants
    )


def _holds(policy: Policy | None, agent: str, role: str) -> bool | None:
    """Return whether a policy gives an agent the permissions of a role.

    None says that it cannot be told: the policy is not readable, or has a role of the user's own.
    Roles that a folder or the organization gives are in none of these policies.
    """
    if policy is None:
        return None
    roles = set()
    for binding in policy.get("bindings") or []:
        if f"serviceAccount:{agent}" in (binding.get("members") or []):
            roles.add(str(binding.get("role")).partition(_WITH_CONDITION)[0])
    if roles & {role, *_CONTAINING[role]}:
        return True
    has_own_role = any(not held.startswith("roles/") for held in roles)
    return None if has_own_role else False


def _why(policy: Policy | None) -> str:
    if policy is None:
        return "you may not read all IAM policies there (roles/iam.securityReviewer)"
    return "it has a role of your own there, whose permissions are not looked at"


def _subnetwork_policy(google: GoogleClient, vpc: SharedVpc, name: str) -> Policy | None:
    path = f"projects/{vpc.host}/regions/{vpc.region}/subnetworks/{name}"
    return _readable(lambda: google.get("compute", f"{path}/getIamPolicy"))


def _readable(ask: Callable[[], Policy]) -> Policy | None:
    """Return a policy; None if the caller may not read it, or if its resource does not exist."""
    try:
        return ask()
    except GoogleError as error:
        if error.kind in ("forbidden", "absent"):
            return None
        raise
