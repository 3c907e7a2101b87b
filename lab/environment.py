"""Environment variables under which a shell, the engine and the lab's own processes use one lab."""

import json
import os
import shlex
import ssl
import sys
from pathlib import Path

from berth.components.core import whole_file
from berth.components.hardware.versions import CHART_MIRROR
from berth.lab import controlplane
from berth.lab.controlplane import ControlPlane
from berth.lab.google_api import addresses
from berth.lab.home import CLONE, ENVIRONMENT_VARIABLE, LabHome
from berth.stacks.files.passphrase import PUBLIC

AUTHORITIES = "SSL_CERT_FILE"
"""Variable by which OpenSSL and Go know whose certificates to trust."""


def chart_repository(plane: ControlPlane) -> str:
    """Return the address of a lab's chart repository."""
    return f"http://127.0.0.1:{plane.ports[controlplane.CHARTS_PORT]}"


def _programs(home: LabHome) -> list[str]:
    """Return the folders of the lab's programs, and of this Python's."""
    return [str(home.bin.absolute()), str(Path(sys.executable).parent)]


def variables(home: LabHome) -> dict[str, str]:
    """Return the variables under which plain `pulumi`, `kubectl` and `helm` work on the lab."""
    folders = _programs(home)
    folders += [folder for folder in os.environ.get("PATH", os.defpath).split(os.pathsep) if folder]
    root = home.root.absolute()
    plane = controlplane.load(home)
    google = addresses.variables(home, plane.ports[controlplane.GOOGLE_PORT]) if plane else {}
    charts = {CHART_MIRROR: chart_repository(plane)} if plane else {}
    return {
        "PATH": os.pathsep.join(dict.fromkeys(folders)),
        ENVIRONMENT_VARIABLE: str(root),
        "KUBECONFIG": str(home.kubeconfig.absolute()),
        "PULUMI_HOME": str(home.pulumi_home.absolute()),
        # An engine that is killed while it writes a file of metadata leaves it empty, and then no
        # engine can read the state (gocloud.dev, blob/fileblob/attrs.go, setAttrs).
        "PULUMI_BACKEND_URL": f"{home.backend.absolute().as_uri()}?metadata=skip",
        "PULUMI_CONFIG_PASSPHRASE": PUBLIC,
        "PULUMI_SKIP_UPDATE_CHECK": "true",
        **({AUTHORITIES: str(_authorities(home))} if _authorities(home).is_file() else {}),
        # Helm's own files stay in the lab: no repository of the user's is read or changed.
        **{
            f"HELM_{kind.upper()}_HOME": str(root / "helm" / kind)
            for kind in ("cache", "config", "data")
        },
        **google,
        **charts,
    }


def _authorities(home: LabHome) -> Path:
    return home.root.absolute() / "authorities.pem"


def _trust(home: LabHome) -> None:
    """Write the authorities that programs on the lab trust: everyone's, and the lab's own.

    GKE's DNS name of a control plane has a certificate that everyone trusts, so kubeconfigs with it
    name no authority.
    """
    own = str(_authorities(home))
    others = [os.environ.get(AUTHORITIES, ""), ssl.get_default_verify_paths().openssl_cafile]
    known = next(
        (Path(path) for path in others if path and path != own and Path(path).is_file()), None
    )
    plane = controlplane.load(home)
    texts = [known.read_bytes() if known else b"", plane.certificate("ca.crt") if plane else b""]
    whole_file.replace_file(_authorities(home), b"\n".join(texts).decode())


def announce(home: LabHome) -> None:
    """Write the variables of a lab that is up, for every `berth` in its folder."""
    _trust(home)
    found = variables(home) | {"PATH": os.pathsep.join(_programs(home))}
    whole_file.replace_file(home.environment, json.dumps(found, indent=1), mode=0o600)


def complete(home: LabHome) -> dict[str, str]:
    """Return this process's environment with the lab's variables in it, for starting a program."""
    environment = {
        key: value for key, value in os.environ.items() if key != "PULUMI_CONFIG_PASSPHRASE_FILE"
    }
    python_path = [str(CLONE), *filter(None, [environment.get("PYTHONPATH")])]
    return (
        environment | variables(home) | {"PYTHONPATH": os.pathsep.join(dict.fromkeys(python_path))}
    )


def exports(home: LabHome) -> str:
    """Return lines for a POSIX shell to evaluate."""
    lines = [f"export {name}={shlex.quote(value)}" for name, value in variables(home).items()]
    return "\n".join([*lines, "unset PULUMI_CONFIG_PASSPHRASE_FILE"])
