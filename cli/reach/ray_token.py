"""Token with which a berth's Ray accepts requests."""

import base64

from berth.cli.reach.berths import LiveBerth
from berth.components.cluster.api import SECRETS, Object, in_namespace
from berth.components.core.errors import BerthError

TOKEN_KEY = "auth_token"  # noqa: S105 - KubeRay's name of the key (ray-operator/controllers/ray/utils/constant.go)


def token_secret(cluster: Object) -> str | None:
    """Return the name of the Secret with a RayCluster's token; None for a cluster without one."""
    options = cluster["spec"].get("authOptions") or {}
    if options.get("mode") != "token":
        return None
    return str(options.get("secretName") or cluster["metadata"]["name"])


def read_token(berth: LiveBerth) -> str | None:
    """Return Ray's token of a berth; None for a berth without one.

    Raises:
        BerthError: the operator has not made the token yet.
    """
    name = token_secret(berth.cluster)
    if name is None:
        return None
    secret = berth.api.get(f"{in_namespace(berth.namespace, SECRETS)}/{name}")
    if secret is None or TOKEN_KEY not in (secret.get("data") or {}):
        raise BerthError(
            f"the operator has not made the token of {berth.name} yet (Secret"
            f" {berth.namespace}/{name})",
            f"try again; berth logs {berth.name} --operator shows why",
        )
    return base64.b64decode(secret["data"][TOKEN_KEY]).decode()
