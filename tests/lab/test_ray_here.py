"""Programs of a user in the lab: the head's Ray runs on this machine, and is real. Long: test_pages
runs the README's program on such a Ray.
"""

import json
import os
from pathlib import Path

import psutil
import pytest

from berth.components.hardware.versions import RAY
from tests.lab.conftest import Lab
from tests.lab.project import SMALL, Done, Project, environment_settings, eventually

pytestmark = [pytest.mark.lab, pytest.mark.long]

HELLO = """
import os, ray
ray.init(logging_level="ERROR")

@ray.remote(num_gpus=1)
def gpu():
    return os.environ["CUDA_VISIBLE_DEVICES"]

found = ray.cluster_resources()
amounts = found["CPU"], "CPUs,", found["GPU"], "GPUs,", found["tons"], "tons"
print("Ray", ray.__version__, "has", *amounts)
print("a task has GPU", ray.get(gpu.remote()), "and the token", os.environ["HF_TOKEN"])
"""


@pytest.fixture(scope="module")
def env(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    """Environment with bob, who has two workers with a GPU each."""
    project = Project.make(tmp_path_factory.mktemp("ray") / "project", lab)
    worker = SMALL["worker"] | {"pool": "dev", "gpus": 1, "rayResources": {"tons": 2}}
    bob = {
        "workers": 2,
        "worker": worker,
        "secrets": {"HF_TOKEN": {}},
        "wait": {"until": "submitted"},
    }
    pools = {"dev": {"machineType": "g2-standard-48", "nodes": 1}}
    project.write(
        "env", environment=environment_settings(lab, pools, defaults=SMALL, engineers={"bob": bob})
    )
    project.up("env")
    lab.run(["berth", "secret", "set", "bob", "HF_TOKEN"], cwd=project.folder, stdin="hf-1")
    eventually(
        lambda: project.get("rayclusters", "-A")[0].get("status", {}).get("state") == "ready",
        "bob is ready",
    )
    return project


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Folder of a user's program."""
    (tmp_path / "hello.py").write_text(HELLO)
    return tmp_path


def rays(lab: Lab) -> list[psutil.Process]:
    """Return the processes of Rays of this lab."""
    folder = str(lab.home.root.resolve() / "ray")
    found = [
        process
        for process in psutil.process_iter(["cmdline", "status"])
        if process.pid != os.getpid()
    ]
    return [process for process in found if folder in " ".join(process.info["cmdline"] or ())]


def submit(env: Project, folder: Path, *words: str, code: int = 0) -> Done:
    done = env.run("berth", "submit", "bob", "--working-dir", str(folder), *words, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def test_a_program_runs_until_the_berth_is_suspended(env: Project, work: Path) -> None:
    assert rays(env.lab) == [], "nobody has used the berth yet"
    assert "has no log" in env.run("berth", "logs", "bob", check=False).stderr
    first = submit(env, work, "--name", "hello", "--", "python", "hello.py")
    assert "its Ray starts on this machine" in first.stderr
    assert f"Ray {RAY} has 3.0 CPUs, 2.0 GPUs, 4.0 tons" in first.stdout
    assert "a task has GPU 0 and the token hf-1" in first.stdout
    listening = [
        entry for entry in psutil.net_connections("tcp") if entry.status == psutil.CONN_LISTEN
    ]
    pids = {process.pid for process in rays(env.lab)}
    addresses = {str(entry.laddr.ip) for entry in listening if entry.pid in pids and entry.laddr}
    assert {address.removeprefix("::ffff:") for address in addresses} == {"127.0.0.1"}

    before = env.lab.pids()
    assert submit(env, work, "--", "python", "-c", "import sys; sys.exit(7)", code=7)
    assert env.lab.pids() == before, "the same Ray"
    jobs = {
        job["id"]: job["exitCode"]
        for job in json.loads(env.run("berth", "jobs", "bob", "--json").stdout)
    }
    assert jobs["hello"] == 0
    assert 7 in jobs.values()
    assert "a task has GPU" in env.run("berth", "jobs", "bob", "hello", "--log").stdout
    assert "Ray runtime started" in env.run("berth", "logs", "bob").stdout
    inside = env.run(
        "berth",
        "exec",
        "bob",
        "--",
        "python",
        "-c",
        "import ray; ray.init(); print('in', ray.__version__)",
    )
    assert f"in {RAY}" in inside.stdout

    env.run("berth", "suspend", "bob")
    eventually(lambda: not rays(env.lab), "Ray ends with the head")
    asleep = submit(env, work, "--", "true", code=1)
    assert "add --wake" in asleep.stderr
    assert "two" in submit(env, work, "--wake", "--", "echo", "two").stdout


def test_a_lab_that_goes_down_takes_its_rays_with_it(env: Project, work: Path) -> None:
    submit(env, work, "--", "true")
    assert rays(env.lab)
    env.lab.berth("down")
    assert rays(env.lab) == []
    env.lab.up()
