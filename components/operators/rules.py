"""Rules of operators' settings: contradictions, and settings that nothing would use."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel

from berth.components.core import fast_yaml
from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem, SettingPath
from berth.components.core.settings import written_keys
from berth.components.core.table import beside, broken
from berth.components.operators.operator import Chart, Operator, Site
from berth.components.operators.settings import OPERATORS, OperatedSettings
from berth.components.sharing import offered_pools

_OPERATORS: SettingPath = ("environment", "operators")

_Place = tuple[str, ...]
"""SettingPath of a Helm value."""

_TABLES = beside(__file__)
_WORDS: Mapping[str, Any] = fast_yaml.load_beside(__file__, "words.yaml")


def problems(settings: OperatedSettings) -> Iterable[Problem]:
    """Return settings of operators that contradict each other, or that nothing would use."""
    for operator in OPERATORS:
        if not operator.setting:
            continue
        given = settings.operators.of(operator)
        path = path_of(operator, settings)
        if operator.pool_setting and not any(
            operator.serves(pool) for pool in settings.pools.values()
        ):
            if written_keys(given):
                yield from broken(_TABLES["ignored"], path, operator=operator)
            continue
        yield from _of_source(operator, given, path)
        yield from _of_values(operator, given, path)
        yield from operator.problems(given, path, existing=settings.cluster.existing is not None)


def warnings(settings: OperatedSettings) -> Iterable[Problem]:
    """Return Helm values that change what berth sets, and values that the chart does not know."""
    site = Site(offered_pools(settings.pools, settings.sharing))
    for operator in settings.operators.on(site):
        values = getattr(operator.settings, "values", None)
        if not values:
            continue
        path = (*path_of(operator, settings), "values")
        for part in operator.parts(operator.release):
            for inner, ours, theirs in (
                overridden(part.ours, values) if isinstance(part, Chart) else ()
            ):
                yield from broken(
                    _TABLES["changed"], (*path, *inner), ours=_shown(ours), theirs=_shown(theirs)
                )
        known = operator.known_chart().values
        for key in values if "chart" not in operator.settings.model_fields_set else ():
            if key not in (*known, _GLOBAL):
                message = (
                    f"is not a value of chart {operator.settings.chart}, which would ignore it"
                )
                yield Problem((*path, key), f"{message}{did_you_mean(key, known)}")


_GLOBAL = "global"
"""Key of values that every chart has."""
_LONGEST = 60


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def path_of(
    operator: Operator[Any] | type[Operator[Any]], settings: OperatedSettings
) -> SettingPath:
    """Return the path of an operator's settings."""
    return (
        *_OPERATORS,
        type(settings.operators).model_fields[operator.setting].alias or operator.setting,
    )


def _of_values(
    operator: type[Operator[Any]], given: BaseModel, path: SettingPath
) -> Iterable[Problem]:
    """Return Helm values for which there are settings, which other parts of berth read too."""
    for value, setting in operator.by_setting().items():
        if found := reaches(getattr(given, "values", None) or {}, tuple(value.split("."))):
            yield from broken(
                _TABLES["by_setting"], (*path, "values", *found), value=value, setting=setting
            )


def _of_source(
    operator: type[Operator[Any]], given: BaseModel, path: SettingPath
) -> Iterable[Problem]:
    """Return keys that belong to another source than the chosen one."""
    source = getattr(given, "source", None)
    rows = _WORDS["of_source"]
    for row in rows.get(operator.release, rows["default"]):
        sources, keys = row["sources"], row["keys"]
        if source is None or source in sources:
            continue
        for key in (key for key in written_keys(given) if key in keys):
            facts = {"source": source, "sources": sources, "otherwise": _WORDS["source"][source]}
            yield from broken(_TABLES["of_source"], path, setting=key, **facts)


def overridden(ours: Any, theirs: Any, path: _Place = ()) -> Iterator[tuple[_Place, Any, Any]]:
    """Yield where values of a user change berth's: path, berth's value, the user's value."""
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping):
        for key in (key for key in theirs if key in ours):
            yield from overridden(ours[key], theirs[key], (*path, key))
    elif path[-1:] == ("env",) and isinstance(ours, list) and isinstance(theirs, list):
        before = {entry["name"]: entry for entry in ours}
        changed = [
            entry for entry in theirs if isinstance(entry, Mapping) and entry.get("name") in before
        ]
        yield from (
            (path, before[entry["name"]], entry)
            for entry in changed
            if entry != before[entry["name"]]
        )
    elif ours != theirs:
        yield path, ours, theirs


def reaches(values: Any, path: _Place) -> _Place | None:
    """Return the part of a path at which values decide about it; None where they leave it alone."""
    for depth, key in enumerate(path):
        if not isinstance(values, Mapping):
            return path[:depth]
        if key not in values:
            return None
        values = values[key]
    return path
