"""Policy violations in a stack's settings: the text, the place, and how a waiver
changes it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from berth.stacks.load.stack import SettingsError, load
from berth.stacks.policies.registry import POLICIES
from berth.stacks.policies.settings import Judgment
from berth.stacks.settings.contract import EnvironmentContract
from berth.stacks.settings.environment import EnvironmentSettings
from tests.unit.loaded import engineer_of, environment_of, environment_values, places_of_problems

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


def problems(environment: dict[str, Any], stack: str = "dev") -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load(stack, {"environment": environment}, None)
    return caught.value.lines


def judged(environment: dict[str, Any], stack: str = "dev") -> Judgment:
    return environment_of(stack, environment).judgment


def clean(found: Judgment) -> list[str]:
    """The policies that hold, where nothing is against any."""
    assert [*found.problems, *found.warnings, *found.waivers] == []
    return found.held


def waiving(environment: dict[str, Any], **waived: str) -> dict[str, Any]:
    return environment | {"policies": {"waived": {name.replace("_", "-"): reason for name, reason in waived.items()}}}


def alice(**shape: Any) -> dict[str, Any]:
    return GOOD | {"engineers": {"alice": shape}}


CASES = {
    "public dashboard": (
        alice(dashboard="public"),
        (
            "environment.engineers.alice.dashboard: policy private-dashboard: Service "
            "alice-dashboard is a load balancer with a"
            " public address, where everyone can send code to Ray; use `dashboard: internal` or `private`, or waive it"
            " (policies.waived.private-dashboard: REASON)"
        ),
    ),
    "no tokens": (
        alice(auth="none"),
        (
            "environment.engineers.alice.auth: policy ray-auth: Ray of alice does not ask for a "
            "token, so whoever reaches its head"
            " runs code as its owner; use `auth: token`, or waive it (policies.waived.ray-auth: REASON)"
        ),
    ),
    "no tokens by the back door": (
        alice(env={"RAY_AUTH_MODE": "disabled"}),
        (
            "environment.engineers.alice.auth: policy ray-auth: Ray of alice has "
            "RAY_AUTH_MODE=disabled in `env`, which overrides"
            " `auth: token`; remove it"
        ),
    ),
    "part of a node with RDMA": (
        alice(worker={"pool": "train", "gpus": 4}),
        (
            "environment.engineers.alice.worker.gpus: policy rdma-whole: a worker of alice takes 4 "
            "of the 8 GPUs of a node of pool"
            " 'train', whose RDMA NICs go to one pod together with all GPUs; take 8, or another pool, or waive it"
        ),
    ),
    "none of a node with RDMA": (
        GOOD | {"clusters": {"feed": {"worker": {"pool": "train", "gpus": 0}}}},
        "environment.clusters.feed.worker.gpus: policy rdma-whole: a worker of feed takes 0 of the 8 GPUs",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_settings_against_a_policy(case: str) -> None:
    environment, expected = CASES[case]
    (line,) = problems(environment)
    assert expected in line


PRODUCTION_CASES = {
    "no protection": (
        LABELED | {"cluster": OFFICE | {"deletionProtection": False}},
        (
            "environment.cluster.deletionProtection: policy deletion-protection: cluster prod of a "
            "production environment has no"
            " deletion protection; remove `cluster.deletionProtection`, or set it to true, or waive it"
            " (policies.waived.deletion-protection: REASON)"
        ),
    ),
    "control plane on the internet": (
        LABELED | {"cluster": {"nodeServiceAccount": "own"}},
        (
            "environment.cluster.authorizedNetworks: policy restricted-control-plane: the control plane of cluster prod"
            " can be reached from the whole internet; name the networks of your office and your CI in"
            " `cluster.authorizedNetworks`, or set `cluster.privateEndpoint: true`, or waive it"
            " (policies.waived.restricted-control-plane: REASON)"
        ),
    ),
    "control plane for one half of the internet": (
        LABELED | {"cluster": OFFICE | {"authorizedNetworks": {"low": "0.0.0.0/1"}}},
        "policy restricted-control-plane: the control plane of cluster prod can be reached from 0.0.0.0/1, which is",
    ),
    "nodes with Compute Engine's default account": (
        LABELED | {"cluster": OFFICE | {"nodeServiceAccount": None}},
        (
            "environment.cluster.nodeServiceAccount: policy node-service-account: the nodes of pool cpu run as Compute"
            " Engine's default account, with the scope cloud-platform; set `cluster.nodeServiceAccount` to an account"
            " with roles/container.defaultNodeServiceAccount, or to `own`, or waive it"
        ),
    ),
    "nodes with Compute Engine's default account by its address": (
        LABELED | {"cluster": OFFICE | {"nodeServiceAccount": "12-compute@developer.gserviceaccount.com"}},
        "environment.cluster.nodeServiceAccount: policy node-service-account: the nodes of pool cpu run as Compute",
    ),
    "no labels": (
        PRODUCTION,
        (
            "environment.labels: policy required-labels: cluster prod of a production environment "
            "lacks labels owner, cost-center;"
            " add them to `labels`, or waive it (policies.waived.required-labels: REASON)"
        ),
    ),
    "one label, empty": (
        LABELED | {"labels": {"owner": "ml-platform", "cost-center": ""}},
        "policy required-labels: cluster prod of a production environment lacks label cost-center; add it to `labels`",
    ),
    "labels of the house's own": (
        LABELED | {"policies": {"requiredLabels": ["team"]}},
        "policy required-labels: cluster prod of a production environment lacks label team",
    ),
}


@pytest.mark.parametrize("case", PRODUCTION_CASES)
def test_production_against_a_policy(case: str) -> None:
    environment, expected = PRODUCTION_CASES[case]
    (line,) = problems(environment, "prod")
    assert expected in line
    assert judged(environment).problems == [], "it is asked of production only"


@pytest.mark.parametrize(
    ("stack", "production", "expected"),
    [
        ("prod", None, True),
        ("production", None, True),
        ("prod-eu", None, True),
        ("production-2", None, True),
        ("product", None, False),
        ("dev", None, False),
        ("dev-prod", None, False),
        ("dev", True, True),
        ("prod", False, False),
    ],
)
def test_which_environments_are_production(stack: str, production: bool | None, expected: bool) -> None:  # noqa: FBT001
    settings = EnvironmentSettings.model_validate(GOOD | {"production": production})
    assert settings.is_production(stack) is expected


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


def test_what_the_defaults_set_is_wrong_once_and_there() -> None:
    environment = GOOD | {
        "defaults": {"worker": {"pool": "dev"}, "auth": "none"},
        "engineers": {"alice": {}, "bob": {}, "carol": {"auth": "none"}, "dave": {"auth": "token"}},
    }
    assert [line.partition(":")[0] for line in problems(environment)] == [
        "environment.defaults.auth",
        "environment.engineers.carol.auth",
    ]


def test_a_waiver_with_a_reason_lets_it_pass_and_is_told() -> None:
    judgment = judged(waiving(alice(auth="none"), ray_auth="an appliance that knows no tokens"))
    assert (judgment.problems, judgment.warnings) == ([], [])
    assert [str(waiver) for waiver in judgment.waivers] == [
        "policy ray-auth is waived for alice: an appliance that knows no tokens"
    ]
    assert judgment.held == ["private-dashboard", "rdma-whole"]


def test_a_waiver_needs_a_reason() -> None:
    (line,) = problems(waiving(alice(auth="none"), ray_auth=" "))
    assert line.startswith("environment.policies.waived.ray-auth: ")


def test_an_unknown_policy_is_not_waived() -> None:
    lines = problems(waiving(alice(auth="none"), ray_aut="never mind"))
    assert lines[1] == "environment.policies.waived.ray-aut: there is no policy 'ray-aut'; did you mean 'ray-auth'?"
    assert lines[0].startswith("environment.engineers.alice.auth: policy ray-auth: ")


def test_a_waiver_that_waives_nothing_is_warned_of_unless_an_engineers_own_stack_may_need_it() -> None:
    judgment = judged(waiving(alice(), ray_auth="just in case", deletion_protection="dev comes and goes"))
    assert [f"{warning.where}: {warning.message}" for warning in judgment.warnings] == [
        (
            "environment.policies.waived.deletion-protection: nothing here violates policy "
            "deletion-protection; remove the waiver"
        ),
    ]


def test_policies_come_with_all_other_problems_at_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "Pulumi.prod.yaml"
    text = """\
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
"""
    assert places_of_problems(path, text, "prod") == [
        ("2", "environment.defaults.image"),
        ("6", "environment.cluster.deletionProtection"),
        ("9", "environment.labels"),
        ("16", "environment.engineers.alice.worker.gpus"),
        ("18", "environment.engineers.bob.auth"),
        ("19", "environment.engineers.bob.dashboard"),
    ]


def contract(environment: dict[str, Any], stack: str = "dev") -> EnvironmentContract:
    return environment_of(stack, environment).contract()


def test_an_engineers_own_stack_is_held_to_the_same_policies() -> None:
    with pytest.raises(SettingsError) as caught:
        engineer_of("alice", auth="none", dashboard="public").on(contract(GOOD))
    assert caught.value.lines == [
        (
            "engineer.auth: policy ray-auth: Ray of alice does not ask for a token, so whoever "
            "reaches its head runs code as its"
            " owner; use `auth: token`, or have environment 'dev' waive it (policies.waived.ray-auth: REASON)"
        ),
        (
            "engineer.dashboard: policy private-dashboard: Service alice-dashboard is a load "
            "balancer with a public address, where"
            " everyone can send code to Ray; use `dashboard: internal` or `private`, or have environment 'dev' waive it"
            " (policies.waived.private-dashboard: REASON)"
        ),
    ]


def test_part_of_a_node_with_rdma_in_an_engineers_own_stack() -> None:
    with pytest.raises(SettingsError, match=r"engineer\.worker\.gpus: policy rdma-whole: a worker of alice takes 1 of"):
        engineer_of("alice", worker={"pool": "train"}).on(contract(GOOD))


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


def test_images_of_production_have_digests() -> None:
    assert judged(LABELED | {"engineers": {"alice": {}}}, "prod").problems == []
    own = {"image": "registry.example.com/ray:2.60.0"}
    unpinned = LABELED | {
        "operators": {},
        "engineers": {"alice": own, "bob": {}},
    }
    assert [line.split(": ")[0] for line in problems(unpinned, "prod")] == [
        "environment.engineers.alice.image",
        "environment.operators.gib.image",
    ]
    assert judged(unpinned, "dev").problems == []


def test_an_image_that_nobody_wrote_is_reported_once_at_the_defaults() -> None:
    berths: dict[str, Any] = {"alice": {}, "bob": {}}
    unwritten = LABELED | {"defaults": GOOD["defaults"], "engineers": berths}
    assert [line.split(": ")[0] for line in problems(unwritten, "prod")] == ["environment.defaults.image"]


def test_an_existing_cluster_is_not_held_to_what_only_its_makers_can_set() -> None:
    environment = {"cluster": {"existing": {"kubeconfig": "~/.kube/config"}}, "pools": GOOD["pools"]} | PINNED
    assert judged(environment, "prod").problems == []
