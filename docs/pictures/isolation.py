"""Picture of a berth's boundaries: the objects that isolate it, and who reaches what.

Everything in it is read from the manifests that berth renders for a sample berth.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from berth.components.core.manifest import Manifest
from berth.components.isolation import pod_policy, priority_classes
from berth.stacks.load.stack import Environment, load
from docs.pictures.svg import LARGE, LINE, SMALL, WIDTH, Area, Picture, Style

SAMPLE = {
    "project": "your-project",
    "zone": "us-central1-b",
    "pools": {
        "cpu": {"machineType": "n2-standard-16", "nodes": 2},
        "dev": {"machineType": "g2-standard-96", "nodes": 2},
    },
    "defaults": {"worker": {"pool": "dev"}, "lifecycle": {"idle": "2h"}},
    "engineers": {"alice": {"access": {"users": ["alice@example.com"]}}, "bob": {}},
}
"""Environment whose first berth the picture shows."""

_EDGE = 14
_PAD = 12
_GAP = 14
_SIDE = 196

_PEERS = {
    "own pods": "its own pods",
    "namespace kuberay-operator": "the KubeRay operator",
    "namespace gmp-system": "Google's managed Prometheus",
    "namespace berth-keeper": "the keeper",
    "namespace kube-system": "name servers",
    "169.254.20.10/32": "name servers",
    "169.254.169.252/32": "the metadata server",
    "169.254.169.254/32": "the metadata server",
    "0.0.0.0/0 with exceptions": "the internet, but no private range",
}
"""Words for the ends of connections."""

_DNS = 53


def sample() -> list[Manifest]:
    """Return the manifests of the sample's first berth: namespace first, RayCluster last."""
    loaded = load("dev", {"environment": SAMPLE}, None)
    assert isinstance(loaded, Environment)  # noqa: S101
    berth = loaded.berths[0].manifests
    return [berth.namespace, *berth.objects, berth.main]


def draw() -> Picture:
    """Return the picture."""
    manifests = sample()
    kinds = list(dict.fromkeys(manifest["kind"] for manifest in manifests))
    picture = Picture(
        "What isolates a berth",
        f"A berth's namespace has objects of these kinds: {', '.join(kinds)}. They say who reaches"
        " its pods, what its pods reach, what pods may do and take, and who may use it. All other"
        " traffic is refused.",
    )
    policies = [manifest for manifest in manifests if manifest["kind"] == "NetworkPolicy"]
    top = 16
    middle = Area(_EDGE + _SIDE + _GAP, 16, WIDTH - 2 * (_EDGE + _SIDE + _GAP), 0)
    bottom = _objects(picture, manifests, middle)
    right = middle.x + middle.width + _GAP
    _ends(
        picture,
        "may reach its pods",
        connections(policies, "ingress"),
        Area(_EDGE, top, _SIDE, bottom - top),
    )
    _ends(
        picture,
        "its pods may reach",
        connections(policies, "egress"),
        Area(right, top, _SIDE, bottom - top),
    )
    _below(picture, manifests, bottom + _GAP)
    return picture


def connections(policies: Iterable[Manifest], direction: str) -> list[tuple[str, str]]:
    """Return the allowed connections of some pods: other end, and ports of which pods."""
    found: dict[str, list[str]] = {}
    for policy in policies:
        spec = policy["spec"]
        for rule in spec.get(direction, []):
            numbers = sorted({port["port"] for port in rule.get("ports", [])})
            text = (
                f"port{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"
                if numbers
                else "all ports"
            )
            text += " of the head" if spec["podSelector"] else ""
            for peer in rule["from" if direction == "ingress" else "to"]:
                # The metadata server's address answers names too.
                words = (
                    "name servers" if numbers == [_DNS] else _PEERS.get(_peer(peer), _peer(peer))
                )
                texts = found.setdefault(words, [])
                texts += [text] if text not in texts else []
    return [(words, "; ".join(texts)) for words, texts in found.items()]


def _peer(peer: Mapping[str, Any]) -> str:
    if "ipBlock" in peer:
        block = peer["ipBlock"]
        return str(block["cidr"]) + (" with exceptions" if block.get("except") else "")
    if "namespaceSelector" in peer:
        return (
            f"namespace {peer['namespaceSelector']['matchLabels']['kubernetes.io/metadata.name']}"
        )
    return "own pods" if peer == {"podSelector": {}} else str(peer)


def _objects(picture: Picture, manifests: Sequence[Manifest], area: Area) -> float:
    """Draw the namespace with its objects by kind; return its lower edge."""
    below = picture.mark()
    x = area.x + _PAD
    room = area.width - 2 * _PAD
    namespace = manifests[0]["metadata"]["name"]
    y = (
        picture.text(
            x, area.y + 9, f"namespace {namespace}", Style(LARGE, "green", bold=True), room=room
        )
        + 4
    )
    by_kind: dict[str, list[Manifest]] = {}
    for manifest in manifests:
        by_kind.setdefault(manifest["kind"], []).append(manifest)
    for kind, some in by_kind.items():
        lines = Style(SMALL).wrapped(_EFFECTS.get(kind, _others)(some), room - 20)
        names = ", ".join(manifest["metadata"]["name"] for manifest in some if kind != "Namespace")
        height = 12 + (1 + len(lines)) * SMALL * LINE
        picture.box(Area(x, y, room, height), "page", radius=6)
        title = kind if kind != "Namespace" else "Pod Security Admission"
        picture.text(x + 10, y + 6, title, Style(SMALL, "green", bold=True))
        left = Style(SMALL, bold=True).width(title) + 20
        shown = next(line for line in Style(SMALL, mono=True).wrapped(names, room - left - 10))
        shown = shown.removesuffix(",") + (" …" if shown != names else "")
        picture.text(x + room - 10, y + 6, shown, Style(SMALL, "muted"), anchor="end")
        for number, line in enumerate(lines):
            picture.text(
                x + 10, y + 6 + (1 + number) * SMALL * LINE, line, Style(SMALL), room=room - 20
            )
        y += height + 6
    bottom = y + _PAD - 6
    picture.box(Area(area.x, area.y, area.width, bottom - area.y), "green", below=below)
    return bottom


def _ends(picture: Picture, title: str, ends: Sequence[tuple[str, str]], area: Area) -> None:
    """Draw the ends of connections on one side of the namespace."""
    x = area.x
    room = area.width - 8
    incoming = area.x < WIDTH / 2
    y = picture.text(x + 2, area.y + 9, title, Style(tone="blue", bold=True)) + 6
    for words, ports in ends:
        lines = Style(SMALL, bold=True).wrapped(words, room - 16)
        more = Style(SMALL).wrapped(ports, room - 16)
        height = 12 + (len(lines) + len(more)) * SMALL * LINE
        left = x if incoming else x + 8
        picture.box(Area(left, y, room, height), "blue", radius=6)
        middle = y + height / 2
        picture.arrow(
            [(left + room, middle), (left + room + 20, middle)]
            if incoming
            else [(x - 12, middle), (left, middle)]
        )
        line = picture.paragraph(left + 8, y + 6, words, room - 16, Style(SMALL, "blue", bold=True))
        picture.paragraph(left + 8, line, ports, room - 16, Style(SMALL))
        y += height + 8
    text = "everything else, such as berth-bob"
    lines = Style(SMALL, bold=True).wrapped(text, room - 16)
    left = x if incoming else x + 8
    height = 12 + len(lines) * SMALL * LINE
    picture.box(Area(left, y, room, height), "red", radius=6, dashed=True)
    picture.paragraph(left + 8, y + 6, text, room - 16, Style(SMALL, "red", bold=True))
    picture.text(
        left + (room + 12 if incoming else -14),
        y + height / 2 - 8,
        "✕",
        Style(tone="red", bold=True),
        anchor="middle",
    )


def _below(picture: Picture, manifests: Sequence[Manifest], top: float) -> None:
    """Draw the boundaries outside of the namespace."""
    cluster = manifests[-1]["spec"]
    pools = [
        group["template"]["spec"]["nodeSelector"]["cloud.google.com/gke-nodepool"]
        for group in (cluster["headGroupSpec"], *cluster["workerGroupSpecs"])
    ]
    ranks = {
        rank["metadata"]["name"]: (
            "preempts lower ones" if rank["preemptionPolicy"] != "Never" else "preempts nobody"
        )
        for rank in priority_classes()
    }
    cells = [
        (
            "Node pools",
            (
                f"the head runs on nodes of {pools[0]}, workers on nodes of {pools[1]}; no two pods"
                " get one GPU or share"
            ),
        ),
        ("PriorityClasses", "; ".join(f"{name} {text}" for name, text in ranks.items())),
        (
            f"Policy {pod_policy()[0]['metadata']['name']}",
            "refuses pods that ask for their node, whoever creates them and whatever the level is",
        ),
        (
            "Ray's token",
            (
                "every call to Ray needs it; KubeRay makes it, and it is in one Secret and nowhere"
                " else"
            ),
        ),
    ]
    width = (WIDTH - 2 * _EDGE - (len(cells) - 1) * _GAP) / len(cells)
    lines = max(len(Style(SMALL).wrapped(text, width - 2 * _PAD)) for _, text in cells)
    height = 20 + SMALL * LINE * lines + 18
    for number, (title, text) in enumerate(cells):
        x = _EDGE + number * (width + _GAP)
        picture.box(Area(x, top, width, height), "amber")
        y = picture.text(x + _PAD, top + 9, title, Style(tone="amber", bold=True))
        picture.paragraph(x + _PAD, y, text, width - 2 * _PAD, Style(SMALL))


def _pod_security(namespaces: Sequence[Manifest]) -> str:
    level = namespaces[0]["metadata"]["labels"]["pod-security.kubernetes.io/enforce"]
    return f"level {level}: refuses pods that ask for more of their node"


def _policies(policies: Sequence[Manifest]) -> str:
    del policies
    return "let through what stands at both sides, and refuse the rest"


def _quotas(quotas: Sequence[Manifest]) -> str:
    hard = quotas[0]["spec"]["hard"]
    gpus = sum(int(value) for key, value in hard.items() if key.startswith("requests.nvidia.com/"))
    none = [words for key, words in _NONE.items() if hard.get(key) == "0"]
    memory = int(hard["requests.memory"].removesuffix("Mi")) // 1024
    text = (
        f"at most {hard['requests.cpu']} CPUs, {memory}Gi and {gpus} GPU; no {', no '.join(none)}"
    )
    others = [
        quota["spec"]["scopeSelector"]["matchExpressions"][0]["values"]
        for quota in quotas[1:]
        if "spec" in quota
    ]
    return text + "".join(f"; only pods of class {' and '.join(names)}" for names in others)


_NONE = {
    "services.loadbalancers": "load balancer",
    "services.nodeports": "node port",
    "count/resourceclaims.resource.k8s.io": "device claim",
}


def _limits(ranges: Sequence[Manifest]) -> str:
    (limit,) = ranges[0]["spec"]["limits"]
    first = limit["defaultRequest"]
    then = limit["default"]
    most = f"at most {then['cpu']} core and {then['memory']}"
    return f"a container without resources gets {first['cpu']} and {first['memory']}, {most}"


def _roles(roles: Sequence[Manifest]) -> str:
    texts = []
    for role in roles:
        changed = {
            resource
            for rule in role["rules"]
            for resource in rule["resources"]
            if {"create", "patch"} & set(rule["verbs"])
        }
        texts.append(f"{role['metadata']['name']} may change {', '.join(sorted(changed))}")
    return f"{'; '.join(texts)}; nothing outside of this namespace"


def _bindings(bindings: Sequence[Manifest]) -> str:
    texts = []
    for binding in bindings:
        subjects = binding["subjects"]
        names = ", ".join(subject["name"] for subject in subjects)
        places = [f" of {subject['namespace']}" for subject in subjects if "namespace" in subject]
        texts.append(f"{binding['metadata']['name']}: {names}{''.join(places)}")
    return "; ".join(texts)


def _ray_cluster(clusters: Sequence[Manifest]) -> str:
    spec = clusters[0]["spec"]
    pod = spec["headGroupSpec"]["template"]["spec"]
    user = pod["securityContext"]["runAsUser"]
    mounted = "no" if pod.get("automountServiceAccountToken") is False else "a"
    return (
        f"pods run as user {user} with {mounted} service account token; calls need a"
        f" {spec['authOptions']['mode']}"
    )


def _others(objects: Sequence[Manifest]) -> str:
    return ", ".join(manifest["metadata"]["name"] for manifest in objects)


_EFFECTS: Mapping[str, Callable[[Sequence[Manifest]], str]] = {
    "Namespace": _pod_security,
    "NetworkPolicy": _policies,
    "ResourceQuota": _quotas,
    "LimitRange": _limits,
    "Role": _roles,
    "RoleBinding": _bindings,
    "RayCluster": _ray_cluster,
}
"""Effects of a berth's objects, by kind."""
