"""Parts of the benchmark: what each measures, for a number of engineers."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench import bucket, peers, watching
from bench.bars import BASE, STATE
from bench.fleet import ENV, Bench, Object, engineers, err
from bench.measured import Measured

ROUNDS = 3
"""Repetitions of short commands; the median counts."""

_UP = ("pulumi", "up", "--yes", "--skip-preview", "-s")
_BERTH = ("berth", "--yes", "--allow-destroy")
_DESTROY = ("pulumi", "destroy", "--yes", "--skip-preview", "-s")

_LARGEST_BY_PULUMI = 100
"""Largest list that plain `pulumi up` brings up too: its time grows with the square of the list."""


def environment(bench: Bench) -> None:
    """Environment with a list of engineers, by `berth up`; plain Pulumi and the floor beside it."""
    bench.init(ENV)
    # The first update of a cluster creates what a destroy leaves, such as definitions of kinds.
    bench.write(engineers(bench.size))
    bench.do(*_UP, ENV)
    bench.do(*_DESTROY, ENV)
    _listed(bench, *_BERTH)
    if bench.size <= _LARGEST_BY_PULUMI:
        _listed(bench, "pulumi", "--yes", where="same program: ")
    objects = _only_operators(bench)
    peers.floor(bench, objects, ENV)
    peers.helm(bench, objects)
    peers.plain_pulumi(bench, objects)


def remote(bench: Bench) -> None:
    """The same environment with its state in a bucket that answers after 100 ms."""
    bench.init(ENV)
    _listed(bench, *_BERTH, where="file: ")
    with bucket.served() as state:
        # The lab's passphrase, which everybody knows, is for states in the lab.
        (bench.project.folder / "stacks" / f"Pulumi.{ENV}.yaml").unlink()
        own = {"PULUMI_BACKEND_URL": state.url, "PULUMI_CONFIG_PASSPHRASE": "bench"}
        bench.env = bench.env | dict(state.environment) | own
        bench.init(ENV)
        _listed(bench, *_BERTH, where="bucket: ")
        bench.run.facts["calls to the bucket"] = state.calls


def short(bench: Bench) -> None:
    """Small environment beside an empty program, which CI compares with the last release."""
    names = engineers(bench.size + 1)
    up = (*_UP, ENV)
    bench.timed(BASE, (*_UP, "empty"), cwd=_empty(bench))
    bench.write(names[:-1])
    bench.init(ENV)
    bench.timed("up", up)
    bench.timed("no-op", up)
    before = bench.state_kilobytes(ENV)
    bench.write(names)
    bench.timed("one more", up)
    bench.run.facts[STATE] = bench.state_kilobytes(ENV) - before


def preview(bench: Bench) -> None:
    """Preview of an unchanged environment beside that of plain resources, and `berth check`."""
    bench.write(engineers(bench.size))
    bench.init(ENV)
    bench.do(*_UP, ENV)
    bench.timed("preview", ("pulumi", "preview", "-s", ENV))
    peers.plain_preview(bench, bench.size)


def check(bench: Bench) -> None:
    """`berth check` of a list of engineers."""
    bench.write(engineers(bench.size))
    _median(bench, "check", "berth", "check", ENV)


def stacks(bench: Bench) -> None:
    """Engineer N + 1 with a stack of her own, alone and among others with theirs."""
    bench.write([])
    bench.init(ENV, "alice")
    bench.do(*_UP, ENV)
    bench.project.write("alice", engineer={"environment": ENV})
    _own(bench, "alone")
    others = engineers(bench.size)
    for name in others:
        bench.project.write(name, engineer={"environment": ENV})
    together = ("berth", "up", "-s", ENV, "--all", "--yes")
    bench.timed("all others: up", together)
    bench.timed("all others: no-op", together)
    bench.do(*_DESTROY, "alice")
    bench.run.facts["seconds a stack"] = bench.run.seconds["all others: up"] / max(bench.size, 1)
    _own(bench, "among others")
    _median(bench, BASE, *_UP, "empty", cwd=_empty(bench))


PARTS: Mapping[str, Callable[[Bench], None]] = {
    "environment": environment,
    "bucket": remote,
    "preview": preview,
    "check": check,
    "stacks": stacks,
    "status": watching.status,
    "short": short,
}


def _empty(bench: Bench) -> Path:
    """Return the folder of a program without resources whose stack `empty` is up."""
    folder = bench.folder / "empty"
    (folder / "stacks").mkdir(parents=True)
    (folder / "Pulumi.yaml").write_text((bench.project.folder / "Pulumi.yaml").read_text())
    (folder / "__main__.py").write_text("import pulumi\n")
    bench.do("pulumi", "stack", "init", "empty", "--no-select", cwd=folder)
    bench.do(*_UP, "empty", cwd=folder)
    return folder


def _listed(bench: Bench, road: str, *options: str, where: str = "") -> None:
    """Bring the environment up, change it by one engineer, and destroy it; each with a preview."""
    names = engineers(bench.size + 1)
    up = (road, "up", *options, "-s", ENV)
    bench.write(names[:-1])
    bench.timed(f"{where}up", up)
    rounds: dict[str, list[Measured]] = {"no-op": [], "one more": [], "one less": []}
    for _ in range(ROUNDS):
        rounds["no-op"].append(bench.do(*up))
        bench.write(names)
        rounds["one more"].append(bench.do(*up))
        bench.write(names[:-1])
        rounds["one less"].append(bench.do(*up))
    _note(bench, where, rounds)
    bench.timed(f"{where}destroy", (road, "destroy", *options, "-s", ENV))


def _only_operators(bench: Bench) -> list[Object]:
    """Return the objects of the berths, and leave an environment without berths up."""
    bench.write(engineers(bench.size))
    bench.do(*_UP, ENV)
    objects = bench.objects()
    whole = bench.state_kilobytes(ENV)
    bench.write([])
    bench.do(*_UP, ENV)
    a_berth = (whole - bench.state_kilobytes(ENV)) / bench.size
    bench.run.facts |= {
        "state kB": whole,
        STATE: a_berth,
        "objects a berth": len(objects) / bench.size,
    }
    err.print(f"  state: {a_berth:.1f} kB and {len(objects) / bench.size:.1f} objects a berth")
    return objects


def _own(bench: Bench, where: str) -> None:
    """Time an engineer's own stack; the last round leaves nothing."""
    up = (*_UP, "alice")
    destroy = (*_DESTROY, "alice")
    rounds: dict[str, list[Measured]] = {"up": [], "no-op": [], "destroy": []}
    for _ in range(ROUNDS):
        rounds["up"].append(bench.do(*up))
        rounds["no-op"].append(bench.do(*up))
        rounds["destroy"].append(bench.do(*destroy))
    _note(bench, f"{where}: ", rounds)


def _median(bench: Bench, what: str, *command: str, cwd: Path | None = None) -> None:
    _note(bench, "", {what: [bench.do(*command, cwd=cwd) for _ in range(ROUNDS)]})


def _note(bench: Bench, where: str, rounds: Mapping[str, Sequence[Measured]]) -> None:
    """Add the command of the median duration to the figures, for each of them."""
    for what, found in rounds.items():
        bench.note(f"{where}{what}", sorted(found, key=lambda done: done.seconds)[len(found) // 2])
