"""The benchmark: its runs, the bars of their figures, the file with all runs, and the bucket."""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from bench import bucket
from bench.__main__ import SIZES, chosen
from bench.bars import BASE, RELEASED, STATE, measured
from bench.figures import Run, merge
from bench.parts import PARTS


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


def test_runs_are_collected_by_part_and_number_of_engineers(tmp_path: Path) -> None:
    file = tmp_path / "build" / "bench.json"
    for size, seconds in ((100, 1.0), (3, 2.0), (100, 3.0)):
        merge(file, "environment", size, document(up=seconds))
    merge(file, "check", 1000, document(up=4.0))
    parts = json.loads(file.read_text())
    assert {
        part: [(size, run["seconds"]["up"]) for size, run in runs.items()]
        for part, runs in parts.items()
    } == {"environment": [("3", 2.0), ("100", 3.0)], "check": [("1000", 4.0)]}


def test_parts_and_sizes_can_be_chosen() -> None:
    assert chosen(["check"], [], short=False) == [("check", 1000)]
    assert chosen(["stacks"], [10, 1], short=False) == [("stacks", 1), ("stacks", 10)]
    assert {part for part, _ in chosen([], [], short=False)} == set(SIZES)
    assert {part for part, _ in [*chosen([], [], short=True), *chosen([], [], short=False)]} == set(
        PARTS
    )


def test_the_bucket_keeps_copies_lists_and_deletes_objects() -> None:
    with bucket.served(delay=0) as state:
        base = state.url.partition("endpoint=")[2].partition("&")[0] + f"/{bucket.BUCKET}"

        def ask(path: str, method: str = "GET", data: bytes = b"", **headers: str) -> str:
            named = {name.replace("_", "-"): value for name, value in headers.items()}
            request = urllib.request.Request(  # noqa: S310 - loopback
                f"{base}{path}", data or None, named, method=method
            )
            with urllib.request.urlopen(request) as answer:  # noqa: S310 - loopback
                return str(answer.read().decode())

        ask("/.pulumi/stacks/a.json", "PUT", b"one")
        chunks = b"3;chunk-signature=x\r\ntwo\r\n0;chunk-signature=x\r\n"
        ask("/.pulumi/meta.yaml", "PUT", chunks, Content_Encoding="aws-chunked")
        ask("/.pulumi/b.json", "PUT", x_amz_copy_source=f"{bucket.BUCKET}/.pulumi/stacks/a.json")
        names = ("stacks/a.json", "meta.yaml", "b.json")
        assert [ask(f"/.pulumi/{name}") for name in names] == ["one", "two", "one"]
        listed = ask("?list-type=2&prefix=.pulumi/&delimiter=/")
        assert "<Prefix>.pulumi/stacks/</Prefix>" in listed
        assert "<Key>.pulumi/meta.yaml</Key>" in listed
        assert "a.json" not in listed
        ask("/.pulumi/b.json", "DELETE")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask("/.pulumi/b.json")
        assert state.calls == 9
