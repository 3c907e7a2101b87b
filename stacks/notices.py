"""What a stack's program says before it makes anything: warnings, and the policies that are waived."""

from __future__ import annotations

from collections.abc import Iterable

import pulumi

from berth.components.core.problems import Problem
from berth.stacks.policies.policy import Waiver


def say(warnings: Iterable[Problem], waivers: Iterable[Waiver] = ()) -> None:
    """Log them, in this order: waivers, warnings."""
    for waiver in waivers:
        pulumi.log.info(str(waiver))
    for warning in warnings:
        pulumi.log.warn(f"{warning.where}: {warning.message}")
