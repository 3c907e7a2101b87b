"""Kubernetes object as a Pulumi resource: checked, compared, created, read, updated, deleted.

Answers to (recorded): shared/upstream/kubernetes-plugin (the real plugin 4.29.0), compared by
    tests/lab/test_kubernetes_plugin.py (5-up-update.txt, 7-refresh-drift.txt, 9-errors.txt)
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from berth.components.cluster.api import ClusterError, NotFoundError, RefusedError
from berth.lab.plugins.kubernetes import diff, objects
from berth.lab.plugins.kubernetes.apply import Item, NotAppliedError, Writer
from berth.lab.plugins.kubernetes.client import Cluster, NoMatchError
from berth.lab.plugins.kubernetes.immutable import immutable_fields
from berth.lab.plugins.kubernetes.waiting import NotReadyError, Waits
from berth.lab.plugins.provider import (
    CheckRequest,
    CheckResult,
    CreateRequest,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    Engine,
    Handler,
    InitFailedError,
    Kind,
    ProviderError,
    ReadRequest,
    ReadResult,
    UpdateRequest,
)
from berth.lab.plugins.values import Unknown, has, reveal

if TYPE_CHECKING:
    import threading

    from berth.lab.plugins.kubernetes.objects import ObjectKind
    from berth.lab.plugins.values import Properties


class Resources(Handler):
    """Objects of one cluster."""

    def __init__(self, cluster: Cluster, engine: Engine, canceled: threading.Event, *, upsert: bool) -> None:
        self._cluster = cluster
        self._engine = engine
        self._upsert = upsert
        self._writer = Writer(cluster, canceled, engine.status)
        self._waits = Waits(cluster, canceled, engine.status)

    def check(self, request: CheckRequest) -> CheckResult:
        """Fill in kind and name."""
        news = request.news
        kind = objects.kind_of(request.type, news)
        desired = objects.normalize({"apiVersion": kind.api_version, "kind": kind.kind, **objects.to_object(news)})
        if missing := objects.unsupported(request.type, desired):
            reason = f"{missing} is not part of the lab's stand-in for the kubernetes provider; install the real one"
            return CheckResult(news, [("", reason)])
        if not objects.is_named(desired):
            olds = reveal(request.olds)
            if not olds:
                name = request.proposed_name or objects.autoname(request.name, request.seed)
                desired = objects.with_name(desired, name)
            elif objects.annotation(olds, objects.AUTONAMED) == "true":
                desired = objects.with_name(desired, objects.name_of(olds))
        return CheckResult(objects.hide_secrets(desired, news))

    def diff(self, request: DiffRequest) -> DiffResult:
        """Compare the object as last seen with the object as the program wants it."""
        old_inputs, old_live = objects.read_checkpoint(request.olds)
        desired = objects.normalize(objects.to_object(request.news))
        old = objects.prune(old_live, objects.normalize(old_inputs))
        _align(old, old_live, desired)
        found = diff.without_ignored(diff.compare(old, desired, immutable_fields(desired)), request.ignore_changes)
        name_taken = (
            bool(objects.name_of(desired))
            and objects.annotation(desired, objects.AUTONAMED) != "true"
            and objects.name_of(desired) == objects.name_of(old_live)
            and objects.namespace_of(desired) == objects.namespace_of(old_live)
        )
        return DiffResult(
            found,
            delete_before_replace=name_taken and any(item.replaces for item in found.values()),
            input_diff_paths=frozenset(
                path for path, item in found.items() if item in {Kind.DELETE, Kind.DELETE_REPLACE}
            ),
        )

    def create(self, request: CreateRequest) -> tuple[str, Properties]:
        """Create the object and wait until it is ready."""
        kind = objects.kind_of(request.type, request.properties)
        desired = objects.to_object(request.properties)
        if request.preview and (has(desired, Unknown) or not self._knows(kind)):
            return "", request.properties
        manager = objects.field_manager(desired, {})
        force = _is_forced(desired)
        try:
            live = self._writer.create(
                request.urn, desired, manager, upsert=self._upsert, force=force, preview=request.preview
            )
        except NotAppliedError as error:
            if request.preview and _is_temporary(error):
                return "", request.properties
            raise ProviderError(_not_created(request.urn, kind, error)) from error
        self._engine.status(request.urn, "")
        if request.preview:
            live.pop("status", None)
            return "", objects.checkpoint(desired, live, request.properties, kind.api_version, manager)
        try:
            live = self._waits.until_ready(request.urn, desired, live, request.timeout)
        except NotReadyError as error:
            state = objects.checkpoint(desired, error.live, request.properties, kind.api_version, manager)
            text = (
                f'resource "{request.urn}" was successfully created, but the Kubernetes API server reported that it '
                f"failed to fully initialize or become live: {error.reasons[0]}"
            )
            raise InitFailedError(objects.id_of(live), state, [text, *error.reasons[1:]]) from error
        self._engine.status(request.urn, "")
        return objects.id_of(live), objects.checkpoint(desired, live, request.properties, kind.api_version, manager)

    def read(self, request: ReadRequest) -> ReadResult:
        """Return the object as it is."""
        namespace, name = objects.parse_id(request.id)
        kind = objects.kind_of(request.type, request.inputs or request.properties)
        old_inputs, old_live = objects.read_checkpoint(request.properties)
        old_inputs = objects.normalize(objects.to_object(request.inputs) or old_inputs)
        if not old_inputs.get("kind"):
            raise ProviderError("an import is not part of the lab's stand-in for the kubernetes provider")
        try:
            live = self._cluster.get(
                kind.api_version, kind.kind, namespace or objects.namespace_of(old_live or old_inputs), name
            )
        except NoMatchError:
            return ReadResult("")
        except RefusedError as error:
            raise ProviderError(f'failed to read "{request.id}": {error.message}') from error
        if live is None:
            return ReadResult("")
        inputs = objects.prune(live, old_inputs)
        version = objects.initial_api_version(request.properties, inputs)
        manager = objects.field_manager(inputs, reveal(request.properties))
        state = objects.checkpoint(inputs, live, request.inputs, version, manager)
        return ReadResult(request.id, state, objects.hide_secrets(inputs, request.inputs))

    def update(self, request: UpdateRequest) -> Properties:
        """Apply the change and wait until the object is ready again."""
        kind = objects.kind_of(request.type, request.news)
        desired = objects.normalize(objects.to_object(request.news))
        if request.preview and (has(desired, Unknown) or not self._knows(kind)):
            return request.news
        _, old_live = objects.read_checkpoint(request.olds)
        old_manager = objects.field_manager({}, reveal(request.olds))
        manager = objects.field_manager(desired, reveal(request.olds))
        live = self._live(kind, old_live)
        if live is None:
            raise ProviderError(
                f'update of resource "{request.urn}" failed: {kind.kind} "{objects.id_of(old_live)}" is gone; '
                "`pulumi refresh` notices, and the next update creates it again"
            )
        reasons: list[str] = []
        try:
            live = self._writer.update(desired, live, manager, force=_is_forced(desired), preview=request.preview)
            if not request.preview:
                live = self._waits.until_ready(request.urn, desired, live, request.timeout)
                self._engine.status(request.urn, "")
        except NotAppliedError as error:
            if request.preview and getattr(error.cause, "status", 0) == HTTPStatus.FORBIDDEN:
                return request.news
            reasons = [str(error)]
        except NotReadyError as error:
            live, reasons = error.live, error.reasons
        version = objects.initial_api_version(request.olds, desired)
        state = objects.checkpoint(desired, live, request.news, version, manager)
        if reasons:
            text = (
                f'the Kubernetes API server reported that "{objects.id_of(live)}" failed to fully initialize or become '
                f"live: {reasons[0]}"
            )
            raise InitFailedError(objects.id_of(live), state, [text, *reasons[1:]])
        if old_manager != manager and not request.preview and reveal(request.olds).get("__fieldManager"):
            self._writer.relinquish(live, old_manager)
        return state

    def delete(self, request: DeleteRequest) -> None:
        """Delete the object and wait until it is gone."""
        old_inputs, live = objects.read_checkpoint(request.properties)
        kind = objects.kind_of(request.type, old_inputs or live)
        live = {**live, "apiVersion": live.get("apiVersion", kind.api_version), "kind": live.get("kind", kind.kind)}
        namespace, name = objects.parse_id(request.id)
        try:
            resource = self._cluster.resource(kind.api_version, kind.kind)
            path = resource.path(namespace or objects.namespace_of(live), name)
            answer = self._cluster.api.request("DELETE", path, {"propagationPolicy": "Foreground"})
        except (NoMatchError, NotFoundError):
            return
        except RefusedError as error:
            raise ProviderError(f'"{request.id}" was not deleted: {error.message}') from error
        if "deletionTimestamp" not in (answer.get("metadata") or {}):
            return  # gone at once: it had no finalizer
        try:
            self._waits.until_gone(request.urn, {**answer, "apiVersion": kind.api_version}, request.timeout)
        except NotReadyError as error:
            raise ProviderError(f'"{request.id}" is in deletion and still there: {error}') from error
        self._engine.status(request.urn, "")

    def _live(self, kind: ObjectKind, old_live: Item) -> Item | None:
        try:
            return self._cluster.get(
                kind.api_version, kind.kind, objects.namespace_of(old_live), objects.name_of(old_live)
            )
        except NoMatchError as error:
            raise ProviderError(f"{error}. Verify that any required CRDs have been created") from error

    def _knows(self, kind: ObjectKind) -> bool:
        """Return whether the server knows the kind; previews do without a server."""
        try:
            self._cluster.resource(kind.api_version, kind.kind)
        except (NoMatchError, ClusterError):
            return False
        return True


def _align(old: Item, old_live: Item, desired: Item) -> None:
    """Give both sides the name and namespace that the server fills in."""
    metadata = old.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        return
    namespace = objects.namespace_of(old_live)
    new = desired.get("metadata")
    if isinstance(new, dict):
        if namespace:
            metadata["namespace"] = namespace
            new.setdefault("namespace", "default")
        else:
            metadata.pop("namespace", None)
            new.pop("namespace", None)
        if new.get("name"):
            metadata["name"] = objects.name_of(old_live)


def _is_forced(desired: Item) -> bool:
    return objects.annotation(desired, objects.FORCE).lower() == "true"


def _is_temporary(error: NotAppliedError) -> bool:
    """Return whether the update may create what a preview's refusal names as missing."""
    cause = error.cause
    if isinstance(cause, NoMatchError):
        return True
    namespace_missing = isinstance(cause, NotFoundError) and cause.details.get("kind") == "namespaces"
    return namespace_missing or cause.already_exists or cause.status == HTTPStatus.FORBIDDEN


def _not_created(urn: str, kind: ObjectKind, error: NotAppliedError) -> str:
    if isinstance(error.cause, NoMatchError):
        return (
            f'creation of resource "{urn}" with kind {kind.api_version}/{kind.kind} failed because the Kubernetes API '
            "server reported that the apiVersion for this resource does not exist. Verify that any required CRDs have "
            f"been created: {error}"
        )
    return f'resource "{urn}" was not successfully created by the Kubernetes API server: {error}'
