"""Repair of a Helm release before Pulumi touches it: the hook, and the input that calls it.

An engine that is killed takes no Kubernetes plugin with it, and the plugin ends an operation that
has begun before it asks whether its engine is still there (pulumi,
pkg/resource/provider/main.go).
"""

import asyncio
import re
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import pulumi

from berth.components.cluster.api import ClusterApi, ClusterError, ConflictError
from berth.components.core.errors import BerthError
from berth.components.operators.record import Revision, forget, mark_failed, note, revisions

_PLUGIN = re.compile(r"(^|/)pulumi-resource-kubernetes( |$)")
_ENGINE = re.compile(r"(^|/)pulumi( |$)")


def orphans() -> list[int]:
    """Return the pids of this project's plugins without an engine; none where `ps` is missing."""
    try:
        command = ("ps", "-A", "-ww", "-o", "pid=,ppid=,args=")
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return []
    rows = [line.split(maxsplit=2) for line in listed.splitlines()]
    programs = {pid: " ".join(words) for pid, _, *words in rows}
    return [
        int(pid)
        for pid, parent, *_ in rows
        if _PLUGIN.search(programs[pid])
        and not _ENGINE.search(programs.get(parent, ""))
        and _is_here(pid)
    ]


def _is_here(pid: str) -> bool:
    """Return whether a plugin is of this folder's project; yes where the system does not say."""
    try:
        return Path("/proc", pid, "cwd").readlink() == Path.cwd()
    except OSError:
        return True


_PAUSE_SECONDS = 1.0

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
                lambda api: note(api, self.namespace, self.name, values, version)
            )
        except ClusterError:
            return None

    async def _before(self, change: pulumi.ResourceHookArgs) -> None:
        try:
            if found := await self._settled():
                await (self._adopt(found) if change.old_inputs is None else self._repair(found[-1]))
        except ConflictError:
            await self._before(change)  # somebody has written to the record meanwhile
        except ClusterError as error:
            if not pulumi.runtime.is_dry_run():
                raise RepairError(
                    f"the record of Helm release {self._title} cannot be read: {error}"
                ) from None

    async def _settled(self) -> Sequence[Revision]:
        """Return the record, once no plugin of a killed engine is at work on its end."""
        while True:
            # Asked for first: what a plugin does last is to write the record.
            plugins = () if pulumi.runtime.is_dry_run() else await asyncio.to_thread(orphans)
            found = await self._ask(lambda api: revisions(api, self.namespace, self.name)) or ()
            if not plugins or not found or not found[-1].may_run(self.timeout):
                return found
            pulumi.log.info(
                f"Helm release {self._title} is {found[-1].status}, and the Kubernetes plugin of a"
                " killed update may still be at work on it (process"
                f" {', '.join(map(str, plugins))}); this update waits for its end, {self.timeout} s"
                " from its beginning at most",
                self.resource,
                ephemeral=True,
            )
            await asyncio.sleep(_PAUSE_SECONDS)

    async def _adopt(self, found: Sequence[Revision]) -> None:
        """Take over a release that the state lacks."""
        self._refuse_others(found[-1])
        verb, outcome = "was", "this update installs it over its objects, which stay"
        if pulumi.runtime.is_dry_run():
            verb, outcome = "is", "the update takes it over, with the values of the settings"
        else:
            await self._ask(lambda api: forget(api, self.namespace, found))
        there = f"{verb} on the cluster ({found[-1].status}) and not in the state of this stack"
        pulumi.log.warn(f"Helm release {self._title} {there}: {outcome}", self.resource)

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
