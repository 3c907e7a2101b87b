"""`berth images`: images and charts of a stack, each with the setting that names it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from berth.cli.reach.arguments import Json, Stack
from berth.cli.shell.help import Section

SECTION = Section.SETTINGS

_KEY = "image"
# Settings whose content is not berth's: values of charts, documents of Ray, variables.
_OTHERS = {"values", "runtimeEnv", "env", "serveConfig"}


def run(stack: Stack, *, as_json: Json = False) -> int:
    """List the images and charts of a stack, with the settings that name them.

    The list has the defaults that the stack uses. For each image without a digest it has the
    command that asks its registry for one: crane, with your own login of docker. A digest names one
    content, which nobody can exchange; a tag may name another tomorrow. Write `IMAGE@DIGEST` into
    the setting.

    Exit code 0, 2 if there is no such stack or its settings are wrong.

    Example: `berth images -s prod`
    """
    from berth.cli.shell.console import Table, out, print_json
    from berth.stacks.files import stack_file

    settings = stack_file.find(stack).settings
    images, charts = images_of(settings), charts_of(stack, settings)
    commands = [f"crane digest {image}" for image in dict.fromkeys(images.values()) if "@" not in image]
    if as_json:
        rows = [{"setting": setting, "image": image} for setting, image in images.items()]
        print_json({"stack": stack, "images": rows, "charts": charts, "commands": commands})
        return 0
    table = Table("setting", "image or chart", "version")
    for setting, image in images.items():
        table.add_row(setting, image, "")
    for chart in charts:
        table.add_row(
            chart["setting"], " of ".join(filter(None, (chart["chart"], chart["repository"]))), chart["version"]
        )
    out.print(table if images or charts else f"stack {stack} names no image and no chart")
    for command in commands:
        out.print(command, markup=False)
    return 0


def images_of(settings: Mapping[str, Any]) -> dict[str, str]:
    """Return the images that a stack's settings name, and berth's defaults that they use."""
    from berth.cli.reach.berth_names import KINDS
    from berth.components.hardware import versions

    found = dict(_named(settings))
    environment = settings.get("environment")
    if isinstance(environment, Mapping):
        berths = [entry or {} for kind in KINDS for entry in _mapping(environment, kind).values()]
        if not _mapping(environment, "defaults").get(_KEY) and any(_KEY not in entry for entry in berths):
            found["environment.defaults.image"] = versions.RAY_IMAGE
        gib = _mapping(_mapping(environment, "operators"), "gib")
        pools = [pool for pool in _mapping(environment, "pools").values() if isinstance(pool, Mapping)]
        if any(pool.get("rdma", "none") != "none" for pool in pools) and gib.get("source") != "present":
            found.setdefault("environment.operators.gib.image", versions.GIB_IMAGE)
    return found


def charts_of(stack: str, settings: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the charts that an environment installs; none for an engineer's own stack.

    Raises:
        BadInputError: the settings are wrong.
    """
    from pydantic import ValidationError

    from berth.components.core.errors import BadInputError
    from berth.components.operators import Site
    from berth.components.operators.operator import ChartSettings
    from berth.components.sharing import offered
    from berth.stacks.settings.environment import EnvironmentSettings

    if "environment" not in settings:
        return []
    try:
        environment = EnvironmentSettings.model_validate(settings["environment"] or {}, by_alias=True, by_name=False)
    except ValidationError:
        raise BadInputError(f"the settings of {stack} are wrong", f"run: berth check {stack}") from None
    site = Site(pools=offered(environment.pools, environment.sharing))
    found: list[dict[str, Any]] = []
    for operator in environment.operators.on(site):
        settings = operator.settings
        if isinstance(settings, ChartSettings) and getattr(settings, "source", "chart") == "chart":
            chart = settings.chart_with({}).mirrored(environment.mirror.charts or "")
            setting = f"environment.operators.{_alias(environment.operators, operator.setting)}.chart"
            found.append(
                {
                    "setting": setting,
                    "chart": chart.chart,
                    "repository": chart.in_repository,
                    "version": settings.version,
                }
            )
    return found


def _alias(settings: Any, name: str) -> str:
    """Return a setting as a file writes it."""
    return str(type(settings).model_fields[name].alias or name)


def _mapping(settings: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = settings.get(key)
    return found if isinstance(found, Mapping) else {}


def _named(settings: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    for key, value in settings.items():
        if key == _KEY and isinstance(value, str):
            yield f"{above}{key}", value
        elif isinstance(value, Mapping) and key not in _OTHERS:
            yield from _named(value, f"{above}{key}.")
