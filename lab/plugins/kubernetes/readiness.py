"""When an object is ready: the program's own `pulumi.com/waitFor`, or what its kind is known to go through.

Pure: each condition looks at one state of the object. Against the real plugin, kinds are watched more simply here: a
Deployment, StatefulSet or DaemonSet by its own status (its pods are not read), a Service only where it waits for a load
balancer's address (its endpoints are not), an Ingress not at all. Custom resources are ready at once unless annotated.

Answers to (read): pulumi-kubernetes 4.29.0, provider/pkg/await (simpler here, as said above):
    https://github.com/pulumi/pulumi-kubernetes/blob/v4.29.0/provider/pkg/await/awaiters.go
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from berth.lab.plugins.kubernetes import jsonpath, objects
from berth.lab.plugins.provider import ProviderError

Item = dict[str, Any]

# Ready or not, and what to tell the user meanwhile (nothing: leave the last word).
Verdict = tuple[bool, str]
Condition = Callable[[Item], Verdict]


class FailedError(Exception):
    """The object has come to an end that no waiting mends."""


def condition_of(wanted: Item) -> Condition | None:
    """What to wait for, or None where there is nothing to wait for.

    Args:
        wanted: the object as the program wants it, with its annotations.

    Raises:
        ProviderError: `pulumi.com/waitFor` cannot be understood.
    """
    if objects.annotation(wanted, objects.SKIP_AWAIT).lower() == "true":
        return None
    text = objects.annotation(wanted, objects.WAIT_FOR)
    if text:
        return _all([_parse(expression) for expression in _expressions(text)])
    return _KINDS.get((str(wanted.get("apiVersion")), str(wanted.get("kind"))))


def unmet(item: Item) -> list[str]:
    """What an object that did not become ready says of itself: conditions that are not as they should be."""
    conditions = (item.get("status") or {}).get("conditions") or []
    return [
        f"[{one.get('reason')}] {one['message']}"
        for one in conditions
        if isinstance(one, dict) and one.get("message") and one.get("status") != "True"
    ]


def _expressions(text: str) -> list[str]:
    try:
        listed = json.loads(text)
    except ValueError:
        listed = text
    if not isinstance(listed, list):
        return [text]
    if not listed or not all(isinstance(item, str) for item in listed):
        raise ProviderError(f"{objects.WAIT_FOR}: at least one condition must be specified, each as a text; got {text}")
    return listed


def _parse(text: str) -> Condition:
    if text.startswith("jsonpath="):
        expression = jsonpath.parse(text.removeprefix("jsonpath="))
        return lambda item: _matches(expression, item)
    if text.startswith("condition="):
        kind, _, status = text.removeprefix("condition=").partition("=")
        return lambda item: _has_condition(item, kind, status or "True")
    raise ProviderError(f'expected a "jsonpath=" or "condition=" prefix, got {json.dumps(text)}')


def _all(conditions: list[Condition]) -> Condition:
    def check(item: Item) -> Verdict:
        verdicts = [condition(item) for condition in conditions]
        return next((verdict for verdict in verdicts if not verdict[0]), verdicts[-1])

    return check


def _matches(expression: jsonpath.Expression, item: Item) -> Verdict:
    if _is_behind(item):
        return False, ""
    return expression.matches(item)


def _has_condition(item: Item, kind: str, status: str) -> Verdict:
    conditions = (item.get("status") or {}).get("conditions")
    if not conditions:
        return False, "Has no .status.conditions"
    generation = _metadata(item).get("generation")
    for one in conditions:
        if str(one.get("type", "")).lower() != kind.lower():
            continue
        observed = one.get("observedGeneration", item["status"].get("observedGeneration"))
        if generation is not None and observed is not None and observed < generation:
            return False, f"Generation {observed} is less than expected {generation}"
        if str(one.get("status", "")).lower() == status.lower():
            return True, ""
        return False, f"Resource has condition {kind}={one.get('status')} (want {status})"
    return False, ""


def _is_behind(item: Item) -> bool:
    generation = _metadata(item).get("generation")
    observed = (item.get("status") or {}).get("observedGeneration")
    return generation is not None and observed is not None and observed < generation


def _metadata(item: Item) -> Item:
    return item.get("metadata") or {}


def _rollout(item: Item) -> Verdict:
    spec, status = item.get("spec") or {}, item.get("status") or {}
    if status.get("observedGeneration", 0) < _metadata(item).get("generation", 1):
        return False, "Waiting for app ReplicaSet be marked available"
    for one in status.get("conditions") or []:
        if one.get("type") == "Progressing" and one.get("reason") == "ProgressDeadlineExceeded":
            raise FailedError(f"[{one['reason']}] {one.get('message', '')}")
    replicas = spec.get("replicas", 1)
    available, updated = status.get("availableReplicas", 0), status.get("updatedReplicas", 0)
    ready = updated == replicas and available == replicas and status.get("replicas", 0) == replicas
    return (
        ready,
        "" if ready else f"Waiting for app ReplicaSet be marked available ({available}/{replicas} Pods available)",
    )


def _stateful_rollout(item: Item) -> Verdict:
    spec, status = item.get("spec") or {}, item.get("status") or {}
    replicas = spec.get("replicas", 1)
    ready = (
        not _is_behind(item)
        and status.get("readyReplicas", 0) == replicas
        and status.get("currentRevision") == status.get("updateRevision")
    )
    return (
        ready,
        "" if ready else f"Waiting for StatefulSet update to roll out ({status.get('readyReplicas', 0)}/{replicas})",
    )


def _daemon_rollout(item: Item) -> Verdict:
    status = item.get("status") or {}
    wanted = status.get("desiredNumberScheduled", 0)
    updated, available = status.get("updatedNumberScheduled", 0), status.get("numberAvailable", 0)
    ready = "observedGeneration" in status and not _is_behind(item) and updated == wanted and available == wanted
    return ready, "" if ready else f"Waiting for DaemonSet to roll out ({available}/{wanted} available)"


def _job(item: Item) -> Verdict:
    for one in (item.get("status") or {}).get("conditions") or []:
        if one.get("type") == "Failed" and one.get("status") == "True":
            raise FailedError(f"[{one.get('reason')}] {one.get('message', '')}")
        if one.get("type") == "Complete" and one.get("status") == "True":
            return True, ""
    return False, f'Waiting for Job "{objects.id_of(item)}" to succeed'


def _pod(item: Item) -> Verdict:
    status = item.get("status") or {}
    if status.get("phase") == "Failed":
        raise FailedError(f"[{status.get('reason', 'PodFailed')}] {status.get('message', '')}")
    if status.get("phase") == "Succeeded":
        return True, ""
    ready, _ = _has_condition(item, "Ready", "True")
    return ready, "" if ready else f'Waiting for Pod "{objects.id_of(item)}" to be ready'


def _service(item: Item) -> Verdict:
    if (item.get("spec") or {}).get("type") != "LoadBalancer":
        return True, ""
    ready = bool(((item.get("status") or {}).get("loadBalancer") or {}).get("ingress"))
    return ready, "" if ready else "Attempting to allocate IP address to Service"


_KINDS: dict[tuple[str, str], Condition] = {
    ("apps/v1", "DaemonSet"): _daemon_rollout,
    ("apps/v1", "Deployment"): _rollout,
    ("apps/v1", "StatefulSet"): _stateful_rollout,
    ("batch/v1", "Job"): _job,
    ("v1", "Pod"): _pod,
    ("v1", "Service"): _service,
}
