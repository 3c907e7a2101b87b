"""Jobs of a simulated Ray cluster: answers of its dashboard to Ray's Jobs API.

No container runs, and no code: a job whose request Ray accepts is running at once, if a node has
the resources that the request reserves, and stays so until somebody stops it. Its message and its
log say that its command was not run. Packages of working directories are known by their names;
their content is dropped. The token is not checked.

Answers to (recorded): Ray 2.60.0's own answers, in tests/unit/lab/devices/ray_jobs.json
Answers to (read): Ray 2.60.0, python/ray/dashboard/modules/job/job_head.py and common.py: paths,
    and the fields of a request
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from aiohttp import web

from berth.lab.devices.ray_pods import RayNode

JOBS, PACKAGES = "/api/jobs/", "/api/packages/"
NOT_RUN = "simulated: its command is not run, and the job runs until somebody stops it"

_FIELDS = {
    *("entrypoint", "submission_id", "job_id", "runtime_env", "metadata", "entrypoint_num_cpus"),
    *("entrypoint_num_gpus", "entrypoint_memory", "entrypoint_resources", "entrypoint_label_selector"),
}
_RESERVED = {"entrypoint_num_cpus": "CPU", "entrypoint_num_gpus": "GPU"}
_WAITS = (
    "Job has not started yet. It may be waiting for resources (CPUs, GPUs, memory, custom resources) to become"
    " available."
)
_STOPPED = "Job was intentionally stopped."


@dataclass
class _Job:
    """Job that was submitted."""

    id: str
    request: Mapping[str, Any]
    started: int
    stopped: int | None = None
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    def details(self, nodes: Sequence[RayNode]) -> dict[str, Any]:
        """Return Ray's `JobDetails`."""
        status, message = ("STOPPED", _STOPPED) if self.stopped else self._going_on(nodes)
        return {
            "type": "SUBMISSION",
            "job_id": None,
            "submission_id": self.id,
            "driver_info": None,
            "status": status,
            "entrypoint": self.request["entrypoint"],
            "message": message,
            "error_type": None,
            "start_time": self.started,
            "end_time": self.stopped,
            "metadata": self.request.get("metadata"),
            "runtime_env": self.request.get("runtime_env"),
            "driver_agent_http_address": None,
            "driver_node_id": None,
            "driver_exit_code": None,
        }

    def _going_on(self, nodes: Sequence[RayNode]) -> tuple[str, str]:
        needs = {resource: self.request.get(key) or 0 for key, resource in _RESERVED.items()}
        fits = any(
            all(node.resources.get(name, 0) >= amount for name, amount in needs.items()) for node in nodes if node.ready
        )
        return ("RUNNING", NOT_RUN) if fits or not any(needs.values()) else ("PENDING", _WAITS)


class RayJobs:
    """Jobs of one head; a new pod knows nothing of the last one's."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Job] = {}
        self._packages: set[str] = set()

    async def answer(self, request: web.BaseRequest, nodes: Sequence[RayNode]) -> web.StreamResponse | None:
        """Answer a request to the Jobs API; None for another one."""
        path = urlsplit(request.path_qs).path
        if not path.startswith((JOBS, PACKAGES)):
            return None
        if stream := await self._tail(path, request):
            return stream
        if path.startswith(PACKAGES):
            async for _ in request.content.iter_any():
                pass
            return self.dashboard(request.method, path, b"", nodes)
        return self.dashboard(request.method, path, await request.read(), nodes)

    def dashboard(self, method: str, target: str, body: bytes, nodes: Sequence[RayNode]) -> web.Response:
        """Return the dashboard's answer to a request for a path."""
        path = urlsplit(target).path
        if path.startswith(PACKAGES):
            return self._package(method, path.removeprefix(PACKAGES).replace("/", "://", 1))
        if path == JOBS:
            found = [job.details(nodes) for job in self._jobs.values()]
            return self._submit(body) if method == "POST" else _json(found)
        name, _, what = path.removeprefix(JOBS).partition("/")
        job = self._jobs.get(unquote(name))
        if job is None:
            return web.Response(status=404, text=f"Job {unquote(name)} does not exist")
        match method, what:
            case "GET", "":
                return _json(job.details(nodes))
            case "GET", "logs":
                return _json({"logs": _log(job)})
            case "POST", "stop":
                running = job.stopped is None
                job.stopped = job.stopped or _now()
                job.ended.set()
                return _json({"stopped": running})
        return web.Response(status=501, text=f"the lab does not simulate the dashboard's {method} {path}: unknown")

    async def _tail(self, path: str, request: web.BaseRequest) -> web.StreamResponse | None:
        """Answer a request to follow a job's log; None for another request, or an unknown job."""
        found = re.fullmatch(rf"{JOBS}([^/]+)/logs/tail", path)
        job = self._jobs.get(unquote(found[1])) if found else None
        if job is None:
            return None
        stream = web.WebSocketResponse()
        await stream.prepare(request)
        await stream.send_str(_log(job))
        await job.ended.wait()
        await stream.close()
        return stream

    def close(self) -> None:
        """End what follows the jobs' logs: the head is gone."""
        for job in self._jobs.values():
            job.ended.set()

    def _package(self, method: str, uri: str) -> web.Response:
        if method == "PUT":
            self._packages.add(uri)
        elif uri not in self._packages:
            return web.Response(status=404, text=f"Package {uri} does not exist")
        return web.Response()

    def _submit(self, body: bytes) -> web.Response:
        request = {key: value for key, value in json.loads(body).items() if value is not None}
        refused = "TypeError: JobSubmitRequest.__init__() "
        if unknown := sorted(request.keys() - _FIELDS):
            return web.Response(status=400, text=f"{refused}got an unexpected keyword argument '{unknown[0]}'")
        if "entrypoint" not in request:
            return web.Response(status=400, text=f"{refused}missing 1 required positional argument: 'entrypoint'")
        if not isinstance(request["entrypoint"], str):
            kind = type(request["entrypoint"])
            return web.Response(status=400, text=f"TypeError: entrypoint must be a string, got {kind}")
        name = str(request.get("submission_id") or f"raysubmit_{secrets.token_hex(8)}")
        if name in self._jobs:
            again = f"Job with submission_id {name} already exists. Please use a different submission_id."
            return web.Response(status=500, text=f"ValueError: {again}")
        self._jobs[name] = _Job(name, request, _now())
        return _json({"job_id": name, "submission_id": name})


def _log(job: _Job) -> str:
    return f"Running entrypoint for job {job.id}: {job.request['entrypoint']}\n{NOT_RUN}\n"


def _now() -> int:
    return int(time.time() * 1000)


def _json(value: Any) -> web.Response:
    return web.json_response(value)
