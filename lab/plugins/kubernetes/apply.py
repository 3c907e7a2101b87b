"""Writes of objects: created by one POST, changed by server-side apply as the own manager.

A creation refuses an object that exists, as the real plugin's does. With `upsertExistingObjects` it
applies instead, and only another value of another manager's field is in conflict. The first update
takes over the fields of the creation and of kubectl, so that only managers of other tools can be in
conflict with it.

Answers to (recorded): shared/upstream/kubernetes-plugin (the real plugin 4.29.0), compared by
    tests/lab/test_kubernetes_plugin.py
Answers to (read): pulumi-kubernetes 4.29.0, `Creation` and `patchForce` in
    provider/pkg/await/await.go, for creations of objects that exist:
    https://github.com/pulumi/pulumi-kubernetes/blob/v4.29.0/provider/pkg/await/await.go
Answers to (real): server-side apply is the API server's own.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from berth.components.cluster.api import APPLY, JSON_PATCH, ConflictError, NotFoundError, RefusedError
from berth.lab.plugins.kubernetes import objects
from berth.lab.plugins.kubernetes.client import Cluster, NoMatchError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable

Item = dict[str, Any]

# A namespace or a kind may still come: attempts after 1, 2, 4, 8, 16 and 32 seconds.
_ATTEMPTS = 6

# Another program may change the object between reading it and handing over its fields.
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


class NotAppliedError(Exception):
    """Error: the server does not take the object; the text says why, for the user.

    Attributes:
        cause: answer of the server, or of discovery.
    """

    def __init__(self, cause: RefusedError | NoMatchError, manager: str) -> None:
        super().__init__(explain(cause, manager))
        self.cause = cause


class Writer:
    """Writes to one cluster."""

    def __init__(self, cluster: Cluster, canceled: threading.Event, status: Callable[[str, str], None]) -> None:
        self._cluster = cluster
        self._canceled = canceled
        self._status = status

    def create(self, urn: str, desired: Item, manager: str, *, upsert: bool, force: bool, preview: bool) -> Item:
        """Create an object, and return it as the server has it.

        Args:
            urn: the resource, for the lines shown while retrying.
            desired: the object.
            manager: the field manager of an upsert.
            upsert: apply to an object that may exist.
            force: take fields from other managers.
            preview: only ask the server whether it would take the object.

        Raises:
            NotAppliedError: the server refuses; a missing namespace or kind has a minute.
        """
        for attempt in range(_ATTEMPTS + 1):
            try:
                if upsert:
                    return self._apply(desired, manager, force=force or preview, preview=preview)
                path = self._cluster.resource(desired["apiVersion"], desired["kind"]).path(
                    objects.namespace_of(desired)
                )
                query = {"fieldManager": objects.CREATE_MANAGER, **(_DRY_RUN if preview else {})}
                return self._cluster.api.request("POST", path, desired, query)
            except (RefusedError, NoMatchError) as error:
                may_come = isinstance(error, NoMatchError | NotFoundError)
                if attempt < _ATTEMPTS and not preview:
                    self._status(urn, f"Retry #{attempt}; creation failed: {_words(error)}")
                if attempt == _ATTEMPTS or preview or not may_come or self._canceled.wait(2.0**attempt):
                    raise NotAppliedError(error, manager) from error
        raise AssertionError

    def update(self, desired: Item, live: Item, manager: str, *, force: bool, preview: bool) -> Item:
        """Change an object, and return it as the server has it (in a preview: would have it).

        Raises:
            NotAppliedError: the server refuses, or another manager owns a field.
        """
        entries = live["metadata"].get("managedFields") or []
        try:
            if preview:
                force = force or any(_is_ours_to_take(entry) for entry in entries)
            else:
                self._hand_over(live, manager)
            return self._apply(desired, manager, force=force or not entries, preview=preview)
        except (RefusedError, NoMatchError) as error:
            raise NotAppliedError(error, manager) from error

    def relinquish(self, live: Item, manager: str) -> None:
        """Give up every field that the manager owns; a field without another owner disappears.

        Raises:
            RefusedError: the server refuses.
        """
        metadata = {"name": objects.name_of(live), "namespace": objects.namespace_of(live)}
        bare = {
            "apiVersion": live["apiVersion"],
            "kind": live["kind"],
            "metadata": {key: value for key, value in metadata.items() if value},
        }
        self._apply(bare, manager, force=True, preview=False)

    def _apply(self, desired: Item, manager: str, *, force: bool, preview: bool) -> Item:
        query = {"fieldManager": manager, "force": str(force).lower(), **(_DRY_RUN if preview else {})}
        return self._cluster.api.request("PATCH", self._path(desired), desired, query, APPLY)

    def _hand_over(self, live: Item, manager: str) -> None:
        path = self._path(live)
        for attempt in range(_HAND_OVER_ATTEMPTS):
            patch = hand_over_patch(live, manager)
            if not patch:
                return
            try:
                self._cluster.api.request("PATCH", path, patch, {}, JSON_PATCH)
            except ConflictError:
                if attempt == _HAND_OVER_ATTEMPTS - 1:
                    raise
                live = self._cluster.api.request("GET", path)
            else:
                return

    def _path(self, item: Item) -> str:
        resource = self._cluster.resource(item["apiVersion"], item["kind"])
        return resource.path(objects.namespace_of(item), objects.name_of(item))


def hand_over_patch(live: Item, manager: str) -> list[Item]:
    """Return a JSON patch that gives `manager` the fields of kubectl and of creations."""
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
    others = [entry for entry in entries if entry is not own and entry not in taken]
    return [
        {"op": "replace", "path": "/metadata/managedFields", "value": [*others, ours]},
        # The server refuses it with a conflict where the object has changed since it was read.
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live["metadata"]["resourceVersion"]},
    ]


def explain(error: RefusedError | NoMatchError, manager: str) -> str:
    """Return the server's words, with the remedy where one is known."""
    text = _words(error)
    if isinstance(error, ConflictError) and error.already_exists:
        return f"{text}{_ALREADY_EXISTS}"
    if isinstance(error, ConflictError) and any(
        cause.get("reason") == "FieldManagerConflict" for cause in _causes(error)
    ):
        return f'{_CONFLICT}The resource managed by field manager "{manager}" had an apply conflict: {text}'
    return text


def _words(error: RefusedError | NoMatchError) -> str:
    return error.message if isinstance(error, RefusedError) else str(error)


def _causes(error: RefusedError) -> list[Item]:
    return error.details.get("causes") or []


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
