"""The node that a kubelet adopts."""

from pathlib import Path

from berth.lab.plugins.gcp import real_node


def test_an_adopted_node_keeps_its_pools_labels_and_taints_and_nothing_of_kwok() -> None:
    node = {
        "metadata": {
            "name": "n",
            "labels": {"a": "b"},
            "annotations": {real_node.PLAYED: "fake", "other": "kept"},
        },
        "spec": {"taints": [{"key": "t"}]},
        "status": {"nodeInfo": {"kubeletVersion": "kwok"}},
    }
    assert real_node.adopted(node) == {
        "metadata": {
            "name": "n",
            "labels": {"a": "b", "lab-kubelet": "real"},
            "annotations": {"other": "kept"},
        },
        "spec": {"taints": [{"key": "t"}]},
    }


def test_no_node_is_real_until_one_is_named(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig.yaml"
    assert real_node.name(kubeconfig) == ""
    real_node.file(kubeconfig).write_text("n")
    assert real_node.name(kubeconfig) == "n"
