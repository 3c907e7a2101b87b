"""Facts that the pages state: every command of berth with its options, every link, and settings
that are valid.
"""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args
from unittest.mock import patch

import pytest
import typer
import yaml
from typer import Context

from berth.cli.main import app
from berth.components.core.merge import merged
from berth.components.hardware.machines import MACHINES, CapacityKind
from berth.components.hardware.quota_names import quotas_taken
from berth.lab.home import CLONE
from berth.stacks.load.stack import load

PAGES = sorted([CLONE / "README.md", CLONE / "images/README.md", *(CLONE / "docs").glob("*.md")])
OF_FOLDERS = [
    CLONE / folder / "README.md" for folder in ("lab/tools", "cli/template", "bench", "chaos")
]
WITH_LINKS = sorted(
    {*PAGES, *CLONE.glob("*.md"), *(CLONE / "docs/project").glob("*.md"), *OF_FOLDERS}
)

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<!`)`([^`]+)`(?!`)")
_LINK = re.compile(r"(?<!!)\[[^]]*\]\(([^)\s]+)\)")
_CELL_BORDER = re.compile(r"(?<!\\)\|")
_OPERATORS = {"&&", "||", ";", "|", "&", "(", ")", ">"}

# Fragments of an environment's settings stand on this one.
ENVIRONMENT = {
    "project": "your-project",
    "zone": "us-central1-b",
    "pools": {
        "cpu": {"machineType": "n2-standard-16", "nodes": 2},
        "dev": {"machineType": "g2-standard-96", "nodes": 2},
    },
    "defaults": {"worker": {"pool": "dev"}},
}


def shown(page: Path) -> str:
    return str(page.relative_to(CLONE))


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def without_blocks(page: Path) -> str:
    return _BLOCK.sub("", text_of(page))


def blocks(page: Path, *languages: str) -> list[str]:
    return [block for language, block in _BLOCK.findall(text_of(page)) if language in languages]


def in_shell(line: str) -> Iterator[list[str]]:
    """The commands of berth in a line of shell, those in `$(…)` too, each as its arguments."""
    for inner in re.findall(r"\$\(([^()]*)\)", line):
        yield from in_shell(inner)
    if "berth" not in line:
        return
    words = shlex.shlex(line, posix=True, punctuation_chars=True)
    words.whitespace_split = True
    command: list[str] = []
    for word in [*words, ";"]:
        if word not in _OPERATORS:
            # What stands before a program's name is for its environment.
            if command or not re.match(r"[A-Z_]+=", word):
                command.append(word)
            continue
        if command and Path(command[0]).name == "berth":
            yield command[1:]
        command = []


def parse(arguments: list[str], *, whole: bool) -> str:
    """Return the problem of a command, "" for none; a part of a line may leave out what
    it must have.
    """
    command: Any = typer.main.get_command(app)
    left = list(arguments)
    while hasattr(command, "commands"):
        if not left:
            return "which verb?" if whole else ""
        name = left.pop(0)
        if name in ("--help", "--version", "--install-completion"):
            return ""
        command = command.get_command(Context(command), name)
        if command is None:
            return f"there is no command {name!r}"
    if "--help" in left:
        return ""
    try:
        with patch("berth.cli.reach.selected_stack.stack_of_the_project", return_value="lab"):
            command.make_context(name, left)
    except typer.TyperException as error:
        problem = error.format_message()
        return "" if problem.startswith("Missing ") and not whole else problem
    return ""


@pytest.mark.parametrize("page", PAGES, ids=shown)
def test_every_command_exists_with_its_options(page: Path) -> None:
    lines = [
        line
        for block in blocks(page, "sh", "console")
        for line in block.replace("\\\n", " ").splitlines()
    ]
    wrong = {
        line: result
        for line in lines
        for item in in_shell(line)
        if (result := parse(item, whole=True))
    }
    for code in _INLINE.findall(without_blocks(page)):
        words = [word.strip("[]") for word in code.partition(" > ")[0].split()]
        if words[0] == "berth" and len(words) > 1 and (output := parse(words[1:], whole=False)):
            wrong[code] = output
    assert wrong == {}


def headings(page: Path) -> set[str]:
    """The anchors that a page has, as GitHub names them."""
    found = re.findall(r"^#+ (.+)$", without_blocks(page), flags=re.MULTILINE)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower() for heading in found]
    return {re.sub(r"[^\w\- ]", "", item).replace(" ", "-") for item in plain}


@pytest.mark.parametrize("page", WITH_LINKS, ids=shown)
def test_every_link_within_the_clone_leads_somewhere(page: Path) -> None:
    wrong = []
    for link in _LINK.findall(without_blocks(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in headings(target)):
            wrong.append(link)
    assert wrong == []


@pytest.mark.parametrize("page", [page for page in PAGES if "config:" in text_of(page)], ids=shown)
def test_the_settings_that_a_page_shows_are_valid(page: Path) -> None:
    for block in blocks(page, "yaml"):
        if not block.startswith("config:"):
            continue
        values = {
            key.removeprefix("berth:"): value
            for key, value in yaml.safe_load(block)["config"].items()
        }
        if "environment" in values:
            values["environment"] = merged(ENVIRONMENT, values["environment"])
        load("page", values, None)


@pytest.mark.parametrize("page", ["README.md", "docs/fabric.md"])
def test_pools_of_a_new_stack_are_shown_with_the_rdma_whose_pools_can_be_deleted(page: str) -> None:
    """Pools with `rdma: managed` may never be gone (github.com/llm-d/llm-d/pull/2379)."""
    shown = re.findall(r"^ +rdma: (\w+)", (CLONE / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert shown == ["networks"]


def test_the_page_names_every_quota_that_doctor_checks_and_no_other() -> None:
    taken = {
        quota.id
        for machine in MACHINES.values()
        for capacity in get_args(CapacityKind)
        for quota in quotas_taken(machine, capacity, local_ssds=1)
    }
    named = re.findall(r"`([A-Z0-9-]+-per-project(?:-region)?)`", text_of(CLONE / "docs/gke.md"))
    assert set(map(quota_of_a_kind, named)) == set(map(quota_of_a_kind, taken))


def quota_of_a_kind(quota: str) -> str:
    """Return a quota's id with X for the GPU or the family of CPUs, of which the page shows one."""
    of_gpus = re.sub(r"NVIDIA-[A-Z0-9-]+-GPUS", "NVIDIA-X-GPUS", quota)
    return re.sub(r"^(?!PREEMPTIBLE)[A-Z0-9]+-CPUS", "X-CPUS", of_gpus)


@pytest.mark.parametrize("page", WITH_LINKS, ids=shown)
def test_each_row_of_a_table_has_as_many_cells_as_its_header(page: Path) -> None:
    header = 0
    wrong = []
    for number, line in enumerate(text_of(page).splitlines(), 1):
        cells = len(_CELL_BORDER.findall(line)) - 1 if line.startswith("|") else 0
        header = header if header and cells else cells
        if cells != header:
            wrong.append(f"{shown(page)}:{number}: {cells} cells under a header of {header}")
    assert wrong == []


CLAIMS = yaml.safe_load((CLONE / "tests/claims.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("page", "claim"), [(page, claim) for page, claims in CLAIMS.items() for claim in claims]
)
def test_a_claim_of_safety_has_its_test(page: str, claim: str) -> None:
    named = [test for test in CLAIMS[page][claim] if not test.startswith("untested")]
    assert named
    for test in named:
        path, _, function = test.partition("::")
        assert f"def {function}(" in (CLONE / path).read_text(encoding="utf-8") or not function, (
            test
        )
