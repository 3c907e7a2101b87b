"""The same berths without berth: by kubectl, which is the floor, by Helm, and by plain Pulumi."""

import json
from collections.abc import Sequence

from bench.fleet import Bench, Object, err, owner
from bench.measured import BenchError
from berth.components.core.owner import STACK_LABEL

_APPLY = ("kubectl", "apply", "--server-side", "--force-conflicts")
_PROGRAM = """\
import json
import pulumi
import pulumi_kubernetes as k8s

for item in json.load(open("objects.json")):
    name, metadata = item["metadata"]["name"], item["metadata"]
    if item["kind"] == "Namespace":
        k8s.core.v1.Namespace(name, metadata=metadata)
    elif item["kind"] == "ConfigMap":
        k8s.core.v1.ConfigMap(name, metadata=metadata, data=item["data"])
    else:
        k8s.apiextensions.CustomResource(
            name,
            api_version=item["apiVersion"],
            kind=item["kind"],
            metadata=metadata,
            spec=item["spec"],
        )
"""
_OF_ONE = 8
"""Number of plain resources that stand for a berth in a preview."""


def _until(listed: str, only: str) -> tuple[str, ...]:
    """Return a command that waits until `kubectl get` prints no line that differs from a pattern.

    `kubectl wait` asks about one object after the other, which takes a tenth of a second each.
    """
    return (
        "sh",
        "-c",
        (
            f"while lines=$(kubectl get {listed}) || exit; echo \"$lines\" | grep -qvx '{only}'; do"
            " sleep 0.1; done"
        ),
    )


# The dot ends a line: a shell drops empty ones.
_READY = _until(
    """rayclusters -A -o jsonpath='{range .items[*]}{.status.state}.{"\\n"}{end}'""", r"ready\."
)


def floor(bench: Bench, objects: Sequence[Object], stack: str) -> None:
    """Apply and remove the objects with kubectl, as one who knows the best order would."""
    everything = _file(bench, "all", objects)
    names = sorted({owner(item) for item in objects})
    last = _file(bench, "last", [item for item in objects if owner(item) == names[-1]])
    bench.timed("floor: up", (*_APPLY, "-f", everything), _READY)
    bench.timed("floor: no-op", (*_APPLY, "-f", everything))
    bench.timed(
        "floor: one less",
        ("kubectl", "delete", "rayclusters", "--all", "-n", names[-1]),
        ("kubectl", "wait", "pods", "--all", "-n", names[-1], "--for=delete", "--timeout=60m"),
        ("kubectl", "delete", "namespace", names[-1]),
    )
    bench.timed("floor: one more", (*_APPLY, "-f", last), _READY)
    of_stack = ("-l", f"{STACK_LABEL}={stack}")
    bench.timed(
        "floor: destroy",
        ("kubectl", "delete", "rayclusters", "-A", *of_stack, "--wait=false"),
        _until("pods -A -l ray.io/cluster -o name", ""),
        ("kubectl", "delete", "namespaces", *of_stack, "--wait=false"),
        _until(f"namespaces -l {STACK_LABEL}={stack} -o name", ""),
    )


def helm(bench: Bench, objects: Sequence[Object]) -> None:
    """Install, upgrade and remove the objects as one release, as far as Helm can."""
    chart = bench.folder / "chart"
    (chart / "templates").mkdir(parents=True)
    (chart / "Chart.yaml").write_text("apiVersion: v2\nname: fleet\nversion: 0.1.0\n")
    for number, item in enumerate(objects):
        # Whatever looks like a template's action is text.
        text = json.dumps(item).replace("{{", '{{ "{{" }}')
        (chart / "templates" / f"{number}.yaml").write_text(text)
    release = ("fleet", str(chart), "--namespace", "default", "--timeout", "60m")
    try:
        bench.timed("helm: up", ("helm", "install", *release), _READY)
        bench.timed("helm: no-op", ("helm", "upgrade", *release))
        bench.timed(
            "helm: destroy", ("helm", "uninstall", "fleet", "--namespace", "default", "--wait")
        )
    except BenchError as error:
        err.print(f"  helm gives up: {error}", markup=False, style="yellow")
        _remove(bench, objects)


def plain_pulumi(bench: Bench, objects: Sequence[Object]) -> None:
    """Bring up namespaces and RayClusters alone with a program without components."""
    few = [item for item in objects if item["kind"] in ("Namespace", "RayCluster")]
    few.sort(key=lambda item: str(item["kind"]))
    for item in few:
        # Plain Pulumi waits for nothing that an annotation does not name.
        item["metadata"].pop("annotations", None)
    folder = bench.folder / "plain"
    folder.mkdir()
    (folder / "Pulumi.yaml").write_text((bench.project.folder / "Pulumi.yaml").read_text())
    (folder / "__main__.py").write_text(_PROGRAM)
    (folder / "objects.json").write_text(json.dumps(few))
    (folder / "stacks").mkdir()
    bench.do("pulumi", "stack", "init", "plain", "--no-select", cwd=folder)
    up = ("pulumi", "up", "-s", "plain", "--yes", "--skip-preview")
    bench.timed("plain pulumi: up", up, _READY, cwd=folder)
    bench.timed("plain pulumi: no-op", up, cwd=folder)
    destroy = ("pulumi", "destroy", "-s", "plain", "--yes", "--skip-preview")
    bench.timed("plain pulumi: destroy", destroy, cwd=folder)


def plain_preview(bench: Bench, berths: int) -> None:
    """Preview an unchanged program with as many plain resources as berths have at most."""
    folder = bench.folder / "resources"
    (folder / "stacks").mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text((bench.project.folder / "Pulumi.yaml").read_text())
    (folder / "__main__.py").write_text(_PROGRAM)
    metadata = [
        {"name": f"plain-{number}", "namespace": "default"} for number in range(_OF_ONE * berths)
    ]
    items = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": one, "data": {"a": "b"}}
        for one in metadata
    ]
    (folder / "objects.json").write_text(json.dumps(items))
    bench.do("pulumi", "stack", "init", "resources", "--no-select", cwd=folder)
    bench.do("pulumi", "up", "-s", "resources", "--yes", "--skip-preview", cwd=folder)
    bench.timed("plain pulumi: preview", ("pulumi", "preview", "-s", "resources"), cwd=folder)


def _file(bench: Bench, name: str, objects: Sequence[Object]) -> str:
    # Namespaces first; Kubernetes has no other order.
    ordered = sorted(objects, key=lambda item: item["kind"] != "Namespace")
    path = bench.folder / f"{name}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": ordered}))
    return str(path)


def _remove(bench: Bench, objects: Sequence[Object]) -> None:
    names = sorted({owner(item) for item in objects})
    bench.do("kubectl", "delete", "namespaces", "--ignore-not-found", *names)
    bench.do("helm", "uninstall", "fleet", "--namespace", "default", "--ignore-not-found")
