"""Status, its watch, the wait of an update and the keeper's pass, over berths without pods."""

from __future__ import annotations

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

# Limits of the keeper's pod and of its Job (components/lifecycle/manifests.py).
_KEEPER_MEGABYTES = 256
_KEEPER_SECONDS = 240
_STATUS_SECONDS = 3.0
_STATUS_MEGABYTES = 300
_MEGABYTE = 2**20


def status(bench: Bench) -> None:
    """`berth status`, `--watch` and the keeper's pass, over berths without pods."""
    bench.write(engineers(1))
    bench.init(ENV)
    bench.do(*_UP)
    (live,) = [item for item in bench.objects() if item["kind"] == "RayCluster"]
    berths = Berths(ClusterApi(bench.lab.kubeconfig.read_text()), ENV, "own", bench.size, live["spec"])
    _status(bench, "status, all late", 1)
    berths.are_suspended()
    _status(bench, "status, all ready", 0)
    _watch(bench, berths)
    selector = f"{ENVIRONMENT_LABEL}={ENV}"
    bench.timed(
        "keeper", (sys.executable, "-m", "berth.components.programs.keeper", "--selector", selector, "--dry-run")
    )
    bench.run.at_most(f"keeper's pass over {bench.size}", bench.run.seconds["keeper"], _KEEPER_SECONDS, "s")
    bench.run.at_most(f"keeper's pass over {bench.size}", bench.run.memory["keeper"]["all"], _KEEPER_MEGABYTES, "MB")


def _status(bench: Bench, what: str, code: int) -> None:
    done = bench.do("berth", "status", "-s", ENV, codes=(code,))
    bench.note(what, done)
    bench.run.at_most(f"{what}: {bench.size}", done.seconds, _STATUS_SECONDS, "s")
    bench.run.at_most(f"{what}: {bench.size}", done.memory.get("berth", 0), _STATUS_MEGABYTES, "MB")


def _watch(bench: Bench, berths: Berths) -> None:
    """Time from the change of one berth to the line of JSON that shows it."""
    command = ("berth", "status", "-s", ENV, "--watch", "--json", "--interval", "0.5")
    began = time.perf_counter()
    with started(bench.project, *command) as process:
        first = _line(process)
        bench.run.seconds["watch: first picture"] = time.perf_counter() - began
        used = psutil.Process(process.pid)
        before, began = used.cpu_times(), time.perf_counter()
        berths.api.patch(f"{NAMESPACES}/{berths.keys[0][0]}", {"metadata": {"labels": {STACK_LABEL: "other"}}}, "bench")
        while _line(process) == first:
            pass
        bench.run.seconds["watch: a change"] = time.perf_counter() - began
        after = used.cpu_times()
        bench.run.memory["watch"] = {"berth": round(used.memory_info().rss / _MEGABYTE, 1)}
        bench.run.facts["watch: CPU seconds of a change"] = after.user + after.system - before.user - before.system
    for what in ("watch: first picture", "watch: a change"):
        bench.run.at_most(f"{what}: {bench.size}", bench.run.seconds[what], _STATUS_SECONDS, "s")
    bench.run.at_most(f"watch: {bench.size}", bench.run.memory["watch"]["berth"], _STATUS_MEGABYTES, "MB")


def _line(process: subprocess.Popen[str]) -> list[str]:
    """Return the stacks of the berths in the next line."""
    if process.stdout is None or not (line := process.stdout.readline()):
        raise RuntimeError("`berth status --watch` has ended")
    return [berth["stack"] for berth in json.loads(line)["berths"]]
