"""Values of secret variables, in Secrets of a berth's namespace.

Pulumi knows the names of the Secrets only. Each key has a field manager of its own, so that keys of
one Secret are written and removed one by one.
"""

import base64
import json
import sys
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict

import typer

from berth.cli.reach.environment import NotUpError
from berth.cli.reach.secret_manager import grant_command, why_not_synced
from berth.cli.reach.secret_places import BerthSecrets, SecretPlace, secrets_of_berth
from berth.cli.shell.console import err, print_result
from berth.cli.shell.table import Table
from berth.components.cluster.api import MERGE_PATCH, ConflictError, NotFoundError
from berth.components.core.errors import BadInputError
from berth.components.core.manifest import MANAGED_BY
from berth.components.core.owner import namespace_of

MISSING = 3
"""Exit code of `berth secret list` if a value is missing."""

_DOCKER_TYPE = "kubernetes.io/dockerconfigjson"
"""Type of a Secret with logins to image registries."""
_MANAGER = "berth-secret"


def set_secret(name: str, variable: str, stack: str | None, *, as_json: bool) -> int:
    """Read the value of a secret variable and write it into its Secret; return the exit code.

    Raises:
        BadInputError: no setting names the variable, or its value is empty or wrong.
        NotUpError: the berth has no namespace yet.
    """
    berth = secrets_of_berth(name, stack)
    place = berth.place(variable)
    value = _read(place)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": place.secret, "labels": MANAGED_BY},
        "type": _DOCKER_TYPE if place.login else "Opaque",
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
        f" restart: berth suspend {name} && berth wake {name}"
    )
    return _report(berth, place, text, present=True, as_json=as_json)


def print_secrets(name: str, stack: str | None, *, as_json: bool) -> int:
    """Print the secret variables of a berth; return the exit code."""
    berth = secrets_of_berth(name, stack)
    found = [(place, bool(berth.secret(place))) for place in berth.places.values()]
    missing = [place for place, present in found if not present]
    documents = [{**asdict(place), "present": present} for place, present in found]
    shown = secrets_table(found) if found else f"{name} has no secret variables"
    print_result(documents, shown, as_json=as_json)
    if not as_json:
        for place in missing:
            _print_way_to_value(berth, place)
    return MISSING if missing else 0


def secrets_table(found: Iterable[tuple[SecretPlace, bool]]) -> Table:
    """Return the places of secret values for people, each with whether its value is present."""
    table = Table("variable", "Secret", "key", "value", hide_first=("key", "Secret"))
    for place, present in found:
        value = "present" if present else "missing"
        if place.secret_manager:
            value += f", from {place.secret_manager}"
        table.add_row(place.variable, place.secret, place.key, value)
    return table


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
    berth = secrets_of_berth(name, stack)
    place = berth.place(variable)
    path = f"{berth.collection}/{place.secret}"
    secret = berth.secret(place)
    if not secret:
        text = f"{variable} of {name} has no value"
        return _report(berth, place, text, present=False, as_json=as_json)
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


def _read(place: SecretPlace) -> str:
    """Return a value from a prompt without echo, or from stdin."""
    if sys.stdin.isatty():
        value = typer.prompt(
            f"Value of {place.variable}", hide_input=True, default="", show_default=False, err=True
        )
    else:
        value = sys.stdin.read()
        if not place.login:
            # `echo` and editors end a value with a line break that is not a part of it.
            value = value.removesuffix("\n").removesuffix("\r")
    if not value.strip():
        raise BadInputError(f"the value of {place.variable} is empty; nothing was changed")
    if place.login and not _is_docker_configuration(value):
        raise BadInputError(
            f"the value of {place.variable} is not a Docker configuration with `auths`; nothing was"
            " changed",
            "read one from stdin: < ~/.docker/config.json",
        )
    return str(value)


def _is_docker_configuration(text: str) -> bool:
    """Return whether a text has logins to image registries."""
    try:
        document = json.loads(text)
    except ValueError:
        return False
    return isinstance(document, dict) and isinstance(document.get("auths"), dict)


def _report(
    berth: BerthSecrets, place: SecretPlace, text: str, *, present: bool, as_json: bool
) -> int:
    return print_result(
        {"name": berth.name, **asdict(place), "present": present}, text, as_json=as_json, to=err
    )
