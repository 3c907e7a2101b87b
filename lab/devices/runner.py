"""KubeRay's operator as a local process: started again when it ends, and ended with its controller.

Answers to (real): KubeRay's operator v1.6.2, built from source (lab/tools/kuberay), as a process of
    this machine in place of its Deployment's pod.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import signal
from dataclasses import dataclass

from berth.lab.home import Home
from berth.lab.processes import MARK

_PROCESS = "kuberay-operator"
_STOP_SECONDS = 10.0
_FIRST_BACKOFF_SECONDS, _LONGEST_BACKOFF_SECONDS = 1.0, 30.0
# A process that ran this long worked; its next failure starts with a short wait again.
_WORKED_SECONDS = 60.0
_LOG_BYTES = 8 << 20
_PR_SET_PDEATHSIG = 1

_log = logging.getLogger("berth.lab.devices.operator")

_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class Launch:
    """Flags and variables of the operator's container that make sense outside of it."""

    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...]


def _die_with_parent() -> None:
    """Have the kernel end this process, the operator's, when the controller is gone."""
    _libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


class OperatorRunner:
    """Runs one operator until it is closed; the log names its owner."""

    def __init__(self, home: Home, owner: str, launch: Launch) -> None:
        self.launch = launch
        self._home = home
        self._owner = owner
        self._log_file = home.logs / f"{_PROCESS}.log"
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop the operator for good."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        backoff, clock = _FIRST_BACKOFF_SECONDS, asyncio.get_running_loop().time
        while True:
            started = clock()
            try:
                end = f"ended with status {await self._run_once()}"
            except OSError as error:
                end = f"cannot be started: {error}"
            if clock() - started > _WORKED_SECONDS:
                backoff = _FIRST_BACKOFF_SECONDS
            _log.warning("%s: %s; next try in %g s, its log is %s", self._owner, end, backoff, self._log_file)
            await asyncio.sleep(backoff)
            backoff = min(backoff * 2, _LONGEST_BACKOFF_SECONDS)

    async def _run_once(self) -> int:
        process = await self._start()
        _log.info("%s: the KubeRay operator runs as process %d", self._owner, process.pid)
        try:
            return await process.wait()
        finally:
            if process.returncode is None:
                await self._stop(process)

    async def _start(self) -> asyncio.subprocess.Process:
        # Any free ports; services and pods can be reached from here through the API server only.
        ours = ["-metrics-addr=127.0.0.1:0", "-health-probe-bind-address=127.0.0.1:0", "-use-kubernetes-proxy"]
        arguments = [*self.launch.arguments, f"-kubeconfig={self._home.kubeconfig}", *ours]
        mark = f"{self._home.root.resolve()}:{_PROCESS}"
        inherited = {name: os.environ[name] for name in ("PATH", "HOME", "TZ", "LANG") if name in os.environ}
        log = self._log_file
        log.parent.mkdir(parents=True, exist_ok=True)
        mode = "ab" if not log.exists() or log.stat().st_size < _LOG_BYTES else "wb"
        with log.open(mode) as output:
            return await asyncio.create_subprocess_exec(
                str(self._home.bin / _PROCESS),
                *arguments,
                "-enable-leader-election=false",
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**inherited, **dict(self.launch.environment), MARK: mark},
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
        _log.info("%s: the KubeRay operator (process %d) is stopped", self._owner, process.pid)
