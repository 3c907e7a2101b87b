"""An operator is a file, its entry in the registry and the generated schema."""

import json

from tests.unit.adding.copy import Copy, file, listed

REGISTRY = "components/operators/settings.py"
SCHEMA = "stacks/schema.json"

OPERATOR = file("operator_operator.py.txt")

STACK = file("operator_stack.yaml.txt")

# Registrations of the operators, in their order, and effects of an upgrade.
ASK = file("operator_ask.py.txt")


def test_an_operator_is_the_files_that_the_page_names(tree: Copy) -> None:
    tree.add("components/operators/fake.py", OPERATOR)
    tree.replace(
        REGISTRY,
        "from berth.components.operators.gib import Gib, GibSettings\n",
        "from berth.components.operators.fake import Fake, FakeSettings\n"
        "from berth.components.operators.gib import Gib, GibSettings\n",
    )
    tree.replace(REGISTRY, "    KubeRay,\n    Driver", "    KubeRay,\n    Fake,\n    Driver")
    tree.replace(
        REGISTRY,
        'Field(examples=[{"source": "present"}])] = GibSettings()\n',
        'Field(examples=[{"source": "present"}])] = GibSettings()\n    fake: FakeSettings ='
        " FakeSettings()\n",
    )
    (tree.root / SCHEMA).write_text(tree.run("schema"), encoding="utf-8")
    tree.touched.add(SCHEMA)
    assert '"fake": {' in (tree.root / SCHEMA).read_text(encoding="utf-8")
    assert tree.touched == listed("Add an operator")

    claimed = ", gpuAllocation: dra"
    tree.stack("ignored", STACK.format(given="{version: 1.0.1}", pool=""))
    tree.stack("present", STACK.format(given="{source: present, version: 1.0.1}", pool=claimed))
    tree.stack("fake", STACK.format(given="{version: 1.0.1}", pool=claimed))
    checked = " ".join(tree.run("check", "ignored", "present", "fake", code=2).split())
    assert (
        "environment.operators.fake: would be ignored, since no pool has `gpuAllocation: dra`"
        in checked
    )
    assert "environment.operators.fake.version: belongs to `source: chart`" in checked
    assert "✓ fake (environment" in checked

    registered, effects, title = json.loads(
        tree.python("-c", ASK).partition("found")[2].splitlines()[0]
    )
    components = [kind for kind, _, _ in registered if kind.startswith("berth:operators:")]
    assert components.index("berth:operators:DraNet") < components.index("berth:operators:Fake")
    assert ["kubernetes:helm.sh/v3:Release", "fake-operator", {"fake": True}] in registered
    assert (effects, title) == (["the fake operator restarts"], "fake operator")
