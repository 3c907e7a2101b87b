"""Threshold of the bus bandwidth, by the settings or by the line rates of NICs. Pure."""

from dataclasses import dataclass

from berth.components.hardware.machines import Machine

SHARE_OF_LINE_RATE = 0.7
"""Default threshold of the bus bandwidth, as a share of the NICs' line rates.

DraNet's own measurements of an all-reduce between two nodes have 92 and 96 % where NICs are beside
their GPUs and GPUDirect RDMA works, and 50 % where it doesn't; half the NICs give 50 % at best
(https://github.com/kubernetes-sigs/dranet, examples/oci_oke_examples/BM.GPU.GB200-v3.4/README.md,
Benchmark Results). The threshold lies between, with room for tensors of 1 GiB, which do not reach
the highest bandwidth yet.
"""


@dataclass(frozen=True)
class Threshold:
    """Expected bus bandwidth in GB/s, its source, and whether it holds for tensors of any size."""

    bus: float | None
    source: str
    always: bool = False


def threshold_of(machine: Machine, nics: int, given: float | None) -> Threshold:
    """Return the expected bandwidth; `given` is the threshold of the settings, in GB/s."""
    if given is not None:
        return Threshold(given, "nccl.minBusBandwidth", always=True)
    gbps = machine.series.gpu_nic_gbps
    if not nics or not gbps:
        return Threshold(
            None, "nothing is expected without RDMA NICs; nccl.minBusBandwidth sets a threshold"
        )
    bus = nics * gbps / 8 * SHARE_OF_LINE_RATE
    return Threshold(bus, f"{SHARE_OF_LINE_RATE:.0%} of {nics} × {gbps} Gbit/s ({machine.name})")
