"""Rules of what runtime environments install, held to the RayCluster and to the nodes' network."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from berth.components.core.rules import Breach, Rules
from berth.components.core.settings import Settings
from berth.components.ray.complete_settings import RayClusterSettings

_RAY = re.compile(r"ray(?:\[[^]]*\])?\s*==\s*(\d+\.\d+\.\d+)", re.ASCII)
_FROM_THE_INTERNET = ("pip", "uv", "conda")
_OTHER_WAYS = frozenset(
    (
        "HTTPS_PROXY",
        "PIP_CONFIG_FILE",
        "PIP_FIND_LINKS",
        "PIP_INDEX_URL",
        "UV_DEFAULT_INDEX",
        "UV_INDEX_URL",
        "https_proxy",
    )
)
"""Variables by which packages come from elsewhere than the internet."""


@dataclass(frozen=True)
class Packages:
    """A runtime environment on its RayCluster.

    Attributes:
        values: keys and values of the runtime environment, as written.
        cluster: the RayCluster.
        internet: whether nodes have a way to the internet, as far as the settings say.
    """

    values: Mapping[str, Any]
    cluster: RayClusterSettings
    internet: bool

    @property
    def variables(self) -> set[str]:
        """Names of the environment variables of its processes."""
        own = self.values.get("env_vars")
        return {*self.cluster.env, *(own if isinstance(own, dict) else ())}


PACKAGES = Rules[Packages](Settings)
"""Rules of the packages and files of a runtime environment, a document of Ray's."""


@PACKAGES.warning("**")
def another_ray_in_a_runtime_env(packages: Packages) -> Iterator[Breach]:
    """Ray refuses a runtime environment with another Ray than the cluster's.

    Source: https://github.com/ray-project/ray, python/ray/_private/runtime_env/pip.py.
    """
    version = packages.cluster.ray_version
    for key in ("pip", "uv"):
        for requirement in _requirements(packages.values.get(key)):
            named = _RAY.match(requirement)
            if named and named[1] != version:
                yield Breach(
                    f"{requirement!r} is another Ray than the cluster's, {version}, and Ray refuses"
                    " to change its version; take it out, or write another `image`",
                    at=(key,),
                )


@PACKAGES.warning("**")
def packages_without_internet(packages: Packages) -> Iterator[Breach]:
    """Packages and files of the internet need a way there."""
    if packages.internet or packages.variables & _OTHER_WAYS:
        return
    for key in _FROM_THE_INTERNET:
        if packages.values.get(key):
            yield Breach(
                f"nodes have no way to the internet (`network.nat: false`), so that {key} finds no"
                " packages; put them into the image, or name an index that nodes reach:"
                " env: {PIP_INDEX_URL: URL}",
                at=(key,),
            )
    working_dir = packages.values.get("working_dir")
    if str(working_dir).startswith("https://"):
        yield Breach(
            "nodes have no way to the internet (`network.nat: false`), so that Ray cannot fetch"
            " this; write an address of Cloud Storage: gs://BUCKET/FILE.zip",
            at=("working_dir",),
        )


def _requirements(value: Any) -> list[str]:
    """Return the requirements of `pip` or `uv`: a list, or a mapping with `packages`."""
    entries = value.get("packages") if isinstance(value, dict) else value
    return [str(entry) for entry in entries] if isinstance(entries, list) else []
