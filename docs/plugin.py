"""Differences between two inputs of a Kubernetes resource, by Pulumi's own kubernetes plugin.

The plugin is the one of the lab's tools. It compares what the state has with new inputs without a
cluster, so that it runs alone here, with a kubeconfig that leads nowhere.
"""

import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import grpc
from pulumi.runtime.proto import provider_pb2, provider_pb2_grpc
from pulumi.runtime.rpc import wrap_rpc_secret

from berth.lab.plugins.gcp.kinds import Kind
from berth.lab.plugins.gcp.protocol import message_properties
from berth.lab.programs import KUBERNETES_PLUGIN
from berth.lab.progress import LabProgress
from berth.lab.toolchain.ensure import programs_of
from berth.lab.toolchain.tools import PULUMI_KUBERNETES

_NOWHERE = """\
{"apiVersion": "v1", "kind": "Config", "current-context": "nowhere",
 "clusters": [{"name": "nowhere", "cluster": {"server": "http://127.0.0.1:1"}}],
 "contexts": [{"name": "nowhere", "context": {"cluster": "nowhere", "user": ""}}]}
"""


class Plugin:
    """The plugin, as the engine asks it."""

    def __init__(self, address: str) -> None:
        self._stub = provider_pb2_grpc.ResourceProviderStub(grpc.insecure_channel(address))
        nowhere = message_properties({"kubeconfig": _NOWHERE})
        self._stub.Configure(provider_pb2.ConfigureRequest(args=nowhere, acceptSecrets=True))

    def differences(
        self, kind: str, old: Mapping[str, Any], new: Mapping[str, Any], ignored: Sequence[str] = ()
    ) -> dict[str, Kind]:
        """Return the differences by property path, such as `spec.ports[0].port`.

        Args:
            kind: type of the resource, such as `kubernetes:core/v1:Service`.
            old: the inputs that are in force.
            new: the inputs that are asked for.
            ignored: paths whose differences do not count.
        """
        urn = f"urn:pulumi:stack::project::{kind}::name"
        request = provider_pb2.DiffRequest(
            id="id",
            urn=urn,
            olds=message_properties({**old, "__inputs": wrap_rpc_secret(dict(old))}),
            old_inputs=message_properties(old),
            news=message_properties(new),
            ignoreChanges=ignored,
        )
        answer = self._stub.Diff(request)
        return {path: Kind(found.kind) for path, found in answer.detailedDiff.items()}


@contextmanager
def running() -> Iterator[Plugin]:
    """Run the plugin for the block; it is built or downloaded first where it is missing."""
    program = programs_of([PULUMI_KUBERNETES], LabProgress())[KUBERNETES_PLUGIN]
    with subprocess.Popen(
        [program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout  # noqa: S101 - a pipe
            yield Plugin(f"127.0.0.1:{process.stdout.readline().strip()}")
        finally:
            process.kill()
