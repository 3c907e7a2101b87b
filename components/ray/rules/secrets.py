"""Rules of secret variables: one place of a value, its project, and its own Secret."""

from collections.abc import Iterator

from berth.components.core.rules import Breach, Rules
from berth.components.ray.placed import PlacedCluster
from berth.components.ray.settings import BerthShape
from berth.components.ray.variables import references_of

SECRETS = Rules[PlacedCluster](BerthShape)
"""Rules of the secret variables of a RayCluster."""


@SECRETS.problem("secrets.*")
def variable_in_env_and_secrets(placed: PlacedCluster) -> Iterator[Breach]:
    """A variable has one value."""
    for name in sorted(placed.cluster.env.keys() & placed.cluster.secrets.keys()):
        yield Breach("is in `env` too; take one of the two out", at=("secrets", name))


@SECRETS.problem("secrets.*.secretManager")
def secret_without_a_project(placed: PlacedCluster) -> Iterator[Breach]:
    """Settings of an existing cluster do not have its project."""
    for name, place in placed.cluster.secrets.items():
        secret = place.secret_manager
        if placed.available.on_existing_cluster and secret and not secret.startswith("projects/"):
            yield Breach(
                "needs its project, which the settings of an existing cluster do not have; write"
                f" projects/PROJECT/secrets/{secret}",
                at=("secrets", name, "secretManager"),
            )


@SECRETS.problem("secrets.*")
def two_variables_of_one_secret(placed: PlacedCluster) -> Iterator[Breach]:
    """GKE writes a Secret for one variable alone."""
    secrets = placed.cluster.secrets
    references = references_of(secrets)
    for name, place in secrets.items():
        secret = references[name].secret
        others = [
            other for other in secrets if other != name and references[other].secret == secret
        ]
        if place.secret_manager and others:
            yield Breach(
                f"would be in Secret {secret}, as {others[0]} is, and GKE writes that Secret for"
                f" {name} alone; rename one of the two",
                at=("secrets", name),
            )
