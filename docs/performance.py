"""Page of performance, from the figures of the recorded benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.bars import measured
from bench.parts import PARTS
from docs.pictures.performance import figures

_HEAD = """\
# Performance

A benchmark measures what berths cost as their number grows: with berth, and beside it the same
objects by kubectl, by Helm and by plain Pulumi, in the same run on the same machine.
`make pages` writes this page from [the figures](performance.json) of recorded runs.

**Compare the columns of a run, not seconds of two machines.** The floor is `kubectl apply
--server-side` of the same objects until all RayClusters are ready, and for the removal RayClusters
first, then namespaces. `same program` is plain `pulumi up --yes` of the program that `berth up`
runs, each with a preview of its own. `plain pulumi` is the namespaces and RayClusters alone.

A bar is the largest good value of a figure. With 10 engineers, `berth up` may take 1.15 times what
`pulumi up` takes for the first update, for one berth more and for the removal. With 100, the first
update may take 3 times the floor, the removal twice the floor, and an update without changes 2.2
times plain Pulumi's.

Runs of different dates may be of different machines: what the floor and plain Pulumi took shows how
fast each was.
"""

_PICTURE = """\
![Seconds by number of engineers, for berth, kubectl, Helm and plain Pulumi](pictures/performance.svg)
"""

_RUN = """\
## Run it

<!-- not run: the full benchmark takes hours -->
```sh
make bench                                   # all parts, with 1 to 1,000 engineers
make bench PART=environment N="10 100"       # one part, for two numbers of engineers
make bench RECORD=docs/performance.json      # and record the figures for this page
make bench SHORT=1                           # a minute: what CI prints beside the last release
```

Each run brings up a lab of its own and removes everything at its end, also after Ctrl-C. A run that
has ended is in `build/bench.json`, so an interrupted benchmark goes on with `PART` and `N`.
`make bench` prints the figures beside their bars, and `JUDGE=1` exits with 1 if one is above its
bar; only a quiet machine can tell. `JSON=1` prints everything that was measured.

The short benchmark compares CPU of commands, divided by that of an empty program, with the last
release (`bench/released.json`): seconds differ between machines and with their load. Its bars are 30 % more
than a ratio of that release, and 10 % more than a berth's part of the state.

## What a berth's state consists of

A berth is 32 kB of state. By content:

| content | kB | written by |
|---|---|---|
| manifests, as inputs | 4.9 | engine |
| the same manifests, in the outputs | 4.9 | kubernetes plugin |
| live objects: spec | 3.6 | kubernetes plugin |
| live objects: managed fields | 3.3 | kubernetes plugin |
| live objects: the rest of the metadata, status | 2.6 | kubernetes plugin |
| URNs, parents, dependencies, times | 3.8 | engine |
| call stack of the program at each registration | 9 | Pulumi's SDK |

The plugin has no option to keep less of an object, `ignoreChanges` does not change what it keeps,
and the SDK has none to leave the call stack out. Copies compress well: gzip makes a fifteenth of the
state of an environment of 10, and Pulumi compresses a state in a bucket or folder with
`PULUMI_DIY_BACKEND_GZIP=true`. Set it before a stack's first update, and then for everybody who
updates the stack: where the format changes, the engine deletes the old file before it writes the
new one, and an update that is killed in between leaves only a backup. berth therefore does not turn
it on.

## Why an environment of 100 takes seconds

`berth up` runs the engine twice, for the plan and for the update, and each run looks at every
resource of the stack. The engine also writes its whole state before and after each step, so that an
update's time grows with the square of the list. From 20 new or removed berths on, berth therefore
gives berths a run of their own, which writes the state once (`PULUMI_SKIP_CHECKPOINTS`) and does 64
operations at a time. By hand, with nothing but the installed `pulumi` and its real plugin, 100
engineers took: preview 10 s, everything but berths 9 s, berths 12 s, and all were ready 37 s after
the preview began, where one plain `pulumi up` took 51 s; a destruction 42 s, where a plain one took
112 s; no changes 6.8 s.

**Where a list grows past 100, change the backend or the list, not the flags.** Pulumi Cloud
journals since Pulumi 3.225: a step writes only what it changes, and the square is gone; other
backends have no journal ([pulumi 22075](https://github.com/pulumi/pulumi/issues/22075) asks for
it). Engineers' own stacks cost the same at any number: see part `stacks`.

Most of a removal is Kubernetes: its controllers remove pods, then RayClusters, then namespaces.
With the default of 20 requests a second for these controllers, 100 berths took 103 s to remove; the
lab lets them send 200.

The garbage collector learns of a new kind within 30 s. In a cluster whose KubeRay is younger than
that, as in the runs with 1 and 10 engineers, the first removal of a RayCluster waits up to 16 s
longer. Later ones take as long as the namespace, 5 s.

## How it is measured

- The cluster is the lab's: a real API server, etcd, scheduler and KubeRay operator. Nodes are
  simulated, so a pod is ready as soon as it has a node: the figures contain no pulling of images
  and no start of Ray.
- Helm installs the same objects as one release. Plain Pulumi registers the namespaces and the
  RayClusters alone, without quotas, policies and rights, from a program without components.
- Runs whose kubernetes plugin is `stand-in` are older than the lab's present plugin, Pulumi's own:
  they were measured with an imitation of it.
- CPU is that of the command and its children, as the kernel counts it.
- Memory is the largest sum of resident memory of the command and all its children, sampled five
  times a second. Shared pages count once for each process.
- `status` measures berths without pods: RayClusters of a berth's size that another controller
  manages (`managedBy`), with statuses that the benchmark writes.
- `bucket` keeps the state in a simulated object store that speaks the S3 API and answers each call
  after 100 ms.
"""


def page() -> str:
    """Return the page's text."""
    parts = figures()
    if not parts:
        return f"{_HEAD}\n## Figures\n\nNo run is recorded yet.\n\n{_RUN}"
    picture = [_PICTURE] if "environment" in parts else []
    return "\n".join([_HEAD, *picture, *_bars(parts), *_tables(parts), _RUN])


def _bars(parts: Mapping[str, Any]) -> Iterator[str]:
    yield "## Bars\n"
    yield "| part | engineers | figure | measured | bar | |"
    yield "|---|---|---|---|---|---|"
    for name, runs in parts.items():
        for size, run in runs.items():
            for found in measured(name, int(size), run):
                good = "reached" if found.good else "**missed**"
                yield (
                    f"| `{name}` | {int(size):,} | {found.what} | {found.value:.3g} {found.unit} | {found.limit:g}"
                    f" {found.unit} | {good} |"
                )
    yield ""


def _tables(parts: Mapping[str, Any]) -> Iterator[str]:
    for name, runs in parts.items():
        title = (PARTS[name].__doc__ or "").partition("\n")[0]
        yield f"## Part `{name}`\n"
        yield f"{title}\n"
        yield f"| engineers | {' | '.join(f'{int(size):,}' for size in runs)} |"
        yield f"|---|{'---|' * len(runs)}"
        for what in dict.fromkeys(what for run in runs.values() for what in run["seconds"]):
            yield f"| {what}, s | {_row(run['seconds'].get(what) for run in runs.values())} |"
        for what in dict.fromkeys(what for run in runs.values() for what in run["cpu"]):
            yield f"| CPU of {what}, s | {_row(run['cpu'].get(what) for run in runs.values())} |"
        for fact in dict.fromkeys(fact for run in runs.values() for fact in run["facts"]):
            yield f"| {fact} | {_row(run['facts'].get(fact) for run in runs.values())} |"
        for what in dict.fromkeys(what for run in runs.values() for what in run["memory"]):
            yield f"| memory of {what}, MB | {_row(_memory(run, what) for run in runs.values())} |"
        yield ""
        yield from _machines(runs)
        yield from _programs(runs)


def _row(values: Iterator[float | None]) -> str:
    return " | ".join(map(_figure, values))


def _figure(value: float | None) -> str:
    return "–" if value is None else f"{value:.0f}" if value >= 100 else f"{value:.3g}"  # noqa: PLR2004


def _memory(run: Mapping[str, Any], what: str) -> float | None:
    programs = run["memory"].get(what)
    return max(programs.values()) if programs else None


def _machines(runs: Mapping[str, Any]) -> Iterator[str]:
    for size, run in runs.items():
        machine = run["machine"]
        yield (
            f"- {int(size):,}: {run['date']}, {machine['cores']} cores, {machine['memory']} GiB, load {machine['load']}"
            f" before the run, kubernetes plugin: {machine.get('plugin', 'real')}."
        )
    yield ""


def _programs(runs: Mapping[str, Any]) -> Iterator[str]:
    """Yield the CPU of berth's own commands by program, for the largest number of engineers."""
    size, run = list(runs.items())[-1]
    found = {what: used for what, used in run.get("programs", {}).items() if ":" not in what and len(used) > 1}
    if not found:
        return
    yield f"| CPU by program, {int(size):,} engineers, s | {' | '.join(found)} |"
    yield f"|---|{'---|' * len(found)}"
    for program in dict.fromkeys(program for used in found.values() for program in used):
        yield f"| {program} | {_row(used.get(program) for used in found.values())} |"
    yield ""
