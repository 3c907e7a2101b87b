"""Gallery's application on running containers: code from the pods, and a model on a worker only
while there are requests.
"""

import base64
import copy
import json
import shutil
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from berth.lab.home import CLONE
from tests.real.conftest import POOL, Object, RealNode, environment, eventually

pytestmark = [pytest.mark.real, pytest.mark.long]

NAME = "pictures"
NAMESPACE = f"berth-{NAME}"
CODE = "stacks/gallery/apps/imagine"
SIZE = 64


def service() -> dict[str, Any]:
    """Shipped service with a toy in place of Stable Diffusion, the least resources for Ray, and
    shorter delays.
    """
    text = (CLONE / "stacks/gallery/Pulumi.serve.yaml").read_text(encoding="utf-8")
    shape = copy.deepcopy(
        yaml.safe_load(text)["config"]["berth:environment"]["services"]["stable-diffusion"]
    )
    (application,) = shape["serveConfig"]["applications"]
    application["args"] = {"model": "noise"}
    (painter,) = application["deployments"]
    painter["ray_actor_options"] = {"num_cpus": 1}
    painter["autoscaling_config"] |= {"downscale_delay_s": 5, "upscale_delay_s": 0}
    shape["workers"]["idleTimeout"] = "10s"
    shape["head"] = {"pool": POOL, "cpu": 1, "memory": "3Gi"}
    shape["worker"] = {"pool": POOL, "gpus": 0, "cpu": 1, "memory": "2Gi"}
    return {**shape, "wait": {"timeout": "5m"}}


@pytest.fixture
def env(real: RealNode) -> Iterator[RealNode]:
    """The environment with the gallery's code beside its settings; without services afterward."""
    shutil.copytree(CLONE / CODE, real.project.folder / CODE, dirs_exist_ok=True)
    yield real
    real.project.write("env", environment=environment(real.lab))
    real.project.up("env")


def pods(env: RealNode, kind: str) -> list[Object]:
    found = env.project.get("pods", "-n", NAMESPACE, "-l", f"ray.io/node-type={kind}")
    return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]


def on_head(env: RealNode, command: str) -> str:
    (head,) = pods(env, "head")
    name = head["metadata"]["name"]
    return env.lab.run(
        ["kubectl", "exec", "-n", NAMESPACE, name, "-c", "ray-head", "--", "sh", "-c", command]
    ).stdout


def details(env: RealNode) -> dict[str, Any]:
    """The answer of Ray's own dashboard."""
    ask = 'curl -sS -H "Authorization: Bearer $RAY_AUTH_TOKEN"'
    return dict(
        json.loads(
            on_head(
                env, f"{ask} 'http://127.0.0.1:8265/api/serve/applications/?api_type=declarative'"
            )
        )
    )


def status(env: RealNode) -> dict[str, Any]:
    (report,) = json.loads(
        env.project.run("berth", "status", "-s", "env", "--json", check=False).stdout
    )["services"]
    return dict(report)


def ask(env: RealNode, prompt: str) -> bytes:
    """Answer to one request to the Service from a pod of the namespace, which waits for the
    model.
    """
    address = status(env)["address"].replace(f"{NAMESPACE}:", f"{NAMESPACE}.svc.cluster.local:")
    asked = (
        f"curl -sS --fail --max-time 240 '{address}/imagine?prompt={prompt}&size={SIZE}' |"
        " base64 -w0"
    )
    return base64.b64decode(on_head(env, asked))


def pixels(picture: bytes) -> tuple[tuple[int, int], bytes]:
    """Width, height and lines of a PNG."""
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    found = {}
    rest = picture[8:]
    while rest:
        (length,) = struct.unpack(">I", rest[:4])
        found[rest[4:8]] = rest[8 : 8 + length]
        rest = rest[12 + length :]
    return struct.unpack(">II", found[b"IHDR"][:8]), zlib.decompress(found[b"IDAT"])


def painted(env: RealNode, prompt: str) -> bytes:
    """The picture that the shipped code makes of a prompt, by the head's Python: it has numpy."""
    (head,) = pods(env, "head")
    code = (CLONE / CODE / "noise.py").read_text(encoding="utf-8")
    script = f"{code}\nimport base64\nprint(base64.b64encode(paint({prompt!r}, {SIZE})).decode())\n"
    exec_ = [
        "kubectl",
        "exec",
        "-i",
        "-n",
        NAMESPACE,
        head["metadata"]["name"],
        "-c",
        "ray-head",
        "--",
        "python",
        "-",
    ]
    return base64.b64decode(env.lab.run(exec_, stdin=script).stdout)


def test_the_first_request_starts_the_model_on_a_worker_that_is_removed_later(
    env: RealNode,
) -> None:
    env.project.write("env", environment=environment(env.lab) | {"services": {NAME: service()}})
    env.project.up("env")
    report = status(env)
    assert (report["state"], report["applicationsRunning"], report["serving"]) == ("ready", 1, 1)
    assert pods(env, "worker") == [], "nobody has asked yet"

    assert pixels(ask(env, "ship")) == pixels(painted(env, "ship")), (
        "a picture, and of the shipped code"
    )
    (worker,) = pods(env, "worker")
    (head,) = pods(env, "head")
    (application,) = details(env)["applications"].values()
    where = {
        name: [replica["node_ip"] for replica in deployment["replicas"]]
        for name, deployment in application["deployments"].items()
    }
    assert where == {"Painter": [worker["status"]["podIP"]], "Ingress": [head["status"]["podIP"]]}

    eventually(lambda: pods(env, "worker") == [], "the worker goes when nobody asks any more")
    assert status(env)["state"] == "ready"
    env.project.up("env", "--expect-no-changes")


def test_an_edit_of_the_code_deploys_a_new_version(env: RealNode) -> None:
    env.project.write("env", environment=environment(env.lab) | {"services": {NAME: service()}})
    env.project.up("env")
    (before,) = pods(env, "head")
    assert pixels(ask(env, "ship")) == pixels(painted(env, "ship"))

    file = env.project.folder / CODE / "noise.py"
    file.write_text(file.read_text().replace("uniform(0, 255,", "uniform(0, 1,"))
    env.project.up("env")
    eventually(lambda: len(pods(env, "head")) == 1, "the first cluster is gone")
    (after,) = pods(env, "head")
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    _, lines = pixels(ask(env, "ship"))
    assert set(lines) == {0}, "black, as the edited code paints"
