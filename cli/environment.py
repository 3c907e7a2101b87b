"""The environment behind a stack, as it was brought up: from the stack's file and Pulumi's outputs."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from berth.cli.login import LOGGED_OUT_AND_NOW, is_logged_out
from berth.components.core.nearest import did_you_mean
from berth.stacks import stack_file
from berth.stacks.settings.resolve import EnvironmentContract


class StatusError(Exception):
    """The state or the cluster can't be asked; the text says why and what mends it."""


class NoSuchStackError(StatusError):
    """There is no such stack."""


class NotUpError(StatusError):
    """It has not been brought up: the environment's stack, or a berth on it."""


@dataclass(frozen=True)
class Environment:
    """An environment that is up.

    Attributes:
        stack: its own stack.
        contract: what that tells other stacks.
        kubeconfig: of its cluster, as text.
        outputs: all that it tells, secrets among it.
    """

    stack: str
    contract: EnvironmentContract
    kubeconfig: str
    outputs: dict[str, Any] = field(default_factory=dict, repr=False)


def brought_up(stack: str) -> Environment:
    """The environment of an environment's stack, or of the one that an engineer's stack names.

    Raises:
        NoSuchStackError: no such stack.
        NotUpError: it was never brought up, or was taken down.
        StatusError: Pulumi can't be asked, or another version of berth made it.
    """
    environment = _environment_of(stack)
    outputs = _outputs(environment, stack)
    if "environment" not in outputs or "kubeconfig" not in outputs:
        raise NotUpError(f"stack {environment} has not been brought up; run: pulumi up -s {environment}")
    try:
        contract = EnvironmentContract.model_validate(outputs["environment"])
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise StatusError(
            f"stack {environment} was brought up by another version of berth (its output `environment` differs in {where});"
            f" run: pulumi up -s {environment}"
        ) from None
    return Environment(environment, contract, outputs["kubeconfig"], outputs)


def _environment_of(stack: str) -> str:
    """The environment's stack: the stack itself, or the one that an engineer's stack names."""
    path = stack_file.stack_path(stack)
    if not path.exists():
        known = did_you_mean(stack, stack_file.stack_names())
        raise NoSuchStackError(f"there is no stack {stack!r}: {stack_file.shown(path)} does not exist{known}")
    try:
        settings = stack_file.read(path).settings
    except stack_file.StackFileError as error:
        raise NoSuchStackError(str(error)) from None
    engineer = settings.get("engineer")
    return str(engineer["environment"]) if isinstance(engineer, dict) and "environment" in engineer else stack


def _outputs(stack: str, asked: str) -> dict[str, Any]:
    """The outputs of an environment's stack.

    Args:
        stack: the environment's.
        asked: the stack that was asked for, which leads to it.
    """
    program = shutil.which("pulumi")
    if program is None:
        raise StatusError('pulumi is not on PATH; for the lab run: eval "$(.venv/bin/berth lab env)"')
    done = subprocess.run(
        [program, "stack", "output", "--json", "--show-secrets", "--stack", stack],
        cwd=stack_file.project(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        text = done.stderr.strip().removeprefix("error: ") or f"pulumi ended with {done.returncode}"
        if text.startswith("no stack named"):
            raise NotUpError(_not_in_backend(stack, asked))
        if is_logged_out(text):
            raise StatusError(LOGGED_OUT_AND_NOW)
        raise StatusError(f"stack {stack}: {text}")
    return dict(json.loads(done.stdout))


def _not_in_backend(stack: str, asked: str) -> str:
    if stack != asked and not stack_file.stack_path(stack).exists():
        known = did_you_mean(stack, stack_file.stack_names())
        return f"stack {asked} is on environment {stack!r}, which neither Pulumi's backend nor stacks/ has{known}"
    return (
        f"stack {stack} has not been brought up: it is not in Pulumi's backend yet;"
        f" run: pulumi stack init {stack} && pulumi up -s {stack}"
    )
