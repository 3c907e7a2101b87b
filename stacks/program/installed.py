"""Operators that an environment's program installs on its cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

from berth.components.core.errors import BadInputError
from berth.components.core.manifest import Manifest
from berth.components.core.problems import Problem
from berth.components.operators import Installation, OperatorsSettings, Site
from berth.stacks.files.manifest_file import read
from berth.stacks.files.stack_file import path_of
from berth.stacks.load.stack import Environment, SettingsError


def install(operators: OperatorsSettings, site: Site, on_nodes: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """Install a cluster's operators, each after the ones that it needs; return the components."""
    installed: dict[type, pulumi.Resource] = {}
    for operator in operators.on(site):
        needs = [installed[needed] for needed in operator.needs if needed in installed]
        options = pulumi.ResourceOptions.merge(on_nodes, pulumi.ResourceOptions(depends_on=needs))
        installed[type(operator)] = Installation(operator.release, operator, options)
    return list(installed.values())


def manifests_of(loaded: Environment) -> Mapping[str, Sequence[Manifest]]:
    """Return the objects of DraNet where a file has them; read before anything is registered.

    Raises:
        SettingsError: the file cannot be used.
    """
    dranet = loaded.settings.operators.dranet
    if dranet.source != "manifest" or dranet.manifest is None:
        return {}
    try:
        return {"dranet": read(path_of(dranet.manifest))}
    except BadInputError as error:
        problem = Problem(("environment", "operators", "dranet", "manifest"), str(error))
        raise SettingsError(loaded.stack, [problem], loaded.file) from None
