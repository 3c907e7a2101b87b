"""Environment of an engineer who may not read its state: by the engineer's own login."""

import json
from dataclasses import dataclass

from pydantic import ValidationError

from berth.components.berth import CONTRACT, BerthInputs
from berth.components.cluster.api import ClusterApi, RefusedError, in_namespace
from berth.components.cluster.inventory import GROUP
from berth.components.cluster.kubeconfig import (
    DEFAULT_KUBECONFIG,
    KubeconfigContext,
    Login,
    read_kubeconfig,
)
from berth.components.core.errors import BerthError
from berth.components.core.owner import namespace_of
from berth.components.core.project import path_of_setting
from berth.stacks.settings.contract import EnvironmentContract
from berth.stacks.settings.engineer import EngineerSettings


class NotPreparedError(BerthError):
    """Namespace of a berth that is not there, or whose Role does not name the user."""


@dataclass(frozen=True)
class OwnPart:
    """Environment of a stack with `part: cluster`, by the engineer's own login.

    Attributes:
        contract: contract of the environment, which the berth's namespace has.
        login: login of the engineer.
        context: context of the login.
    """

    contract: EnvironmentContract
    login: Login
    context: KubeconfigContext

    @property
    def kubeconfig(self) -> str:
        """Kubeconfig of the cluster as text, with the engineer's login."""
        return self.context.as_json()


def read_own_part(settings: EngineerSettings, stack: str) -> OwnPart:
    """Return the environment of a stack with `part: cluster`.

    Raises:
        KubeconfigError: the login cannot be used.
        ClusterError: the cluster does not answer.
        NotPreparedError: the namespace is not there, or not for this user.
    """
    name = settings.name or stack
    namespace = namespace_of(name)
    login = settings.login.login if settings.login else Login(DEFAULT_KUBECONFIG)
    context = read_kubeconfig(path_of_setting(login.kubeconfig)).context(login.context)
    remedy = (
        f"an admin brings it up first: a stack with `part: isolation`, `name: {name}`, and you"
        " under `access`"
    )
    try:
        api = ClusterApi(context.as_json())
        config_map = api.get(f"{in_namespace(namespace, '/api/v1/configmaps')}/{CONTRACT}")
    except RefusedError as error:
        raise NotPreparedError(
            f"namespace {namespace} is not ready for you: {error}", remedy
        ) from None
    if config_map is None:
        raise NotPreparedError(f"namespace {namespace} has no ConfigMap {CONTRACT}", remedy)
    try:
        contract = EnvironmentContract.model_validate(json.loads(config_map["data"]["environment"]))
    except (ValidationError, ValueError, KeyError, TypeError):
        raise NotPreparedError(
            f"another version of berth wrote ConfigMap {CONTRACT} in namespace {namespace}", remedy
        ) from None
    if contract.name != settings.environment.rpartition("/")[2]:
        raise NotPreparedError(
            f"namespace {namespace} is of environment {contract.name!r}, not of"
            f" {settings.environment!r}",
            "correct `environment` in your stack's file",
        )
    return OwnPart(contract, login, context)


def require_claims(berth: BerthInputs, kubeconfig: str) -> None:
    """Refuse claims of workers for which the admins' half has no template.

    Raises:
        NotPreparedError: there is none, so that no worker would start.
        ClusterError: the cluster does not answer.
    """
    namespace = namespace_of(berth.settings.name)
    templates = in_namespace(namespace, f"{GROUP}/{berth.resource_api}/resourceclaimtemplates")
    missing = [
        name for name in berth.claims if ClusterApi(kubeconfig).get(f"{templates}/{name}") is None
    ]
    if missing:
        raise NotPreparedError(
            f"namespace {namespace} has no template {' or '.join(missing)} for the devices of a"
            " worker, and none of these workers would start",
            "write the same `worker` (gpus, nics, pool) as the admins' stack with `part:"
            " isolation`, or ask the admins to change theirs and to update it",
        )
