"""Edits of an environment's engineers, checked as a whole before a byte is written."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from berth.cli.reach.berths import LiveBerth, find
from berth.cli.reach.environment import own_stacks
from berth.cli.reach.homes import HomeDisk, disks_of, forget
from berth.cli.repository.check import check_all
from berth.cli.repository.entries import engineers_in, environment_file, write
from berth.cli.repository.stack_edit import Change, with_entry, without_entry
from berth.cli.shell.console import Table, print_result
from berth.components.core.errors import BadInputError, BerthError
from berth.components.core.nearest import did_you_mean
from berth.components.core.owner import namespace_of
from berth.components.core.project import shown_path
from berth.components.core.words import counted, names_in_words
from berth.components.ray import RayClusterSettings, condition_of
from berth.components.ray.fleet import WHOLE_GPU
from berth.components.ray.fleet_observation import live_groups
from berth.components.sharing import offered_pools
from berth.stacks.files import stack_file
from berth.stacks.load.stack import EngineerBerth, Environment, Judged, load_stack

_ENGINEERS = ("config", f"{stack_file.NAMESPACE}:environment", "engineers")


def add(stack: str, name: str, entry: dict[str, Any], *, dry_run: bool, as_json: bool) -> int:
    """Write a berth into an environment's file; return the exit code."""
    file, text = environment_file(stack)
    present = engineers_in(file.settings["environment"])
    if name in present:
        if present[name] == entry or not entry:
            document = {"stack": stack, "name": name, "changed": False, "diff": ""}
            done = f"{name} has a berth on {stack} already; nothing was changed"
            return print_result(document, done, as_json=as_json)
        raise BadInputError(
            f"{name} has a berth with other settings already; edit it there, or remove it first",
            place=f"{file.shown_path}:{file.line(('environment', 'engineers', name))}",
        )
    if other := own_stacks(stack, without="isolation").get(name):
        raise BadInputError(
            f"{name} has a berth on {stack} by a stack of their own, {other}; a berth has one stack"
        )
    change = Change(file.path, text, with_entry(text, _ENGINEERS, name, entry))
    _check_result(change, {**present, name: entry})
    done = f"{name} gets a berth on {stack} by: berth up -s {stack}"
    return write(stack, name, change, done, dry_run=dry_run, as_json=as_json)


def remove(stack: str, name: str, *, forget_home: bool, dry_run: bool, as_json: bool) -> int:
    """Take a berth out of an environment's file; return the exit code."""
    file, text = environment_file(stack)
    present = engineers_in(file.settings["environment"])
    if name not in present:
        if other := own_stacks(stack, without="isolation").get(name):
            raise BadInputError(
                f"{name}'s berth is of a stack of their own; remove it with: berth destroy -s"
                f" {other}"
            )
        raise BadInputError(
            f"environment {stack} has no engineer {name!r}{did_you_mean(name, present)}"
        )
    change = Change(file.path, text, without_entry(text, _ENGINEERS, name))
    _check_result(change, {key: value for key, value in present.items() if key != name})
    if not forget_home:
        return write(stack, name, change, _loss(stack, name), dry_run=dry_run, as_json=as_json)
    berth = find(name, stack)
    disks = disks_of(berth.api, name)
    if not disks:
        raise BadInputError(f"berth {name} has no home", "leave --forget-home out")
    text = (
        f"the next `berth up -s {stack}` removes everything in namespace {namespace_of(name)}, also"
        f" {names_in_words(disks, 'and')}, which nothing undoes:"
        f" {_standing(berth, len(berth.pods()))}; the empty namespace stays, until berth home"
        f" remove {name} -s {stack}"
    )
    code = write(stack, name, change, text, dry_run=dry_run, as_json=as_json)
    if code == 0 and not dry_run:
        forget(berth.api, name)
    return code


def show(stack: str, *, as_json: bool) -> int:
    """Print who has a berth; return the exit code."""
    loaded = load_stack(stack)
    if not isinstance(loaded, Environment):
        raise BadInputError(f"stack {stack} is not an environment")
    rows = [row for berth in loaded.resolved.berths for row in _rows(berth, stack, loaded)]
    own = own_stacks(stack, without="isolation")
    for name, checked in zip(own, check_all(own.values()), strict=True):
        if isinstance(checked.loaded, EngineerBerth):
            rows += _rows(checked.loaded.berth.settings, checked.stack, checked.loaded)
        else:  # `berth check` refuses it, so that its shape is not known
            unknown = dict.fromkeys(("group", "workers", "gpus", "unit", "pool"))
            rows.append({"name": name, "stack": checked.stack, **unknown})
    # Berths with one group each need no column for it.
    left_out = set() if any(row["group"] for row in rows) else {"group"}
    table = Table("berth", "stack", *({"group"} - left_out), "workers", "GPUs a worker", "pool")
    for row in rows:
        cells = {key: value for key, value in row.items() if key not in {*left_out, "unit"}}
        if row["gpus"] is not None and row["unit"] not in {None, WHOLE_GPU}:
            cells["gpus"] = counted(row["gpus"], row["unit"])  # `1 share` instead of a number
        table.add_row(*("–" if value is None else str(value) for value in cells.values()))
    return print_result(rows, table if rows else f"nobody has a berth on {stack}", as_json=as_json)


def _rows(berth: RayClusterSettings, stack: str, judged: Judged) -> list[dict[str, Any]]:
    return [
        {
            "name": berth.name,
            "stack": stack,
            "group": group.name if group.is_named else None,
            "workers": group.workers if isinstance(group.workers, int) else group.written_count,
            "gpus": group.gpus,
            "unit": judged.resolved.pools[group.pool].unit,
            "pool": group.pool,
        }
        for group in berth.groups
    ]


def _check_result(change: Change, engineers: Mapping[str, Any]) -> None:
    """Check that an edit of the text means what was asked, however the file is written."""
    try:
        before = stack_file.parse_stack_file(change.path, change.before).settings
        after = stack_file.parse_stack_file(change.path, change.after).settings
    except stack_file.StackFileError:
        before, after = {}, {"": None}
    expected = {
        **before,
        "environment": {**before.get("environment", {}), "engineers": dict(engineers)},
    }
    if after.get("environment"):
        after = {
            **after,
            "environment": {
                **after["environment"],
                "engineers": engineers_in(after["environment"]),
            },
        }
    if after != expected:
        name = shown_path(change.path)
        raise BadInputError(
            f"{name} is written in a way that this can't edit (anchors?); edit it by hand"
        )


def _loss(stack: str, name: str) -> str:
    """Return what the next update deletes, as far as the cluster can be asked."""
    text = (
        f"the next `berth up -s {stack}` removes namespace {namespace_of(name)} with everything"
        " in it"
    )
    try:
        berth = find(name, stack)
        return (
            f"{text}{_disks(stack, disks_of(berth.api, name))}:"
            f" {_standing(berth, len(berth.pods()))}"
        )
    except BadInputError:
        return f"{text}; it is not up"
    except BerthError as error:
        return f"{text}; whether it is up could not be asked: {error}"


def _disks(stack: str, disks: Sequence[HomeDisk]) -> str:
    """Return what the next update does with home and Filestore volumes."""
    if not disks:
        return ""
    words = names_in_words(disks, "and")
    if not disks[0].retained:
        return f", also {words}"
    stay = "stays" if len(disks) == 1 else "stay"
    return (
        f", but {words} {stay}; to delete that later: berth home remove {disks[0].name} -s {stack}"
    )


def _standing(berth: LiveBerth, pods: int) -> str:
    if not pods:
        return f"RayCluster {berth.key[1]}, {condition_of(berth.cluster).state}, without pods"
    count = f"{counted(pods, 'pod')} and {_gpus(berth)}"
    return f"RayCluster {berth.key[1]} is up now, with {count}, and what runs there is lost"


def _gpus(berth: LiveBerth) -> str:
    """Return what a berth's workers request: GPUs, shares of them, or both."""
    contract = berth.environment.contract
    pools = offered_pools(contract.pools, contract.sharing)
    units: Counter[str] = Counter()
    for group in live_groups(berth.cluster, (), suspended=False):
        units[pools[group.pool].unit if group.pool in pools else WHOLE_GPU] += group.gpus
    given = {unit: gpus for unit, gpus in units.items() if gpus} or {next(iter(units)): 0}
    return " and ".join(counted(gpus, unit) for unit, gpus in given.items())
