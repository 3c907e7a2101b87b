"""The benchmark's figures: goals, the file with all runs, the profile, the bucket, the page."""

from __future__ import annotations

import gzip
import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from bench import bucket, profile, released
from bench.__main__ import SIZES, chosen
from bench.figures import Run, merge, missed
from bench.parts import PARTS
from docs import performance
from docs.pictures import performance as picture


def document(**seconds: float) -> dict[str, Any]:
    cpu = {released.BASE: 10.0, "up": seconds["up"]}
    run = Run(seconds=seconds | {"floor: up": 10.0}, cpu=cpu, facts={released.STATE: 12.0})
    run.ratio("up / floor", "up", "floor: up", 3.0)
    run.ratio("not measured", "helm: up", "floor: up", 3.0)
    return run.document({"cores": 2, "memory": 23, "load": 0.1})


def test_a_goal_is_missed_only_beyond_its_limit() -> None:
    assert missed([document(up=30.0)]) == []
    assert missed([document(up=30.1)]) == ["up / floor: 3.01 × (goal: ≤ 3)"]


def test_runs_are_collected_by_part_and_number_of_engineers(tmp_path: Path) -> None:
    file = tmp_path / "build" / "bench.json"
    for size, seconds in ((100, 1.0), (3, 2.0), (100, 3.0)):
        merge(file, "environment", size, document(up=seconds))
    merge(file, "check", 1000, document(up=4.0))
    found = json.loads(file.read_text())
    assert {part: {size: run["seconds"]["up"] for size, run in runs.items()} for part, runs in found.items()} == {
        "environment": {"3": 2.0, "100": 3.0},
        "check": {"1000": 4.0},
    }
    assert list(found["environment"]) == ["3", "100"]


def test_parts_and_sizes_can_be_chosen() -> None:
    assert chosen(["check"], [], short=False) == [("check", 1000)]
    assert chosen(["stacks"], [10, 1], short=False) == [("stacks", 1), ("stacks", 10)]
    assert {part for part, _ in chosen([], [], short=False)} == set(SIZES)
    assert {part for part, _ in chosen([], [], short=True)} < set(PARTS)


def test_the_short_benchmark_compares_ratios_with_the_last_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(released, "FILE", tmp_path / "released.json")
    released.FILE.write_text(json.dumps({"up": 2.0, "state kB a berth": 12.0}))
    assert released.slower([document(up=25.0)]) == []
    assert released.slower([document(up=27.0)]) == ["up / empty program: 2.7, 2 in the last release"]


def test_the_recorded_ratios_are_of_figures_that_the_short_benchmark_has() -> None:
    assert set(json.loads(released.FILE.read_text())) == {"up", "no-op", "one more", "state kB a berth"}


def varint(value: int) -> bytes:
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)


def message(number: int, *values: bytes | int) -> bytes:
    content = b"".join(varint(value) if isinstance(value, int) else value for value in values)
    return varint(number << 3 | 2) + varint(len(content)) + content


def integer(number: int, value: int) -> bytes:
    return varint(number << 3) + varint(value)


def test_a_profile_is_summed_up_by_what_the_engine_did(tmp_path: Path) -> None:
    """The file is written here by the format's definition; samples are of two functions."""
    texts = [b"", b"main.run", b"github.com/pulumi/pulumi/pkg/v3/backend.(*SnapshotManager).saveSnapshot"]
    data = b"".join(
        [
            message(2, message(1, 1, 2), message(2, 1, 300)),
            message(2, message(1, 2), message(2, 1, 100)),
            message(4, integer(1, 1), message(4, integer(1, 1))),
            message(4, integer(1, 2), message(4, integer(1, 2))),
            message(5, integer(1, 1), integer(2, 2)),
            message(5, integer(1, 2), integer(2, 1)),
            *(message(6, text) for text in texts),
        ]
    )
    path = tmp_path / "profile.1.cpu"
    path.write_bytes(gzip.compress(data))
    assert profile.shares(path) == {"saving snapshots": 0.75, profile.OTHER: 0.25}
    path.write_bytes(b"")
    assert profile.shares(path) == {}


def test_the_bucket_keeps_and_lists_objects() -> None:
    with bucket.served(delay=0) as state:
        base = state.url.partition("endpoint=")[2].partition("&")[0] + f"/{bucket.BUCKET}"

        def ask(
            path: str, method: str = "GET", data: bytes | None = None, header: tuple[str, str] = ("A", "b")
        ) -> bytes:
            request = urllib.request.Request(f"{base}{path}", data, dict([header]), method=method)  # noqa: S310 - loopback
            with urllib.request.urlopen(request) as answer:  # noqa: S310 - loopback
                return bytes(answer.read())

        ask("/.pulumi/stacks/a.json", "PUT", b"one")
        ask(
            "/.pulumi/meta.yaml",
            "PUT",
            b"3;chunk-signature=x\r\ntwo\r\n0;chunk-signature=x\r\n",
            ("Content-Encoding", "aws-chunked"),
        )
        ask("/.pulumi/b.json", "PUT", header=("x-amz-copy-source", f"{bucket.BUCKET}/.pulumi/stacks/a.json"))
        assert [ask(f"/.pulumi/{name}") for name in ("stacks/a.json", "meta.yaml", "b.json")] == [
            b"one",
            b"two",
            b"one",
        ]
        listed = ask("?list-type=2&prefix=.pulumi/&delimiter=/").decode()
        assert "<Prefix>.pulumi/stacks/</Prefix>" in listed
        assert "<Key>.pulumi/meta.yaml</Key>" in listed
        assert "a.json" not in listed
        ask("/.pulumi/b.json", "DELETE")
        with pytest.raises(urllib.error.HTTPError, match="404"):
            ask("/.pulumi/b.json")
        assert state.calls == 9


def test_the_page_has_the_goals_and_the_picture_the_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(picture, "FIGURES", tmp_path / "performance.json")
    assert "No run is recorded yet" in performance.page()
    for size, seconds in ((1, 5.0), (100, 45.0)):
        merge(picture.FIGURES, "environment", size, document(up=seconds))
    text = performance.page()
    assert "| `environment` | up / floor | 4.5 × | 3 × | **missed** |" in text
    assert "| up, s | 5 | 45 |" in text
    drawn = picture.draw()
    assert {"1", "100", "berth", "up, in seconds"} <= {area.what for area in drawn.texts}
    assert [text.what for text in drawn.texts for line in drawn.lines if text.meets(line)] == []
