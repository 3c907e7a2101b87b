"""Policy of this repository: images of RayClusters come from registries that are trusted here.

`berth check`, `berth preview` and `pulumi up` apply the POLICY of every module of this folder, next
to berth's own policies. An environment waives it by its name, with a reason.
"""

from __future__ import annotations

from collections.abc import Iterator

from berth.components.core.manifest import value_at
from berth.stacks.policies.planned import as_list, object_name, ray_specs
from berth.stacks.policies.policy import Finding, Planned, Policy, PolicyContext

TRUSTED = (
    "rayproject/",
    "$region-docker.pkg.dev/$project/",
    "us-central1-docker.pkg.dev/berth-lab/",  # of the lab, which pulls no image
)
"""Beginnings of allowed images; add the registry of your own images."""


def _judge(resource: Planned, _context: PolicyContext) -> Iterator[Finding]:
    for spec in ray_specs(resource):
        for group in [
            value_at(spec, "headGroupSpec"),
            *as_list(value_at(spec, "workerGroupSpecs")),
        ]:
            for container in as_list(value_at(group, "template", "spec", "containers"))[:1]:
                image = str(value_at(container, "image"))
                if not image.startswith(TRUSTED):
                    yield Finding(f"Ray of {object_name(resource)} runs the image {image}")


POLICY = Policy(
    name="image-registry",
    asks="Images of RayClusters come from a trusted registry.",
    why="Whoever can push to another registry runs code next to your data.",
    remedy="use an image of a registry in policies/image_registry.py",
    judge=_judge,
    applies_to="raycluster",
    setting=("image",),
)
