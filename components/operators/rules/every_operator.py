"""Rules of the settings of any operator: its source, and Helm values that have a setting."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from berth.components.core.rules import Breach, Rules
from berth.components.core.settings import written_keys
from berth.components.core.words import names_in_words
from berth.components.operators.operator import Operator
from berth.components.operators.parts import Values
from berth.components.operators.settings import OPERATORS, OperatedSettings, OperatorsSettings

_ORIGINS = {
    "present": "it is there already",
    "addon": "GKE installs it, in a version of its own choice",
    "manifest": "its objects are in a file",
    "chart": "it comes by its chart",
}
"""Origin of an operator, by the value of its `source`."""


@dataclass(frozen=True)
class ChosenOperator:
    """An operator with settings, in an environment.

    Attributes:
        operator: the operator.
        environment: the environment whose settings it has.
    """

    operator: type[Operator[Any]]
    environment: OperatedSettings

    @property
    def settings(self) -> BaseModel:
        """Settings of the operator."""
        settings: BaseModel = self.environment.operators.of(self.operator)
        return settings

    @property
    def key(self) -> str:
        """Key of the operator's settings."""
        return OperatorsSettings.key_of(self.operator)

    @property
    def source(self) -> str | None:
        """Installer of the operator; None where the settings do not say."""
        return getattr(self.settings, "source", None)

    @property
    def values(self) -> Values:
        """Helm values of the settings."""
        return getattr(self.settings, "values", None) or {}

    @property
    def is_unused(self) -> bool:
        """Whether the operator is for a setting that no pool has."""
        return bool(self.operator.pool_setting) and not any(
            map(self.operator.serves, self.environment.pools.values())
        )


def chosen_operators(environment: OperatedSettings) -> Iterator[ChosenOperator]:
    """Yield the operators that have settings, in the order of the registry."""
    for operator in OPERATORS:
        if operator.setting:
            yield ChosenOperator(operator, environment)


EVERY_OPERATOR = Rules[ChosenOperator](OperatorsSettings)
"""Rules of the settings of any operator."""


@EVERY_OPERATOR.problem("*", rests_on=["environment.pools"])
def settings_of_an_unused_operator(chosen: ChosenOperator) -> Iterator[Breach]:
    """An operator that no pool needs is not installed."""
    if chosen.is_unused and written_keys(chosen.settings):
        yield Breach(
            f"would be ignored, since no pool has {chosen.operator.pool_setting}; take it out",
            at=(chosen.key,),
        )


@EVERY_OPERATOR.problem("*.*")
def setting_of_another_source(chosen: ChosenOperator) -> Iterator[Breach]:
    """Some settings belong to some values of `source` only."""
    if chosen.is_unused or chosen.source is None:
        return
    written = written_keys(chosen.settings)
    for sources, keys in chosen.operator.settings_by_source.items():
        if chosen.source in sources:
            continue
        for key in written:
            if key in keys:
                yield Breach(
                    f"belongs to `source: {names_in_words(sources, 'or')}`, but here"
                    f" {_ORIGINS[chosen.source]} (source: {chosen.source}); take this line out, or"
                    " change `source`",
                    at=(chosen.key, key),
                    rests_on=((chosen.key, "source"),),
                )


@EVERY_OPERATOR.problem("*.values.**")
def value_that_has_a_setting(chosen: ChosenOperator) -> Iterator[Breach]:
    """Other parts of berth go by the settings, and do not read Helm values."""
    if chosen.is_unused:
        return
    for value, setting in chosen.operator.settings_by_value.items():
        place = deciding_place(chosen.values, tuple(value.split(".")))
        if place:
            yield Breach(
                f"{value} would disagree with what the rest of berth goes by; write {setting}",
                at=(chosen.key, "values", *place),
            )


def deciding_place(values: Any, path: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the part of a path at which values decide about it; None where they leave it alone."""
    for depth, key in enumerate(path):
        if not isinstance(values, Mapping):
            return path[:depth]
        if key not in values:
            return None
        values = values[key]
    return path
