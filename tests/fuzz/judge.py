"""Judge of what berth does with a stack's file: what it may say, and what it may never do."""

import json
import re
import sys
import traceback
import unicodedata
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pulumi
import pytest
import yaml
from typer.testing import CliRunner

from berth.cli.main import app
from berth.components.cluster.api import ClusterError
from berth.components.cluster.kubeconfig import GKE_LOGIN
from berth.components.core.errors import BAD_INPUT, BerthError
from berth.components.gke.field_rules import field_problems
from berth.components.gke.provider_fields import resource_fields
from berth.lab.home import CLONE
from berth.stacks.load import reported
from berth.stacks.load.stack import EngineerStack, Environment, load_stack
from berth.stacks.program import environment as environment_program
from berth.stacks.program.engineer import register_engineer
from tests.fuzz.files import shipped
from tests.unit.recording import Recorder, run
from tests.unit.serving import kubeconfig

KUBECONFIG = kubeconfig("https://10.0.0.1", {"token": "t"})

# Problems of a file as a whole have no line.
_OF_THE_FILE = re.compile(
    r"the stack sets (both|neither)|has no `config:`|is not text|is larger than|is not YAML|there"
    r" is no environment"
)


class FindingError(AssertionError):
    """Outcome that no file may have; `kind` groups findings."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


@dataclass
class Calls:
    """Processes, connections and writes that the interpreter began while it was watched."""

    watched: bool = False

    def __post_init__(self) -> None:
        self.found: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.watched:
            return
        if event in _CALLS or (event == "open" and _writes(arguments)):
            self.found.append(f"{event} {arguments[:2]!r}")

    @contextmanager
    def none(self) -> Iterator[None]:
        """Fail if the block calls anything outside of the interpreter."""
        self.found.clear()
        # The byte code of a first import is Python's write, not berth's.
        writes_no_byte_code = sys.dont_write_bytecode
        sys.dont_write_bytecode = True
        self.watched = True
        try:
            yield
        finally:
            self.watched = False
            sys.dont_write_bytecode = writes_no_byte_code
        if self.found:
            raise FindingError("call", "; ".join(self.found))


_CALLS = frozenset(
    """
    subprocess.Popen os.system os.exec os.posix_spawn os.fork socket.connect socket.getaddrinfo
    os.mkdir os.rename os.remove os.rmdir os.symlink os.link os.truncate shutil.rmtree
    """.split()
)


def _writes(arguments: tuple[Any, ...]) -> bool:
    mode = arguments[1] if len(arguments) > 1 else ""
    return isinstance(mode, str) and bool(set("wax+") & set(mode))


CALLS = Calls()


def project(folder: Path) -> Path:
    """Write a project with the shipped stacks, and a kubeconfig; return its folder."""
    (folder / "stacks").mkdir()
    (folder / "Pulumi.yaml").write_text("name: berth\nruntime: python\nstackConfigDir: stacks\n")
    (folder / "kubeconfig.yaml").write_text(KUBECONFIG)
    (folder / "stacks" / "gallery").symlink_to(CLONE / "stacks" / "gallery")
    for stack, text in shipped().items():
        file_of(folder, stack).write_text(text)
    return folder


def file_of(folder: Path, stack: str) -> Path:
    return folder / "stacks" / f"Pulumi.{stack}.yaml"


def berth(*words: str) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code and its streams.

    Raises:
        FindingError: it ends in a traceback, or does more than read.
    """
    with pytest.MonkeyPatch.context() as patch, CALLS.none():
        patch.setattr(reported, "ClusterApi", _no_cluster)
        done = CliRunner().invoke(app, list(words))
    if done.exception and not isinstance(done.exception, SystemExit):
        text = "".join(traceback.format_exception(done.exception))
        raise FindingError(f"traceback {type(done.exception).__name__}", text)
    return done.exit_code, done.stdout, done.stderr


def _no_cluster(*_: Any) -> None:
    """Stand in for the cluster that is asked about machine types that berth does not know."""
    raise ClusterError("there is none")


def check(
    folder: Path, stack: str, text: str | bytes, accepted: Callable[[str], object] | None = None
) -> bool:
    """Check a stack with other text than its own; return whether it is accepted.

    Args:
        folder: the project's folder.
        stack: the stack.
        text: content of its file.
        accepted: judge of an accepted stack, by its name; by default its program runs.

    Raises:
        FindingError: the outcome is not one that a person can act on.
    """
    path = file_of(folder, stack)
    before = path.read_bytes()
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    try:
        code, _, errors = berth("check", stack)
        if code == 0:
            _renders(stack, accepted or registered)
    finally:
        path.write_bytes(before)
    if code not in (0, BAD_INPUT):
        raise FindingError(f"exit code {code}", errors)
    _check_lines(stack, code, errors)
    return code == 0


def _check_lines(stack: str, code: int, errors: str) -> None:
    """Check that what is printed names its lines, and has no control characters."""
    problems = [
        line for line in errors.splitlines()[1:] if not line.startswith(("  note: ", "  warning: "))
    ]
    if code == BAD_INPUT and not problems:
        raise FindingError("no problem is named", errors)
    for line in problems if code else ():
        if not _names_its_line(line, stack):
            raise FindingError("no line", line)
    if controls := {mark for mark in errors if unicodedata.category(mark) == "Cc" and mark != "\n"}:
        raise FindingError("control characters on the terminal", repr(controls))


def _names_its_line(problem: str, stack: str) -> bool:
    """Whether a problem begins with file and line, or is about the file as a whole."""
    by_line = re.match(rf"  stacks/Pulumi\.{stack}\.yaml:\d+: ", problem)
    return bool(by_line or _OF_THE_FILE.search(problem))


def _renders(stack: str, judge: Callable[[str], object]) -> None:
    try:
        judge(stack)
    except FindingError:
        raise
    except BerthError as error:
        if not re.search(r"kubeconfig|context|manifest", str(error)):
            raise FindingError("accepted, and refused by the program", str(error)) from None
    except Exception as error:  # noqa: BLE001 - any of them is a finding
        text = "".join(traceback.format_exception(error))
        raise FindingError(
            f"accepted, and a traceback of the program {type(error).__name__}", text
        ) from None


def registered(stack: str) -> Recorder:
    """Return what a stack's program registers.

    Raises:
        FindingError: Google's provider would refuse some of it.
    """
    loaded = load_stack(stack)
    references = (
        {"organization/berth/lab": _outputs("lab")} if isinstance(loaded, EngineerStack) else {}
    )

    async def program() -> None:
        if isinstance(loaded, Environment):
            await environment_program.register_environment(loaded)
        else:
            await register_engineer(loaded)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(environment_program, "claims_api", _claims)
        patch.setattr(pulumi.log, "warn", lambda *_: None)
        recorder = run(program, stack, references)
    for registration in recorder.registrations:
        if facts := resource_fields().get(registration.type):
            for path, reason in field_problems(registration.inputs, facts):
                raise FindingError(
                    "refused by Google's provider", f"{registration.name} {path}: {reason}"
                )
    return recorder


async def _claims(*_: Any) -> str:
    return "v1"


def _outputs(stack: str) -> dict[str, Any]:
    loaded = load_stack(stack)
    assert isinstance(loaded, Environment)
    contract = loaded.contract().model_dump(mode="json", by_alias=True, exclude_none=True)
    config = yaml.safe_load(KUBECONFIG) | {"users": [{"name": "it", "user": GKE_LOGIN}]}
    return {"environment": contract, "kubeconfig": json.dumps(config), "clusterId": "id"}
