"""Version of resource.k8s.io that a cluster serves."""

from typing import Any

import pytest

from berth.components.cluster.api import ClusterApi
from berth.components.cluster.inventory import GROUP, served_version

KINDS = (
    "deviceclasses",
    "resourceclaims",
    "resourceclaims/status",
    "resourceclaimtemplates",
    "resourceslices",
)


class Discovery(ClusterApi):
    """An API server's discovery, with the kinds that each version has."""

    def __init__(self, **versions: tuple[str, ...]) -> None:
        group = {
            "versions": [
                {"version": version, "groupVersion": f"resource.k8s.io/{version}"}
                for version in versions
            ]
        }
        kinds = {
            f"{GROUP}/{version}": {"resources": [{"name": kind} for kind in of]}
            for version, of in versions.items()
        }
        self._answers: dict[str, Any] = {GROUP: group, **kinds} if versions else {}

    def get(self, path: str) -> dict[str, Any] | None:
        return self._answers.get(path)


@pytest.mark.parametrize(
    ("versions", "found"),
    [
        ({"v1": KINDS}, "v1"),
        ({"v1beta1": KINDS, "v1beta2": KINDS, "v1": KINDS}, "v1"),
        ({"v1beta1": KINDS, "v1beta2": KINDS}, "v1beta2"),
        ({"v1alpha3": KINDS, "v1beta1": KINDS}, "v1beta1"),
        ({"v1beta2": ("deviceclasses",), "v1beta1": KINDS}, "v1beta1"),
        ({"v1alpha3": KINDS}, None),
        ({"v1beta1": ("resourceslices",)}, None),
        ({}, None),
    ],
)
def test_the_newest_with_all_kinds_that_claims_need(
    versions: dict[str, tuple[str, ...]], found: str | None
) -> None:
    assert served_version(Discovery(**versions)) == found
