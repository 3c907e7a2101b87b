"""Choice of the berth that a command means, and forwarding: with a program in kubectl's place
that forwards nothing.
"""

import io
import json
import os
import socket
import stat
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import yaml

from berth.cli.reach import port_forwarding
from berth.cli.reach.berths import LiveBerth
from berth.cli.reach.environment import LiveEnvironment
from berth.cli.reach.kubectl import Kubectl, private_folder, write_private
from berth.cli.reach.named_berth import berth_and_stack
from berth.cli.reach.ray_token import token_secret
from berth.cli.shell.console import print_json
from berth.cli.verbs.connect.commands import submit_command
from berth.cli.verbs.connect.connection import BerthConnection
from berth.components.cluster.api import ClusterApi
from berth.components.core.errors import BadInputError, BerthError
from tests.unit.cases import table

KUBECTL = """#!{python}
import os, sys, time
folder = {folder!r}
with open(os.path.join(folder, "asked"), "a") as log:
    log.write(" ".join(sys.argv[3:]) + "\\n")
for ports in sys.argv[-2:]:
    local, remote = ports.split(":")
    print(f"Forwarding from 127.0.0.1:{{local}} -> {{remote}}", flush=True)
if "head-1" in " ".join(sys.argv):
    print("error: lost connection to pod", file=sys.stderr)
    sys.exit(1)
time.sleep(60)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / "stacks").mkdir()
    monkeypatch.chdir(tmp_path)
    write(
        tmp_path,
        "lab",
        environment={"engineers": {"bob": {}, "carol": None}, "clusters": {"train": {}}},
    )
    write(tmp_path, "prod", environment={"engineers": {"bob": {}}})
    write(tmp_path, "alice", engineer={"environment": "lab"})
    write(tmp_path, "erins-stack", engineer={"environment": "lab", "name": "erin"})
    (tmp_path / "stacks" / "Pulumi.broken.yaml").write_text("config: [")
    return tmp_path


def write(project: Path, stack: str, **config: Any) -> None:
    text = yaml.safe_dump({"config": {f"berth:{key}": value for key, value in config.items()}})
    (project / "stacks" / f"Pulumi.{stack}.yaml").write_text(text)


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(("name", "stack", "expected"), table(__file__, "connect.yaml"))
def test_which_berth_is_meant(name: str | None, stack: str | None, expected: list[str]) -> None:
    assert list(berth_and_stack(name, stack)) == expected


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize(
    ("name", "stack", "message"),
    [
        (
            "bob",
            None,
            "more than one stack has a berth 'bob'; choose one: --stack lab or --stack prod",
        ),
        ("caro", None, "no stack of stacks/ has a berth 'caro'; did you mean 'carol'?"),
        (None, "lab", "stack lab is an environment; name a berth on it: bob, carol, train"),
        (None, None, "no berth is named\nname one: NAME"),
    ],
)
def test_it_cannot_be_told_which_berth_is_meant(
    name: str | None, stack: str | None, message: str
) -> None:
    with pytest.raises(BadInputError) as caught:
        berth_and_stack(name, stack)
    assert message in str(caught.value)


def test_the_line_that_submits_a_job() -> None:
    assert submit_command(8265, Path("/run/x y/token")) == (
        "RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH='/run/x y/token' ray job submit --address http://127.0.0.1:8265"
        " --working-dir . -- python your_script.py"
    )
    assert submit_command(1234, None).startswith("ray job submit --address http://127.0.0.1:1234 ")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"mode": "token"}, "alice"),
        ({"mode": "token", "secretName": "own"}, "own"),
        ({"mode": "disabled"}, None),
        (None, None),
    ],
)
def test_where_the_token_is(options: Any, expected: str | None) -> None:
    assert (
        token_secret({"metadata": {"name": "alice"}, "spec": {"authOptions": options}}) == expected
    )


def test_a_taken_port_is_avoided_or_refused() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert port_forwarding.local_port(None, port) != port
        with pytest.raises(BadInputError, match=f"port {port} of this machine cannot be used"):
            port_forwarding.local_port(port, 8265)


def test_credentials_are_for_nobody_else_and_do_not_stay() -> None:
    with private_folder() as folder:
        write_private(folder / "token", "canary")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        assert stat.S_IMODE((folder / "token").stat().st_mode) == 0o600
        with pytest.raises(FileExistsError):
            write_private(folder / "token", "again")
    assert not folder.exists()


class Heads:
    """A cluster whose only head is head-2, until its ports have been asked for; then the berth is
    suspended.
    """

    def __init__(self, asked: Path) -> None:
        self.asked = asked

    def list(self, path: str, **_query: str) -> tuple[list[Any], str]:
        suspended = "head-2" in self.asked.read_text()
        if path.endswith("rayclusters"):
            return [{"metadata": {}, "spec": {"suspend": suspended}}], "1"
        return [] if suspended else [head("head-2")], "1"


def head(name: str) -> dict[str, Any]:
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    return {"metadata": {"name": name, "uid": name, "labels": {}}, "spec": {}, "status": ready}


def test_ports_are_forwarded_to_the_next_head(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "bin" / "kubectl"
    program.parent.mkdir()
    program.write_text(KUBECTL.format(python=sys.executable, folder=str(tmp_path)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(port_forwarding, "_LOOK_SECONDS", 0.05)
    monkeypatch.setattr(port_forwarding, "_RETRY_SECONDS", 0.05)
    cluster = {"metadata": {"name": "alice", "namespace": "berth-alice", "labels": {}}, "spec": {}}
    api = cast("ClusterApi", Heads(tmp_path / "asked"))
    berth = LiveBerth("alice", cast("LiveEnvironment", None), api, cluster)
    # kubectl loses head-1 by itself, or a look does; another look loses head-2.
    connection = BerthConnection(berth, {8265: 18265, 10001: 10002}, None, as_json=False)
    with (
        private_folder() as folder,
        pytest.raises(BerthError, match="alice is suspended; bring it back with: berth wake alice"),
    ):
        connection.keep_forwarding(head("head-1"), Kubectl("{}", folder))
    asked = (tmp_path / "asked").read_text().splitlines()
    ports = "18265:8265 10002:10001"
    assert asked == [
        f"port-forward --namespace berth-alice --address 127.0.0.1 pod/{name} {ports}"
        for name in ("head-1", "head-2")
    ]
    report = capsys.readouterr()
    assert report.out.count("ray job submit") == 1
    assert "connected again, to head-2" in report.err


def test_json_is_there_while_the_command_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw))
    print_json({"dashboard": "http://127.0.0.1:8265"})
    assert json.loads(raw.getvalue()) == {"dashboard": "http://127.0.0.1:8265"}
