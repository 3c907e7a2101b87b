"""`berth verify fabric`: the RayCluster, the run, and its result for people and programs."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.text import Text

from berth.cli.reach.arguments import seconds_of
from berth.cli.reach.environment import NotUpError, brought_up
from berth.cli.reach.fabric_reports import FOLDER
from berth.cli.shell.console import err
from berth.cli.shell.table import Table
from berth.cli.verbs.verify.clean_up import cleaned_up
from berth.cli.verbs.verify.fabric_target import fabric_target
from berth.cli.verbs.verify.proof_result import counts_of, print_proof, verdict_text
from berth.components.cluster.api import RAY_CLUSTERS, ClusterApi, in_namespace
from berth.components.core.errors import BadInputError
from berth.components.core.owner import namespace_of
from berth.components.core.types import parse_quantity
from berth.components.proof import Check, FabricResult, FabricRun, report_page

_SMALLEST = 1024


def verify_fabric(  # noqa: PLR0913 - each is an option
    stack: str,
    cluster: str | None,
    group_name: str | None,
    timeout: str,
    max_size: str | None,
    output: Path | None,
    *,
    collective: bool,
    keep: bool,
    as_json: bool,
) -> int:
    """Verify the fabric of a RayCluster, write evidence and report; return the exit code.

    Args:
        stack: stack of the environment, or an engineer's own.
        cluster: name of the RayCluster; by default the engineer's, or the environment's only one.
        group_name: name of its group of workers; by default the only one that can be verified.
        timeout: duration of the wait for the all-reduce, such as `10m`.
        max_size: size of the largest tensor, such as `1Gi`; by default the program's own choice.
        output: folder of evidence and report; by default one below FOLDER.
        collective: whether Ray's own collective library sums, too.
        keep: whether the objects of the run stay.
        as_json: whether the result is printed as JSON.

    Raises:
        BadInputError: there is nothing to verify.
        NotUpError: the RayCluster is not up.
    """
    seconds = seconds_of(timeout)
    max_bytes = _bytes(max_size)
    environment = brought_up(stack)
    target = fabric_target(stack, cluster, group_name, environment)
    name = target.cluster.name
    namespace = namespace_of(name)
    api = ClusterApi(environment.kubeconfig)
    clusters, _ = api.list(in_namespace(namespace, RAY_CLUSTERS))
    if not clusters:
        raise NotUpError.of_berth(name, stack, environment.stack)
    run = FabricRun(
        api=api,
        namespace=namespace,
        expected=target.expected,
        threshold=target.threshold,
        resource_api=environment.contract.resource_api,
        timeout=timeout,
        seconds=seconds,
        max_bytes=max_bytes,
        collective=collective,
        report=lambda about, text: err.print(f"{about}: {text}"),
    )
    removal = f"kubectl delete rayjobs -n {namespace}"
    with cleaned_up(run, namespace, "rayjobs", removal, keep=keep):
        result = run.prove()
    findings = result.findings
    transport = findings.transport if findings else None
    document = {
        "stack": stack,
        "environment": environment.stack,
        "cluster": name,
        "namespace": namespace,
        "run": run.run,
        "kept": keep,
        "checks": [asdict(check) for check in result.checks],
        "causes": [asdict(cause) for cause in result.causes],
        "threshold": asdict(run.threshold),
        "transport": asdict(transport) if transport else None,
        "evidence": result.raw,
        "counts": counts_of(result.checks),
    }
    title = f"Fabric proof of {name} ({environment.stack})"
    report = report_page(title, run.run, result, run.threshold)
    _save(document, report, output or FOLDER / f"{name}-{run.run}")
    return print_proof(document, _shown(result, f"{name} ({namespace})"), as_json=as_json)


def _shown(result: FabricResult, title: str) -> list[Table | Text]:
    """Return the checks and their likely causes for people."""
    shown: list[Table | Text] = [checks_table(result.checks, title)]
    if result.causes:
        shown.append(Text("\nlikely causes, the likeliest first", style="bold"))
    for number, cause in enumerate(result.causes, 1):
        shown.append(Text(f"{number}. {cause.text}\n   look: {cause.look}"))
    return shown


def checks_table(checks: Iterable[Check], title: str) -> Table:
    """Return the checks of a fabric proof for people."""
    table = Table("check", "verdict", "evidence", title=title)
    for check in checks:
        table.add_row(check.name, verdict_text(check.verdict), check.evidence)
    return table


def _save(proof: Mapping[str, Any], report: str, folder: Path) -> None:
    evidence = json.dumps(proof, indent=2) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in (("evidence.json", evidence), ("report.html", report)):
            (folder / name).write_text(text, encoding="utf-8")
            err.print(f"written: {folder / name}")
    except OSError as error:
        raise BadInputError(f"--output: {error}", "name a folder that you may write to") from None


def _bytes(max_size: str | None) -> int:
    """Return the size of option `--max-size` in bytes; 0 without the option."""
    if max_size is None:
        return 0
    try:
        size = int(parse_quantity(max_size))
    except ValueError as error:
        raise BadInputError(f"--max-size: {error}", "write a size such as 1Gi") from None
    if size < _SMALLEST:
        raise BadInputError(
            f"--max-size: the smallest tensor has 1Ki, so {max_size} is too little",
            "write 1Ki or more",
        )
    return size
