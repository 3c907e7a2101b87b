"""An error of Google Cloud is followed by what it means, on the resource that it is about."""

from __future__ import annotations

import asyncio

import pulumi

from berth.components.gke.advice import Pooled, advice


def explained(component: pulumi.Resource, name: str, project: str, pool: Pooled | None = None) -> pulumi.ErrorHook:
    """A hook for a resource of Google Cloud. It never asks for another try: the provider has tried long enough.

    Args:
        component: where to say it. The resource itself has no URN to speak for until it is made.
        name: tells the hook from others.
        project: Google Cloud project of the environment.
        pool: the node pool that the resource is.
    """

    async def explain(failure: pulumi.ErrorHookArgs) -> bool:
        others = asyncio.all_tasks()
        for line in advice("\n".join(failure.errors[:1]), project, pool):
            pulumi.log.error(line, component)
        # Sent by tasks of their own. The engine ends the program soon after it has this answer.
        await asyncio.gather(*(asyncio.all_tasks() - others))
        return False

    return pulumi.ErrorHook(f"{name}-explained", explain)
