"""The benchmark's figures: goals, the file with all runs, the profile, the bucket, the page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bench import released
from bench.figures import Run, merge, missed
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


def test_the_short_benchmark_compares_ratios_with_the_last_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(released, "FILE", tmp_path / "released.json")
    released.FILE.write_text(json.dumps({"up": 2.0, "state kB a berth": 12.0}))
    assert released.slower([document(up=25.0)]) == []
    assert released.slower([document(up=27.0)]) == ["up / empty program: 2.7, 2 in the last release"]


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
