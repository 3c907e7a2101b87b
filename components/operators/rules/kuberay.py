"""Rules of the KubeRay operator's settings."""

from berth.components.core.rules import Rules
from berth.components.operators.settings import OperatedSettings

KUBERAY = Rules[OperatedSettings](OperatedSettings)
"""Rules of the KubeRay operator of an environment."""


@KUBERAY.problem("operators.kuberay.values.useKubernetesProxy")
def token_of_the_operator_in_requests(environment: OperatedSettings) -> str | None:
    """A head must not get the token of the operator, which may read every namespace."""
    if not environment.operators.kuberay.uses_proxy:
        return None
    return (
        "has the operator send its own token with each request to a head, which may redirect the"
        " request anywhere; take it out"
    )


@KUBERAY.problem("operators.kuberay.source")
def addon_on_an_existing_cluster(environment: OperatedSettings) -> str | None:
    """The add-on is a setting of the cluster."""
    if environment.operators.kuberay.source != "addon" or not environment.cluster.existing:
        return None
    return (
        "the add-on is a setting of the cluster, and berth does not change one that exists; switch"
        " it on there (gcloud container clusters update NAME --update-addons=RayOperator=ENABLED)"
        " and write `source: present`"
    )
