"""Rule of secrets that stand as plain text in a stack's settings."""

from collections.abc import Iterator

from berth.components.core.plain_secrets import PlainSecret, plain_secrets
from berth.components.core.rules import Breach, Rules
from berth.components.core.settings import Settings

WRITTEN = Rules[Settings](Settings)
"""Rules of all texts of a stack's settings, as they are written."""

_OF_ENVIRONMENT_ALONE = ("operators", "cluster", "pools", "network", "keeper")
"""Settings of an environment that no pod of a berth reads."""


@WRITTEN.warning("**")
def secret_in_plain_text(settings: Settings) -> Iterator[Breach]:
    """Settings are in git, in Pulumi's state and, of a berth, in its RayCluster."""
    written = settings.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for secret in plain_secrets(written):
        yield Breach(
            "looks like a secret: whoever reads the repository, Pulumi's state or the cluster's"
            f" objects would have it; {_way_out(secret)}",
            at=secret.path,
        )


def _way_out(secret: PlainSecret) -> str:
    """Return how to write a secret without its value; the value itself is not repeated."""
    first, *below = secret.path
    if first in _OF_ENVIRONMENT_ALONE:
        return "put it into a Secret on the cluster, and name that Secret"
    owner = below[0] if first in ("engineers", "clusters", "jobs", "services") else "NAME"
    return (
        f"write `secrets: {{{secret.name}: {{}}}}`, and give its value by `berth secret set {owner}"
        f" {secret.name}`"
    )
