"""Parts of a berth's pods that only its settings may give them: one list for all policies.

A pod may have the fields that are listed here, and beyond them the parts that the berth's own
manifests have. A part is a line of text, such as `envFrom Secret tokens`. An annotation of the
namespace has the parts of the manifests; the policies name those of a pod in the same way
(pod-rules.yaml), and refuse what is not in the annotation.
"""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from berth.components.isolation.pod_templates import Object, cluster_spec, pod_templates

PARTS = "berth/pod-parts"
"""Annotation of a berth's namespace: parts of its pods that no other berth's may have, by line."""

_SPEC_FIELDS = (
    "activeDeadlineSeconds",
    "affinity",
    "containers",
    "dnsConfig",
    "dnsPolicy",
    "enableServiceLinks",
    "hostname",
    "imagePullSecrets",
    "initContainers",
    "nodeName",
    "nodeSelector",
    "os",
    "preemptionPolicy",
    "priority",
    "priorityClassName",
    "resourceClaims",
    "resources",
    "restartPolicy",
    "runtimeClassName",
    "securityContext",
    "serviceAccount",
    "serviceAccountName",
    "setHostnameAsFQDN",
    "subdomain",
    "terminationGracePeriodSeconds",
    "tolerations",
    "topologySpreadConstraints",
    "volumes",
)
"""Fields of any pod's spec. Other rules judge the values of some of them."""

_HARMLESS: dict[str, Any] = {
    "automountServiceAccountToken": False,
    "hostIPC": False,
    "hostNetwork": False,
    "hostPID": False,
    "hostUsers": True,
    "schedulerName": "default-scheduler",
    "shareProcessNamespace": False,
}
"""Values of further fields that any pod may have."""

_FIELDS_OF_PODS = ("hostAliases", "hostUsers", "schedulerName", "shareProcessNamespace")
"""Further fields that are judged in pods, too. The API server's defaults, webhooks and Kueue write
fields into pods that no template has, so that a pod may have fields which are not listed."""

_CONTAINER_FIELDS = (
    "args",
    "command",
    "env",
    "image",
    "imagePullPolicy",
    "lifecycle",
    "livenessProbe",
    "name",
    "ports",
    "readinessProbe",
    "resizePolicy",
    "resources",
    "restartPolicy",
    "securityContext",
    "startupProbe",
    "stdin",
    "stdinOnce",
    "terminationMessagePath",
    "terminationMessagePolicy",
    "tty",
    "volumeMounts",
    "workingDir",
)
"""Fields of any container."""

_BY_NAME = "envFrom"
"""Field of a container whose entries are parts of their own."""

_SCALER_FIELDS = ("idleTimeoutSeconds", "upscalingMode", "version")
"""Fields of KubeRay's options for Ray's autoscaler that are not the container's."""

_ANNOTATION_PREFIXES = ("berth", "kubectl.kubernetes.io", "prometheus.io", "ray.io")
"""Prefixes of annotations of any pod, which may also have keys without a prefix."""

_AUTOSCALER_PREFIX = "cluster-autoscaler.kubernetes.io/"
"""Beginning of annotations that keep a node from going. They are judged in pods, too."""


AFFINITY = "affinity to pods of other namespaces"
"""Part of a pod by which the scheduler keeps others' pods away, from a node or a whole zone
(https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/)."""


def pod_parts(manifests: Iterable[Object]) -> list[str]:
    """Return the parts of the pods of manifests that other berths' pods may not have, sorted."""
    parts: set[str] = set()
    for manifest in manifests:
        for _, template, _ in pod_templates(manifest):
            parts.update(_parts_of_template(template))
        options = (cluster_spec(manifest) or {}).get("autoscalerOptions")
        parts.update(_parts_of_container(options or {}))
    return sorted(parts)


def conditions_on_templates() -> dict[str, str]:
    """Return CEL conditions on keys that make a part of a template: all that is not listed."""
    fields = [*_CONTAINER_FIELDS, _BY_NAME, *_SCALER_FIELDS]
    return {
        "judged_annotations": (
            f"key.contains('/') && !(key.split('/')[0] in {_cel(_ANNOTATION_PREFIXES)})"
        ),
        "judged_fields": f"!(key in {_cel(_SPEC_FIELDS)})",
        "judged_container_fields": f"!(key in {_cel(fields)})",
        "harmless": _harmless(),
    }


def conditions_on_pods() -> dict[str, str]:
    """Return CEL conditions on keys that make a part of a pod; see `_FIELDS_OF_PODS`."""
    return {
        "judged_annotations": f"key.startsWith('{_AUTOSCALER_PREFIX}')",
        "judged_fields": f"key in {_cel(_FIELDS_OF_PODS)}",
        "judged_container_fields": "false",
        "harmless": _harmless(),
    }


def _cel(keys: Iterable[str]) -> str:
    """Return a list of CEL."""
    return json.dumps(list(keys))


def _harmless() -> str:
    """Return the map of CEL with the harmless values, whose types differ."""
    entries = [f"{json.dumps(key)}: dyn({json.dumps(_HARMLESS[key])})" for key in _HARMLESS]
    return f"{{{', '.join(entries)}}}"


def _parts_of_template(template: Object) -> Iterator[str]:
    spec = template["spec"]
    yield from _parts_of_metadata(template.get("metadata") or {})
    yield from _parts_of_fields(spec)
    for volume in spec.get("volumes") or []:
        yield from _parts_of_volume(volume)
    for kind in ("containers", "initContainers"):
        for container in spec.get(kind) or []:
            yield from _parts_of_container(container)


def _parts_of_metadata(metadata: Object) -> Iterator[str]:
    for key, value in (metadata.get("annotations") or {}).items():
        prefix, slash, _ = key.partition("/")
        if slash and prefix not in _ANNOTATION_PREFIXES:
            yield f"annotation {key}={value}"


def _parts_of_fields(spec: Object) -> Iterator[str]:
    for key, value in spec.items():
        if key not in _SPEC_FIELDS and value != _HARMLESS.get(key):
            yield f"spec.{key}"
    if any("namespaceSelector" in term or term.get("namespaces") for term in _affinity_terms(spec)):
        yield AFFINITY


def _affinity_terms(spec: Object) -> Iterator[Object]:
    """Yield the terms on other pods of a pod spec's affinity."""
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = (spec.get("affinity") or {}).get(kind) or {}
        yield from rules.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        for preferred in rules.get("preferredDuringSchedulingIgnoredDuringExecution") or []:
            yield preferred["podAffinityTerm"]


def _parts_of_volume(volume: Object) -> Iterator[str]:
    csi = volume.get("csi")
    if csi:
        attributes = csi.get("volumeAttributes") or {}
        name = attributes.get("bucketName") or attributes.get("secretProviderClass") or ""
        yield f"csi {csi.get('driver', '')} {name}"
    claim = ((volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}).get("spec") or {}
    if claim.get("storageClassName"):
        yield f"storageClass {claim['storageClassName']}"
    for source in (volume.get("projected") or {}).get("sources") or []:
        audience = (source.get("serviceAccountToken") or {}).get("audience")
        if audience:
            yield f"token for {audience}"
        if "podCertificate" in source:
            yield "projected podCertificate"


def _parts_of_container(container: Object) -> Iterator[str]:
    for source in container.get(_BY_NAME) or []:
        of_secret = source.get("secretRef")
        if of_secret:
            yield f"envFrom Secret {of_secret.get('name', '')}"
        else:
            yield f"envFrom ConfigMap {(source.get('configMapRef') or {}).get('name', '')}"
    for key in container.keys() - {*_CONTAINER_FIELDS, _BY_NAME, *_SCALER_FIELDS}:
        yield f"container.{key}"
