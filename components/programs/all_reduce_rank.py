"""Processes of the all-reduce, and the facts that they report about their pods.

One sums by Ray's own collective library, the job of nccl_allreduce_multigpu.py in the DraNet
documentation (https://github.com/kubernetes-sigs/dranet, site/content/docs/user/kuberay.md). Runs
in the same module as all_reduce.py, before it. Python 3.9 and later; torch is imported where it is
used.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import resource
import shutil
import socket
import struct
import subprocess
import tempfile
import time
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

NCCL_LOG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV,COLL,GRAPH,TUNING"}

GROUP = "berth-all-reduce"
"""Name of the group of Ray's collective library."""

INTERFACES = Path("/sys/class/net")

GIB_SCRIPT = Path("/usr/local/gib/scripts/set_nccl_env.sh")

_SIOCGIFADDR = 0x8915
_IFF_UP = 1
_CAP_IPC_LOCK = 14


class RankProcess:
    """Process of the collective, with one GPU or none."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank = rank
        self.world = world
        self.folder = ""
        self.torch: Any = None

    def about(self) -> dict[str, Any]:
        """Return facts about this process and its pod."""
        report: dict[str, Any] = {
            "rank": self.rank,
            "pod": socket.gethostname(),
            "interfaces": fabric_interfaces(),
            "main": main_interface(),
            "driver": driver_version(),
            "lockable": lockable_memory(),
            "environment": nccl_variables(dict(os.environ)),
            "script": script_environment(),
        }
        try:
            import torch  # noqa: PLC0415 - not every image has it
            import torch.distributed as dist  # noqa: PLC0415
        except (ImportError, OSError) as error:
            return {**report, "torch": None, "problem": str(error)}
        self.torch = torch
        cuda = bool(torch.cuda.is_available())
        return {
            **report,
            "torch": str(torch.__version__),
            "cuda": str(torch.version.cuda or ""),
            "backend": "nccl" if cuda and dist.is_nccl_available() else "gloo",
            "device": str(torch.cuda.get_device_name(0)) if cuda else "",
        }

    def meeting_point(self) -> tuple[str, int]:
        """Return an address of this process's pod and a free port."""
        import ray  # noqa: PLC0415 - only in the cluster

        address = str(ray.util.get_node_ip_address())
        with socket.socket() as probe:
            probe.bind((address, 0))
            return address, int(probe.getsockname()[1])

    def join(self, backend: str, address: str, port: int, seconds: int) -> None:
        """Enter the process group; return when all processes are in it."""
        self.folder = tempfile.mkdtemp(prefix=f"berth-all-reduce-{self.rank}-")
        os.environ.update(NCCL_LOG, NCCL_DEBUG_FILE=str(Path(self.folder) / "nccl.log"))
        # Of several names, gloo takes another one for each collective.
        names = ",".join(with_address(fabric_interfaces())) or main_interface()
        os.environ.setdefault("GLOO_SOCKET_IFNAME", names)
        self.device = self.torch.device("cuda:0" if backend == "nccl" else "cpu")
        self.torch.distributed.init_process_group(
            backend,
            init_method=f"tcp://{address}:{port}",
            rank=self.rank,
            world_size=self.world,
            timeout=timedelta(seconds=seconds),
        )
        self.torch.distributed.all_reduce(self.torch.zeros(1, device=self.device))
        self._finish()

    def seed(self) -> list[float]:
        """Sum ones of even ranks and twos of odd ranks, four elements each."""
        tensor = self.torch.ones(4, device=self.device) * (1 + self.rank % 2)
        self.torch.distributed.all_reduce(tensor)
        return [float(value) for value in tensor.cpu()]

    def measure(self, size: int, iterations: int, warm_up: int) -> tuple[bool, float]:
        """Return whether an all-reduce is right, and the seconds of `iterations` of them."""
        # Small whole numbers: sums of floats are exact then, whatever their order.
        tensor = self.torch.full((size // 4,), float(self.rank + 1), device=self.device)
        tensor[::2] *= 2
        self.torch.distributed.all_reduce(tensor)
        total = float(self.world * (self.world + 1) // 2)
        right = bool((tensor[1::2] == total).all()) and bool((tensor[::2] == 2 * total).all())
        tensor.zero_()
        for _ in range(warm_up):
            self.torch.distributed.all_reduce(tensor)
        self._finish()
        self.torch.distributed.barrier()
        self._finish()
        begin = time.perf_counter()
        for _ in range(iterations):
            self.torch.distributed.all_reduce(tensor)
        self._finish()
        return right, time.perf_counter() - begin

    def traffic(self) -> dict[str, Any]:
        """Return the bytes that the pod's interfaces and RDMA devices have moved so far."""
        return {"interfaces": interface_bytes(), "rdma": rdma_bytes()}

    def log(self, limit: int) -> dict[str, Any]:
        """Return NCCL's log of this process and its versions; works while a collective hangs."""
        text = ""
        if self.folder:
            with suppress(OSError):
                text = (Path(self.folder) / "nccl.log").read_text(errors="replace")
        return {"rank": self.rank, "log": both_ends(text, limit), **nccl_versions()}

    def lost_log(self, limit: int) -> dict[str, Any]:
        """Return and remove NCCL's log of a process of this rank that ended in this pod."""
        for folder in Path(tempfile.gettempdir()).glob(f"berth-all-reduce-{self.rank}-*"):
            self.folder = str(folder)
        return self.log(limit)

    def leave(self) -> None:
        """Remove the log."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _finish(self) -> None:
        """Wait for the GPU: CUDA's calls return before their work is done."""
        if self.device.type == "cuda":
            self.torch.cuda.synchronize()


class Member:
    """Process with all GPUs of a worker, and a tensor on each of them."""

    def __init__(self, rank: int, world: int, gpus: int) -> None:
        self.rank = rank
        self.world = world
        self.gpus = gpus

    def sum(self) -> list[list[float]]:
        """Sum four ones of each even GPU and four twos of each odd one, over all workers."""
        # CuPy finds no NCCL of its own, but takes the one that torch has loaded.
        import torch  # noqa: PLC0415
        from ray.util import collective  # noqa: PLC0415

        tensors: list[Any] = [
            torch.ones(4, device=f"cuda:{number}") * (1 + number % 2) for number in range(self.gpus)
        ]
        collective.init_collective_group(self.world, self.rank, "nccl", GROUP)
        collective.allreduce_multigpu(tensors, GROUP)
        sums = [list(map(float, tensor.cpu())) for tensor in tensors]
        collective.destroy_collective_group(GROUP)
        return sums


def expected_sum(world: int, gpus: int) -> float:
    """Return what every element must be: 24 for two workers with eight GPUs each."""
    return float(world * (gpus + gpus // 2))


def both_ends(text: str, limit: int) -> str:
    """Return a text, or the beginning and end of one that is too long."""
    if len(text) <= limit:
        return text
    head = limit * 3 // 4
    tail = limit - head
    return f"{text[:head]}\n[{len(text) - limit} characters left out]\n{text[-tail:]}"


def main_interface() -> str:
    """Return the interface of the pods' network: the one with the default route."""
    with suppress(OSError):
        for line in Path("/proc/net/route").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1] == "00000000":
                return fields[0]
    return "eth0"


def fabric_interfaces() -> list[str]:
    """Return the interfaces of claims: those that are up, but the pods' network and loopback."""
    own = {"lo", main_interface()}
    return [
        path.name for path in sorted(INTERFACES.iterdir()) if path.name not in own and is_up(path)
    ]


def is_up(interface: Path) -> bool:
    """Return whether an interface is up; the kernel's own interfaces for tunnels are not."""
    with suppress(OSError, ValueError):
        return bool(int((interface / "flags").read_text(), 16) & _IFF_UP)
    return False


def with_address(interfaces: list[str]) -> list[str]:
    """Return the interfaces with an IPv4 address: gloo fails on one without."""
    names = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for name in interfaces:
            with suppress(OSError):
                fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                names.append(name)
    return names


def interface_bytes() -> dict[str, dict[str, int]]:
    """Return bytes sent and received by each interface."""
    counted = {}
    for path in sorted(INTERFACES.iterdir()):
        with suppress(OSError, ValueError):
            counted[path.name] = {
                "sent": int((path / "statistics" / "tx_bytes").read_text()),
                "received": int((path / "statistics" / "rx_bytes").read_text()),
            }
    return counted


def rdma_bytes() -> dict[str, dict[str, Any]]:
    """Return bytes of each RDMA device, and its network interface, which does not count them.

    The counters are in words of four bytes (Linux,
    Documentation/ABI/stable/sysfs-class-infiniband).
    """
    counted: dict[str, dict[str, Any]] = {}
    devices = Path("/sys/class/infiniband")
    if not devices.is_dir():
        return counted
    for device in sorted(devices.iterdir()):
        sent = 0
        received = 0
        ports = list((device / "ports").glob("*/counters"))
        try:
            for counters in ports:
                sent += 4 * int((counters / "port_xmit_data").read_text())
                received += 4 * int((counters / "port_rcv_data").read_text())
        except (OSError, ValueError):
            continue
        names = sorted(path.name for path in (device / "device" / "net").glob("*"))
        counted[device.name] = {
            "sent": sent,
            "received": received,
            "interface": names[0] if names else "",
        }
    return counted


def driver_version() -> str:
    """Return the version of NVIDIA's kernel driver; "" without one."""
    with suppress(OSError, IndexError):
        words = Path("/proc/driver/nvidia/version").read_text().splitlines()[0].split()
        return next(word for word in words if word[0].isdigit() and "." in word)
    return ""


def nccl_variables(variables: dict[str, str]) -> dict[str, str]:
    """Return the variables that NCCL reads."""
    return {name: value for name, value in sorted(variables.items()) if name.startswith("NCCL_")}


def script_environment() -> dict[str, str] | None:
    """Return the variables that the script of this node's gIB sets; None without the script."""
    if not GIB_SCRIPT.is_file():
        return None
    others = {name: value for name, value in os.environ.items() if not name.startswith("NCCL_")}
    command = ["bash", "-c", f". {GIB_SCRIPT} >/dev/null 2>&1; env -0"]
    done = subprocess.run(
        command, env=others, stdout=subprocess.PIPE, text=True, timeout=60, check=False
    )
    return nccl_variables(
        dict(entry.split("=", 1) for entry in done.stdout.split("\0") if "=" in entry)
    )


def lockable_memory() -> int:
    """Return the bytes that this process may lock, and RDMA register; -1 without a limit.

    Linux registers no more than RLIMIT_MEMLOCK of a process without CAP_IPC_LOCK
    (drivers/infiniband/core/umem.c, ib_umem_get).
    """
    with suppress(OSError, ValueError, StopIteration):
        status = Path("/proc/self/status").read_text().splitlines()
        effective = int(next(line.split()[1] for line in status if line.startswith("CapEff:")), 16)
        if effective >> _CAP_IPC_LOCK & 1:
            return -1
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return -1 if soft == resource.RLIM_INFINITY else soft


def nccl_versions() -> dict[str, str]:
    """Return torch's version of NCCL, and version and file of the loaded library."""
    file = _loaded_library()
    loaded = ""
    if file:
        with suppress(OSError, AttributeError):
            number = ctypes.c_int()
            ctypes.CDLL(file).ncclGetVersion(ctypes.byref(number))
            loaded = nccl_version(number.value)
    return {"nccl_built": _version_of_torch(), "nccl_loaded": loaded, "nccl_file": file}


def _version_of_torch() -> str:
    """Return the version of NCCL that torch was built with; "" without torch."""
    with suppress(Exception):
        import torch  # noqa: PLC0415

        version = torch.cuda.nccl.version()
        if isinstance(version, tuple):
            return ".".join(map(str, version))
        return nccl_version(int(version))
    return ""


def _loaded_library() -> str:
    """Return the file of the NCCL that this process has loaded; "" without one."""
    with suppress(OSError):
        lines = Path("/proc/self/maps").read_text().splitlines()
        return min((line.split()[-1] for line in lines if "libnccl.so" in line), default="")
    return ""


def nccl_version(number: int) -> str:
    """Return NCCL's version from its number: 22304 is 2.23.4, and 2708, before 2.9, is 2.7.8."""
    before_2_9 = 10000
    if number < before_2_9:
        return f"{number // 1000}.{number % 1000 // 100}.{number % 100}"
    return f"{number // 10000}.{number % 10000 // 100}.{number % 100}"
