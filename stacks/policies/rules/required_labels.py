"""Policy `required-labels`."""

from collections.abc import Iterator

from berth.components.core.manifest import value_at
from berth.components.plan.fleet import GKE_CLUSTER
from berth.stacks.policies.planned import as_mapping, google_name
from berth.stacks.policies.policy import Finding, Planned, Policy, PolicyContext


def _clusters_without_labels(resource: Planned, context: PolicyContext) -> Iterator[Finding]:
    """Yield clusters without labels that the settings require."""
    if resource.type != GKE_CLUSTER:
        return
    labels = as_mapping(value_at(resource.inputs, "resourceLabels"))
    if missing := [label for label in context.required_labels if not labels.get(label)]:
        several = len(missing) > 1
        yield Finding(
            f"cluster {google_name(resource)} of a production environment lacks"
            f" label{'s' if several else ''} {', '.join(missing)}",
            f"add {'them' if several else 'it'} to `labels`",
        )


POLICY = Policy(
    name="required-labels",
    asks="A production environment has the labels of `policies.requiredLabels`.",
    why="Without them nobody knows who pays for the environment, or whom to call when it fails.",
    remedy="add the labels to `labels`",
    judge=_clusters_without_labels,
    applies_to="environment",
    setting=("labels",),
    production=True,
    rests_on=(("policies", "requiredLabels"), ("labels",)),
)
