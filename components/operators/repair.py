"""Repair of a Helm release before Pulumi touches it: the hook, and the input that calls it."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import pulumi

from berth.components.cluster.api import ClusterApi, ClusterError, ConflictError
from berth.components.core.errors import BerthError
from berth.components.operators.orphaned_plugins import orphaned_plugins
from berth.components.operators.record import (
    Revision,
    delete_record,
    mark_failed,
    release_description,
    revisions_of,
)

_PAUSE_SECONDS = 1.0
_ATTEMPTS = 5
"""Times that a repair begins, where others write to the record meanwhile."""

_Answer = TypeVar("_Answer")


class RepairError(BerthError):
    """Release that Helm would refuse to change, and that berth cannot repair."""


@dataclass(frozen=True)
class Repair:
    """Repair of one release."""

    name: str
    namespace: str
    kubeconfig: pulumi.Input[str]
    """Access to the cluster, as text."""
    resource: pulumi.Resource
    """Component that the notices are about."""
    timeout: int
    """Seconds after which Helm gives up an operation on the release."""

    def hook(self) -> pulumi.ResourceHook:
        """Return the hook that repairs the record before the release is created or updated."""
        options = pulumi.ResourceHookOptions(on_dry_run=True)
        return pulumi.ResourceHook(f"{self.name}-repair", self._before, options)

    def description(
        self, values: Mapping[str, Any], version: str | None
    ) -> pulumi.Output[str | None]:
        """Return the release's description; None where its record is right, or cannot be read."""
        return pulumi.Output.from_input(asyncio.ensure_future(self._description(values, version)))

    async def _description(self, values: Mapping[str, Any], version: str | None) -> str | None:
        try:
            return await self._ask(
                lambda api: release_description(api, self.namespace, self.name, values, version)
            )
        except ClusterError:
            return None

    async def _before(self, change: pulumi.ResourceHookArgs) -> None:
        """Repair the record.

        Raises:
            RepairError: the record cannot be read, or others write to it all the time.
        """
        try:
            for _ in range(_ATTEMPTS):
                if await self._attempt(change):
                    return
                await asyncio.sleep(_PAUSE_SECONDS)
        except ClusterError as error:
            if pulumi.runtime.is_dry_run():
                return
            raise RepairError(
                f"the record of Helm release {self._title} cannot be read: {error}",
                "look at the access to the cluster, and run the update again",
            ) from None
        raise RepairError(
            f"the record of Helm release {self._title} changed {_ATTEMPTS} times while berth"
            " repaired it",
            f"wait until nobody else works on the release (helm -n {self.namespace} history"
            f" {self.name}), and run the update again",
        )

    async def _attempt(self, change: pulumi.ResourceHookArgs) -> bool:
        """Return whether the record is right now; False where others wrote to it meanwhile."""
        try:
            record = await self._settled()
            if record and change.old_inputs is None:
                await self._adopt(record)
            elif record:
                await self._repair(record[-1])
        except ConflictError:
            return False
        return True

    async def _settled(self) -> Sequence[Revision]:
        """Return the record, once no plugin of a killed engine is at work on its end."""
        while True:
            # Asked for first: what a plugin does last is to write the record.
            plugins: Sequence[int] = ()
            if not pulumi.runtime.is_dry_run():
                plugins = await asyncio.to_thread(orphaned_plugins)
            record = await self._ask(lambda api: revisions_of(api, self.namespace, self.name)) or ()
            if not plugins or not record or not record[-1].may_run(self.timeout):
                return record
            pulumi.log.info(
                f"Helm release {self._title} is {record[-1].status}, and the Kubernetes plugin of a"
                " killed update may still be at work on it (process"
                f" {', '.join(map(str, plugins))}); this update waits for its end, {self.timeout} s"
                " from its beginning at most",
                self.resource,
                ephemeral=True,
            )
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _adopt(self, record: Sequence[Revision]) -> None:
        """Take over a release that the state lacks."""
        newest = record[-1]
        self._refuse_others(newest)
        where = f"on the cluster ({newest.status}) and not in the state of this stack"
        if pulumi.runtime.is_dry_run():
            text = f"is {where}: the update takes it over, with the values of the settings"
        else:
            await self._ask(lambda api: delete_record(api, self.namespace, record))
            text = f"was {where}: this update installs it over its objects, which stay"
        pulumi.log.warn(f"Helm release {self._title} {text}", self.resource)

    async def _repair(self, newest: Revision) -> None:
        """Free a release whose last operation was killed."""
        if not newest.is_pending:
            return
        self._refuse_others(newest)
        if pulumi.runtime.is_dry_run():
            return
        await self._ask(lambda api: mark_failed(api, self.namespace, newest))
        pulumi.log.warn(
            f"Helm release {self._title}: an update was killed at revision {newest.number}, which"
            f" it left {newest.status}; this update starts at the last deployed revision again",
            self.resource,
        )

    def _refuse_others(self, newest: Revision) -> None:
        if newest.is_pending and not newest.ours:
            raise RepairError(
                f"Helm release {self._title} is {newest.status} by another program than Pulumi",
                f"wait until it is done; if it was killed: helm -n {self.namespace} rollback"
                f" {self.name}",
            )

    @property
    def _title(self) -> str:
        return f"{self.name} in namespace {self.namespace}"

    async def _ask(self, question: Callable[[ClusterApi], _Answer]) -> _Answer | None:
        """Return the cluster's answer; None without a cluster, such as in a first preview."""
        text = await pulumi.Output.from_input(self.kubeconfig).future()
        return await asyncio.to_thread(lambda: question(ClusterApi(text))) if text else None
