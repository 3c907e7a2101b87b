"""Rules of settings: typed functions, with their places and their kind, in one registry.

A slice makes a `Rules` for the subject that its rules judge: settings, or a small dataclass of
settings and what belongs to them. A rule is a function of that subject. Its decorator names the
settings that are wrong if the rule is broken; its docstring says what holds, and by which source;
what it returns or yields is the message, with the remedy after a semicolon:

    POOLS = Rules[PoolSettings](PoolSettings)

    @POOLS.problem("sharing")
    def shared_gpus_beside_rdma(pool: PoolSettings) -> str | None:
        \"\"\"A pod on nodes whose NICs are handed out by DRA takes all of them (SOURCE).\"\"\"
        if pool.sharing and pool.rdma != "none":
            return "Google does not support shared GPUs beside RDMA; write `rdma: none`"
        return None
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel

from berth.components.core.model_types import has_setting
from berth.components.core.problems import Problem, SettingPath

Subject = TypeVar("Subject")

ENVIRONMENT = "environment"
"""Key that whole paths of settings begin with; others begin at the settings that a rule judges."""

_ANY = "*"
"""Part of a place that stands for any key of a mapping, or any position of a list."""

_ANY_BELOW = "**"
"""Last part of a place that stands for the settings before it, and for any below them."""


@dataclass(frozen=True)
class Breach:
    """A rule that settings break, where one message, or one place, does not say it all.

    Attributes:
        message: what is wrong, and after a semicolon what fixes it.
        at: place below the settings that the rule judges; by default the rule's first.
        rests_on: settings that the breach comes from, beside those of the rule; whole paths that
            begin with `environment`, or places below the settings that the rule judges.
    """

    message: str
    at: SettingPath | None = None
    rests_on: tuple[SettingPath, ...] = ()


@dataclass(frozen=True)
class Rule(Generic[Subject]):
    """A rule of settings.

    Attributes:
        kind: whether a breach is refused, or only warned of.
        judge: the function; its name is the rule's, its docstring has the source.
        model: the settings that the places are in.
        places: settings that are wrong if the rule is broken, the first one by default; `*` stands
            for any key, and `**` at the end for any path. An empty place is the settings as a
            whole.
        rests_on: settings that a breach comes from.
    """

    kind: Literal["problem", "warning"]
    judge: Callable[[Subject], str | Iterable[Breach] | None]
    model: type[BaseModel]
    places: tuple[SettingPath, ...]
    rests_on: tuple[SettingPath, ...]

    @property
    def name(self) -> str:
        """The rule's name: that of its function."""
        return self.judge.__name__

    def breaches(self, subject: Subject, path: SettingPath) -> Iterator[Problem]:
        """Yield how a subject, whose settings are at a path, breaks the rule.

        Raises:
            ValueError: the rule names a place that it does not declare.
        """
        verdict = self.judge(subject)
        if verdict is None:
            return
        for breach in [Breach(verdict)] if isinstance(verdict, str) else verdict:
            place = self.places[0] if breach.at is None else breach.at
            if not any(_stands_for(declared, place) for declared in self.places):
                raise ValueError(f"rule {self.name} does not declare the place {place}")
            rests_on = (*self.rests_on, *breach.rests_on)
            yield Problem(
                _whole(path, place),
                breach.message,
                tuple(_whole(path, other) for other in rests_on),
            )


JudgeT = TypeVar("JudgeT", bound=Callable[[Any], str | Iterable[Breach] | None])

_REGISTRY: list[Rule[Any]] = []


class Rules(Generic[Subject]):
    """Rules of one subject, in the order in which they are written.

    Args:
        model: the settings that the rules' places are in.
    """

    def __init__(self, model: type[BaseModel]) -> None:
        self._model = model
        self._rules: list[Rule[Subject]] = []

    def problem(self, *places: str, rests_on: Iterable[str] = ()) -> Callable[[JudgeT], JudgeT]:
        """Return the decorator of a rule whose breach is refused.

        Args:
            places: settings that are wrong if the rule is broken, such as `capacity.block`; by
                default the settings as a whole.
            rests_on: settings that a breach comes from: nothing is said of it while one of them is
                wrong by itself.

        Raises:
            ValueError: the settings have no such place.
        """
        return self._decorator("problem", places, rests_on)

    def warning(self, *places: str, rests_on: Iterable[str] = ()) -> Callable[[JudgeT], JudgeT]:
        """Return the decorator of a rule whose breach is warned of; see `problem`."""
        return self._decorator("warning", places, rests_on)

    def problems(self, subject: Subject, path: SettingPath) -> Iterator[Problem]:
        """Yield the problems of a subject whose settings are at a path."""
        return self._breaches("problem", subject, path)

    def warnings(self, subject: Subject, path: SettingPath) -> Iterator[Problem]:
        """Yield the warnings about a subject whose settings are at a path."""
        return self._breaches("warning", subject, path)

    def _breaches(self, kind: str, subject: Subject, path: SettingPath) -> Iterator[Problem]:
        for rule in self._rules:
            if rule.kind == kind:
                yield from rule.breaches(subject, path)

    def _decorator(
        self, kind: Literal["problem", "warning"], places: Iterable[str], rests_on: Iterable[str]
    ) -> Callable[[JudgeT], JudgeT]:
        parts = tuple(map(_parts, places)) or ((),)
        others = tuple(map(_parts, rests_on))

        def decorate(judge: JudgeT) -> JudgeT:
            for place in (*parts, *others):
                above = place[:-1] if place[-1:] == (_ANY_BELOW,) else place
                if above[:1] != (ENVIRONMENT,) and not has_setting(self._model, above):
                    shown = ".".join(map(str, place))
                    raise ValueError(
                        f"rule {judge.__name__}: {self._model.__name__} has no setting {shown!r}"
                    )
            rule: Rule[Subject] = Rule(kind, judge, self._model, parts, others)
            self._rules.append(rule)
            _REGISTRY.append(rule)
            return judge

        return decorate


def all_rules() -> tuple[Rule[Any], ...]:
    """Return the rules of all modules that have been imported."""
    return tuple(_REGISTRY)


def _parts(place: str) -> SettingPath:
    return tuple(place.split(".")) if place else ()


def _stands_for(declared: SettingPath, place: SettingPath) -> bool:
    if declared[-1:] == (_ANY_BELOW,):
        above = declared[:-1]
        return _stands_for(above, place[: len(above)])
    return len(declared) == len(place) and all(
        part in (_ANY, given) for part, given in zip(declared, place, strict=True)
    )


def _whole(path: SettingPath, place: SettingPath) -> SettingPath:
    return place if place[:1] == (ENVIRONMENT,) else (*path, *place)
