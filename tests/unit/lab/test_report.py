from __future__ import annotations

from pathlib import Path

import pytest

from berth.lab.home import Home
from berth.lab.kubernetes_plugin import Plugin
from berth.lab.plugins.gcp.store import Record, Store
from berth.lab.report import resources, show


def test_what_is_in_the_simulated_cloud_is_counted_by_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = Home(tmp_path)
    assert resources(home) == {}
    show([], resources(home), Plugin(None))
    assert "simulated cloud: 0 resources\n" in capsys.readouterr().out
    store = Store(home.cloud)
    for path in (
        "projects/prod/global/networks/a",
        "projects/prod/regions/r/routers/a",
        "projects/dev/global/networks/a",
    ):
        store.put(Record(path, {}))
    assert resources(home) == {"prod": 2, "dev": 1}
    show([], resources(home), Plugin(None))
    out = " ".join(capsys.readouterr().out.split())
    assert "simulated cloud: 3 resources (1 in project dev, 2 in project prod)" in out
