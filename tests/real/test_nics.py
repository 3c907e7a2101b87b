"""Real DraNet: a claim moves the node's interfaces into a pod, and back."""

import json

import pytest

from berth.lab.realnode.layout import NICS
from tests.real.conftest import NAMESPACE, Object, RealNode, eventually, pod

pytestmark = [pytest.mark.real, pytest.mark.long]

# As berth's claims have it.
RDMA = 'device.attributes["dra.net"].rdma == true'


def template(count: int) -> Object:
    nics = {
        "deviceClassName": "dranet",
        "count": count,
        "selectors": [{"cel": {"expression": RDMA}}],
    }
    request = {"name": "nics", "exactly": nics}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": f"nics-{count}", "namespace": NAMESPACE},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }


def on_node(real: RealNode) -> set[str]:
    return {link["ifname"] for link in json.loads(real.inside("ip", "-json", "link"))} & set(NICS)


def addressed(real: RealNode) -> set[str]:
    """The NICs on the node that have an address."""
    links = json.loads(real.inside("ip", "-json", "-4", "address"))
    return {link["ifname"] for link in links if link.get("addr_info")} & set(NICS)


def in_pod(real: RealNode, name: str) -> set[str]:
    return {
        link["ifname"]
        for link in json.loads(real.kubectl("exec", name, "--", "ip", "-json", "link"))
    }


def test_a_claim_on_two_nics_brings_two_into_the_pod_and_they_return(real: RealNode) -> None:
    assert on_node(real) == set(NICS)
    claim = {"name": "nics", "resourceClaimTemplateName": "nics-2"}
    container = {"resources": {"claims": [{"name": "nics"}]}}
    holder = pod("holder", ["sleep", "600"], resourceClaims=[claim], container=container)
    real.apply(template(2), holder)
    real.kubectl("wait", "pod/holder", "--for=condition=Ready", "--timeout=120s")
    seen = in_pod(real, "holder")
    moved = seen & set(NICS)
    assert len(moved) == 2
    assert seen - moved == {"lo", "eth0"}
    assert on_node(real) == set(NICS) - moved
    real.kubectl("delete", "pod", "holder", "--wait=true")
    eventually(
        lambda: addressed(real) == set(NICS), "both are back on the node, with their addresses"
    )


def test_a_pod_without_a_claim_sees_none(real: RealNode) -> None:
    real.apply(pod("plain", ["sleep", "600"]))
    real.kubectl("wait", "pod/plain", "--for=condition=Ready", "--timeout=120s")
    assert in_pod(real, "plain") == {"lo", "eth0"}
