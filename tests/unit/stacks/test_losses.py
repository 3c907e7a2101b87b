"""Warnings with which a program says what a plain `pulumi up` takes from those at work."""

import copy
import functools
import json
from typing import Any

import pulumi
import pytest
from pulumi.output import UNKNOWN

from berth.components.berth import losses
from berth.components.core.plain_secrets import SECRET
from berth.components.plan.paths import LATER
from berth.components.plan.plan import BY_BERTH
from berth.stacks.program.main import build
from tests.unit.loaded import environment_of, environment_values
from tests.unit.recording import Recorder, run

RAY_CLUSTER = "kubernetes:ray.io/v1:RayCluster"
POOL = {"machineType": "g2-standard-8", "nodes": 3}
AFFECTS = "affects, as of the last update: berth alice (2 pods, 1 × L4)"
RESTARTS = (
    "berth alice restarts: KubeRay recreates all its pods, and what runs in them is lost;"
    f" {AFFECTS}"
)
SUSPENDED = "berth alice is suspended: its pods are deleted, and what runs in them is lost"
DELETED = f"berth alice is deleted, with everything that runs in it; {AFFECTS}"


class State(Recorder):
    """State of a stack with alice's berth, as the engine reads it."""

    cluster: dict[str, Any]

    def call(
        self, args: pulumi.runtime.MockCallArgs
    ) -> tuple[dict[Any, Any], list[tuple[str, str]] | None]:
        if args.token.endswith(":readStackOutputs"):
            assert args.args["name"] == "organization/berth/dev"
            return {"outputs": {"berths": "alice, bob", "clusters": ""}}, []
        assert args.args["stackName"] == "organization/berth/dev"
        urn = f"urn:pulumi:dev::berth::berth:index:Berth${RAY_CLUSTER}::"
        return {
            "outputs": {
                f"{urn}alice": {"type": RAY_CLUSTER, "outputs": self.cluster},
                f"{urn}bob": {"type": RAY_CLUSTER, "outputs": self.cluster},
                "urn:pulumi:dev::berth::kubernetes:core/v1:Namespace::alice": {
                    "type": "kubernetes:core/v1:Namespace",
                    "outputs": {},
                },
            }
        }, []


@functools.cache
def cluster_of_alice() -> dict[str, Any]:
    return next(
        item.inputs
        for item in recorded("alice", "bob").of_type(RAY_CLUSTER)
        if item.name == "alice"
    )


def recorded(*engineers: str, recorder: Recorder | None = None) -> Recorder:
    values = environment_values(dev=POOL) | {"engineers": {name: {} for name in engineers}}
    return run(lambda: build(environment_of("dev", values)), "dev", recorder=recorder)


@pytest.fixture
def warnings(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []
    monkeypatch.delenv(BY_BERTH, raising=False)
    monkeypatch.setattr(pulumi.log, "warn", lambda text, *_: seen.append(text))
    return seen


@pytest.mark.parametrize(
    ("engineers", "by_berth", "expected"),
    [
        (["bob"], "", [DELETED]),
        (["bob"], "true", []),
        (["alice", "bob", "carol"], "", []),
    ],
)
def test_a_berth_that_the_settings_no_longer_have(
    monkeypatch: pytest.MonkeyPatch,
    warnings: list[str],
    engineers: list[str],
    by_berth: str,
    expected: list[str],
) -> None:
    state = State()
    state.cluster = cluster_of_alice()
    monkeypatch.setenv(BY_BERTH, by_berth)
    recorded(*engineers, recorder=state)
    assert warnings == expected


def edited(cluster: dict[str, Any], **spec: Any) -> dict[str, Any]:
    changed = copy.deepcopy(cluster)
    changed["spec"] |= spec
    return changed


@pytest.mark.parametrize(
    ("spec", "by_berth", "expected"),
    [
        ({"rayVersion": "2.0.0"}, "", [RESTARTS]),
        ({"rayVersion": "2.0.0"}, "true", []),
        ({"upgradeStrategy": {"type": "None"}, "rayVersion": "2.0.0"}, "", []),
        (
            {"suspend": True},
            "",
            [f"{SUSPENDED}; {AFFECTS}"],
        ),
        ({}, "", []),
    ],
)
def test_an_update_of_a_ray_cluster(
    monkeypatch: pytest.MonkeyPatch,
    warnings: list[str],
    spec: dict[str, Any],
    by_berth: str,
    expected: list[str],
) -> None:
    environment = environment_of("dev", environment_values(dev=POOL))
    # The engine passes numbers as floats.
    old = json.loads(json.dumps(cluster_of_alice()), parse_int=float)
    hooks: list[Any] = []
    monkeypatch.setattr(pulumi, "ResourceHook", lambda *hook: hooks.append(hook))
    monkeypatch.setenv(BY_BERTH, by_berth)
    losses.losses_hook("alice", environment.resolved.pools)
    ((name, warn, options),) = hooks
    assert (name, options.on_dry_run) == ("berth-alice-losses", True)
    warn(
        pulumi.ResourceHookArgs(
            "urn", "id", "alice", RAY_CLUSTER, old_inputs=old, new_inputs=edited(old, **spec)
        )
    )
    assert warnings == expected


def test_secret_and_unknown_values_read_as_in_a_plan() -> None:
    """A secret that stays is no difference, and it is shown nowhere."""
    hidden = pulumi.Output.__new__(pulumi.Output)
    values = {"a": [{"b": hidden, "c": UNKNOWN}], "n": 3.0}
    assert losses.plain(values) == {"a": [{"b": SECRET, "c": LATER}], "n": 3}
    assert losses.plain(None) == {}


def test_the_hook_is_on_the_main_object_alone() -> None:
    bound: dict[str, bool] = {}

    def look(args: pulumi.ResourceTransformationArgs) -> None:
        if hooks := args.opts.hooks:
            bound[args.type_] = bool(hooks.before_update) and not hooks.before_delete

    async def program() -> None:
        pulumi.runtime.register_stack_transformation(look)
        values = environment_values(dev=POOL) | {"engineers": {"alice": {}}}
        await build(environment_of("dev", values))

    run(program, "dev")
    assert {kind: ok for kind, ok in bound.items() if "ray.io" in kind} == {RAY_CLUSTER: True}
