"""Rules of an environment as a whole: its project, its labels in Google Cloud, its currency."""

import re
from collections.abc import Iterator

from berth.components.core.rules import Breach, Rules
from berth.components.gke.settings import GkeSettings

ENVIRONMENTS = Rules[GkeSettings](GkeSettings)
"""Rules of every environment."""

CREATED_ENVIRONMENTS = Rules[GkeSettings](GkeSettings)
"""Rules of environments whose cluster berth creates."""

_MOST_LABELS = 64
_LABEL_KEY = re.compile(r"[a-z][-_a-z0-9]{0,62}")
_LABEL_VALUE = re.compile(r"[-_a-z0-9]{0,63}")


@ENVIRONMENTS.problem("currency")
def rates_without_a_currency(environment: GkeSettings) -> str | None:
    """A rate is an amount of some currency."""
    rated = _pools_with_a_rate(environment)
    if rated and not environment.currency:
        return (
            f"is required, since pool {rated[0]!r} has an hourlyRate; write for example"
            " currency: USD"
        )
    return None


@ENVIRONMENTS.problem("currency", rests_on=["pools"])
def currency_without_rates(environment: GkeSettings) -> str | None:
    """Only rates of pools have a currency."""
    if environment.currency and not _pools_with_a_rate(environment):
        return (
            "no pool has an hourlyRate, so that there is nothing to count; give pools their rate,"
            " or take this line out"
        )
    return None


@ENVIRONMENTS.problem("labels")
def too_many_labels(environment: GkeSettings) -> str | None:
    """Google Cloud limits the labels of a resource.

    Source: "Label requirements"
    (https://docs.cloud.google.com/compute/docs/labeling-resources#requirements).
    """
    count = len(environment.labels)
    if count > _MOST_LABELS:
        return f"has {count} labels; Google Cloud allows {_MOST_LABELS}"
    return None


@ENVIRONMENTS.problem("labels.*")
def labels_that_google_cloud_refuses(environment: GkeSettings) -> Iterator[Breach]:
    """Keys and values of labels have a form, and `goog-` is Google's own.

    Source: "Label requirements", as above.
    """
    for key, value in environment.labels.items():
        place = ("labels", key)
        if not _LABEL_KEY.fullmatch(key):
            yield Breach(
                f"{key!r} is not a label of Google Cloud: up to 63 lowercase letters, digits, '-'"
                " and '_', beginning with a letter, for example cost-center",
                at=place,
            )
        elif key.startswith("goog-"):
            yield Breach(
                f"{key!r} begins with goog-, which is Google's own; take another", at=place
            )
        if not _LABEL_VALUE.fullmatch(value):
            yield Breach(
                f"{value!r} is not a label's value in Google Cloud: up to 63 lowercase letters,"
                " digits, '-' and '_'",
                at=place,
            )


@CREATED_ENVIRONMENTS.problem("project", rests_on=["environment.cluster.existing"])
def missing_project(environment: GkeSettings) -> str | None:
    """Everything that berth creates in Google Cloud belongs to a project."""
    if not environment.project:
        return "is required: the Google Cloud project to create everything in"
    return None


def _pools_with_a_rate(environment: GkeSettings) -> list[str]:
    return [name for name, pool in environment.pools.items() if pool.hourly_rate]
