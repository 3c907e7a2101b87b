"""Notices of a stack's program before it registers anything: waived policies, then warnings."""

from collections.abc import Iterable

import pulumi

from berth.components.core.problems import Problem
from berth.stacks.policies.policy import Waiver


def log_notices(warnings: Iterable[Problem], waivers: Iterable[Waiver]) -> None:
    """Log waivers and warnings."""
    for waiver in waivers:
        pulumi.log.info(str(waiver))
    for warning in warnings:
        pulumi.log.warn(str(warning))
