"""Sizes of pools, judged request by request: the number of nodes in each zone, then the zones."""

from collections.abc import Iterator
from itertools import chain, combinations, product

from berth.components.plan.effect import Level
from tests.unit.components.plan.plans import POOL, Inputs, effects, event, pool

ZONES = ("a", "b", "c")
GPUS = 8


def sizes() -> Iterator[dict[str, int]]:
    """Every size of a pool with one to three nodes in each of one to three zones."""
    chosen = chain.from_iterable(combinations(ZONES, count) for count in (1, 2, 3))
    for zones, count in product(chosen, (1, 2, 3)):
        yield dict.fromkeys(zones, count)


def between(old: dict[str, int], new: dict[str, int]) -> dict[str, int]:
    """The size after the provider's first request: the new number in the old zones."""
    return dict.fromkeys(old, next(iter(new.values())))


def of_size(size: dict[str, int]) -> Inputs:
    return pool() | {"nodeCount": next(iter(size.values())), "nodeLocations": [*size]}


def test_nodes_that_go_on_the_way_are_counted_and_what_stands_for_a_moment_is_said() -> None:
    for old, new in product(sizes(), sizes()):
        if old == new:
            continue
        found = effects(event("update", POOL, "train", of_size(old), of_size(new)))
        moment = between(old, new)
        kept = sum(min(old[zone], moment[zone]) for zone in old if zone in new)
        lost = sum(old.values()) - kept
        away = [gone.gpus for effect in found for gone in effect.gpus_away]
        assert sum(most for _, most in away) == lost * GPUS, (old, new)
        assert any(effect.level > Level.HARMLESS for effect in found) is (lost > 0), (old, new)
        most = max(sum(old.values()), sum(new.values()))
        said = any("for a moment it has" in effect.text for effect in found)
        assert said is (sum(moment.values()) > most), (old, new)
