"""Suspension of a berth, which deletes its pods, and its end, which recreates them."""

from datetime import UTC, datetime
from typing import Any

from berth.cli.reach.arguments import seconds_of
from berth.cli.reach.berths import LiveBerth, live_berth
from berth.cli.reach.current_work import CurrentWork, running_on
from berth.cli.reach.lifecycle import EXTEND, lifecycle_remarks
from berth.cli.reach.moments import moment_in_zone
from berth.cli.shell.console import (
    LOST,
    err,
    print_error,
    print_json,
    print_result,
    somebody_agrees,
)
from berth.components.cluster.ray_manifest import is_suspended
from berth.components.core.errors import FAILED, BadInputError, BerthError
from berth.components.lifecycle import life_of
from berth.components.programs.decision import KUEUE
from berth.components.ray.live import condition_of, set_suspended, wait_for_pods

_WORDS = {True: ("suspending", "suspended"), False: ("waking", "ready")}
"""Words for the way to a state and for the state, by whether it is suspension."""


def suspend_berth(
    name: str | None, stack: str | None, timeout: str, *, yes: bool, as_json: bool
) -> int:
    """Suspend a berth and wait until its pods are gone; return the exit code.

    Raises:
        BadInputError: the berth is not there, or its RayCluster belongs to a RayJob or RayService.
    """
    seconds = seconds_of(timeout)
    berth = live_berth(name, stack)
    if berth.cluster["metadata"].get("ownerReferences"):
        raise BadInputError(
            f"the RayCluster of {berth.name} begins and ends with its RayJob or RayService, which"
            f" KubeRay keeps running; take {berth.name} out of the settings to end it"
        )
    if is_suspended(berth.cluster) and condition_of(berth.cluster).state == "suspended":
        return _report(
            berth, "is suspended already", suspended=True, changed=False, as_json=as_json
        )
    running = running_on(berth)
    if running.note:
        err.print(f"note: {berth.name}: {running.note}")
    if not yes and not _may_be_lost(berth.name, running):
        return LOST
    set_suspended(berth.api, berth.key, suspended=True)
    return _wait(berth, suspended=True, seconds=seconds, as_json=as_json, lost=running)


def _may_be_lost(name: str, running: CurrentWork) -> bool:
    """Return whether nothing runs on a berth, or somebody agrees that it is lost."""
    if not running.work and not running.unknown:
        return True
    if running.unknown:
        err.print(f"cannot tell whether anything runs on {name}: {running.unknown}")
    for work in running.work:
        err.print(f"runs on {name}, and would be lost: {work}")
    return somebody_agrees(f"Suspend {name} anyway?", f"berth suspend {name} --yes")


def wake_berth(name: str | None, stack: str | None, timeout: str, *, as_json: bool) -> int:
    """Wake a berth and wait until it is ready; return the exit code."""
    seconds = seconds_of(timeout)
    berth = live_berth(name, stack)
    condition = condition_of(berth.cluster)
    if not is_suspended(berth.cluster) and condition.state != "waking":
        state = "is awake already" if condition.ready else f"is not suspended ({condition})"
        return _report(berth, state, suspended=False, changed=False, as_json=as_json)
    life = life_of(berth.cluster)
    if condition.state != "waking":
        _start(berth)
    if life.expired(datetime.now(tz=UTC)):
        since = moment_in_zone(life.expires, life.zone)
        note = (
            f"{berth.name} expired on {since}, and is suspended again in a day; to keep it,"
            f" {EXTEND}"
        )
        err.print(f"note: {note}")
    return _wait(berth, suspended=False, seconds=seconds, as_json=as_json)


def wake_up(berth: LiveBerth, seconds: float) -> None:
    """Wake a berth before something else is done with it.

    Raises:
        BerthError: the berth is not ready in time, or Kueue suspends it.
    """
    _start(berth)
    if reasons := _reasons(berth, suspended=False, seconds=seconds):
        raise BerthError(
            f"{berth.name} is not ready after {seconds:.0f} s: {'; '.join(reasons)}",
            f"berth wake {berth.name} goes on waiting",
        )


def _start(berth: LiveBerth) -> None:
    """Wake a berth, unless Kueue would suspend it again at once."""
    life = life_of(berth.cluster)
    if life.suspended_by == KUEUE:
        raise BerthError("; ".join(lifecycle_remarks(berth.name, life)))
    set_suspended(berth.api, berth.key, suspended=False)


def _wait(
    berth: LiveBerth,
    *,
    suspended: bool,
    seconds: float,
    as_json: bool,
    lost: CurrentWork | None = None,
) -> int:
    doing, done = _WORDS[suspended]
    if reasons := _reasons(berth, suspended=suspended, seconds=seconds):
        print_error(
            BerthError(f"{berth.name} is not {done} after {seconds:.0f} s: {'; '.join(reasons)}")
        )
        if as_json:
            print_json({**_names_of(berth), "state": doing, "changed": True, "reasons": reasons})
        return FAILED
    back = f"; back with: berth wake {berth.name}" if suspended else ""
    return _report(
        berth, f"is {done}{back}", suspended=suspended, changed=True, as_json=as_json, lost=lost
    )


def _reasons(berth: LiveBerth, *, suspended: bool, seconds: float) -> list[str]:
    """Wait for the state that was asked for; return why it is not there in time, if so."""

    def report(text: str) -> None:
        err.print(f"{_WORDS[suspended][0]} {berth.name}: {text}")

    return wait_for_pods(berth.api, berth.key, suspended=suspended, seconds=seconds, report=report)


def _report(
    berth: LiveBerth,
    text: str,
    *,
    suspended: bool,
    changed: bool,
    as_json: bool,
    lost: CurrentWork | None = None,
) -> int:
    state = {
        "state": "suspended" if suspended else "awake",
        "changed": changed,
        "lost": lost.work if lost else [],
    }
    return print_result({**_names_of(berth), **state}, f"{berth.name} {text}", as_json=as_json)


def _names_of(berth: LiveBerth) -> dict[str, Any]:
    return {
        "name": berth.name,
        "namespace": berth.namespace,
        "rayCluster": berth.key[1],
        "stack": berth.stack,
    }
