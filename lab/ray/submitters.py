"""Pods of simulated nodes that submit a RayJob of berth's, whose command runs on this machine.

KWOK ends the pod of any Job at once, so that it leaves these to the lab (kwokctl.yaml). The command
runs as one in the head of the job's RayCluster does, and its end is the pod's.
"""

import logging
import os
import re
import subprocess
import sys
from pathlib import Path
from threading import Thread

from berth.components.cluster.api import PODS, Object, in_namespace
from berth.lab.api import STRATEGIC_PATCH, Api, now, path_of
from berth.lab.home import LabHome
from berth.lab.processes import MARK, Supervisor
from berth.lab.ray import program
from berth.lab.ray.heads import lay

_SERVICES = "/api/v1/services"
_CONTAINER = "ray-job-submitter"
_GOING = ("Pending", "Running")
_JOB = "batch.kubernetes.io/job-name"
_ADDRESS = re.compile(r"http://(?P<service>[a-z0-9-]+)\.[a-z0-9.-]+:\d+")
"""Address of a head's dashboard in the command (kuberay v1.6.2,
ray-operator/controllers/ray/common/job.go, BuildJobSubmitCommand)."""

_log = logging.getLogger("berth.lab.ray")


class Submitters:
    """Submitters of one lab."""

    def __init__(self, home: LabHome, api: Api) -> None:
        self._home = home
        self._api = api
        self._supervisor = Supervisor(home)
        self._running: dict[str, subprocess.Popen[str]] = {}

    def see(self, pod: Object, *, gone: bool) -> None:
        """Run the command of a pod that has its node, and end it with the pod."""
        uid = pod["metadata"]["uid"]
        labels = pod["metadata"].get("labels") or {}
        if "berth/job" not in labels or "ray.io/cluster" in labels:  # as kwokctl.yaml has it
            return
        if gone or pod["metadata"].get("deletionTimestamp"):
            if process := self._running.pop(uid, None):
                process.terminate()
            if not gone:
                self._api.delete(path_of(pod), gracePeriodSeconds="0")
        elif (
            pod["spec"].get("nodeName")
            and uid not in self._running
            and pod["status"]["phase"] in _GOING
        ):
            self._start(pod)  # again after a restart of the lab: Ray knows a job that was submitted

    def _start(self, pod: Object) -> None:
        namespace = pod["metadata"]["namespace"]
        labels = pod["metadata"]["labels"]
        container = pod["spec"]["containers"][0]
        words = [*container["command"], *container["args"]]
        address = _ADDRESS.search(" ".join(words))
        service = (
            self._api.get(f"{in_namespace(namespace, _SERVICES)}/{address['service']}")
            if address
            else None
        )
        if address is None or service is None:
            return  # its RayCluster is going, and so is the RayJob
        query = (
            f"ray.io/node-type=head,ray.io/cluster={service['spec']['selector']['ray.io/cluster']}"
        )
        heads = self._api.list(in_namespace(namespace, PODS), labelSelector=query)
        head = f"{namespace}/{heads[0]['metadata']['name']}"
        # The cluster's DNS does not reach this machine; Ray's own programs know the address.
        words = [word.replace(address[0], "$RAY_API_SERVER_ADDRESS") for word in words]
        folder = self._home.root.absolute() / "ray" / head.replace("/", ".")
        log = self._supervisor.log(f"submitter-{labels[_JOB]}")
        environment = {
            MARK: self._supervisor.mark(log.stem),
            "BERTH_LAB_HEAD": f"{self._home.egress.absolute()} {head} {folder}",
        }
        self._running[pod["metadata"]["uid"]] = process = subprocess.Popen(
            [sys.executable, "-I", program.__file__, "enter", *words],
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        _log.info("%s: submitting %s", head, labels[_JOB])
        lay(self._api, pod, "Logs", {"logs": [{"containers": [_CONTAINER], "logsFile": str(log)}]})
        self._show(pod, "Running", {"running": {"startedAt": now()}})
        Thread(target=self._follow, args=(pod, process, log), daemon=True).start()

    def _follow(self, pod: Object, process: subprocess.Popen[str], log: Path) -> None:
        """Keep the log of a command, and show its end."""
        with log.open("w") as container_log:
            code = program.follow(process, container_log)
        ended = {"exitCode": code, "reason": "Error" if code else "Completed", "finishedAt": now()}
        self._show(pod, "Failed" if code else "Succeeded", {"terminated": ended})

    def _show(self, pod: Object, phase: str, state: Object) -> None:
        container = pod["spec"]["containers"][0]
        ready = phase == "Running"
        shown = {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "restartCount": 0,
        }
        conditions = [{"type": kind, "status": str(ready)} for kind in ("Ready", "ContainersReady")]
        status = {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [{**shown, "ready": ready, "state": state}],
        }
        self._api.patch(f"{path_of(pod)}/status", {"status": status}, STRATEGIC_PATCH)
