"""Contents of a cluster beside its nodes: the add-ons that GKE installs, and the objects that are deleted with it.

Answers to (real): the custom resource definitions of KubeRay's own chart, for GKE's Ray operator
    add-on.
Answers to (read):
    https://docs.cloud.google.com/kubernetes-engine/docs/how-to/allocate-network-resources-dra
    (names of managed DRANET's device classes).
Answers to (believed): the selectors of managed DRANET's device classes. `kubectl get deviceclasses
    -o yaml` on a cluster with managed DRANET would settle them.
"""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any

import yaml

from berth.lab.plugins.provider import ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

KEPT_NAMESPACES = frozenset({"default", "kube-node-lease", "kube-public", "kube-system"})
"""The control plane's own."""

_TIMEOUT_SECONDS = 20
_PATIENCE_SECONDS = 60.0
_LOOK_SECONDS = 0.2
_NOT_FOUND, _CONFLICT = 404, 409

# Kubernetes brings some of each itself, and says so by this label.
_BUILT_IN = "kubernetes.io/bootstrapping"

# Kinds without a namespace that charts and programs bring: the API, its list and its delete.
_CLUSTER_WIDE = (
    ("AdmissionregistrationV1Api", "mutating_webhook_configuration"),
    ("AdmissionregistrationV1Api", "validating_webhook_configuration"),
    ("RbacAuthorizationV1Api", "cluster_role_binding"),
    ("RbacAuthorizationV1Api", "cluster_role"),
    ("ResourceV1Api", "device_class"),
)


def ray_operator(inputs: dict[str, Any]) -> bool:
    """Whether a cluster has GKE's Ray operator add-on on."""
    configs = (inputs.get("addonsConfig") or {}).get("rayOperatorConfigs") or []
    return any(config.get("enabled") for config in configs)


def define(api: Any, folder: Path) -> None:
    """Make the custom resource definitions in a folder, and wait until they are served; those that are there stay.

    Args:
        api: the kubernetes client's connection.
        folder: YAML files with one definition each.

    Raises:
        ProviderError: there are none, the server refuses them, or does not serve them in time.
    """
    from kubernetes import client  # noqa: PLC0415
    from kubernetes.client.exceptions import ApiException  # noqa: PLC0415

    # A megabyte each: the pure Python loader takes seconds.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    definitions = [yaml.load(path.read_text(), Loader=loader) for path in sorted(folder.glob("*.yaml"))]  # noqa: S506 (either loader is safe)
    if not definitions:
        raise ProviderError(f"the lab has no definitions in {folder}; `berth lab up` puts them there")
    extensions = client.ApiextensionsV1Api(api)
    names = [definition["metadata"]["name"] for definition in definitions]
    for definition in definitions:
        try:
            extensions.create_custom_resource_definition(definition, _request_timeout=_TIMEOUT_SECONDS)
        except ApiException as error:
            if error.status != _CONFLICT:
                raise ProviderError(
                    f"the lab's API server refused {definition['metadata']['name']}: {error.body}"
                ) from None

    def pending() -> list[str]:
        there = extensions.list_custom_resource_definition(_request_timeout=_TIMEOUT_SECONDS).items
        served = {each.metadata.name for each in there if _established(each)}
        return [name for name in names if name not in served]

    left = _until_empty(pending)
    if left:
        raise ProviderError(f"the lab's API server does not serve {', '.join(left)} yet; try again")


def network_classes(api: Any) -> None:
    """Make the classes of devices that GKE's managed DRANET brings; those that are there stay.

    Their names are those of "Allocate network resources by using managed DRANET"; what they select by is not written there, but
    which NICs each of them is for.

    Args:
        api: the kubernetes client's connection.

    Raises:
        ProviderError: the server refuses them.
    """
    from kubernetes import client  # noqa: PLC0415
    from kubernetes.client.exceptions import ApiException  # noqa: PLC0415

    classes = client.CustomObjectsApi(api)
    for name, is_rdma in (("mrdma.google.com", "true"), ("netdev.google.com", "false")):
        expression = f'device.driver == "dra.net" && device.attributes["dra.net"].rdma == {is_rdma}'
        manifest = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": [{"cel": {"expression": expression}}]},
        }
        kind = ("resource.k8s.io", "v1", "deviceclasses")
        try:
            classes.create_cluster_custom_object(*kind, manifest, _request_timeout=_TIMEOUT_SECONDS)
        except ApiException as error:
            if error.status != _CONFLICT:
                raise ProviderError(f"the lab's API server refused DeviceClass {name}: {error.body}") from None


def claimed_devices(api: Any, kind: str) -> list[dict[str, Any]]:
    """All objects of a kind of resource.k8s.io: `resourceclaims` or `resourceslices`.

    Args:
        api: the kubernetes client's connection.
        kind: the kind's plural.
    """
    from kubernetes import client  # noqa: PLC0415

    objects = client.CustomObjectsApi(api)
    answer = objects.list_cluster_custom_object("resource.k8s.io", "v1", kind, _request_timeout=_TIMEOUT_SECONDS)
    items: list[dict[str, Any]] = answer["items"]
    return items


def clear(api: Any) -> list[str]:
    """Delete what a deleted cluster takes with it: all namespaces but the control plane's own, and what has none.

    What is in the namespace `default` stays: nothing of berth's is there. So do the definitions of custom kinds: charts and
    GKE's add-ons leave them too, and the API server is busy for half a minute when they go.

    Args:
        api: the kubernetes client's connection.

    Returns:
        The names of what is still going away; empty when all is gone.
    """
    from kubernetes import client  # noqa: PLC0415

    core = client.CoreV1Api(api)

    def namespaces() -> list[str]:
        there = core.list_namespace(_request_timeout=_TIMEOUT_SECONDS).items
        return [each.metadata.name for each in there if each.metadata.name not in KEPT_NAMESPACES]

    _delete(core.delete_namespace, namespaces())
    for group, kind in _CLUSTER_WIDE:
        kinds = getattr(client, group)(api)
        there = getattr(kinds, f"list_{kind}")(_request_timeout=_TIMEOUT_SECONDS).items
        names = [each.metadata.name for each in there if _BUILT_IN not in (each.metadata.labels or {})]
        _delete(getattr(kinds, f"delete_{kind}"), [name for name in names if not name.startswith("system:")])
    _delete_custom_objects(api)
    return _until_empty(namespaces)


def _delete_custom_objects(api: Any) -> None:
    """Objects of custom kinds that have no namespace to go with."""
    from kubernetes import client  # noqa: PLC0415

    objects = client.CustomObjectsApi(api)
    definitions = client.ApiextensionsV1Api(api).list_custom_resource_definition(_request_timeout=_TIMEOUT_SECONDS)
    for definition in definitions.items:
        spec = definition.spec
        if spec.scope != "Cluster":
            continue
        kind = (spec.group, next(each.name for each in spec.versions if each.storage), spec.names.plural)
        there = objects.list_cluster_custom_object(*kind, _request_timeout=_TIMEOUT_SECONDS)["items"]
        _delete(partial(objects.delete_cluster_custom_object, *kind), [each["metadata"]["name"] for each in there])


def _established(definition: Any) -> bool:
    conditions = (definition.status and definition.status.conditions) or []
    return any(each.type == "Established" and each.status == "True" for each in conditions)


def _delete(call: Callable[..., Any], names: Iterable[str]) -> None:
    from kubernetes.client.exceptions import ApiException  # noqa: PLC0415

    for name in names:
        try:
            call(name, _request_timeout=_TIMEOUT_SECONDS)
        except ApiException as error:
            # Gone by now, or on its way already.
            if error.status not in {_NOT_FOUND, _CONFLICT}:
                raise ProviderError(f"the lab's API server refused to delete {name}: {error.body}") from None


def _until_empty(look: Callable[[], list[str]]) -> list[str]:
    """What is left when nothing is, or patience ends."""
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (left := look()) and time.monotonic() < deadline:
        time.sleep(_LOOK_SECONDS)
    return left
