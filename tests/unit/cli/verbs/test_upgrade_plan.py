"""`berth upgrade plan`: cases of upgrade_plan.yaml, and its table against what else berth knows."""

import base64
import gzip
import json
import re
from datetime import date
from typing import Any

import pytest

from berth.cli.reach.environment import NotUpError
from berth.cli.verbs import upgrade
from berth.cli.verbs.upgrade import plan as module
from berth.cli.verbs.upgrade.combinations import COMBINATIONS, SOURCES, combinations_of
from berth.cli.verbs.upgrade.environment_versions import KUBERAY_CRDS_SINCE
from berth.cli.verbs.upgrade.parts import PARTS
from berth.cli.verbs.upgrade.supported import PartVersion, judged_versions
from berth.components.cluster.api import RAY_CLUSTERS, RefusedError
from berth.components.core.errors import BadInputError
from berth.components.hardware import versions
from berth.components.hardware.machines import MACHINES
from berth.stacks.load.stack import Environment
from tests.unit.cases import over, says, table
from tests.unit.loaded import engineer_of, environment_of, environment_values
from tests.unit.recorded_cluster import RecordedCluster

BASE: dict[str, Any] = {
    **environment_values(dev={"machineType": "g2-standard-24", "nodes": 2, "sharing": "any"}),
    "sharing": {"any": {"kind": "time-slicing", "replicas": 4}},
    "defaults": {"worker": {"pool": "dev"}},
    "engineers": {"alice": {}, "bob": {}},
}


class Cluster(RecordedCluster):
    """A cluster that is up."""

    def __init__(self, case: dict[str, Any], loaded: Environment) -> None:
        self.version = case["version"]
        self.helm = case.get("helm", {})
        rays = [berth.manifests.main for berth in loaded.berths]
        changed = [
            over(ray, {"spec": {"rayVersion": case.get("rays", {}).get(name(ray), versions.RAY)}})
            for ray in rays
        ]
        super().__init__(
            {
                "/api/v1/nodes": [node(pool, kubelet) for pool, kubelet in case["nodes"].items()],
                "/api/v1/secrets": []
                if self.helm == "refused"
                else list(map(release, self.helm.items())),
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions": list(
                    map(crd, case.get("crds", {}).items())
                ),
                RAY_CLUSTERS: changed,
            }
        )

    def metadata(self, path: str, **query: str) -> list[dict[str, Any]]:
        return [item["metadata"] for item in self.list(path, **query)[0]]

    def list(self, path: str, **query: str) -> tuple[list[dict[str, Any]], str]:
        if path == "/api/v1/secrets" and self.helm == "refused":
            raise RefusedError(403, {"message": "you may not list secrets"})
        query.pop("labelSelector", None)
        return super().list(path, **query)

    def text(self, path: str, seconds: float = 0, /, **query: str) -> str:
        del path, seconds, query
        return json.dumps({"gitVersion": self.version})


def name(ray: dict[str, Any]) -> str:
    return str(ray["metadata"]["name"])


def node(pool: str, kubelet: str) -> dict[str, Any]:
    info = {"kubeletVersion": kubelet, "osImage": "Container-Optimized OS from Google"}
    metadata = {"name": pool, "labels": {"cloud.google.com/gke-nodepool": pool}}
    return {"metadata": metadata, "status": {"nodeInfo": info}}


def release(named: tuple[str, str]) -> dict[str, Any]:
    """The record of a Helm release."""
    content = json.dumps({"chart": {"metadata": {"version": named[1]}}}).encode()
    metadata = {
        "name": named[0],
        "uid": "1",
        "labels": {"name": named[0], "status": "deployed", "version": "1"},
    }
    return {
        "metadata": metadata,
        "data": {"release": base64.b64encode(base64.b64encode(gzip.compress(content))).decode()},
    }


def crd(named: tuple[str, list[str]]) -> dict[str, Any]:
    plural, _, group = named[0].partition(".")
    schema: dict[str, Any] = {"properties": {"spec": {"properties": {key: {} for key in named[1]}}}}
    stored = {"name": "v1", "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "metadata": {"name": named[0]},
        "spec": {"group": group, "names": {"plural": plural}, "versions": [stored]},
    }


class Today(date):
    """The day of the cases."""

    @classmethod
    def now(cls, _zone: Any) -> "Today":
        return cls(2026, 11, 27)

    def date(self) -> date:
        return self


@pytest.fixture
def stack(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Make the environment of a case the one that a plan is of."""
    monkeypatch.setattr(module, "datetime", Today)

    def use(case: dict[str, Any]) -> None:
        loaded = environment_of("dev", over(BASE, case.get("settings", {})))
        monkeypatch.setattr(module, "load_stack", lambda _stack: loaded)

        def brought_up(stack: str) -> Any:
            if case["cluster"] is None:
                raise NotUpError(stack)
            return type("Up", (), {"kubeconfig": ""})

        monkeypatch.setattr(module, "brought_up", brought_up)
        monkeypatch.setattr(
            module, "ClusterApi", lambda _kubeconfig: Cluster(case["cluster"], loaded)
        )

    return use


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case["name"]) for case in table(__file__, "upgrade_plan.yaml")]
)
def test_plan(case: dict[str, Any], stack: Any, capsys: pytest.CaptureFixture[str]) -> None:
    stack(case)
    code = upgrade.run("plan", "dev")
    assert code == (1 if case["steps"] else 0)
    table, *steps = re.split(
        r"^\d\. ", " ".join(capsys.readouterr().out.split("\n   ")), flags=re.MULTILINE
    )
    assert [
        text
        for text, step in zip(case["steps"], steps, strict=True)
        if not says(step.strip(), f"{text}…")
    ] == [], steps
    last = [*table.split("\n"), *"\n".join(steps).split("\n")]
    assert [
        text for text in case.get("says", []) if not any(says(line, text) for line in last)
    ] == [], last
    upgrade.run("plan", "dev", as_json=True)
    parts = json.loads(capsys.readouterr().out)["versions"]
    stated = {one["part"]: one["goes_with"] or one["ends"] != "unknown" for one in parts}
    assert [one["part"] for one in parts if bool(one["sources"]) != bool(stated[one["part"]])] == []
    for part, known in case["known"].items():
        assert [[one["version"], one["asked"]] for one in parts if one["part"] == part] == known


def test_input_that_is_no_environment(monkeypatch: pytest.MonkeyPatch, stack: Any) -> None:
    stack({"cluster": None})
    with pytest.raises(BadInputError, match="never writes anything"):
        upgrade.run("plan", "dev", dry_run=True)
    with pytest.raises(BadInputError, match="run: berth upgrade plan -s dev"):
        upgrade.run(None, "dev")
    monkeypatch.setattr(module, "load_stack", lambda _stack: engineer_of("alice"))
    with pytest.raises(BadInputError, match="run: berth upgrade plan -s lab"):
        upgrade.run("plan", "alice")


def test_the_table_agrees_with_the_rest() -> None:
    """Versions that stand elsewhere too, and defaults that nothing in the table speaks against."""
    of_ray = [
        combination.goes_with
        for combination in combinations_of("kuberay", versions.KUBERAY)
        if "ray" in combination.goes_with
    ]
    assert of_ray == [{"ray": f"{'.'.join(map(str, versions.RAY_TOKEN_AUTH_SINCE))} or newer"}]
    (gib,) = combinations_of("gib", PARTS["gib"].installs)
    series = {machine.series.name for machine in MACHINES.values() if machine.series.nccl}
    assert set(gib.goes_with["machines"].split(", ")) == series
    assert versions.KUBERAY.startswith(KUBERAY_CRDS_SINCE), "look for a newer field"
    defaults = [PartVersion(key, part.installs, "settings") for key, part in PARTS.items()]
    assert [one for one in judged_versions(defaults, date(2026, 11, 27)) if one.old] == []
    assert [combination for combination in COMBINATIONS if not combination.link] == []
    assert [part for row in COMBINATIONS for part in row.parts if part not in PARTS] == []
    used = {row.source for row in COMBINATIONS} | {part.source for part in PARTS.values()}
    assert used - {""} == SOURCES.keys()
