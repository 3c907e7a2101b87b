"""A sharing mode is a file, a member of a union and the generated schema."""

from __future__ import annotations

import json

from tests.unit.adding.copy import Copy, listed

MODES, SCHEMA = "components/sharing/modes/__init__.py", "stacks/schema.json"

MODE = '''"""Mode `fake-sharing`: time slices that nodes always advertise under a name of their own."""

from __future__ import annotations

from typing import ClassVar, Literal

from berth.components.sharing.modes.mode import Facts
from berth.components.sharing.modes.shares import Shares


class FakeSharing(Shares):
    """Renamed time slices of a GPU."""

    kind: Literal["fake-sharing"]
    """`fake-sharing`: pods take turns, and ask for `nvidia.com/gpu.shared`."""
    rename_by_default: Literal[True] = True
    """Advertise `nvidia.com/gpu.shared`."""

    section: ClassVar[str] = "timeSlicing"
    strategy_label: ClassVar[str] = "time-slicing"
    memory_note: ClassVar[str] = "; fake-sharing isolates nothing"

    @property
    def facts(self) -> Facts:
        """Facts about the GPUs."""
        words = f"fake × {self.replicas}"
        return self.facts_of_shares(words, one_each="it is a test's", failRequestsGreaterThanOne=True)
'''

STACK = """config:
  berth:environment:
    project: berth-lab
    zone: us-central1-b
    sharing: {{any: {{kind: fake-sharing, replicas: 4}}}}
    pools:
      cpu: {{machineType: n2-standard-16, nodes: 1}}
      dev: {{machineType: a4-highgpu-8g, nodes: 1, capacity: spot, sharing: any}}
    engineers:
      alice: {{worker: {worker}}}
"""

# A pool of the mode in status, in a preview of an edit, and on the lab's simulated node.
ASK = """
import json
from berth.components.operators import GpuOperator, GpuOperatorSettings, Site
from berth.components.plan.fleet import PlannedFleet, PlannedPool
from berth.components.plan.plan import Property, State, Step
from berth.components.sharing import node_labels, offered
from berth.lab.devices import operands
from berth.lab.devices.plugin_config import parse
from berth.stacks.load.stack import load_stack
from berth.stacks.preview.effects import effects_of

def values(replicas):
    settings = load_stack("fake").settings
    profile = settings.sharing["any"].model_copy(update={"replicas": replicas})
    pools = offered(settings.pools, {"any": profile})
    return pools["dev"], GpuOperator(GpuOperatorSettings(), Site(pools)).values()

pool, sent = values(4)
_, other = values(2)
labels = node_labels(pool) | {
    "cloud.google.com/gke-accelerator": "nvidia-b200",
    "cloud.google.com/gke-accelerator-count": "8",
}
config = sent["devicePlugin"]["config"]
read = parse(config["data"][labels["nvidia.com/device-plugin.config"]])
served = operands.serve(labels, "", read, {})
found = operands.features(labels, "", read, {})
states = [State({"chart": "gpu-operator", "values": given}, {}, "") for given in (sent, other)]
change = Property("values.devicePlugin.config.name", "update", "", "")
step = Step("update", "urn", "kubernetes:helm.sh/v3:Release", "gpu-operator", True, *states, (change,))
step = Step(**{**vars(step), "engine_operation": "update"})
planned = PlannedPool("dev", "a4-highgpu-8g", (1, 1), False, 8, "B200", labels, {})
effects = effects_of(step, PlannedFleet("fake", {"dev": planned}, {"dev": planned}))
print(json.dumps({
    "status": [pool.sharing, pool.made_of],
    "offered": {pool.offer.resource: pool.offer.per_node},
    "served": dict(served.resources),
    "limited": sorted(served.single),
    "labels": {key: found[key] == value for key, value in pool.offer.labels.items()},
    "effects": [effect.text for effect in effects],
}))
"""


def test_a_sharing_mode_is_the_files_that_the_page_names(tree: Copy) -> None:
    tree.add("components/sharing/modes/fake_sharing.py", MODE)
    tree.replace(
        MODES,
        "from berth.components.sharing.modes.mig import Mig\n",
        "from berth.components.sharing.modes.fake_sharing import FakeSharing\n"
        "from berth.components.sharing.modes.mig import Mig\n",
    )
    tree.replace(MODES, "Mps | Mig\n", "Mps | Mig | FakeSharing\n")
    (tree.root / SCHEMA).write_text(tree.run("schema"), encoding="utf-8")
    tree.touched.add(SCHEMA)
    assert '"const": "fake-sharing"' in (tree.root / SCHEMA).read_text(encoding="utf-8")
    assert tree.touched == listed("Add a sharing mode")

    tree.stack("fake", STACK.format(worker="{gpus: 2}"))
    refused = tree.run("check", "fake", code=2)
    assert "whose profile refuses more than one a pod (it is a test's)" in " ".join(refused.split())
    tree.stack("fake", STACK.format(worker="{gpuMemory: 60Gi}"))
    assert "is 45Gi; fake-sharing isolates nothing" in " ".join(tree.run("check", "fake").split())

    known = json.loads(tree.python("-c", ASK))
    assert known["status"] == ["fake × 4", "1 × a4-highgpu-8g with 8 GPUs, each shared by 4"]
    assert known["offered"] == known["served"] == {"nvidia.com/gpu.shared": 32}
    assert known["limited"] == ["nvidia.com/gpu.shared"]
    assert set(known["labels"].values()) == {True}, known["labels"]
    (effect,) = known["effects"]
    assert effect.startswith("pool dev: sharing profile 'any' changes; the device plugin restarts on its nodes")
