"""An operator as a local process: kept running while it is wanted, and never longer.

Answers to (real): KubeRay's operator v1.6.2, built from source (lab/tools/kuberay), as a process of this machine in
    place of its Deployment's pod.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
import socket
from typing import TYPE_CHECKING

import psutil

from berth.lab.processes import MARK

if TYPE_CHECKING:
    from pathlib import Path

    from berth.lab.devices.kuberay import Launch
    from berth.lab.home import Home

PROCESS = "kuberay-operator"

_STOP_SECONDS = 10.0
_FIRST_BACKOFF_SECONDS, _LONGEST_BACKOFF_SECONDS = 1.0, 30.0
# A process that ran this long worked; its next failure starts with a short wait again.
_WORKED_SECONDS = 60.0
_LOG_BYTES = 8 << 20
_PR_SET_PDEATHSIG = 1

_log = logging.getLogger("berth.lab.devices.operator")

_libc = ctypes.CDLL(None, use_errno=True)


def mark(home: Home) -> str:
    """What the operator carries in its environment: whose it is."""
    return f"{home.root.resolve()}:{PROCESS}"


def end_orphans(home: Home) -> int:
    """End operators of this lab whose controller is gone; how many there were."""
    orphans = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error, OSError):
            if process.environ().get(MARK) == mark(home) and process.pid != os.getpid():
                orphans.append(process)
    for process in orphans:
        with contextlib.suppress(psutil.Error):
            process.terminate()
    _, alive = psutil.wait_procs(orphans, timeout=_STOP_SECONDS)
    for process in alive:
        with contextlib.suppress(psutil.Error):
            process.kill()
    return len(orphans)


def _die_with_parent() -> None:
    """In the child, before the operator starts: the kernel ends it when the controller is gone, however that went."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _free_ports(count: int) -> list[int]:
    """Loopback ports that nobody listens on right now."""
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [int(one.getsockname()[1]) for one in sockets]


class OperatorRunner:
    """Runs one operator, as its Deployment says.

    Args:
        home: the lab.
        deployment: namespace and name of the Deployment, for the log.
    """

    def __init__(self, home: Home, deployment: str) -> None:
        self._home = home
        self._deployment = deployment
        self._wanted: Launch | None = None
        self._changed = asyncio.Event()
        self._task = asyncio.create_task(self._run())

    def want(self, launch: Launch | None) -> None:
        """Run this from now on; nothing stops the operator."""
        if launch != self._wanted:
            self._wanted = launch
            self._changed.set()

    async def close(self) -> None:
        """Stop the operator for good."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        backoff = _FIRST_BACKOFF_SECONDS
        while True:
            self._changed.clear()
            if self._wanted is None:
                await self._changed.wait()
                backoff = _FIRST_BACKOFF_SECONDS
                continue
            started = asyncio.get_running_loop().time()
            try:
                ended = await self._run_once(self._wanted)
            except OSError as error:
                ended = f"cannot be started: {error}"
            if ended is None:
                continue
            if asyncio.get_running_loop().time() - started > _WORKED_SECONDS:
                backoff = _FIRST_BACKOFF_SECONDS
            _log.warning("%s %s; next try in %g s, its log is %s", self._deployment, ended, backoff, self._log_file())
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), backoff)
            backoff = min(backoff * 2, _LONGEST_BACKOFF_SECONDS)

    async def _run_once(self, launch: Launch) -> str | None:
        """Run until it ends by itself (then how it ended) or something else is wanted (then nothing)."""
        process = await self._start(launch)
        _log.info("%s: the KubeRay operator runs as process %d", self._deployment, process.pid)
        exited = asyncio.create_task(process.wait())
        changed = asyncio.create_task(self._changed.wait())
        try:
            await asyncio.wait({exited, changed}, return_when=asyncio.FIRST_COMPLETED)
            return f"ended with status {process.returncode}" if exited.done() else None
        finally:
            changed.cancel()
            if not exited.done():
                await self._stop(process)

    async def _start(self, launch: Launch) -> asyncio.subprocess.Process:
        metrics, probe = _free_ports(2)
        arguments = [
            *launch.arguments,
            f"-kubeconfig={self._home.kubeconfig}",
            f"-metrics-addr=127.0.0.1:{metrics}",
            f"-health-probe-bind-address=127.0.0.1:{probe}",
            "-enable-leader-election=false",
            # Services and pods are not to be reached from here but through the API server.
            "-use-kubernetes-proxy",
        ]
        kept = {name: os.environ[name] for name in ("PATH", "HOME", "TZ", "LANG") if name in os.environ}
        log = self._log_file()
        log.parent.mkdir(parents=True, exist_ok=True)
        mode = "ab" if not log.exists() or log.stat().st_size < _LOG_BYTES else "wb"
        with log.open(mode) as output:
            return await asyncio.create_subprocess_exec(
                str(self._home.bin / PROCESS),
                *arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**kept, **dict(launch.environment), MARK: mark(self._home)},
                preexec_fn=_die_with_parent,
            )

    async def _stop(self, process: asyncio.subprocess.Process) -> None:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        try:
            await asyncio.wait_for(process.wait(), _STOP_SECONDS)
        except TimeoutError:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        _log.info("%s: the KubeRay operator (process %d) is stopped", self._deployment, process.pid)

    def _log_file(self) -> Path:
        return self._home.logs / f"{PROCESS}.log"
