from pathlib import Path

from berth.lab.home import LabHome
from berth.lab.plugins.gcp.store import Store, StoredRecord
from berth.lab.report import resources


def test_what_is_in_the_simulated_cloud_is_counted_by_project(tmp_path: Path) -> None:
    home = LabHome(tmp_path)
    assert resources(home) == {}
    store = Store(home.cloud)
    for path in (
        "projects/prod/global/networks/a",
        "projects/prod/regions/r/routers/a",
        "projects/dev/global/networks/a",
    ):
        store.put(StoredRecord(path, {}))
    assert resources(home) == {"prod": 2, "dev": 1}
