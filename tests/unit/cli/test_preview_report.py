"""The report and its renderings, on what the real engine said of a fleet in the lab."""

import json
from collections.abc import Callable
from decimal import Decimal
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from berth.cli.pulumi.preview.document import report_document
from berth.cli.pulumi.preview.lines import NEWS_FOR_ENGINEERS, cost_lines
from berth.cli.pulumi.preview.markdown import MOST_CHARACTERS, report_markdown
from berth.cli.pulumi.preview.tree import report_tree
from berth.components.gke import PoolSettings
from berth.components.plan.effect import Level
from berth.components.plan.fleet import Span, planned_fleet
from berth.components.plan.plan import Event, differences, plan_of
from berth.components.sharing import TimeSlicing, offered_pools
from berth.stacks.preview.cost import Money, gpu_hours, money
from berth.stacks.preview.report import PreviewContext, Report, report_of
from berth.stacks.settings.contract import EnvironmentContract
from tests.unit.cases import table
from tests.unit.components.plan.plans import (
    POOL,
    RAY,
    edited,
    effects,
    event,
    pool,
    ray,
    report,
    texts_of,
)
from tests.unit.components.plan.recordings import FOLDER, live, recorded

POOLS = offered_pools(
    {
        "dev": PoolSettings.model_validate(
            {"machineType": "g2-standard-48", "nodes": {"min": 1, "max": 2}, "sharing": "any"}
        )
    },
    {"any": TimeSlicing(kind="time-slicing", replicas=4)},
)
ENVIRONMENT = [
    "create",
    "noop",
    "driver",
    "sharing",
    "engineer-removed",
    "fewer",
    "machine",
    "refresh",
]
ENGINEER = ["alice-create", "alice-image"]


def of(name: str) -> Report:
    """The report of a recorded preview."""
    plan = plan_of(recorded(name))
    if name in ENGINEER:
        settings = (
            {"image": "rayproject/ray:2.60.0-py311-cu128", "workers": 2},
            {"image": "rayproject/ray:2.60.0-py312-cu128", "workers": 3},
        )
        return report_of(
            plan,
            PreviewContext(
                "alice",
                "engineer",
                pools_before=POOLS,
                edits=differences(*settings) if "image" in name else (),
            ),
        )
    return report_of(
        plan,
        PreviewContext(
            "fleet",
            "environment",
            live=[] if name == "create" else live(),
            rates={"train": Decimal(50)},
            currency="USD",
            pools_before={} if name == "create" else POOLS,
            refreshed=name == "refresh",
        ),
    )


@pytest.fixture
def golden_text(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    def compare(name: str, text: str) -> None:
        path = FOLDER / name
        if request.config.getoption("--update-golden"):
            path.write_text(text, encoding="utf-8")
        assert path.exists(), (
            f"{path} is missing; read what the code makes and keep it with --update-golden"
        )
        assert text == path.read_text(encoding="utf-8")

    return compare


def shown(report: Report, *, fields: bool = False) -> str:
    """The tree of a report, as a wide terminal shows it."""
    console = Console(file=StringIO(), width=200, highlight=False)
    console.print(report_tree(report, fields=fields))
    assert isinstance(console.file, StringIO)
    return "".join(f"{line.rstrip()}\n" for line in console.file.getvalue().splitlines())


@pytest.mark.parametrize("name", [*ENVIRONMENT, *ENGINEER])
def test_trees(name: str, golden_text: Callable[[str, str], None]) -> None:
    golden_text(f"{name}.txt", shown(of(name), fields=name == "machine"))


@pytest.mark.parametrize("name", ["driver", "refresh"])
def test_other_renderings(name: str, golden_text: Callable[[str, str], None]) -> None:
    golden_text(f"{name}.md", report_markdown(of(name)))
    golden_text(
        f"{name}.json", json.dumps(report_document(of(name)), indent=1, ensure_ascii=False) + "\n"
    )


@pytest.mark.parametrize(("name", "verdict"), table(__file__, "preview_report.yaml"))
def test_verdicts(name: str, verdict: str) -> None:
    assert of(name).verdict == verdict


def test_whose_work_is_lost_by_another_driver() -> None:
    report = of("driver")
    assert [str(sitting) for sitting in report.sitting(Level.DESTROYS)] == [
        "cluster train (2 pods, 16 × B200)"
    ]
    assert [(away.pool, away.product, away.gpus) for away in report.gpus] == [
        ("train", "B200", (16, 16))
    ]


def test_berths_of_engineers_own_stacks_are_seen() -> None:
    (effect,) = of("sharing").changes[0].effects
    assert [(sitting.name, sitting.stack) for sitting in effect.sitting] == [
        ("alice", "alice"),
        ("bob", "fleet"),
        ("carol", "fleet"),
    ]


def test_an_engineers_shares_are_no_gpus() -> None:
    assert "2 shares of 1/4 L4" in str(of("alice-image").sitting(Level.DESTROYS)[0])


def test_nothing_of_a_secret_is_shown() -> None:
    for name in (*ENVIRONMENT, *ENGINEER):
        assert "ciphertext" not in json.dumps(report_document(of(name)))


def test_secrets_in_plain_text_are_in_no_rendering() -> None:
    values = {"first": "hf_firstfirstfirstfirst", "second": "hf_secondsecondsecond"}

    def of_value(key: str) -> dict[str, Any]:
        variables = [
            {"name": "SIZE", "value": key},
            {"name": "OPENAI_API_KEY", "value": values[key]},
        ]
        container = {"name": "ray-head", "env": variables, "args": [f"PASSWORD={values[key]} run"]}
        head = {"template": {"spec": {"nodeSelector": {}, "containers": [container]}}}
        return ray("alice", headGroupSpec=head)

    plan = plan_of([event("update", RAY, "alice", of_value("first"), of_value("second"))])
    edits = differences(
        {"env": {"HF_TOKEN": values["first"]}}, {"env": {"HF_TOKEN": values["second"]}}
    )
    shown = report_of(plan, PreviewContext("alice", "engineer", edits=edits))
    assert shown.verdict == "destroys"
    console = Console(file=StringIO(), width=200, highlight=False)
    console.print(report_tree(shown, fields=True))
    assert isinstance(console.file, StringIO)
    texts = [console.file.getvalue(), report_markdown(shown), json.dumps(report_document(shown))]
    for text in texts:
        assert "[secret]" in text
        assert not any(value in text for value in values.values())
    assert "env.HF_TOKEN: [secret] → [secret]" in texts[0]
    assert "env[0].value: first → second" in texts[0]


def test_what_the_effects_say_is_not_warned_of_again() -> None:
    assert not any("sharing profile" in line for line in of("sharing").warnings)
    assert any("sharing profile" in str(line) for line in recorded("sharing"))


def test_news_for_engineers_are_a_change_and_in_their_words() -> None:
    def of_news(recording: str, *changed: str) -> Report:
        context = PreviewContext("fleet", "environment", changed_outputs=changed)
        return report_of(plan_of(recorded(recording)), context)

    start = "- New for engineers' own stacks at their next update: "
    shown = report_markdown(of_news("noop", "pools", "defaults", "demands"))
    assert f"{start}node pools, defaults of berths, the berths of this environment.\n" in shown
    assert of_news("noop", "namespaces").verdict == "harmless"
    # The tree of changes has the berths.
    shown = report_markdown(of_news("engineer-removed", "demands", "namespaces"))
    assert "engineers' own stacks" not in shown
    assert NEWS_FOR_ENGINEERS.keys() == EnvironmentContract.model_fields.keys()


def test_what_goes_with_its_namespace_is_no_alarm() -> None:
    """The isolation of a removed berth protects nobody; of another one it does."""

    def gone(kind: str, name: str, namespace: str) -> Event:
        old = {"metadata": {"name": name, "namespace": namespace}}
        return event("delete", f"kubernetes:{kind}", name, old, None)

    def namespace(name: str) -> Event:
        old = {"metadata": {"name": name}}
        return event("delete", "kubernetes:core/v1:Namespace", name, old, None)

    isolation = [
        gone("core/v1:ResourceQuota", "berth", "berth-carol"),
        gone("networking.k8s.io/v1:NetworkPolicy", "pods", "berth-carol"),
        gone("rbac.authorization.k8s.io/v1:RoleBinding", "owner", "berth-carol"),
        gone("core/v1:PersistentVolumeClaim", "home", "berth-carol"),
    ]
    removed = [namespace("berth-carol"), event("delete", RAY, "carol", ray("carol"), None)]
    assert set(texts_of(effects(*isolation, *removed))) == {
        ("destroys", "berth-carol/home: the data on the volume may be lost with it"),
        ("destroys", "berth-carol: everything in the namespace is deleted with it"),
        ("destroys", "berth carol is deleted, with everything that runs in it"),
    }
    stays = effects(*isolation, namespace("berth-bob"))
    assert {text.partition(":")[0] for level, text in texts_of(stays) if level == "disturbs"} == {
        "berth-carol/berth",
        "berth-carol/pods",
        "berth-carol/owner",
    }


# GPU-hours and money


def test_gpu_hours_are_by_product() -> None:
    plan = plan_of(recorded("machine"))
    found = {
        hours.product: (hours.now, hours.after)
        for hours in gpu_hours(planned_fleet("fleet", plan, None))
    }
    assert found == {
        "B200": ((384, 384), (0, 0)),
        "H200": ((0, 0), (384, 384)),
        "L4": ((96, 192), (96, 192)),
    }


def test_money_without_a_rate_of_some_nodes_is_at_least_that_much() -> None:
    plan = plan_of(recorded("fewer"))
    fleet = planned_fleet("fleet", plan, None)
    found = money(fleet, {"train": Decimal("12.5"), "dev": Decimal(1)}, "EUR")
    assert found == Money(
        currency="EUR",
        now=Span(Decimal(624), Decimal(648)),
        after=Span(Decimal(300), Decimal(324)),
        pools_without_rate=["cpu"],
        now_at_least=True,
        at_least=True,
        gpus=12,
        gpus_without_rate=0,
        month=None,
    )
    assert money(fleet, {}, "EUR") is None


MONEY = {
    "some GPUs without a rate": (
        "fewer",
        {"train": 50},
        (
            "at least USD 1,200.00 (now at least 2,400.00), 4 of 12 GPUs have no rate;"
            " without hourlyRate: cpu, dev"
        ),
    ),
    "no rate of a pool without GPUs": (
        "fewer",
        {"train": 50, "dev": 1},
        "at least USD 1,200.00–1,224.00 (now at least 2,424.00–2,448.00); without hourlyRate: cpu",
    ),
    "a rate of every pool": (
        "fewer",
        {"train": 50, "dev": 1, "cpu": 2},
        "USD 1,296.00–1,320.00 (now 2,520.00–2,544.00), 39,420.00–40,150.00 a month",
    ),
}


@pytest.mark.parametrize("case", MONEY)
def test_money_says_what_it_lacks_everywhere(case: str) -> None:
    plan, rates, line = MONEY[case]
    report = report_of(
        plan_of(recorded(plan)),
        PreviewContext(
            "fleet",
            "environment",
            rates={name: Decimal(rate) for name, rate in rates.items()},
            currency="USD",
        ),
    )
    assert cost_lines(report)[-1] == line
    assert line in shown(report)
    assert f"- {line}" in report_markdown(report)
    document = report_document(report)["moneyADay"]
    assert document["atLeast"] is line.startswith("at least")
    assert (document["month"] is None) is document["atLeast"]


def test_a_price_is_never_invented() -> None:
    report = report_of(plan_of(recorded("driver")), PreviewContext("fleet", "environment"))
    assert report.cost is None
    assert report_document(report)["moneyADay"] is None


# Markdown as a comment


def test_the_comment_can_be_found_again() -> None:
    assert report_markdown(of("driver")).splitlines()[0] == "<!-- berth-preview:fleet -->"


def test_a_comment_that_is_too_long_is_cut_and_says_so() -> None:
    steps = [
        event("delete", RAY, f"engineer-{number}", ray(f"engineer-{number}"), None)
        for number in range(400)
    ]
    text = report_markdown(report(*steps))
    assert len(text) <= MOST_CHARACTERS
    assert "*Cut: the whole report is longer than a comment can be." in text
    assert text.count("<details>") == text.count("</details>")
    assert "| what | what happens |" in text


def test_settings_cannot_write_markup_into_the_comment() -> None:
    name = "a|b`c"
    step = event("update", POOL, name, pool(name), edited(pool(name), nodeConfig__diskSizeGb=1))
    rows = [
        line
        for line in report_markdown(report(step, asked=False)).splitlines()
        if line.startswith("| ~")
    ]
    assert len(rows) == 1
    assert "``" in rows[0]
    assert rows[0].replace("\\|", "").count("|") == 5
