"""`berth upgrade plan`: what is old in an environment, and in which order it is upgraded."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from rich.console import Group

from berth.cli.reach.environment import NotUpError, brought_up
from berth.cli.shell.console import print_result
from berth.cli.shell.table import NOTHING, Table
from berth.cli.verbs.upgrade.environment_versions import (
    EnvironmentVersions,
    put_versions_of_cluster,
    versions_by_settings,
)
from berth.cli.verbs.upgrade.parts import PARTS
from berth.cli.verbs.upgrade.steps import UpgradeStep, upgrade_steps
from berth.cli.verbs.upgrade.supported import UNKNOWN, PartVersion, judged_versions
from berth.components.cluster.api import ClusterApi, UnreachableError
from berth.components.core.errors import FAILED, BadInputError
from berth.components.core.words import counted
from berth.stacks.load.stack import Environment, load_stack


def print_upgrade_plan(stack: str, *, as_json: bool) -> int:
    """Print the plan of an environment; return the exit code.

    Raises:
        BadInputError: the stack is an engineer's.
        UnreachableError: the environment's cluster does not answer.
    """
    loaded = load_stack(stack)
    if not isinstance(loaded, Environment):
        raise BadInputError(
            f"stack {stack} is an engineer's, and has the versions of its environment",
            f"run: berth upgrade plan -s {loaded.settings.environment}",
        )
    versions = versions_by_settings(loaded)
    try:
        put_versions_of_cluster(ClusterApi(brought_up(stack).kubeconfig), versions)
    except NotUpError:
        pass
    except UnreachableError as error:
        raise error.of_stack(stack) from None
    judged = judged_versions(versions.of_all_parts(), datetime.now(UTC).date())
    steps = upgrade_steps(judged, loaded, versions)
    document = {
        "stack": stack,
        "versions": [{**asdict(one), "installs": PARTS[one.part].installs} for one in judged],
        "steps": list(map(asdict, steps)),
        "definitions": versions.definitions,
        "refused": versions.refused,
    }
    print_result(document, Group(versions_table(judged), *_lines(steps, versions)), as_json=as_json)
    return FAILED if steps else 0


def versions_table(versions: Iterable[PartVersion]) -> Table:
    """Return the versions of parts for people."""
    table = Table(
        "part",
        "version",
        "of",
        "known by",
        "berth installs",
        "support ends",
        "goes with",
        hide_first=("known by", "goes with", "support ends"),
    )
    for one in versions:
        part = PARTS[one.part]
        table.add_row(
            part.title,
            one.version or NOTHING,
            ", ".join(one.who),
            one.asked,
            part.installs,
            NOTHING if one.ends == UNKNOWN else one.ends,
            ", ".join(one.goes_with) or NOTHING,
        )
    return table


def _lines(steps: Sequence[UpgradeStep], versions: EnvironmentVersions) -> Iterator[str]:
    for number, step in enumerate(steps, 1):
        yield f"{number}. {step.title}: {step.how}"
        yield from (f"   {text}" for text in step.old)
        yield from (f"   → {effect}" for effect in step.effects)
        yield from (f"   in this place because {reason}" for reason in step.place)
    counts = [
        f"{name} {counted(count, 'object')}"
        for name, count in versions.definitions.items()
        if count
    ]
    if counts:
        yield f"a CRD that is removed takes its objects with it: {', '.join(counts)}"
    yield from (f"not known by the cluster: {text}" for text in versions.refused)
    if steps:
        yield f"{counted(len(steps), 'part')} to upgrade, in this order"
    else:
        yield "nothing is known to be old"
