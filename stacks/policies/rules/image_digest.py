"""Policy `image-digest`."""

from collections.abc import Iterator, Mapping
from typing import Any

from berth.components.core.manifest import value_at
from berth.components.lifecycle import KEEPER_NAME
from berth.components.operators import Gib
from berth.stacks.policies.planned import as_list, object_name, ray_specs
from berth.stacks.policies.policy import Finding, Planned, Policy, PolicyContext

_DAEMON_SET = "kubernetes:apps/v1:DaemonSet"
_CRON_JOB = "kubernetes:batch/v1:CronJob"


def _images_with_tags(resource: Planned, _context: PolicyContext) -> Iterator[Finding]:
    """Yield images whose name has a tag in place of a digest."""
    if resource.type == _DAEMON_SET and object_name(resource).startswith(Gib.daemon_set):
        images = _images(value_at(resource.inputs, "spec", "template"))
        workload = "the installer of gIB, which is privileged,"
    elif resource.type == _CRON_JOB and object_name(resource) == KEEPER_NAME:
        images = _images(value_at(resource.inputs, "spec", "jobTemplate", "spec", "template"))
        workload = "the keeper, which reads the token of every berth with a lifecycle,"
    else:
        templates = [template for spec in ray_specs(resource) for template in _templates(spec)]
        images = [image for template in templates for image in _images(template)]
        workload = f"Ray of {object_name(resource)}"
    for image in dict.fromkeys(images):
        if "@" not in image:
            yield Finding(
                f"{workload} runs the image {image}, whose content can change under its name"
            )


def _templates(spec: Mapping[str, Any]) -> Iterator[Any]:
    for group in [value_at(spec, "headGroupSpec"), *as_list(value_at(spec, "workerGroupSpecs"))]:
        yield value_at(group, "template")


def _images(template: Any) -> list[str]:
    """Return the images of a pod template; a missing one, which is berth's mistake, as ""."""
    kinds = ("initContainers", "containers")
    return [
        str(value_at(container, "image") or "")
        for kind in kinds
        for container in as_list(value_at(template, "spec", kind))
    ]


POLICY = Policy(
    name="image-digest",
    asks="A production environment names its images with their digests.",
    why=(
        "Whoever may push to the registry, or takes it over, replaces the program that runs on"
        " every node; and two pods of one setting may run different programs."
    ),
    remedy=(
        "write them into the settings that `berth images` names, with the commands that it prints"
    ),
    judge=_images_with_tags,
    applies_to="raycluster",
    setting=("image",),
    production=True,
    # Berth names its own images without digests.
    unset_at_defaults=True,
    elsewhere={
        _DAEMON_SET: ("operators", "gib", "image"),
        _CRON_JOB: ("keeper", "image"),
    },
)
