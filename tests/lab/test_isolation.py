"""Berths on shared pools, and their isolation: rights, pods, quotas, traffic, priority, tokens.

Real: API server with its admission, quotas and rights, scheduler with its preemption, KubeRay.
Nothing in the lab enforces NetworkPolicies on its nodes: cyclonus judges them as the API server has
them. test_network.py judges those of many more berths.
"""

import base64
import copy
import itertools
import json
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from berth.components.fabric import NODE_FOLDERS
from berth.components.isolation import binding_of, pod_policy, ray_policy
from berth.components.isolation.admission import POD_RULES
from berth.components.isolation.pod_security import ENFORCE, needed_by, with_restricted_contexts
from berth.components.isolation.priority import DEVELOPMENT, PRODUCTION
from berth.components.isolation.rbac import user_subject
from berth.lab.progress import LabProgress
from berth.lab.toolchain.ensure import programs_of
from berth.lab.toolchain.tools import CYCLONUS
from tests.lab.bad_pods import (
    BAD_CLAIMS,
    BAD_PODS,
    FORBIDDEN_ANNOTATIONS,
    FORBIDDEN_PODS,
    OBJECTS,
    PODS_PAST_LIMITS,
    annotated_pods,
    good_pod,
    over,
)
from tests.lab.bad_ray import (
    BAD,
    BAD_CLUSTERS,
    BAD_METADATA,
    BAD_RESTRICTED,
    GOOD_CLUSTERS,
    KINDS,
    bad_objects,
    complete,
    ray_objects,
)
from tests.lab.conftest import Lab
from tests.lab.project import (
    NETWORK,
    SMALL,
    Done,
    Project,
    Settings,
    brought_up,
    environment_settings,
    eventually,
)
from tests.lab.traffic import BerthPods, Case, Peer, between, within, wrong

pytestmark = pytest.mark.lab

STACK = "apart"
PRIVILEGED_CONTEXT = {"securityContext": {"privileged": True}}
OWNERS = [f"eng-{number}" for number in range(5)]
PLAIN = "plain"
"""Engineer whose berth has no autoscaler."""
OWN_PARTS = OWNERS[2]
"""Engineer whose berth's settings give its head parts that others may not have."""
PARTS_OF_SETTINGS = {
    "volumes": {"data": {"bucket": "my-bucket", "at": "/data"}},
    "head": {
        "podTemplate": {
            "metadata": {"annotations": {"example.com/team": "research"}},
            "spec": {
                "containers": [
                    {
                        "name": "ray-head",
                        "envFrom": [{"secretRef": {"name": "of-the-settings", "optional": True}}],
                    }
                ]
            },
        }
    },
}
FEWEST_BAD_PODS = 20
Object = dict[str, Any]


def environment(lab: Lab) -> Settings:
    return environment_settings(
        lab,
        {
            "cpu": {"machineType": "n2-standard-32", "nodes": 1},
            "dev": {"machineType": "a4-highgpu-8g", "nodes": 1},
        },
        network=NETWORK,
        defaults=SMALL
        | {"worker": SMALL["worker"] | {"pool": "dev"}, "workers": {"min": 0, "max": 1}},
        engineers={
            **{name: {"access": {"users": [user(name)]}} for name in OWNERS},
            OWN_PARTS: {"access": {"users": [user(OWN_PARTS)]}, **PARTS_OF_SETTINGS},
            PLAIN: {"access": {"users": [user(PLAIN)]}, "workers": 0},
        },
    )


def folder(path: str, *, read_only: bool) -> Object:
    """Changes of a pod that mounts a folder of its node."""
    mount = {"name": "v", "mountPath": "/v", "readOnly": read_only}
    return {
        "volumes": [{"name": "v", "hostPath": {"path": path}}],
        "containers": [{"volumeMounts": [mount]}],
    }


@pytest.fixture(scope="module")
def fleet(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Project:
    return brought_up(tmp_path_factory.mktemp("isolation"), lab, STACK, environment(lab))


@pytest.fixture(scope="module")
def judge() -> Path:
    return programs_of([CYCLONUS], LabProgress())["judge"]


def user(owner: str) -> str:
    return f"{owner}@example.com"


def namespace(owner: str) -> str:
    return f"berth-{owner}"


def scale(fleet: Project, owner: str, workers: int) -> None:
    """Ask for workers as Ray's autoscaler does, which writes by Python's requests."""
    patch = [{"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": workers}]
    where = [
        "-n",
        namespace(owner),
        "--type=json",
        "--field-manager=python-requests",
        "-p",
        json.dumps(patch),
    ]
    fleet.run("kubectl", "patch", "raycluster", owner, *where)


def running(pods: list[Object]) -> list[Object]:
    return [pod for pod in pods if pod["status"].get("phase") == "Running"]


def test_kuberays_pods_keep_to_the_strictest_level(fleet: Project) -> None:
    berths = [
        item
        for item in fleet.get("namespaces")
        if item["metadata"]["name"].startswith("berth-eng-")
    ]
    levels = {berth["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] for berth in berths}
    assert (len(berths), levels) == (len(OWNERS), {"restricted"})
    clusters = fleet.get("rayclusters", "-A")
    assert [cluster["status"]["state"] for cluster in clusters] == ["ready"] * (len(OWNERS) + 1)
    scale(fleet, OWNERS[0], 1)
    eventually(
        lambda: len(running(fleet.workers(OWNERS[0]))) == 1, "a worker of the first berth runs"
    )
    (worker,) = fleet.workers(OWNERS[0])
    (head,) = fleet.get("pods", "-n", namespace(OWNERS[0]), "-l", "ray.io/node-type=head")
    # KubeRay's own containers and Services are isolated too.
    assert [container["name"] for container in head["spec"]["containers"]] == [
        "ray-head",
        "autoscaler",
    ]
    assert [container["name"] for container in worker["spec"]["initContainers"]] == [
        "wait-gcs-ready"
    ]
    assert not [
        service for service in fleet.get("services", "-A") if service["spec"]["type"] != "ClusterIP"
    ]


# Rights for an engineer's day with a berth, in kubectl's words: verb, resource.group/subresource,
# name.
DAY = """list pods
get pods/log
create pods/exec
create pods/portforward
get secrets {owner}
list events
patch rayclusters.ray.io {owner}
create rayjobs.ray.io""".splitlines()
FORBIDDEN: list[str] = OBJECTS["forbidden rights"]
"""Rights that no engineer has, even in the own berth."""


def rights(fleet: Project, questions: Sequence[tuple[str, str, str]]) -> list[bool]:
    """Answers of the API server to (user, owner of the namespace, right); "" is all namespaces."""

    def attributes(owner: str, right: str) -> Object:
        verb, kind, name = [*right.format(owner=owner).split(), ""][:3]
        resource, _, subresource = kind.partition("/")
        resource, _, group = resource.partition(".")
        where = {"namespace": namespace(owner) if owner else "", "name": name}
        return where | {
            "verb": verb,
            "group": group,
            "resource": resource,
            "subresource": subresource,
        }

    reviews = [
        {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {
                "user": name,
                "groups": ["system:authenticated"],
                "resourceAttributes": attributes(owner, right),
            },
        }
        for name, owner, right in questions
    ]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": reviews})
    done = fleet.lab.run(
        ["kubectl", "create", "-f", "-", "-o", "jsonpath={.status.allowed}{'\\n'}"], stdin=text
    )
    return [line == "true" for line in done.stdout.split()]


def test_an_engineer_has_rights_in_their_own_berth_only(fleet: Project) -> None:
    assert all(
        rights(fleet, [(user(owner), owner, right) for owner in OWNERS[:3] for right in DAY])
    )
    of_others = [
        (user(one), other, right)
        for one, other in itertools.permutations(OWNERS, 2)
        for right in (DAY[0], DAY[2], DAY[4])
    ]
    of_others += [(user(OWNERS[0]), OWNERS[1], right) for right in (*DAY, *FORBIDDEN)]
    everywhere = [(user(OWNERS[0]), "", right) for right in (*DAY, *FORBIDDEN)]
    forbidden = [(user(OWNERS[0]), OWNERS[0], right) for right in FORBIDDEN]
    questions = [*of_others, *everywhere, *forbidden]
    answers = rights(fleet, questions)
    assert len(answers) == len(questions)
    assert [question for question, allowed in zip(questions, answers, strict=True) if allowed] == []

    def token(owner: str) -> subprocess.CompletedProcess[str]:
        me = f"--as={user(OWNERS[0])}"
        return fleet.run(
            "kubectl", me, "get", "secret", owner, "-n", namespace(owner), "-o", "name", check=False
        )

    assert token(OWNERS[0]).stdout == f"secret/{OWNERS[0]}\n"
    assert "Forbidden" in token(OWNERS[1]).stderr


def refusals(fleet: Project, where: str, *manifests: Object, by: str = "") -> dict[str, str]:
    """Refusals of the API server by the manifest's name, from dry runs; admitted manifests are left
    out.
    """
    as_user = [f"--as={by}", "--as-group=system:authenticated"] if by else []
    command = ["kubectl", *as_user, "create", "--dry-run=server", "-n", where, "-f", "-"]
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    done = fleet.lab.run(command, stdin=text, check=False)
    answers = dict(_REFUSAL.findall(done.stderr))
    assert len(answers) + len(done.stdout.splitlines()) == len(manifests), done.stderr
    return answers


_REFUSAL = re.compile(r'"([^"\s]+)" (is (?:forbidden|invalid).*)')


@pytest.fixture(scope="module")
def refused(fleet: Project) -> dict[str, str]:
    """Refusals of the API server for bad pods in a berth, by the pods' faults."""
    names = {f"bad-{number}": what for number, what in enumerate(BAD_PODS)}
    bad = [
        dict(over(good_pod(name, DEVELOPMENT), {"spec": BAD_PODS[what]}))
        for name, what in names.items()
    ]
    answers = refusals(fleet, namespace(OWNERS[1]), good_pod("good", DEVELOPMENT), *bad)
    return {names.get(name, name): output for name, output in answers.items()}


def test_a_good_pod_is_admitted(refused: dict[str, str]) -> None:
    assert "good" not in refused
    assert len(BAD_PODS) >= FEWEST_BAD_PODS


@pytest.mark.parametrize("what", BAD_PODS)
def test_a_bad_pod_is_refused(refused: dict[str, str], what: str) -> None:
    assert 'violates PodSecurity "restricted:latest"' in refused[what]


def test_the_derived_level_is_the_strictest_that_the_api_server_admits(fleet: Project) -> None:
    levels = ("restricted", "baseline", "privileged")
    for level in levels:
        fleet.run("kubectl", "create", "namespace", f"level-{level}")
        fleet.run(
            "kubectl",
            "label",
            "namespace",
            f"level-{level}",
            f"pod-security.kubernetes.io/enforce={level}",
        )
    pods = []
    for number, (what, spec) in enumerate(BAD_PODS.items()):
        # As isolated() would make it, where nothing speaks against that.
        pod = over(good_pod(f"bad-{number}", PRODUCTION), {"spec": spec})["spec"]
        needed = needed_by(pod)
        pod = with_restricted_contexts(pod) if needed == "restricted" else pod
        pods.append((what, needed, good_pod(f"bad-{number}", PRODUCTION) | {"spec": pod}))
    refused = {
        level: refusals(fleet, f"level-{level}", *(pod for _, _, pod in pods)) for level in levels
    }
    admitted = {
        what: next(level for level in levels if pod["metadata"]["name"] not in refused[level])
        for what, _, pod in pods
    }
    # Newer API servers let pods with users of their own do more, which berth does not count on.
    assert {
        what: level for what, level in admitted.items() if "hostUsers" not in BAD_PODS[what]
    } == {what: needed for what, needed, _ in pods if "hostUsers" not in BAD_PODS[what]}
    assert all(levels.index(admitted[what]) <= levels.index(needed) for what, needed, _ in pods)
    for level in levels:
        fleet.run("kubectl", "delete", "namespace", f"level-{level}", "--wait=false")


PRIVILEGED = f"{ENFORCE}=privileged"
NVIDIA_RUNTIME = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "nvidia"},
    "handler": "nvidia",
}


def test_no_level_lets_a_pod_have_its_node(fleet: Project) -> None:
    where = namespace(OWNERS[2])
    fleet.run("kubectl", "label", "--overwrite", "namespace", where, PRIVILEGED)
    bad = [
        dict(over(good_pod(f"bad-{number}", DEVELOPMENT), {"spec": spec}))
        for number, (_, spec) in enumerate(FORBIDDEN_PODS.values())
    ]
    readers = dict(
        over(good_pod("good", DEVELOPMENT), {"spec": folder(NODE_FOLDERS[0], read_only=True)})
    )
    marked = annotated_pods(DEVELOPMENT)
    created(fleet, [NVIDIA_RUNTIME])
    refused = refusals(fleet, where, readers, *marked.values(), *bad)
    fleet.run("kubectl", "delete", "runtimeclass", "nvidia")
    assert refused.get("good", "") == ""
    answers = {what: refused.get(f"bad-{number}", "") for number, what in enumerate(FORBIDDEN_PODS)}
    answers |= {key: refused.get(pod["metadata"]["name"], "") for key, pod in marked.items()}
    expected = {what: words for what, (words, _) in FORBIDDEN_PODS.items()} | FORBIDDEN_ANNOTATIONS
    assert {
        what: answers[what] for what, words in expected.items() if words not in answers[what]
    } == {}
    fleet.run("kubectl", "label", "--overwrite", "namespace", where, f"{ENFORCE}=restricted")


NESTED = {"any system call", "no profile of system calls", "AppArmor off", "maybe root"}
"""Faults that a berth with nested containers may have: profiles refuse what podman needs."""


def test_a_privileged_namespace_keeps_the_rest_of_restricted(fleet: Project) -> None:
    """Pods that mount NCCL's folders need the level `privileged`, and nothing else of it."""
    where = namespace(OWNERS[2])
    fleet.run("kubectl", "label", "--overwrite", "namespace", where, PRIVILEGED)
    pods = {f"bad-{number}": what for number, what in enumerate(BAD_PODS)}
    bad = [
        dict(over(good_pod(name, DEVELOPMENT), {"spec": BAD_PODS[what]}))
        for name, what in pods.items()
    ]
    readers = dict(
        over(good_pod("good", DEVELOPMENT), {"spec": folder(NODE_FOLDERS[0], read_only=True)})
    )
    for rules, admitted in {"restricted": set(), "nested": NESTED}.items():
        fleet.run("kubectl", "annotate", "--overwrite", "namespace", where, f"{POD_RULES}={rules}")
        refused = refusals(fleet, where, readers, *bad)
        assert refused.get("good", "") == ""
        assert {pods[name] for name in pods.keys() - refused.keys()} == admitted
        assert all("denied request: pods of a berth may" in answer for answer in refused.values())
    fleet.run("kubectl", "annotate", "namespace", where, f"{POD_RULES}-")
    fleet.run("kubectl", "label", "--overwrite", "namespace", where, f"{ENFORCE}=restricted")


def test_the_autoscalers_token_gets_no_node(fleet: Project) -> None:
    """The token is in the head, where any job can read it; it may change the berth's RayCluster."""
    owner = OWNERS[3]
    where = namespace(owner)
    fleet.run("kubectl", "label", "--overwrite", "namespace", where, PRIVILEGED)
    (before,) = fleet.get("rayclusters", "-n", where)
    template = "/spec/workerGroupSpecs/0/template/spec"
    patch = [
        {
            "op": "add",
            "path": f"{template}/containers/0/securityContext",
            "value": {"privileged": True},
        },
        {"op": "add", "path": f"{template}/hostPID", "value": True},
        {"op": "replace", "path": "/spec/workerGroupSpecs/0/replicas", "value": 1},
    ]

    command = ["patch", "raycluster", owner, "-n", where, "--type=json"]
    token = f"--as=system:serviceaccount:{where}:{owner}"
    done = fleet.run("kubectl", token, *command, "-p", json.dumps(patch), check=False)
    assert "may not use the node's network, processes or IPC" in done.stderr
    # The stack may write it, and the pod is refused all the same.
    fleet.run("kubectl", *command, "-p", json.dumps(patch))

    def refusal() -> bool:
        events = fleet.get("events", "-n", where)
        return any(
            "denied request: pods of a berth may not" in str(event.get("message"))
            for event in events
        )

    eventually(refusal, "the API server refuses KubeRay's pod")
    assert fleet.workers(owner) == []
    fleet.run("kubectl", "label", "--overwrite", "namespace", where, f"{ENFORCE}=restricted")
    undo = [{"op": "replace", "path": "/spec", "value": before["spec"]}]
    fleet.run("kubectl", *command, "-p", json.dumps(undo))


UPDATES: dict[str, list[Object]] = OBJECTS["pod updates"]


def test_a_pod_stays_as_it_was_admitted(fleet: Project) -> None:
    """With the autoscaler's token a pod could leave its RayCluster, and outlive it."""
    owner = OWNERS[4]
    where = namespace(owner)
    (head,) = fleet.get("pods", "-n", where, "-l", "ray.io/node-type=head")

    def answer(patch: Object, by: str) -> str:
        command = [
            "kubectl",
            f"--as={by}",
            "patch",
            "pod",
            head["metadata"]["name"],
            "-n",
            where,
            "--dry-run=server",
        ]
        done = fleet.run(*command, "-p", json.dumps(patch), check=False)
        return done.stderr

    autoscaler = f"system:serviceaccount:{where}:{owner}"
    answers = {
        what: [answer(patch, autoscaler) for patch in patches] for what, patches in UPDATES.items()
    }
    expected = {what: f"{what} of a berth's pod stays as it was admitted" for what in UPDATES}
    assert {
        what: found
        for what, found in answers.items()
        if not all(expected[what] in refusal for refusal in found)
    } == {}
    # KubeRay and the stack's own identity finish and clean up pods.
    fleet.run("kubectl", "label", "pod", head["metadata"]["name"], "-n", where, "note=admin")


def test_rays_older_api_is_refused(fleet: Project) -> None:
    """Version v1alpha1 lacks fields of a RayCluster, such as the one that turns tokens on."""
    owner = OWNERS[4]
    where = [
        "-n",
        namespace(owner),
        "--type=merge",
        "--dry-run=server",
        "-p",
        '{"metadata":{"annotations":{"a":"b"}}}',
    ]
    for by in ([f"--as={user(owner)}"], []):
        done = fleet.run(
            "kubectl", *by, "patch", "rayclusters.v1alpha1.ray.io", owner, *where, check=False
        )
        assert "would drop fields such as authOptions" in done.stderr


def test_only_the_stack_turns_the_autoscaler_on(fleet: Project, cluster: Object) -> None:
    """KubeRay gives the autoscaler's service account rights on pods."""
    owner = PLAIN
    jobs = ray_objects(cluster, "scaled", {})
    answers = refusals(fleet, namespace(owner), jobs["RayJob"], by=user(owner))
    assert "turn Ray's autoscaler on" in answers["scaled-rayjob"]
    on = {"spec": {"enableInTreeAutoscaling": True}}
    assert "turn Ray's autoscaler on" in patched(fleet, owner, on, user(owner))


@pytest.fixture(scope="module")
def cluster(fleet: Project) -> Object:
    """The RayCluster of a berth, as the API server has it."""
    (found,) = fleet.get("rayclusters", "-n", namespace(OWNERS[4]))
    return found


@pytest.fixture(scope="module")
def refused_ray(fleet: Project, cluster: Object) -> dict[str, str]:
    """Refusals of RayJobs, RayServices and RayCronJobs by an engineer, by name of the object."""
    where = namespace(OWNERS[4])
    me = user(OWNERS[4])
    # Roles of berth do not mention RayCronJobs; the policy holds for whoever may create them.
    fleet.run(
        "kubectl",
        "create",
        "role",
        "cron",
        "--verb=create",
        "--resource=raycronjobs.ray.io",
        "-n",
        where,
    )
    fleet.run(
        "kubectl", "create", "rolebinding", "cron", "--role=cron", f"--user={me}", "-n", where
    )
    objects = list(bad_objects(cluster).values())
    for number, change in enumerate(GOOD_CLUSTERS.values()):
        objects += ray_objects(cluster, f"good-{number}", change).values()

    def counted() -> bool:
        (quota,) = [
            item
            for item in fleet.get("resourcequotas", "-n", where)
            if item["metadata"]["name"] == "berth"
        ]
        kinds = {name for name in quota["status"]["hard"] if name.endswith(".ray.io")}
        return kinds <= set(quota["status"].get("used", {}))

    eventually(counted, "Kubernetes counts the kinds of the new definitions", seconds=120)
    return refusals(fleet, where, *objects, by=me)


@pytest.mark.parametrize("name", BAD, ids=[what for what, _ in BAD.values()])
def test_what_only_the_stack_may_write_is_refused_from_an_engineer(
    refused_ray: dict[str, str], name: str
) -> None:
    answers = {
        kind: refused_ray.get(f"bad-{name}-{kind}", "") for kind in KINDS[name.partition("-")[0]]
    }
    assert {kind: answer for kind, answer in answers.items() if BAD[name][1] not in answer} == {}


@pytest.mark.parametrize("what", GOOD_CLUSTERS)
def test_work_of_an_engineer_is_admitted(refused_ray: dict[str, str], what: str) -> None:
    number = list(GOOD_CLUSTERS).index(what)
    assert {
        name: answer for name, answer in refused_ray.items() if name.startswith(f"good-{number}-")
    } == {}


FURTHER = "only the settings of a berth may give its pods further parts"
"""Rule that refuses again, as a part that is not listed, some of what other rules refuse."""


FIRST = (0, 1)
"""Rules that overlap with no other one; the policies without one of them refuse all else."""


def without_rule(policy: list[Object], number: int) -> list[Object]:
    """A copy of an admission policy without one of its rules, for one namespace of its own."""
    name = f"{policy[0]['metadata']['name']}-{number}"
    definition, bound = copy.deepcopy(policy)
    rules = definition["spec"]["validations"]
    lost = rules[number]["message"]
    gone = [lost] if number in FIRST else [lost, FURTHER]
    rules[:] = [rule for rule in rules if rule["message"] not in gone]
    selected = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    definition["spec"]["matchConstraints"]["namespaceSelector"] = selected
    definition["metadata"]["name"] = bound["metadata"]["name"] = bound["spec"]["policyName"] = name
    return [definition, bound]


@pytest.fixture(scope="module")
def spoiler(fleet: Project) -> Iterator[str]:
    """User with an engineer's rights in the namespaces of spoilt policies."""
    name = user("spoiler")
    metadata = {"name": "spoiler"}
    rules = [
        {"apiGroups": ["ray.io"], "resources": ["rayjobs"], "verbs": ["create"]},
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create"]},
    ]
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": metadata,
        "rules": rules,
    }
    created(fleet, [role, binding_of(role, [user_subject(name)])])
    yield name
    fleet.run("kubectl", "delete", "clusterrole,clusterrolebinding", "spoiler")


def created(fleet: Project, manifests: Sequence[Object]) -> None:
    text = json.dumps({"apiVersion": "v1", "kind": "List", "items": manifests})
    fleet.lab.run(["kubectl", "create", "-f", "-"], stdin=text)


def assert_every_rule_counts(
    fleet: Project, policy: list[Object], objects: Sequence[Object], by: str
) -> None:
    """Assert that a policy refuses all objects, and without one rule admits those that break it."""
    name = policy[0]["metadata"]["name"]
    # Rules that hold at one level only, or for changes, have tests of their own.
    policy = copy.deepcopy(policy)
    rules = policy[0]["spec"]["validations"]
    rules[:] = [
        rule
        for rule in rules
        if not rule["expression"].startswith("variables.rules") and "Kueue" not in rule["message"]
    ]
    messages = [rule["message"] for rule in rules]
    facts = fleet.lab.get("namespace", namespace(PLAIN))["metadata"]["annotations"]
    given: list[Object] = []
    for number in range(len(messages)):
        metadata = {"name": f"{name}-{number}", "annotations": facts}
        given += [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata},
            *without_rule(policy, number),
        ]
    created(fleet, given)

    def refused(number: int) -> dict[str, str]:
        return refusals(fleet, f"{name}-{number}", *objects, by=by)

    # What the first policy admits, the second one refuses with the message of the lost rule.
    names = {item["metadata"]["name"] for item in objects}
    answers: dict[str, str] = {}

    def both_refuse() -> bool:
        answers.update(refused(1) | refused(0))
        return answers.keys() == names and all(
            "denied request" in answer for answer in answers.values()
        )

    def admits(number: int, expected: set[str]) -> bool:
        return names - refused(number).keys() == expected

    eventually(both_refuse, "policies with one lost rule are in force")
    for number, message in enumerate(messages):
        lost = [message] if number in FIRST else [message, FURTHER]
        expected = {what for what in answers if any(words in answers[what] for words in lost)}
        assert any(message in answer for answer in answers.values()), f"nothing breaks: {message}"
        eventually(
            partial(admits, number, expected),
            f"without the rule that {message}, {expected} are admitted",
        )
    for kind in ("namespace", "validatingadmissionpolicy", "validatingadmissionpolicybinding"):
        fleet.run(
            "kubectl",
            "delete",
            "--wait=false",
            kind,
            *(f"{name}-{number}" for number in range(len(messages))),
        )


@pytest.mark.long
def test_every_rule_on_rays_kinds_is_missed_when_it_is_lost(
    fleet: Project, cluster: Object, spoiler: str
) -> None:
    # The policies of berth hold where namespaces have labels of a berth; these have none.
    plain = copy.deepcopy(cluster)
    del plain["spec"]["enableInTreeAutoscaling"]
    for group in (plain["spec"]["headGroupSpec"], *plain["spec"]["workerGroupSpecs"]):
        group["template"]["metadata"].pop("labels")
    jobs = [item for item in bad_objects(plain).values() if item["kind"] == "RayJob"]
    jobs.append(ray_objects(plain, "scaled", {"enableInTreeAutoscaling": True})["RayJob"])
    held = ray_objects(plain, "held", {})["RayJob"]
    jobs.append(over(held, {"metadata": {"finalizers": ["example.com/never"]}}))
    for part in ("labels", "annotations"):
        marked = ray_objects(plain, part, {})["RayJob"]
        jobs.append(over(marked, {"metadata": {part: {"berth/idle": "9h"}}}))
    assert_every_rule_counts(fleet, ray_policy(), jobs, spoiler)


@pytest.mark.long
def test_every_rule_on_pods_is_missed_when_it_is_lost(fleet: Project, spoiler: str) -> None:
    pods = [
        over(good_pod(f"bad-{number}", DEVELOPMENT), {"spec": spec})
        for number, (_, spec) in enumerate(FORBIDDEN_PODS.values())
    ]
    pods += annotated_pods(DEVELOPMENT).values()
    created(fleet, [NVIDIA_RUNTIME])
    assert_every_rule_counts(fleet, pod_policy(), pods, spoiler)
    fleet.run("kubectl", "delete", "runtimeclass", "nvidia")


def patched(fleet: Project, owner: str, patch: Object, by: str, *options: str) -> str:
    """Refusal of a merge patch of a berth's RayCluster in a dry run; empty if it is admitted."""
    where = ["-n", namespace(owner), "--type=merge", "--dry-run=server", "-p", json.dumps(patch)]
    command = ["kubectl", f"--as={by}", "patch", "raycluster", owner, *where, *options]
    done = fleet.run(*command, check=False)
    assert bool(done.returncode) == bool(done.stderr), done.stderr
    return done.stderr


def test_an_engineer_changes_a_raycluster_only_within_the_berth(
    fleet: Project, cluster: Object
) -> None:
    owner = OWNERS[4]

    def wants(change: Object) -> Object:
        return {"spec": complete(over(copy.deepcopy(cluster["spec"]), change))}

    changes = BAD_CLUSTERS | BAD_RESTRICTED
    bad = {what: (words, wants(change)) for what, (words, change) in changes.items()}
    bad |= {what: (words, {"metadata": change}) for what, (words, change) in BAD_METADATA.items()}
    answers = {what: patched(fleet, owner, patch, user(owner)) for what, (_, patch) in bad.items()}
    assert {
        what: answers[what] for what, (words, _) in bad.items() if words not in answers[what]
    } == {}
    good: dict[str, Object] = {what: wants(change) for what, change in GOOD_CLUSTERS.items()}
    good |= {
        "suspend": {"spec": {"suspend": True}},
        "a note": {"metadata": {"annotations": {"note": "mine"}}},
    }
    answers = {what: patched(fleet, owner, patch, user(owner)) for what, patch in good.items()}
    assert {what: answer for what, answer in answers.items() if answer} == {}
    # The stack's own identity may, and Ray's autoscaler may do its work and nothing else.
    admin = "admin"
    autoscaler = f"system:serviceaccount:{namespace(owner)}:{owner}"
    other_pool = bad["workers on another pool"][1]
    fleet.run(
        "kubectl",
        "create",
        "clusterrolebinding",
        "tenants",
        "--clusterrole=cluster-admin",
        f"--user={admin}",
    )
    assert patched(fleet, owner, other_pool, admin) == ""
    fleet.run("kubectl", "delete", "clusterrolebinding", "tenants")
    assert "use other pools" in patched(fleet, owner, other_pool, autoscaler)
    work = wants(
        {"workerGroupSpecs": [{"replicas": 1, "scaleStrategy": {"workersToDelete": ["a-worker"]}}]}
    )
    assert patched(fleet, owner, work, autoscaler) == ""


def test_what_the_settings_give_to_pods_stays_and_nothing_else_comes(fleet: Project) -> None:
    """The pods were admitted, and an edit of the template beside such parts is, too."""
    (cluster,) = fleet.get("rayclusters", "-n", namespace(OWN_PARTS))
    (head,) = fleet.get("pods", "-n", namespace(OWN_PARTS), "-l", "ray.io/node-type=head")
    assert head["metadata"]["annotations"]["example.com/team"] == "research"
    (source,) = head["spec"]["containers"][0]["envFrom"]
    assert source["secretRef"]["name"] == "of-the-settings"

    def answer(template: Object) -> str:
        spec = over(copy.deepcopy(cluster["spec"]), {"headGroupSpec": {"template": template}})
        return patched(fleet, OWN_PARTS, {"spec": spec}, user(OWN_PARTS))

    def of_container(change: Object) -> str:
        return answer({"spec": {"containers": [change]}})

    assert of_container({"image": "example.invalid/another"}) == ""
    of_choice = of_container({"envFrom": [{"secretRef": {"name": "mine"}}]})
    assert "parts: envFrom Secret mine" in of_choice
    changed = answer({"metadata": {"annotations": {"example.com/team": "another"}}})
    assert "parts: annotation example.com/team=another" in changed
    bucket = {"csi": {"volumeAttributes": {"bucketName": "of-another"}}}
    assert "parts: csi gcsfuse.csi.storage.gke.io of-another" in answer(
        {"spec": {"volumes": [bucket]}}
    )


@pytest.mark.parametrize("name", ["berth-keeper", "kueue", "kueue-job-controller"])
def test_nobody_suspends_in_the_name_of_the_keeper_or_of_kueue(fleet: Project, name: str) -> None:
    """Whoever sends a request chooses the name of its field manager."""
    owner = OWNERS[4]
    suspend = {"spec": {"suspend": True}}
    answer = patched(fleet, owner, suspend, user(owner), f"--field-manager={name}")
    assert "may suspend and wake in their own names" in answer
    assert patched(fleet, owner, suspend, user(owner), "--field-manager=kubectl") == ""


def test_the_volume_that_a_pod_asks_for_counts(fleet: Project) -> None:
    """A controller of Kubernetes makes the claim, which the quota binds."""
    where = namespace(OWNERS[1])
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Ti"}}}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    pod = over(good_pod("large", DEVELOPMENT), {"spec": {"volumes": [volume]}})
    fleet.lab.run(["kubectl", "create", "-n", where, "-f", "-"], stdin=json.dumps(pod))

    def refused() -> bool:
        events = fleet.get("events", "-n", where)
        return any("requested: requests.storage=2Ti" in str(event["message"]) for event in events)

    eventually(refused, "the quota refuses the claim")
    assert fleet.get("persistentvolumeclaims", "-n", where) == []
    fleet.run("kubectl", "delete", "pod", "large", "-n", where)


def test_nobody_escapes_the_quota_by_creating_many(fleet: Project) -> None:
    (quota,) = [
        item
        for item in fleet.get("resourcequotas", "-n", namespace(OWNERS[4]))
        if item["metadata"]["name"] == "berth"
    ]
    hard = quota["status"]["hard"]
    assert {
        f"count/{kind}.ray.io" for kind in ("rayjobs", "rayservices", "raycronjobs")
    } <= hard.keys()
    # The API server would refuse the first RayCluster of a cluster if it had to count it.
    assert "count/rayclusters.ray.io" not in hard
    assert hard["count/ingresses.networking.k8s.io"] == "0"
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "disk"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Ti"}}},
    }
    assert "exceeded quota: berth" in refusals(fleet, namespace(OWNERS[4]), claim)["disk"]


def test_no_engineer_takes_more_than_the_settings_give(fleet: Project) -> None:
    pods = [
        dict(over(good_pod(f"bad-{number}", DEVELOPMENT), {"spec": spec}))
        for number, (_, spec) in enumerate(PODS_PAST_LIMITS.values())
    ]
    refused = refusals(fleet, namespace(OWNERS[1]), *pods)
    answers = {
        what: refused.get(f"bad-{number}", "") for number, what in enumerate(PODS_PAST_LIMITS)
    }
    assert {
        what: answers[what]
        for what, (words, _) in PODS_PAST_LIMITS.items()
        if words not in answers[what]
    } == {}
    for kind, words in (
        ("LoadBalancer", "services.loadbalancers=1"),
        ("NodePort", "services.nodeports=1"),
    ):
        service = {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "open"},
            "spec": {
                "type": kind,
                "selector": {"ray.io/node-type": "head"},
                "ports": [{"port": 8265}],
            },
        }
        assert words in refusals(fleet, namespace(OWNERS[1]), service)["open"]


@pytest.mark.parametrize("kind", ["ResourceClaim", "ResourceClaimTemplate"])
def test_no_claim_takes_devices_past_the_quota(fleet: Project, kind: str) -> None:
    """Whoever creates it: pods get their claims from a controller of Kubernetes."""

    def of_kind(number: int, devices: Object) -> Object:
        spec = {"devices": devices} if kind == "ResourceClaim" else {"spec": {"devices": devices}}
        return {
            "apiVersion": "resource.k8s.io/v1",
            "kind": kind,
            "metadata": {"name": f"bad-{number}"},
            "spec": spec,
        }

    claims = [of_kind(number, devices) for number, (_, devices) in enumerate(BAD_CLAIMS.values())]
    answers = refusals(fleet, namespace(OWNERS[1]), *claims)
    # Templates take no devices, so the quota admits all of them.
    expected = {
        what: words
        for what, (words, _) in BAD_CLAIMS.items()
        if "devices=" not in words or kind == "ResourceClaim"
    }
    refused = {what: answers.get(f"bad-{number}", "") for number, what in enumerate(BAD_CLAIMS)}
    assert {what for what, answer in refused.items() if answer} == expected.keys()
    assert {
        what: refused[what]
        for what, words in expected.items()
        if not re.search(words, refused[what])
    } == {}


@dataclass
class Network:
    """Network policies of all berths in the API server, and the expected verdicts on traffic."""

    policies: list[Object]
    cases: list[Case] = field(default_factory=list)


def pairs(labels: Object) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


@pytest.fixture(scope="module")
def network(fleet: Project) -> Network:
    labels = {
        item["metadata"]["name"]: pairs(item["metadata"]["labels"])
        for item in fleet.get("namespaces")
    }
    heads = {
        item["metadata"]["namespace"]: item
        for item in fleet.get("pods", "-A", "-l", "ray.io/node-type=head")
    }
    (worker,) = fleet.workers(OWNERS[0])
    berths = []
    for number, owner in enumerate(OWNERS):
        where = namespace(owner)
        # Others have no worker now; it would have the first one's labels, with their own name.
        own = json.loads(json.dumps(worker["metadata"]["labels"]).replace(OWNERS[0], owner))
        berths.append(
            BerthPods(
                owner,
                Peer(
                    f"{owner}'s head",
                    f"10.4.{number}.2",
                    where,
                    labels[where],
                    pairs(heads[where]["metadata"]["labels"]),
                ),
                Peer(f"{owner}'s worker", f"10.4.{number}.3", where, labels[where], pairs(own)),
            )
        )
    (pod,) = fleet.get("pods", "-n", "kuberay-operator")
    operator = Peer(
        "the operator",
        "10.4.20.2",
        "kuberay-operator",
        labels["kuberay-operator"],
        pairs(pod["metadata"]["labels"]),
    )
    stranger = Peer(
        "a pod of namespace default",
        "10.4.21.2",
        "default",
        labels["default"],
        (("app", "stranger"),),
    )
    network = Network(fleet.get("networkpolicies", "-A"), list(between(berths)))
    assert (
        len({(case.source.namespace, case.target.namespace, case.port) for case in network.cases})
        == 20 * 3
    )
    for berth in berths:
        network.cases += within(berth, operator, stranger, dict(labels["kube-system"]))
    return network


def test_every_berth_is_closed_to_every_other_and_open_to_itself(
    network: Network, judge: Path
) -> None:
    assert wrong(judge, network.policies, network.cases) == []


def test_a_named_cluster_preempts_engineers_workers_and_not_the_reverse(fleet: Project) -> None:
    """The update leaves the engineers' numbers of workers to their autoscalers."""
    (before,) = fleet.workers(OWNERS[0])
    assert before["spec"]["priority"] == -1
    heads = {
        item["metadata"]["uid"] for item in fleet.get("pods", "-A", "-l", "ray.io/node-type=head")
    }
    settings = environment(fleet.lab)
    # All eight GPUs of the only node, of which an engineer's worker has one; that will have none,
    # and is not waited for.
    worker = {"pool": "dev", "cpu": 8, "memory": "64Gi"}
    settings["clusters"] = {"prod": {"workers": 1, "worker": worker, "wait": {"until": "ready"}}}
    settings["defaults"]["wait"]["until"] = "submitted"
    fleet.write(STACK, environment=settings)
    fleet.up(STACK)
    (scaled,) = fleet.get("rayclusters", "-n", namespace(OWNERS[0]))
    assert scaled["spec"]["workerGroupSpecs"][0]["replicas"] == 1
    (cluster,) = fleet.get("rayclusters", "-n", namespace("prod"))
    assert cluster["status"]["state"] == "ready"
    preempted = fleet.get(
        "events", "-n", namespace(OWNERS[0]), "--field-selector", "reason=Preempted"
    )
    assert [item["involvedObject"]["name"] for item in preempted] == [before["metadata"]["name"]]

    def waits() -> bool:
        pods = fleet.workers(OWNERS[0])
        conditions = [entry for pod in pods for entry in pod["status"].get("conditions") or []]
        output = [
            str(entry.get("message")) for entry in conditions if entry["type"] == "PodScheduled"
        ]
        return any("Insufficient nvidia.com/gpu" in text for text in output)

    eventually(waits, "the engineer's worker waits, and preempts nobody")
    assert len(running(fleet.workers("prod"))) == 1
    assert heads <= {
        item["metadata"]["uid"] for item in fleet.get("pods", "-A", "-l", "ray.io/node-type=head")
    }
    # The next update forgets the cluster.
    fleet.run("kubectl", "delete", "namespace", namespace("prod"))
    eventually(
        lambda: len(running(fleet.workers(OWNERS[0]))) == 1, "the engineer's worker runs again"
    )


def arguments_with(words: tuple[bytes, ...]) -> set[str]:
    """Processes of this machine whose arguments have one of the words."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            text = path.read_bytes()
        except OSError:
            continue  # it has ended
        if any(word in text for word in words):
            found.add(text.replace(b"\0", b" ").decode(errors="replace"))
    return found


def files_with(folder: Path, words: tuple[bytes, ...]) -> set[Path]:
    """Files under a folder in which one of the words stands."""
    found = set()
    for path in folder.rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        try:
            text = path.read_bytes()
        except FileNotFoundError:
            continue  # it was there for a moment
        if any(word in text for word in words):
            found.add(path)
    return found


def test_a_token_is_in_no_state_log_plan_argument_bundle_or_kubeconfig(fleet: Project) -> None:
    tokens = [item for item in fleet.get("secrets", "-A") if "auth_token" in item.get("data", {})]
    assert len(tokens) == len([*OWNERS, PLAIN])
    value = f"hf_{secrets.token_hex(16)}"
    texts = [token["data"]["auth_token"].encode() for token in tokens] + [
        base64.b64encode(value.encode())
    ]
    words = (*map(base64.b64decode, texts), *texts)
    assert min(map(len, words)) >= 16

    output: list[str] = []
    seen: set[str] = set()

    def watched(*command: str, text: str = "") -> None:
        """Run a command while the arguments of all processes are watched."""
        with tempfile.TemporaryFile("w+") as stdin:
            stdin.write(text)
            stdin.seek(0)
            process = subprocess.Popen(
                command,
                cwd=fleet.folder,
                env=fleet.lab.env,
                text=True,
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        while True:
            seen.update(arguments_with(words))
            try:
                output.append(process.communicate(timeout=0.1)[0])
            except subprocess.TimeoutExpired:
                continue
            assert process.returncode == 0, output[-1][-4000:]
            return

    settings = environment(fleet.lab)
    settings["engineers"][OWNERS[0]] |= {
        "head": {"cpu": 2, "memory": "2Gi"},
        "secrets": {"HF_TOKEN": {}},
    }
    fleet.write(STACK, environment=settings)
    watched("berth", "secret", "set", OWNERS[0], "HF_TOKEN", text=f"{value}\n")
    watched(
        "pulumi",
        "up",
        "-s",
        STACK,
        "--yes",
        "--refresh",
        "--diff",
        "--show-secrets",
        "--logtostderr",
        "-v=5",
    )
    watched("pulumi", "stack", "export", "-s", STACK, "--show-secrets")
    watched("pulumi", "stack", "output", "-s", STACK, "--json", "--show-secrets")
    watched("berth", "status", "-s", STACK, "--json")
    watched("berth", "diagnose", OWNERS[0], "-s", STACK, "--no-plan", "-o", "diagnosis.md")
    watched("berth", "connect", OWNERS[0], "-s", STACK, "--print")
    assert "## Pods" in (fleet.folder / "diagnosis.md").read_text()
    assert "kubeconfig" in output[3]
    assert seen == set()
    assert not any(word.decode() in text for text in output for word in words)
    # The database of the API server is where the Secret is; that it is found there shows that the
    # search finds it.
    places = {
        path.relative_to(fleet.lab.home.root).parts[0]
        for path in files_with(fleet.lab.home.root, words)
    }
    assert places == {"kwok"}
    assert files_with(fleet.folder, words) == set()
    (head,) = fleet.get("pods", "-n", namespace(OWNERS[0]), "-l", "ray.io/node-type=head")
    assert {
        "name": "HF_TOKEN",
        "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "value"}},
    } in head["spec"]["containers"][0]["env"]
    marker = b"token-of-a-test-" + texts[0][:4]
    with subprocess.Popen(
        [sys.executable, "-c", "input()", marker.decode()], stdin=subprocess.PIPE
    ) as control:
        # A new process has its arguments a moment after its start.
        eventually(lambda: bool(arguments_with((marker,))), "the search finds an argument")
        control.kill()


def test_a_user_writes_the_secrets_that_the_settings_name_and_no_others(fleet: Project) -> None:
    me = [f"--as={user(OWNERS[0])}", "-n", namespace(OWNERS[0])]

    def apply(name: str) -> Done:
        secret = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name},
            "stringData": {"value": "another"},
        }
        (fleet.folder / "secret.json").write_text(json.dumps(secret))
        options = [
            "--server-side",
            "--field-manager=berth-secret-value",
            "--force-conflicts",
            "-f",
            "secret.json",
        ]
        return fleet.run("kubectl", *me, "apply", *options, check=False)

    fleet.run("kubectl", *me, "delete", "secret", "hf-token")
    assert apply("hf-token").returncode == 0
    assert "forbidden" in apply("other").stderr
    assert "forbidden" in fleet.run("kubectl", *me, "get", "secrets", check=False).stderr
