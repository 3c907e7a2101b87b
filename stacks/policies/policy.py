"""Types of the policies: a policy, what it judges, and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from berth.components.core.problems import SettingPath


@dataclass(frozen=True)
class Planned:
    """Resource that the program registers, or that the engine plans, with plain inputs.

    A secret or unknown value is any other value.
    """

    type: str
    name: str
    inputs: Mapping[str, Any]


@dataclass(frozen=True)
class PolicyContext:
    """Facts about an environment that policies need beside the resources."""

    production: bool = False
    required_labels: Sequence[str] = ()
    waived: Mapping[str, str] = field(default_factory=dict)
    """Reasons of the policies that are switched off, by the policy's name."""
    rdma: Mapping[str, int] = field(default_factory=dict)
    """GPUs of one node, by the name of each pool with RDMA; the plan's own may be missing."""


@dataclass(frozen=True)
class Finding:
    """Breach that a judge found in one resource, with a remedy other than the policy's."""

    problem: str
    remedy: str = ""


Judge = Callable[[Planned, PolicyContext], Iterable[Finding]]


@dataclass(frozen=True)
class Policy:
    """Policy: a demand on resources, and the function that finds what breaks it."""

    name: str
    asks: str
    """Demand of the policy, in a sentence."""
    why: str
    """Danger without the policy, in a sentence."""
    remedy: str
    """How a breach is fixed: an imperative clause without its full stop."""
    judge: Judge = field(repr=False, compare=False)
    """Finds the breaches in one resource."""
    applies_to: Literal["raycluster", "environment"]
    """Kind of settings that the policy judges."""
    setting: SettingPath
    """Setting that a breach is reported at, from those settings on."""
    production: bool = False
    """The policy holds for production environments only."""
    inherited: bool = True
    """A value of `defaults` is reported there, and once."""
    unset_at_defaults: bool = False
    """Berth's own default breaks the policy, so that a setting which nobody wrote is reported at
    `defaults`."""
    elsewhere: Mapping[str, SettingPath] = field(default_factory=dict, compare=False)
    """Setting of the environment that a breach of a resource that is no berth's is reported at, by
    the resource's type."""
    rests_on: tuple[SettingPath, ...] = ()
    """Settings of the environment that must be valid before the policy is judged."""

    def holds(self, context: PolicyContext) -> bool:
        """Return whether the environment is held to the policy, waived or not."""
        return context.production or not self.production

    def as_json(self) -> dict[str, Any]:
        """Return the policy's description for programs."""
        return {key: getattr(self, key) for key in ("name", "asks", "why", "production")}


@dataclass(frozen=True)
class Violation:
    """Resource that breaks a policy; `waived` has the reason if the policy is switched off."""

    policy: str
    type: str
    resource: str
    message: str
    waived: str = ""

    def __str__(self) -> str:
        return f"policy {self.policy}: {self.message}"


def how_to_waive(policy: str) -> str:
    """Return the setting of the environment that waives a policy."""
    return f"policies.waived.{policy}: REASON"


@dataclass(frozen=True)
class Waiver:
    """Policy that is switched off for a reason, with the resources that break it."""

    policy: str
    reason: str
    resources: tuple[str, ...]

    def __str__(self) -> str:
        return f"policy {self.policy} is waived for {', '.join(self.resources)}: {self.reason}"


def waivers(violations: Iterable[Violation]) -> list[Waiver]:
    """Return the waivers that were needed, each with the resources that needed it."""
    needed: dict[tuple[str, str], dict[str, None]] = {}
    for violation in violations:
        if violation.waived:
            needed.setdefault((violation.policy, violation.waived), {})[violation.resource] = None
    return [
        Waiver(policy, reason, tuple(resources)) for (policy, reason), resources in needed.items()
    ]
