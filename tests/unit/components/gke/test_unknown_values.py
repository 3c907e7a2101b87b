"""No part of a list or block of a Google resource is unknown while another resource is replaced.

A resource of a fixed name is deleted before it is created anew. The engine then asks the provider
to compare every resource that has an output of it, with each property that has one unknown as a
whole, and the provider ends where its code goes through such a property's elements: `can't use
ElementIterator on unknown value` for `networkConfig` of a node pool.
"""

import contextlib
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pulumi
import pulumi_gcp as gcp
import pytest
import yaml
from pulumi.output import Unknown
from pulumi.runtime.rpc import UNKNOWN

from berth.cli.verbs.explain.settings import Setting
from berth.components.core.errors import BadInputError
from berth.components.gke.provider_fields import resource_fields
from berth.components.sharing import offered_pools
from berth.stacks.load.stack import load
from berth.stacks.program.google import register_in_google
from berth.stacks.settings.environment import EnvironmentSettings
from docs.edits import ENVIRONMENTS, edits_of
from docs.edits import settings as edited_settings
from tests.unit.components.gke import environment_of
from tests.unit.components.gke.registered import environments, recorded
from tests.unit.recording import Recorder, run

_OF_GOOGLE = ("network", "cluster", "pools", "zone", "zones", "labels", "sharing")
"""Settings of an environment from which resources of Google are made."""

A4 = {
    "machineType": "a4-highgpu-8g",
    "nodes": 1,
    "capacity": {"kind": "reservation", "reservation": "a4"},
    "rdma": "networks",
}
A4X = {
    "machineType": "a4x-highgpu-4g",
    "nodes": 18,
    "capacity": {"kind": "reservation", "reservation": "a4x"},
}


class UnknownOutputs(Recorder):
    """Engine that knows no output of any resource."""

    def new_resource(self, args: Any) -> tuple[str, dict[str, Any]]:
        resource, outputs = super().new_resource(args)
        if args.typ.startswith("pulumi:providers:"):
            return resource, outputs
        return "", dict.fromkeys([*outputs, "selfLink", "masterVersion", "email"], UNKNOWN)


def registered(name: str, settings: EnvironmentSettings) -> Recorder:
    async def program() -> None:
        pools = offered_pools(settings.pools, settings.sharing)
        await register_in_google(name, settings, pools, {})

    return run(program, name, recorder=UnknownOutputs())


def parts_unknown_with_the_whole(recorder: Recorder) -> set[str]:
    """Lists, maps and blocks of Google's resources with an unknown part, or unknown themselves."""
    found = set()
    for registration in recorder.registrations:
        resource = resource_fields().get(registration.type)
        if resource is None:
            continue
        for name, value in registration.inputs.items():
            is_scalar = name not in resource.blocks and not resource.fields[name].kind
            if not is_scalar and has_unknown(value):
                found.add(f"{registration.type} {name}")
            elif is_scalar:
                assert not isinstance(value, list | dict), name
    return found


def has_unknown(value: Any) -> bool:
    if isinstance(value, dict):
        return any(has_unknown(inner) for inner in value.values())
    if isinstance(value, list):
        return any(has_unknown(inner) for inner in value)
    return isinstance(value, Unknown)


def edited() -> Iterator[tuple[str, EnvironmentSettings]]:
    """The environments of docs/edits.yaml, with each edit in the first one that can have it."""
    given = yaml.safe_load(ENVIRONMENTS.read_text(encoding="utf-8"))
    for name, values in given.items():
        yield name, environment_of_values(values)
    for setting in edited_settings():
        if setting.path.split(".")[1:2] and setting.path.split(".")[1] in _OF_GOOGLE:
            yield from ((setting.path, found) for found in first_edits(setting, given))


def first_edits(setting: Setting, given: dict[str, Any]) -> list[EnvironmentSettings]:
    for values in given.values():
        found = []
        for edit in edits_of(setting, values):
            with contextlib.suppress(BadInputError):
                found.append(environment_of_values(edit))
        if found:
            return found
    return []


def environment_of_values(values: dict[str, Any]) -> EnvironmentSettings:
    settings = load("fleet", {"environment": values}, None).settings
    assert isinstance(settings, EnvironmentSettings)
    return settings


def test_no_part_of_a_list_or_block_is_unknown_in_the_shipped_stacks_and_cases() -> None:
    for name, settings in environments():
        assert parts_unknown_with_the_whole(registered(name, settings)) == set(), name
    settings = environment_of({"train": A4, "domain": A4X})
    assert parts_unknown_with_the_whole(registered("some", settings)) == set()


def test_no_part_of_a_list_or_block_is_unknown_after_an_edit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.root.manager, "disable", logging.CRITICAL)
    count = 0
    for path, settings in edited():
        if settings.cluster.existing is None:
            assert parts_unknown_with_the_whole(registered("fleet", settings)) == set(), path
            count += 1
    assert count > 200


def test_a_pool_is_replaced_with_the_subnetworks_that_its_nodes_are_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = environment_of({"train": A4})
    replaced_with: dict[str, list[str]] = {}
    real: Callable[..., pulumi.Resource] = gcp.container.NodePool

    def node_pool(*place: Any, opts: pulumi.ResourceOptions, **arguments: Any) -> pulumi.Resource:
        assert opts.depends_on == opts.replace_with
        others = [other.pulumi_resource_name for other in opts.replace_with or []]
        replaced_with[arguments["name"]] = others
        return real(*place, opts=opts, **arguments)

    monkeypatch.setattr(gcp.container, "NodePool", node_pool)
    recorded("some", settings)
    rdma = [f"some-rdma-us-central1-b-{number}" for number in range(8)]
    assert replaced_with == {"cpu": [], "train": ["some-gvnic", *rdma]}
