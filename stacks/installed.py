"""Installation of an environment's operators, and the file of objects that DraNet may come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pulumi

from berth.components.core.manifest import Manifest
from berth.components.core.problems import Problem
from berth.components.operators import Installation, OperatorsSettings, Site
from berth.stacks.load import SettingsError
from berth.stacks.manifest_file import ManifestError, read
from berth.stacks.settings.environment import EnvironmentSettings
from berth.stacks.stack_file import StackFile, project


def install(operators: OperatorsSettings, site: Site, on_nodes: pulumi.ResourceOptions) -> list[pulumi.Resource]:
    """Register the operators that a cluster needs, and return their components.

    Args:
        operators: settings of the operators.
        site: the cluster.
        on_nodes: options with the kubernetes provider, and with what has to be there before.
    """
    installed: dict[type, pulumi.Resource] = {}
    for operator in operators.on(site):
        needs = [installed[needed] for needed in operator.needs if needed in installed]
        options = pulumi.ResourceOptions.merge(on_nodes, pulumi.ResourceOptions(depends_on=needs))
        installed[type(operator)] = Installation(operator.release, operator, options)
    return list(installed.values())


def manifests_of(stack: str, settings: EnvironmentSettings, file: StackFile | None) -> Mapping[str, Sequence[Manifest]]:
    """Return the objects of operators that come from a file, by the operator's setting.

    Args:
        stack: the stack's name.
        settings: settings of the environment.
        file: the stack's file, for lines in errors.

    Raises:
        SettingsError: a file cannot be used.
    """
    source, path = settings.operators.dranet.source, settings.operators.dranet.manifest
    if source != "manifest" or path is None:
        return {}
    try:
        return {"dranet": read(project() / Path(path).expanduser())}
    except ManifestError as error:
        problem = Problem(("environment", "operators", "dranet", "manifest"), str(error))
        raise SettingsError(stack, [problem], file) from None
