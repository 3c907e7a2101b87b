"""Images and charts of a stack, each with the setting that names it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.core.image import mirrored
from berth.components.hardware import versions
from berth.components.operators import Chart, Site
from berth.components.sharing import offered_pools
from berth.stacks.settings.environment import EnvironmentSettings

IMAGE = "image"
CHART = "chart"
"""Last parts of the settings of images and of charts."""

# Settings whose content is not berth's: values of charts, documents of Ray, variables.
_OTHERS = {"values", "runtimeEnv", "env", "serveConfig"}
_MIRROR = "environment.mirror.images"
_OPERATORS = "environment.operators"


@dataclass(frozen=True)
class NamedImage:
    """Image of a stack.

    Attributes:
        setting: path of the setting that names the image.
        image: the image as the cluster pulls it.
        source: the image as its publisher names it.
    """

    setting: str
    image: str
    source: str


@dataclass(frozen=True)
class NamedChart:
    """Chart of a stack.

    Attributes:
        setting: path of the setting that names the chart.
        chart: name of the chart, or its address in a registry.
        repository: address of its repository; None for a chart of a registry.
        version: version of the chart.
    """

    setting: str
    chart: str
    repository: str | None
    version: str


def written_images(settings: Mapping[str, Any], above: str = "") -> Iterator[NamedImage]:
    """Yield the images that settings name, with their paths below `above`."""
    for key, value in settings.items():
        if key == IMAGE and isinstance(value, str):
            yield NamedImage(f"{above}{key}", value, value)
        elif isinstance(value, Mapping) and key not in _OTHERS:
            yield from written_images(value, f"{above}{key}.")


def images_of_environment(environment: EnvironmentSettings) -> Iterator[NamedImage]:
    """Yield the images that an environment uses and that its settings do not name."""
    mirror = environment.mirror.images or ""
    without = any(IMAGE not in shape.model_fields_set for _, _, shape in environment.owners())
    if without and IMAGE not in environment.defaults.model_fields_set:
        yield _mirrored_image("environment.defaults.image", versions.RAY_IMAGE, mirror)
    yield from _images_of_operators(environment, mirror)
    pools = offered_pools(environment.pools, environment.sharing)
    if any(pool.per_node for pool in pools.values()):  # `berth verify gpu` runs there
        yield _mirrored_image(_MIRROR, versions.CUDA_SAMPLE_IMAGE, mirror)


def _mirrored_image(setting: str, source: str, mirror: str) -> NamedImage:
    return NamedImage(setting, mirrored(source, mirror), source)


def _images_of_operators(environment: EnvironmentSettings, mirror: str) -> Iterator[NamedImage]:
    operators = environment.operators.on(_site(environment, mirror))
    published = environment.operators.on(_site(environment, ""))
    for operator, as_published in zip(operators, published, strict=True):
        above = ""
        written = set[str]()
        if operator.setting:
            above = f"{_OPERATORS}.{_alias(environment.operators, operator.setting)}."
            written = operator.settings.model_fields_set
        images = zip(operator.images(), as_published.images(), strict=True)
        for (setting, image), (_, source) in images:
            # An image that the settings name is in the list already.
            if setting == IMAGE and IMAGE in written:
                continue
            yield NamedImage(f"{above}{setting}" if setting else _MIRROR, image, source)


def charts_of_environment(environment: EnvironmentSettings) -> Iterator[NamedChart]:
    """Yield the charts that are installed in an environment."""
    for operator in environment.operators.on(_site(environment, "")):
        for part in operator.parts(operator.release):
            if isinstance(part, Chart):
                chart = part.mirrored(environment.mirror.charts or "")
                setting = f"{_OPERATORS}.{_alias(environment.operators, operator.setting)}.{CHART}"
                yield NamedChart(setting, chart.chart, chart.in_repository, chart.version)


def _site(environment: EnvironmentSettings, mirror: str) -> Site:
    pools = offered_pools(environment.pools, environment.sharing)
    return Site(pools=pools, image_mirror=mirror)


def _alias(settings: Any, name: str) -> str:
    """Return a setting as a file writes it."""
    return str(type(settings).model_fields[name].alias or name)
