"""Verdicts on the workers' claims, the devices behind them, and the pods' nodes. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from berth.components.cluster.api import Object
from berth.components.cluster.inventory import Claim, Device, DeviceKey
from berth.components.cluster.pods import why_not_ready
from berth.components.core.words import counted
from berth.components.hardware.names import DRANET_DRIVER, GPU, PCIE_ROOT
from berth.components.proof.checks import Check, listed


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
class Worker:
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
        return {key: name for claim in self.claims for key, name in claim.held.items()}


def judge_claims(
    workers: Sequence[Worker], devices: Iterable[Device], expected: Expected
) -> list[Check]:
    """Check that each worker has its NICs, and each claimed GPU the NIC of its PCIe root."""
    roots = {device.key: str(device.attributes.get(PCIE_ROOT) or "") for device in devices}
    return [_claims(workers, expected), _pairs(workers, roots, expected)]


def judge_scheduling(workers: Sequence[Worker], expected: Expected) -> Check:
    """Check that all workers run, and on how many nodes."""
    waiting = [f"{worker.name}: {why}" for worker in workers if (why := why_not_ready(worker.pod))]
    missing = expected.workers - len(workers)
    if waiting or missing > 0:
        ready = f"{len(workers) - len(waiting)} of {expected.workers} workers are ready"
        parts = [ready, listed(waiting), f"{missing} have no pod" if missing > 0 else ""]
        return Check("scheduling", "fail", "; ".join(filter(None, parts)))
    on = Counter(str(worker.node["metadata"]["name"]) for worker in workers if worker.node)
    if len(on) == 1 < len(workers):
        text = (
            f"all {len(workers)} workers on {next(iter(on))}: what they exchange need not leave"
            " that node"
        )
        return Check("scheduling", "pass", text)
    places = ", ".join(
        f"{count} on {name}" if count > 1 else name for name, count in sorted(on.items())
    )
    return Check(
        "scheduling",
        "pass",
        f"{counted(len(workers), 'worker')} on {counted(len(on), 'node')}: {places}",
    )


def _claims(workers: Sequence[Worker], expected: Expected) -> Check:
    if not expected.nics:
        return Check(
            "claims",
            "fail",
            f"not using the fabric: its workers claim no NICs, since {expected.why_no_nics}",
        )
    wrong = [f"{worker.name} {text}" for worker in workers if (text := _wrong(worker, expected))]
    if wrong or not workers:
        return Check("claims", "fail", listed(wrong) or "there are no worker pods")
    where = "the worker" if len(workers) == 1 else f"each of {len(workers)} workers"
    return Check(
        "claims",
        "pass",
        f"{counted(expected.nics, 'NIC')} of class {expected.device_class} in {where}",
    )


def _wrong(worker: Worker, expected: Expected) -> str:
    if not worker.claims:
        return f"has no claim; {counted(expected.nics, 'NIC')} expected"
    if waiting := [claim.name for claim in worker.claims if not claim.allocated]:
        return f"waits: nothing is allocated to its claim {waiting[0]}"
    classes = [name for (driver, _, _), name in worker.held.items() if driver == DRANET_DRIVER]
    if len(classes) != expected.nics:
        return f"has {counted(len(classes), 'NIC')}; {expected.nics} were expected"
    if others := sorted(set(classes) - {expected.device_class}):
        return f"has NICs of class {', '.join(others)}, not {expected.device_class}"
    return ""


def _pairs(workers: Sequence[Worker], roots: Mapping[DeviceKey, str], expected: Expected) -> Check:
    if not expected.claimed_gpus or not expected.nics:
        return Check(
            "pairs",
            "skipped",
            "its GPUs are not claimed" if expected.nics else "there are no claimed NICs",
        )
    wrong, count = [], 0
    for worker in workers:
        name = worker.name
        gpus, nics = (
            Counter(roots.get(key, "") for key in worker.held if key[0] == driver)
            for driver in (GPU, DRANET_DRIVER)
        )
        count += gpus.total()
        if "" in gpus or "" in nics:
            wrong.append(f"{name}: a device's PCIe root is not published")
        elif alone := gpus - nics:
            wrong.append(
                f"{name}: {counted(alone.total(), 'GPU')} without a NIC on"
                f" {', '.join(sorted(alone))}"
            )
        elif not gpus:
            wrong.append(f"{name}: no GPU is allocated to it")
    if wrong or not workers:
        return Check("pairs", "fail", listed(wrong) or "there are no worker pods")
    return Check("pairs", "pass", f"each of {count} GPUs has the NIC of its PCIe root")
