"""Commands that are timed, and the memory of all their processes."""

import contextlib
import resource
import subprocess
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

_SAMPLE_SECONDS = 0.2
_FIRST_SAMPLE_SECONDS = 0.01
_END_SECONDS = 60
_SHOWN_SECONDS = 0.1
_MEGABYTE = 2**20

# Interpreters run more than one program of an update.
_SCRIPTS = {
    "pulumi-language-python-exec": "program",
    "pulumi-resource-kubernetes": "kubernetes plugin",
    "berth": "berth",
}


class BenchError(Exception):
    """Command that failed, or took too long, with its output."""


@dataclass
class Measured:
    """Command that has ended.

    Attributes:
        seconds: its duration.
        cpu: seconds of CPU of the command and of all its processes that have ended with it.
        stdout: its standard output.
        memory: largest sum of resident memory in MB by program, and of all at one time as `all`.
        programs: seconds of CPU by program, as sampled: without the last moments of each process.
    """

    seconds: float
    cpu: float = 0.0
    stdout: str = ""
    memory: dict[str, float] = field(default_factory=dict)
    programs: dict[str, float] = field(default_factory=dict)


def measured(
    command: Sequence[str],
    cwd: Path,
    env: Mapping[str, str],
    *,
    stdin: str = "",
    codes: Sequence[int] = (0,),
) -> Measured:
    """Run a command to its end.

    Raises:
        BenchError: the exit code is none of `codes`.
    """
    began = time.perf_counter()
    cpu = _cpu()
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            with _sampled(process.pid) as (memory, programs):
                stdout, stderr = process.communicate(stdin)
        except BaseException:
            # Ctrl-C at a terminal reaches the command, too, which then cleans up.
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.communicate(timeout=_END_SECONDS)
            process.kill()
            raise
    seconds = time.perf_counter() - began
    cpu = _cpu() - cpu
    if process.returncode not in codes:
        output = f"{stdout}\n{stderr}".strip()[-4000:]
        raise BenchError(
            f"{' '.join(command)} ended with {process.returncode} after {seconds:.0f} s:\n{output}"
        )
    return Measured(
        seconds,
        cpu,
        stdout,
        {name: round(size / _MEGABYTE, 1) for name, size in sorted(memory.items())},
        {name: round(used, 2) for name, used in sorted(programs.items()) if used >= _SHOWN_SECONDS},
    )


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@contextlib.contextmanager
def _sampled(pid: int) -> Iterator[tuple[Counter[str], dict[str, float]]]:
    """Sample memory and CPU of a process and its descendants for the block, by program."""
    highest: Counter[str] = Counter()
    used: dict[str, float] = defaultdict(float)
    by_process: dict[psutil.Process, tuple[str, float]] = {}
    over = threading.Event()

    def sample() -> None:
        root = psutil.Process(pid)
        pause = _FIRST_SAMPLE_SECONDS
        while not over.wait(pause):
            pause = min(2 * pause, _SAMPLE_SECONDS)
            now: Counter[str] = Counter()
            with contextlib.suppress(psutil.Error):
                for process in (root, *root.children(recursive=True)):
                    with contextlib.suppress(psutil.Error):
                        program = _program(process)
                        times = process.cpu_times()
                        now[program] += process.memory_info().rss
                        by_process[process] = program, times.user + times.system
            now["all"] = now.total()
            for name, size in now.items():
                highest[name] = max(highest[name], size)

    thread = threading.Thread(target=sample, daemon=True)
    thread.start()
    try:
        yield highest, used
    finally:
        over.set()
        thread.join()
        for program, seconds in by_process.values():
            used[program] += seconds


def _program(process: psutil.Process) -> str:
    name = process.name()
    if name.startswith("python"):
        words = [Path(word).name for word in process.cmdline()[:4]]
        return next((_SCRIPTS[word] for word in words if word in _SCRIPTS), "python")
    return name
