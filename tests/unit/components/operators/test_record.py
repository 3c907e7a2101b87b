"""Helm's record of a release: what the repair writes, deletes and leaves alone."""

import asyncio
import base64
import datetime as dt
import gzip
import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi
import pytest

from berth.components.cluster.api import ClusterError, ConflictError
from berth.components.operators import repair
from berth.components.operators.orphaned_plugins import orphaned_plugins
from berth.components.operators.record import failed_payload, release_description
from berth.components.operators.repair import Repair, RepairError

PROVIDER = "pulumi-kubernetes"
REPAIRED = "repairs revision 2, which was left pending-upgrade"


def secret(
    number: int,
    status: str,
    *,
    manager: str = PROVIDER,
    left: str = "",
    text: str = "",
    a: float = 1.5,
    begun: dt.datetime | None = None,
) -> dict[str, Any]:
    info = {"status": status, "notes": "ü"} | ({"description": text} if text else {})
    release = {"name": "r", "version": number, "info": info, "config": {"a": a}}
    packed = base64.b64encode(gzip.compress(json.dumps(release).encode()))
    return {
        "metadata": {
            "name": f"sh.helm.release.v1.r.v{number}",
            "uid": f"uid-{number}",
            "resourceVersion": "7",
            "creationTimestamp": (begun or dt.datetime.now(dt.UTC)).isoformat(),
            "labels": {"owner": "helm", "name": "r", "status": status, "version": str(number)},
            "annotations": {"berth/left": left} if left else {},
            "managedFields": [{"manager": manager}],
        },
        "data": {"release": base64.b64encode(packed).decode()},
    }


class Cluster:
    """Cluster with the Secrets of one release."""

    def __init__(self, *secrets: dict[str, Any], answers: bool = True) -> None:
        self.secrets = {
            f"/api/v1/namespaces/n/secrets/{item['metadata']['name']}": item for item in secrets
        }
        self.answers = answers
        self.changes: dict[str, Any] = {}
        self.deleted: list[str] = []

    def metadata(self, path: str, **query: str) -> list[dict[str, Any]]:
        assert (path, query) == (
            "/api/v1/namespaces/n/secrets",
            {"labelSelector": "owner=helm,name=r"},
        )
        if not self.answers:
            raise ClusterError("no answer")
        return [{"metadata": item["metadata"]} for item in self.secrets.values()]

    def get(self, path: str) -> dict[str, Any]:
        return self.secrets[path]

    def patch(self, path: str, change: dict[str, Any], manager: str) -> None:
        assert manager == "berth-repair"
        self.changes[path.rsplit("/", 1)[1]] = change

    def delete(self, path: str, uid: str) -> None:
        self.deleted.append(f"{path.rsplit('/', 1)[1]} {uid}")


def run(
    monkeypatch: pytest.MonkeyPatch,
    cluster: Cluster,
    old: dict[str, Any] | None,
    *,
    preview: bool = False,
    plugins: Callable[[], list[int]] = list,
) -> list[str]:
    """Run the hook; return the warnings."""
    warnings: list[str] = []
    hooks: list[Any] = []
    monkeypatch.setattr(repair, "orphaned_plugins", plugins)
    monkeypatch.setattr(repair, "_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(repair, "ClusterApi", lambda *_, **__: cluster)
    monkeypatch.setattr(
        pulumi, "ResourceHook", lambda _name, function, _options: hooks.append(function)
    )
    monkeypatch.setattr(pulumi.log, "warn", lambda text, _resource: warnings.append(text))
    monkeypatch.setattr(pulumi.runtime, "is_dry_run", lambda: preview)

    async def hooked() -> None:
        Repair(
            "r", "n", "kubeconfig", pulumi.ComponentResource.__new__(pulumi.ComponentResource), 300
        ).hook()
        await hooks[0](pulumi.ResourceHookArgs("urn", "id", "name", "type", old_inputs=old))

    asyncio.run(hooked())
    return warnings


def test_a_payload_has_failed_and_keeps_the_rest() -> None:
    payload = failed_payload(secret(2, "pending-upgrade")["data"]["release"], "pending-upgrade")
    release = json.loads(gzip.decompress(base64.b64decode(base64.b64decode(payload))))
    assert release == {
        "name": "r",
        "version": 2,
        "info": {
            "status": "failed",
            "description": "left pending-upgrade by an update that was killed",
            "notes": "ü",
        },
        "config": {"a": 1.5},
    }


def test_an_update_marks_a_pending_revision_as_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(secret(10, "pending-upgrade"), secret(9, "deployed"))
    (warning,) = run(monkeypatch, cluster, {})
    assert (
        "release r in namespace n: an update was killed at revision 10, which it left"
        " pending-upgrade" in warning
    )
    (change,) = cluster.changes.values()
    assert change["metadata"] == {
        "resourceVersion": "7",
        "labels": {"status": "failed"},
        "annotations": {"berth/left": "pending-upgrade"},
    }
    assert not cluster.deleted


@pytest.mark.parametrize("status", ["deployed", "failed"])
def test_an_update_leaves_a_settled_release_alone(
    monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    cluster = Cluster(secret(1, status))
    assert run(monkeypatch, cluster, {}) == []
    assert not cluster.changes


@pytest.mark.parametrize("status", ["pending-install", "deployed", "failed"])
def test_a_release_that_the_state_lacks_is_adopted(
    monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    cluster = Cluster(secret(1, "superseded"), secret(2, status))
    (warning,) = run(monkeypatch, cluster, None)
    assert f"was on the cluster ({status}) and not in the state of this stack" in warning
    assert cluster.deleted == ["sh.helm.release.v1.r.v1 uid-1", "sh.helm.release.v1.r.v2 uid-2"]


def test_a_preview_says_what_it_adopts_and_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(secret(1, "deployed"))
    (warning,) = run(monkeypatch, cluster, None, preview=True)
    assert "the update takes it over" in warning
    pending = Cluster(secret(2, "pending-upgrade"))
    run(monkeypatch, pending, {}, preview=True)
    assert not (cluster.deleted)
    assert not (cluster.changes)
    assert not (pending.changes)
    assert run(monkeypatch, Cluster(answers=False), None, preview=True) == []


def test_a_helm_that_may_still_run_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(secret(1, "deployed"), secret(2, "pending-upgrade", manager="helm"))
    states: tuple[dict[str, Any] | None, ...] = ({}, None)
    for old in states:
        with pytest.raises(RepairError, match="pending-upgrade by another program than Pulumi"):
            run(monkeypatch, cluster, old)
    assert not (cluster.deleted)
    assert not (cluster.changes)


def test_an_update_waits_for_the_plugin_of_a_killed_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """The plugin writes the record while the update waits for it, and then the process goes on."""
    cluster = Cluster(secret(1, "superseded"), secret(2, "pending-upgrade"))
    said = list[str]()

    def done(text: str, *_: object, **__: object) -> None:
        said.append(text)
        cluster.secrets = Cluster(secret(1, "superseded"), secret(2, "deployed")).secrets

    monkeypatch.setattr(pulumi.log, "info", done)
    assert run(monkeypatch, cluster, {}, plugins=lambda: [4711]) == []
    assert not cluster.changes
    assert (
        "pending-upgrade, and the Kubernetes plugin of a killed update may still be at work"
        in said[0]
    )
    # In the end it has ended without a word.
    left = Cluster(secret(2, "pending-upgrade"))
    pids = [[4711], [4711], []]
    monkeypatch.setattr(pulumi.log, "info", lambda *_, **__: None)
    assert (
        "which it left pending-upgrade"
        in run(monkeypatch, left, {}, plugins=lambda: pids.pop(0))[0]
    )
    assert not pids


def test_a_record_that_changes_meanwhile_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(secret(1, "superseded"), secret(2, "pending-upgrade"))

    def patch(*_: object) -> None:
        cluster.secrets = Cluster(secret(1, "superseded"), secret(2, "deployed")).secrets
        raise ConflictError(409, {})

    monkeypatch.setattr(cluster, "patch", patch)
    assert run(monkeypatch, cluster, {}) == []


def test_a_record_that_never_rests_ends_the_update(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster(secret(1, "superseded"), secret(2, "pending-upgrade"))
    attempts: list[int] = []

    def patch(*_: object) -> None:
        attempts.append(1)
        raise ConflictError(409, {})

    monkeypatch.setattr(cluster, "patch", patch)
    with pytest.raises(RepairError, match="release r in namespace n changed 5 times") as raised:
        run(monkeypatch, cluster, {})
    assert len(attempts) == 5
    assert raised.value.remedy == (
        "wait until nobody else works on the release (helm -n n history r), and run the update"
        " again"
    )


def test_an_update_waits_no_longer_than_helm_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plugin that stays without its engine keeps no update from what others have left."""
    old = Cluster(
        secret(2, "pending-upgrade", begun=dt.datetime.now(dt.UTC) - dt.timedelta(seconds=400))
    )
    assert "which it left pending-upgrade" in run(monkeypatch, old, {}, plugins=lambda: [4711])[0]
    young = Cluster(secret(2, "pending-upgrade"))
    assert run(monkeypatch, young, {}, preview=True, plugins=lambda: [4711]) == []


def test_a_plugin_without_its_engine_is_an_orphan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / "bin/pulumi"
    plugin = tmp_path / "plugins/pulumi-resource-kubernetes"
    plugin.parent.mkdir()
    engine.parent.mkdir()
    plugin.symlink_to("/bin/sleep")
    engine.write_text('#!/bin/sh\n"$@" & echo $!; wait\n')
    engine.chmod(0o755)
    with subprocess.Popen([engine, plugin, "60"], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        try:
            assert pid not in orphaned_plugins()
            process.kill()
            process.wait()
            assert pid in orphaned_plugins()
            monkeypatch.chdir(tmp_path)
            assert pid not in orphaned_plugins(), "it is another project's"
        finally:
            os.kill(pid, signal.SIGKILL)


def test_an_update_fails_where_the_record_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RepairError, match="release r in namespace n cannot be read: no answer"):
        run(monkeypatch, Cluster(answers=False), {})


@pytest.mark.parametrize(
    ("secrets", "text"),
    [
        ([], None),
        ([secret(1, "deployed")], None),
        ([secret(1, "pending-install")], None),
        ([secret(1, "deployed"), secret(2, "failed")], None),
        ([secret(1, "deployed"), secret(2, "pending-upgrade")], REPAIRED),
        ([secret(1, "superseded"), secret(2, "failed", left="pending-upgrade")], REPAIRED),
        (
            [
                secret(1, "superseded"),
                secret(2, "superseded"),
                secret(3, "deployed", text=REPAIRED),
            ],
            REPAIRED,
        ),
        ([secret(2, "superseded"), secret(3, "deployed", text="Rollback to 1")], None),
        # The plugin of a killed engine has deployed values that the settings take back.
        ([secret(1, "superseded"), secret(2, "deployed", a=2)], "replaces revision 2"),
        (
            [secret(2, "superseded", a=2), secret(3, "deployed", text="replaces revision 2")],
            "replaces revision 2",
        ),
        # Values that no revision has are an edit of the settings, which the state knows.
        ([secret(1, "superseded", a=3), secret(2, "deployed", a=2)], None),
    ],
)
def test_the_description_of_a_repaired_release_stays(
    secrets: list[dict[str, Any]], text: str | None
) -> None:
    assert release_description(Cluster(*secrets), "n", "r", {"a": 1.5}) == text  # type: ignore[arg-type]
