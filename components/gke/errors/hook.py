"""Hook of Google's resources that logs what an error means, and what fixes it."""

import asyncio

import pulumi

from berth.components.gke.errors.advice import advice
from berth.components.gke.errors.already_there import import_remedy
from berth.components.gke.errors.failed_pool import FailedPool


def error_hook(
    component: pulumi.Resource, name: str, project: str, pool: FailedPool | None = None
) -> pulumi.ErrorHook:
    """Return a hook that logs advice and asks for no retry: the provider has retried long enough.

    Args:
        component: component that the advice is logged on, since a resource has no URN to log on
            until it is created.
        name: name of the component, from which the hook gets a name of its own.
        project: project of the environment.
        pool: node pool of the component; None for other components.
    """

    async def explain(failure: pulumi.ErrorHookArgs) -> bool:
        error = failure.errors[0] if failure.errors else ""
        parent = await component.urn.future() or ""
        remedy = import_remedy(error, failure.urn, parent, pool.written if pool else "")
        for line in [remedy] if remedy else advice(error, project, pool):
            pulumi.log.error(line, component)
        # A task sends each line, in its first step, since the component has its URN by now. The
        # engine ends the program soon after it has this answer.
        await asyncio.sleep(0)
        return False

    return pulumi.ErrorHook(f"{name}-explained", explain)
