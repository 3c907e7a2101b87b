"""Driver of an all-reduce over every GPU of a RayCluster, run as a Ray job.

Prints its evidence at the end, whatever happens, and exits with 0 if it could; the reader judges
the evidence. Runs in one module with all_reduce_rank.py, after it. Python 3.9 and later; only the
processes of the collective import torch.
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
import time
import zlib
from contextlib import suppress
from typing import Any

if __name__ != "__main__":
    from berth.components.programs.all_reduce_rank import Member, RankProcess, expected_sum

MARKER = "berth-all-reduce"
"""First word of each line of evidence: marker, number of the piece, number of pieces, the piece."""

PIECE = 4000
"""Characters of one piece: log relays may cut much longer lines."""

LOGS = 8 * 2**20
"""Bytes of NCCL's logs in the evidence, of all processes together."""

SMALLEST = 1024
"""Bytes of the smallest tensor of the sweep."""

LARGEST = {"nccl": 2**30, "gloo": 2**26}
"""Bytes of the largest tensor by default: CPUs reduce slowly, and their pods are small."""

LONGEST_ERROR = 300
"""Characters of an error in the evidence: Ray adds much advice to its own."""

MOST_ITERATIONS = 20
SECONDS_A_SIZE = 2.0


def moved_between(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the bytes moved between two readings, of counters that were read twice."""
    moved: dict[str, Any] = {}
    for kind in ("interfaces", "rdma"):
        moved[kind] = {}
        for name, now in after[kind].items():
            if name in before[kind]:
                earlier = before[kind][name]
                sent = now["sent"] - earlier["sent"]
                received = now["received"] - earlier["received"]
                moved[kind][name] = {**now, "sent": sent, "received": received}
    return moved


def tensor_sizes(largest: int) -> list[int]:
    """Return the bytes of the tensors of the sweep: powers of two."""
    powers = [2**power for power in range(largest.bit_length()) if 2**power >= SMALLEST]
    return powers or [largest // 4 * 4]


def bandwidths(size: int, seconds: float, world: int) -> tuple[float, float]:
    """Return algorithm and bus bandwidth in GB/s (10**9 bytes) of an all-reduce.

    The definitions are those of nccl-tests (https://github.com/NVIDIA/nccl-tests,
    doc/PERFORMANCE.md).
    """
    algorithm = size / seconds / 1e9
    return algorithm, algorithm * 2 * (world - 1) / world


class Stopped(Exception):  # noqa: N818 - an event that becomes evidence
    """End of the collective; the kind is for programs, the text for people."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind


class Collective:
    """Driver of the processes: places them, has them work in step, and collects their evidence."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        import ray  # noqa: PLC0415

        self.ray = ray
        self.arguments = arguments
        self.deadline = time.monotonic() + arguments.seconds
        self.nodes: list[dict[str, Any]] = []
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
            "ray_collective": None,
            "problem": None,
        }

    def run(self) -> dict[str, Any]:
        """Run all stages and return the evidence; a failure of any kind becomes part of it."""
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
                self.evidence["traffic"][pod] = moved_between(before[number], after[number])
        except Stopped as stopped:
            self.evidence["problem"] = {"stage": stage, "kind": stopped.kind, "text": str(stopped)}
        except Exception as error:  # noqa: BLE001 - any error is evidence
            self.evidence["problem"] = {
                "stage": stage,
                "kind": "error",
                "text": last_line_of(error),
            }
        self.collect()
        if self.arguments.collective and self.arguments.gpus and not self.evidence["problem"]:
            self.sum_by_ray()
        return self.evidence

    def place(self) -> None:
        """Start one process for each GPU, in the order of the pods' names."""
        nodes = self._nodes()
        self.nodes = nodes
        share = max(1, self.arguments.gpus)
        world = share * len(nodes)
        self.first_of_pod = list(range(0, world, share))
        self.actors = [self._start(rank, 1 if self.arguments.gpus else 0) for rank in range(world)]
        answers = [actor.about.remote() for actor in self.actors]
        # The other half of the time is for the work.
        patience = self._rest() / 2
        ready, waiting = self.ray.wait(answers, num_returns=world, timeout=patience)
        if waiting:
            missing = [
                nodes[rank // share]["NodeManagerHostname"]
                for rank, answer in enumerate(answers)
                if answer in waiting
            ]
            free = f"{len(ready)} of {world} GPUs were free within {int(patience)} s"
            where = places_of(missing, share)
            raise Stopped("busy", f"{free}: other jobs of this RayCluster hold the rest ({where})")
        self.evidence["ranks"] = self.ray.get(answers)
        self.evidence["world"] = world
        self.evidence["backend"] = common_backend(self.evidence["ranks"])

    def join(self) -> None:
        """Join all processes into one group."""
        ((address, port),) = self._ask("meeting_point", of=[0])
        self._ask("join", self.evidence["backend"], address, port, max(1, int(self._rest())))
        print_line(f"{self.evidence['world']} processes joined by {self.evidence['backend']}")

    def sum_seed(self) -> None:
        """Sum ones and twos, and record the sum that every element must have."""
        world = self.evidence["world"]
        sums = self._ask("seed")
        want = float(world + world // 2)
        self.evidence["seed"] = {"want": want, "got": sums}
        right = all(set(values) == {want} for values in sums)
        print_line(f"every element is {want}: {right}")

    def sweep(self) -> None:
        """Check and time all-reduces of growing size."""
        backend = self.evidence["backend"]
        world = self.evidence["world"]
        expected = 0.0
        for size in tensor_sizes(self.arguments.max_bytes or LARGEST[backend]):
            iterations = MOST_ITERATIONS if not expected else int(SECONDS_A_SIZE / expected)
            iterations = max(2, min(MOST_ITERATIONS, iterations))
            warm_up = min(5, iterations // 2)
            # One more to check the sums, and as much time again for the rest.
            if expected * (iterations + warm_up + 1) * 2 > self._rest():
                self.evidence["stopped"] = f"before {size} bytes, for which there was no time left"
                return
            measured = self._ask("measure", size, iterations, warm_up)
            seconds = max(elapsed for _, elapsed in measured) / iterations
            algorithm, bus = bandwidths(size, seconds, world)
            self.evidence["operations"][str(size)] = iterations + warm_up + 1
            self.evidence["sweep"].append(
                {
                    "bytes": size,
                    "iterations": iterations,
                    "seconds": seconds,
                    "algorithm": algorithm,
                    "bus": bus,
                    "wrong": [rank for rank, (right, _) in enumerate(measured) if not right],
                }
            )
            print_line(f"{size} bytes: {bus:.3g} GB/s bus bandwidth")
            expected = 2 * seconds

    def collect(self) -> None:
        """Collect NCCL's logs of all processes, then end them.

        A process that gIB or NCCL ended has left its log in its pod, where another one reads it.
        """
        limit = LOGS // max(1, len(self.actors))
        self._read([actor.log.remote(limit) for actor in self.actors])
        readers = [self._start(rank, 0) for rank in ranks_without_log(self.evidence)]
        self._read([reader.lost_log.remote(limit) for reader in readers])
        self.actors += readers
        done = [actor.leave.remote() for actor in self.actors]
        if done:
            self.ray.wait(done, num_returns=len(done), timeout=5)
        for actor in self.actors:
            with suppress(Exception):
                self.ray.kill(actor)

    def sum_by_ray(self) -> None:
        """Sum by Ray's own collective library, on the GPUs that the other processes have left."""
        gpus = self.arguments.gpus
        nodes = self.nodes
        result: dict[str, Any] = {"want": expected_sum(len(nodes), gpus), "got": [], "problem": ""}
        self.evidence["ray_collective"] = result
        members = [
            self._place(Member, node, gpus).remote(rank, len(nodes), gpus)
            for rank, node in enumerate(nodes)
        ]
        try:
            sums = [member.sum.remote() for member in members]
            result["got"] = self.ray.get(sums, timeout=max(1.0, self._rest()))
        except Exception as error:  # noqa: BLE001 - any error is evidence
            result["problem"] = last_line_of(error)
        got = f"{result['got']}{result['problem']}"
        print_line(f"every element by Ray's collective is {result['want']}: {got}")
        for member in members:
            with suppress(Exception):
                self.ray.kill(member)

    def _start(self, rank: int, gpus: int) -> Any:
        """Start a process of a rank on its pod."""
        share = max(1, self.arguments.gpus)
        return self._place(RankProcess, self.nodes[rank // share], gpus).remote(
            rank, share * len(self.nodes)
        )

    def _place(self, actor: type[Any], node: dict[str, Any], gpus: int) -> Any:
        """Return what starts processes with a number of GPUs on a pod."""
        strategy = self.ray.util.scheduling_strategies.NodeAffinitySchedulingStrategy
        return self.ray.remote(actor).options(
            num_cpus=0,
            num_gpus=gpus,
            # NCCL's log is read while a collective may hang.
            max_concurrency=2,
            scheduling_strategy=strategy(node["NodeID"], soft=False),
        )

    def _read(self, answers: list[Any]) -> None:
        """Add the logs among answers to the evidence, of processes that answer in time."""
        if not answers:
            return
        ready, _ = self.ray.wait(answers, num_returns=len(answers), timeout=10)
        for answer in ready:
            with suppress(Exception):
                self.evidence["logs"].append(self.ray.get(answer))

    def _nodes(self) -> list[dict[str, Any]]:
        """Return the workers' pods as Ray knows them, once all are there."""
        workers = self.arguments.workers
        gpus = self.arguments.gpus
        pods = set(filter(None, self.arguments.pods.split(",")))
        patience = self._rest() / 2
        end = time.monotonic() + patience
        while True:
            alive = alive_nodes(self.ray.nodes(), pods)
            usable = worker_nodes(alive, gpus)
            if len(usable) >= workers:
                return usable[:workers]
            if time.monotonic() > end:
                wanted = f"{workers} workers with {gpus} GPUs each"
                raise Stopped(
                    "missing",
                    f"{wanted} were expected within {int(patience)} s; Ray has GPUs by pod:"
                    f" {gpus_by_pod(alive)}",
                )
            time.sleep(1)

    def _ask(self, method: str, *arguments: Any, of: list[int] | None = None) -> list[Any]:
        """Call a method of all processes, or of given ones; the first failure ends all."""
        ranks = list(range(len(self.actors))) if of is None else of
        pending = {getattr(self.actors[rank], method).remote(*arguments): rank for rank in ranks}
        answers: dict[int, Any] = {}
        while pending:
            ready, _ = self.ray.wait(list(pending), num_returns=1, timeout=max(0.0, self._rest()))
            if not ready:
                silent = sorted(pending.values())
                pods = sorted({self.evidence["ranks"][rank]["pod"] for rank in silent})
                raise Stopped(
                    "timeout",
                    f"{method}: no answer of {len(silent)} processes in time, in {', '.join(pods)}",
                )
            rank = pending.pop(ready[0])
            process = f"rank {rank} in pod {self.evidence['ranks'][rank]['pod']}"
            try:
                answers[rank] = self.ray.get(ready[0])
            except self.ray.exceptions.RayActorError as error:
                text = f"the process of {process} died: {last_line_of(error)}"
                raise Stopped("died", text) from None
            except self.ray.exceptions.RayTaskError as error:
                raise Stopped("error", f"{method} of {process}: {last_line_of(error)}") from None
        return [answers[rank] for rank in ranks]

    def _rest(self) -> float:
        return float(self.deadline - time.monotonic())


def alive_nodes(nodes: list[dict[str, Any]], pods: set[str]) -> list[dict[str, Any]]:
    """Return the nodes of Ray that are alive, of some pods; of any without `pods`."""
    return [
        node
        for node in nodes
        if node["Alive"] and (not pods or node["NodeManagerHostname"] in pods)
    ]


def worker_nodes(nodes: list[dict[str, Any]], gpus: int) -> list[dict[str, Any]]:
    """Return nodes with a number of GPUs, or with 0 all but the head, by their pods' names."""
    if gpus:
        usable = [node for node in nodes if node["Resources"].get("GPU", 0) >= gpus]
    else:
        usable = [node for node in nodes if "node:__internal_head__" not in node["Resources"]]
    return sorted(usable, key=lambda node: str(node["NodeManagerHostname"]))


def gpus_by_pod(nodes: list[dict[str, Any]]) -> str:
    """Return the number of GPUs of each node, as Ray counts them."""
    return ", ".join(
        f"{node['NodeManagerHostname']}: {int(node['Resources'].get('GPU', 0))}" for node in nodes
    )


def places_of(missing: list[str], share: int) -> str:
    """Return how many processes of a pod's share are missing on each pod."""
    return ", ".join(f"{missing.count(pod)} of {share} on {pod}" for pod in dict.fromkeys(missing))


def common_backend(ranks: list[dict[str, Any]]) -> str:
    """Return the backend of all processes, by what they report.

    Raises:
        Stopped: one has no torch, or they have different backends.
    """
    for rank in ranks:
        if rank["torch"] is None:
            text = f"torch can't be imported in pod {rank['pod']}: {rank['problem']}"
            raise Stopped("no-torch", text)
    backends = {rank["backend"] for rank in ranks}
    if len(backends) > 1:
        bare = sorted({rank["pod"] for rank in ranks if rank["backend"] == "gloo"})
        raise Stopped("error", f"some pods have CUDA and others have not: {', '.join(bare)}")
    (backend,) = backends
    return str(backend)


def ranks_without_log(evidence: dict[str, Any]) -> list[int]:
    """Return the ranks whose processes sent no log, since gIB or NCCL has ended them."""
    sent = {log["rank"] for log in evidence["logs"]}
    return [rank["rank"] for rank in evidence["ranks"] if rank["rank"] not in sent]


def print_line(line: str) -> None:
    """Write a line to the job's log at once."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def last_line_of(error: BaseException) -> str:
    """Return the last line of an error, which comes after its calls."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    text = lines[-1] if lines else type(error).__name__
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]}…"


def evidence_lines(evidence: dict[str, Any]) -> list[str]:
    """Return the evidence as lines for a log: compressed, and cut."""
    text = base64.b64encode(zlib.compress(json.dumps(evidence).encode(), 9)).decode()
    cut = [text[start : start + PIECE] for start in range(0, len(text), PIECE)]
    return [f"{MARKER} {number} {len(cut)} {piece}" for number, piece in enumerate(cut, start=1)]


def main(arguments: list[str]) -> int:
    """Run as a Ray job."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, required=True, help="worker pods")
    parser.add_argument(
        "--gpus", type=int, required=True, help="GPUs of each; 0: one process a pod, on its CPUs"
    )
    parser.add_argument("--seconds", type=int, required=True, help="how long all may take")
    parser.add_argument(
        "--max-bytes", type=int, default=0, help="largest tensor; 0: by what there is"
    )
    parser.add_argument(
        "--pods", default="", help="names of the worker pods, with commas; all by default"
    )
    parser.add_argument(
        "--collective", action="store_true", help="sum by Ray's collective library, too"
    )
    given = parser.parse_args(arguments)
    import ray  # noqa: PLC0415
    import ray.util.scheduling_strategies  # noqa: PLC0415

    ray.init(log_to_driver=False, logging_level="warning")
    evidence = Collective(given).run()
    if evidence["problem"]:
        print_line(f"{evidence['problem']['stage']}: {evidence['problem']['text']}")
    for line in evidence_lines(evidence):
        print_line(line)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
