"""What a policy is, the list of them, and what they are applied to and find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

PRIVATE_DASHBOARD = "private-dashboard"
RAY_AUTH = "ray-auth"
RDMA_WHOLE = "rdma-whole"
DELETION_PROTECTION = "deletion-protection"
REQUIRED_LABELS = "required-labels"


@dataclass(frozen=True)
class Policy:
    """One policy.

    Attributes:
        name: by which it is waived.
        asks: what it asks, in a sentence.
        why: what happens without it.
        production: it is asked of production environments only.
    """

    name: str
    asks: str
    why: str
    production: bool = False


POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Policy(
            PRIVATE_DASHBOARD,
            "No Ray head is reached from outside the VPC: no public load balancer, no node port, no Ingress or Gateway."
            " An internal load balancer has an address of the VPC and is allowed.",
            "Ray's dashboard runs whatever code it is sent; a token is then all that stands between it and everyone.",
        ),
        Policy(
            RAY_AUTH,
            "Every RayCluster asks for its token.",
            "Without it, whoever reaches the head, each pod of the cluster among them, runs code as its owner.",
        ),
        Policy(
            RDMA_WHOLE,
            "A worker on a pool with RDMA takes all GPUs of its node, or claims each with its own NIC (`gpuAllocation: dra`), and such"
            " a pool's GPUs are not shared.",
            "A node's RDMA NICs go to one pod together with all its GPUs: GPUs that are left over idle at a high price.",
        ),
        Policy(
            DELETION_PROTECTION,
            "A production environment's cluster has deletion protection.",
            "One `pulumi destroy`, or an edit that replaces the cluster, would end everything that runs on it.",
            production=True,
        ),
        Policy(
            REQUIRED_LABELS,
            "A production environment has the labels of `policies.requiredLabels`.",
            "A bill, or an alarm at night, could not be brought to anyone.",
            production=True,
        ),
    )
}
"""Every policy by name, in the order in which they are shown."""


@dataclass(frozen=True)
class Planned:
    """A resource as the engine plans it.

    Attributes:
        type: Pulumi's type, such as `kubernetes:ray.io/v1:RayCluster`.
        name: Pulumi's name.
        inputs: plain values with the provider's own keys; what is secret or not known yet is any other value.
    """

    type: str
    name: str
    inputs: Mapping[str, Any]


@dataclass(frozen=True)
class House:
    """What the policies of an environment need to know beside the plan.

    Attributes:
        production: it is a production environment.
        required_labels: labels that one has.
        waived: policies that are switched off, each with the reason.
        rdma: GPUs of one node, by the name of each pool that has RDMA; those of the plan itself need not be here.
    """

    production: bool = False
    required_labels: Sequence[str] = ()
    waived: Mapping[str, str] = field(default_factory=dict)
    rdma: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Violation:
    """A resource that is against a policy.

    Attributes:
        policy: the policy's name.
        type: the resource's type.
        resource: the resource's name.
        message: what is wrong, and what it would have to be.
        waived: the reason for which the policy is switched off, "" where it holds.
    """

    policy: str
    type: str
    resource: str
    message: str
    waived: str = ""

    def __str__(self) -> str:
        return f"policy {self.policy}: {self.message}"


def how_to_waive(policy: str) -> str:
    """What to write in the environment's settings so that a policy does not hold."""
    return f"policies.waived.{policy}: REASON"


@dataclass(frozen=True)
class Waiver:
    """A policy that is switched off and would else have been broken.

    Attributes:
        policy: its name.
        reason: why it is switched off.
        resources: what is against it.
    """

    policy: str
    reason: str
    resources: tuple[str, ...]

    def __str__(self) -> str:
        return f"policy {self.policy} is waived for {', '.join(self.resources)}: {self.reason}"


def waivers(violations: Sequence[Violation]) -> list[Waiver]:
    """The waivers that were needed, each with what it was needed for."""
    needed: dict[str, list[Violation]] = {}
    for violation in violations:
        if violation.waived:
            needed.setdefault(violation.policy, []).append(violation)
    return [
        Waiver(policy, found[0].waived, tuple(dict.fromkeys(each.resource for each in found)))
        for policy, found in needed.items()
    ]
