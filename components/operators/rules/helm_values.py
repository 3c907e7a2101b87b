"""Rules of Helm values: those that change berth's own, and those that a chart does not read."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from berth.components.core.nearest import did_you_mean
from berth.components.core.rules import Breach, Rules
from berth.components.operators.operator import Operator
from berth.components.operators.parts import Chart
from berth.components.operators.settings import OperatorsSettings

HELM_VALUES = Rules[Operator[Any]](OperatorsSettings)
"""Rules of the Helm values of an operator that is installed."""

_LONGEST = 60
"""Characters of a value that are shown."""

_GLOBAL = "global"
"""Key of values that every chart has."""

_Place = tuple[str, ...]
"""Path of a Helm value."""


@HELM_VALUES.warning("*.values.**")
def value_that_changes_berths(operator: Operator[Any]) -> Iterator[Breach]:
    """Berth is tested with the values that it sets."""
    written = getattr(operator.settings, "values", None)
    if not written:
        return
    for part in operator.parts(operator.release):
        if not isinstance(part, Chart):
            continue
        for place, ours, theirs in overridden_values(part.ours, written):
            yield Breach(
                f"changes what berth sets: {_shown(ours)} becomes {_shown(theirs)}; berth is"
                " tested with its own",
                at=(OperatorsSettings.key_of(operator), "values", *place),
            )


@HELM_VALUES.warning("*.values.*")
def value_that_the_chart_does_not_read(operator: Operator[Any]) -> Iterator[Breach]:
    """Helm ignores a value that the templates of a chart do not read; charts.yaml has the rest."""
    written = getattr(operator.settings, "values", None)
    if not written or "chart" in operator.settings.model_fields_set:
        return
    read_by_chart = operator.known_chart().values
    for key in written:
        if key not in read_by_chart and key != _GLOBAL:
            yield Breach(
                f"is not a value of chart {operator.settings.chart}, which would ignore it"
                f"{did_you_mean(key, read_by_chart)}",
                at=(OperatorsSettings.key_of(operator), "values", key),
            )


def overridden_values(
    ours: Any, theirs: Any, place: _Place = ()
) -> Iterator[tuple[_Place, Any, Any]]:
    """Yield where values of a user change berth's: path, berth's value, the user's value."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key in theirs:
            if key in ours:
                yield from overridden_values(ours[key], theirs[key], (*place, key))
    elif place[-1:] == ("env",) and isinstance(ours, list) and isinstance(theirs, list):
        for our_variable, their_variable in _overridden_variables(ours, theirs):
            yield place, our_variable, their_variable
    elif ours != theirs:
        yield place, ours, theirs


def _overridden_variables(ours: list[Any], theirs: list[Any]) -> Iterator[tuple[Any, Any]]:
    """Yield the variables that both lists have, with different values; lists merge by name."""
    by_name = {variable["name"]: variable for variable in ours}
    for variable in theirs:
        if not isinstance(variable, Mapping):
            continue
        name = variable.get("name")
        if name in by_name and variable != by_name[name]:
            yield by_name[name], variable


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
