"""Simulated heads of RayClusters, whose ports, commands and log lead to a Ray of this machine.

KWOK takes the ways from objects beside each head's pod. A way leads to the lab's controller, which
starts the head's Ray when somebody first comes, and ends it with the pod. KubeRay's operator comes
by the API server, for RayJobs and RayServices only (kuberay v1.6.2, ray-operator/controllers/ray/
utils/util.go, GetRayDashboardClientFunc).
"""

import base64
import contextlib
import json
import logging
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread

import psutil
import yaml

from berth.components.cluster.api import PODS, RAY_CLUSTERS, SECRETS, Object, in_namespace
from berth.components.cluster.pods import LOCAL_RAY, why_not_ready
from berth.components.core import whole_file
from berth.components.core.errors import BerthError
from berth.components.programs.notebook import PORT_VARIABLE as NOTEBOOK_PORT
from berth.lab.api import DEFINITIONS, Api, path_of
from berth.lab.errors import LabError, quoted
from berth.lab.home import LabHome
from berth.lab.probes import Probe
from berth.lab.processes import MARK, LabProcess, Supervisor
from berth.lab.progress import LabProgress
from berth.lab.ray import installed, program, shape
from berth.lab.toolchain.failures import GIB

_GROUP = "kwok.x-k8s.io"
_KINDS = {"PortForward": "portforwards", "Exec": "execs", "Logs": "logs"}
_DEFINITIONS = Path(__file__).with_name("kinds.yaml")

_CONTAINER = "ray-head"
_ORIGIN = "ray.io/originated-from-crd"
_BERTHS = "berth/"
"""Start of a label of each RayCluster, RayJob and RayService that berth makes."""
_DASHBOARD = 8265
_CLIENT = 10001
_SERVE = 8000
_LOOPBACK = "127.0.0.1"
_OPTIONS = (
    *("dashboard-port", "ray-client-server-port", "port", "dashboard-agent-listen-port"),
    *("dashboard-agent-grpc-port", "metrics-export-port", "runtime-env-agent-port"),
)
"""Options of `ray start` that set a port; the others take any free one."""

_NEEDED = 3 << 29
"""Bytes of memory of a Ray that has started, a job's driver included."""

_PASSED_ON = (
    "PIP_",
    "UV_",
    "LANG",
    "LC_",
    "TZ",
    "USER",
    "SSL_CERT_",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
)
_SETTINGS = {
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray then listens on loopback only
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",
    "RAY_prestart_worker_first_driver": "0",  # otherwise as many processes as the berth has CPUs
    "RAY_enable_worker_prestart": "0",
    # On a busy machine Ray would end after half a minute in which one of its own programs is slow.
    "RAY_agent_register_timeout_ms": "180000",
    "RAY_health_check_failure_threshold": "60",
}

_log = logging.getLogger("berth.lab.ray")


@dataclass(frozen=True)
class _Ray:
    """Ray that was started for a head."""

    uid: str
    """Uid of the head's pod."""
    ports: dict[int, int]
    """Ports on this machine, by the head's own."""


@dataclass(frozen=True)
class _Prepared:
    """Folder, programs and ports that were prepared for a head's Ray."""

    folder: Path
    programs: Path
    """Folder with the programs of Ray's virtual environment."""
    short: str
    """Path of Ray's temporary folder."""
    options: Mapping[str, int]
    """Ports by option of `ray start`."""
    notebook: int
    serve: int

    @property
    def address(self) -> str:
        """Address of Ray's dashboard."""
        return f"http://{_LOOPBACK}:{self.options['dashboard-port']}"

    def start_serve(self) -> None:
        """Start Ray Serve, which its applications would start on port 8000 of all addresses."""
        options = [
            f"--http-host={_LOOPBACK}",
            f"--http-port={self.serve}",
            "--proxy-location=HeadOnly",
        ]
        command = [str(self.programs / "serve"), "start", *options]
        variables = json.loads((self.folder / program.ENVIRONMENT).read_text())
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LabError(f"Ray Serve does not start:\n{quoted(done.stderr)}")


class RayHeads:
    """Simulated heads of one lab."""

    def __init__(self, home: LabHome, api: Api) -> None:
        self._home = home
        self._api = api
        self._supervisor = Supervisor(home)
        self._folder = home.root.absolute() / "ray"
        self._rays: dict[str, _Ray] = {}
        self._addresses: dict[str, str] = {}
        self._starting: set[str] = set()
        self._lock = Lock()

    def prepare(self) -> None:
        """Define KWOK's kinds, and end what an earlier controller has left."""
        self.stop()
        for definition in yaml.safe_load(_DEFINITIONS.read_text())["items"]:
            self._api.apply(f"{DEFINITIONS}/{definition['metadata']['name']}", definition)

    def see(self, pod: Object, *, gone: bool) -> None:
        """Lay the ways to a head that has its node and its address."""
        if pod["metadata"].get("labels", {}).get("ray.io/node-type") != "head":
            return
        head = _name(pod)
        address = pod["status"].get("podIP")
        if gone:
            self._addresses.pop(head, None)
        elif address and self._addresses.get(head) != address:
            way = str(self._home.egress.absolute())
            enter = [{"name": "BERTH_LAB_HEAD", "value": f"{way} {head} {self._of(head)}"}]
            log = str(self._supervisor.log(_process(head)))
            lay(
                self._api,
                pod,
                "Exec",
                {"execs": [{"containers": [_CONTAINER], "local": {"envs": enter}}]},
            )
            lay(self._api, pod, "Logs", {"logs": [{"containers": [_CONTAINER], "logsFile": log}]})
            self._forward(pod, {})
            self._addresses[head] = address

    def _forward(self, pod: Object, ports: Mapping[int, int]) -> None:
        """Lead the ports of a head to its Ray, or to the controller while there is none."""
        relay = [
            sys.executable,
            "-I",
            program.__file__,
            "relay",
            str(self._home.egress.absolute()),
            _name(pod),
        ]
        ways = [
            {"ports": [port], "target": {"address": _LOOPBACK, "port": here}}
            for port, here in ports.items()
        ]
        ways = ways or [
            {"ports": [port], "command": [*relay, str(port)]} for port in (_DASHBOARD, _CLIENT)
        ]
        lay(self._api, pod, "PortForward", {"forwards": ways})

    def _of(self, head: str) -> Path:
        return self._folder / head.replace("/", ".")

    def dial_pod(self, pod: str, port: int) -> socket.socket:
        """Return a connection to a port of a simulated pod, by its address or `namespace/pod`.

        By the address of a head comes the API server, for whom nobody may wait long: a Ray that is
        not there is started meanwhile.

        Raises:
            LabError: the head is not there, or its Ray does not start.
            OSError: nothing listens there, or nothing yet.
        """
        if "/" in pod:
            return self.dial(pod, port)
        head = next(
            (head for head, address in list(self._addresses.items()) if address == pod), None
        )
        if head is None:
            raise ConnectionRefusedError("nothing listens there in a simulated pod")
        ray = self._rays.get(head)
        if ray is not None and port in ray.ports:
            return self.dial(head, port)
        if ray is None and head not in self._starting:
            self._starting.add(head)
            Thread(target=self._begin, args=(head,), daemon=True).start()
        raise ConnectionRefusedError(f"{head} does not listen on port {port} yet")

    def _begin(self, head: str) -> None:
        """Start the Ray of a head that the settings of an environment have."""
        try:
            pod = self._pod(head)
            if pod and any(
                label.startswith(_BERTHS) for label in self._cluster(pod)["metadata"]["labels"]
            ):
                self.dial(head, _DASHBOARD).close()
        except (OSError, BerthError) as error:
            _log.warning("%s: %s", head, error)
        finally:
            self._starting.discard(head)

    def dial(self, head: str, port: int) -> socket.socket:
        """Return a connection to a port of a head, whose Ray is started first.

        Raises:
            LabError: the head is not there, or its Ray does not start.
            OSError: nothing listens there.
        """
        pod = self._pod(head)
        if pod is None or why_not_ready(pod):
            raise LabError(f"head {head} is not ready", "berth status says why")
        if (ray := self._running(head, pod)) is None:
            with self._lock:
                if (ray := self._running(head, pod)) is None:
                    self._end(head)
                    ray = self._rays[head] = self._start(head, pod)
        return socket.create_connection((_LOOPBACK, ray.ports[port]))

    def _running(self, head: str, pod: Object) -> _Ray | None:
        ray = self._rays.get(head)
        return (
            ray
            if ray
            and ray.uid == pod["metadata"]["uid"]
            and self._supervisor.running(_process(head))
            else None
        )

    def _pod(self, head: str) -> Object | None:
        namespace, _, name = head.partition("/")
        return self._api.get(f"{in_namespace(namespace, PODS)}/{name}")

    def _cluster(self, pod: Object) -> Object:
        namespace = pod["metadata"]["namespace"]
        name = pod["metadata"]["labels"]["ray.io/cluster"]
        cluster = self._api.get(f"{in_namespace(namespace, RAY_CLUSTERS)}/{name}")
        if cluster is None:
            raise LabError(
                f"RayCluster {namespace}/{name} is gone", "berth status lists those that are there"
            )
        return cluster

    def _start(self, head: str, pod: Object) -> _Ray:
        available = psutil.virtual_memory().available
        if available < _NEEDED:
            raise LabError(
                f"Ray needs {_NEEDED / GIB:.1f} GiB of memory, and this machine has"
                f" {available / GIB:.1f} GiB left",
                "end another one: berth suspend NAME",
            )
        cluster = self._cluster(pod)
        ready = self._prepared(head, pod)
        self._start_ray(head, ready, self._resources(cluster))
        if cluster["metadata"].get("labels", {}).get(_ORIGIN) == "RayService":
            ready.start_serve()
        self._api.patch(path_of(pod), {"metadata": {"annotations": {LOCAL_RAY: ready.address}}})
        ports = {
            _DASHBOARD: ready.options["dashboard-port"],
            _CLIENT: ready.options["ray-client-server-port"],
            _SERVE: ready.serve,
        }
        self._forward(pod, ports | {ready.notebook: ready.notebook})
        return _Ray(str(pod["metadata"]["uid"]), ports)

    def _prepared(self, head: str, pod: Object) -> _Prepared:
        """Prepare the folder, the packages, the ports and the variables of a head's Ray."""
        packages = installed.packages(LabProgress())
        folder = self._of(head)
        folder.mkdir(parents=True, exist_ok=True)
        programs = installed.environment(
            folder / "venv", packages, shape.write_code(pod, folder / "code")
        )
        # The path of a socket may have 107 characters, of which Ray's own part is 67.
        short = tempfile.mkdtemp(prefix="berth-ray-", dir="/tmp")
        (folder / "short").symlink_to(short)
        *ports, notebook, serve = _free_ports(len(_OPTIONS) + 2)
        ready = _Prepared(
            folder, programs, short, dict(zip(_OPTIONS, ports, strict=True)), notebook, serve
        )
        namespace = pod["metadata"]["namespace"]
        of_pod = shape.variables(
            pod["spec"]["containers"][0], lambda *at: self._secret(namespace, *at)
        )
        own = {
            MARK: self._supervisor.mark(_process(head)),
            "RAY_ADDRESS": f"{_LOOPBACK}:{ready.options['port']}",
            "RAY_API_SERVER_ADDRESS": ready.address,
            "TMPDIR": short,
            NOTEBOOK_PORT: str(notebook),
        }
        environment = json.dumps(_environment(folder, programs) | dict(of_pod) | own)
        whole_file.replace_file(folder / program.ENVIRONMENT, environment, mode=0o600)
        return ready

    def _start_ray(self, head: str, ready: _Prepared, resources: Mapping[str, float]) -> None:
        start = shape.arguments(resources, ready.options, ready.short)
        ray = str(ready.programs / "ray")
        command = (
            str(ready.programs / "python"),
            program.__file__,
            "log",
            str(ready.folder),
            ray,
            *start,
        )
        # The part that starts last, and runs jobs; KubeRay's probe of a head asks it, too.
        probe = Probe(
            f"http://{_LOOPBACK}:{ready.options['dashboard-agent-listen-port']}/api/local_raylet_healthz"
        )
        process = LabProcess(
            _process(head), command, "Ray of a head", ("lab-controller",), probe=probe
        )
        _log.info("%s: starting Ray: %s", head, " ".join(start))
        try:
            self._supervisor.start([process])
        except LabError:
            _log.warning(
                "%s: Ray does not start, and gives up after 30 s on a busy machine: again", head
            )
            self._supervisor.start([process])

    def _resources(self, cluster: Object) -> Mapping[str, float]:
        metadata = cluster["metadata"]
        selector = f"ray.io/cluster={metadata['name']}"
        return shape.resources(
            cluster,
            self._api.list(in_namespace(metadata["namespace"], PODS), labelSelector=selector),
        )

    def _secret(self, namespace: str, name: str, key: str) -> str | None:
        data = (self._api.get(f"{in_namespace(namespace, SECRETS)}/{name}") or {}).get("data") or {}
        return base64.b64decode(data[key]).decode() if key in data else None

    def step(self) -> None:
        """End the Rays whose heads are gone, and lay the way to a new one where one has ended."""
        for head, ray in list(self._rays.items()):
            pod = self._pod(head)
            is_there = pod is not None and pod["metadata"]["uid"] == ray.uid
            if not is_there or not self._supervisor.running(_process(head)):
                with self._lock:
                    self._end(head)
            if pod is not None and is_there and head not in self._rays:
                self._forward(pod, {})
                self._api.patch(path_of(pod), {"metadata": {"annotations": {LOCAL_RAY: None}}})

    def _end(self, head: str) -> None:
        """End a head's Ray, and remove its files."""
        self._rays.pop(head, None)
        self._supervisor.stop_tree(_process(head))
        _remove(self._of(head))

    def stop(self) -> None:
        """End every Ray."""
        for name in self._supervisor.records():
            if name.startswith(_process("")):
                self._supervisor.stop_tree(name)
        for folder in self._folder.glob("*"):
            _remove(folder)


def lay(api: Api, pod: Object, kind: str, spec: Object) -> None:
    """Write an object of KWOK's beside a pod, which goes with the pod."""
    metadata = pod["metadata"]
    namespace = pod["metadata"]["namespace"]
    owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    about = {"name": metadata["name"], "namespace": namespace, "ownerReferences": [owner]}
    manifest = {"apiVersion": f"{_GROUP}/v1alpha1", "kind": kind, "metadata": about, "spec": spec}
    api.apply(
        f"/apis/{_GROUP}/v1alpha1/namespaces/{namespace}/{_KINDS[kind]}/{metadata['name']}",
        manifest,
    )


def _remove(folder: Path) -> None:
    with contextlib.suppress(OSError):
        shutil.rmtree((folder / "short").readlink(), ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)


def _process(head: str) -> str:
    return f"ray-{head.replace('/', '.')}"


def _name(pod: Object) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"


def _environment(folder: Path, programs: Path) -> dict[str, str]:
    """Return the variables that every program of a head has, and make its home."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    kept = {
        key: value
        for key, value in os.environ.items()
        if key.startswith(_PASSED_ON) or key.lower().endswith("_proxy")
    }
    return kept | _SETTINGS | {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(home)}


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind((_LOOPBACK, 0))
        return [int(one.getsockname()[1]) for one in sockets]
