"""A setting on a berth is a field, its use in a manifest and the generated schema, as
docs/contributing.md names.
"""

from __future__ import annotations

import json

from tests.unit.adding.copy import Copy, listed

SETTINGS, MANIFEST, SCHEMA = "components/ray/settings.py", "components/ray/manifest.py", "stacks/schema.json"

FIELD = '''    fake_setting: Literal["calm", "bold"] = "calm"
    """Mood of the worker, which its pods have as a variable."""
'''
USE = 'env={**group.env, "FAKE_SETTING": group.fake_setting},'

STACK = """config:
  berth:environment:
    project: some-project
    zone: us-central1-b
    pools:
      cpu: {{machineType: n2-standard-16, nodes: 1}}
      dev: {{machineType: a4-highgpu-8g, nodes: 1, capacity: spot}}
    defaults: {{worker: {{fakeSetting: {default}}}}}
    engineers:
      alice: {{}}
      bob:
        worker:
          fakeSetting: {own}
"""

# Manifests of two berths, and the effect of an edit of the default, from the objects that berth
# registers.
ASK = """
import json
import pathlib
import yaml
from berth.components.plan.fleet import PlannedFleet, occupant_of
from berth.components.plan.paths import differing
from berth.components.plan.plan import Property, State, Step
from berth.components.ray.effects import of_ray_cluster
from berth.stacks.load.stack import load

def manifests(stack):
    config = yaml.safe_load(pathlib.Path(f"stacks/Pulumi.{stack}.yaml").read_text())["config"]
    environment = load("lab", {"environment": config["berth:environment"]}, None)
    return {berth.settings.name: berth.manifests.main for berth in environment.berths}

def values(manifest):
    (group,) = manifest["spec"]["workerGroupSpecs"]
    head = manifest["spec"]["headGroupSpec"]
    pods = {"worker": group["template"], "head": head["template"]}
    env = {role: pod["spec"]["containers"][0]["env"] for role, pod in pods.items()}
    return {role: [entry["value"] for entry in found if entry["name"] == "FAKE_SETTING"] for role, found in env.items()}

def effects(old, new):
    changed = [Property(path, "update", None, None) for path in differing(old, new)]
    step = Step("update", "", "", old["metadata"]["name"], True, State(old, old, ""), State(new, new, ""), changed)
    return [effect.text for effect in of_ray_cluster(step, PlannedFleet("lab", {}, {}, [occupant_of(old)]))]

calm, bold = manifests("calm"), manifests("bold")
print(json.dumps({
    "values": {name: values(manifest) for name, manifest in bold.items()},
    "effects": {name: effects(calm[name], bold[name]) for name in calm if calm[name] != bold[name]},
}))
"""


def test_a_setting_on_a_berth_is_what_the_page_names(tree: Copy) -> None:
    tree.replace(SETTINGS, "    ray_gpus: Annotated", f"{FIELD}    ray_gpus: Annotated")
    tree.replace(MANIFEST, "env=group.env,", USE)
    (tree.root / SCHEMA).write_text(tree.run("schema"), encoding="utf-8")
    tree.touched.add(SCHEMA)
    schema = json.loads((tree.root / SCHEMA).read_text(encoding="utf-8"))
    field = schema["$defs"]["WorkerShape"]["properties"]["fakeSetting"]
    assert (field["default"], field["enum"]) == ("calm", ["calm", "bold"])
    assert field["description"] == "Mood of the worker, which its pods have as a variable."

    tree.stack("calm", STACK.format(default="calm", own="calm"))
    tree.stack("bold", STACK.format(default="bold", own="calm"))
    tree.run("check", "calm", "bold")
    tree.stack("wrong", STACK.format(default="calm", own="loud"))
    refused = tree.run("check", "wrong", code=2)
    assert "Pulumi.wrong.yaml:13: environment.engineers.bob.worker.fakeSetting: 'loud' is not one of" in refused

    known = json.loads(tree.python("-c", ASK))
    assert known["values"] == {
        "alice": {"worker": ["bold"], "head": []},
        "bob": {"worker": ["calm"], "head": []},
    }
    (effect,) = known["effects"].pop("alice")
    assert effect.startswith("berth alice restarts: KubeRay")
    assert known["effects"] == {}
    assert tree.touched == listed("Add a setting on a berth")
