"""Status, its watch, the wait of an update and the keeper's pass, over berths without pods."""

import json
import subprocess
import sys
import time

import psutil

from bench.berths import Berths
from bench.fleet import ENV, Bench, engineers
from berth.components.cluster.api import NAMESPACES, ClusterApi
from berth.components.core.owner import ENVIRONMENT_LABEL, STACK_LABEL
from tests.lab.project import started

_UP = ("pulumi", "up", "--yes", "--skip-preview", "-s", ENV)

_MEGABYTE = 2**20


def status(bench: Bench) -> None:
    """`berth status`, `--watch` and the keeper's pass, over berths without pods."""
    bench.write(engineers(1))
    bench.init(ENV)
    bench.do(*_UP)
    (live,) = [item for item in bench.objects() if item["kind"] == "RayCluster"]
    berths = Berths(
        ClusterApi(bench.lab.kubeconfig.read_text()), ENV, "own", bench.size, live["spec"]
    )
    look = ("berth", "status", "-s", ENV)
    bench.note("status, all late", bench.do(*look, codes=(1,)))
    berths.are_suspended()
    bench.timed("status, all ready", look)
    _watch(bench, berths)
    selector = f"{ENVIRONMENT_LABEL}={ENV}"
    bench.timed(
        "keeper",
        (
            sys.executable,
            "-m",
            "berth.components.programs.keeper",
            "--selector",
            selector,
            "--dry-run",
        ),
    )


def _watch(bench: Bench, berths: Berths) -> None:
    """Time from the change of one berth to the line of JSON that shows it."""
    command = ("berth", "status", "-s", ENV, "--watch", "--json", "--interval", "0.5")
    began = time.perf_counter()
    with started(bench.project, *command) as process:
        first = _line(process)
        bench.run.seconds["watch: first picture"] = time.perf_counter() - began
        used = psutil.Process(process.pid)
        before = used.cpu_times()
        began = time.perf_counter()
        berths.api.patch(
            f"{NAMESPACES}/{berths.keys[0][0]}",
            {"metadata": {"labels": {STACK_LABEL: "other"}}},
            "bench",
        )
        while _line(process) == first:
            pass
        bench.run.seconds["watch: a change"] = time.perf_counter() - began
        after = used.cpu_times()
        bench.run.memory["watch"] = {"berth": round(used.memory_info().rss / _MEGABYTE, 1)}
        bench.run.facts["watch: CPU seconds of a change"] = (
            after.user + after.system - before.user - before.system
        )


def _line(process: subprocess.Popen[str]) -> list[str]:
    """Return the stacks of the berths in the next line."""
    if process.stdout is None or not (line := process.stdout.readline()):
        raise RuntimeError("`berth status --watch` has ended")
    return [berth["stack"] for berth in json.loads(line)["berths"]]
