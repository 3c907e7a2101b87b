"""`berth images`: the list of a stack's images and charts, with commands for them."""

from collections.abc import Iterable, Iterator
from dataclasses import asdict

from berth.cli.shell.console import out, print_json
from berth.cli.verbs.images.named_images import (
    CHART,
    IMAGE,
    NamedChart,
    NamedImage,
    charts_of_environment,
    images_of_environment,
    written_images,
)
from berth.components.core.errors import BadInputError
from berth.stacks.files import stack_file
from berth.stacks.settings.environment import EnvironmentSettings


def print_images(stack: str, *, as_json: bool) -> int:
    """Print the images and charts of a stack; return the exit code.

    Raises:
        BadInputError: the settings are wrong.
    """
    settings = stack_file.file_of_stack(stack).settings
    images = list(written_images(settings))
    charts: list[NamedChart] = []
    if "environment" in settings:
        environment = _environment(stack, settings["environment"])
        images += images_of_environment(environment)
        charts += charts_of_environment(environment)
    commands = list(dict.fromkeys(_commands(images, charts)))
    if as_json:
        print_json(
            {
                "stack": stack,
                "images": list(map(asdict, images)),
                "charts": list(map(asdict, charts)),
                "commands": commands,
            }
        )
        return 0
    lines = list(_lines(images, charts)) or [f"stack {stack} names no image and no chart"]
    out.print(*lines, *commands, sep="\n", soft_wrap=True)
    return 0


def _environment(stack: str, settings: object) -> EnvironmentSettings:
    from pydantic import ValidationError

    try:
        return EnvironmentSettings.model_validate(settings or {}, by_alias=True, by_name=False)
    except ValidationError:
        raise BadInputError(
            f"the settings of {stack} are wrong", f"run: berth check {stack}"
        ) from None


def _lines(images: Iterable[NamedImage], charts: Iterable[NamedChart]) -> Iterator[str]:
    """Yield images and charts below their settings.

    Names for other commands are too long for a table: no terminal breaks their lines.
    """
    for image in images:
        yield f"{image.setting}\n    {image.image}"
    for chart in charts:
        place = chart.chart
        if chart.repository:
            place += f" of {chart.repository}"
        yield f"{chart.setting}\n    {place}, version {chart.version}"


def _commands(images: Iterable[NamedImage], charts: Iterable[NamedChart]) -> Iterator[str]:
    """Yield commands that show the tags of unknown charts, copy images, and resolve digests."""
    images = list(images)
    for chart in charts:
        values = f"{chart.setting.removesuffix(CHART)}values."
        of_chart = [image for image in images if image.setting.startswith(values)]
        if not all(_has_tag(image.image) for image in of_chart):
            repository = f" --repo {chart.repository}" if chart.repository else ""
            yield f"helm show values {chart.chart}{repository} --version {chart.version}"
    for image in images:
        if image.image != image.source and _has_tag(image.image):
            yield f"crane copy {image.source} {image.image}"
    for image in images:
        if image.setting.endswith(f".{IMAGE}") and "@" not in image.image:
            yield f"crane digest {image.image}"


def _has_tag(image: str) -> bool:
    last = image.rpartition("/")[2]
    return ":" in last or "@" in last
