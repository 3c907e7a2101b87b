"""A machine type is rows of one table and the generated schema, which docs/contributing.md
names.
"""

from __future__ import annotations

import json

from tests.unit.adding.copy import Copy, listed

TABLE, SCHEMA = "components/hardware/machines.py", "stacks/schema.json"

GPU_AND_SERIES = """X9_GPU = Gpu(
    "nvidia-x9", "X9", "NVIDIA_X9", 200, "NVIDIA X9", 204000, "Xenon", (11, 0), 600, (12, 8), {"7g.200gb": 1}, _GPU
)
X9 = Series(
    "X9",
    ("hyperdisk-balanced",),
    _sources(_ACCELERATED),
    gpu_network="roce",
    gpu_nics=8,
    gpu_nic_gbps=800,
    other_nics=2,
    nccl=NcclProfile("x9", "tuner_config_x9.txtpb", _ACCELERATED),
    gke_since="1.36.1-gke.1000",
)
"""
MACHINE = '    Machine("x9-test-8g", X9, 256, 4096, 8, X9_GPU, local_ssds=16),\n'

STACK = """config:
  berth:environment:
    project: some-project
    zone: us-central1-b
    cluster: {{version: "{version}"}}
    pools:
      cpu: {{machineType: n2-standard-16, nodes: 1}}
      train: {{machineType: x9-test-8g, nodes: 2, rdma: managed}}
    clusters:
      train: {{}}
"""

# A pool of it in a preview and in the simulated Google, from the arguments that berth registers.
ASK = """
import json
import pathlib
import sys
from pydantic.alias_generators import to_camel
from berth.components.gke import GkeSettings, NodePlace
from berth.components.gke.node_pool_arguments import node_pool_arguments
from berth.components.plan.fleet import PlannedFleet, planned_pool
from berth.components.plan.plan import State
from berth.lab.plugins.gcp.interfaces import interfaces
from berth.lab.plugins.gcp.nodes import manifest
from berth.lab.plugins.gcp.pools import Pool
from berth.lab.plugins.gcp.store import Record, Store
from berth.lab.plugins.gcp.supply import metrics
from berth.stacks.preview.cost import gpu_hours

ZONE = "us-central1-b"

def camel(value):
    if isinstance(value, dict):
        return {key if "/" in key or "." in key else to_camel(key): camel(inner) for key, inner in value.items()}
    return [camel(inner) for inner in value] if isinstance(value, list) else value

pool = {"machineType": "x9-test-8g", "nodes": 2, "rdma": "managed"}
loaded = GkeSettings.model_validate({"project": "some-project", "zone": ZONE, "pools": {"train": pool}})
settings, place = loaded.pools["train"], NodePlace("some-project", "fleet", ZONE, [ZONE])
inputs = camel(node_pool_arguments(settings, place)) | {"name": "train", "cluster": "fleet"}
fleet = PlannedFleet("some", {}, {"train": planned_pool(State(inputs, {}, ""), None)})
path = f"projects/some-project/locations/{ZONE}/clusters/fleet/nodePools/train"
record = Record(path, inputs, {"instances": {ZONE: [0, 1]}})
node = manifest(record, ZONE, 0, "v1.36.3")
print(json.dumps({
    "hours": [[found.product, *found.after] for found in gpu_hours(fleet)],
    "labels": node["metadata"]["labels"],
    "taints": node["spec"]["taints"],
    "cpu": node["status"]["capacity"]["cpu"],
    "nics": len([card for card in interfaces(Store(pathlib.Path("cloud")), record) if card.rdma]),
    "quotas": metrics(Pool(inputs)),
}))
"""


def test_a_machine_type_is_rows_of_the_files_that_the_page_names(tree: Copy) -> None:
    tree.insert_after(TABLE, r"^G2 = Series", GPU_AND_SERIES)
    tree.insert_after(TABLE, r'^    Machine\("g2-standard-96"', MACHINE)
    (tree.root / SCHEMA).write_text(tree.run("schema"), encoding="utf-8")
    tree.touched.add(SCHEMA)
    assert '"x9-test-8g"' in (tree.root / SCHEMA).read_text(encoding="utf-8")

    tree.stack("x9", STACK.format(version="1.36.1-gke.1000"))
    assert "x9" in tree.run("check", "x9")
    tree.stack("x9", STACK.format(version="1.35"))
    refused = tree.run("check", "x9", code=2)
    assert "series X9 with its driver R600 (pool 'train') needs 1.36.1-gke.1000" in refused

    known = json.loads(tree.python("-c", ASK))
    assert known["hours"] == [["X9", 2 * 8 * 24, 2 * 8 * 24]]
    assert known["labels"]["cloud.google.com/gke-accelerator"] == "nvidia-x9"
    assert known["labels"]["cloud.google.com/gke-accelerator-count"] == "8"
    assert known["labels"]["cloud.google.com/machine-family"] == "x9"
    assert known["taints"] == [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}]
    assert (known["cpu"], known["nics"]) == ("256", 8)
    assert known["quotas"] == {"NVIDIA_X9_GPUS": 8}
    assert tree.touched == listed("Add a machine type")
