"""Policies that a stack's settings are held to, waivers, and engineers' own stacks."""

from pathlib import Path
from typing import Any

import pytest

from berth.stacks.files import stack_file
from berth.stacks.load.stack import SettingsError, load
from berth.stacks.policies.registry import POLICIES
from berth.stacks.policies.settings import Judgment
from berth.stacks.settings.contract import EnvironmentContract
from berth.stacks.settings.environment import EnvironmentSettings
from tests.unit.cases import table
from tests.unit.loaded import engineer_of, environment_of, environment_values

GOOD: dict[str, Any] = environment_values(
    cpu={"machineType": "n2-standard-16", "nodes": 2},
    dev={"machineType": "a4-highgpu-8g", "nodes": 4},
    train={"machineType": "a4-highgpu-8g", "nodes": 2, "rdma": "managed"},
) | {
    "defaults": {"worker": {"pool": "dev"}},
}
DIGEST = "@sha256:" + "0" * 64
PINNED = {
    "defaults": GOOD["defaults"] | {"image": f"rayproject/ray:2.60.0-py311-cu128{DIGEST}"},
    "operators": {"gib": {"image": f"nccl-plugin-gib:v1.1.1{DIGEST}"}},
}
OFFICE = {"authorizedNetworks": {"office": "203.0.113.0/24"}, "nodeServiceAccount": "own"}
PRODUCTION = GOOD | PINNED | {"cluster": OFFICE}
LABELED = PRODUCTION | {"labels": {"owner": "ml-platform", "cost-center": "research"}}


def judged(environment: dict[str, Any], stack: str = "dev") -> Judgment:
    return environment_of(stack, environment).judgment


def clean(found: Judgment) -> list[str]:
    """The policies that hold, where nothing is against any."""
    assert [*found.problems, *found.warnings, *found.waivers] == []
    return found.held


def waiving(environment: dict[str, Any], **waived: str) -> dict[str, Any]:
    return environment | {
        "policies": {"waived": {name.replace("_", "-"): reason for name, reason in waived.items()}}
    }


def alice(**shape: Any) -> dict[str, Any]:
    return GOOD | {"engineers": {"alice": shape}}


@pytest.mark.parametrize(("stack", "production", "expected"), table(__file__, "policies.yaml"))
def test_which_environments_are_production(
    stack: str, production: bool | None, expected: bool
) -> None:
    settings = EnvironmentSettings.model_validate(GOOD | {"production": production})
    assert settings.is_production(stack) is expected


RESERVED = {
    "pools": GOOD["pools"]
    | {"train": GOOD["pools"]["train"] | {"capacity": {"kind": "reservation", "reservation": "a4"}}}
}
MORE = (
    ": `production: true` asks 5 more policies (deletion-protection, image-digest,"
    " node-service-account, required-labels, restricted-control-plane), and `production: false`"
    " says that it is none"
)


@pytest.mark.parametrize(
    ("stack", "settings", "signs"),
    [
        ("dev", {}, ""),
        ("product", {"project": "acme-ml-products"}, ""),
        ("team", RESERVED, "pool train has a reservation"),
        ("team", {"project": "acme-ml-prod"}, "its project is acme-ml-prod"),
        ("eu-prod", RESERVED, "pool train has a reservation and its name is eu-prod"),
        # Whoever has said what it is, or named it so, is asked nothing.
        ("eu-prod", RESERVED | {"production": False}, ""),
        ("team", RESERVED | LABELED | {"production": True}, ""),
        ("prod", LABELED, ""),
    ],
)
def test_what_looks_like_production_and_does_not_say_so_is_noted(
    stack: str, settings: dict[str, Any], signs: str
) -> None:
    notes = [f"not production, though {signs}{MORE}"] if signs else []
    assert judged(GOOD | settings, stack).notes == notes


@pytest.mark.parametrize(
    "environment",
    [
        alice(),
        alice(dashboard="internal"),
        alice(env={"RAY_AUTH_MODE": "token"}),
        GOOD | {"clusters": {"big": {"workers": 2, "worker": {"pool": "train"}}}},
        GOOD | {"engineers": {"alice": {"worker": {"pool": "train", "gpus": 8}}}},
        GOOD | {"cluster": {"deletionProtection": False}},
    ],
)
def test_settings_that_keep_every_policy(environment: dict[str, Any]) -> None:
    assert clean(judged(environment)) == ["private-dashboard", "ray-auth", "rdma-whole"]


def test_production_is_held_to_every_policy() -> None:
    assert clean(judged(LABELED, "prod")) == list(POLICIES)


def test_a_waiver_with_a_reason_lets_it_pass_and_is_told() -> None:
    judgment = judged(waiving(alice(auth="none"), ray_auth="an appliance that knows no tokens"))
    assert (judgment.problems, judgment.warnings) == ([], [])
    assert [str(waiver) for waiver in judgment.waivers] == [
        "policy ray-auth is waived for alice: an appliance that knows no tokens"
    ]
    assert judgment.held == ["private-dashboard", "rdma-whole"]


def test_a_waiver_that_waives_nothing_is_warned_of_unless_an_engineers_own_stack_may_need_it() -> (
    None
):
    judgment = judged(
        waiving(alice(), ray_auth="just in case", deletion_protection="dev comes and goes")
    )
    assert [f"{warning.where}: {warning.message}" for warning in judgment.warnings] == [
        (
            "environment.policies.waived.deletion-protection: nothing here violates policy "
            "deletion-protection; remove the waiver"
        ),
    ]


def test_policies_come_with_all_other_problems_at_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.prod.yaml"
    path.write_text("""\
config:
  berth:environment:
    project: berth-lab
    zone: us-central1-b
    cluster:
      deletionProtection: false
      privateEndpoint: true
      nodeServiceAccount: own
    labels: {owner: ml-platform}
    pools:
      cpu: {machineType: n2-standard-16, nodes: 1}
      dev: {machineType: a4-highgpu-8g, nodes: 1}
    engineers:
      alice:
        worker:
          gpus: many
      bob:
        auth: none
        dashboard: public
""")
    file = stack_file.read_stack_file(path)
    with pytest.raises(SettingsError) as caught:
        load("prod", file.settings, file)
    problems = [line.removeprefix(f"{path}:").split(": ") for line in caught.value.lines]
    assert [(line.split(":")[0], setting) for line, setting, *_ in problems] == [
        ("2", "environment.defaults.image"),
        ("6", "environment.cluster.deletionProtection"),
        ("9", "environment.labels"),
        ("16", "environment.engineers.alice.worker.gpus"),
        ("18", "environment.engineers.bob.auth"),
        ("19", "environment.engineers.bob.dashboard"),
    ]


def contract(environment: dict[str, Any], stack: str = "dev") -> EnvironmentContract:
    return environment_of(stack, environment).contract()


def test_the_environments_waivers_hold_for_engineers_stacks() -> None:
    waived = contract(waiving(GOOD, ray_auth="an appliance that knows no tokens"))
    found = engineer_of("alice", auth="none").on(waived)
    assert found.berth.settings.auth == "none"
    judgment = found.judgment
    assert [str(waiver) for waiver in judgment.waivers] == [
        "policy ray-auth is waived for alice: an appliance that knows no tokens"
    ]


def test_the_contract_carries_what_policies_need_and_reads_one_that_lacks_it() -> None:
    found = contract(waiving(LABELED, ray_auth="why not"), "prod")
    assert (found.production, found.waived) == (True, {"ray-auth": "why not"})
    older = found.model_dump(exclude={"production", "waived"})
    assert EnvironmentContract.model_validate(older).waived == {}


def test_an_existing_cluster_is_not_held_to_what_only_its_makers_can_set() -> None:
    environment = {
        "cluster": {"existing": {"kubeconfig": "~/.kube/config"}},
        "pools": GOOD["pools"],
    } | PINNED
    assert judged(environment, "prod").problems == []
