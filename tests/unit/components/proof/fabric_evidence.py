"""Evidence of an all-reduce as the program sends it: two pods, two GPUs and NICs each."""

import re
from pathlib import Path
from typing import Any

from berth.components.proof.fabric.claims import Expected

CASES = Path(__file__).parent / "nccl_logs"
PODS = ("train-workers-worker-a", "train-workers-worker-b")
EXPECTED = Expected("train", 2, 2, 2, claimed_gpus=True, device_class="dranet")

_PROCESS = re.compile(r"^(\S+):(\d+):\d+ ", re.MULTILINE)


def logs_of(case: str) -> dict[str, list[str]]:
    """The logs of a case by pod, one for each process."""
    found: dict[tuple[str, str], str] = {}
    for line in (CASES / f"{case}.log").read_text().splitlines(keepends=True):
        match = _PROCESS.match(line)
        assert match, line
        key = match[1], match[2]
        found[key] = found.get(key, "") + line
    return {pod: [log for (name, _), log in found.items() if name == pod] for pod in PODS}


def _rank(rank: int, *, interfaces: list[str], gloo: bool) -> dict[str, Any]:
    return {
        "rank": rank,
        "pod": PODS[rank // 2],
        "interfaces": interfaces,
        "main": "eth0",
        "driver": "" if gloo else "580.95.05",
        "lockable": 8 * 2**20,
        "environment": {"NCCL_NET": "gIB", "NCCL_DEBUG": "WARN"},
        "script": {"NCCL_NET": "gIB"},
        "torch": "2.9.0",
        "cuda": "" if gloo else "12.8",
        "device": "" if gloo else "NVIDIA B200",
    }


def raw(case: str | None = "good", **changes: Any) -> dict[str, Any]:
    """Return the program's evidence: over NCCL with the logs of a case, over gloo with None."""
    gloo = case is None
    logs = [log for value in logs_of(case).values() for log in value] if case else []
    versions = {
        "nccl_built": "2.28.3",
        "nccl_loaded": "2.28.3",
        "nccl_file": "/usr/local/nvidia/lib64/libnccl.so.2",
    }
    sizes = [2**20, 2**28, 2**30]
    operations = {str(size): 10 for size in sizes}
    # As many bytes as two pods have to exchange at least, and one in a hundred more.
    half = int(1.01 * sum(sizes) * 10 / 2)
    moved = {name: {"sent": half, "received": half} for name in ("gpu0rdma0", "gpu1rdma0")}
    still = {name: {"sent": 900, "received": 900} for name in moved}
    rdma = {
        f"mlx5_{number}": {**item, "interface": name}
        for number, (name, item) in enumerate(moved.items())
    }
    eth0 = {"eth0": {"sent": 10**6, "received": 10**6}}
    return {
        "format": 1,
        "ray": "2.60.0",
        "backend": "gloo" if gloo else "nccl",
        "world": 4,
        "ranks": [_rank(rank, interfaces=sorted(moved), gloo=gloo) for rank in range(4)],
        "seed": {"want": 6.0, "got": [[6.0] * 4] * 4},
        "sweep": [
            {
                "bytes": size,
                "iterations": 5,
                "seconds": size / 6e10,
                "algorithm": 60.0,
                "bus": bus,
                "wrong": [],
            }
            for size, bus in zip(sizes, (12.0, 80.0, 90.0), strict=True)
        ],
        "stopped": "",
        "operations": operations,
        "traffic": {
            pod: {
                "interfaces": {
                    **eth0,
                    **(moved if gloo else still),
                    "lo": {"sent": 5, "received": 5},
                },
                "rdma": {} if gloo else rdma,
            }
            for pod in PODS
        },
        "logs": [{"rank": rank, "log": log, **versions} for rank, log in enumerate(logs)],
        "ray_collective": {"want": 6.0, "got": [[[6.0] * 4] * 2] * 2, "problem": ""},
        "problem": None,
        **changes,
    }
