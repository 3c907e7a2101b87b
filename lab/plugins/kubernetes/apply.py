"""Writing objects: created in one POST, changed by server-side apply under the resource's own field manager.

As the real plugin does it: a creation refuses an object that is there already; the first update takes over what the
creation (and kubectl) set, so that only managers of other tools can be in conflict with it.

Answers to (recorded): shared/upstream/kubernetes-plugin (the real plugin 4.29.0), compared by
    tests/lab/test_kubernetes_plugin.py
Answers to (real): server-side apply is the API server's own.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from berth.lab.plugins.kubernetes import objects
from berth.lab.plugins.kubernetes.client import APPLY, JSON_PATCH, ApiError, Cluster, NoMatchError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

    from berth.lab.plugins.kubernetes.objects import ObjectKind

Item = dict[str, Any]

# A namespace or a type may still be on its way: attempts after 1, 2, 4, 8, 16 and 32 seconds.
_ATTEMPTS = 6

# Somebody else may change the object between reading and handing over its fields.
_HAND_OVER_ATTEMPTS = 5

_DRY_RUN = {"dryRun": "All"}

_ALREADY_EXISTS = """

The resource already exists in the cluster. This can happen when:

  - Renaming a Pulumi resource: use an alias to preserve the identity,
    or use deleteBeforeReplace if the resource needs replacement.
  - Managing an existing resource: use a Patch resource (e.g. NamespacePatch)
    to manage specific fields without owning the resource lifecycle.
  - Adopting a resource into Pulumi: use `pulumi import`. Note that
    protected resources (e.g. kube-system) cannot be deleted on destroy.
  - Intentional upsert: set upsertExistingObjects on the provider to allow
    server-side apply to update existing objects on create."""

_CONFLICT = (
    "server-side apply field conflict detected, see https://www.pulumi.com/registry/packages/kubernetes/"
    "how-to-guides/managing-resources-with-server-side-apply/#handle-field-conflicts-on-existing-resources"
    " for troubleshooting help\n"
)


class RefusedError(Exception):
    """The server does not take the object; the text says why, for the user.

    Attributes:
        cause: what the server or discovery said.
    """

    def __init__(self, text: str, cause: ApiError | NoMatchError) -> None:
        super().__init__(text)
        self.cause = cause


class Writer:
    """Writes to one cluster.

    Args:
        cluster: where to write.
        cancelled: set when the user interrupts; retries end.
        status: shows a line beside a resource.
    """

    def __init__(self, cluster: Cluster, cancelled: threading.Event, status: Callable[[str, str], None]) -> None:
        self._cluster = cluster
        self._cancelled = cancelled
        self._status = status

    def create(self, urn: str, wanted: Item, manager: str, *, upsert: bool, force: bool, preview: bool) -> Item:
        """The new object as the server has it.

        Args:
            urn: the resource, for the lines shown while retrying.
            wanted: the object.
            manager: the field manager of an upsert.
            upsert: apply to an object that may be there (Patch resources, `upsertExistingObjects`).
            force: take fields from other managers.
            preview: only ask the server whether it would take the object.

        Raises:
            RefusedError: the server refuses, or the namespace or type did not come within a minute.
        """
        for attempt in range(_ATTEMPTS + 1):
            try:
                return self._create_once(wanted, manager, upsert=upsert, force=force or preview, preview=preview)
            except (ApiError, NoMatchError) as error:
                missing = isinstance(error, NoMatchError) or error.not_found
                if attempt < _ATTEMPTS and not preview:
                    self._status(urn, f"Retry #{attempt}; creation failed: {error}")
                last = attempt == _ATTEMPTS or preview or not missing
                if last or self._cancelled.wait(2.0**attempt):
                    raise RefusedError(explain(error, manager), error) from error
        raise AssertionError

    def update(self, kind: ObjectKind, wanted: Item, live: Item, manager: str, *, force: bool, preview: bool) -> Item:
        """The changed object as the server has it (in a preview: would have it).

        Raises:
            RefusedError: the server refuses, or another manager owns a field.
        """
        try:
            if kind.kind == "CustomResourceDefinition":
                return self._replace(wanted, live, manager, preview=preview)
            taken = [entry for entry in live["metadata"].get("managedFields") or [] if _is_ours_to_take(entry)]
            if preview:
                force = force or bool(taken)
            elif not kind.is_patch:
                self._hand_over(live, manager)
            return self._apply(
                wanted, manager, force=force or not live["metadata"].get("managedFields"), preview=preview
            )
        except (ApiError, NoMatchError) as error:
            raise RefusedError(explain(error, manager), error) from error

    def relinquish(self, live: Item, manager: str) -> None:
        """Give up every field that the manager owns; those nobody else owns disappear.

        Raises:
            ApiError: the server refuses; a field that the object cannot be without stays.
        """
        metadata = {"name": objects.name_of(live), "namespace": objects.namespace_of(live)}
        bare = {
            "apiVersion": live["apiVersion"],
            "kind": live["kind"],
            "metadata": {key: value for key, value in metadata.items() if value},
        }
        self._apply(bare, manager, force=True, preview=False)

    def _create_once(self, wanted: Item, manager: str, *, upsert: bool, force: bool, preview: bool) -> Item:
        if upsert:
            return self._apply(wanted, manager, force=force, preview=preview)
        resource = self._cluster.resource(wanted["apiVersion"], wanted["kind"])
        query = {"fieldManager": objects.CREATE_MANAGER, **(_DRY_RUN if preview else {})}
        return self._cluster.request("POST", resource.path(objects.namespace_of(wanted)), wanted, query)

    def _apply(self, wanted: Item, manager: str, *, force: bool, preview: bool) -> Item:
        resource = self._cluster.resource(wanted["apiVersion"], wanted["kind"])
        path = resource.path(objects.namespace_of(wanted), objects.name_of(wanted))
        query = {"fieldManager": manager, "force": str(force).lower(), **(_DRY_RUN if preview else {})}
        return self._cluster.request("PATCH", path, wanted, query, APPLY)

    def _replace(self, wanted: Item, live: Item, manager: str, *, preview: bool) -> Item:
        # Replaced whole, as `kubectl replace` does: the objects of the type stay.
        resource = self._cluster.resource(wanted["apiVersion"], wanted["kind"])
        body = {**wanted, "metadata": {**wanted["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}}
        query = {"fieldManager": manager, **(_DRY_RUN if preview else {})}
        return self._cluster.request("PUT", resource.path("", objects.name_of(wanted)), body, query)

    def _hand_over(self, live: Item, manager: str) -> None:
        resource = self._cluster.resource(live["apiVersion"], live["kind"])
        path = resource.path(objects.namespace_of(live), objects.name_of(live))
        for attempt in range(_HAND_OVER_ATTEMPTS):
            patch = hand_over_patch(live, manager)
            if not patch:
                return
            try:
                self._cluster.request("PATCH", path, patch, {}, JSON_PATCH)
            except ApiError as error:
                if not error.conflict or attempt == _HAND_OVER_ATTEMPTS - 1:
                    raise
                live = self._cluster.request("GET", path)
            else:
                return


def hand_over_patch(live: Item, manager: str) -> list[Item]:
    """A JSON patch that makes `manager` the owner of what kubectl and creations own; empty if there is nothing."""
    entries = live["metadata"].get("managedFields") or []
    taken = [entry for entry in entries if _is_ours_to_take(entry)]
    if not taken:
        return []
    own = next((entry for entry in entries if entry["manager"] == manager and entry["operation"] == "Apply"), None)
    fields: Item = {}
    for entry in [*([own] if own else []), *taken]:
        fields = _union(fields, entry.get("fieldsV1") or {})
    ours = {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": (own or taken[0])["apiVersion"],
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    }
    kept = [entry for entry in entries if entry is not own and entry not in taken]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": [*kept, ours]},
        # Refused with a conflict where the object has changed since it was read.
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
    ]


def explain(error: ApiError | NoMatchError, manager: str) -> str:
    """The server's words, with what mends it where that is known."""
    if isinstance(error, ApiError) and error.already_exists:
        return f"{error}{_ALREADY_EXISTS}"
    if isinstance(error, ApiError) and error.conflict and "Apply failed" in str(error):
        return f'{_CONFLICT}The resource managed by field manager "{manager}" had an apply conflict: {error}'
    return str(error)


def _is_ours_to_take(entry: Item) -> bool:
    name, operation = str(entry.get("manager", "")), entry.get("operation")
    if entry.get("subresource"):
        return False
    if name.startswith("kubectl"):
        return True
    takes = name.startswith(("pulumi-kubernetes", "pulumi-resource-kubernetes", "before-first-apply"))
    return operation == "Update" and takes


def _union(one: Item, other: Item) -> Item:
    return {
        key: _union(one[key], other[key]) if key in one and key in other else one.get(key, other.get(key))
        for key in [*one, *(key for key in other if key not in one)]
    }
