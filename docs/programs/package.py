"""An environment by the Pulumi package, as a program in any language would have it."""

from typing import Any

import pulumi


class Environment(pulumi.ComponentResource):
    """Environment, which the program `pulumi-resource-berth` makes."""

    def __init__(self, name: str, settings: dict[str, Any]) -> None:
        """Take the settings of `berth:environment`."""
        outputs = dict.fromkeys(OUTPUTS)
        super().__init__("berth:index:Environment", name, {**settings, **outputs}, remote=True)


# Stacks of engineers read these outputs.
OUTPUTS = ("environment", "kubeconfig", "clusterId")
environment = Environment("research", pulumi.Config().require_object("settings"))
for output in OUTPUTS:
    pulumi.export(output, getattr(environment, output))
