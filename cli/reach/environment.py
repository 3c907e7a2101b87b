"""Environment behind a stack, by the stack's file and Pulumi's outputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from berth.cli.pulumi import stack as pulumi_stack
from berth.cli.pulumi.failures import UnknownStackError
from berth.components.cluster.api import ClusterApi, UnreachableError
from berth.components.cluster.kubeconfig import Login, own_login
from berth.components.core.errors import BadInputError, BerthError
from berth.components.core.nearest import did_you_mean
from berth.stacks.files import stack_file
from berth.stacks.settings.contract import EnvironmentContract


class NotUpError(BadInputError):
    """The environment's stack, or a berth on it, has not been brought up."""

    @classmethod
    def of_berth(cls, name: str, stack: str, environment: str) -> NotUpError:
        """Return the error for a berth that is in the settings of a stack, and not up."""
        return cls(
            f"{name} is in the settings of stack {stack}, but not up on environment {environment};"
            f" run: berth up -s {stack}"
        )


@dataclass(frozen=True)
class LiveEnvironment:
    """An environment that is up."""

    stack: str
    contract: EnvironmentContract
    """Output `environment` of the stack, which engineers' stacks read."""
    kubeconfig: str
    """Kubeconfig of its cluster, as text, with the login of the user of this machine."""
    login: Login | None = None
    """File and context of that login, where the cluster's output has none."""
    outputs: dict[str, Any] = field(default_factory=dict, repr=False)
    """All outputs, secret ones in clear text."""


def brought_up(stack: str, outputs: Mapping[str, Any] | None = None) -> LiveEnvironment:
    """Return the environment of a stack.

    Args:
        stack: name of an environment's stack, or of an engineer's.
        outputs: outputs of the environment's stack, where they are read already.

    Raises:
        NotUpError: the environment was never brought up, or was destroyed.
        KubeconfigError: no kubeconfig of this machine logs in to its cluster.
        BerthError: another version of berth brought the environment up.
    """
    engineer = stack_file.file_of_stack(stack).settings.get("engineer")
    environment = stack
    if isinstance(engineer, dict):
        environment = str(engineer.get("environment", stack))
        if engineer.get("part") == "cluster":
            return _by_own_login(stack, environment)
    if outputs is None or stack != environment:
        outputs = _outputs(environment, stack)
    return _of_outputs(environment, outputs)


def environment_by_name(environment: str) -> LiveEnvironment:
    """Return an environment by the name of its stack, which may be another project's.

    Raises:
        NotUpError: the environment was never brought up, or was destroyed.
        BerthError: another version of berth brought it up.
    """
    return _of_outputs(environment, _outputs(environment, environment))


def require_answer(live: LiveEnvironment) -> None:
    """Refuse to go on while an environment's cluster does not answer.

    Raises:
        ClusterError: it does not answer, or refuses the login.
    """
    try:
        ClusterApi(live.kubeconfig).get("/version")
    except UnreachableError as error:
        raise error.of_stack(live.stack) from None


def _of_outputs(environment: str, outputs: Mapping[str, Any]) -> LiveEnvironment:
    """Return the environment of a stack's outputs."""
    bring_up = f"berth up -s {environment}"
    if "environment" not in outputs or "kubeconfig" not in outputs:
        raise NotUpError(f"stack {environment} has not been brought up; run: {bring_up}")
    try:
        contract = EnvironmentContract.model_validate(outputs["environment"])
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise BerthError(
            f"another version of berth brought stack {environment} up (its output `environment`"
            f" differs in {where}); run: {bring_up}"
        ) from None
    named = contract.login.login if contract.login else None
    kubeconfig, login = own_login(outputs["kubeconfig"], named)
    return LiveEnvironment(environment, contract, kubeconfig, login, dict(outputs))


def _by_own_login(stack: str, environment: str) -> LiveEnvironment:
    """Return the environment of an engineer who may not read its state."""
    # Both are slow to import, and seldom needed.
    from berth.stacks.load.stack import EngineerStack, load_stack  # noqa: PLC0415
    from berth.stacks.program.own_part import read_own_part  # noqa: PLC0415

    loaded = load_stack(stack)
    if not isinstance(loaded, EngineerStack):
        raise BadInputError(f"stack {stack} is not an engineer's", "name an engineer's stack")
    own = read_own_part(loaded.settings, stack)
    return LiveEnvironment(environment, own.contract, own.kubeconfig, own.login)


def _outputs(stack: str, engineers_stack: str) -> dict[str, Any]:
    """Return the outputs of an environment's stack, which an engineer's stack may name."""
    try:
        return pulumi_stack.stack_outputs(stack)
    except UnknownStackError:
        pass
    if stack != engineers_stack and not stack_file.stack_path(stack).exists():
        known = did_you_mean(stack, stack_file.stack_names())
        raise NotUpError(
            f"stack {engineers_stack} is on environment {stack!r},"
            f" which neither Pulumi's backend nor stacks/ has{known}",
            f"correct `environment` in the settings of {engineers_stack}",
        )
    raise NotUpError(
        f"stack {stack} has not been brought up: it is not in Pulumi's backend yet;"
        f" run: pulumi stack init {stack} && berth up -s {stack}"
    )
