"""Hook that logs advice after an error of Google Cloud, on the resource that the error is about."""

import asyncio

import pulumi

from berth.components.gke.advice import Pooled, advice
from berth.components.gke.already_there import remedy_of


def explained(component: pulumi.Resource, name: str, project: str, pool: Pooled | None = None) -> pulumi.ErrorHook:
    """Return a hook that asks for no retry: the provider has retried long enough.

    It logs on a component, since a resource has no URN to log on until it is created.
    """

    async def explain(failure: pulumi.ErrorHookArgs) -> bool:
        error = "\n".join(failure.errors[:1])
        parent = await component.urn.future() or ""
        there = remedy_of(error, failure.urn, parent, pool.written if pool else "")
        for line in [there] if there else advice(error, project, pool):
            pulumi.log.error(line, component)
        # A task sends each line, in its first step, since the component has its URN by now. The
        # engine ends the program soon after it has this answer.
        await asyncio.sleep(0)
        return False

    return pulumi.ErrorHook(f"{name}-explained", explain)
