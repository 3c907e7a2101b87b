"""Every table of the commands at 60 and 80 columns and in a pipe: whole words, no line too long."""

import ast
import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from rich.console import Console
from rich.text import Text

from berth.cli.reach.fleet_tables import fleet_grids
from berth.cli.reach.homes import HomeDisk, homes_table
from berth.cli.reach.jobs.client import RayJob
from berth.cli.reach.secret_places import SecretPlace
from berth.cli.reach.secret_values import secrets_table
from berth.cli.repository.documents import titles_of_pages
from berth.cli.shell.console import out
from berth.cli.shell.table import NOTHING, Table
from berth.cli.verbs.check import policies_table
from berth.cli.verbs.docs import titles_table
from berth.cli.verbs.engineer.listing import ListedGroup, listed_table
from berth.cli.verbs.gpus.free_gpus import gpu_offers, offers_table
from berth.cli.verbs.jobs.show import jobs_table
from berth.cli.verbs.lab import processes_table
from berth.cli.verbs.status.live_view import Waiting, waiting_table
from berth.cli.verbs.upgrade.parts import PARTS
from berth.cli.verbs.upgrade.plan import versions_table
from berth.cli.verbs.upgrade.supported import PartVersion, judged_versions
from berth.cli.verbs.verify.fabric_proof import checks_table
from berth.cli.verbs.verify.gpu_proof import proofs_table
from berth.components.proof import Check, PoolProof
from berth.lab.report import State
from berth.stacks.policies import registry
from tests.unit.cli.verbs.test_gpus import CONTRACT, NODES
from tests.unit.cli.verbs.test_status_page import a_fleet, a_ray

CLI = Path(__file__).parents[3] / "cli"
NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
LONG = "reinforcement-learning"
CHECKS = [
    Check("gpu-count", "pass", "8 GPUs of type NVIDIA B200 on gke-lab-train-3f2a91bc-x7k2"),
    Check(
        "all_reduce_perf, 2 nodes",
        "fail",
        "busbw 41.2 GB/s at 8 GiB, below the threshold of 180 GB/s; NCCL chose NET/Socket",
    ),
]


def fleet() -> Iterator[Table]:
    found = a_fleet()
    found = replace(found, berths=[*found.berths, a_ray(LONG)])
    return (grid.on_terminal() for grid in fleet_grids(found, NOW))


def offers() -> Iterator[Table]:
    shown = offers_table(gpu_offers(CONTRACT, NODES), "EUR", "env")
    return (part for part in shown.renderables if isinstance(part, Table))


def versions() -> Iterator[Table]:
    known = [PartVersion(key, part.installs, "settings") for key, part in PARTS.items()]
    known.append(PartVersion("nodes", "1.33.4-gke.1350000", "cluster", ("train", "dev")))
    yield versions_table(judged_versions(known, date(2026, 11, 27)))


def jobs() -> Iterator[Table]:
    command = "python -m trainer.main --config configs/pretrain.yaml --steps 100000"
    running = RayJob(
        f"{LONG}-20260131-a1b2",
        submitted=True,
        status="RUNNING",
        entrypoint=command,
        message="",
        error="",
        started=NOW,
        ended=None,
        exit_code=None,
    )
    yield jobs_table([running, replace(running, status="FAILED", ended=NOW, exit_code=137)], NOW)


def listed() -> Iterator[Table]:
    group = ListedGroup(LONG, "lab", "learners", "0..4", 2, "share", "dev")
    yield listed_table([group, ListedGroup("alice", "alice")])


def processes() -> Iterator[Table]:
    state = State(
        "kube-controller-manager", "controllers of Kubernetes", None, 41_234, 1 << 29, (10257,), ""
    )
    problem = "does not answer: Failed to establish a new connection"
    yield processes_table([state, replace(state, name="etcd", problem=problem, ports=(2379, 2380))])


def homes() -> Iterator[Table]:
    home = HomeDisk(
        LONG, "lab", "200Gi", "hyperdisk-balanced", "pvc-1", "2026-01-29T12:00:00Z", in_use=True
    )
    yield homes_table([home, replace(home, name="bob", in_use=False, claim="share-datasets")])


def secrets() -> Iterator[Table]:
    place = SecretPlace("HUGGING_FACE_HUB_TOKEN", "berth-secrets", "HUGGING_FACE_HUB_TOKEN")
    managed = replace(place, secret_manager=f"{LONG}-wandb-api-key")
    yield secrets_table([(place, True), (managed, False)])


def waiting() -> Iterator[Table]:
    reason = "cannot be scheduled: 0/4 nodes are available: 1 Insufficient nvidia.com/gpu"
    yield waiting_table([Waiting(LONG, "worker", 12, reason, "2026-01-31T11:58:00Z")], NOW)


TABLES: Mapping[str, Callable[[], Iterator[Table]]] = {
    "reach/fleet_tables.py": fleet,
    "reach/homes.py": homes,
    "reach/secret_values.py": secrets,
    "verbs/check.py": lambda: iter([policies_table(registry.policies().values())]),
    "verbs/docs.py": lambda: iter([titles_table(titles_of_pages())]),
    "verbs/engineer/listing.py": listed,
    "verbs/gpus/free_gpus.py": offers,
    "verbs/jobs/show.py": jobs,
    "verbs/lab.py": processes,
    "verbs/status/live_view.py": waiting,
    "verbs/upgrade/plan.py": versions,
    "verbs/verify/fabric_proof.py": lambda: iter([checks_table(CHECKS, f"Fabric proof of {LONG}")]),
    "verbs/verify/gpu_proof.py": lambda: iter(
        [proofs_table([PoolProof("train", "nvidia.com/gpu", CHECKS)])]
    ),
}


def drawn(table: Table, width: int, *, terminal: bool = True) -> list[str]:
    text = io.StringIO()
    Console(file=text, width=width, force_terminal=terminal, color_system=None).print(table)
    return text.getvalue().splitlines()


def words(cells: Sequence[str]) -> set[str]:
    return {word for cell in cells for word in cell.split()}


def test_every_table_of_the_commands_is_here() -> None:
    found = {
        str(path.relative_to(CLI))
        for path in CLI.rglob("*.py")
        for call in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "Table"
    }
    assert found == TABLES.keys()
    direct = [path for path in CLI.rglob("*.py") if "rich.table" in path.read_text("utf-8")]
    assert [path.name for path in direct] == ["table.py"]


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("width", [60, 80, out.width])
@pytest.mark.parametrize("module", TABLES)
def test_no_word_is_broken_and_no_line_is_too_long(
    module: str, width: int, *, terminal: bool
) -> None:
    for table in TABLES[module]():
        whole = words(drawn(table, 1000))
        lines = drawn(table, width, terminal=terminal)
        note = next((n for n, line in enumerate(lines) if line.startswith("not shown: ")), None)
        shown = [line for line in lines[:note] if not re.fullmatch("[─ ]*", line)]
        assert words(shown) <= whole
        assert [line for line in lines if len(line) > width] == []


@pytest.mark.parametrize("module", TABLES)
def test_columns_that_are_left_out_are_named_with_the_width_that_shows_them(module: str) -> None:
    for table in TABLES[module]():
        said = " ".join(" ".join(drawn(table, 30)).split())
        note = re.search(r"not shown: (.*) \(a terminal of (\d+) columns or --json shows", said)
        assert note, said
        least = int(note[2])
        assert words([note[1].replace(",", "")]) <= words(drawn(table, least))
        assert "not shown:" not in " ".join(drawn(table, least))
        assert "not shown:" in " ".join(drawn(table, least - 1))


def test_a_column_without_a_value_is_not_shown() -> None:
    table = Table("berth", "expires", "why")
    table.add_row("alice", NOTHING, "")
    table.add_row("bob", NOTHING, Text("waits"))
    assert words(drawn(table, 80)) == {"berth", "why", "alice", "bob", "waits", "─" * 12}
    assert words(drawn(Table("berth", "why"), 80)) >= {"berth", "why"}


def test_the_least_important_columns_go_first_and_the_rest_from_the_right() -> None:
    table = Table("a", "b", "c", "d", hide_first=("b",))
    table.add_row(*(["x" * 10] * 4))
    heads = {width: drawn(table, width)[0].split() for width in (46, 45, 33, 21, 9)}
    assert heads == {
        46: ["a", "b", "c", "d"],
        45: ["a", "c", "d"],
        33: ["a", "c"],
        21: ["a"],
        9: ["a"],
    }


def test_a_pipe_is_told_of_the_variable_that_widens_it() -> None:
    table = Table("a", "b")
    table.add_row("x" * 60, "y" * 60)
    assert (
        drawn(table, 100, terminal=False)[-1] == "not shown: b (COLUMNS=122 or --json shows them)"
    )


def test_sentences_go_through_a_console_which_wraps_them_between_words() -> None:
    """`typer.echo` and `print` leave that to the terminal, which breaks words at its edge."""
    direct = re.compile(r"^\s*(?:typer\.echo|print)\((.*)", re.MULTILINE)
    found = {
        str(path.relative_to(CLI)): direct.findall(path.read_text(encoding="utf-8"))
        for path in CLI.rglob("*.py")
        if "template" not in path.parts
    }
    assert {path: calls for path, calls in found.items() if calls} == {
        "main.py": ['f"berth {installed_version()}")'],
        "verbs/lab.py": ["environment.exports(lab))"],
    }
