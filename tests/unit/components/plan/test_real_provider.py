"""Plans of the real engine with Google's real provider, cut to the changed resources.

`real/` has what `pulumi preview --json` printed with the provider's own plugin, for the stacks dev
and prod: another label of an environment, another range of the second network of nodes with RDMA
NICs, and the first preview after the cluster and its GPU pool were imported.
"""

import json
from pathlib import Path

from berth.components.plan.plan import plan_of
from berth.stacks.preview.report import PreviewContext, Report, report_of

REAL = Path(__file__).with_name("real")
POOL = "gcp:container/nodePool:NodePool"
CLUSTER = "gcp:container/cluster:Cluster"
SUBNETWORK = "gcp:compute/subnetwork:Subnetwork"


def report(name: str) -> Report:
    lines = (REAL / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return report_of(plan_of(map(json.loads, lines)), PreviewContext("dev", "environment", live=[]))


def changed_paths(found: Report) -> dict[tuple[str, str], list[str]]:
    return {
        (change.type, change.name): [changed.path for changed in change.properties]
        for change in found.changes
    }


def test_another_label_of_the_environment_is_harmless() -> None:
    found = report("labels")
    assert found.verdict == "harmless"
    assert changed_paths(found) == {
        (CLUSTER, "dev"): ["resourceLabels.team"],
        (POOL, "cpu"): ["nodeConfig.resourceLabels.team"],
        (POOL, "dev"): ["nodeConfig.resourceLabels.team"],
    }
    assert found.effects == []


def test_the_first_preview_after_an_import_is_harmless() -> None:
    found = report("imported")
    assert found.verdict == "harmless"
    assert changed_paths(found) == {
        (CLUSTER, "dev"): ["removeDefaultNodePool", "resourceLabels.owner"],
        (POOL, "dev"): ["nodeConfig.taints"],
    }
    assert found.effects == []


def test_another_range_replaces_the_subnetwork_and_the_pool_whose_nodes_are_in_it() -> None:
    found = report("range")
    operations = {change.name: change.operation for change in found.changes}
    assert operations == {
        "train": "replace",
        "prod-gvnic": "replace",
        "prod-gvnic-internal": "update",
    }
    (subnetwork,) = [change for change in found.changes if change.type == SUBNETWORK]
    assert [(p.path, p.forces_replacement) for p in subnetwork.properties] == [
        ("ipCidrRange", True)
    ]
    (pool,) = [change for change in found.changes if change.type == POOL]
    assert "all its nodes are deleted, then new ones are created" in pool.effects[0].text
