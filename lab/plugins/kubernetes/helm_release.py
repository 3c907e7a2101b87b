"""`kubernetes:helm.sh/v3:Release` through the `helm` program, in the real plugin's shape.

Answers to (recorded): ../shared/upstream/kubernetes-plugin, steps 1 to 8 for resource `rel` (plugin
    4.29.0).
Answers to (read): function `kubernetes:helm:template` of the real plugin, pulumi-kubernetes
    v4.32.0,
    https://github.com/pulumi/pulumi-kubernetes/blob/v4.32.0/provider/pkg/provider/invoke_helm_template.go
Answers to (believed): helm is run again where the server does not yet serve a kind that the chart
    has just defined, since a laptop's API server is slower than GKE's. An installation by the real
    plugin on such a machine would settle it.
Answers to (believed): repair of a release whose helm was killed, and its warning: no recording has
    one. One of the real plugin would settle it.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import yaml

from berth.components.core.fast_yaml import LOADER
from berth.lab.home import Home
from berth.lab.plugins.kubernetes import diff, objects
from berth.lab.plugins.kubernetes.helm import Helm, HelmError
from berth.lab.plugins.kubernetes.lab_charts import played
from berth.lab.plugins.kubernetes.release_shape import (
    SECONDS,
    chart_flags,
    deep_merge,
    install_flags,
    outputs_of,
    unsupported,
    upgrade_flags,
    with_defaults,
)
from berth.lab.plugins.provider import (
    CheckRequest,
    CheckResult,
    CreateRequest,
    DeleteRequest,
    DiffRequest,
    DiffResult,
    Handler,
    InitFailedError,
    Kind,
    ProviderError,
    ReadRequest,
    ReadResult,
    UpdateRequest,
)
from berth.lab.plugins.values import UNKNOWN, Properties, Secret, Unknown, has, mark_secrets, reveal

if TYPE_CHECKING:
    import threading
    from collections.abc import Mapping

    from berth.lab.plugins.provider import Engine

_INPUTS = "__inputs"
_IDENTITY = (("name",), ("namespace",))

# Label of a release with its resource: an interrupted creation is found by it.
_LABEL = "pulumi-urn"

# Runs of a helm that finds no kind of a definition which is there, but not served yet.
_ATTEMPTS = 4

# Time in which a helm that an interrupted run left behind may end before its release is repaired.
_SETTLE_SECONDS = 5.0


class Releases(Handler):
    """Helm releases of one cluster."""

    def __init__(self, kubeconfig: str | None, engine: Engine, canceled: threading.Event) -> None:
        self._engine = engine
        self._helm = Helm(kubeconfig, canceled)
        self._charts = Home.current().charts

    def close(self) -> None:
        """Stop running helms and remove their files."""
        self._helm.close()

    def check(self, request: CheckRequest) -> CheckResult:
        """Fill in defaults, a name, and the chart's version instead of none or a range."""
        given, olds = reveal(request.news), reveal(request.olds)
        if missing := unsupported(given):
            reason = (
                f"not part of the lab's stand-in for the kubernetes provider; install the real one to use {missing}"
            )
            return CheckResult(request.news, [(missing, reason)])
        given["name"] = given.get("name") or olds.get("name") or objects.autoname(request.name, request.seed)
        inputs = with_defaults(given)
        if not isinstance(inputs.get("chart"), str | Unknown) or not inputs["chart"]:
            return CheckResult(request.news, [("chart", "a release needs a chart: a name, a path or an address")])
        failures = []
        if not has(inputs, Unknown):
            lab_chart = played(self._charts, inputs)
            if lab_chart is not None:
                inputs["version"] = lab_chart.version
            elif _same_chart(inputs, olds):
                inputs["version"] = olds["version"]
            else:
                try:
                    inputs["version"] = self._helm.chart_metadata(inputs["chart"], chart_flags(inputs))["version"]
                except HelmError as error:
                    failures.append(("chart", f"{error}; check the chart name and repository configuration."))
        return CheckResult(mark_secrets(inputs, request.news), failures)

    def diff(self, request: DiffRequest) -> DiffResult:
        """Compare the release as last seen with the release as the program wants it."""
        state, news = reveal(request.olds), reveal(request.news)
        old_inputs = state.pop(_INPUTS, None) or {}
        for key in ("checksum", "resourceNames", "status"):
            old_inputs.pop(key, None)
        seen = objects.prune(state, deep_merge(old_inputs, news))
        found = diff.without_ignored(diff.compare(seen, news, _IDENTITY), request.ignore_changes)
        deleted = {Kind.DELETE, Kind.DELETE_REPLACE}
        return DiffResult(found, input_diff_paths=frozenset(path for path, kind in found.items() if kind in deleted))

    def create(self, request: CreateRequest) -> tuple[str, Properties]:
        """Install, and wait until the objects are ready."""
        if request.preview:
            return "", _preview(request.properties)
        inputs = self._playing(reveal(request.properties), request.urn)
        name, namespace = inputs["name"], inputs["namespace"]
        identity = f"{namespace}/{name}"
        mark = hashlib.sha256(request.urn.encode()).hexdigest()[:32]
        try:
            found = self._left_over(name, namespace, mark, request.urn)
            release = self._apply(inputs, ["--labels", f"{_LABEL}={mark}"], upgrade=found is not None)
        except HelmError as error:
            found = None if error.unreachable else self._helm.release(name, namespace)
            if found is None or found["info"]["status"] == "deployed":
                raise ProviderError(f'Helm release "{identity}" was not created: {error}') from error
            text = (
                f'Helm release "{identity}" was created, but failed to initialize completely. '
                f"Use Helm CLI to investigate: {error}"
            )
            raise InitFailedError(identity, _state(request.properties, found), [text]) from error
        return identity, _state(request.properties, release)

    def read(self, request: ReadRequest) -> ReadResult:
        """Return the release as it is."""
        state = reveal(request.properties)
        if not request.inputs:
            raise ProviderError("an import is not part of the lab's stand-in for the kubernetes provider")
        found = self._helm.release(state["name"], state["namespace"])
        if found is None:
            return ReadResult("")
        result = _state(request.inputs, found)
        if self._helm.is_pending(found, 0.0):
            status = found["info"]["status"]
            text = f'Helm release "{request.id}" is {status}: its helm did not finish; the next update repairs it'
            raise InitFailedError(request.id, result, [text], request.inputs)
        return ReadResult(request.id, result, request.inputs)

    def update(self, request: UpdateRequest) -> Properties:
        """Upgrade, and wait until the objects are ready."""
        if request.preview:
            return _preview(request.news)
        inputs = self._playing(reveal(request.news), request.urn)
        name, namespace = inputs["name"], inputs["namespace"]
        identity = f"{namespace}/{name}"
        try:
            # A release that was never deployed, and one that somebody uninstalled, are installed
            # again.
            found = self._usable(name, namespace, request.urn)
            release = self._apply(inputs, [], upgrade=found is not None)
        except HelmError as error:
            found = None if error.unreachable else self._helm.release(name, namespace)
            if found is None:
                raise ProviderError(f'Helm release "{identity}" was not updated: {error}') from error
            text = f'Helm release "{identity}" failed to initialize completely. Use Helm CLI to investigate: {error}'
            raise InitFailedError(identity, _state(request.news, found), [text]) from error
        return _state(request.news, release)

    def delete(self, request: DeleteRequest) -> None:
        """Uninstall, and wait until the objects are gone."""
        state = reveal(request.properties)
        flags = ["--wait", "--timeout", f"{int(state.get('timeout') or SECONDS)}s"]
        try:
            self._helm.run(["uninstall", state["name"], *flags], namespace=state["namespace"])
        except HelmError as error:
            if not error.not_found:
                raise ProviderError(f'Helm release "{request.id}" was not deleted: {error}') from error

    def template(self, options: str) -> list[Any]:
        """Return the objects of a chart, with its folder `crds/`, rendered without a release."""
        given = json.loads(options)
        inputs = with_defaults(
            {
                "chart": given["chart"],
                "version": given.get("version") or "",
                "repositoryOpts": {"repo": (given.get("fetch_opts") or {}).get("repo") or ""},
                "namespace": given.get("namespace"),
            }
        )
        lab_chart = played(self._charts, inputs)
        if lab_chart is not None:
            inputs |= {"chart": str(lab_chart.copy(self._helm.files())), "version": "", "repositoryOpts": None}
        command = ["template", given["release_name"], inputs["chart"], "--include-crds", *chart_flags(inputs)]
        text = self._helm.run([*command, "--namespace", inputs["namespace"]], values=given.get("values") or {})
        return [item for item in yaml.load_all(text, Loader=LOADER) if item]

    def _apply(self, inputs: Mapping[str, Any], more: list[str], *, upgrade: bool) -> dict[str, Any]:
        path = self._helm.path_of(inputs["chart"])
        chart = str(path.resolve()) if path else inputs["chart"]
        verb, flags = ("upgrade", upgrade_flags(inputs)) if upgrade else ("install", install_flags(inputs))
        command = [verb, inputs["name"], chart, *flags, *more, "--output", "json"]
        for left in reversed(range(_ATTEMPTS)):
            try:
                output = self._helm.run(command, namespace=inputs["namespace"], values=inputs.get("values") or {})
                break
            except HelmError as error:
                if not (left and error.kind_not_served):
                    raise
        release: dict[str, Any] = json.loads(output)
        return release

    def _playing(self, inputs: Properties, urn: str) -> Properties:
        """Return the inputs for helm, with the lab's chart in place of a published one."""
        lab_chart = played(self._charts, inputs)
        if lab_chart is None:
            return inputs
        self._engine.info(urn, str(lab_chart))
        return {**inputs, "chart": str(lab_chart.copy(self._helm.files())), "version": "", "repositoryOpts": None}

    def _left_over(self, name: str, namespace: str, mark: str, urn: str) -> dict[str, Any] | None:
        """Return the release that an interrupted run of the same resource left, if any."""
        ours = self._helm.run(
            ["list", "--all", "--short", "--filter", f"^{name}$", "--selector", f"{_LABEL}={mark}"],
            namespace=namespace,
        )
        return self._usable(name, namespace, urn) if ours.strip() else None

    def _usable(self, name: str, namespace: str, urn: str) -> dict[str, Any] | None:
        """Return a release, repaired if a killed helm left it pending; None where there is none."""
        found = self._helm.release(name, namespace)
        if found and self._helm.is_pending(found, _SETTLE_SECONDS):
            self._engine.warn(urn, f'an earlier helm did not finish with release "{namespace}/{name}"; repairing it')
            self._helm.repair(name, namespace)
            found = self._helm.release(name, namespace)
        return found


def _same_chart(inputs: Mapping[str, Any], olds: Mapping[str, Any]) -> bool:
    """Return whether a repository's chart is the recorded one, so that its version is known."""
    exact = bool(inputs.get("version")) and str(inputs["version"])[0].isdigit()
    same = all(inputs.get(key) == olds.get(key) for key in ("chart", "version", "repositoryOpts"))
    return exact and same and not str(inputs["chart"]).startswith((".", "/"))


def _preview(inputs: Properties) -> Properties:
    return {**inputs, _INPUTS: Secret(reveal(inputs)), "resourceNames": UNKNOWN, "status": UNKNOWN}


def _state(inputs: Properties, release: Mapping[str, Any]) -> Properties:
    plain = reveal(inputs)
    return {**mark_secrets(outputs_of(plain, release), inputs), _INPUTS: Secret(plain)}
