"""Three groups of workers with Ray's own autoscaler: a task brings a worker of the group that it
fits, a resized group leaves the pods of the others as they were, and idle workers go.
"""

import pytest

from tests.lab.project import Settings
from tests.real.conftest import RealNode, berth, eventually

pytestmark = [pytest.mark.real, pytest.mark.long]

NAME = "gina"
NAMESPACE = f"berth-{NAME}"
IDLE = "20s"
GPUS = {"plain": 0, "single": 1, "double": 2}


def groups(**changed: Settings) -> Settings:
    """Groups of at most two workers, and none at the start; some have other numbers."""
    return {
        name: {
            "gpus": gpus,
            "rayResources": {name: 1},
            "workers": {"min": 0, "max": 2, "idleTimeout": IDLE, **changed.get(name, {})},
        }
        for name, gpus in GPUS.items()
    }


RELEASE = "/tmp/release"  # noqa: S108 - in the head's container
HOLD = f"""
import os, ray, time
ray.init(logging_level="ERROR")
class Holder:
    def place(self):
        return ray.get_runtime_context().get_node_labels()["ray.io/node-group"]
actor = ray.remote(Holder)
holders = {{
    name: actor.options(num_cpus=1, resources={{name: 1}}).remote() for name in {list(GPUS)}
}}
for name, holder in holders.items():
    print(name, "is held in", ray.get(holder.place.remote()), flush=True)
while not os.path.exists("{RELEASE}"):
    time.sleep(0.5)
"""


def pods(real: RealNode) -> dict[str, set[str]]:
    """UIDs of the ready pods by their group; the head's is `headgroup`."""
    found: dict[str, set[str]] = {}
    for pod in real.project.get("pods", "-n", NAMESPACE, "-l", f"ray.io/cluster={NAME}"):
        conditions = {
            entry["type"]: entry["status"] for entry in pod["status"].get("conditions", [])
        }
        if conditions.get("Ready") == "True" and "deletionTimestamp" not in pod["metadata"]:
            found.setdefault(pod["metadata"]["labels"]["ray.io/group"], set()).add(
                pod["metadata"]["uid"]
            )
    return found


def write(real: RealNode, worker_groups: Settings) -> None:
    real.project.write(NAME, engineer=berth(workerGroups=worker_groups))


def test_each_group_grows_from_nothing_and_a_resized_one_leaves_the_others(real: RealNode) -> None:
    write(real, groups())
    real.project.up(NAME)
    (head,) = pods(real)["headgroup"]
    assert pods(real) == {"headgroup": {head}}

    submit = [
        "ray",
        "job",
        "submit",
        "--address=http://127.0.0.1:8265",
        "--submission-id=hold",
        "--no-wait",
    ]
    real.on_head(NAME, *submit, "--", "python", "-c", HOLD)
    eventually(lambda: len(pods(real)) == len(GPUS) + 1, "each group has a worker")
    grown = pods(real)
    assert {group: len(uids) for group, uids in grown.items()} == dict.fromkeys(
        ["headgroup", *GPUS], 1
    )
    log = ["ray", "job", "logs", "--address=http://127.0.0.1:8265", "hold"]
    placed = [f"{group} is held in {group}" for group in GPUS]
    eventually(
        lambda: all(line in real.on_head(NAME, *log).stdout for line in placed),
        "the actors are placed",
    )

    write(real, groups(double={"min": 1, "max": 3}, plain={"min": 2}))
    preview = real.project.run("berth", "preview", "-s", NAME, check=False)
    assert (preview.returncode, "restarts" in preview.stdout) == (0, False), preview.stdout
    real.project.up(NAME)
    eventually(lambda: len(pods(real)["plain"]) == 2, "the resized group has grown")
    after = pods(real)
    assert after == grown | {"plain": after["plain"]}
    assert after["plain"] > grown["plain"]
    real.project.up(NAME, "--expect-no-changes")

    write(real, groups())
    real.project.up(NAME)
    left = pods(real)
    assert all(uids <= left[group] for group, uids in grown.items()), (
        "an edit ends no worker that works"
    )
    real.on_head(NAME, "touch", RELEASE)
    eventually(
        lambda: pods(real) == {"headgroup": {head}},
        "idle workers are gone, and the head is the same",
    )
    real.project.destroy(NAME)
