"""Choice of a pool for a head or for workers: by its name, or the only one that fits."""

from berth.components.core.nearest import did_you_mean
from berth.components.core.problems import Problem, SettingPath
from berth.components.ray.placed import AvailablePools
from berth.components.sharing import Pool


def chosen_pool(
    name: str | None, role: str, path: SettingPath, available: AvailablePools, *, gpus: bool
) -> Pool | Problem | None:
    """Return a pool, or what is wrong; None if pools with problems of their own may decide it.

    Args:
        name: name of the pool in the settings, if they have one.
        role: `head` or `worker`.
        path: path of the pod's settings.
        available: pools of the environment.
        gpus: whether the pod asks for GPUs.
    """
    at_pool: SettingPath = (*path, "pool")
    pools = available.pools
    if name is not None:
        names = {*pools, *available.unknown}
        if name not in names:
            return Problem(at_pool, f"there is no pool {name!r}{did_you_mean(name, names)}")
        return pools.get(name)
    if available.unknown:
        return None
    fitting = sorted(name for name, pool in pools.items() if bool(pool.per_node) == gpus)
    if len(fitting) == 1:
        return pools[fitting[0]]
    kind = "with GPUs" if gpus else "without GPUs"
    if fitting:
        reason = f"several pools are {kind}: {', '.join(fitting)}"
    else:
        reason = f"no pool is {kind}; pools are {', '.join(sorted(pools))}"
    return Problem(at_pool, f"is required, since {reason} (or set defaults.{role}.pool)")
