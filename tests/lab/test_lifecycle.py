"""Life of a lab with real processes, in a folder of its own beside the session's lab."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from berth.lab.home import CLONE, LabHome
from berth.lab.processes import MARK, Supervisor
from tests.lab.conftest import Lab, brought_up
from tests.lab.project import eventually

pytestmark = pytest.mark.lab

PROCESSES = {
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kwok-controller",
    "lab-controller",
}
MEMORY = 1536 << 20


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with brought_up(tmp_path_factory.mktemp("own") / "lab") as lab:
        yield lab


def _marked(lab: Lab) -> list[psutil.Process]:
    """Processes on the machine that were started for this lab."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK, "").startswith(f"{lab.home.root.resolve()}:"):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def _alive(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _name(process: psutil.Process) -> str:
    """Name of a process, empty if it has ended meanwhile."""
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def _apply(lab: Lab, *manifests: dict[str, Any]) -> None:
    lab.run(["kubectl", "apply", "-f", "-"], stdin=yaml.safe_dump_all(manifests))


def _config_map(name: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "data": {"kept": "yes"},
    }


def _node(name: str, annotations: dict[str, str]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "annotations": annotations},
    }


def _ready(node: dict[str, Any]) -> bool:
    return any(
        condition["type"] == "Ready" and condition["status"] == "True"
        for condition in node["status"].get("conditions", [])
    )


def test_up_again_starts_nothing(own: Lab) -> None:
    before = own.pids()
    assert set(before) >= PROCESSES
    again = own.berth("up", "--no-update")
    assert own.pids() == before
    assert "real: Pulumi and its kubernetes plugin, the Kubernetes control plane" in again.stdout
    assert "simulated: Google Cloud" in again.stdout
    assert "starting" not in again.stderr
    assert "building" not in again.stderr


def test_two_labs_run_side_by_side(lab: Lab, own: Lab) -> None:
    servers = {
        item.run(["kubectl", "config", "view", "-o", "jsonpath={..server}"]).stdout
        for item in (lab, own)
    }
    assert len(servers) == 2
    assert all(re.fullmatch(r"https://127\.0\.0\.1:\d+", server) for server in servers)
    uids = {item.get("namespace", "kube-system")["metadata"]["uid"] for item in (lab, own)}
    assert len(uids) == 2


def test_everything_listens_on_loopback_only(own: Lab) -> None:
    listening = [
        (process.name(), connection.laddr.ip)
        for process in _marked(own)
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert {name for name, _ in listening} >= {"etcd", "kube-apiserver", "kwok"}
    assert {address for _, address in listening} <= {"127.0.0.1", "::1"}


AS_SOMEBODY_ELSE = """
import encodings.idna, os, ssl, sys, urllib.request
if os.getuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
for url in sys.argv[2:]:
    try:
        body = b'{"key": "AA==", "range_end": "AA=="}'
        handlers = urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
        opener = urllib.request.build_opener(*handlers)
        opener.open(urllib.request.Request(url, body), timeout=10)
        print("answers", url)
    except urllib.error.HTTPError as error:
        print("answers", url, error.code)
    except OSError:
        pass
for folder, _, names in os.walk(sys.argv[1]):
    print("lists", folder)
    for name in names:
        try:
            open(os.path.join(folder, name)).close()
            print("reads", os.path.join(folder, name))
        except OSError:
            pass
"""


def test_other_users_of_the_machine_get_nothing(own: Lab) -> None:
    """The database answers only to a certificate, and no file with a key can be reached."""
    ports = [
        connection.laddr.port
        for process in _marked(own)
        if process.name() == "etcd"
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert len(ports) == 2
    paths = ("v3/kv/range", "health", "members", "metrics")
    urls = [
        f"{scheme}://127.0.0.1:{port}/{path}"
        for scheme in ("http", "https")
        for port in ports
        for path in paths
    ]
    secret = [
        own.kubeconfig,
        own.home.root / "credential.json",
        *own.home.root.glob("kwok/clusters/*/pki/*.key"),
    ]
    assert len(secret) == 4
    assert [path for path in secret if path.stat().st_mode & 0o077] == []
    assert own.home.root.stat().st_mode & 0o777 == 0o700
    is_root = os.getuid() == 0
    done = own.run(
        [
            sys.executable,
            "-c",
            AS_SOMEBODY_ELSE,
            str(own.home.root if is_root else "/nowhere"),
            *urls,
        ],
        Path("/"),
    )
    assert done.stdout == ""


def test_it_fits_in_a_small_machine(own: Lab) -> None:
    states = json.loads(own.berth("status", "--json").stdout)
    assert {state["name"] for state in states} >= PROCESSES
    assert all(state["problem"] is None and state["memory"] > 0 for state in states)
    assert sum(state["memory"] for state in states) <= MEMORY


def test_down_ends_every_process_and_up_resumes(own: Lab) -> None:
    ports = {
        state["name"]: state["ports"][0]
        for state in json.loads(own.berth("status", "--json").stdout)
    }
    _apply(own, _config_map("survives-a-rest"))
    _apply(own, _node("fake", {"kwok.x-k8s.io/node": "fake"}), _node("foreign", {}))
    eventually(lambda: _ready(own.get("node", "fake")), "KWOK plays its node")
    pids = [process.pid for process in _marked(own)]
    assert len(pids) >= len(PROCESSES)
    own.berth("down")
    assert _marked(own) == []
    assert not any(map(_alive, pids))
    assert own.berth("status", check=False).returncode == 3
    assert "nothing of this lab runs" in own.berth("down").stderr
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", ports["kube-apiserver"]))
        taken.listen()
        refused = own.berth("up", "--no-update", check=False)
    assert refused.returncode == 1
    assert f"error: port {ports['kube-apiserver']} is taken by" in refused.stderr
    assert f"(pid {os.getpid()})" in refused.stderr
    assert "Traceback" not in refused.stderr
    own.up()
    assert own.get("configmap", "survives-a-rest")["data"] == {"kept": "yes"}


def test_kwok_plays_its_own_nodes_only_and_jobs_complete(own: Lab) -> None:
    """After a rest, pods have no old lease of their node to wait for."""
    container = {"name": "main", "image": "busybox", "command": ["true"]}
    pod = {
        "nodeName": "fake",
        "initContainers": [container | {"name": "first"}],
        "containers": [container],
        "tolerations": [{"operator": "Exists"}],
    }
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "proof"},
        "spec": {"template": {"spec": pod | {"restartPolicy": "Never"}}},
    }
    server = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "server"}, "spec": pod}
    _apply(own, job, server)
    own.run(["kubectl", "wait", "--for=condition=Complete", "job/proof", "--timeout=60s"])
    own.run(["kubectl", "wait", "--for=condition=Ready", "pod/server", "--timeout=60s"])
    status = own.get("pod", "server")["status"]
    assert status["phase"] == "Running"
    assert status["initContainerStatuses"][0]["state"]["terminated"]["exitCode"] == 0
    own.run(["kubectl", "delete", "pod/server", "job/proof", "--timeout=60s"])
    assert not _ready(own.get("node", "foreign"))


@pytest.mark.long
def test_killed_and_hanging_processes_are_replaced_and_the_data_is_there(own: Lab) -> None:
    _apply(own, _config_map("survives-kills"))
    before = own.pids()
    victims = ["etcd", "kube-apiserver", "kwok-controller"]
    for victim in victims:
        os.kill(before[victim], signal.SIGKILL)
    os.kill(before["kube-scheduler"], signal.SIGSTOP)
    eventually(
        lambda: not any(map(_alive, (before[victim] for victim in victims))), "the victims are dead"
    )
    own.up()
    after = own.pids()
    assert all(after[victim] != before[victim] for victim in (*victims, "kube-scheduler"))
    assert not _alive(before["kube-scheduler"])
    assert own.get("configmap", "survives-kills")["data"] == {"kept": "yes"}
    assert own.berth("status").returncode == 0


@pytest.mark.long
def test_an_interrupted_up_is_finished_by_the_next(tmp_path: Path) -> None:
    broken = Lab(LabHome(tmp_path / "lab"))

    def stopped_by(sent: signal.Signals, after: str) -> tuple[int, str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "berth.cli", "lab", "up", "--no-update"],
            cwd=CLONE,
            env=broken.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        eventually(
            lambda: any(_name(item) == after for item in _marked(broken)),
            f"{after} runs",
            seconds=3600,
        )
        os.killpg(process.pid, sent)
        _, output = process.communicate(timeout=60)
        assert "Traceback" not in output
        return process.returncode, output

    try:
        code, output = stopped_by(signal.SIGINT, "etcd")
        assert (code, "interrupted; what runs already stays" in output) == (130, True)
        stopped_by(signal.SIGKILL, "kube-apiserver")
        broken.up()
        assert broken.berth("status").returncode == 0
        assert {process.pid for process in _marked(broken)} >= set(broken.pids().values())
        assert Supervisor(broken.home).strays() == []
    finally:
        broken.berth("clean", check=False)
    assert not broken.home.root.exists()
    assert _marked(broken) == []


@pytest.mark.long
def test_a_lost_database_is_noticed(own: Lab) -> None:
    for path in own.home.run.iterdir():
        path.unlink()
    own.berth("down")
    assert _marked(own) == [], "processes are found without their records"
    state = own.home.backend / ".pulumi" / "stacks" / "berth" / "lab.json"
    state.parent.mkdir(parents=True)
    state.write_text("{}")
    database = own.home.root / "kwok" / "clusters" / "berth" / "etcd"
    database.rename(database.with_name("lost"))
    assert "Pulumi remembers resources of the old" in own.up()
    assert "Pulumi remembers resources of the old" not in own.up()


def test_the_environment_makes_plain_tools_work(own: Lab) -> None:
    env = f"{sys.executable} -m berth.cli lab env --home {own.home.root}"
    script = f'eval "$({env})" && kubectl get namespaces && command -v pulumi'
    plain = {
        key: value for key, value in os.environ.items() if key not in {"KUBECONFIG", "BERTH_LAB"}
    }
    result = subprocess.run(
        ["/bin/sh", "-c", script], cwd=CLONE, env=plain, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stderr
    assert "kube-system" in result.stdout
    assert result.stderr == ""


def test_the_credential_plugin_lets_a_gke_kubeconfig_in(own: Lab, tmp_path: Path) -> None:
    config = yaml.safe_load(own.kubeconfig.read_text())
    execute = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "gke-gcloud-auth-plugin",
    }
    config["users"][0]["user"] = {
        "exec": execute | {"interactiveMode": "Never", "provideClusterInfo": True}
    }
    path = tmp_path / "gke.yaml"
    path.write_text(yaml.safe_dump(config))
    allowed = own.run(
        ["kubectl", f"--kubeconfig={path}", "auth", "can-i", "*", "*", "--all-namespaces"]
    )
    assert allowed.stdout.strip() == "yes"


def test_clean_removes_a_labs_folder_and_no_other(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "thesis.tex").write_text("years of work")
    other = Lab(LabHome(precious))
    for command in (("clean",), ("up", "--no-update")):
        refused = other.berth(*command, check=False)
        assert refused.returncode == 2
        assert "not a lab's" in refused.stderr
    assert sorted(path.name for path in precious.iterdir()) == ["thesis.tex"]
