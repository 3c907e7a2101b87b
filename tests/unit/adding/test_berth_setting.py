"""A setting on a berth is a field, its use in a manifest and the generated schema, as
CONTRIBUTING.md names.
"""

import json

from tests.unit.adding.copy import Copy, file, listed

SETTINGS = "components/ray/settings.py"
MANIFEST = "components/ray/pods.py"
SCHEMA = "stacks/schema.json"

FIELD = '''    fake_setting: Literal["calm", "bold"] = "calm"
    """Mood of the worker, which its pods have as a variable."""
'''
VARIABLES = "references_of(settings.secrets) | role.env"
FAKE = '({"FAKE_SETTING": role.fake_setting} if isinstance(role, WorkerGroup) else {})'

STACK = file("berth_setting_stack.yaml.txt")

# Manifests of two berths, and the effect of an edit of the default, from the objects that berth
# registers.
ASK = file("berth_setting_ask.py.txt")


def test_a_setting_on_a_berth_is_what_the_page_names(tree: Copy) -> None:
    tree.replace(SETTINGS, "    ray_resources: Annotated", f"{FIELD}    ray_resources: Annotated")
    tree.replace(MANIFEST, VARIABLES, f"{VARIABLES} | {FAKE}")
    (tree.root / SCHEMA).write_text(tree.run("schema"), encoding="utf-8")
    tree.touched.add(SCHEMA)
    schema = json.loads((tree.root / SCHEMA).read_text(encoding="utf-8"))
    field = schema["$defs"]["WorkerShape"]["properties"]["fakeSetting"]
    assert (field["default"], field["enum"]) == ("calm", ["calm", "bold"])
    assert field["description"] == "Mood of the worker, which its pods have as a variable."

    tree.stack("calm", STACK.format(default="calm", own="calm"))
    tree.stack("bold", STACK.format(default="bold", own="calm"))
    tree.stack("wrong", STACK.format(default="calm", own="loud"))
    checked = tree.run("check", "calm", "bold", "wrong", code=2)
    assert ("✓ calm (environment" in checked, "✓ bold (environment" in checked) == (True, True)
    assert (
        "Pulumi.wrong.yaml:13: environment.engineers.bob.worker.fakeSetting: 'loud' is not one of"
        in checked
    )

    known = json.loads(tree.python("-c", ASK))
    assert known["values"] == {
        "alice": {"worker": ["bold"], "head": []},
        "bob": {"worker": ["calm"], "head": []},
    }
    (effect,) = known["effects"].pop("alice")
    assert effect.startswith("berth alice restarts: KubeRay")
    assert known["effects"] == {}
    assert tree.touched == listed("Add a setting on a berth")
