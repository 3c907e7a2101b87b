"""YAML that a stack's file cannot have: one problem with its line, and no traceback."""

from pathlib import Path

import pytest

from berth.cli.repository.check import check_stack
from berth.components.core.yaml_document import plain_value, read_yaml
from berth.stacks.load import service_code
from tests.unit.cases import table

FILE = """config:
  berth:environment:
    project: berth-lab
    zone: us-central1-b
    pools:
      cpu: {{machineType: n2-standard-16, nodes: 1}}
    defaults: {{worker: {{pool: cpu, gpus: 0}}}}
    engineers:
      alice: {{{setting}}}
"""
DEEP = "{a: " * 60 + "1" + "}" * 60

TABLES = table(__file__, "document.yaml")
CASES: dict[str, list[str]] = TABLES["settings"] | {
    "digits": [f"workers: {'9' * 5000}", f"'{'9' * 40}…' has more digits than a number of Pulumi"],
    "deep": [f"env: {DEEP}", "is nested more than 50 levels deep"],
    "lists": [f"env: {'[' * 5000}", "is nested more than 50 levels deep"],
}


@pytest.mark.parametrize("case", CASES)
def test_yaml_that_settings_do_not_have(case: str) -> None:
    setting, problem = CASES[case]
    lines = check_stack("env", FILE.format(setting=setting)).lines
    assert len(lines) == 1
    assert lines[0].startswith(f"stacks/Pulumi.env.yaml:9: {problem}")


@pytest.mark.parametrize(("line", "problem"), TABLES["lines"])
def test_a_line_that_is_indented_wrong(line: str, problem: str) -> None:
    text = FILE.format(setting="").replace("    pools:", f"{line}\n    pools:", 1)
    (found,) = check_stack("env", text).lines
    assert found.startswith(f"stacks/Pulumi.env.yaml:5: {problem}")


GOOD = {
    "anchors": "env: &a {A: b}, head: {cpu: &b 2, memory: 4Gi}, worker: {cpu: *b}",
    "merge": "worker: {<<: &a {cpu: 2}, memory: 4Gi}",
    "kinds": "workers: !!int 2, env: {A: !!str 010}",
    "colored text": 'env: {A: "tab\\tand é ü 漢 🚢"}',
}


@pytest.mark.parametrize("case", GOOD)
@pytest.mark.parametrize("ends", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_yaml_that_settings_may_have(case: str, ends: str, mark: str) -> None:
    text = mark + FILE.format(setting=GOOD[case]).replace("\n", ends)
    assert check_stack("env", text).lines == []


def test_values_have_no_memory_of_their_spelling() -> None:
    values = plain_value(read_yaml("a: &a true\nb: 0x1F\nc: 1_000\nd: 'x'\ne: [*a, 1.50]\n"))
    assert values == {"a": True, "b": 31, "c": 1000, "d": "x", "e": [True, 1.5]}
    assert [type(value) for value in values.values()] == [bool, int, int, str, list]


def test_a_merged_setting_has_the_line_of_its_parent() -> None:
    text = FILE.format(setting="worker: {<<: *w}").replace("config:", "x: &w {cpu: -1}\nconfig:", 1)
    (line,) = check_stack("env", text).lines
    assert line.startswith(
        "stacks/Pulumi.env.yaml:10: environment.engineers.alice.worker.cpu: '-1' is not a"
    )


REFUSED = {
    "bytes": (
        "worker: {memory: 5}",
        "worker.memory: '5' is less than 1Mi, and a number without a unit counts bytes",
    ),
    "head": ("head: {memory: 500m}", "head.memory: '500m' is less than 1Mi"),
    "shared": ("nccl: {sharedMemory: 64}", "nccl.sharedMemory: '64' is less than 1Mi"),
    "class": ("priority: Über", "priority: 'Über' is not the name of a PriorityClass"),
    "long class": (f"priority: {'a' * 201}", "is not the name of a PriorityClass"),
    "variable": ("env: {A=B: c}", "env.A=B: 'A=B' is not the name of an environment variable"),
    "image": ('image: "Foo Bar:::"', "image: 'Foo Bar:::' is not the reference of an image"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_values_that_kubernetes_would_refuse(case: str) -> None:
    setting, problem = REFUSED[case]
    (line,) = check_stack("env", FILE.format(setting=setting)).lines
    assert line.startswith("stacks/Pulumi.env.yaml:9: environment.engineers.alice.")
    assert problem in line


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("~nobody-has-this-name/app", "there is no home folder '~nobody-has-this-name'"),
        ("a" * 5000, "cannot be read: File name too long"),
        ("/", "/ has more than 5000 files; name the folder of the code alone"),
    ],
)
def test_code_that_is_nowhere_or_everywhere(code: str, problem: str) -> None:
    service = (
        f"x: {{code: {code}, serveConfig: {{applications: [{{import_path: a.b}}]}}, worker: {{gpus:"
        " 0}}"
    )
    text = FILE.format(setting="") + f"    services:\n      {service}\n"
    found = [line for line in check_stack("env", text).lines if "services.x.code: " in line]
    assert len(found) == 1
    assert problem in found[0]


@pytest.mark.parametrize("text", ["a = '\0'", "(" * 1000 + ")" * 1000, "-" * 100_000 + "1"])
def test_code_that_python_cannot_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "app.py").write_text(text)
    service = (
        f"x: {{code: {tmp_path}, serveConfig: {{applications: [{{import_path: app.b}}]}}, worker:"
        " {gpus: 0}}"
    )
    lines = check_stack("env", FILE.format(setting="") + f"    services:\n      {service}\n").lines
    assert service_code.read_code(tmp_path)
    assert any("Python cannot read this" in line for line in lines)
