"""Rule of secrets that stand as plain text in a stack's settings."""

from collections.abc import Iterator
from dataclasses import dataclass

from berth.components.core.plain_secrets import PlainSecret, plain_secrets
from berth.components.core.rules import Breach, Rules
from berth.components.core.settings import Settings


@dataclass(frozen=True)
class Written:
    """Settings of a stack as they are written.

    Attributes:
        settings: settings of an environment, or of an engineer's own stack.
        berth: name of the own stack's berth; empty for an environment.
    """

    settings: Settings
    berth: str = ""


WRITTEN = Rules[Written](Settings)
"""Rules of all texts of a stack's settings, as they are written."""

_OF_ENVIRONMENT_ALONE = ("operators", "cluster", "pools", "network", "keeper")
"""Settings of an environment that no pod of a berth reads."""


@WRITTEN.warning("**")
def secret_in_plain_text(written: Written) -> Iterator[Breach]:
    """Settings are in git, in Pulumi's state and, of a berth, in its RayCluster."""
    texts = written.settings.model_dump(mode="json", by_alias=True, exclude_unset=True)
    for secret in plain_secrets(texts):
        yield Breach(
            "looks like a secret: whoever reads the repository, Pulumi's state or the cluster's"
            f" objects would have it; {_way_out(secret, written.berth)}",
            at=secret.path,
        )


def _way_out(secret: PlainSecret, berth: str) -> str:
    """Return how to write a secret without its value; the value itself is not repeated."""
    first, *below = secret.path
    if first in _OF_ENVIRONMENT_ALONE:
        return "put it into a Secret on the cluster, and name that Secret"
    owner = berth or "NAME"
    if first in ("engineers", "clusters", "jobs", "services"):
        owner = str(below[0])
    return (
        f"write `secrets: {{{secret.name}: {{}}}}`, and give its value by `berth secret set {owner}"
        f" {secret.name}`"
    )
