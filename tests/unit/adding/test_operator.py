"""An operator is a file, its entry in the registry and the generated schema."""

from __future__ import annotations

import json

from tests.unit.adding.copy import Copy, listed

REGISTRY, SCHEMA = "components/operators/settings.py", "stacks/schema.json"

OPERATOR = '''"""An operator of a test, which pools with claimed GPUs need."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, Literal

from berth.components.core.types import Name
from berth.components.gke import PoolSettings
from berth.components.operators.dranet import DraNet
from berth.components.operators.operator import (
    ChartName,
    ChartSettings,
    Operator,
    Part,
    Repository,
    namespace_of,
)


class FakeSettings(ChartSettings):
    """The operator of a test."""

    source: Literal["chart", "present"] = "chart"
    """`chart`: berth installs it. `present`: it is there already."""
    chart: ChartName = "oci://charts.example/fake-operator"
    repository: Repository = None
    version: str = "1.0.0"
    """Version of the chart."""
    namespace: Name = "fake"
    """Namespace that the operator runs in."""


class Fake(Operator[FakeSettings]):
    """The operator by its chart."""

    title: ClassVar[str] = "fake operator"
    release: ClassVar[str] = "fake-operator"
    setting: ClassVar[str] = "fake"
    needs: ClassVar[tuple[type[Operator[Any]], ...]] = (DraNet,)
    pool_setting: ClassVar[str] = "`gpuAllocation: dra`"
    when_removed: ClassVar[str] = "the fake operator is removed{again}"
    when_changed: ClassVar[str] = "the fake operator restarts"

    @classmethod
    def serves(cls, pool: PoolSettings) -> bool:
        """Return whether a pool needs the operator."""
        return pool.by_dra

    def parts(self, name: str) -> Iterator[Part]:
        """Yield the namespace and the chart."""
        yield namespace_of(name, self.settings.namespace)
        yield self.settings.chart_with({"fake": True})
'''

STACK = """config:
  berth:environment:
    project: berth-lab
    zone: us-central1-b
    operators: {{fake: {given}}}
    pools:
      cpu: {{machineType: n2-standard-16, nodes: 1}}
      train: {{machineType: a4-highgpu-8g, nodes: 1, capacity: spot, rdma: networks{pool}}}
"""

# Registrations of the operators, in their order, and effects of an upgrade.
ASK = """
import json
import pulumi
from berth.components.operators import Site
from berth.components.plan.fleet import PlannedFleet
from berth.components.plan.plan import Plan, Property, State, Step
from berth.components.sharing import offered
from berth.stacks.program.installed import install
from berth.stacks.load.stack import load_stack
from berth.stacks.preview.effects import effects_of
from berth.stacks.preview.words import groups_of

registered = []

class Mocks(pulumi.runtime.Mocks):
    def new_resource(self, args):
        registered.append([args.typ, args.name, args.inputs.get("values")])
        return args.name, args.inputs

    def call(self, args):
        return {}

pulumi.runtime.set_mocks(Mocks())
settings = load_stack("fake").settings

@pulumi.runtime.test
def program():
    install(settings.operators, Site(offered(settings.pools, settings.sharing)), pulumi.ResourceOptions())

program()
chart = "oci://charts.example/fake-operator"
states = [State({"chart": chart, "version": version}, {}, "component") for version in ("1", "2")]
change = Property("version", "update", "1", "2")
fake = State({}, {}, "")
component = Step("same", "component", "berth:operators:Fake", "fake-operator", False, fake, fake)
step = Step("update", "urn", "kubernetes:helm.sh/v3:Release", "fake", True, *states, (change,), False, "update")
effects = effects_of(step, PlannedFleet("fake", {}, {}))
group = groups_of(Plan([component, step]))[0]
print("found" + json.dumps([registered, [effect.text for effect in effects], group.title]))
"""


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
        'Field(examples=[{"source": "present"}])] = GibSettings()\n    fake: FakeSettings = FakeSettings()\n',
    )
    (tree.root / SCHEMA).write_text(tree.run("schema"), encoding="utf-8")
    tree.touched.add(SCHEMA)
    assert '"fake": {' in (tree.root / SCHEMA).read_text(encoding="utf-8")
    assert tree.touched == listed("Add an operator")

    tree.stack("fake", STACK.format(given="{version: 1.0.1}", pool=""))
    refused = " ".join(tree.run("check", "fake", code=2).split())
    assert "environment.operators.fake: would be ignored, since no pool has `gpuAllocation: dra`" in refused
    claimed = ", gpuAllocation: dra"
    tree.stack("fake", STACK.format(given="{source: present, version: 1.0.1}", pool=claimed))
    refused = " ".join(tree.run("check", "fake", code=2).split())
    assert "environment.operators.fake.version: belongs to `source: chart`" in refused
    tree.stack("fake", STACK.format(given="{version: 1.0.1}", pool=claimed))
    tree.run("check", "fake")

    registered, effects, title = json.loads(tree.python("-c", ASK).partition("found")[2].splitlines()[0])
    components = [kind for kind, _, _ in registered if kind.startswith("berth:operators:")]
    assert components.index("berth:operators:DraNet") < components.index("berth:operators:Fake")
    assert ["kubernetes:helm.sh/v3:Release", "fake-operator", {"fake": True}] in registered
    assert (effects, title) == (["the fake operator restarts"], "fake operator")
