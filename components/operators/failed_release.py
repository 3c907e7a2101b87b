"""Reasons why a Helm release did not become ready: Helm only says that its time is over."""

import asyncio
from collections.abc import Sequence

import pulumi

from berth.components.cluster.api import (
    EVENTS,
    PODS,
    ClusterApi,
    ClusterError,
    Object,
    in_namespace,
)
from berth.components.cluster.pods import why_not_ready

_MOST = 3
"""Number of pods, or of events, that are named."""

_WARNINGS = {"fieldSelector": "type=Warning"}


def failed_release_hook(
    name: str, namespace: str, kubeconfig: pulumi.Input[str], component: pulumi.Resource
) -> pulumi.ErrorHook:
    """Return a hook of a release that logs why its pods are not ready, and asks for no retry.

    Args:
        name: name of the release.
        namespace: its namespace.
        kubeconfig: access to the cluster, as text.
        component: component that the lines are logged on.
    """

    async def explain(_failure: pulumi.ErrorHookArgs) -> bool:
        text = await pulumi.Output.from_input(kubeconfig).future()
        if text:
            for line in await asyncio.to_thread(reasons_of_release, str(text), name, namespace):
                pulumi.log.error(line, component)
            # A task sends each line, in its first step; the engine ends the program soon.
            await asyncio.sleep(0)
        return False

    return pulumi.ErrorHook(f"{name}-explained", explain)


def reasons_of_release(kubeconfig: str, name: str, namespace: str) -> list[str]:
    """Return why the pods of a release are not ready, one line each; none without an answer."""
    try:
        api = ClusterApi(kubeconfig)
        pods, _ = api.list(
            in_namespace(namespace, PODS), labelSelector=f"app.kubernetes.io/instance={name}"
        )
        events, _ = api.list(in_namespace(namespace, EVENTS), **_WARNINGS)
    except ClusterError:
        return []
    return lines_of_release(name, namespace, pods, events)


def lines_of_release(
    name: str, namespace: str, pods: Sequence[Object], events: Sequence[Object]
) -> list[str]:
    """Return why the pods of a release are not ready; of a release without pods, the warnings.

    Args:
        name: name of the release.
        namespace: its namespace.
        pods: its pods.
        events: warnings in its namespace.
    """
    reasons = {pod["metadata"]["name"]: why_not_ready(pod) for pod in pods}
    waiting = [f"{pod}: {reason}" for pod, reason in reasons.items() if reason]
    if waiting:
        return [f"Helm release {name}: {line}" for line in waiting[:_MOST]]
    if pods:
        slow = "its pods are ready by now, so that the same command again goes on"
        return [f"Helm release {name}: {slow}"]
    messages = [f"{event.get('reason')}: {event.get('message')}" for event in events]
    return [f"Helm release {name} has no pods in namespace {namespace}"] + [
        f"Helm release {name}: {message}" for message in list(dict.fromkeys(messages))[-_MOST:]
    ]
