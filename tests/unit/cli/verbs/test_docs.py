"""`berth docs`: pages, their sections, and files; and what berth's own texts refer to."""

import json
import re
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from berth.cli.main import app
from berth.cli.repository.changelog import CHANGELOG, changelog_entries
from berth.cli.repository.documents import completed_names, document_named, titles_of_pages
from berth.cli.repository.markdown import headings, section, with_link_texts
from berth.cli.repository.shipped import PATTERNS, SHIPPED, shipped_files
from berth.components.core.errors import BadInputError
from berth.lab.home import CLONE
from tests.references import Text, paths, references, targets, texts_of

PRODUCT = ("cli", "components", "lab", "stacks")
PAGE = """\
# The page

<!-- not run: a comment -->
```sh
# no heading
berth check
```

## First part

Text.

### Below it

More.

## [Second](other.md) part!

The end.
"""


def docs(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["docs", *arguments])


@cache
def texts() -> list[Text]:
    """Texts of the package, of its template for repositories, and of stacks; pages are apart."""
    files = (file for folder in PRODUCT for file in sorted((CLONE / folder).rglob("*")))
    return [
        text
        for file in files
        if file.is_file() and "shipped" not in file.parts and file.name != "CHANGELOG.md"
        for text in texts_of(file)
    ]


def all_texts() -> list[str]:
    return [found.text for found in texts()]


def printed_texts() -> list[str]:
    return [found.text for found in texts() if not found.is_docstring]


def unresolved(names: set[str]) -> set[str]:
    wrong = set()
    for name in names:
        try:
            document_named(name)
        except BadInputError:
            wrong.add(name)
    return wrong


def test_every_reference_in_the_code_and_in_stacks_leads_somewhere() -> None:
    found = references(all_texts())
    assert {"gke#reservation", "images", "fabric#nccl", "ci"} <= found
    assert unresolved(found) == set()


def test_a_reference_that_leads_nowhere_is_noticed() -> None:
    message = "no quota: `berth docs gke#capacityy`, or berth docs gk. See `berth docs`."
    assert unresolved(references([message])) == {"gke#capacityy", "gk"}


def test_no_text_names_the_path_of_a_page() -> None:
    assert paths(["see docs/gke.md, Capacity"]) == {"docs/gke.md"}
    assert paths(printed_texts()) == set()


def test_every_target_of_make_in_a_text_is_one_of_a_new_repository() -> None:
    makefile = (CLONE / "cli/template/Makefile").read_text(encoding="utf-8")
    known = set(re.findall(r"^([a-z-]+):", makefile, flags=re.MULTILINE))
    found = targets(printed_texts())
    assert {"lab", "lab-real"} <= found
    assert found - known == set()


@pytest.mark.parametrize("name", titles_of_pages())
def test_every_link_of_a_page_leads_somewhere(name: str) -> None:
    text = document_named(name).text
    assert unresolved(references([text])) == set()
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    assert [link for link in re.findall(r"\]\(([^)]+)\)", prose) if "://" not in link] == []
    assert "<!--" not in prose


def test_the_changelog_that_an_upgrade_prints_names_commands_for_pages() -> None:
    texts = [entry.text for entry in changelog_entries(CHANGELOG.read_text(encoding="utf-8"))]
    assert "lifecycle#what-else-runs-in-the-namespace" in references(texts)
    assert unresolved(references(texts)) == set()
    assert [link for text in texts for link in re.findall(r"\]\(([^h)][^)]+)\)", text)] == []


def test_the_pages_are_listed() -> None:
    done = docs()
    assert done.exit_code == 0
    assert re.search(r"^gke +From an empty Google Cloud project", done.stdout, re.MULTILINE)
    listed = {row["page"] for row in json.loads(docs("--json").stdout)}
    assert listed == {"readme", "images", *(page.stem for page in (CLONE / "docs").glob("*.md"))}


def test_a_section_ends_where_the_next_one_begins() -> None:
    assert [heading.anchor for heading in headings(PAGE)] == [
        "the-page",
        "first-part",
        "below-it",
        "second-part",
    ]
    assert section(PAGE, "first-part") == "## First part\n\nText.\n\n### Below it\n\nMore.\n"
    assert section(PAGE, "the-page") == PAGE
    assert section(PAGE, "third") is None
    done = docs("gke#quota")
    assert done.stdout.startswith("### Quota\n")
    assert "### Reservation" not in done.stdout
    assert json.loads(docs("gke#quota", "--json").stdout) == {
        "page": "gke#quota",
        "text": done.stdout,
    }


@pytest.mark.parametrize(
    ("link", "shown"),
    [
        ("[The fabric](fabric.md)", "The fabric (`berth docs fabric`)"),
        ("[two ways](fabric.md#two-ways)", "two ways (`berth docs fabric#two-ways`)"),
        ("[here](#below)", "here (`berth docs gke#below`)"),
        ("[`stacks/Pulumi.prod.yaml`](../stacks/Pulumi.prod.yaml)", "`berth docs prod`"),
        ("[a test](../tests/unit/test_docs.py)", "a test"),
        ("[Ray](https://docs.ray.io)", "[Ray](https://docs.ray.io)"),
        ("![Life of a berth](pictures/life.svg)", "Life of a berth"),
    ],
)
def test_a_link_is_shown_as_the_command_that_prints_its_page(link: str, shown: str) -> None:
    names = {"docs/fabric.md": "fabric", "docs/gke.md": "gke", "stacks/Pulumi.prod.yaml": "prod"}
    assert with_link_texts(link, "docs/gke.md", names) == shown


@pytest.mark.parametrize("name", ["stacks/gallery/Pulumi.solo.yaml", "ci/gitlab-ci.yml"])
def test_a_file_is_printed_as_it_is(name: str) -> None:
    source = CLONE / name if (CLONE / name).exists() else CLONE / "docs" / name
    assert docs(name).stdout == source.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("gkee", "berth has no page 'gkee'; did you mean 'gke'?\nrun: berth docs\n"),
        ("../../LICENSE", "berth has no page '../../LICENSE'; known are "),
        (
            "gke#capacty",
            "page 'gke' has no section 'capacty'; did you mean 'capacity'?\nrun: berth docs gke\n",
        ),
        ("stacks/Pulumi.dev.yaml#pools", "'stacks/Pulumi.dev.yaml' is a file without sections"),
    ],
)
def test_a_wrong_name_gets_a_hint(name: str, error: str) -> None:
    done = docs(name)
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith(f"error: {error}")


def test_pages_and_sections_are_completed() -> None:
    assert completed_names("ga") == ["gallery"]
    assert completed_names("gke#res") == ["gke#reservation"]


def test_a_wheel_gets_every_shipped_file() -> None:
    """tests/packages looks into a wheel; here the two lists of patterns are compared."""
    pyproject = (CLONE / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(r'^    "shipped/(.+)",$', pyproject, flags=re.MULTILINE) == list(PATTERNS)
    linked = {Path(path) for path in shipped_files()}
    assert {Path("README.md"), Path("images/README.md"), Path("stacks/Pulumi.prod.yaml")} <= linked
    assert all((SHIPPED / path).resolve() == CLONE / path for path in linked)
