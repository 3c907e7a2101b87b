"""List of the berths on an environment, by the stacks' files."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from berth.cli.pulumi.preview.document import plain_data
from berth.cli.reach.own_stacks import own_stacks
from berth.cli.repository.check import check_all
from berth.cli.shell.console import print_result
from berth.cli.shell.table import NOTHING, Table
from berth.components.core.errors import BadInputError
from berth.components.hardware.gpu_unit import GpuUnit
from berth.components.ray import RayClusterSettings
from berth.stacks.load.stack import EngineerBerth, Environment, Judged, load_stack


@dataclass(frozen=True)
class ListedGroup:
    """Group of workers of a berth; only the names of a berth whose settings have problems."""

    name: str
    stack: str
    group: str | None = None
    """Name of the group; None for the only group of a berth, which has no name."""
    workers: int | str | None = None
    """Number of workers, or its bounds: `0..4`."""
    gpus: int | None = None
    """GPUs of one worker, or shares of them."""
    unit: str | None = None
    pool: str | None = None
    gpu_unit: GpuUnit | None = None
    """Unit of the pool: a whole GPU, a share of one or a MIG instance."""

    @property
    def gpus_in_words(self) -> str:
        """Number of GPUs: `1 × B200`, or `1 share of 1/4 B200`."""
        if self.gpus is None or self.gpu_unit is None:
            return NOTHING
        return self.gpu_unit.brief(self.gpus)


def print_berths(stack: str, *, as_json: bool) -> int:
    """Print who has a berth on an environment; return the exit code.

    Raises:
        BadInputError: the stack is not an environment, or its settings have problems.
    """
    loaded = load_stack(stack)
    if not isinstance(loaded, Environment):
        raise BadInputError(f"stack {stack} is not an environment", "name an environment's stack")
    listed = [*_of_environment(loaded, stack), *_of_own_stacks(stack)]
    shown = listed_table(listed) if listed else f"nobody has a berth on {stack}"
    return print_result(plain_data(listed), shown, as_json=as_json)


def _of_environment(environment: Environment, stack: str) -> Iterator[ListedGroup]:
    for berth in environment.resolved.berths:
        yield from _groups(berth, stack, environment)


def _of_own_stacks(environment: str) -> Iterator[ListedGroup]:
    own = own_stacks(environment, without="isolation")
    for name, checked in zip(own, check_all(own.values()), strict=True):
        if isinstance(checked.loaded, EngineerBerth):
            yield from _groups(checked.loaded.berth.settings, checked.stack, checked.loaded)
        else:
            yield ListedGroup(name, checked.stack)


def _groups(berth: RayClusterSettings, stack: str, judged: Judged) -> Iterator[ListedGroup]:
    for group in berth.groups:
        yield ListedGroup(
            name=berth.name,
            stack=stack,
            group=group.name if group.is_named else None,
            workers=group.workers if isinstance(group.workers, int) else group.written_count,
            gpus=group.gpus,
            unit=judged.resolved.pools[group.pool].unit,
            pool=group.pool,
            gpu_unit=judged.resolved.pools[group.pool].gpu_unit,
        )


def listed_table(listed: Iterable[ListedGroup]) -> Table:
    """Return the groups of workers of berths for people."""
    table = Table(
        "berth",
        "stack",
        "group",
        "workers",
        "GPUs a worker",
        "pool",
        hide_first=("stack", "pool"),
    )
    for group in listed:
        table.add_row(
            group.name,
            group.stack,
            group.group or NOTHING,
            NOTHING if group.workers is None else str(group.workers),
            group.gpus_in_words,
            group.pool or NOTHING,
        )
    return table
