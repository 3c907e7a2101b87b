"""What a cluster's objects show of the fabric: claims of the workers' pods, the devices behind them, and where the pods run: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from berth.components.cluster.pods import why_not_ready
from berth.components.hardware.names import DRANET_DRIVER, GPU, PCIE_ROOT
from berth.components.proof.gpu_evidence import Check

Object = dict[str, Any]

# Of a cluster with hundreds of workers that are all wrong, as many are named.
_NAMED = 4


@dataclass(frozen=True)
class Expected:
    """What a RayCluster should have, by its settings.

    Attributes:
        cluster: its name.
        pool: the pool of its workers.
        machine: that pool's machine type.
        workers: worker pods that there should be.
        gpus: GPUs of each.
        nics: NICs of each.
        claimed_gpus: its GPUs come by claims too.
        device_class: the class of its NICs.
        why_no_nics: why its workers have none, "" where they have.
    """

    cluster: str
    pool: str
    machine: str
    workers: int
    gpus: int
    nics: int
    claimed_gpus: bool
    device_class: str
    why_no_nics: str = ""


@dataclass(frozen=True)
class Worker:
    """One worker pod with what it claims.

    Attributes:
        pod: the pod.
        node: its node; None before it has one.
        claims: its ResourceClaims.
    """

    pod: Object
    node: Object | None
    claims: tuple[Object, ...]

    @property
    def name(self) -> str:
        """The pod's name."""
        return str(self.pod["metadata"]["name"])


@dataclass(frozen=True)
class Device:
    """A device that a claim was given.

    Attributes:
        name: its name in its driver's slice.
        driver: the driver.
        device_class: the class that it was asked by.
        root: its PCIe root, "" where the driver doesn't say.
        interface: what it is called in the pod, "" where the driver doesn't say.
    """

    name: str
    driver: str
    device_class: str
    root: str
    interface: str


def devices_of(worker: Worker, slices: Iterable[Object]) -> list[Device]:
    """The devices that a worker's claims were given.

    Args:
        worker: the worker.
        slices: all ResourceSlices.
    """
    attributes = _attributes(slices)
    found = []
    for claim in worker.claims:
        classes = {each["name"]: _class(each) for each in claim["spec"]["devices"].get("requests") or []}
        status = claim.get("status") or {}
        interfaces = {
            _key(each): str((each.get("networkData") or {}).get("interfaceName") or "")
            for each in status.get("devices") or []
        }
        for result in ((status.get("allocation") or {}).get("devices") or {}).get("results") or []:
            has = attributes.get(_key(result), {})
            found.append(
                Device(
                    name=result["device"],
                    driver=result["driver"],
                    # A request with alternatives is answered as `request/alternative`.
                    device_class=classes.get(result["request"].split("/")[0], ""),
                    root=str((has.get(PCIE_ROOT) or {}).get("string") or ""),
                    interface=interfaces.get(_key(result), ""),
                )
            )
    return found


def judge_claims(workers: Sequence[Worker], slices: Sequence[Object], expected: Expected) -> list[Check]:
    """Whether each worker has the NICs that it should, and each claimed GPU the NIC of its PCIe root."""
    return [_claims(workers, slices, expected), _pairs(workers, slices, expected)]


def judge_scheduling(workers: Sequence[Worker], expected: Expected) -> Check:
    """Whether all workers run, and on how many nodes."""
    waiting = [f"{each.name}: {why}" for each in workers if (why := why_not_ready(each.pod))]
    missing = expected.workers - len(workers)
    if waiting or missing > 0:
        parts = [f"{len(workers) - len(waiting)} of {expected.workers} workers are ready", *waiting[:_NAMED]]
        return Check("scheduling", "fail", "; ".join([*parts, f"{missing} have no pod"] if missing > 0 else parts))
    on = Counter(str(each.node["metadata"]["name"]) for each in workers if each.node)
    if len(on) == 1 < len(workers):
        text = f"all {len(workers)} workers on {next(iter(on))}: what they exchange need not leave that node"
        return Check("scheduling", "pass", text)
    places = ", ".join(f"{count} on {name}" if count > 1 else name for name, count in sorted(on.items()))
    return Check("scheduling", "pass", f"{_counted(len(workers), 'worker')} on {_counted(len(on), 'node')}: {places}")


def _claims(workers: Sequence[Worker], slices: Sequence[Object], expected: Expected) -> Check:
    if not expected.nics:
        return Check("claims", "fail", f"not using the fabric: its workers claim no NICs, since {expected.why_no_nics}")
    wrong = [f"{each.name} {text}" for each in workers if (text := _wrong_nics(each, slices, expected))]
    if wrong or not workers:
        return Check("claims", "fail", _listed(wrong) or "there are no worker pods")
    kind = f"{_counted(expected.nics, 'NIC')} of class {expected.device_class}"
    return Check(
        "claims",
        "pass",
        f"{kind} in {'the' if len(workers) == 1 else f'each of {len(workers)}'} worker{'s'[: len(workers) > 1]}",
    )


def _wrong_nics(worker: Worker, slices: Sequence[Object], expected: Expected) -> str:
    if not worker.claims:
        return f"has no claim; {expected.nics} NICs were expected"
    if waiting := [
        each["metadata"]["name"] for each in worker.claims if not (each.get("status") or {}).get("allocation")
    ]:
        return f"waits: nothing is allocated to its claim {waiting[0]}"
    nics = [each for each in devices_of(worker, slices) if each.driver == DRANET_DRIVER]
    if len(nics) != expected.nics:
        return f"has {_counted(len(nics), 'NIC')}; {expected.nics} were expected"
    if others := sorted({each.device_class for each in nics if each.device_class != expected.device_class}):
        return f"has NICs of class {', '.join(others)}, not {expected.device_class}"
    return ""


def _pairs(workers: Sequence[Worker], slices: Sequence[Object], expected: Expected) -> Check:
    if not expected.claimed_gpus or not expected.nics:
        return Check("pairs", "skipped", "its GPUs are not claimed" if expected.nics else "there are no claimed NICs")
    wrong, count = [], 0
    for worker in workers:
        devices = devices_of(worker, slices)
        gpus = Counter(each.root for each in devices if each.driver == GPU)
        nics = Counter(each.root for each in devices if each.driver == DRANET_DRIVER)
        count += gpus.total()
        if "" in gpus or "" in nics:
            wrong.append(f"{worker.name}: a device's PCIe root is not published")
        elif alone := gpus - nics:
            wrong.append(f"{worker.name}: {_counted(alone.total(), 'GPU')} without a NIC on {', '.join(sorted(alone))}")
        elif not gpus:
            wrong.append(f"{worker.name}: no GPU is allocated to it")
    if wrong or not workers:
        return Check("pairs", "fail", _listed(wrong) or "there are no worker pods")
    return Check("pairs", "pass", f"each of {count} GPUs has the NIC of its PCIe root")


def _attributes(slices: Iterable[Object]) -> Mapping[tuple[str, str, str], Object]:
    found: dict[tuple[str, str, str], Object] = {}
    newest: dict[tuple[str, str], int] = {}
    for each in slices:
        spec = each["spec"]
        pool = spec["pool"]["name"]
        generation = int(spec["pool"].get("generation") or 0)
        if generation < newest.get((spec["driver"], pool), 0):
            continue
        newest[spec["driver"], pool] = generation
        for device in spec.get("devices") or []:
            # v1beta1 has them under `basic` (https://pkg.go.dev/k8s.io/api/resource/v1beta1#Device).
            found[spec["driver"], pool, device["name"]] = (device.get("basic") or device).get("attributes") or {}
    return found


def _key(device: Object) -> tuple[str, str, str]:
    return device["driver"], device["pool"], device["device"]


def _class(request: Object) -> str:
    return str((request.get("exactly") or request).get("deviceClassName") or "")


def _listed(texts: Sequence[str]) -> str:
    more = len(texts) - _NAMED
    return "; ".join(texts[:_NAMED]) + (f"; and {more} more" if more > 0 else "")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"
