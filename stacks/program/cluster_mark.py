"""Mark of an environment on its cluster: a cluster carries one environment.

Policies and PriorityClasses have the same names in all environments, and the field manager of a
stack has neither its project nor its backend. So Pulumi would take over the objects of another
stack with the same name, and the API server would refuse those of one with another name, in words
that help nobody. The mark also has the id of an existing cluster, which no new address changes.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, replace

import pulumi
import pulumi_kubernetes

from berth.components.cluster.api import ClusterApi, ClusterError, Object, RefusedError
from berth.components.cluster.objects import KubernetesObject
from berth.components.core.manifest import FIELD_MANAGER, MANAGED_BY, Manifest
from berth.components.core.problems import Problem
from berth.components.isolation import pod_policy
from berth.components.operators import problems_of_existing_operators
from berth.stacks.load.stack import Environment, SettingsError
from berth.stacks.program.platform import Platform

NAME = "berth-cluster"
"""Name of the ConfigMap, in namespace kube-system."""

_NAMESPACE = "kube-system"
_PATH = f"/api/v1/namespaces/{_NAMESPACE}/configmaps/{NAME}"
_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_LEFT = (
    "kubectl delete"
    " priorityclasses,storageclasses,validatingadmissionpolicybindings,validatingadmissionpolicies"
    " -l app.kubernetes.io/managed-by=berth"
)


@dataclass(frozen=True)
class Answer:
    """Answer of an existing cluster: its API server, and the mark that it has."""

    api: ClusterApi
    mark: Object | None


async def mark_cluster(
    loaded: Environment,
    platform: Platform,
    provider: pulumi_kubernetes.Provider,
    answer: Answer | None,
) -> KubernetesObject:
    """Register the mark of an environment; a cluster that answers with another one's is refused.

    An environment that makes its cluster is the first one there. What tells two states apart is the
    id of the provider, a UUID that Pulumi makes for each state and keeps in it.

    Raises:
        SettingsError: the cluster carries another environment.
    """
    data = {"project": pulumi.get_project(), "stack": pulumi.get_stack(), "owner": provider.id}
    if loaded.settings.cluster.existing:
        data["id"] = platform.cluster_id
        if answer:
            await _refuse_second(loaded, answer, provider.id)
    manifest: Manifest = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": NAME, "namespace": _NAMESPACE, "labels": MANAGED_BY},
        "data": data,
    }
    options = pulumi.ResourceOptions(provider=provider, depends_on=list(platform.ready))
    return KubernetesObject(NAME, manifest, options)


async def answer_of_cluster(
    loaded: Environment, platform: Platform
) -> tuple[Platform, Answer | None]:
    """Return an existing cluster with the id of its mark, and its answer; None without one.

    The id is the address of the first update: another address of the same cluster, such as its
    private one, changes nothing.

    Raises:
        ClusterError: the cluster does not answer an update.
        SettingsError: it has operators already that the settings would install a second time.
    """
    text = str(await platform.kubeconfig.future())
    try:
        api = await asyncio.to_thread(ClusterApi, text)
        answer = Answer(api, await asyncio.to_thread(api.get, _PATH))
    except ClusterError as error:
        if not pulumi.runtime.is_dry_run():
            raise
        pulumi.log.warn(f"cannot tell what the cluster has already: {error}")
        return platform, None
    with suppress(RefusedError):  # whoever only previews may not see all kinds
        if problems := await asyncio.to_thread(
            problems_of_existing_operators, answer.api, loaded.settings
        ):
            raise SettingsError(loaded.stack, problems, loaded.file)
    data = answer.mark["data"] if answer.mark else {}
    ours = (data.get("project"), data.get("stack")) == (pulumi.get_project(), pulumi.get_stack())
    if ours and data.get("id"):
        return replace(platform, cluster_id=data["id"]), answer
    return platform, answer


async def _refuse_second(loaded: Environment, answer: Answer, owner: pulumi.Output[str]) -> None:
    """Refuse a cluster that carries another environment than the owner's.

    The owner is unknown in the first preview of a stack.
    """
    own = await owner.future()
    try:
        other = await asyncio.to_thread(_other, answer, own)
    except ClusterError as error:
        pulumi.log.warn(f"cannot tell whether the cluster carries another environment: {error}")
        return
    if other:
        ours = f"{pulumi.get_stack()} of project {pulumi.get_project()}"
        name, removal = other
        problem = Problem(
            ("environment", "cluster", "existing"),
            f"the cluster already carries environment {name}, in another state than {ours}, which"
            " would take over its policies and PriorityClasses; take another cluster, or write the"
            f" engineers into the other environment. If that one is gone: {removal}",
        )
        raise SettingsError(loaded.stack, [problem], loaded.file)


def _other(answer: Answer, own: str | None) -> tuple[str, str] | None:
    """Return another environment on the cluster: its name, and the command for one that is gone."""
    if answer.mark:
        data = answer.mark["data"]
        if data["owner"] == own:
            return None
        name = f"{data['stack']} of project {data['project']}"
        return name, f"kubectl delete configmap {NAME} -n {_NAMESPACE}"
    # Objects of an older version, or what an environment has left behind.
    policy = answer.api.get(f"{_POLICIES}/{pod_policy()[0]['metadata']['name']}")
    annotations = (policy["metadata"].get("annotations") if policy else None) or {}
    manager = annotations.get(FIELD_MANAGER, "")
    if manager in ("", f"berth-{pulumi.get_stack()}"):
        return None
    return manager.removeprefix("berth-"), _LEFT
