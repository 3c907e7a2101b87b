"""Parts of the proof on a machine with NVIDIA GPUs; `run` beside it says how to run it."""

import contextlib
import datetime as dt
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from berth.components.programs import cdi
from berth.components.proof.cuda_vector_add import SUCCESS
from berth.components.proof.fabric.evidence import raw_from_log
from berth.components.proof.fabric.job import program_text
from berth.components.sharing.device_plugin import plugin_config
from berth.components.sharing.modes import SharingProfile

HERE = Path(__file__).parent
BUILT = HERE.parents[1] / "build" / "gpu"
SAMPLES = BUILT / "cuda-samples"

SHARED = {"kind": "time-slicing", "replicas": 4}
PROFILES: dict[str, dict[str, Any]] = {
    "whole": {"kind": "none"},
    "four": SHARED,
    "four, renamed": {**SHARED, "renameByDefault": True},
    "four, one each": {**SHARED, "failRequestsGreaterThanOne": True},
}
"""Sharing profiles of the proof, as in the settings."""

OPERATOR = {
    "PASS_DEVICE_SPECS": "true",
    "DEVICE_LIST_STRATEGY": "cdi-annotations,cdi-cri",
    "DEVICE_ID_STRATEGY": "uuid",
    "MIG_STRATEGY": "single",
    "CDI_ANNOTATION_PREFIX": "cdi.k8s.io/",
    "NVIDIA_CDI_HOOK_PATH": "/usr/bin/nvidia-cdi-hook",
    **dict.fromkeys(
        ("GDRCOPY_ENABLED", "GDS_ENABLED", "MOFED_ENABLED"), "false"
    ),  # as in 0.20, which it runs
}
"""Variables of the device plugin under GPU Operator v26.7.0."""

PLUGINS = Path("/var/lib/kubelet/device-plugins")
"""Folder of the plugins' sockets, a constant of the plugin."""
CDI = Path("/var/run/cdi")
"""Folder of the plugin's CDI specification, another constant."""

FILES = (
    "proc/driver/nvidia/gpus/*/information",
    "proc/driver/nvidia/capabilities/**/*",
    "dev/nvidia*",
    "dev/nvidia-caps*/*",
    "usr/bin/nvidia-*",
    "usr/local/nvidia/lib64/lib*.so*",
    "usr/lib*/libcuda.so*",
    "usr/lib/*/libcuda.so*",
)
"""Files of a driver that the CDI program looks for."""

EVERY_OPERATION = re.compile(r"opCount|\d : (?!.* via )")
"""Lines of NCCL's log that repeat for each operation and channel."""

SECONDS = 120
Found = dict[str, Any]


class SkippedError(Exception):
    """Reason why a part cannot run here."""


def need(*things: str | Path) -> None:
    """Skip the part unless these programs and files are there."""
    for thing in things:
        if not (thing.exists() if isinstance(thing, Path) else shutil.which(thing)):
            raise SkippedError(f"{thing} is missing")


def run(*command: str | Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command with these variables added, and return how it ended."""
    return subprocess.run(
        command,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


def output(*command: str | Path, **env: str) -> str:
    """Return the output of a command that has to succeed."""
    ended = run(*command, **env)
    if ended.returncode:
        raise RuntimeError(
            f"{command[0]} ended with {ended.returncode}: {(ended.stdout + ended.stderr)[-2000:]}"
        )
    return ended.stdout


def gpus() -> list[dict[str, str]]:
    """Return the machine's GPUs, as the driver names them."""
    need("nvidia-smi")
    if os.geteuid():
        raise SkippedError("the parts run as root only")
    keys = ("name", "driver_version", "memory.total", "uuid")
    lines = output(
        "nvidia-smi", f"--query-gpu={','.join(keys)}", "--format=csv,noheader"
    ).splitlines()
    return [dict(zip(keys, line.split(", "), strict=True)) for line in lines]


@contextlib.contextmanager
def configured(profile: dict[str, Any]) -> Iterator[tuple[Path, dict[str, str]]]:
    """Yield a folder with a profile's entry of berth's ConfigMap, and the plugin's variables."""
    with tempfile.TemporaryDirectory() as name:
        file = Path(name) / "config.yaml"
        file.write_text(plugin_config(TypeAdapter(SharingProfile).validate_python(profile)))
        yield Path(name), {**OPERATOR, "CONTAINER_DRIVER_ROOT": "/", "CONFIG_FILE": str(file)}


def plugin(_found: Found) -> Found:
    """NVIDIA's device plugin: what it advertises and allocates with berth's settings."""
    program = BUILT / "nvidia-device-plugin"
    need(program)
    if PLUGINS.parent.exists():
        raise SkippedError(f"a kubelet has its folder here: {PLUGINS.parent}")
    try:
        PLUGINS.mkdir(parents=True)
        cases = {name: serve(program, profile) for name, profile in PROFILES.items()}
        written = {
            path.stem.partition("-plugin.")[2]: path
            for path in CDI.glob("k8s.device-plugin.nvidia.com-*.json")
        }
        specifications = {name: json.loads(path.read_text()) for name, path in written.items()}
        for path in written.values():
            path.unlink()
        cases["four, without CDI"] = serve(program, SHARED, DEVICE_LIST_STRATEGY="envvar")
    finally:
        shutil.rmtree(PLUGINS.parent)
    return {"cases": cases, "specifications": specifications}


def serve(program: Path, profile: dict[str, Any], **env: str) -> Found:
    """Run the plugin with a profile, and return what the kubelet learns."""
    from tests.gpu.kubelet import Kubelet  # noqa: PLC0415 - the other parts need no grpc

    with configured(profile) as (folder, variables), Kubelet(folder / "kubelet.sock") as kubelet:
        command = [str(program), f"--kubelet-socket={folder / 'kubelet.sock'}"]
        with (folder / "log").open("w+") as log:
            running = subprocess.Popen(
                command, env={**os.environ, **variables, **env}, stdout=log, stderr=log
            )
            try:
                return kubelet.ask(PLUGINS)
            except Exception as error:  # noqa: BLE001 - told with the log
                raise RuntimeError(
                    f"{error!r}; the plugin's log ends: {(folder / 'log').read_text()[-2000:]}"
                ) from None
            finally:
                running.send_signal(signal.SIGTERM)
                running.wait(SECONDS)


def features(_found: Found) -> Found:
    """GPU feature discovery: labels with berth's settings."""
    program = BUILT / "gpu-feature-discovery"
    need(program)
    flags = ("--oneshot", "--no-timestamp", "--use-node-feature-api=false")
    found = {}
    for name, profile in PROFILES.items():
        with configured(profile) as (folder, variables):
            output(program, *flags, f"--output-file={folder / 'labels'}", **variables)
            lines = (folder / "labels").read_text().splitlines()
            found[name] = dict(sorted(line.split("=", 1) for line in lines))
    return found


def specification(_found: Found) -> Found:
    """berth's CDI program on this machine's files, which are those of a privileged container."""
    program = str(cdi.__file__)
    uuids = ",".join(gpu["uuid"] for gpu in gpus())
    unnamed = run(sys.executable, program, "--print", NVIDIA_VISIBLE_DEVICES="")
    files = sorted(
        path for pattern in FILES for path in Path("/").glob(pattern) if not path.is_dir()
    )
    return {
        "unnamed": {"code": unnamed.returncode, "error": unnamed.stderr},
        "specification": json.loads(
            output(sys.executable, program, "--print", NVIDIA_VISIBLE_DEVICES=uuids)
        ),
        "files": {
            str(path): path.read_text() if path.is_relative_to("/proc") else "" for path in files
        },
        "links": {
            str(path): str(path.readlink())
            for path in Path("/usr/local/nvidia").glob("lib*")
            if path.is_symlink()
        },
    }


def vector_add(found: Found) -> Found:
    """NVIDIA's sample: alone, four times at once, and with nothing but what the CDI file gives."""
    need("nvcc", SAMPLES)
    with tempfile.TemporaryDirectory() as name:
        program = Path(name) / "vectorAdd"
        source = SAMPLES / "Samples" / "0_Introduction" / "vectorAdd" / "vectorAdd.cu"
        output("nvcc", f"-I{SAMPLES / 'Common'}", source, "-o", program)
        together = [
            subprocess.Popen([program], stdout=subprocess.PIPE, text=True) for _ in range(4)
        ]
        printed = {
            "alone": [output(program)],
            "four at once": [each.communicate(timeout=SECONDS)[0] for each in together],
        }
        if given := found.get("cdi", {}).get("specification"):
            script = container(given, program, Path(name) / "root")
            printed["by the CDI file"] = [output("unshare", "--mount", "sh", "-ec", script)]
        if not all(SUCCESS in text for texts in printed.values() for text in texts):
            raise RuntimeError(f"{SUCCESS} is missing: {printed}")
        return {"nvcc": output("nvcc", "--version").splitlines()[-2], **printed}


def container(given: Found, program: Path, root: Path) -> str:
    """Return a script that runs a program among its C libraries and the CDI file's edits."""
    for link in ("lib", "lib64", "bin"):
        (root / "usr" / link).mkdir(parents=True)
        (root / link).symlink_to(f"usr/{link}")
    device = next(device for device in given["devices"] if device["name"] == cdi.ALL)
    edits = (device["containerEdits"], given["containerEdits"])
    nodes = [(node["path"], node["path"]) for edit in edits for node in edit.get("deviceNodes", [])]
    # Of two mounts at one place the last counts, as for the runtimes.
    mounts: dict[str, str] = {}
    for edit in edits:
        mounts |= {mount["containerPath"]: mount["hostPath"] for mount in edit.get("mounts", [])}
    drivers = [source for source in mounts.values() if source.endswith("/libcuda.so.1")]
    _copy_with_libraries(program, drivers, root)
    lines = []
    for target, source in ("/proc", "/proc"), *nodes, *mounts.items():
        place = root / target.lstrip("/")
        lines.append(
            f"mkdir -p {place}"
            if Path(source).is_dir()
            else f"mkdir -p {place.parent}; touch {place}"
        )
        lines.append(f"mount --rbind {source} {place}")
    return "\n".join([*lines, f"exec env -i $(command -v chroot) {root} /{program.name}"])


def _copy_with_libraries(program: Path, drivers: list[str], root: Path) -> None:
    """Copy a program, and the libraries that it and the driver need, below a folder."""
    # The program loads the driver's library by its name, so its own list lacks what that needs.
    words = output("ldd", program, *drivers).split()
    libraries = {word for word in words if word.startswith("/") and word[-1] != ":"}
    copies = {program: root / program.name}
    copies |= {Path(library): root / library.lstrip("/") for library in libraries}
    for path, target in copies.items():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def all_reduce(_found: Found) -> Found:
    """berth's all-reduce, one process for each GPU, on a Ray of its own."""
    if run(sys.executable, "-c", "import ray, torch; assert torch.cuda.is_available()").returncode:
        raise SkippedError(f"{sys.executable} has no Ray, or no torch that sees a GPU")
    count = str(len(gpus()))
    with tempfile.TemporaryDirectory() as name:
        program = Path(name) / "all_reduce.py"
        program.write_text(program_text())
        log = output(
            sys.executable, program, "--workers=1", f"--gpus={count}", f"--seconds={SECONDS - 30}"
        )
    evidence = raw_from_log(log)
    if evidence["problem"]:
        raise RuntimeError(str(evidence["problem"]))
    for log in evidence["logs"]:
        log["nccl_file"] = Path(log["nccl_file"]).name
        log["log"] = "\n".join(
            line for line in log["log"].splitlines() if not EVERY_OPERATION.search(line)
        )
    return evidence


PARTS = {
    "plugin": plugin,
    "features": features,
    "cdi": specification,
    "vector-add": vector_add,
    "all-reduce": all_reduce,
}


def proof() -> Found:
    """Run all parts and return what they found; a part that ends early says why."""
    parts: Found = {}
    for name, part in PARTS.items():
        try:
            gpus()
            parts[name] = part(parts)
        except SkippedError as reason:
            parts[name] = {"skipped": str(reason)}
        except Exception as error:  # noqa: BLE001 - the other parts go on
            parts[name] = {"failed": f"{type(error).__name__}: {error}"}
    with contextlib.suppress(SkippedError):
        return {"date": dt.datetime.now(dt.UTC).date().isoformat(), "gpus": gpus(), "parts": parts}
    return {"gpus": [], "parts": parts}


def build() -> None:
    """Build NVIDIA's programs."""
    BUILT.mkdir(parents=True, exist_ok=True)
    command = [
        "go",
        "build",
        "-trimpath",
        "-buildvcs=false",
        "-ldflags=-s -w",
        "-o",
        f"{BUILT}/",
        "tool",
    ]
    subprocess.run(command, cwd=HERE, env={**os.environ, "CGO_ENABLED": "1"}, check=True)


def main() -> int:
    """Build, or run all parts and print what they found."""
    if sys.argv[1:] == ["build"]:
        build()
        return 0
    found = proof()
    print(json.dumps(found, indent=1))  # noqa: T201 - the document
    return 1 if any("failed" in part for part in found["parts"].values()) else 0


if __name__ == "__main__":
    sys.exit(main())
