"""`berth images`: images and charts of a stack, each with the setting that names it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from berth.cli.reach.arguments import Json, Stack

if TYPE_CHECKING:
    from berth.components.operators import Site
    from berth.stacks.settings.environment import EnvironmentSettings

_KEY = "image"
# Settings whose content is not berth's: values of charts, documents of Ray, variables.
_OTHERS = {"values", "runtimeEnv", "env", "serveConfig"}
_MIRROR = "environment.mirror.images"
_OPERATORS = "environment.operators"


def run(stack: Stack, *, as_json: Json = False) -> int:
    """List the images and charts of a stack, with the settings that name them.

    The list has the defaults that the stack uses, and the images of charts. For each image of a
    setting without a digest it has the command that asks its registry for one: crane, with your own
    login of docker. A digest names one content, which nobody can exchange; a tag may name another
    tomorrow. Write `IMAGE@DIGEST` into the setting.

    With `mirror.images`, images have the names of their copies, and the commands make the copies.

    Exit code 0, 2 if there is no such stack or its settings are wrong.

    Example: `berth images -s prod`
    """
    from berth.cli.shell.console import out, print_json
    from berth.stacks.files import stack_file

    settings = stack_file.file_of_stack(stack).settings
    environment = _environment(stack, settings)
    images = [*_written(settings), *(_of_environment(environment) if environment else ())]
    charts = _charts_of(environment) if environment else []
    commands = list(dict.fromkeys(_commands(images, charts)))
    if as_json:
        print_json({"stack": stack, "images": images, "charts": charts, "commands": commands})
        return 0
    # Names for other commands, too long for a table: each on a line that no terminal breaks.
    named = [(image["setting"], image["image"]) for image in images]
    for chart in charts:
        place = " of ".join(filter(None, (chart["chart"], chart["repository"])))
        named.append((chart["setting"], f"{place}, version {chart['version']}"))
    lines = [f"{setting}\n    {what}" for setting, what in named] or [
        f"stack {stack} names no image and no chart"
    ]
    out.print(*lines, *commands, sep="\n", soft_wrap=True)
    return 0


def _environment(stack: str, settings: Mapping[str, Any]) -> EnvironmentSettings | None:
    """Return the settings of an environment; None for an engineer's own stack."""
    from pydantic import ValidationError

    from berth.components.core.errors import BadInputError
    from berth.stacks.settings.environment import EnvironmentSettings

    if "environment" not in settings:
        return None
    try:
        return EnvironmentSettings.model_validate(
            settings["environment"] or {}, by_alias=True, by_name=False
        )
    except ValidationError:
        raise BadInputError(
            f"the settings of {stack} are wrong", f"run: berth check {stack}"
        ) from None


def _written(settings: Mapping[str, Any], above: str = "") -> Iterator[dict[str, str]]:
    for key, value in settings.items():
        if key == _KEY and isinstance(value, str):
            yield _row(f"{above}{key}", value, value)
        elif isinstance(value, Mapping) and key not in _OTHERS:
            yield from _written(value, f"{above}{key}.")


def _of_environment(environment: EnvironmentSettings) -> Iterator[dict[str, str]]:
    """Yield the images that an environment uses and that its settings do not name."""
    from berth.components.core.image import mirrored
    from berth.components.hardware import versions

    mirror = environment.mirror.images or ""
    without = any(_KEY not in shape.model_fields_set for _, _, shape in environment.owners())
    if without and _KEY not in environment.defaults.model_fields_set:
        yield _row(
            "environment.defaults.image", mirrored(versions.RAY_IMAGE, mirror), versions.RAY_IMAGE
        )
    here, published = _site(environment, mirror), _site(environment, "")
    for operator, as_published in zip(
        environment.operators.on(here), environment.operators.on(published), strict=True
    ):
        for (setting, image), (_, source) in zip(
            operator.images(), as_published.images(), strict=True
        ):
            of_operator = (
                f"{_OPERATORS}.{_alias(environment.operators, operator.setting)}."
                if operator.setting
                else ""
            )
            named = (
                operator.setting and _KEY in operator.settings.model_fields_set and setting == _KEY
            )
            if not named:  # an image that the settings name is in the list already
                yield _row(f"{of_operator}{setting}" if setting else _MIRROR, image, source)
    if any(pool.per_node for pool in here.pools.values()):  # `berth verify gpu` runs there
        yield _row(
            _MIRROR, mirrored(versions.CUDA_SAMPLE_IMAGE, mirror), versions.CUDA_SAMPLE_IMAGE
        )


def _charts_of(environment: EnvironmentSettings) -> list[dict[str, Any]]:
    from berth.components.operators.parts import Chart

    found: list[dict[str, Any]] = []
    for operator in environment.operators.on(_site(environment, "")):
        for part in operator.parts(operator.release):
            if isinstance(part, Chart):
                chart = part.mirrored(environment.mirror.charts or "")
                setting = f"{_OPERATORS}.{_alias(environment.operators, operator.setting)}.chart"
                row = {"setting": setting, "chart": chart.chart, "repository": chart.in_repository}
                found.append({**row, "version": chart.version})
    return found


def _commands(
    images: Iterable[Mapping[str, str]], charts: Iterable[Mapping[str, Any]]
) -> Iterator[str]:
    """Yield commands that copy images, show the tags of unknown charts, and resolve digests."""
    for chart in charts:
        values = f"{chart['setting'].removesuffix('chart')}values."
        if any(row["setting"].startswith(values) and not _has_tag(row["image"]) for row in images):
            repository = f" --repo {chart['repository']}" if chart["repository"] else ""
            yield f"helm show values {chart['chart']}{repository} --version {chart['version']}"
    for row in images:
        if row["image"] != row["source"] and _has_tag(row["image"]):
            yield f"crane copy {row['source']} {row['image']}"
    for row in images:
        if row["setting"].endswith(f".{_KEY}") and "@" not in row["image"]:
            yield f"crane digest {row['image']}"


def _site(environment: EnvironmentSettings, mirror: str) -> Site:
    from berth.components.operators import Site
    from berth.components.sharing import offered_pools

    return Site(pools=offered_pools(environment.pools, environment.sharing), image_mirror=mirror)


def _row(setting: str, image: str, source: str) -> dict[str, str]:
    """Return a row of the list: image as the cluster pulls it, and where it is published."""
    return {"setting": setting, "image": image, "source": source}


def _has_tag(image: str) -> bool:
    last = image.rpartition("/")[2]
    return ":" in last or "@" in last


def _alias(settings: Any, name: str) -> str:
    """Return a setting as a file writes it."""
    return str(type(settings).model_fields[name].alias or name)
