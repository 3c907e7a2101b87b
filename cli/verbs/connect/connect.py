"""`berth connect`: a berth's dashboard and client on this machine, until Ctrl-C."""

import contextlib
import shlex
from collections.abc import Mapping
from pathlib import Path

from berth.cli.reach.berths import LiveBerth, live_berth
from berth.cli.reach.environment import LiveEnvironment
from berth.cli.reach.head import ready_head
from berth.cli.reach.kubectl import Kubectl, private_folder, write_private
from berth.cli.reach.port_forwarding import CLIENT, DASHBOARD, LOOPBACK, keep_forwarding, local_port
from berth.cli.reach.ray_token import TOKEN_KEY, read_token, token_secret
from berth.cli.shell.console import err, out, print_json, print_result
from berth.components.cluster.api import Object
from berth.components.ray.live import condition_of


def submit_command(dashboard: int, token: Path | None) -> str:
    """Return a command that submits a job, with Ray's token from a file.

    See https://docs.ray.io/en/latest/ray-security/token-auth.html.
    """
    with_token = (
        f"RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH={shlex.quote(str(token))} " if token else ""
    )
    address = f"http://{LOOPBACK}:{dashboard}"
    return (
        f"{with_token}ray job submit --address {address} --working-dir . -- python your_script.py"
    )


def connect(
    name: str | None, stack: str | None, dashboard: int | None, client: int | None, *, as_json: bool
) -> int:
    """Forward ports until Ctrl-C; return the exit code."""
    berth = live_berth(name, stack)
    head = ready_head(berth)
    ports = {DASHBOARD: local_port(dashboard, DASHBOARD), CLIENT: local_port(client, CLIENT)}
    with private_folder() as folder:
        file = None
        if (token := read_token(berth)) is not None:
            write_private(file := folder / "token", token)
        program = Kubectl(berth.environment.kubeconfig, folder)
        with contextlib.suppress(KeyboardInterrupt):
            _forward(berth, head, program, ports, file, as_json=as_json)
    err.print(f"disconnected from {berth.name}")
    return 0


def _forward(
    berth: LiveBerth,
    head: Object,
    program: Kubectl,
    ports: Mapping[int, int],
    token: Path | None,
    *,
    as_json: bool,
) -> None:
    """Forward the dashboard and the client, and print the addresses once."""
    urls = {
        "dashboard": f"http://{LOOPBACK}:{ports[DASHBOARD]}",
        "client": f"ray://{LOOPBACK}:{ports[CLIENT]}",
    }
    submit = submit_command(ports[DASHBOARD], token)
    connected_before = False

    def connected(head: Object) -> None:
        nonlocal connected_before
        if connected_before:
            err.print(f"connected again, to {head['metadata']['name']}")
        elif as_json:
            of_berth = {"name": berth.name, "namespace": berth.namespace}
            print_json(
                {**of_berth, **urls, "tokenFile": str(token) if token else None, "submit": submit}
            )
        else:
            lines = [f"{name:<11}{url}" for name, url in urls.items()]
            if token:
                lines.append(f"token      in {token}, until this ends; the dashboard asks for it")
            out.print("\n".join([*lines, "", "In another terminal:", "", f"  {submit}", ""]))
            err.print(f"connected to {berth.name}; Ctrl-C ends it")
        connected_before = True

    keep_forwarding(berth, head, program, lambda _head: ports, connected)


def _kubeconfig_command(environment: LiveEnvironment) -> str:
    """Return the command that prints a kubeconfig of the environment's cluster with a login."""
    if environment.login is None:
        return (
            "pulumi stack output kubeconfig --show-secrets --stack"
            f" {shlex.quote(environment.stack)}"
        )
    command = ["kubectl", "config", "view", "--raw", "--minify", "--flatten"]
    if environment.login.kubeconfig:
        command += ["--kubeconfig", str(Path(environment.login.kubeconfig).expanduser())]
    if environment.login.context:
        command += ["--context", environment.login.context]
    return shlex.join(command)


def print_commands(
    name: str | None, stack: str | None, dashboard: int | None, client: int | None, *, as_json: bool
) -> int:
    """Print the commands that do the same without berth; return the exit code."""
    berth = live_berth(name, stack)
    secret = token_secret(berth.cluster)
    dashboard = dashboard or DASHBOARD
    lines = [
        "umask 077",
        f"{_kubeconfig_command(berth.environment)} > kubeconfig",
        "export KUBECONFIG=kubeconfig",
    ]
    if secret:
        template = shlex.quote("{{.data." + TOKEN_KEY + " | base64decode}}")
        lines.append(
            f"kubectl get secret {secret} --namespace {berth.namespace} --output"
            f" go-template={template} > token"
        )
    ports = f"{dashboard}:{DASHBOARD} {client or CLIENT}:{CLIENT}"
    lines.append(
        f"kubectl port-forward --namespace {berth.namespace} service/{berth.key[1]}-head-svc"
        f" {ports} &"
    )
    lines.append(submit_command(dashboard, Path("token") if secret else None))
    document = {"name": berth.name, "namespace": berth.namespace, "commands": lines}
    print_result(document, "\n".join(lines), as_json=as_json)
    if condition_of(berth.cluster).state == "suspended":
        err.print(f"note: {berth.name} is suspended; first: berth wake {berth.name}")
    return 0
