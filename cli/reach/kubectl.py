"""kubectl as a child process, for `exec` and `port-forward`, with a private kubeconfig file."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from berth.components.core.errors import BerthError

_END_SECONDS = 5
_EXEC_SECONDS = 30


@contextlib.contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a temporary folder that only this user can enter, in memory where possible."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    where = runtime if runtime and os.access(runtime, os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="berth-", dir=where) as folder:
        yield Path(folder)


def write_private(path: Path, text: str) -> None:
    """Write a file that only this user can read, from its first byte on."""
    with os.fdopen(
        os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
    ) as file:
        file.write(text)


class Kubectl:
    """kubectl on one cluster."""

    def __init__(self, kubeconfig: str, folder: Path) -> None:
        program = shutil.which("kubectl")
        if program is None:
            raise BerthError(
                "kubectl is not on PATH; https://kubernetes.io/docs/tasks/tools/ says how to"
                " install it"
            )
        file = folder / "kubeconfig"
        write_private(file, kubeconfig)
        self._command = [program, "--kubeconfig", str(file)]

    def execute(
        self,
        namespace: str,
        pod: str,
        container: str,
        command: Sequence[str],
        seconds: float = _EXEC_SECONDS,
    ) -> str:
        """Run a command in a container; return its output.

        Raises:
            BerthError: the command fails, or takes longer than a number of seconds.
        """
        where = ["exec", "--namespace", namespace, pod, "--container", container, "--"]
        try:
            done = subprocess.run(
                [*self._command, *where, *command],
                capture_output=True,
                check=False,
                text=True,
                timeout=seconds,
            )
        except subprocess.TimeoutExpired:
            raise BerthError(
                f"no answer from {namespace}/{pod} within {seconds} s",
                "try again; the head may be busy",
            ) from None
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines()
            error = lines[-1] if lines else f"kubectl exec exited with {done.returncode}"
            raise BerthError(error.removeprefix("error: "))
        return done.stdout

    def attached(self, *arguments: str) -> int:
        """Run kubectl on the standard streams of this process; return its exit code."""
        return subprocess.run([*self._command, *arguments], check=False).returncode

    @contextlib.contextmanager
    def started(self, *arguments: str) -> Iterator[subprocess.Popen[str]]:
        """Yield a running kubectl, in a session of its own: Ctrl-C reaches it from here alone."""
        with subprocess.Popen(
            [*self._command, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                yield process
            finally:
                if process.poll() is None:
                    process.send_signal(signal.SIGTERM)
                    try:
                        process.wait(_END_SECONDS)
                    except subprocess.TimeoutExpired:
                        process.kill()


@contextlib.contextmanager
def kubectl(kubeconfig: str) -> Iterator[Kubectl]:
    """Yield kubectl on a cluster; delete its credentials afterward."""
    with private_folder() as folder:
        yield Kubectl(kubeconfig, folder)
