"""A machine type is rows of one table and the generated schema, which CONTRIBUTING.md
names.
"""

import json

from tests.unit.adding.copy import Copy, file, listed

TABLE = "components/hardware/machines.yaml"
SCHEMA = "stacks/schema.json"

GPU = file("machine_type_gpu.yaml.txt")
SERIES = file("machine_type_series.yaml.txt")

STACK = file("machine_type_stack.yaml.txt")

# A pool of it in a preview and in the simulated Google, from the arguments that berth registers.
ASK = file("machine_type_ask.py.txt")


def test_a_machine_type_is_rows_of_the_files_that_the_page_names(tree: Copy) -> None:
    tree.insert_after(TABLE, r"^gpus:", GPU)
    tree.insert_after(TABLE, r"^series:", SERIES)
    (tree.root / SCHEMA).write_text(tree.run("schema"), encoding="utf-8")
    tree.touched.add(SCHEMA)
    assert '"x9-test-8g"' in (tree.root / SCHEMA).read_text(encoding="utf-8")

    tree.stack("new", STACK.format(version="1.36.1-gke.1000"))
    tree.stack("x9", STACK.format(version="1.35"))
    checked = tree.run("check", "new", "x9", code=2)
    assert "✓ new (environment" in checked
    assert "series X9 with its driver R600 (pool 'train') needs 1.36.1-gke.1000" in checked

    known = json.loads(tree.python("-c", ASK))
    assert known["hours"] == [["X9", 2 * 8 * 24, 2 * 8 * 24]]
    assert known["labels"]["cloud.google.com/gke-accelerator"] == "nvidia-x9"
    assert known["labels"]["cloud.google.com/gke-accelerator-count"] == "8"
    assert known["labels"]["cloud.google.com/machine-family"] == "x9"
    assert known["taints"] == [
        {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    ]
    assert (known["cpu"], known["nics"]) == ("256", 8)
    assert known["quotas"] == {"NVIDIA_X9_GPUS": 8}
    assert tree.touched == listed("Add a machine type")
