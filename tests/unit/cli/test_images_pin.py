"""`berth images pin`, against a server on loopback that plays a registry by the OCI
distribution specification.
"""

from __future__ import annotations

import base64
import hashlib
import http.server
import json
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from berth.cli.images import pin
from berth.cli.images.login import Login, login_of
from berth.cli.images.reference import parse
from berth.cli.images.registry import Registries, RegistryError
from berth.components.core.errors import FAILED, BadInputError, BerthError
from berth.components.hardware import versions

INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": []}).encode()
DIGEST = f"sha256:{hashlib.sha256(MANIFEST).hexdigest()}"
OTHER = f"sha256:{'0' * 64}"
USER = Login("bob", "word")
IDENTITY = Login(identity_token="refresh")  # noqa: S106 - invented


@dataclass
class Play:
    """A registry, and the server of its tokens.

    Attributes:
        anonymous: whoever asks gets the manifests without a token.
        challenge: scheme that it asks for: Bearer, or Basic.
        digest: digest that it names in a header; "" for none.
        refusals: statuses of the first answers.
        realm: address of the token's server; "" for its own.
    """

    anonymous: bool = False
    challenge: str = "Bearer"
    digest: str = DIGEST
    refusals: list[int] = field(default_factory=list)
    realm: str = ""
    host: str = ""
    asked: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    released: threading.Event = field(default_factory=threading.Event)
    slow: bool = False

    def image(self, name: str = "team/ray:1") -> str:
        return f"{self.host}/{name}"

    def digest_of(self, image: str, login: Login | None = USER, seconds: float = 20) -> str:
        pauses: list[float] = []
        registries = Registries(login=lambda _: login, seconds=seconds, pause=pauses.append)
        digest = registries.digest_of(parse(image))
        assert len(pauses) == self.asked.count("429")
        return digest


@pytest.fixture
def registry() -> Iterator[Play]:  # noqa: C901 - one server
    play = Play()

    class Handler(http.server.BaseHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            """Print nothing."""

        def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
            play.asked.append(str(status))
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name.replace("_", "-"), value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def do_POST(self) -> None:
            form = urllib.parse.parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            play.logins.append(form["refresh_token"][0])
            self.answer(200, json.dumps({"access_token": "good"}).encode())

        def do_GET(self) -> None:
            parts = urllib.parse.urlsplit(self.path)
            if parts.path == "/token":
                query = urllib.parse.parse_qs(parts.query)
                assert (query["service"], query["scope"]) == (["play"], ["repository:team/ray:pull"])
                play.logins.append(self.headers.get("Authorization", ""))
                good = play.logins[-1] in ("", USER.basic)
                self.answer(200 if good else 401, json.dumps({"token": "good"}).encode())
            elif play.slow:
                play.released.wait(60)
            elif play.refusals:
                self.answer(play.refusals.pop(0), Retry_After="7", Location=f"http://{play.host}/elsewhere")
            elif not play.anonymous and self.headers.get("Authorization") not in ("Bearer good", USER.basic):
                realm = play.realm or f"http://{play.host}/token"
                asks = f'realm="{realm}",service="play",scope="repository:team/ray:pull"'
                self.answer(401, WWW_Authenticate=f"{play.challenge} {asks}")
            elif parts.path.removeprefix("/v2/team/ray/manifests/") in ("1", play.digest):
                assert INDEX in self.headers["Accept"]
                named = {"Docker_Content_Digest": play.digest} if play.digest else {}
                self.answer(200, MANIFEST, Content_Type=INDEX, **named)
            else:
                self.answer(404)

        def do_HEAD(self) -> None:
            self.do_GET()

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    play.host = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield play
    play.released.set()
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("login", [None, USER, IDENTITY])
def test_a_token_is_asked_for_once_with_the_users_login(registry: Play, login: Login | None) -> None:
    assert registry.digest_of(registry.image(), login) == DIGEST
    # Challenge, token, HEAD, GET of the manifest by its digest.
    assert registry.asked == ["401", "200", "200", "200"]
    assert registry.logins == [(login.basic or "") if login and login.user else "refresh" if login else ""]


def test_a_registry_may_want_no_token_or_the_login_itself(registry: Play) -> None:
    registry.challenge = "Basic"
    assert registry.digest_of(registry.image()) == DIGEST
    registry.anonymous = True
    assert registry.digest_of(registry.image(), None) == DIGEST


def test_a_digest_that_head_does_not_name_is_computed(registry: Play) -> None:
    registry.digest = ""
    assert registry.digest_of(registry.image()) == DIGEST


def test_a_wrong_digest_is_refused(registry: Play) -> None:
    registry.digest = OTHER
    with pytest.raises(RegistryError, match=f"has digest {OTHER}, and sends a manifest with {DIGEST}"):
        registry.digest_of(registry.image())


def test_a_busy_registry_is_asked_again_as_it_says(registry: Play) -> None:
    registry.refusals = [429, 429]
    assert registry.digest_of(registry.image()) == DIGEST
    registry.refusals = [429] * 9
    registry.asked.clear()
    with pytest.raises(RegistryError, match="too many requests"):
        Registries(login=lambda _: None, pause=lambda _: None).digest_of(parse(registry.image()))


@pytest.mark.parametrize(
    ("tag", "refusals", "login", "message"),
    [
        ("team/ray:2", [], USER, "has no image"),
        ("team/ray:1", [403], USER, "does not let you read"),
        ("team/ray:1", [], Login("bob", "wrong"), "gives no token"),
        ("team/ray:1", [500], USER, "HTTP status 500"),
        ("team/ray:1", [307], USER, "HTTP status 307"),
    ],
)
def test_each_refusal_names_its_cause(
    registry: Play, tag: str, refusals: list[int], login: Login, message: str
) -> None:
    registry.refusals = refusals
    with pytest.raises(RegistryError, match=message):
        registry.digest_of(registry.image(tag), login)


def test_a_slow_registry_does_not_hold_up_for_ever(registry: Play) -> None:
    registry.slow = True
    with pytest.raises(RegistryError, match="does not answer: "):
        registry.digest_of(registry.image(), seconds=0.05)


def test_a_login_goes_to_no_server_without_tls(registry: Play) -> None:
    registry.realm = "http://tokens.example.com/token"
    with pytest.raises(RegistryError, match="asks for a login in a way that berth does not know"):
        registry.digest_of(registry.image())


@pytest.mark.parametrize(
    ("text", "server", "repository", "tag"),
    [
        ("python:3.12-slim", "https://registry-1.docker.io", "library/python", "3.12-slim"),
        ("rayproject/ray", "https://registry-1.docker.io", "rayproject/ray", "latest"),
        ("gcr.example.com/a/b:1", "https://gcr.example.com", "a/b", "1"),
        ("localhost:5000/a:1", "http://localhost:5000", "a", "1"),
        (f"gcr.example.com/a:1@{OTHER}", "https://gcr.example.com", "a", "1"),
    ],
)
def test_references(text: str, server: str, repository: str, tag: str) -> None:
    found = parse(text)
    assert (found.server, found.repository, found.tag) == (server, repository, tag)
    assert found.pinned(DIGEST) == f"{text.partition('@')[0]}@{DIGEST}"


@pytest.mark.parametrize("text", ["Foo Bar:::", "", "a@sha256:1", "a:@", "a:b:c", "../a", "a//b"])
def test_what_is_no_reference(text: str) -> None:
    with pytest.raises(BadInputError, match="is not an image"):
        parse(text)


def test_logins_are_those_of_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    environment = {"DOCKER_CONFIG": str(tmp_path)}
    assert login_of("a.example.com", environment) is None
    helper = tmp_path / "docker-credential-play"
    helper.write_text(
        '#!/bin/sh\nread server\ncase "$server" in\n'
        'token*) echo \'{"Username": "<token>", "Secret": "refresh"}\' ;;\n'
        'none*) echo "credentials not found in native keychain"; exit 1 ;;\n'
        'broken*) echo "no account" >&2; exit 1 ;;\n'
        '*) echo "{\\"Username\\": \\"oauth2accesstoken\\", \\"Secret\\": \\"of $server\\"}" ;;\nesac\n'
    )
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    auths = {
        "a.example.com": {"auth": base64.b64encode(b"bob:word").decode()},
        "i.example.com": {"identitytoken": "refresh"},
    }
    helpers = dict.fromkeys(("us.example.com", "token.example.com", "none.example.com", "broken.example.com"), "play")
    helpers["lost.example.com"] = "missing"
    (tmp_path / "config.json").write_text(json.dumps({"auths": auths, "credHelpers": helpers}))
    found = {name: login_of(f"{name}.example.com", environment) for name in ("a", "i", "us", "token", "none", "nobody")}
    assert found == {
        "a": USER,
        "i": IDENTITY,
        "us": Login("oauth2accesstoken", "of us.example.com"),
        "token": IDENTITY,
        "none": None,
        "nobody": None,
    }
    with pytest.raises(BerthError, match=r"has no login for broken\.example\.com: no account"):
        login_of("broken.example.com", environment)
    with pytest.raises(BerthError, match=r"docker-credential-missing for lost\.example\.com, which is not on PATH"):
        login_of("lost.example.com", environment)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(BerthError, match="cannot be read"):
        login_of("a.example.com", environment)
    assert "word" not in repr(USER)


SETTINGS = """\
# the team's
config:
  berth:environment:
    zone: us-central1-b # here
    pools:
      cpu: {{machineType: n2-standard-16}}
      pair: {{machineType: a4-highgpu-8g, rdma: networks}}
    operators:
      gib: # privileged
        image: {image}   # Google's
    defaults:
      image: "{image}"
    engineers:
      alice: {{image: {image}, workers: 1}}
      bob:
        env: {{image: not one}}
      carol: {{image: {pinned}}}
"""


@pytest.fixture
def file(registry: Play, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "Pulumi.yaml").write_text("name: berth\n")
    (tmp_path / "stacks").mkdir()
    path = tmp_path / "stacks" / "Pulumi.prod.yaml"
    path.write_text(SETTINGS.format(image=registry.image(), pinned=f"{registry.image()}@{OTHER}"))
    monkeypatch.chdir(tmp_path)
    return path


def run(*, update: bool = False, dry_run: bool = False) -> int:
    return pin.pin("prod", update=update, dry_run=dry_run, as_json=True, registries=Registries(login=lambda _: USER))


def test_digests_are_written_and_nothing_else_changes(
    registry: Play, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, image = file.read_text(), registry.image()
    assert run(dry_run=True) == 0
    assert file.read_text() == before
    assert not json.loads(capsys.readouterr().out)["changed"]
    assert run() == 0
    settings = ["operators.gib.image", "defaults.image", "engineers.alice.image", "engineers.carol.image"]
    report = json.loads(capsys.readouterr().out)
    assert [found["setting"] for found in report["images"]] == [f"environment.{name}" for name in settings]
    assert report["changed"]
    pinned = f"{image}@{DIGEST}"
    after = before.replace(f'"{image}"', image).replace(f"{image},", f"{pinned},").replace(f"{image}\n", f"{pinned}\n")
    assert file.read_text() == after.replace(f"{image}   #", f"{pinned}   #")
    assert f"{image}@{OTHER}" in file.read_text(), "a digest stays"
    registry.asked.clear()
    assert run() == 0
    assert registry.asked == [], "the second run has nothing to ask"
    assert run(update=True) == 0
    assert OTHER not in file.read_text()


def test_nothing_is_written_where_one_image_has_no_answer(
    registry: Play, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = file.read_text().replace(
        "alice: {image: ", f"dave: {{image: {registry.image('team/gone:1')}}}\n      alice: {{image: "
    )
    file.write_text(text)
    assert run() == FAILED
    captured = capsys.readouterr()
    assert f"environment.engineers.dave.image: {registry.host} has no image" in captured.err
    assert "nothing is written" in captured.err
    assert file.read_text() == text


def test_defaults_that_the_stack_uses_are_pinned_too() -> None:
    environment = {"engineers": {"bob": None}, "pools": {"pair": {"rdma": "networks"}}}
    assert pin.images_of({"environment": environment}) == {
        ("environment", "defaults", "image"): versions.RAY_IMAGE,
        ("environment", "operators", "gib", "image"): versions.GIB_IMAGE,
    }
    assert pin.images_of({"environment": {"pools": {"cpu": {}}}}) == {}
    present = {"pools": {"pair": {"rdma": "networks"}}, "operators": {"gib": {"source": "present"}}}
    assert pin.images_of({"environment": present}) == {}
    assert pin.images_of({"engineer": {"environment": "env"}}) == {}
