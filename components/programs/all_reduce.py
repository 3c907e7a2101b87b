"""All-reduce over every GPU of a RayCluster, as the driver of a Ray job.

Prints one piece of evidence at the end, whatever happens, and ends with 0 when it could: what the evidence means is judged by
whoever reads it. Python 3.9 and later; torch is only imported in the processes of the collective.
"""

from __future__ import annotations

import argparse
import base64
import ctypes
import fcntl
import json
import os
import resource
import shutil
import socket
import struct
import sys
import tempfile
import time
import zlib
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

MARKER = "berth-all-reduce"
"""Begins each line of evidence: marker, number of the piece, number of pieces, the piece."""

PIECE = 4000
"""Characters of one piece: what relays logs may cut lines that are much longer."""

LOGS = 8 * 2**20
"""Bytes of NCCL's logs that are kept, of all processes together."""

SMALLEST = 1024
"""Bytes of the smallest tensor of the sweep."""

LARGEST = {"nccl": 2**30, "gloo": 2**26}
"""Bytes of the largest one where nothing else is asked: CPUs reduce slowly, and their pods are small."""

LONGEST_ERROR = 300
"""Characters of an error: Ray adds advice for every case to its own."""

MOST_ITERATIONS = 20
SECONDS_A_SIZE = 2.0

NCCL_LOG = {"NCCL_DEBUG": "INFO", "NCCL_DEBUG_SUBSYS": "INIT,NET,ENV,COLL,GRAPH,TUNING"}

INTERFACES = Path("/sys/class/net")

_SIOCGIFADDR = 0x8915
_IFF_UP = 1
_CAP_IPC_LOCK = 14


class Rank:
    """One process of the collective, with one GPU or none."""

    def __init__(self, rank: int, world: int) -> None:
        self.rank = rank
        self.world = world
        self.folder = ""

    def about(self) -> dict[str, Any]:
        """Where this process is, and what it finds there."""
        found: dict[str, Any] = {
            "rank": self.rank,
            "pod": socket.gethostname(),
            "interfaces": fabric_interfaces(),
            "main": main_interface(),
            "driver": driver_version(),
            "lockable": lockable_memory(),
        }
        try:
            import torch  # noqa: PLC0415 - not every image has it
            import torch.distributed as dist  # noqa: PLC0415
        except (ImportError, OSError) as error:
            return {**found, "torch": None, "problem": str(error)}
        cuda = bool(torch.cuda.is_available())
        return {
            **found,
            "torch": str(torch.__version__),
            "cuda": str(torch.version.cuda or ""),
            "backend": "nccl" if cuda and dist.is_nccl_available() else "gloo",
            "device": str(torch.cuda.get_device_name(0)) if cuda else "",
        }

    def meeting_point(self) -> tuple[str, int]:
        """An address of this process's pod and a port that is free there."""
        import ray  # noqa: PLC0415 - only in the cluster

        address = str(ray.util.get_node_ip_address())
        with socket.socket() as probe:
            probe.bind((address, 0))
            return address, int(probe.getsockname()[1])

    def join(self, backend: str, address: str, port: int, seconds: int) -> None:
        """Enter the process group; returns when all are in it."""
        import torch  # noqa: PLC0415
        import torch.distributed as dist  # noqa: PLC0415

        self.folder = tempfile.mkdtemp(prefix="berth-all-reduce-")
        os.environ.update(NCCL_LOG, NCCL_DEBUG_FILE=str(Path(self.folder) / "nccl.log"))
        # With several names gloo takes them in turn, one collective after the other.
        os.environ["GLOO_SOCKET_IFNAME"] = ",".join(addressed(fabric_interfaces())) or main_interface()
        self.device = torch.device("cuda:0" if backend == "nccl" else "cpu")
        dist.init_process_group(
            backend,
            init_method=f"tcp://{address}:{port}",
            rank=self.rank,
            world_size=self.world,
            timeout=timedelta(seconds=seconds),
        )
        dist.all_reduce(torch.zeros(1, device=self.device))
        self._finish()

    def seed(self) -> list[float]:
        """Ones of even ranks and twos of odd ranks, four of each, summed over all."""
        import torch  # noqa: PLC0415
        import torch.distributed as dist  # noqa: PLC0415

        tensor = torch.ones(4, device=self.device) * (1 + self.rank % 2)
        dist.all_reduce(tensor)
        return [float(value) for value in tensor.cpu()]

    def measure(self, size: int, iterations: int, warm_up: int) -> tuple[bool, float]:
        """Whether every element of one all-reduce is right, and seconds of `iterations` of them."""
        import torch  # noqa: PLC0415
        import torch.distributed as dist  # noqa: PLC0415

        # Small whole numbers: sums of floats are exact then, whatever their order.
        tensor = torch.full((size // 4,), float(self.rank + 1), device=self.device)
        tensor[::2] *= 2
        dist.all_reduce(tensor)
        total = float(self.world * (self.world + 1) // 2)
        right = bool((tensor[1::2] == total).all()) and bool((tensor[::2] == 2 * total).all())
        tensor.zero_()
        for _ in range(warm_up):
            dist.all_reduce(tensor)
        self._finish()
        dist.barrier()
        self._finish()
        begin = time.perf_counter()
        for _ in range(iterations):
            dist.all_reduce(tensor)
        self._finish()
        return right, time.perf_counter() - begin

    def traffic(self) -> dict[str, Any]:
        """Bytes that the pod's interfaces and RDMA devices have moved so far."""
        return {"interfaces": interface_bytes(), "rdma": rdma_bytes()}

    def log(self, limit: int) -> dict[str, Any]:
        """NCCL's own log of this process, and the versions of NCCL; works while a collective hangs."""
        text = ""
        with suppress(OSError):
            text = bounded((Path(self.folder) / "nccl.log").read_text(errors="replace"), limit) if self.folder else ""
        return {"rank": self.rank, "log": text, **nccl_versions()}

    def leave(self) -> None:
        """Forget what was written."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)

    def _finish(self) -> None:
        """Wait for the GPU: CUDA's calls return before their work is done."""
        if self.device.type == "cuda":
            import torch  # noqa: PLC0415

            torch.cuda.synchronize()


def main_interface() -> str:
    """The interface of the pod's own network: the one with the default route."""
    with suppress(OSError):
        for line in Path("/proc/net/route").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1] == "00000000":
                return fields[0]
    return "eth0"


def fabric_interfaces() -> list[str]:
    """Interfaces that a claim brought: those that are up, but for the pod's own and the loopback."""
    own = {"lo", main_interface()}
    return [path.name for path in sorted(INTERFACES.iterdir()) if path.name not in own and is_up(path)]


def is_up(interface: Path) -> bool:
    """Whether an interface is switched on: those that the kernel keeps for tunnels are not."""
    with suppress(OSError, ValueError):
        return bool(int((interface / "flags").read_text(), 16) & _IFF_UP)
    return False


def addressed(interfaces: list[str]) -> list[str]:
    """Those of the interfaces that have an IPv4 address: gloo fails on one without."""
    found = []
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        for name in interfaces:
            with suppress(OSError):
                fcntl.ioctl(probe, _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
                found.append(name)
    return found


def interface_bytes() -> dict[str, dict[str, int]]:
    """Bytes sent and received by each interface."""
    found = {}
    for path in sorted(INTERFACES.iterdir()):
        with suppress(OSError, ValueError):
            found[path.name] = {
                "sent": int((path / "statistics" / "tx_bytes").read_text()),
                "received": int((path / "statistics" / "rx_bytes").read_text()),
            }
    return found


def rdma_bytes() -> dict[str, dict[str, Any]]:
    """Bytes sent and received by each RDMA device, which its network interface doesn't count, and that interface's name.

    The counters are in words of four bytes (Linux, Documentation/ABI/stable/sysfs-class-infiniband).
    """
    found: dict[str, dict[str, Any]] = {}
    devices = Path("/sys/class/infiniband")
    for device in sorted(devices.iterdir()) if devices.is_dir() else []:
        sent = received = 0
        ports = list((device / "ports").glob("*/counters"))
        try:
            for counters in ports:
                sent += 4 * int((counters / "port_xmit_data").read_text())
                received += 4 * int((counters / "port_rcv_data").read_text())
        except (OSError, ValueError):
            continue
        names = sorted(path.name for path in (device / "device" / "net").glob("*"))
        found[device.name] = {"sent": sent, "received": received, "interface": names[0] if names else ""}
    return found


def driver_version() -> str:
    """The version of NVIDIA's kernel driver; "" without one."""
    with suppress(OSError, IndexError):
        words = Path("/proc/driver/nvidia/version").read_text().splitlines()[0].split()
        return next(word for word in words if word[0].isdigit() and "." in word)
    return ""


def lockable_memory() -> int:
    """Bytes that this process may lock, which is what RDMA may register of a node's memory; -1 without a limit.

    Linux registers no more than RLIMIT_MEMLOCK of a process without CAP_IPC_LOCK (drivers/infiniband/core/umem.c, ib_umem_get).
    """
    with suppress(OSError, ValueError, StopIteration):
        status = Path("/proc/self/status").read_text().splitlines()
        effective = int(next(line.split()[1] for line in status if line.startswith("CapEff:")), 16)
        if effective >> _CAP_IPC_LOCK & 1:
            return -1
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return -1 if soft == resource.RLIM_INFINITY else soft


def nccl_versions() -> dict[str, str]:
    """NCCL as torch was built with it, and the library that is loaded: its version and file."""
    built = ""
    with suppress(Exception):
        import torch  # noqa: PLC0415

        version = torch.cuda.nccl.version()
        built = ".".join(map(str, version)) if isinstance(version, tuple) else nccl_version(int(version))
    loaded, file = "", ""
    with suppress(OSError, AttributeError):
        files = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "libnccl.so" in line}
        file = min(files, default="")
        if file:
            number = ctypes.c_int()
            ctypes.CDLL(file).ncclGetVersion(ctypes.byref(number))
            loaded = nccl_version(number.value)
    return {"nccl_built": built, "nccl_loaded": loaded, "nccl_file": file}


def nccl_version(number: int) -> str:
    """NCCL's version from its number: 22304 is 2.23.4, and before 2.9 the minor version had two digits less."""
    before_2_9 = 10000
    if number < before_2_9:
        return f"{number // 1000}.{number % 1000 // 100}.{number % 100}"
    return f"{number // 10000}.{number % 10000 // 100}.{number % 100}"


def bounded(text: str, limit: int) -> str:
    """The beginning and the end of a text that is too long, with what was left out told between them."""
    if len(text) <= limit:
        return text
    head = limit * 3 // 4
    tail = limit - head
    return f"{text[:head]}\n[{len(text) - limit} characters left out]\n{text[-tail:]}"


def difference(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What was moved between two readings of counters; those that were not read twice are left out."""
    return {
        kind: {
            name: {
                **now,
                "sent": now["sent"] - before[kind][name]["sent"],
                "received": now["received"] - before[kind][name]["received"],
            }
            for name, now in after[kind].items()
            if name in before[kind]
        }
        for kind in ("interfaces", "rdma")
    }


def sizes(largest: int) -> list[int]:
    """Bytes of the tensors of the sweep: powers of two."""
    found = []
    size = SMALLEST
    while size <= largest:
        found.append(size)
        size *= 2
    return found or [largest // 4 * 4]


def bandwidths(size: int, seconds: float, world: int) -> tuple[float, float]:
    """Algorithm and bus bandwidth in GB/s (10**9 bytes) of an all-reduce over `world` processes.

    As nccl-tests have them (https://github.com/NVIDIA/nccl-tests, doc/PERFORMANCE.md).
    """
    algorithm = size / seconds / 1e9
    return algorithm, algorithm * 2 * (world - 1) / world


class Stopped(Exception):  # noqa: N818 - it is what happened, to be told
    """The collective can't go on; the kind is for programs, the text for people."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Collective:
    """The driver's side: places the processes, has them work in step, and collects what they found."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        import ray  # noqa: PLC0415

        self.ray = ray
        self.arguments = arguments
        self.deadline = time.monotonic() + arguments.seconds
        self.actors: list[Any] = []
        self.first_of_pod: list[int] = []
        self.evidence: dict[str, Any] = {
            "format": 1,
            "ray": str(ray.__version__),
            "backend": "",
            "world": 0,
            "ranks": [],
            "seed": None,
            "sweep": [],
            "stopped": "",
            "operations": {},
            "traffic": {},
            "logs": [],
            "problem": None,
        }

    def run(self) -> dict[str, Any]:
        """Do everything; a failure of any kind becomes part of the evidence."""
        stage = "placing"
        try:
            self.place()
            stage = "joining"
            self.join()
            stage = "summing"
            before = self._ask("traffic", of=self.first_of_pod)
            self.sum_seed()
            stage = "sweeping"
            self.sweep()
            after = self._ask("traffic", of=self.first_of_pod)
            for number, rank in enumerate(self.first_of_pod):
                pod = self.evidence["ranks"][rank]["pod"]
                self.evidence["traffic"][pod] = difference(before[number], after[number])
        except Stopped as stopped:
            self.evidence["problem"] = {"stage": stage, "kind": stopped.kind, "text": str(stopped)}
        except Exception as error:  # noqa: BLE001 - whatever it is, it is evidence
            self.evidence["problem"] = {"stage": stage, "kind": "error", "text": shortened(error)}
        self.collect()
        return self.evidence

    def place(self) -> None:
        """Start one process for each GPU, in the order of the pods' names."""
        nodes = self._nodes()
        each = max(1, self.arguments.gpus)
        world = each * len(nodes)
        strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        remote = self.ray.remote(Rank)
        self.first_of_pod = list(range(0, world, each))
        self.actors = [
            remote.options(
                num_cpus=0,
                num_gpus=1 if self.arguments.gpus else 0,
                # NCCL's log is asked for while a collective may hang.
                max_concurrency=2,
                scheduling_strategy=strategy(nodes[rank // each]["NodeID"], soft=False),
            ).remote(rank, world)
            for rank in range(world)
        ]
        said = [actor.about.remote() for actor in self.actors]
        # The rest of the time is for the work itself.
        patience = self._rest() / 2
        ready, waiting = self.ray.wait(said, num_returns=world, timeout=patience)
        if waiting:
            missing = [nodes[rank // each]["NodeManagerHostname"] for rank, ref in enumerate(said) if ref in waiting]
            where = ", ".join(f"{missing.count(name)} of {each} on {name}" for name in dict.fromkeys(missing))
            raise Stopped(
                "busy",
                f"{len(ready)} of {world} GPUs were free within {int(patience)} s: other jobs of this RayCluster hold the rest"
                f" ({where})",
            )
        self.evidence["ranks"] = self.ray.get(said)
        self.evidence["world"] = world
        without = [rank for rank in self.evidence["ranks"] if rank["torch"] is None]
        if without:
            raise Stopped("no-torch", f"torch can't be imported in pod {without[0]['pod']}: {without[0]['problem']}")
        backends = {rank["backend"] for rank in self.evidence["ranks"]}
        if len(backends) > 1:
            bare = [rank["pod"] for rank in self.evidence["ranks"] if rank["backend"] == "gloo"]
            raise Stopped("error", f"some pods have CUDA and others have not: {', '.join(sorted(set(bare)))}")
        (self.evidence["backend"],) = backends

    def join(self) -> None:
        """Bring all processes into one group."""
        address, port = self._get(self.actors[0].meeting_point.remote())
        self._ask("join", self.evidence["backend"], address, port, max(1, int(self._rest())))
        say(f"{self.evidence['world']} processes joined by {self.evidence['backend']}")

    def sum_seed(self) -> None:
        """Ones and twos, with the sum that every element must have."""
        world = self.evidence["world"]
        sums = self._ask("seed")
        want = float(world + world // 2)
        self.evidence["seed"] = {"want": want, "got": sums}
        say(f"every element is {want}: {all(value == want for each in sums for value in each)}")

    def sweep(self) -> None:
        """All-reduces of growing size, each checked and timed."""
        backend, world = self.evidence["backend"], self.evidence["world"]
        expected = 0.0
        for size in sizes(self.arguments.max_bytes or LARGEST[backend]):
            iterations = MOST_ITERATIONS if not expected else int(SECONDS_A_SIZE / expected)
            iterations = max(2, min(MOST_ITERATIONS, iterations))
            warm_up = min(5, iterations // 2)
            # One more to check the sums, and as much again for what else there is to do.
            if expected * (iterations + warm_up + 1) * 2 > self._rest():
                self.evidence["stopped"] = f"before {size} bytes, for which there was no time left"
                return
            found = self._ask("measure", size, iterations, warm_up)
            seconds = max(elapsed for _, elapsed in found) / iterations
            algorithm, bus = bandwidths(size, seconds, world)
            self.evidence["operations"][str(size)] = iterations + warm_up + 1
            self.evidence["sweep"].append(
                {
                    "bytes": size,
                    "iterations": iterations,
                    "seconds": seconds,
                    "algorithm": algorithm,
                    "bus": bus,
                    "wrong": [rank for rank, (right, _) in enumerate(found) if not right],
                }
            )
            say(f"{size} bytes: {bus:.3g} GB/s bus bandwidth")
            expected = 2 * seconds

    def collect(self) -> None:
        """NCCL's logs of the processes that still answer, then an end to all of them."""
        limit = LOGS // max(1, len(self.actors))
        answers = [actor.log.remote(limit) for actor in self.actors]
        ready, _ = self.ray.wait(answers, num_returns=max(1, len(answers)), timeout=10) if answers else ([], [])
        for answer in ready:
            with suppress(Exception):
                self.evidence["logs"].append(self.ray.get(answer))
        done = [actor.leave.remote() for actor in self.actors]
        if done:
            self.ray.wait(done, num_returns=len(done), timeout=5)
        for actor in self.actors:
            with suppress(Exception):
                self.ray.kill(actor)

    def _nodes(self) -> list[dict[str, Any]]:
        """The workers' pods as Ray knows them; waits until all are there."""
        patience = self._rest() / 2
        end = time.monotonic() + patience
        while True:
            alive = [node for node in self.ray.nodes() if node["Alive"]]
            if self.arguments.gpus:
                found = [node for node in alive if node["Resources"].get("GPU", 0) >= self.arguments.gpus]
            else:
                found = [node for node in alive if "node:__internal_head__" not in node["Resources"]]
            if len(found) >= self.arguments.workers:
                return sorted(found, key=lambda node: str(node["NodeManagerHostname"]))[: self.arguments.workers]
            if time.monotonic() > end:
                has = ", ".join(
                    f"{node['NodeManagerHostname']}: {int(node['Resources'].get('GPU', 0))}" for node in alive
                )
                wanted = f"{self.arguments.workers} workers with {self.arguments.gpus} GPUs each"
                raise Stopped("missing", f"{wanted} were expected within {int(patience)} s; Ray has GPUs by pod: {has}")
            time.sleep(1)

    def _ask(self, method: str, *arguments: Any, of: list[int] | None = None) -> list[Any]:
        """Have all processes do one thing, or the given ones; the first that fails ends it for all."""
        ranks = list(range(len(self.actors))) if of is None else of
        pending = {getattr(self.actors[rank], method).remote(*arguments): rank for rank in ranks}
        answers: dict[int, Any] = {}
        while pending:
            ready, _ = self.ray.wait(list(pending), num_returns=1, timeout=max(0.0, self._rest()))
            if not ready:
                silent = sorted(pending.values())
                pods = sorted({self.evidence["ranks"][rank]["pod"] for rank in silent})
                raise Stopped(
                    "timeout", f"{method}: no answer of {len(silent)} processes in time, in {', '.join(pods)}"
                )
            rank = pending.pop(ready[0])
            try:
                answers[rank] = self.ray.get(ready[0])
            except self.ray.exceptions.RayActorError as error:
                pod = self.evidence["ranks"][rank]["pod"]
                raise Stopped("died", f"the process of rank {rank} in pod {pod} died: {shortened(error)}") from None
            except self.ray.exceptions.RayTaskError as error:
                pod = self.evidence["ranks"][rank]["pod"]
                raise Stopped("error", f"{method} of rank {rank} in pod {pod}: {shortened(error)}") from None
        return [answers[rank] for rank in ranks]

    def _get(self, reference: Any) -> Any:
        return self.ray.get(reference, timeout=max(1.0, self._rest()))

    def _rest(self) -> float:
        return float(self.deadline - time.monotonic())


def say(line: str) -> None:
    """Into the job's log, at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def shortened(error: BaseException) -> str:
    """What an error says at its end, after all the calls that led to it."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if lines else type(error).__name__
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}…"


def pieces(evidence: dict[str, Any]) -> list[str]:
    """Evidence as lines for a log: compressed, and cut."""
    text = base64.b64encode(zlib.compress(json.dumps(evidence).encode(), 9)).decode()
    cut = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    return [f"{MARKER} {number} {len(cut)} {piece}" for number, piece in enumerate(cut, start=1)]


def main(arguments: list[str]) -> int:
    """Run as a Ray job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, required=True, help="worker pods")
    parser.add_argument("--gpus", type=int, required=True, help="GPUs of each; 0: one process a pod, on its CPUs")
    parser.add_argument("--seconds", type=int, required=True, help="how long all may take")
    parser.add_argument("--max-bytes", type=int, default=0, help="largest tensor; 0: by what there is")
    given = parser.parse_args(arguments)
    import ray  # noqa: PLC0415
    import ray.util.scheduling_strategies  # noqa: PLC0415

    ray.init(log_to_driver=False, logging_level="warning")
    evidence = Collective(given).run()
    if evidence["problem"]:
        say(f"{evidence['problem']['stage']}: {evidence['problem']['text']}")
    for line in pieces(evidence):
        say(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
