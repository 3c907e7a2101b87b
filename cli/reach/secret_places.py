"""Places of a berth's secret values: keys of Secrets in its namespace."""

from collections.abc import Mapping
from dataclasses import dataclass

from berth.cli.reach.environment import brought_up
from berth.cli.reach.named_berth import berth_and_stack
from berth.components.berth import BerthInputs
from berth.components.cluster.api import RAY_CLUSTERS, SECRETS, ClusterApi, Object, in_namespace
from berth.components.core.errors import BadInputError
from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import namespace_of
from berth.components.isolation import pull_secrets, secret_variables
from berth.components.ray import synchronized_secrets
from berth.stacks.load.stack import Environment, load_stack

DOCKER_KEY = ".dockerconfigjson"
"""Key of a Secret with logins to image registries."""


@dataclass(frozen=True)
class SecretPlace:
    """Place of a secret value."""

    variable: str
    """The environment variable, or the name of a login to image registries."""
    secret: str
    key: str
    login: bool = False
    secret_manager: str = ""
    """Secret of Secret Manager from which GKE writes the value; "" for none."""


@dataclass(frozen=True)
class BerthSecrets:
    """A berth with the places of its secret values, by variable, and its cluster's project."""

    name: str
    stack: str
    api: ClusterApi
    places: Mapping[str, SecretPlace]
    project: str | None = None

    @property
    def collection(self) -> str:
        """Path of the Secrets of the berth's namespace."""
        return in_namespace(namespace_of(self.name), SECRETS)

    def secret(self, place: SecretPlace) -> Object:
        """Return the Secret of a place; an empty one if it has no value there."""
        secret = self.api.get(f"{self.collection}/{place.secret}") or {}
        return secret if place.key in (secret.get("data") or {}) else {}

    def place(self, variable: str) -> SecretPlace:
        """Return the place of a variable's value, which `berth secret` may write.

        Raises:
            BadInputError: no setting names the variable, or GKE writes its value.
        """
        place = self.places.get(variable)
        if place is None:
            raise BadInputError(
                f"no setting of {self.name} names the secret variable"
                f" {variable!r}{did_you_mean(variable, self.places)}",
                f"add it to the settings of {self.name} first: secrets: {{{variable}: {{}}}}",
            )
        if place.secret_manager:
            _, project, _, secret, *_ = place.secret_manager.split("/")
            raise BadInputError(
                f"{variable} of {self.name} comes from Secret Manager ({place.secret_manager});"
                " GKE would overwrite a value that is set here",
                f"add a version there: gcloud secrets versions add {secret} --project={project}"
                " --data-file=-",
            )
        return place


def places_of(manifest: Object, sources: Mapping[str, str] | None = None) -> dict[str, SecretPlace]:
    """Return the places of the secret values that a RayCluster, RayJob or RayService names.

    Args:
        manifest: the RayCluster, RayJob or RayService.
        sources: secrets of Secret Manager by the Secret that GKE writes from them.
    """
    sources = sources or {}
    places = {}
    for variable, key in secret_variables([manifest]).items():
        secret = key["name"]
        source = sources.get(secret, "")
        places[variable] = SecretPlace(variable, secret, key["key"], secret_manager=source)
    for name in pull_secrets([manifest]):
        places[name] = SecretPlace(name, name, DOCKER_KEY, login=True)
    return places


def places_of_berth(berth: BerthInputs) -> dict[str, SecretPlace]:
    """Return the places of the secret values that a berth's settings name."""
    return places_of(
        berth.manifests.main, synchronized_secrets(berth.settings.secrets, berth.project)
    )


def secrets_of_berth(name: str, stack: str | None) -> BerthSecrets:
    """Return a berth with the secret variables that its settings name, else those of its pods.

    The settings come first: a value is set before the update that has pods read it.

    Raises:
        NotUpError: the environment is not up.
    """
    name, stack = berth_and_stack(name, stack)
    environment = brought_up(stack)
    api = ClusterApi(environment.kubeconfig)
    loaded = load_stack(stack)
    if isinstance(loaded, Environment):
        berths = loaded.berths
    else:
        berths = [loaded.on(environment.contract).berth]
    for berth in berths:
        if berth.settings.name == name:
            return BerthSecrets(name, stack, api, places_of_berth(berth), berth.project)
    places: dict[str, SecretPlace] = {}
    manifests, _ = api.list(in_namespace(namespace_of(name), RAY_CLUSTERS))
    for manifest in manifests:
        places |= places_of(manifest)
    return BerthSecrets(name, stack, api, places)
