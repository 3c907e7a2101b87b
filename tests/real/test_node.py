"""Real node beside simulated ones: a kubelet that adopted simulated GKE's node, and containers that
run.
"""

import json
import re
import subprocess
import urllib.request

import pytest

from tests.real.conftest import NAMESPACE, RealNode, eventually, pod

pytestmark = [pytest.mark.real, pytest.mark.long]


def test_the_node_has_its_pools_machine_type_and_labels(real: RealNode) -> None:
    node = real.node
    labels = node["metadata"]["labels"]
    assert labels["cloud.google.com/gke-nodepool"] == "bench"
    assert labels["node.kubernetes.io/instance-type"] == "a4-highgpu-8g"
    assert [taint["key"] for taint in node["spec"]["taints"]] == ["nvidia.com/gpu"]
    assert node["status"]["nodeInfo"]["containerRuntimeVersion"].startswith("containerd://")
    assert node["status"]["capacity"]["cpu"] == "224"
    assert node["status"]["allocatable"]["nvidia.com/gpu"] == "8"


def test_simulated_nodes_are_beside_it(real: RealNode) -> None:
    nodes = real.lab.get("nodes")["items"]
    runtimes = sorted(
        node["status"]["nodeInfo"]["containerRuntimeVersion"].split(":")[0] for node in nodes
    )
    assert runtimes == ["containerd", "kwok", "kwok"]


def test_a_pod_sees_as_many_gpus_as_it_asked_for(real: RealNode) -> None:
    resources = {"resources": {"limits": {"nvidia.com/gpu": 2}}}
    real.apply(pod("gpus", ["sh", "-c", "ls /dev | grep nvidia"], container=resources))
    phase = ["get", "pod", "gpus", "-o", "jsonpath={.status.phase}"]
    eventually(lambda: real.kubectl(*phase) == "Succeeded", "the pod has ended")
    assert re.fullmatch(r"nvidia\d\nnvidia\d\n", real.kubectl("logs", "gpus"))


def test_exec_logs_and_port_forward(real: RealNode) -> None:
    serve = [
        "sh",
        "-c",
        (
            "echo begun; mkdir /tmp/www; cd /tmp/www; echo hello > index.html; exec python3 -m"
            " http.server 8000"
        ),
    ]
    real.apply(pod("server", serve))
    real.kubectl("wait", "pod/server", "--for=condition=Ready", "--timeout=120s")
    assert real.kubectl("exec", "server", "--", "id", "-u").strip() == "1000"
    assert real.kubectl("logs", "server").startswith("begun\n")
    command = ["kubectl", "-n", NAMESPACE, "port-forward", "pod/server", ":8000"]
    with subprocess.Popen(command, env=real.lab.env, stdout=subprocess.PIPE, text=True) as forward:
        try:
            assert forward.stdout is not None
            port = re.search(r":(\d+) ->", forward.stdout.readline())
            assert port is not None
            with urllib.request.urlopen(f"http://127.0.0.1:{port[1]}/", timeout=20) as answer:
                assert answer.read() == b"hello\n"
        finally:
            forward.terminate()


def test_pods_find_services_and_the_api_server(real: RealNode) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8000}]},
    }
    real.apply(
        pod(
            "web",
            ["sh", "-c", "cd /tmp && echo found > index.html && exec python3 -m http.server 8000"],
        ),
        service,
    )
    real.kubectl("wait", "pod/web", "--for=condition=Ready", "--timeout=120s")
    asked = "curl -sS --retry 10 --retry-connrefused --max-time 10"
    api = (
        "--cacert /var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
        " https://kubernetes.default/version"
    )
    by_address = (
        "--cacert /var/run/secrets/kubernetes.io/serviceaccount/ca.crt"
        " https://$KUBERNETES_SERVICE_HOST/version"
    )
    ask = (
        f"{asked} http://web.{NAMESPACE}.svc.cluster.local/ && {asked} {api} && {asked}"
        f" {by_address}"
    )
    real.apply(pod("client", ["sh", "-c", ask]))
    phase = ["get", "pod", "client", "-o", "jsonpath={.status.phase}"]
    eventually(lambda: real.kubectl(*phase) in {"Succeeded", "Failed"}, "the pod has ended")
    found, *rest = real.kubectl("logs", "client").splitlines()
    assert found == "found"
    assert "".join(rest).count('"gitVersion": "v1.36') == 2


def test_servers_listen_on_the_nodes_own_addresses(real: RealNode) -> None:
    address = real.node["status"]["addresses"][0]["address"]
    network = address.rsplit(".", 2)[0]
    listeners = real.inside("ss", "-Hltn").split("\n")
    addresses = {line.split()[3].rsplit(":", 1)[0] for line in listeners if line}
    assert all(item.startswith(("127.", network)) for item in addresses), addresses


def test_users_other_than_root_get_one_line(real: RealNode) -> None:
    script = f"import os; os.setuid(65534); os.execvp('python3', ['python3', '-c', {_ASK!r}])"
    done = real.lab.run(["python3", "-c", script], cwd=None, check=False)
    assert "needs root" in done.stdout, done.stderr
    assert len(done.stdout.strip().splitlines()) == 1


_ASK = "from berth.lab.realnode.requirements import obstacle; print(obstacle())"


def test_the_nodes_processes_are_in_the_labs_table(real: RealNode) -> None:
    states = json.loads(real.lab.berth("status", "--json").stdout)
    node = {
        state["name"]: state["problem"] for state in states if state["name"].startswith("real-")
    }
    assert len(node) == 9
    assert not any(node.values()), node
