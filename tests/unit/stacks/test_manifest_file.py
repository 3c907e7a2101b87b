"""Files of Kubernetes objects: what is read, and what is wrong with them, with file and line."""

from pathlib import Path

import pytest

from berth.components.core.errors import BadInputError
from berth.stacks.files.manifest_file import read_manifests

GOOD = """\
---
# nothing in this document
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: dranet, namespace: kube-system}
---
apiVersion: apps/v1
kind: DaemonSet
metadata:
  name: dranet
  namespace: kube-system
spec:
  template: {spec: {hostNetwork: true}}
---
"""


def written(folder: Path, text: str) -> Path:
    path = folder / "install.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def test_objects_come_in_the_order_of_the_file(tmp_path: Path) -> None:
    assert [
        (document["kind"], document["metadata"]["name"])
        for document in read_manifests(written(tmp_path, GOOD))
    ] == [
        ("ServiceAccount", "dranet"),
        ("DaemonSet", "dranet"),
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: b: c\n", "install.yaml:1: this is not YAML: mapping values are not allowed here"),
        (GOOD + "kind: [\n", "install.yaml:17: this is not YAML: "),
        (
            "just text\n",
            (
                "install.yaml:1: this document is not a Kubernetes object, which is a mapping with"
                " apiVersion, kind and"
            ),
        ),
        (
            GOOD + "kind: Service\n",
            (
                "install.yaml:16: this document is not a Kubernetes object: it lacks apiVersion,"
                " metadata.name"
            ),
        ),
        (
            "apiVersion: v1\nkind: List\nitems: []\n",
            "install.yaml:1: this document is not a Kubernetes object: it lacks metadata.name",
        ),
        (GOOD + GOOD, "install.yaml:19: ServiceAccount dranet is in line 4 already; take one out"),
        (
            "\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: x}\nspec: {}\n",
            "install.yaml:2: this DaemonSet lacks spec.template.spec",
        ),
        ("---\n# nothing\n", "install.yaml has no object in it"),
        ("a: \x07\n", "install.yaml: this is not YAML: "),
    ],
)
def test_what_is_wrong_is_said_with_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInputError) as caught:
        read_manifests(written(tmp_path, text))
    assert message in str(caught.value)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(
        BadInputError, match=r"there is no file .*; paths count from the project's folder"
    ):
        read_manifests(tmp_path / "install.yaml")
    with pytest.raises(BadInputError, match="cannot be read"):
        read_manifests(tmp_path)
