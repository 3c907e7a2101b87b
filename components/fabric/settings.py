"""Settings of a worker's fabric: its NICs and NCCL, with their defaults."""

import re
from decimal import Decimal
from typing import Annotated, Protocol

from pydantic import AfterValidator, Field

from berth.components.core.settings import DefaultedSettings, Settings
from berth.components.core.types import Memory, NonEmpty, VariableName, must_match, parse_quantity
from berth.components.hardware.machines import GIB, NCCL_PROFILES
from berth.components.hardware.names import VISIBLE_DEVICES
from berth.components.sharing import Pool

_MIB = 2**20
_GIB = 2**30

_SHARED_MEMORY = Decimal(250 * _GIB)
"""Size of /dev/shm in bytes: Google's manifests for NCCL on A4 have 250Gi
(https://github.com/GoogleCloudPlatform/container-engine-accelerators,
gpudirect-rdma/nccl-test-a4.yaml)."""


def _check_variable(name: str) -> str:
    if name == VISIBLE_DEVICES:
        raise ValueError(
            f"{VISIBLE_DEVICES} asks NVIDIA's runtime for GPUs of other pods; take it out, and"
            " write `worker.gpus`"
        )
    return name


EnvironmentName = Annotated[VariableName, AfterValidator(_check_variable)]
"""Name of a variable that settings may give to Ray's containers."""

_PROFILES = ("auto", *NCCL_PROFILES)
_KNOWN = must_match(
    re.compile("|".join(_PROFILES)), f"is not one of {', '.join(map(repr, _PROFILES))}"
)


class NcclShape(DefaultedSettings):
    """NCCL, the library by which GPUs of one job talk, within a node and between nodes."""

    profile: Annotated[str, _KNOWN, Field(json_schema_extra={"enum": list(_PROFILES)})] = "auto"
    """Set of variables. `gib`: those that the node's gIB sets, where a worker has RDMA NICs.
    `a4`, `a3-ultra`: those of July 2025, pinned. `single-node`: keeps NCCL from failing on nodes
    with gIB without NICs. `auto`: by the worker's pool and NICs, `gib`, `single-node` or `none`.
    See `berth docs fabric#nccl`."""
    env: Annotated[dict[EnvironmentName, str], Field(examples=[{"NCCL_DEBUG": "INFO"}])] = {}
    """Variables that override the profile's; "" is a value."""
    library_path: Annotated[NonEmpty | None, Field(examples=["/opt/nccl/lib"])] = None
    """Folder in the image that is searched for libraries before the node's own, so that the node's
    NCCL does not shadow a newer one of the image, and `ray.util.collective` finds it. Default:
    none."""
    shared_memory: Annotated[Memory | None, Field(examples=["64Gi"])] = None
    """Size of /dev/shm of workers with NICs; it counts as the worker's memory. Default: 250Gi, or a
    quarter of the worker's memory if that is less."""
    min_bus_bandwidth: Annotated[Annotated[Decimal, Field(gt=0)] | None, Field(examples=[300])] = (
        None
    )
    """Bus bandwidth of a large all-reduce, in GB/s, below which `berth verify fabric` fails.
    Default: the machine type's."""


class Nccl(NcclShape):
    """NCCL's settings, complete; workers without NICs have no shared memory."""

    profile: str = "none"


class WorkerDevices(Settings):
    """Settings of a worker that the fabric's rules name; slice ray has all settings of a worker."""

    gpu_resource: str | None = None
    nics: int | None = None


class Worker(Protocol):
    """Worker of a group of equal ones: memory, NICs, GPUs or shares of them, and NCCL."""

    @property
    def memory(self) -> str: ...  # noqa: D102 - named in the class
    @property
    def gpus(self) -> int: ...  # noqa: D102
    @property
    def nics(self) -> int: ...  # noqa: D102
    @property
    def nccl(self) -> Nccl: ...  # noqa: D102


def nics_of(given: int | None, gpus: int | None, pool: Pool) -> int:
    """Return the number of RDMA NICs of one worker.

    Args:
        given: number in the settings. By default a claimed GPU comes with one, and a worker with
            all GPUs of a node has all NICs.
        gpus: number of the worker's GPUs or shares; None if unknown.
        pool: the worker's pool.
    """
    if given is not None:
        return given
    if pool.settings.by_dra:
        return min(gpus or 0, pool.settings.nics)
    whole = gpus is not None and gpus == pool.per_node > 0
    return pool.settings.nics if whole and not pool.shared else 0


def nccl_of(given: NcclShape, gpus: int | None, nics: int, memory: str, pool: Pool) -> Nccl:
    """Return NCCL's complete settings for one worker.

    Args:
        given: settings as written.
        gpus: number of the worker's GPUs or shares; None if unknown.
        nics: number of its RDMA NICs.
        memory: its memory as a quantity, such as 32Gi.
        pool: its pool.
    """
    shared_memory = given.shared_memory
    if shared_memory is None and nics:
        quarter = parse_quantity(memory) / 4
        shared_memory = _binary(max(Decimal(_MIB), min(_SHARED_MEMORY, quarter)))
    return Nccl(
        profile=_profile(given.profile, gpus, nics, pool),
        env=given.env,
        library_path=given.library_path,
        shared_memory=shared_memory,
        min_bus_bandwidth=given.min_bus_bandwidth,
    )


def _profile(given: str, gpus: int | None, nics: int, pool: Pool) -> str:
    """Return the profile; only nodes with RDMA have gIB, to use or to ignore."""
    if given not in ("auto", GIB):
        return given
    if not gpus or not pool.settings.nics:
        return "none"
    return GIB if nics else "single-node"


def _binary(amount: Decimal) -> str:
    """Return bytes as a Kubernetes quantity, in GiB where that is a whole number."""
    return f"{int(amount) // _GIB}Gi" if amount % _GIB == 0 else f"{int(amount) // _MIB}Mi"
