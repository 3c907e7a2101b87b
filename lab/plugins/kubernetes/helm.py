"""The `helm` program on PATH: one call at a time, with helm's own words for its errors.

Answers to (real): helm itself; the real plugin calls the same code as a library (helm.sh/helm/v3,
    v3.20.2 in its go.mod).
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

from berth.lab.plugins.provider import ProviderError

if TYPE_CHECKING:
    from collections.abc import Mapping

_PROGRAM = "helm"

# Time in which a helm that is asked to stop marks its release as failed.
_STOP_SECONDS = 10.0
_LOOK_SECONDS = 0.5


class HelmError(ProviderError):
    """Error of helm, in its own words."""

    @property
    def not_found(self) -> bool:
        """Whether there is no release of this name. Helm says it only in its text."""
        return "release: not found" in str(self)

    @property
    def unreachable(self) -> bool:
        """Whether no server answers helm. Helm says it only in its text."""
        return "Kubernetes cluster unreachable" in str(self)

    @property
    def kind_not_served(self) -> bool:
        """Whether the server serves no such kind, before anything of the release is written."""
        return "ensure CRDs are installed first" in str(self)


class Helm:
    """Helm against one cluster. Safe to use from many threads."""

    def __init__(self, kubeconfig: str | None, canceled: threading.Event) -> None:
        self._kubeconfig = kubeconfig
        self._canceled = canceled
        self._lock = threading.Lock()
        self._home: Path | None = None
        self._running: set[subprocess.Popen[str]] = set()

    def close(self) -> None:
        """Ask running helms to stop, and remove the folder of files."""
        with self._lock:
            running, home = list(self._running), self._home
            self._home = None
        for process in running:
            process.terminate()
        if home:
            shutil.rmtree(home, ignore_errors=True)

    def path_of(self, chart: str) -> Path | None:
        """Return the chart as a file or folder; None for a chart of a repository."""
        # The engine starts plugins in the program's folder.
        path = Path(chart).expanduser()
        return path if path.exists() and "://" not in chart else None

    def run(self, arguments: list[str], *, namespace: str = "", values: Mapping[str, Any] | None = None) -> str:
        """Run helm and return its output.

        Raises:
            HelmError: helm fails.
            ProviderError: there is no helm, or no cluster yet.
        """
        command = [_PROGRAM, *arguments]
        with contextlib.ExitStack() as stack:
            if namespace:
                command += ["--namespace", namespace, "--kubeconfig", str(self._kubeconfig_file())]
            if values is not None:
                file = stack.enter_context(tempfile.NamedTemporaryFile("w", suffix=".json", dir=self.files()))
                json.dump(values, file)
                file.flush()
                command += ["--values", file.name]
            return self._run(command)

    def chart_metadata(self, chart: str, flags: list[str]) -> dict[str, Any]:
        """Return `Chart.yaml` of a chart, from its folder or from helm, which may fetch it."""
        path = self.path_of(chart)
        try:
            if path and path.is_dir():
                text = (path / "Chart.yaml").read_text(encoding="utf-8")
            else:
                text = self.run(["show", "chart", str(path or chart), *flags])
            metadata = yaml.safe_load(text)
        except OSError as error:
            raise HelmError(f"{path} is not a chart: it has no Chart.yaml") from error
        except yaml.YAMLError as error:
            raise HelmError(f"Chart.yaml of {chart} is not YAML: {error}") from error
        if not isinstance(metadata, dict) or not metadata.get("version"):
            raise HelmError(f"Chart.yaml of {chart} has no version")
        return metadata

    def release(self, name: str, namespace: str) -> dict[str, Any] | None:
        """Return a release in the form of `helm install -o json`; None where there is none."""
        try:
            found: dict[str, Any] = json.loads(self.run(["status", name, "--output", "json"], namespace=namespace))
            chart = json.loads(self.run(["get", "metadata", name, "--output", "json"], namespace=namespace))
        except HelmError as error:
            if error.not_found:
                return None
            raise
        metadata = {"name": chart["chart"], "version": chart["version"], "appVersion": chart.get("appVersion", "")}
        return {**found, "chart": {"metadata": metadata}}

    def repair(self, name: str, namespace: str) -> None:
        """Make a release usable again whose helm was killed in the middle of an operation.

        A release that was never deployed is uninstalled; another one goes back to its last deployed
        revision.
        """
        revisions = json.loads(self.run(["history", name, "--output", "json"], namespace=namespace))
        good = [revision["revision"] for revision in revisions if revision["status"] in {"deployed", "superseded"}]
        if good:
            self.run(["rollback", name, str(good[-1]), "--no-hooks"], namespace=namespace)
        else:
            self.run(["uninstall", name, "--no-hooks", "--wait"], namespace=namespace)

    def is_pending(self, release: Mapping[str, Any], seconds: float) -> bool:
        """Return whether a release is in the middle of an operation, and stays so for this long."""
        pending = _is_pending(release)
        while pending and seconds > 0 and not self._canceled.wait(1.0):
            seconds -= 1.0
            again = self.release(release["name"], release["namespace"])
            pending = again is not None and _is_pending(again)
        return pending

    def files(self) -> Path:
        """Return a temporary folder that `close` removes."""
        with self._lock:
            if self._home is None:
                self._home = Path(tempfile.mkdtemp(prefix="berth-helm-"))
            return self._home

    def _run(self, command: list[str]) -> str:
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, text=True)
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
            if self._canceled.is_set():
                raise HelmError(f"{' '.join(command[:3])} was interrupted")
            code = process.returncode
            ended = f"was killed by signal {-code}" if code < 0 else f"failed with exit code {code}"
            # Warnings come first, on lines of their own.
            raise HelmError(errors.rpartition("Error: ")[2].strip() or f"helm {command[1]} {ended}")
        return output

    def _finish(self, process: subprocess.Popen[str]) -> tuple[str, str]:
        left = _STOP_SECONDS
        while True:
            try:
                return process.communicate(timeout=_LOOK_SECONDS)
            except subprocess.TimeoutExpired:
                if not self._canceled.is_set():
                    continue
            if left == _STOP_SECONDS:
                process.terminate()
            elif left <= 0:
                process.kill()
            left -= _LOOK_SECONDS

    def _kubeconfig_file(self) -> Path:
        if self._kubeconfig is None:
            raise ProviderError("the kubeconfig of the cluster is not known yet")
        path = self.files() / "kubeconfig"
        with self._lock:
            if not path.exists():
                path.touch(mode=0o600)
                path.write_text(self._kubeconfig, encoding="utf-8")
        return path


def _is_pending(release: Mapping[str, Any]) -> bool:
    return str(release["info"]["status"]).startswith("pending-")
