"""`kubernetes:helm.sh/v3:Release` through the `helm` program: inputs, state and errors shaped as the real plugin's.

Answers to (recorded): ../shared/upstream/kubernetes-plugin, steps 1 to 8 for resource `rel` (plugin 4.29.0).
Answers to (read): function `kubernetes:helm:template` of the real plugin, pulumi-kubernetes v4.32.0,
    https://github.com/pulumi/pulumi-kubernetes/blob/v4.32.0/provider/pkg/provider/invoke_helm_template.go
Answers to (believed): repair of a release whose helm was killed, and its warning: no recording has one. One of the
    real plugin would settle it.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import yaml

from berth.lab.home import Home
from berth.lab.plugins.kubernetes import diff, objects
from berth.lab.plugins.kubernetes.helm import Helm, HelmError
from berth.lab.plugins.kubernetes.lab_charts import played
from berth.lab.plugins.kubernetes.release_shape import (
    chart_flags,
    deep_merge,
    install_flags,
    outputs_of,
    upgrade_flags,
    values_of,
    with_defaults,
)
from berth.lab.plugins.provider import (
    CheckRequest,
    CheckResult,
    CreateRequest,
    DeleteRequest,
    DiffRequest,
    DiffResult,
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

    from berth.lab.plugins.kubernetes.settings import Settings
    from berth.lab.plugins.provider import Engine

_INPUTS = "__inputs"
_IDENTITY = (("name",), ("namespace",))

# Which resource installed a release: an interrupted creation is found again by it.
_LABEL = "pulumi-urn"

# A helm that an interrupted run left behind gets this long to end before its release is repaired.
_SETTLE_SECONDS = 5.0


class Releases:
    """Helm releases of one cluster.

    Args:
        settings: the provider's settings.
        engine: for the lines shown to the user.
        cancelled: set when the user interrupts.
    """

    def __init__(self, settings: Settings, engine: Engine, cancelled: threading.Event) -> None:
        self._settings = settings
        self._engine = engine
        self._helm = Helm(settings.access, cancelled)
        self._charts = Home.current().charts

    def close(self) -> None:
        """Stop running helms and remove their files."""
        self._helm.close()

    def check(self, request: CheckRequest) -> CheckResult:
        """Defaults, a name, and the chart's own version where the program gives none or a range."""
        given = reveal(request.news)
        failures = []
        try:
            given["values"] = values_of(given, self._helm.path_of)
        except ProviderError as error:
            return CheckResult(request.news, [("valueYamlFiles", str(error))])
        if not given.get("name"):
            olds = reveal(request.olds)
            given["name"] = olds.get("name") or objects.autoname(request.name, request.seed)
        inputs = with_defaults(given, self._settings.namespace or "default")
        if not isinstance(inputs.get("chart"), str | Unknown) or not inputs["chart"]:
            return CheckResult(request.news, [("chart", "a release needs a chart: a name, a path or an address")])
        stand_in = None if has(inputs, Unknown) else played(self._charts, inputs)
        if stand_in is not None:
            inputs["version"] = stand_in.version
        elif not has(inputs, Unknown) and not _same_chart(inputs, reveal(request.olds)):
            try:
                inputs["version"] = self._helm.chart_metadata(inputs["chart"], chart_flags(inputs))["version"]
            except HelmError as error:
                failures.append(("chart", f"{error}; check the chart name and repository configuration."))
        elif not has(inputs, Unknown):
            inputs["version"] = reveal(request.olds)["version"]
        checked = mark_secrets(inputs, request.news)
        if has(request.news.get("valueYamlFiles"), Secret):
            checked["values"] = Secret(reveal(checked["values"]))
        return CheckResult(checked, failures)

    def diff(self, request: DiffRequest) -> DiffResult:
        """What differs between the release as last seen and as the program wants it."""
        state, news = reveal(request.olds), reveal(request.news)
        old_inputs = state.pop(_INPUTS, None) or {}
        for key in ("checksum", "resourceNames", "status"):
            old_inputs.pop(key, None)
        seen = objects.prune(state, deep_merge(old_inputs, news))
        found = diff.without_ignored(diff.compare(seen, news, _IDENTITY), request.ignore_changes)
        deleted = {Kind.DELETE, Kind.DELETE_REPLACE}
        return DiffResult(found, input_diff_paths=frozenset(path for path, kind in found.items() if kind in deleted))

    def create(self, request: CreateRequest) -> tuple[str, Properties]:
        """Install, and wait as the release says."""
        if request.preview:
            return "", _preview(request.properties)
        inputs = self._playing(reveal(request.properties), request.urn)
        name, namespace = inputs["name"], inputs["namespace"]
        identity = f"{namespace}/{name}"
        mark = hashlib.sha256(request.urn.encode()).hexdigest()[:32]
        try:
            if self._left_over(name, namespace, mark, request.urn):
                arguments = ["upgrade", name, *upgrade_flags(inputs), "--labels", f"{_LABEL}={mark}"]
            else:
                arguments = ["install", name, *install_flags(inputs), "--labels", f"{_LABEL}={mark}"]
            release = self._apply(arguments, inputs)
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
        """The release as it is; nothing recorded yet means an import."""
        state = reveal(request.properties)
        namespace, name = objects.parse_id(request.id)
        namespace = state.get("namespace") or namespace or self._settings.namespace or "default"
        found = self._helm.release(state.get("name") or name, namespace)
        if found is None:
            return ReadResult("")
        inputs = request.inputs
        if not inputs:
            chart = found["chart"]["metadata"]
            known = {"name": name, "namespace": namespace, "chart": chart["name"], "version": chart["version"]}
            inputs = with_defaults({**known, "values": found.get("config") or {}}, namespace)
        result = _state(inputs, found)
        status = found["info"]["status"]
        if self._helm.is_pending(found, 0.0):
            text = f'Helm release "{request.id}" is {status}: its helm did not finish; the next update repairs it'
            raise InitFailedError(request.id, result, [text], inputs)
        return ReadResult(request.id, result, inputs)

    def update(self, request: UpdateRequest) -> Properties:
        """Upgrade, and wait as the release says."""
        if request.preview:
            return _preview(request.news)
        inputs = self._playing(reveal(request.news), request.urn)
        name, namespace = inputs["name"], inputs["namespace"]
        identity = f"{namespace}/{name}"
        try:
            found = self._helm.release(name, namespace)
            if found and self._helm.is_pending(found, _SETTLE_SECONDS):
                self._repair(name, namespace, request.urn)
                found = self._helm.release(name, namespace)
            # A release that was never deployed, and one that somebody uninstalled, are installed anew.
            arguments = (
                ["upgrade", name, *upgrade_flags(inputs)] if found else ["install", name, *install_flags(inputs)]
            )
            release = self._apply(arguments, inputs)
        except HelmError as error:
            found = None if error.unreachable else self._helm.release(name, namespace)
            if found is None:
                raise ProviderError(f'Helm release "{identity}" was not updated: {error}') from error
            text = f'Helm release "{identity}" failed to initialize completely. Use Helm CLI to investigate: {error}'
            raise InitFailedError(identity, _state(request.news, found), [text]) from error
        return _state(request.news, release)

    def delete(self, request: DeleteRequest) -> None:
        """Uninstall, and wait until its objects are gone unless the release skips waiting."""
        state = reveal(request.properties)
        namespace, name = objects.parse_id(request.id)
        flags = [] if state.get("skipAwait") and not state.get("atomic") else ["--wait"]
        flags += ["--timeout", f"{state.get('timeout') or 300}s"]
        try:
            self._helm.run(
                ["uninstall", state.get("name") or name, *flags], namespace=state.get("namespace") or namespace
            )
        except HelmError as error:
            if error.unreachable and "deleteUnreachable" in self._settings.switches:
                self._engine.warn(request.urn, f"{error}. Deleting the unreachable release from Pulumi state")
            elif not error.not_found:
                raise ProviderError(f'Helm release "{request.id}" was not deleted: {error}') from error

    def template(self, options: str) -> list[Any]:
        """The objects of a chart, those in its folder `crds/` among them, rendered without a release.

        Args:
            options: the options of the real plugin's function `kubernetes:helm:template`, as JSON.
        """
        given = json.loads(options)
        inputs = with_defaults(
            {
                "chart": given["chart"],
                "version": given.get("version") or "",
                "repositoryOpts": {"repo": (given.get("fetch_opts") or {}).get("repo") or ""},
            },
            given.get("namespace") or "default",
        )
        stand_in = played(self._charts, inputs)
        if stand_in is not None:
            inputs |= {"chart": str(stand_in.copy(self._helm.files())), "version": "", "repositoryOpts": None}
        command = ["template", given["release_name"], inputs["chart"], "--include-crds", *chart_flags(inputs)]
        text = self._helm.run([*command, "--namespace", inputs["namespace"]], values=given.get("values") or {})
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        return [item for item in yaml.load_all(text, Loader=loader) if item]

    def _apply(self, arguments: list[str], inputs: Mapping[str, Any]) -> dict[str, Any]:
        path = self._helm.path_of(inputs["chart"])
        chart = str(path.resolve()) if path else inputs["chart"]
        command = [*arguments[:2], chart, *arguments[2:], "--output", "json"]
        output = self._helm.run(command, namespace=inputs["namespace"], values=inputs.get("values") or {})
        release: dict[str, Any] = json.loads(output)
        return release

    def _playing(self, inputs: Properties, urn: str) -> Properties:
        """The inputs as helm gets them: with the lab's chart where that is played for a published one."""
        stand_in = played(self._charts, inputs)
        if stand_in is None:
            return inputs
        self._engine.info(urn, str(stand_in))
        chart = stand_in.copy(self._helm.files())
        return {**inputs, "chart": str(chart), "version": "", "repositoryOpts": None}

    def _left_over(self, name: str, namespace: str, mark: str, urn: str) -> bool:
        """Whether an interrupted run of the same resource left a release that can be upgraded."""
        ours = self._helm.run(
            ["list", "--all", "--short", "--filter", f"^{name}$", "--selector", f"{_LABEL}={mark}"],
            namespace=namespace,
        )
        found = self._helm.release(name, namespace) if ours.strip() else None
        if found and self._helm.is_pending(found, _SETTLE_SECONDS):
            self._repair(name, namespace, urn)
            found = self._helm.release(name, namespace)
        return found is not None

    def _repair(self, name: str, namespace: str, urn: str) -> None:
        self._engine.warn(urn, f'an earlier helm did not finish with release "{namespace}/{name}"; repairing it')
        self._helm.repair(name, namespace)


def _same_chart(inputs: Mapping[str, Any], olds: Mapping[str, Any]) -> bool:
    """Whether a chart of a repository is the recorded one, so that it need not be fetched to know its version."""
    exact = bool(inputs.get("version")) and str(inputs["version"])[0].isdigit()
    same = all(inputs.get(key) == olds.get(key) for key in ("chart", "version", "repositoryOpts"))
    return exact and same and not str(inputs["chart"]).startswith((".", "/"))


def _preview(inputs: Properties) -> Properties:
    return {**inputs, _INPUTS: Secret(reveal(inputs)), "resourceNames": UNKNOWN, "status": UNKNOWN}


def _state(inputs: Properties, release: Mapping[str, Any]) -> Properties:
    plain = reveal(inputs)
    return {**mark_secrets(outputs_of(plain, release), inputs), _INPUTS: Secret(plain)}
