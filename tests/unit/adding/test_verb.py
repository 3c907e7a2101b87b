"""A verb is one file, which CONTRIBUTING.md names."""

import json

from tests.unit.adding.copy import Copy, file, listed

FAKE = file("verb_fake.py.txt")


def test_a_verb_is_the_file_that_the_page_names(tree: Copy) -> None:
    tree.add("cli/verbs/fake.py", FAKE)
    verbs = tree.run("--help")
    assert "Pretend something about a stack." in verbs
    assert [
        verb for verb in ("check", "engineer", "lab", "verify") if f" {verb} " not in verbs
    ] == []
    assert "Exit code 3, always." in tree.run("fake", "--help")
    assert json.loads(tree.run("fake", "-s", "dev", "--json", code=3)) == {"stack": "dev"}
    assert tree.run("fake", "-s", "nowhere", code=2) == "error: there is no stack 'nowhere'\n"
    assert tree.touched == listed("Add a verb")
