"""One wait for the RayClusters of many stacks."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from berth.cli.environment import Environment
from berth.cli.update.progress import progress_bar
from berth.components.berth import BerthInputs
from berth.components.cluster.api import ClusterApi
from berth.components.cluster.owned import owners_of
from berth.components.core.owner import ENVIRONMENT_LABEL, namespace_of
from berth.components.core.types import parse_duration
from berth.components.ray.evidence import Key
from berth.components.ray.readiness import RAY_CLUSTER, Wait


def unready_of(
    environment: Environment, berths: Mapping[str, BerthInputs], stop: threading.Event
) -> dict[str, list[str]]:
    """Wait for the RayClusters of berths, by stack; return the reasons of those that are not ready.

    Raises:
        ClusterError: the API server does not answer.
    """
    keys: dict[Key, str] = {}
    deadlines: dict[Key, float] = {}
    for stack, berth in berths.items():
        if berth.part != "isolation" and berth.workload.wait.until != "submitted":
            key = namespace_of(berth.settings.name), berth.settings.name
            keys[key], deadlines[key] = stack, parse_duration(berth.workload.wait.timeout)
    if not keys:
        return {}
    name = environment.contract.name
    there = owners_of(ClusterApi(environment.kubeconfig)).of_environment(name)
    with progress_bar() as progress:
        progress.add_task("waiting for RayClusters", total=None)
        found = Wait(
            kind=RAY_CLUSTER,
            kubeconfig=environment.kubeconfig,
            selector=f"{ENVIRONMENT_LABEL}={name}",
            deadlines=deadlines,
            report=lambda _key, _text: None,
            namespaces=set(there.by_namespace),
            put_off=lambda _key, _going: None,
            stop=stop,
        ).run()
    return {keys[key]: reasons for key, reasons in found.items()}
