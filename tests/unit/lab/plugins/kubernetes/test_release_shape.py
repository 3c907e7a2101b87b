"""Shape of a release's inputs and outputs, and its flags of helm."""

from __future__ import annotations

from berth.lab.plugins.kubernetes import release_shape


def test_flags() -> None:
    given = {
        "chart": "c",
        "version": "1.2.3",
        "timeout": 60.0,
        "disableOpenapiValidation": True,
        "repositoryOpts": {"repo": "file:///charts"},
    }
    inputs = release_shape.with_defaults(given)
    shared = ["--version", "1.2.3", "--repo", "file:///charts", "--wait", "--timeout", "60s"]
    # pulumi-kubernetes v4.32.0, provider/pkg/provider/helm_release.go: set in helmCreate, and not
    # in helmUpdate.
    assert release_shape.install_flags(inputs) == ["--disable-openapi-validation", *shared]
    assert release_shape.upgrade_flags(inputs) == [*shared, "--history-max", "0"]


def test_an_option_that_the_stand_in_lacks_is_named() -> None:
    supported = {"chart": "c", "atomic": False, "values": {"a": 1}, "repositoryOpts": {"repo": "x"}}
    assert release_shape.unsupported(supported) == ""
    assert release_shape.unsupported({**supported, "atomic": True}) == "atomic"
    assert release_shape.unsupported({"repositoryOpts": {"repo": "x", "password": "y"}}) == "repositoryOpts.password"


def test_names_by_kind() -> None:
    manifest = """
---
apiVersion: v1
kind: ConfigMap
metadata: {name: b}
---
# empty
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: d, namespace: n}
"""
    assert release_shape.resource_names(manifest) == {"ConfigMap/v1": ["a", "b"], "Deployment.apps/apps/v1": ["n/d"]}
