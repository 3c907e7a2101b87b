"""Rules of operators' settings: contradictions, and settings that nothing would use."""

from collections.abc import Iterator

from berth.components.core.problems import Problem
from berth.components.operators.dranet import DraNet
from berth.components.operators.rules.dranet import DRANET
from berth.components.operators.rules.every_operator import EVERY_OPERATOR, chosen_operators
from berth.components.operators.rules.gpu_operator import GPU_OPERATOR
from berth.components.operators.rules.helm_values import HELM_VALUES
from berth.components.operators.rules.kuberay import KUBERAY
from berth.components.operators.settings import OperatedSettings
from berth.components.operators.site import Site
from berth.components.sharing import offered_pools

_ENVIRONMENT = ("environment",)
_OPERATORS = (*_ENVIRONMENT, "operators")


def problems(environment: OperatedSettings) -> Iterator[Problem]:
    """Yield settings of operators that contradict each other, or that nothing would use."""
    for chosen in chosen_operators(environment):
        yield from EVERY_OPERATOR.problems(chosen, _OPERATORS)
    operators = environment.operators
    yield from KUBERAY.problems(environment, _ENVIRONMENT)
    yield from GPU_OPERATOR.problems(operators.gpu, (*_OPERATORS, "gpu"))
    if any(DraNet.serves(pool) for pool in environment.pools.values()):
        yield from DRANET.problems(operators.dranet, (*_OPERATORS, "dranet"))


def warnings(environment: OperatedSettings) -> Iterator[Problem]:
    """Yield Helm values that change what berth sets, and values that the chart does not know."""
    site = Site(offered_pools(environment.pools, environment.sharing))
    for operator in environment.operators.on(site):
        yield from HELM_VALUES.warnings(operator, _OPERATORS)
