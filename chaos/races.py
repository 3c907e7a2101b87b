"""Two updates at once: one writes, the other one says why it does not."""

import random
import re
import time
from collections.abc import Sequence

from berth.components.core.manifest import FIELD_MANAGER
from chaos.case import Outcome, Part, crashes, strays
from chaos.fleet import ENV, OWN, Command, Ended, Fleet, environment

_LONGEST_SECONDS = 240.0
_LATEST = 3.0
_LOCKED = re.compile(r"currently locked by|update is already in progress|conflict: Another update")
# The last one is that of an update which begins once the environment has ended.
_OTHERS = re.compile(
    r"conflict|another stack|belongs to|already exists|field manager|environment '\w+' has '\w+'"
    r" among its own",
    re.IGNORECASE,
)


class Races(Part):
    """Two updates at once."""

    name = "races"
    title = (
        "two `pulumi up` at once: of the same stack; and of the environment with an entry for an"
        " engineer, and that engineer's own stack"
    )
    good = "at most one of them writes to a berth, and the other one names the lock or the owner"
    cases = 100

    def prepare(self, fleet: Fleet) -> None:
        """Begin with the engineer's berth."""
        fleet.project.write(OWN, engineer={"environment": ENV})
        fleet.project.up(OWN)

    def run(self, fleet: Fleet, number: int, chance: random.Random) -> Outcome:
        """Run one race."""
        return (
            _same_stack(fleet, number, chance)
            if number % 2 == 0
            else _two_stacks(fleet, number, chance)
        )


def _up(fleet: Fleet, mark: str, stack: str) -> Command:
    return fleet.start(mark, "pulumi", "up", "-s", stack, "--yes", "--skip-preview")


def _both(fleet: Fleet, mark: str, stacks: tuple[str, str], later: float) -> list[Ended]:
    first = _up(fleet, mark, stacks[0])
    time.sleep(later)
    second = _up(fleet, mark, stacks[1])
    ended = []
    for command in (first, second):
        end = command.end(_LONGEST_SECONDS)
        if end is None:
            command.process.kill()
            end = Ended(-9, "", "hung", _LONGEST_SECONDS)
        ended.append(end)
    return ended


def _same_stack(fleet: Fleet, number: int, chance: random.Random) -> Outcome:
    later = chance.uniform(0.0, _LATEST)
    fleet.project.write(
        OWN, engineer={"environment": ENV, "worker": {"memory": f"{2 + number // 2 % 3}Gi"}}
    )
    mark = f"races-{number}-{time.monotonic_ns()}"
    ended = _both(fleet, mark, (OWN, OWN), later)
    done = [end for end in ended if end.code == 0]
    problems = _problems_of_two(ended)
    if locks := fleet.locks(OWN):
        problems.append(f"locks left: {', '.join(path.name for path in locks)}")
        fleet.unlock(OWN)
    repeated = fleet.run(
        mark, "pulumi", "up", "-s", OWN, "--yes", "--skip-preview", "--expect-no-changes"
    )
    if done and repeated.code != 0:
        problems.append(
            f"the state does not agree with the settings: {repeated.text.strip()[-600:]}"
        )
    facts = {"codes": [end.code for end in ended], "wrote": len(done)}
    what = f"two updates of {OWN}, {later:.2f} s apart"
    return Outcome("same stack", what, [*problems, *strays(mark)], facts)


def _problems_of_two(ended: Sequence[Ended]) -> list[str]:
    """Return what is wrong with two updates of one stack: one has to name the other's lock."""
    problems: list[str] = []
    for end in ended:
        problems += crashes(end)
    without_a_lock = [end for end in ended if end.code != 0 and not _LOCKED.search(end.text)]
    if without_a_lock and all(end.code != 0 for end in ended):
        texts = [end.text.strip()[-400:] for end in ended]
        problems.append(f"nobody writes, without a lock: {texts}")
    for end in without_a_lock:
        problems.append(f"exit code {end.code}, and no lock is named: {end.text.strip()[-600:]}")
    return problems


def _two_stacks(fleet: Fleet, number: int, chance: random.Random) -> Outcome:
    later = chance.uniform(0.0, _LATEST)
    order = chance.choice([(ENV, OWN), (OWN, ENV)])
    fleet.project.destroy(OWN)
    fleet.project.write(OWN, engineer={"environment": ENV})
    both = environment(fleet.kubeconfig, fleet.lab.home.charts, ("bob", OWN))
    fleet.project.write(ENV, environment=both)
    mark = f"races-{number}-{time.monotonic_ns()}"
    ended = _both(fleet, mark, order, later)
    problems = [problem for end in ended for problem in crashes(end)]
    writers = {
        item["metadata"].get("annotations", {}).get(FIELD_MANAGER, "")
        for item in fleet.lab.get(
            "namespaces,rayclusters,resourcequotas,networkpolicies,limitranges", "-A"
        )["items"]
        if f"berth-{OWN}" in (item["metadata"]["name"], item["metadata"].get("namespace"))
    }
    if len(writers) > 1:
        problems.append(f"two writers: {sorted(writers)}")
    failed = [end for end in ended if end.code != 0]
    if not failed:
        problems.append("both succeed, with one berth")
    problems += [
        f"exit code {end.code}, and no owner is named: {end.text.strip()[-600:]}"
        for end in failed
        if not _OTHERS.search(end.text)
    ]
    fleet.project.write(ENV, environment=environment(fleet.kubeconfig, fleet.lab.home.charts))
    for stack in (ENV, OWN):
        repaired = fleet.run(mark, "pulumi", "up", "-s", stack, "--yes", "--skip-preview")
        if repaired.code != 0:
            problems.append(
                f"without the second entry, {stack} exits with {repaired.code}:"
                f" {repaired.text[-600:]}"
            )
    facts = {"codes": [end.code for end in ended], "writers": sorted(writers)}
    what = f"{order[0]}, and {order[1]} {later:.2f} s later, both with {OWN}"
    return Outcome("environment and engineer", what, [*problems, *strays(mark)], facts)
