"""Provider of the `kubernetes` package: Kubernetes objects and Helm releases.

Answers to (recorded): shared/upstream/kubernetes-plugin (the real plugin 4.29.0), compared by
    tests/lab/test_kubernetes_plugin.py
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from berth.lab.plugins.kubernetes import settings
from berth.lab.plugins.kubernetes.client import Cluster
from berth.lab.plugins.kubernetes.resources import Resources
from berth.lab.plugins.provider import (
    CheckRequest,
    CheckResult,
    DiffRequest,
    DiffResult,
    Handler,
    Provider,
    ProviderError,
)

if TYPE_CHECKING:
    from berth.lab.plugins.kubernetes.helm_release import Releases
    from berth.lab.plugins.values import Properties


_RELEASE = "kubernetes:helm.sh/v3:Release"
_TEMPLATE = "kubernetes:helm:template"


class KubernetesProvider(Provider):
    """Provider that answers the engine for the part of the `kubernetes` package that berth uses."""

    def __init__(self) -> None:
        super().__init__()
        self._resources: Resources | None = None
        self._releases: Releases | None = None

    def check_config(self, request: CheckRequest) -> CheckResult:
        """Refuse settings that cannot work before any resource is registered."""
        try:
            settings.read(request.news)
        except ProviderError as error:
            return CheckResult(request.news, [("", str(error))])
        return CheckResult(request.news)

    def diff_config(self, request: DiffRequest) -> DiffResult:
        """See `settings.compare`."""
        return settings.compare(request)

    def configure(self, given: Properties) -> None:
        """Take the settings; the first resource connects to the server."""
        from berth.lab.plugins.kubernetes.helm_release import Releases  # noqa: PLC0415 (not at every start)

        chosen = settings.read(given)
        cluster = Cluster(chosen.kubeconfig, self.canceled)
        self._resources = Resources(cluster, self.engine, self.canceled, upsert=chosen.upsert)
        self._releases = Releases(chosen.kubeconfig, self.engine, self.canceled)

    def handler(self, type_token: str) -> Handler:
        """Return the handler of a resource type."""
        if self._resources is None or self._releases is None:
            raise ProviderError("the provider has not been configured")
        if type_token == _RELEASE:
            return self._releases
        if type_token.startswith(("kubernetes:helm.sh/", "kubernetes:yaml", "kubernetes:kustomize")):
            raise ProviderError(f"{type_token} is not part of the lab's stand-in for the kubernetes provider")
        return self._resources

    def invoke(self, token: str, arguments: Properties) -> Properties:
        """Run a function: of the real plugin's, only the one that berth calls."""
        if token != _TEMPLATE or self._releases is None:
            return super().invoke(token, arguments)
        return {"result": self._releases.template(str(arguments["jsonOpts"]))}

    def close(self) -> None:
        """Stop helm where it still runs, and remove its kubeconfig."""
        if self._releases:
            self._releases.close()
