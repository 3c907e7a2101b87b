"""The benchmark's figures: bars, the file with all runs, the picture."""

import json
from typing import Any

from bench.bars import BASE, RELEASED, STATE, measured
from bench.figures import Run


def document(**seconds: float) -> dict[str, Any]:
    cpu = {BASE: 10.0, "up": seconds["up"]}
    run = Run(
        seconds=seconds | {"floor: up": 10.0, "same program: up": 10.0},
        cpu=cpu,
        facts={STATE: 12.0},
    )
    return run.document({"cores": 2, "memory": 23, "load": 0.1})


def lines(part: str, size: int, up: float) -> list[str]:
    return [
        f"{'' if found.good else '✗ '}{found}" for found in measured(part, size, document(up=up))
    ]


def test_a_bar_is_missed_only_beyond_its_limit_and_holds_for_its_number_of_engineers() -> None:
    assert lines("environment", 100, 30.0) == ["up / floor: up: 3 × (bar: ≤ 3)"]
    assert lines("environment", 100, 30.1) == ["✗ up / floor: up: 3.01 × (bar: ≤ 3)"]
    assert lines("environment", 10, 11.4) == ["up / same program: up: 1.14 × (bar: ≤ 1.15)"]
    assert lines("environment", 300, 99.0) == []
    assert lines("unknown", 10, 1.0) == []


def test_the_short_benchmark_is_compared_with_the_last_release() -> None:
    limit = 1.3 * json.loads(RELEASED.read_text(encoding="utf-8"))["up"]
    for more, good in ((0.99, True), (1.01, False)):
        up, state = measured("short", 3, document(up=10 * limit * more))
        assert (up.what, up.good, state.good) == (f"CPU of up / {BASE}", good, True)
