"""Verdicts on the workers of a RayCluster, before the program runs. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from berth.components.cluster.api import Object
from berth.components.cluster.inventory import Claim, Device, DeviceKey
from berth.components.cluster.pods import why_not_ready
from berth.components.core.words import counted
from berth.components.hardware.names import DRANET_DRIVER, GPU, PCIE_ROOT
from berth.components.proof.checks import Check, first_texts


@dataclass(frozen=True)
class Expected:
    """RayCluster as its settings describe it, with GPUs and NICs of each worker."""

    cluster: str
    workers: int
    gpus: int
    nics: int
    claimed_gpus: bool
    """Whether the GPUs come by claims too."""
    device_class: str
    """Class of the NICs."""
    why_no_nics: str = ""
    """Why workers have no NICs; "" where they have."""
    group: str = ""
    """Group of the workers; "" for all workers."""
    sourced: bool = False
    """Whether the workers take the environment of their node's gIB."""


@dataclass(frozen=True)
class WorkerPod:
    """Worker pod with its node and its ResourceClaims."""

    pod: Object
    node: Object | None
    claims: tuple[Claim, ...]

    @property
    def name(self) -> str:
        """The pod's name."""
        return str(self.pod["metadata"]["name"])

    @property
    def held(self) -> dict[DeviceKey, str]:
        """Classes of the devices that the claims got, by device."""
        held: dict[DeviceKey, str] = {}
        for claim in self.claims:
            held |= claim.held
        return held


def judge_claims(
    workers: Sequence[WorkerPod], devices: Iterable[Device], expected: Expected
) -> list[Check]:
    """Check that each worker has its NICs, and each claimed GPU the NIC of its PCIe root."""
    roots = {device.key: str(device.attributes.get(PCIE_ROOT) or "") for device in devices}
    return [_claims(workers, expected), _pairs(workers, roots, expected)]


def judge_scheduling(workers: Sequence[WorkerPod], expected: Expected) -> Check:
    """Check that all workers run, and on how many nodes."""
    waiting: list[str] = []
    for worker in workers:
        why = why_not_ready(worker.pod)
        if why:
            waiting.append(f"{worker.name}: {why}")
    missing = expected.workers - len(workers)
    if waiting or missing > 0:
        parts = [f"{len(workers) - len(waiting)} of {expected.workers} workers are ready"]
        if waiting:
            parts.append(first_texts(waiting))
        if missing > 0:
            parts.append(f"{missing} have no pod")
        return Check("scheduling", "fail", "; ".join(parts))
    return Check("scheduling", "pass", _placement(workers))


def _placement(workers: Sequence[WorkerPod]) -> str:
    """Return the nodes of workers, with the number of workers on each."""
    on = Counter(str(worker.node["metadata"]["name"]) for worker in workers if worker.node)
    if len(on) == 1 < len(workers):
        return (
            f"all {len(workers)} workers on {next(iter(on))}: what they exchange need not leave"
            " that node"
        )
    places = ", ".join(
        f"{count} on {name}" if count > 1 else name for name, count in sorted(on.items())
    )
    return f"{counted(len(workers), 'worker')} on {counted(len(on), 'node')}: {places}"


def _claims(workers: Sequence[WorkerPod], expected: Expected) -> Check:
    if not expected.nics:
        return Check(
            "claims",
            "fail",
            f"not using the fabric: its workers claim no NICs, since {expected.why_no_nics}",
        )
    wrong: list[str] = []
    for worker in workers:
        problem = _wrong_claims(worker, expected)
        if problem:
            wrong.append(f"{worker.name} {problem}")
    if wrong or not workers:
        return Check("claims", "fail", first_texts(wrong) or "there are no worker pods")
    where = "the worker" if len(workers) == 1 else f"each of {len(workers)} workers"
    return Check(
        "claims",
        "pass",
        f"{counted(expected.nics, 'NIC')} of class {expected.device_class} in {where}",
    )


def _wrong_claims(worker: WorkerPod, expected: Expected) -> str:
    if not worker.claims:
        return f"has no claim; {counted(expected.nics, 'NIC')} expected"
    for claim in worker.claims:
        if not claim.allocated:
            return f"waits: nothing is allocated to its claim {claim.name}"
    classes = [name for (driver, _, _), name in worker.held.items() if driver == DRANET_DRIVER]
    if len(classes) != expected.nics:
        return f"has {counted(len(classes), 'NIC')}; {expected.nics} were expected"
    others = sorted(set(classes) - {expected.device_class})
    if others:
        return f"has NICs of class {', '.join(others)}, not {expected.device_class}"
    return ""


def _pairs(
    workers: Sequence[WorkerPod], roots: Mapping[DeviceKey, str], expected: Expected
) -> Check:
    if not expected.claimed_gpus or not expected.nics:
        return Check(
            "pairs",
            "skipped",
            "its GPUs are not claimed" if expected.nics else "there are no claimed NICs",
        )
    wrong: list[str] = []
    count = 0
    for worker in workers:
        gpus = _roots_of(worker, GPU, roots)
        count += gpus.total()
        if problem := _unpaired(gpus, _roots_of(worker, DRANET_DRIVER, roots)):
            wrong.append(f"{worker.name}: {problem}")
    if wrong or not workers:
        return Check("pairs", "fail", first_texts(wrong) or "there are no worker pods")
    return Check("pairs", "pass", f"each of {count} GPUs has the NIC of its PCIe root")


def _roots_of(worker: WorkerPod, driver: str, roots: Mapping[DeviceKey, str]) -> Counter[str]:
    """Return the PCIe roots of a worker's devices of a driver; "" for one that is not published."""
    return Counter(roots.get(key, "") for key in worker.held if key[0] == driver)


def _unpaired(gpus: Counter[str], nics: Counter[str]) -> str:
    """Return why GPUs are without a NIC on their PCIe roots; empty where each has one."""
    if "" in gpus or "" in nics:
        return "a device's PCIe root is not published"
    alone = gpus - nics
    if alone:
        return f"{counted(alone.total(), 'GPU')} without a NIC on {', '.join(sorted(alone))}"
    return "" if gpus else "no GPU is allocated to it"
