"""The life of one Kubernetes object as a Pulumi resource: checked, compared, created, read, updated, deleted.

Answers to (recorded): shared/upstream/kubernetes-plugin (the real plugin 4.29.0), compared by
    tests/lab/test_kubernetes_plugin.py (5-up-update.txt, 7-refresh-drift.txt, 9-errors.txt)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.lab.plugins.kubernetes import diff, objects
from berth.lab.plugins.kubernetes.apply import Item, RefusedError
from berth.lab.plugins.kubernetes.client import ApiError, NoMatchError, UnreachableError
from berth.lab.plugins.kubernetes.ignored import keep_ignored
from berth.lab.plugins.kubernetes.immutable import immutable_fields
from berth.lab.plugins.kubernetes.session import Session
from berth.lab.plugins.kubernetes.waiting import NotReadyError
from berth.lab.plugins.provider import (
    CheckRequest,
    CheckResult,
    CreateRequest,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    InitFailedError,
    Kind,
    ProviderError,
    ReadRequest,
    ReadResult,
    UpdateRequest,
)
from berth.lab.plugins.values import Unknown, has, reveal

if TYPE_CHECKING:
    from berth.lab.plugins.kubernetes.objects import ObjectKind
    from berth.lab.plugins.values import Properties

# A delete that skips waiting for these does so on `pulumi.com/skipAwait`; all others are waited for all the same.
_SKIPPED_DELETES = frozenset({"Namespace", "Pod", "DaemonSet", "Deployment", "StatefulSet", "Job"})

_UNREACHABLE_STATE = (
    "If the cluster was deleted, you can remove this resource from Pulumi state by rerunning the operation with the "
    'PULUMI_K8S_DELETE_UNREACHABLE environment variable set to "true"'
)


class Resources:
    """Objects of one cluster.

    Args:
        session: the provider's settings, cluster and user.
    """

    def __init__(self, session: Session) -> None:
        self._session = session

    def check(self, request: CheckRequest) -> CheckResult:
        """Names, kinds and namespaces filled in."""
        news = request.news
        kind = objects.kind_of(request.type, news)
        metadata = news.get("metadata")
        if metadata is not None and not isinstance(reveal(metadata), dict | Unknown):
            return CheckResult(news, [("metadata", "must be an object with a name, labels, …")])
        wanted = objects.normalize({"apiVersion": kind.api_version, "kind": kind.kind, **objects.to_object(news)})
        if kind.kind.endswith("List") and isinstance(wanted.get("items"), list):
            reason = (
                "list resources exist for compatibility with YAML manifests and Helm charts, and cannot be created "
                "directly. Use the underlying resource type instead"
            )
            return CheckResult(news, [("", reason)])
        if kind.is_patch and not objects.is_named(wanted):
            return CheckResult(
                news, [("metadata.name", "patch resources require the `.metadata.name` field to be set")]
            )
        if (wanted.get("metadata") or {}).get("generateName") and not objects.is_named(wanted):
            reason = "the `.metadata.generateName` field is not supported in Server-Side Apply mode"
            return CheckResult(news, [("metadata.generateName", reason)])
        if not objects.is_named(wanted):
            olds = reveal(request.olds)
            if not olds:
                if request.naming_disabled:
                    reason = "autonaming is disabled, resource requires the .metadata.name field to be set"
                    return CheckResult(news, [("metadata.name", reason)])
                name = request.proposed_name or objects.autoname(request.name, request.seed)
                wanted = objects.with_name(wanted, name)
            elif objects.annotation(olds, objects.AUTONAMED) == "true":
                wanted = objects.with_name(wanted, objects.name_of(olds))
        if (
            self._session.settings.namespace
            and not (wanted.get("metadata") or {}).get("namespace")
            and self._session.is_namespaced(kind)
        ):
            wanted["metadata"] = {**wanted["metadata"], "namespace": self._session.settings.namespace}
        return CheckResult(objects.hide_secrets(objects.from_object(wanted), news))

    def diff(self, request: DiffRequest) -> DiffResult:
        """What differs between the object as last seen and as the program wants it."""
        kind = objects.kind_of(request.type, request.news)
        old_inputs, old_live = objects.read_checkpoint(request.olds)
        old_inputs = objects.normalize(old_inputs)
        wanted = objects.normalize(objects.to_object(request.news))
        old = objects.prune(old_live, old_inputs)
        _align(old, old_live, wanted)
        patterns = immutable_fields(
            wanted,
            is_patch=kind.is_patch,
            configmaps_mutable="enableConfigMapMutable" in self._session.settings.switches,
            secrets_mutable="enableSecretMutable" in self._session.settings.switches,
        )
        found = diff.without_ignored(diff.compare(old, wanted, patterns), request.ignore_changes)
        taken = (
            bool(objects.name_of(wanted))
            and objects.annotation(wanted, objects.AUTONAMED) != "true"
            and objects.name_of(wanted) == objects.name_of(old_live)
            and objects.namespace_of(wanted) == objects.namespace_of(old_live)
        )
        return DiffResult(
            found,
            delete_before_replace=taken and any(item.replaces for item in found.values()),
            input_diff_paths=frozenset(
                path for path, item in found.items() if item in {Kind.DELETE, Kind.DELETE_REPLACE}
            ),
        )

    def create(self, request: CreateRequest) -> tuple[str, Properties]:
        """Make the object and wait until it is ready."""
        kind = objects.kind_of(request.type, request.properties)
        wanted = objects.to_object(request.properties)
        if request.preview and (has(wanted, Unknown) or kind.is_patch or not self._session.knows(kind)):
            return "", request.properties
        manager = objects.field_manager(wanted, {})
        upsert = kind.is_patch or "upsertExistingObjects" in self._session.settings.switches
        try:
            live = self._session.writer().create(
                request.urn,
                wanted,
                manager,
                upsert=upsert,
                force=self._session.is_forced(wanted),
                preview=request.preview,
            )
        except RefusedError as error:
            if request.preview and _says_nothing(error):
                return "", request.properties
            raise ProviderError(_not_created(request.urn, kind, error)) from error
        self._session.engine.status(request.urn, "")
        if request.preview:
            live.pop("status", None)
            return "", objects.checkpoint(wanted, live, request.properties, kind.api_version, manager)
        try:
            live = self._session.waits().until_ready(request.urn, wanted, live, request.timeout)
        except NotReadyError as error:
            state = objects.checkpoint(wanted, error.live, request.properties, kind.api_version, manager)
            text = (
                f'resource "{request.urn}" was successfully created, but the Kubernetes API server reported that it '
                f"failed to fully initialize or become live: {error.reasons[0]}"
            )
            raise InitFailedError(objects.id_of(live), state, [text, *error.reasons[1:]]) from error
        self._session.engine.status(request.urn, "")
        return objects.id_of(live), objects.checkpoint(wanted, live, request.properties, kind.api_version, manager)

    def read(self, request: ReadRequest) -> ReadResult:
        """What is there; nothing recorded yet means an import."""
        namespace, name = objects.parse_id(request.id)
        kind = objects.kind_of(request.type, request.inputs or request.properties)
        old_inputs, old_live = objects.read_checkpoint(request.properties)
        old_inputs = objects.normalize(objects.to_object(request.inputs) or old_inputs)
        try:
            live = self._session.cluster().get(
                kind.api_version, kind.kind, namespace or objects.namespace_of(old_live or old_inputs), name
            )
        except NoMatchError:
            return ReadResult("")
        except ApiError as error:
            if error.not_found:
                return ReadResult("")
            raise ProviderError(f'failed to read "{request.id}": {error}') from error
        except UnreachableError as error:
            return self._read_unreachable(request, error)
        if old_inputs.get("kind"):
            inputs = objects.prune(live, old_inputs)
        elif kind.is_patch:
            inputs = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": _identity(live)}
        else:
            inputs = objects.imported_inputs(live)
        version = objects.initial_api_version(request.properties, inputs)
        manager = objects.field_manager(inputs, reveal(request.properties))
        state = objects.checkpoint(inputs, live, request.inputs, version, manager)
        return ReadResult(
            request.id or objects.id_of(live), state, objects.hide_secrets(objects.from_object(inputs), request.inputs)
        )

    def update(self, request: UpdateRequest) -> Properties:
        """Apply the change and wait until the object is ready again."""
        kind = objects.kind_of(request.type, request.news)
        wanted = objects.normalize(objects.to_object(request.news))
        if request.preview and (has(wanted, Unknown) or not self._session.knows(kind)):
            return request.news
        _, old_live = objects.read_checkpoint(request.olds)
        old_manager = objects.field_manager({}, reveal(request.olds))
        manager = objects.field_manager(wanted, reveal(request.olds))
        version = objects.initial_api_version(request.olds, wanted)
        live = self._session.live(kind, old_live)
        if live is None:
            raise ProviderError(
                f'update of resource "{request.urn}" failed: {kind.kind} "{objects.id_of(old_live)}" is gone; '
                "`pulumi refresh` notices, and the next update creates it anew"
            )
        reasons: list[str] = []
        try:
            wanted = keep_ignored(wanted, live, request.ignore_changes, manager)
            force = self._session.is_forced(wanted)
            live = self._session.writer().update(kind, wanted, live, manager, force=force, preview=request.preview)
            if not request.preview:
                live = self._session.waits().until_ready(request.urn, wanted, live, request.timeout)
                self._session.engine.status(request.urn, "")
        except RefusedError as error:
            if request.preview and isinstance(error.cause, ApiError) and error.cause.forbidden:
                return request.news
            reasons = [str(error)]
        except NotReadyError as error:
            live, reasons = error.live, error.reasons
        state = objects.checkpoint(wanted, live, request.news, version, manager)
        if reasons:
            text = (
                f'the Kubernetes API server reported that "{objects.id_of(live)}" failed to fully initialize or become '
                f"live: {reasons[0]}"
            )
            raise InitFailedError(objects.id_of(live), state, [text, *reasons[1:]])
        if old_manager != manager and not request.preview and reveal(request.olds).get("__fieldManager"):
            self._session.writer().relinquish(live, old_manager)
        return state

    def delete(self, request: DeleteRequest) -> None:
        """Remove the object and wait until it is gone; a Patch resource gives up its fields."""
        old_inputs, live = objects.read_checkpoint(request.properties)
        kind = objects.kind_of(request.type, old_inputs or live)
        live = {**live, "apiVersion": live.get("apiVersion", kind.api_version), "kind": live.get("kind", kind.kind)}
        try:
            if kind.is_patch:
                self._release(live, objects.field_manager(old_inputs, reveal(request.properties)))
            else:
                self._delete(request, kind, old_inputs, live)
        except NoMatchError:
            return
        except UnreachableError as error:
            if "deleteUnreachable" not in self._session.settings.switches:
                raise ProviderError(f"{error}. {_UNREACHABLE_STATE}") from error
            self._session.engine.warn(request.urn, f"{error}. Deleting the unreachable resource from Pulumi state")

    def _delete(self, request: DeleteRequest, kind: ObjectKind, old_inputs: Item, live: Item) -> None:
        namespace, name = objects.parse_id(request.id)
        resource = self._session.cluster().resource(kind.api_version, kind.kind)
        policy = objects.annotation(old_inputs, objects.PROPAGATION).capitalize()
        options = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "propagationPolicy": policy if policy in {"Orphan", "Background"} else "Foreground",
        }
        path = resource.path(namespace or objects.namespace_of(live), name)
        try:
            answer = self._session.cluster().request("DELETE", path, options)
        except ApiError as error:
            if error.not_found:
                return
            raise ProviderError(f'"{request.id}" was not deleted: {error}') from error
        if kind.kind in _SKIPPED_DELETES and objects.annotation(old_inputs, objects.SKIP_AWAIT) == "true":
            return
        if answer.get("kind") == kind.kind and answer.get("metadata"):
            live = {**answer, "apiVersion": kind.api_version}
        try:
            self._session.waits().until_gone(request.urn, old_inputs, live, request.timeout)
        except NotReadyError as error:
            reason = f'"{request.id}" was asked to go and is still there: {"; ".join(error.reasons)}'
            raise ProviderError(reason) from error
        self._session.engine.status(request.urn, "")

    def _release(self, live: Item, manager: str) -> None:
        if self._session.live(objects.kind_of(f"kubernetes:{live['apiVersion']}:{live['kind']}", live), live) is None:
            return
        try:
            self._session.writer().relinquish(live, manager)
        except ApiError as error:
            if error.not_found:
                return
            required = [cause.get("field", "") for cause in error.details.get("causes") or []]
            if "Required value" in str(error):
                raise ProviderError(
                    "this Patch resource is currently managing a required field, so it can't be deleted directly. "
                    "Either set the `retainOnDelete` resource option, or transfer ownership of the field before "
                    f"deleting: {', '.join(required) or error}"
                ) from error
            raise ProviderError(str(error)) from error

    def _read_unreachable(self, request: ReadRequest, error: UnreachableError) -> ReadResult:
        if "deleteUnreachable" in self._session.settings.switches:
            self._session.engine.warn(request.urn, f"{error}. Deleting the unreachable resource from Pulumi state")
            return ReadResult("")
        if "skipUpdateUnreachable" in self._session.settings.switches:
            self._session.engine.warn(request.urn, f"{error}. What is recorded may not be what is there")
            return ReadResult(request.id, request.properties, request.inputs)
        raise ProviderError(f"{error}. {_UNREACHABLE_STATE}") from error


def _align(old: Item, old_live: Item, wanted: Item) -> None:
    """Give both sides the same way of saying what the server fills in: name and namespace."""
    metadata = old.setdefault("metadata", {})
    if not isinstance(metadata, dict):
        return
    namespace = objects.namespace_of(old_live)
    new = wanted.get("metadata")
    if isinstance(new, dict):
        if namespace:
            metadata["namespace"] = namespace
            new.setdefault("namespace", "default")
        else:
            metadata.pop("namespace", None)
            new.pop("namespace", None)
        if new.get("name"):
            metadata["name"] = objects.name_of(old_live)


def _identity(live: Item) -> Item:
    return {key: live["metadata"][key] for key in ("name", "namespace") if key in live["metadata"]}


def _says_nothing(error: RefusedError) -> bool:
    """Whether a preview's refusal only comes from what the update itself will have made by then."""
    cause = error.cause
    return isinstance(cause, NoMatchError) or cause.namespace_missing or cause.forbidden or cause.already_exists


def _not_created(urn: str, kind: ObjectKind, error: RefusedError) -> str:
    if isinstance(error.cause, NoMatchError):
        return (
            f'creation of resource "{urn}" with kind {kind.api_version}/{kind.kind} failed because the Kubernetes API '
            "server reported that the apiVersion for this resource does not exist. Verify that any required CRDs have "
            f"been created: {error}"
        )
    return f'resource "{urn}" was not successfully created by the Kubernetes API server: {error}'
