"""A sharing mode is a file, a member of a union and the generated schema."""

import json

from tests.unit.adding.copy import Copy, file, listed

MODES = "components/sharing/modes/__init__.py"
SCHEMA = "stacks/schema.json"

MODE = file("sharing_mode_mode.py.txt")

STACK = file("sharing_mode_stack.yaml.txt")

# A pool of the mode in status, in a preview of an edit, and on the lab's simulated node.
ASK = file("sharing_mode_ask.py.txt")


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

    tree.stack("two", STACK.format(worker="{gpus: 2}"))
    tree.stack("fake", STACK.format(worker="{gpuMemory: 60Gi}"))
    checked = " ".join(tree.run("check", "two", "fake", code=2).split())
    assert "✗ two stacks/Pulumi.two.yaml:10: environment.engineers.alice" in checked
    assert "whose profile refuses more than one a pod (it is a test's)" in checked
    assert "✓ fake (environment" in checked
    assert "is 45Gi; fake-sharing isolates nothing" in checked

    known = json.loads(tree.python("-c", ASK))
    assert known["status"] == ["fake × 4", "1 × a4-highgpu-8g with 8 GPUs, each shared by 4"]
    assert known["offered"] == known["served"] == {"nvidia.com/gpu.shared": 32}
    assert set(known["labels"].values()) == {True}, known["labels"]
    (effect,) = known["effects"]
    assert effect.startswith(
        "pool dev: sharing profile 'any' changes; the device plugin restarts on its nodes"
    )
