"""Rules of operators' settings: contradictions, and settings that nothing would use."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from berth.components.core.problems import Path, Problem
from berth.components.core.written import written
from berth.components.operators.operator import Operator
from berth.components.operators.settings import OPERATORS, OperatedSettings

_OPERATORS: Path = ("environment", "operators")
_POOLS: Path = ("environment", "pools")

_OTHERWISE = {
    "present": "it is there already",
    "addon": "GKE installs it, in a version of its own choice",
    "manifest": "its objects are in a file",
    "chart": "it comes by its chart",
}
"""Origin of an operator, by the value of its `source`."""


def problems(settings: OperatedSettings) -> Iterable[Problem]:
    """Return settings of operators that contradict each other, or that nothing would use."""
    for operator in OPERATORS:
        if not operator.setting:
            continue
        given = settings.operators.of(operator)
        path = (*_OPERATORS, type(settings.operators).model_fields[operator.setting].alias or operator.setting)
        if operator.pool_setting and not any(operator.serves(pool) for pool in settings.pools.values()):
            if written(given):
                message = f"would be ignored, since no pool has {operator.pool_setting}; take it out"
                yield Problem(path, message, of_key=True, rests_on=(_POOLS,))
            continue
        yield from _of_source(operator, given, path)
        yield from operator.problems(given, path, existing=settings.cluster.existing is not None)


def _of_source(operator: type[Operator[Any]], given: BaseModel, path: Path) -> Iterable[Problem]:
    """Return keys that belong to another source than the chosen one."""
    source = getattr(given, "source", None)
    for sources, keys in operator.sources.items():
        if source is None or source in sources:
            continue
        for key in (key for key in written(given) if key in keys):
            yield Problem(
                (*path, key),
                f"belongs to `source: {' or '.join(sources)}`, but here {_OTHERWISE[source]} (source: {source}); take"
                " this line out, or change `source`",
                rests_on=((*path, "source"),),
            )
