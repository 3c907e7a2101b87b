"""Rules of names: of stacks, of the cluster, and of berths with their namespaces."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from berth.components.core.owner import OwnerKind, namespace_of
from berth.components.core.problems import Problem
from berth.components.core.rules import Breach, Rules
from berth.components.core.types import checked_name
from berth.components.ray import JobShape, RayShape
from berth.stacks.settings.engineer import EngineerSettings
from berth.stacks.settings.environment import KEYS, EnvironmentSettings

_LONGEST_CLUSTER_NAME = 40
"""Most characters of a GKE cluster's name
(https://docs.cloud.google.com/kubernetes-engine/quotas)."""

_RESERVED_BERTHS = {
    "verify": "`berth verify` runs its Jobs in namespace berth-verify",
    "keeper": "the keeper runs in namespace berth-keeper",
}
"""Names that no berth can have, with what has their namespace."""

_RESERVED_STACKS = {
    "engineers": "CI deploys engineers' own stacks under this name, without reviewers",
    "none": "CI gives this name to jobs that deploy nothing",
}
"""Names that no environment's stack can have, with what they mean in workflows (docs/ci.md)."""


@dataclass(frozen=True)
class NameOrStack:
    """Name of a cluster or berth, which is the stack's if the settings have none."""

    given: str | None
    stack: str

    @property
    def name(self) -> str:
        """The name that counts."""
        return self.given or self.stack

    @property
    def origin(self) -> str:
        """Note on a name that is the stack's; else empty."""
        return "" if self.given else "; it defaults to the stack's name: set `name` to override"

    @property
    def invalid(self) -> str:
        """Reason why Kubernetes would refuse the name; empty for a valid one."""
        try:
            checked_name(self.name)
        except ValueError as error:
            return str(error)
        return ""


STACKS = Rules[str](EnvironmentSettings)
"""Rules of the name of an environment's stack."""

CLUSTER_NAMES = Rules[NameOrStack](EnvironmentSettings)
"""Rules of the name of a cluster that berth creates."""

BERTH_NAMES = Rules[NameOrStack](EngineerSettings)
"""Rules of the name of an engineer's own berth."""

OWNER_NAMES = Rules[str](RayShape)
"""Rules of one name that has a namespace."""

OWNERS = Rules[EnvironmentSettings](EnvironmentSettings)
"""Rules of all names of an environment that have namespaces."""


@STACKS.problem()
def stack_name_of_workflows(stack: str) -> str | None:
    """Workflows of CI give some names of stacks a meaning of their own."""
    if stack in _RESERVED_STACKS:
        return f"stack {stack!r} needs another name: {_RESERVED_STACKS[stack]}"
    return None


@CLUSTER_NAMES.problem("cluster.name")
def cluster_name_that_google_refuses(name: NameOrStack) -> str | None:
    """Names of clusters follow Kubernetes' rules, and are shorter."""
    if name.invalid:
        return f"{name.invalid}{name.origin}"
    if len(name.name) > _LONGEST_CLUSTER_NAME:
        return (
            f"{name.name!r} has {len(name.name)} characters; GKE allows"
            f" {_LONGEST_CLUSTER_NAME}{name.origin}"
        )
    return None


@BERTH_NAMES.problem("name")
def berth_name_that_kubernetes_refuses(name: NameOrStack) -> str | None:
    """Names of namespaces, labels and Services follow Kubernetes' rules."""
    return f"{name.invalid}{name.origin}" if name.invalid else None


@OWNER_NAMES.problem()
def reserved_berth_name(name: str) -> str | None:
    """Some namespaces are berth's own."""
    if name in _RESERVED_BERTHS:
        return f"{name!r} is reserved: {_RESERVED_BERTHS[name]}; take another name"
    return None


@OWNERS.problem("engineers.*", "clusters.*", "jobs.*", "services.*")
def name_of_two_owners(settings: EnvironmentSettings) -> Iterator[Breach]:
    """An owner's name is the name of its namespace."""
    kinds: dict[str, OwnerKind] = {}
    for kind, name, _ in settings.owners():
        first = kinds.setdefault(name, kind)
        if first != kind:
            yield Breach(
                f"{name!r} is both {_with_article(first)} and {_with_article(kind)}; both would be"
                f" namespace {namespace_of(name)}: rename one",
                at=(KEYS[kind], name),
            )


def name_problems(
    stack: str, settings: EnvironmentSettings | EngineerSettings
) -> Iterable[Problem]:
    """Yield what is wrong with the name of the cluster or berth, by default the stack's."""
    if isinstance(settings, EngineerSettings):
        yield from BERTH_NAMES.problems(NameOrStack(settings.name, stack), ("engineer",))
    elif not settings.cluster.existing:
        name = NameOrStack(settings.cluster.name, stack)
        yield from CLUSTER_NAMES.problems(name, ("environment",))


def reserved_names(settings: EnvironmentSettings) -> Iterable[Problem]:
    """Yield names of an environment whose namespaces are berth's own."""
    for kind, name, shape in settings.owners():
        # A job on the RayCluster of another owner is in that owner's namespace.
        if not (isinstance(shape, JobShape) and shape.cluster):
            yield from OWNER_NAMES.problems(name, ("environment", KEYS[kind], name))


def _with_article(kind: OwnerKind) -> str:
    return f"an {kind}" if kind == "engineer" else f"a {kind}"
