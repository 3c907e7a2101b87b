"""`berth connect`: a berth's dashboard and client on this machine, until Ctrl-C."""

import contextlib
import shlex
from dataclasses import dataclass
from pathlib import Path

from berth.cli.reach.berths import Berth, find
from berth.cli.reach.environment import Environment
from berth.cli.reach.head import (
    CLIENT,
    DASHBOARD,
    LOOPBACK,
    TOKEN_KEY,
    keep_forwarding,
    local_port,
    read_token,
    ready_head,
    token_secret,
)
from berth.cli.reach.kubectl import Kubectl, private_folder, write_private
from berth.cli.shell.console import err, out, print_json, print_result
from berth.components.cluster.api import Object
from berth.components.ray.condition import condition_of


@dataclass(frozen=True)
class Addresses:
    """Addresses of a berth on this machine."""

    dashboard: int
    client: int
    token: Path | None
    """File with Ray's token; None for a berth without one."""

    @property
    def submit(self) -> str:
        """A command that submits a job (https://docs.ray.io/en/latest/ray-security/token-auth.html)."""
        token = f"RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH={shlex.quote(str(self.token))} " if self.token else ""
        url = f"http://{LOOPBACK}:{self.dashboard}"
        return f"{token}ray job submit --address {url} --working-dir . -- python your_script.py"


def connect(name: str | None, stack: str | None, dashboard: int | None, client: int | None, *, as_json: bool) -> int:
    """Forward ports until Ctrl-C; return the exit code."""
    berth = find(name, stack)
    head = ready_head(berth)
    ports = {DASHBOARD: local_port(dashboard, DASHBOARD), CLIENT: local_port(client, CLIENT)}
    with private_folder() as folder:
        token = read_token(berth)
        if token is not None:
            write_private(folder / "token", token)
        addresses = Addresses(ports[DASHBOARD], ports[CLIENT], None if token is None else folder / "token")
        program = Kubectl(berth.environment.kubeconfig, folder)
        with contextlib.suppress(KeyboardInterrupt):
            _forward(berth, head, program, addresses, as_json=as_json)
    err.print(f"disconnected from {berth.name}")
    return 0


def _forward(berth: Berth, head: Object, program: Kubectl, addresses: Addresses, *, as_json: bool) -> None:
    """Forward the dashboard and the client, and print the addresses once."""
    ports = {DASHBOARD: addresses.dashboard, CLIENT: addresses.client}
    connected_before = False

    def connected(head: Object) -> None:
        nonlocal connected_before
        if connected_before:
            err.print(f"connected again, to {head['metadata']['name']}")
        else:
            _print_addresses(berth, addresses, as_json=as_json)
        connected_before = True

    keep_forwarding(berth, head, program, lambda _head: ports, connected)


def _print_addresses(berth: Berth, addresses: Addresses, *, as_json: bool) -> None:
    token = str(addresses.token) if addresses.token else None
    urls = {"dashboard": f"http://{LOOPBACK}:{addresses.dashboard}", "client": f"ray://{LOOPBACK}:{addresses.client}"}
    if as_json:
        berths = {"name": berth.name, "namespace": berth.namespace}
        print_json({**berths, **urls, "tokenFile": token, "submit": addresses.submit})
        return
    lines = [f"{name:<11}{url}" for name, url in urls.items()]
    if token:
        lines.append(f"token      in {token}, until this ends; the dashboard asks for it")
    out.print("\n".join([*lines, "", "In another terminal:", "", f"  {addresses.submit}", ""]))
    err.print(f"connected to {berth.name}; Ctrl-C ends it")


def _kubeconfig_command(environment: Environment) -> str:
    """Return the command that prints a kubeconfig of the environment's cluster with a login."""
    if environment.login is None:
        return f"pulumi stack output kubeconfig --show-secrets --stack {shlex.quote(environment.stack)}"
    context = f" --context {shlex.quote(environment.login.context)}" if environment.login.context else ""
    file = shlex.quote(str(Path(environment.login.kubeconfig).expanduser()))
    return f"kubectl config view --raw --minify --flatten --kubeconfig {file}{context}"


def print_commands(
    name: str | None, stack: str | None, dashboard: int | None, client: int | None, *, as_json: bool
) -> int:
    """Print the commands that do the same without berth; return the exit code."""
    berth = find(name, stack)
    secret = token_secret(berth.cluster)
    addresses = Addresses(dashboard or DASHBOARD, client or CLIENT, Path("token") if secret else None)
    lines = ["umask 077", f"{_kubeconfig_command(berth.environment)} > kubeconfig", "export KUBECONFIG=kubeconfig"]
    if secret:
        template = shlex.quote("{{.data." + TOKEN_KEY + " | base64decode}}")
        lines.append(
            f"kubectl get secret {secret} --namespace {berth.namespace} --output go-template={template} > token"
        )
    ports = f"{addresses.dashboard}:{DASHBOARD} {addresses.client}:{CLIENT}"
    lines.append(f"kubectl port-forward --namespace {berth.namespace} service/{berth.key[1]}-head-svc {ports} &")
    lines.append(addresses.submit)
    document = {"name": berth.name, "namespace": berth.namespace, "commands": lines}
    print_result(document, "\n".join(lines), as_json=as_json)
    if condition_of(berth.cluster).state == "suspended":
        err.print(f"note: {berth.name} is suspended; first: berth wake {berth.name}")
    return 0
