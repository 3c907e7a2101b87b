"""Published charts: the values that they read, and their images by given values."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from berth.components.core import fast_yaml
from berth.components.core.image import mirrored
from berth.components.core.merge import merged
from berth.components.plan.paths import MISSING, value_at

_VERSION = "{version}"


@dataclass(frozen=True)
class ChartImage:
    """Image of a chart."""

    repository: str
    """Path of the value with the image's name, or, beside a value `image`, with the part of the
    name before its last `/`."""
    name: str
    """Name without a tag, by the chart's own values."""
    tag: str
    """Tag by the chart's own values; `{version}` stands for the version of the chart."""
    suffix: str = ""
    """End of the tag that no value names."""
    switch: str = ""
    """Path of a value that says whether the image is used; empty if it always is."""
    by_default: bool = True
    """Whether it is by the chart's own values."""

    @property
    def is_split(self) -> bool:
        """Whether the last part of the name is a value of its own, as in NVIDIA's charts."""
        return not self.repository.endswith("image.repository")


@dataclass(frozen=True)
class KnownChart:
    """Facts about a published chart, in berth's own version of it."""

    values: Sequence[str] = ()
    """Top-level keys of the values that it reads."""
    images: Sequence[ChartImage] = ()


@cache
def known_charts() -> Mapping[str, KnownChart]:
    """Return the charts of charts.yaml by their names."""
    charts: dict[str, KnownChart] = {}
    for name, row in fast_yaml.load_beside(__file__, "charts.yaml").items():
        images = [ChartImage(**image) for image in row["images"]]
        charts[name] = KnownChart(row["values"], images)
    return charts


def values_of_copies(images: Iterable[ChartImage], mirror: str) -> dict[str, Any]:
    """Return the Helm values that lead to the copies of images; empty without a mirror."""
    values: dict[str, Any] = {}
    if not mirror:
        return values
    for image in images:
        name = mirrored(image.name, mirror)
        nested: Any = name.rpartition("/")[0] if image.is_split else name
        for key in reversed(image.repository.split(".")):
            nested = {key: nested}
        values = merged(values, nested)
    return values


def pulled_image(image: ChartImage, values: Mapping[str, Any], version: str, *, own: bool) -> str:
    """Return an image as the chart pulls it, with values over its own; "" where it pulls none.

    Tags of berth's `own` version of the chart are known; another's is left out, unless the values
    have one.
    """
    if not _is_used(image, values):
        return ""
    beside = value_at(values, image.repository.rpartition(".")[0])
    written: Mapping[str, Any] = beside if isinstance(beside, Mapping) else {}
    name = _name(image, written)
    tag = written.get("version" if image.is_split else "tag")
    if not tag and (own or _VERSION in image.tag):
        tag = image.tag.replace(_VERSION, version)
    tag = str(tag or "")
    if tag.startswith("sha256:"):
        return f"{name}@{tag}"
    return f"{name}:{tag}{image.suffix}" if tag else name


def _is_used(image: ChartImage, values: Mapping[str, Any]) -> bool:
    if not image.switch:
        return True
    switched = value_at(values, image.switch)
    return image.by_default if switched is MISSING else bool(switched)


def _name(image: ChartImage, written: Mapping[str, Any]) -> str:
    """Return an image's name without its tag, by the values beside its repository."""
    if not image.is_split:
        return str(written.get("repository", image.name))
    above, _, last = image.name.rpartition("/")
    return f"{written.get('repository', above)}/{written.get('image', last)}"
