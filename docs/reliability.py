"""Page of reliability, from the figures of the last recorded campaign of faults."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from berth.lab.home import CLONE

FIGURES = CLONE / "docs/reliability.json"

_HEAD = """\
# Reliability

An update has bad days: somebody presses Ctrl-C, a laptop's memory is full and the kernel kills a
program, the API server answers with errors or not at all, two people update at once. A campaign
does all of this to berth, and counts what happens. `make pages` writes this page from
[the figures](reliability.json) of the recorded campaign.

## Figures

A part of the campaign has a goal, the least share of its cases that are good. `make chaos` exits
with 1 if one is missed. **A recorded campaign is often shorter than a full one:** compare the two
columns before you rely on a figure. With 100 good cases and no bad one, the true share of bad cases
can still be 3 in 100 (at 95 % confidence).
"""

_RUN = """\
## Run it

<!-- not run: the full campaign takes hours -->
```sh
make chaos                                   # all parts, in full
make chaos CASES=20 SEED=7                   # 20 cases of each part, chosen by another seed
make chaos PART=signals MINUTES=10           # one part, for ten minutes
make chaos PART=kills SEED=7 CASE=12         # one case again
make chaos RECORD=docs/reliability.json      # and record the figures for this page
make chaos MINUTES=20 RECORD=docs/reliability.json RESUME=1   # 20 more minutes of each part
make chaos PART=kills JOBS=4                 # four cases at a time, on a lab each
```

The campaign brings up a lab of its own, one environment on it and an engineer's own stack, and
removes everything at its end, also after Ctrl-C. It prints each case when it ends, with the exit
code and the duration; a bad case with its output. The results are in `build/chaos.json`. Seed, part
and number choose a case: which signal, which write, which faults. Timing differs between runs, so a
repeated case is alike, not identical. With `RESUME=1` a run goes on after the cases that the file
has, so that a full campaign can be run in pieces; bad cases stay in the file until the part is
recorded anew. A short part of the campaign, with a fixed seed, is in
`make test-long`.

## How the parts work

- **`signals`** starts a command and sends it SIGINT or SIGTERM at a random moment of its usual
  duration, to it alone or, as a terminal does, to its process group.
- **`answers`** and **`outages`** put an HTTPS proxy before the API server, with a certificate of
  the lab's authority. In `answers`, one answer in ten is 429, 503, cut off after a random part of
  it, or late. A cut answer to a write means that the API server did the work. In `outages` the
  proxy refuses connections for a minute.
- **`kills`** counts the writes of an update at the proxy, and sends SIGKILL to the engine, the
  program or the Kubernetes plugin before or after one of them. Then it does what a person would
  do, `pulumi cancel` and `pulumi up`, and compares all objects of the stack with those of an
  undisturbed update.
- **`releases`** does the same in updates that upgrade the KubeRay operator, so that most kills are
  inside Helm. In some cases the edit is taken back after the kill, or the state is refreshed.
- **`large`** sends SIGKILL to the engine at a random write of a `berth up` that makes or deletes 20
  berths, which writes the state at its end only. Then it takes some of the new engineers out of the
  settings, runs `pulumi cancel` and `berth up`, deletes the namespaces that `berth status` names,
  and compares in the same way.
- **`races`** starts two updates within three seconds.
- **`restarts`** sends SIGKILL to etcd or the API server at a random write, and starts it again.

## Limits

- The recorded figures are older than the lab's present Kubernetes plugin, which is Pulumi's own:
  they were measured with an imitation, whose retries were berth's. So those of `answers`,
  `outages`, `kills` and `restarts` say little about the real plugin's retries.
- The state is in files on one machine. Object storage with its own faults is not disturbed.
- Nodes are simulated. For `connect` and `logs`, the proxy answers that nodes may not be listed and
  that a log goes on, and a program in kubectl's place says that it forwards ports. Tests of the
  real node interrupt a connection that stands.
- Ctrl-C in the first hundredths of a second, before Python runs berth's first line, prints a trace
  of Python's own. Such a case counts as not disturbed.
- `verify fabric` creates nothing on simulated nodes, and the campaign does not interrupt it. A test
  of the real node interrupts its all-reduce (tests/real/test_fabric.py).
- `kills` and `releases` spare Pulumi's language host and plugins, which outlive a killed engine by
  up to five minutes: they ask that often whether the engine is there. They hold no lock. A plugin
  ends what it was asked to do: a Helm upgrade goes on beside the next update, as in `releases`.
- A plain Pulumi update that deletes is not killed by `kills`. After an interrupted `pulumi destroy`, the cluster
  goes on deleting what Pulumi's state still has: `pulumi destroy` again ends it, and
  [troubleshooting](troubleshooting.md#a-namespace-is-not-found-after-an-interrupted-destroy) brings
  it back.
- `pulumi destroy` after a killed first update does not know objects whose creation the state did
  not record. Run `pulumi up` first, which takes them over. `berth status` names namespaces
  of berths that the state does not know (tests/lab/test_killed_update.py).
- The machine does not lose power: what a killed etcd wrote is in the kernel's cache.
"""


def page() -> str:
    """Return the page's text."""
    parts = json.loads(FIGURES.read_text(encoding="utf-8")) if FIGURES.exists() else {}
    figures = [*_summary(parts), *_groups(parts)] if parts else ["No campaign is recorded yet.\n"]
    return "\n".join([_HEAD, *figures, _RUN])


def _summary(parts: Mapping[str, Any]) -> Iterator[str]:
    yield "| part | disturbance | goal | good | disturbed | cases run | full campaign |"
    yield "|---|---|---|---|---|---|---|"
    for name, part in parts.items():
        share = f"{part['good']} of {part['cases']}"
        disturbed = sum(group["disturbed"] for group in part["groups"].values())
        figures = f"{share} | {disturbed} | {part['cases']} | {part['full']}"
        yield f"| `{name}` | {part['title']} | {_percent(part['bar'])} | {figures} |"
    yield ""
    yield "A good case of a part:\n"
    for name, part in parts.items():
        yield f"- `{name}`: {part['good_case']}."
    yield ""


def _groups(parts: Mapping[str, Any]) -> Iterator[str]:
    yield "## Cases by kind"
    yield ""
    yield "“Disturbed” counts the cases in which the disturbance came before the command's end."
    yield "“Succeeded” counts the commands that reached their goal in spite of the disturbance; the other"
    yield "good ones named the cause. “Longest” is in seconds: from the signal to the end, the next update after"
    yield "a kill, or the disturbed command.\n"
    yield "| part | kind | cases | disturbed | good | succeeded | longest | seed | date |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, part in parts.items():
        for kind, group in part["groups"].items():
            counts = " | ".join(str(group[key]) for key in ("cases", "disturbed", "good", "succeeded", "longest"))
            yield f"| `{name}` | {kind} | {counts} | {part['seed']} | {part['date']} |"
    yield ""
    failed = [(name, case) for name, part in parts.items() for case in part["failed"]]
    if failed:
        yield "Bad cases:\n"
        for name, case in failed:
            first = " ".join(case["problems"][0].split())[:200]
            yield f"- `{name}` {case['number']}, {case['what']}: {first}"
        yield ""


def _percent(share: float) -> str:
    return f"{100 * share:g} %"
