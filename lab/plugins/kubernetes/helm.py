"""The `helm` program on PATH: one call at a time, with its errors as it words them.

Answers to (real): helm itself; the real plugin calls the same code as a library (helm.sh/helm/v3, v3.20.2 in its go.mod).
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from berth.lab.plugins.kubernetes import kubeconfig
from berth.lab.plugins.provider import ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROGRAM = "helm"

# How long a helm that was asked to stop may take to mark its release as failed.
_STOP_SECONDS = 10.0
_LOOK_SECONDS = 0.5

# Helm's own word for an operation that began and has not ended.
_PENDING = "pending-"


class HelmError(ProviderError):
    """Helm refused; the text is helm's own."""

    @property
    def not_found(self) -> bool:
        """There is no release of this name."""
        return "release: not found" in str(self)

    @property
    def unreachable(self) -> bool:
        """Helm found nobody at the server's address."""
        return "Kubernetes cluster unreachable" in str(self)


class Helm:
    """Helm against one cluster. Safe to use from many threads.

    Args:
        access: the cluster, or None while it is not known.
        cancelled: set when the user interrupts: running helms are asked to stop.
    """

    def __init__(self, access: kubeconfig.Access | None, cancelled: threading.Event) -> None:
        self._access = access
        self._cancelled = cancelled
        self._lock = threading.Lock()
        self._home: Path | None = None
        self._running: set[subprocess.Popen[str]] = set()

    def close(self) -> None:
        """Ask running helms to stop, and remove our files."""
        with self._lock:
            running, home = list(self._running), self._home
            self._home = None
        for process in running:
            process.terminate()
        if home:
            shutil.rmtree(home, ignore_errors=True)

    def path_of(self, chart: str) -> Path | None:
        """The chart as a file or folder, or None for one that a repository has."""
        # The engine starts plugins in the program's folder.
        path = Path(chart).expanduser()
        return path if path.exists() and "://" not in chart else None

    def run(self, arguments: list[str], *, namespace: str = "", values: Mapping[str, Any] | None = None) -> str:
        """What helm prints.

        Args:
            arguments: the command and its flags.
            namespace: the release's namespace; without one, helm is not told of any cluster.
            values: chart values, given through a file that only we can read.

        Raises:
            HelmError: it fails, in its own words.
            ProviderError: there is no helm, or no cluster yet.
        """
        command = [_PROGRAM, *arguments]
        with contextlib.ExitStack() as stack:
            if namespace:
                command += ["--namespace", namespace, "--kubeconfig", str(self._kubeconfig())]
            if values is not None:
                file = stack.enter_context(tempfile.NamedTemporaryFile("w", suffix=".json", dir=self.files()))
                json.dump(values, file)
                file.flush()
                command += ["--values", file.name]
            return self._run(command)

    def chart_metadata(self, chart: str, flags: list[str]) -> dict[str, Any]:
        """`Chart.yaml` of a chart: read where it is a folder, else asked from helm (which may fetch it)."""
        path = self.path_of(chart)
        try:
            if path and path.is_dir():
                text = (path / "Chart.yaml").read_text(encoding="utf-8")
            else:
                text = self.run(["show", "chart", str(path or chart), *flags])
            metadata = yaml.safe_load(text)
        except OSError as error:
            raise HelmError(f"{path} is no chart: it has no Chart.yaml") from error
        except yaml.YAMLError as error:
            raise HelmError(f"Chart.yaml of {chart} is not YAML: {error}") from error
        if not isinstance(metadata, dict) or not metadata.get("version"):
            raise HelmError(f"Chart.yaml of {chart} has no version")
        return metadata

    def release(self, name: str, namespace: str) -> dict[str, Any] | None:
        """A release with its chart's metadata, as `helm install -o json` gives it; None where there is none."""
        try:
            found: dict[str, Any] = json.loads(self.run(["status", name, "--output", "json"], namespace=namespace))
            chart = json.loads(self.run(["get", "metadata", name, "--output", "json"], namespace=namespace))
        except HelmError as error:
            if error.not_found:
                return None
            raise
        metadata = {"name": chart["chart"], "version": chart["version"], "appVersion": chart.get("appVersion", "")}
        return {**found, "chart": {"metadata": metadata}}

    def history(self, name: str, namespace: str) -> list[dict[str, Any]]:
        """A release's revisions, oldest first."""
        found: list[dict[str, Any]] = json.loads(self.run(["history", name, "--output", "json"], namespace=namespace))
        return found

    def repair(self, name: str, namespace: str) -> None:
        """Bring a release whose helm was killed midway back to where helm works on it again.

        A release that was never deployed goes; another one goes back to its last deployed revision.
        """
        revisions = self.history(name, namespace)
        good = [one["revision"] for one in revisions if one["status"] in {"deployed", "superseded"}]
        if good:
            self.run(["rollback", name, str(good[-1]), "--no-hooks"], namespace=namespace)
        else:
            self.run(["uninstall", name, "--no-hooks", "--wait"], namespace=namespace)

    def is_pending(self, release: Mapping[str, Any], seconds: float) -> bool:
        """Whether a release is in the middle of an operation, and stays so for this long."""
        pending = _is_pending(release)
        while pending and seconds > 0 and not self._cancelled.wait(1.0):
            seconds -= 1.0
            again = self.release(release["name"], release["namespace"])
            pending = again is not None and _is_pending(again)
        return pending

    def _run(self, command: list[str]) -> str:
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        except FileNotFoundError as error:
            raise ProviderError(
                "Helm releases need the helm program on PATH; install Helm 3, or put its folder on PATH"
            ) from error
        with self._lock:
            self._running.add(process)
        try:
            output, errors = self._finish(process)
        finally:
            with self._lock:
                self._running.discard(process)
        if process.returncode:
            if self._cancelled.is_set():
                raise HelmError(f"{' '.join(command[:3])} was interrupted")
            code = process.returncode
            ended = f"was killed by signal {-code}" if code < 0 else f"failed with exit code {code}"
            raise HelmError(_message(errors) or f"helm {command[1]} {ended}")
        return output

    def _finish(self, process: subprocess.Popen[str]) -> tuple[str, str]:
        left = _STOP_SECONDS
        while True:
            try:
                return process.communicate(timeout=_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                if not self._cancelled.is_set():
                    continue
            if left == _STOP_SECONDS:
                process.terminate()
            elif left <= 0:
                process.kill()
            left -= _LOOK_SECONDS

    def files(self) -> Path:
        """A folder of ours, which goes with us."""
        with self._lock:
            if self._home is None:
                self._home = Path(tempfile.mkdtemp(prefix="berth-helm-"))
            return self._home

    def _kubeconfig(self) -> Path:
        if self._access is None:
            raise ProviderError("configured Kubernetes cluster is unreachable: the kubeconfig is not known yet")
        path = self.files() / "kubeconfig"
        with self._lock:
            if not path.exists():
                path.touch(mode=0o600)
                path.write_text(kubeconfig.standalone(self._access), encoding="utf-8")
        return path


def _is_pending(release: Mapping[str, Any]) -> bool:
    return str(release["info"]["status"]).startswith(_PENDING)


def _message(errors: str) -> str:
    # Warnings come first, on lines of their own.
    _, _, text = errors.rpartition("Error: ")
    return text.strip()
