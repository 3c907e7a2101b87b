"""Secrets of Secret Manager that GKE writes into a berth's namespace."""

from berth.components.cluster.api import ClusterApi, ClusterError, in_namespace
from berth.components.ray import SYNC_ACCOUNT, SYNCS_PATH


def why_not_synced(api: ClusterApi, namespace: str, secret: str, source: str) -> str:
    """Return why GKE has not written a value, with GKE's reason if there is one."""
    text = f"GKE has not written {source} into Secret {secret}"
    try:
        sync = api.get(f"{in_namespace(namespace, SYNCS_PATH)}/{secret}") or {}
    except ClusterError:  # users of a berth may not look
        return text
    conditions = (sync.get("status") or {}).get("conditions") or []
    failed = next(
        (condition for condition in conditions if condition.get("status") == "False"), None
    )
    if failed is None:
        return text
    return f"{text}: {failed.get('reason')}: {failed.get('message')}"


def grant_command(source: str, project: str | None, namespace: str) -> str:
    """Return the command that lets GKE read a secret of Secret Manager for a berth."""
    _, owner, _, secret, *_ = source.split("/")
    of_cluster = project or "PROJECT"
    number = f"$(gcloud projects describe {of_cluster} --format='value(projectNumber)')"
    pool = f"projects/{number}/locations/global/workloadIdentityPools/{of_cluster}.svc.id.goog"
    member = f"principal://iam.googleapis.com/{pool}/subject/ns/{namespace}/sa/{SYNC_ACCOUNT}"
    return (
        f"gcloud secrets add-iam-policy-binding {secret} --project={owner}"
        f' --role=roles/secretmanager.secretAccessor --member="{member}"'
    )
