from __future__ import annotations

from importlib.metadata import version

import pytest

from berth.lab.plugins.gcp.__main__ import VERSION
from berth.lab.plugins.gcp.generate_inputs import TABLE, generate
from berth.lab.plugins.gcp.inputs import problems, table
from berth.lab.plugins.gcp.provider import TYPES
from berth.lab.plugins.values import UNKNOWN

from .conftest import NETWORK, POOL


def test_the_table_is_that_of_the_installed_sdk() -> None:
    assert TABLE.read_text() == generate(), "run: python -m berth.lab.plugins.gcp.generate_inputs"


def test_the_plugin_stands_in_for_the_installed_sdks_release() -> None:
    assert version("pulumi-gcp") == VERSION


def test_every_type_has_its_inputs() -> None:
    assert set(table()) == set(TYPES)


@pytest.mark.parametrize(
    ("token", "inputs", "found"),
    [
        (NETWORK, {"nmae": "x"}, [("", "nmae: the provider has no such input; did you mean name?")]),
        (
            POOL,
            {"cluster": "c", "nodeConfig": {"guestAccelerators": [{"typ": "nvidia-b200", "count": 8}]}},
            [("", "nodeConfig.guestAccelerators[0].typ: the provider has no such input; did you mean type?")],
        ),
        (POOL, {"nodeCount": "2"}, [("nodeCount", "expected a value of type integer, got '2'")]),
        (POOL, {"nodeCount": True}, [("nodeCount", "expected a value of type integer, got True")]),
        (POOL, {"nodeConfig": []}, [("nodeConfig", "expected an object, got []")]),
        (POOL, {"nodeLocations": "a"}, [("nodeLocations", "expected a list, got 'a'")]),
        (POOL, {"nodeConfig": {"labels": {"any.name/works": "x"}}, "nodeCount": UNKNOWN}, []),
    ],
)
def test_names_and_types_are_checked(token: str, inputs: dict[str, object], found: list[tuple[str, str]]) -> None:
    assert problems(token, inputs) == found
