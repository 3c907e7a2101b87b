"""`berth secret`: values of secret variables, in Secrets of a berth's namespace.

Pulumi knows the names of the Secrets only. Each key has a field manager of its own, so that keys of
one Secret are written and removed one by one.
"""

import base64
import json
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass

import typer

from berth.cli.reach.berths import berth_and_stack
from berth.cli.reach.environment import NotUpError, brought_up
from berth.cli.shell.console import Table, err, print_result
from berth.components.berth import BerthInputs
from berth.components.cluster.api import (
    MERGE_PATCH,
    RAY_CLUSTERS,
    SECRETS,
    ClusterApi,
    ClusterError,
    ConflictError,
    NotFoundError,
    Object,
    in_namespace,
)
from berth.components.core.errors import BadInputError
from berth.components.core.manifest import MANAGED_BY
from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import namespace_of
from berth.components.isolation import pull_secrets, secret_variables
from berth.components.ray.secret_manager import ACCOUNT, SYNCS, synchronized_secrets
from berth.stacks.load.stack import Environment, load_stack

MISSING = 3
"""Exit code of `berth secret list` if a value is missing."""

DOCKER_TYPE, DOCKER_KEY = "kubernetes.io/dockerconfigjson", ".dockerconfigjson"
"""Type and key of a Secret with logins to image registries."""

_MANAGER = "berth-secret"


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
        """Return the place of a variable's value, which `berth secret` may write."""
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


def set_secret(name: str, variable: str, stack: str | None, *, as_json: bool) -> int:
    """Read the value of a secret variable and write it into its Secret; return the exit code."""
    berth = _find(name, stack)
    place = berth.place(variable)
    value = _read(place)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": place.secret, "labels": MANAGED_BY},
        "type": DOCKER_TYPE if place.login else "Opaque",
        "data": {place.key: base64.b64encode(value.encode()).decode()},
    }
    try:
        berth.api.apply(
            f"{berth.collection}/{place.secret}",
            json.dumps(secret),
            f"{_MANAGER}-{place.key}"[:128],
        )
    except NotFoundError:
        raise NotUpError(
            f"{name} has no namespace yet; start `berth up -s {berth.stack}`, and set the value"
            " while that waits"
        ) from None
    text = (
        f"{variable} of {name} is set, in Secret {place.secret}; pods that run have it after a"
        " restart"
    )
    return _report(
        berth,
        place,
        f"{text}: berth suspend {name} && berth wake {name}",
        present=True,
        as_json=as_json,
    )


def print_secrets(name: str, stack: str | None, *, as_json: bool) -> int:
    """Print the secret variables of a berth; return the exit code."""
    berth = _find(name, stack)
    rows = [
        {**asdict(place), "present": bool(berth.secret(place))} for place in berth.places.values()
    ]
    missing = [str(row["variable"]) for row in rows if not row["present"]]
    table = Table("variable", "Secret", "key", "value")
    for row in rows:
        shown = "present" if row["present"] else "missing"
        shown += f", from {row['secret_manager']}" if row["secret_manager"] else ""
        table.add_row(str(row["variable"]), str(row["secret"]), str(row["key"]), shown)
    print_result(rows, table if rows else f"{name} has no secret variables", as_json=as_json)
    if not as_json:
        for variable in missing:
            _print_way_to_value(berth, berth.places[variable])
    return MISSING if missing else 0


def _print_way_to_value(berth: BerthSecrets, place: SecretPlace) -> None:
    """Print how a missing value gets into its Secret."""
    if not place.secret_manager:
        err.print(f"to set it: berth secret set {berth.name} {place.variable}")
        return
    namespace = namespace_of(berth.name)
    reason = why_not_synced(berth.api, namespace, place.secret, place.secret_manager)
    err.print(f"{place.variable}: {reason}")
    grant = grant_command(place.secret_manager, berth.project, namespace)
    err.print(f"to let GKE read it: {grant}")


def remove_secret(name: str, variable: str, stack: str | None, *, as_json: bool) -> int:
    """Remove the value of a secret variable; return the exit code."""
    berth = _find(name, stack)
    place = berth.place(variable)
    path = f"{berth.collection}/{place.secret}"
    secret = berth.secret(place)
    if not secret:
        return _report(
            berth, place, f"{variable} of {name} has no value", present=False, as_json=as_json
        )
    ours = MANAGED_BY.items() <= (secret["metadata"].get("labels") or {}).items()
    with suppress(NotFoundError, ConflictError):
        if ours and set(secret["data"]) == {place.key}:
            berth.api.delete(path, secret["metadata"]["uid"])
        else:
            berth.api.request("PATCH", path, {"data": {place.key: None}}, content_type=MERGE_PATCH)
    text = (
        f"{variable} of {name} is removed; its pods that run keep the value, and cannot start again"
        " without one"
    )
    return _report(berth, place, text, present=False, as_json=as_json)


def places_of(manifest: Object, sources: Mapping[str, str] | None = None) -> dict[str, SecretPlace]:
    """Return the places of the secret values that a RayCluster, RayJob or RayService names."""
    places = {}
    for variable, at in secret_variables([manifest]).items():
        source = (sources or {}).get(at["name"], "")
        places[variable] = SecretPlace(variable, at["name"], at["key"], secret_manager=source)
    for name in pull_secrets([manifest]):
        places[name] = SecretPlace(name, name, DOCKER_KEY, login=True)
    return places


def places_of_berth(berth: BerthInputs) -> dict[str, SecretPlace]:
    """Return the places of the secret values that a berth's settings name."""
    return places_of(
        berth.manifests.main, synchronized_secrets(berth.settings.secrets, berth.project)
    )


def why_not_synced(api: ClusterApi, namespace: str, secret: str, source: str) -> str:
    """Return why GKE has not written a value, with GKE's reason if there is one."""
    text = f"GKE has not written {source} into Secret {secret}"
    try:
        sync = api.get(f"{in_namespace(namespace, SYNCS)}/{secret}") or {}
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
    member = f"principal://iam.googleapis.com/{pool}/subject/ns/{namespace}/sa/{ACCOUNT}"
    return (
        f"gcloud secrets add-iam-policy-binding {secret} --project={owner}"
        f' --role=roles/secretmanager.secretAccessor --member="{member}"'
    )


def _find(name: str, stack: str | None) -> BerthSecrets:
    """Return a berth with the secret variables that its settings name, else those of its pods.

    The settings come first: a value is set before the update that has pods read it.
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


def _read(place: SecretPlace) -> str:
    """Return a value from a prompt without echo, or from stdin."""
    if sys.stdin.isatty():
        value = typer.prompt(
            f"Value of {place.variable}", hide_input=True, default="", show_default=False, err=True
        )
    else:
        value = sys.stdin.read()
        # `echo` and editors end a value with a line break that is not a part of it.
        value = value if place.login else value.removesuffix("\n").removesuffix("\r")
    if not value.strip():
        raise BadInputError(f"the value of {place.variable} is empty; nothing was changed")
    document = None
    if place.login:
        with suppress(ValueError):
            document = json.loads(value)
    if place.login and not (isinstance(document, dict) and isinstance(document.get("auths"), dict)):
        raise BadInputError(
            f"the value of {place.variable} is not a Docker configuration with `auths`; nothing was"
            " changed",
            "read one from stdin: < ~/.docker/config.json",
        )
    return str(value)


def _report(
    berth: BerthSecrets, place: SecretPlace, text: str, *, present: bool, as_json: bool
) -> int:
    return print_result(
        {"name": berth.name, **asdict(place), "present": present}, text, as_json=as_json, to=err
    )
