"""The component that installs an operator: it registers its parts, one after the other."""

import os
from collections.abc import Mapping
from typing import Any

import pulumi
from pulumi_kubernetes.helm import v3 as helm

from berth.components.cluster.objects import KubernetesObject
from berth.components.hardware.versions import CHART_MIRROR
from berth.components.operators.definitions import definitions_hook
from berth.components.operators.failed_release import failed_release_hook
from berth.components.operators.operator import Operator
from berth.components.operators.parts import Chart, Object
from berth.components.operators.repair import Repair


class Installation(pulumi.ComponentResource):
    """An operator on a cluster: its namespace, charts and objects."""

    def __init__(
        self, name: str, operator: Operator[Any], opts: pulumi.ResourceOptions | None = None
    ) -> None:
        super().__init__(operator.pulumi_type(), name, None, opts)
        mirror = operator.site.chart_mirror or os.environ.get(CHART_MIRROR, "")
        last: list[pulumi.Resource] = []
        for part in operator.parts(name):
            if isinstance(part, Chart):
                repair = Repair(name, part.namespace, operator.site.kubeconfig, self, part.timeout)
                last = [_release(name, part.mirrored(mirror), repair, last)]
            else:
                last = [_object(part, self, last)]
        self.register_outputs({})


def _object(part: Object, parent: pulumi.Resource, last: list[pulumi.Resource]) -> pulumi.Resource:
    aliases = []
    if part.was_part_of:
        before = f"urn:pulumi:{pulumi.get_stack()}::{pulumi.get_project()}::{part.was_part_of}"
        aliases.append(pulumi.Alias(parent=before))
    options = pulumi.ResourceOptions(parent=parent, depends_on=last, aliases=aliases)
    return KubernetesObject(part.name, part.manifest, options)


def _release(
    name: str, chart: Chart, repair: Repair, needs: list[pulumi.Resource]
) -> pulumi.Resource:
    """Register a real Helm release, whose hooks run and whose objects are ready when it is done."""
    parent = repair.resource
    before = [repair.hook()]
    if chart.definition:
        before.append(definitions_hook(name, chart, repair.kubeconfig, parent))
    warn = [_warnings_hook(name, chart)] if chart.warn else []
    hooks = pulumi.ResourceHookBinding(
        before_create=[*before],
        before_update=[*warn, *before],
        on_error=[failed_release_hook(name, chart.namespace, repair.kubeconfig, parent)],
    )
    version = None if chart.is_folder else chart.version
    repository = None
    if chart.in_repository:
        repository = helm.RepositoryOptsArgs(repo=chart.in_repository)
    installed: pulumi.Resource = helm.Release(
        name,
        name=name,
        chart=chart.chart,
        version=version,
        repository_opts=repository,
        namespace=chart.namespace,
        values=chart.values,
        description=repair.description(chart.values, version),
        # Without it the provider drops every null.
        allow_null_values=has_null(chart.values) or None,
        timeout=chart.timeout,
        disable_openapi_validation=None if chart.validated else True,
        opts=pulumi.ResourceOptions(parent=parent, depends_on=needs, hooks=hooks),
    )
    return installed


def _warnings_hook(name: str, chart: Chart) -> pulumi.ResourceHook:
    def warn(change: pulumi.ResourceHookArgs) -> None:
        if chart.warn:
            for line in chart.warn(_values(change.old_inputs), _values(change.new_inputs)):
                pulumi.log.warn(line)

    return pulumi.ResourceHook(f"{name}-sharing", warn, pulumi.ResourceHookOptions(on_dry_run=True))


def _values(inputs: Mapping[str, Any] | None) -> Mapping[str, Any]:
    return dict((inputs or {}).get("values") or {})


def has_null(values: Any) -> bool:
    """Return whether Helm values remove a default of the chart.

    Helm does so by a null (https://helm.sh/docs/chart_template_guide/values_files/).
    """
    return values is None or (isinstance(values, Mapping) and any(map(has_null, values.values())))
