"""Parts of the benchmark: what each measures, for a number of engineers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bench import bucket, peers, profile, released, watching
from bench.fleet import ENV, Bench, Object, engineers, err
from bench.measured import Measured

ROUNDS = 3
"""Repetitions of short commands; the median counts."""

_UP: Mapping[str, tuple[str, ...]] = {
    "berth": ("berth", "up", "--yes", "--allow-destroy", "-s"),
    "pulumi": ("pulumi", "up", "--yes", "--skip-preview", "-s"),
}
_DESTROY: Mapping[str, tuple[str, ...]] = {
    "berth": ("berth", "destroy", "--yes", "--allow-destroy", "-s"),
    "pulumi": ("pulumi", "destroy", "--yes", "--skip-preview", "-s"),
}

# Goals of an environment with a hundred engineers on two cores, in seconds; and what plain Pulumi
# took for an update without changes of a hundred on the machine for which they were set. Another
# machine's seconds say nothing, so there each may be as many times what plain Pulumi takes there.
LIST_SECONDS = {"up": 45.0, "no-op": 6.0, "one more": 5.0, "destroy": 60.0}
_LARGEST_LIST = 100
PLAIN_SECONDS = 2.5
# Few berths cost less than the operator, which the floor finds there.
_SMALLEST_FOR_THE_FLOOR = 50
_STATE_KILOBYTES = 15.0


def environment(bench: Bench) -> None:
    """Environment with a list of engineers, by `berth up`; floor and peers beside it."""
    _listed(bench, "berth")
    objects = _only_operators(bench)
    peers.floor(bench, objects, ENV)
    peers.helm(bench, objects)
    peers.plain_pulumi(bench, objects)
    if bench.size >= _SMALLEST_FOR_THE_FLOOR:
        for what in ("up", "destroy"):
            bench.run.ratio(f"environment of {bench.size}: {what} / floor", what, f"floor: {what}", 3.0)
    if bench.size == _LARGEST_LIST:
        for what, limit in LIST_SECONDS.items():
            title = f"environment of {bench.size}: {what} / {peers.PLAIN_NO_OP}"
            bench.run.ratio(title, what, peers.PLAIN_NO_OP, limit / PLAIN_SECONDS)


def pulumi(bench: Bench) -> None:
    """The same environment by plain `pulumi up`, with the engine's profile."""
    prefix = bench.folder / "profile"
    _listed(bench, "pulumi", "--profiling", str(prefix))
    found = [profile.shares(path) for path in sorted(bench.folder.glob("profile*.cpu"))]
    bench.run.profile = next(filter(None, found), {})


def remote(bench: Bench) -> None:
    """The same environment with its state in a bucket that answers after 100 ms."""
    _listed(bench, "berth", where="file: ")
    with bucket.served() as state:
        # The lab's passphrase, which everybody knows, is for states in the lab.
        (bench.project.folder / "stacks" / f"Pulumi.{ENV}.yaml").unlink()
        own = {"PULUMI_BACKEND_URL": state.url, "PULUMI_CONFIG_PASSPHRASE": "bench"}
        bench.env = bench.env | dict(state.environment) | own
        _listed(bench, "berth", where="bucket: ")
        bench.run.facts["calls to the bucket"] = state.calls
    if bench.size <= _LARGEST_LIST:
        # Twice the goal: once for the update itself, on any machine, and as much for the bucket.
        for what, limit in LIST_SECONDS.items():
            more = bench.run.seconds[f"bucket: {what}"] - bench.run.seconds[f"file: {what}"]
            bench.run.at_most(f"environment of {bench.size}: {what}, more with a bucket", more, limit, "s")


def short(bench: Bench) -> None:
    """Small environment beside an empty program, which CI compares with the last release."""
    names, up = engineers(bench.size + 1), (*_UP["pulumi"], ENV)
    bench.timed(released.BASE, (*_UP["pulumi"], "empty"), cwd=_empty(bench))
    bench.write(names[:-1])
    bench.init(ENV)
    bench.timed("up", up)
    bench.timed("no-op", up)
    before = bench.state_kilobytes(ENV)
    bench.write(names)
    bench.timed("one more", up)
    bench.run.facts[released.STATE] = bench.state_kilobytes(ENV) - before


def preview(bench: Bench) -> None:
    """Preview of an unchanged environment beside that of plain resources, and `berth check`."""
    bench.write(engineers(bench.size))
    bench.init(ENV)
    bench.do(*_UP["pulumi"], ENV)
    bench.timed("preview", ("pulumi", "preview", "-s", ENV))
    peers.plain_preview(bench, bench.size)
    bench.run.ratio(f"preview of {bench.size} / plain resources", "preview", "plain pulumi: preview", 2.0)


def check(bench: Bench) -> None:
    """`berth check` of a list of engineers."""
    bench.write(engineers(bench.size))
    _median(bench, "check", "berth", "check", ENV)
    bench.run.at_most(f"check of {bench.size}", bench.run.seconds["check"], 2.0, "s")


def stacks(bench: Bench) -> None:
    """Engineer N + 1 with a stack of her own, alone and among others with theirs."""
    bench.write([])
    bench.init(ENV, "alice")
    bench.do(*_UP["pulumi"], ENV)
    bench.project.write("alice", engineer={"environment": ENV})
    _own(bench, "alone")
    others = engineers(bench.size)
    for name in others:
        bench.project.write(name, engineer={"environment": ENV})
    together = ("berth", "up", "-s", ENV, "--all", "--yes")
    bench.timed("all others: up", together)
    bench.timed("all others: no-op", together)
    bench.do(*_DESTROY["pulumi"], "alice")
    bench.run.facts["seconds a stack"] = bench.run.seconds["all others: up"] / max(bench.size, 1)
    _own(bench, "among others")
    for what in ("up", "no-op", "destroy"):
        title = f"own stack: {what} among {bench.size} / alone"
        bench.run.ratio(title, f"among others: {what}", f"alone: {what}", 1.1)
    _median(bench, released.BASE, *_UP["pulumi"], "empty", cwd=_empty(bench))
    bench.run.ratio("own stack: no-op / empty program", "among others: no-op", released.BASE, 2.0)


PARTS: Mapping[str, Callable[[Bench], None]] = {
    "environment": environment,
    "pulumi": pulumi,
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
    bench.do(*_UP["pulumi"], "empty", cwd=folder)
    return folder


def _listed(bench: Bench, road: str, *options: str, where: str = "") -> None:
    """Bring the environment up, change it by one engineer, and destroy it."""
    names, up = engineers(bench.size + 1), (*_UP[road], ENV)
    bench.write(names[:-1])
    bench.init(ENV)
    bench.timed(f"{where}up", (*up, *options))
    bench.timed(f"{where}no-op", up)
    bench.write(names)
    bench.timed(f"{where}one more", up)
    bench.write(names[:-1])
    bench.timed(f"{where}one less", up)
    bench.timed(f"{where}destroy", (*_DESTROY[road], ENV))


def _only_operators(bench: Bench) -> list[Object]:
    """Return the objects of the berths, and leave an environment without berths up."""
    bench.write(engineers(bench.size))
    bench.do(*_UP["pulumi"], ENV)
    objects, whole = bench.objects(), bench.state_kilobytes(ENV)
    bench.write([])
    bench.do(*_UP["pulumi"], ENV)
    a_berth = (whole - bench.state_kilobytes(ENV)) / bench.size
    bench.run.facts |= {"state kB": whole, released.STATE: a_berth, "objects a berth": len(objects) / bench.size}
    bench.run.at_most(f"environment of {bench.size}: state a berth", a_berth, _STATE_KILOBYTES, "kB")
    err.print(f"  state: {a_berth:.1f} kB and {len(objects) / bench.size:.1f} objects a berth")
    return objects


def _own(bench: Bench, where: str) -> None:
    """Time an engineer's own stack; the last round leaves nothing."""
    up, destroy = (*_UP["pulumi"], "alice"), (*_DESTROY["pulumi"], "alice")
    rounds: dict[str, list[Measured]] = {"up": [], "no-op": [], "destroy": []}
    for _ in range(ROUNDS):
        rounds["up"].append(bench.do(*up))
        rounds["no-op"].append(bench.do(*up))
        rounds["destroy"].append(bench.do(*destroy))
    for what, found in rounds.items():
        bench.note(f"{where}: {what}", _middle(found))


def _median(bench: Bench, what: str, *command: str, cwd: Path | None = None) -> None:
    bench.note(what, _middle([bench.do(*command, cwd=cwd) for _ in range(ROUNDS)]))


def _middle(found: Sequence[Measured]) -> Measured:
    """Return the command of the median duration."""
    return sorted(found, key=lambda done: done.seconds)[len(found) // 2]
