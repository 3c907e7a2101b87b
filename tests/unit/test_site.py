"""Docs site: it builds without warnings and without a network, its links lead somewhere, and pages
look as their Markdown means.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
import yaml
from mkdocs.commands.build import build
from mkdocs.config import load_config
from mkdocs.exceptions import Abort

from berth.lab.home import CLONE
from docs.site import light_and_dark, source_of, uri_of, with_links

SETTINGS = CLONE / "mkdocs.yml"


@pytest.fixture(scope="module")
def no_network() -> Iterator[None]:
    def refuse(*_: Any) -> None:
        raise AssertionError("the site was built with a network")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(socket.socket, "connect", refuse)
        yield


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Path:
    request.getfixturevalue("no_network")
    folder = tmp_path_factory.mktemp("site")
    build(load_config(str(SETTINGS), site_dir=str(folder)))
    return folder


class Parsed(HTMLParser):
    """Ids, links, loaded files and text of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.loaded: set[str] = set()
        self.text: list[str] = []
        self._open: list[str] = []
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.ids.update(value for name, value in given.items() if name in {"id", "name"})
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if tag in {"script", "img", "iframe", "source"} and "src" in given:
            self.loaded.add(given["src"])
        if tag == "link" and "href" in given and given.get("rel") not in {"canonical", "prev", "next"}:
            self.loaded.add(given["href"])
        if tag in {"pre", "code", "script", "style"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not self._open:
            self.text.append(data)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Parsed]:
    return {page: Parsed(page) for page in sorted(site.rglob("*.html"))}


def test_the_home_is_the_readme_and_every_page_is_in_the_site(site: Path) -> None:
    assert "Every engineer gets a berth on shared GPUs" in (site / "index.html").read_text()
    sources = {page.with_suffix(".html").name for page in (CLONE / "docs").glob("*.md")}
    assert sources <= {page.name for page in site.glob("*.html")}


def test_every_link_and_anchor_of_the_site_leads_somewhere(pages: dict[Path, Parsed]) -> None:
    wrong = []
    for page, parsed in pages.items():
        if page.name == "404.html":
            continue  # its links are absolute: a server shows it at any address
        for link in parsed.links | parsed.loaded:
            parts = urlsplit(link)
            if parts.scheme:
                continue
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if target.is_dir():
                target /= "index.html"
            ids = pages[target].ids if target in pages else {unquote(parts.fragment)}
            if not target.is_file() or (parts.fragment and unquote(parts.fragment) not in ids):
                wrong.append((page.name, link))
    assert wrong == []


def test_the_site_loads_nothing_from_another_server(site: Path, pages: dict[Path, Parsed]) -> None:
    loaded = {link for parsed in pages.values() for link in parsed.loaded if urlsplit(link).scheme not in {"", "data"}}
    styles = {
        (style.name, found)
        for style in site.rglob("*.css")
        for found in re.findall(r"(?:url\(|@import )[\"']?(https?:[^)\"']+)", style.read_text(encoding="utf-8"))
    }
    assert (loaded, styles) == (set(), set())


def test_no_module_of_docs_is_in_the_site(site: Path) -> None:
    assert list(site.rglob("*.py")) == []
    assert not (site / "site.html").exists()


def test_no_markdown_is_left_in_the_text_of_a_page(pages: dict[Path, Parsed]) -> None:
    left = re.compile(r"\n(?:[-*] |\d+\. |\|.*\||```)|\]\(\S+\)|\*\*\w")
    found = {
        (page.name, match[0]): text.strip()[:80]
        for page, parsed in pages.items()
        for text in parsed.text
        for match in left.finditer(text)
    }
    assert found == {}


def test_the_site_has_a_light_and_a_dark_palette(site: Path) -> None:
    text = (site / "index.html").read_text(encoding="utf-8")
    assert 'data-md-color-scheme="default"' in text
    assert 'data-md-color-scheme="slate"' in text


@pytest.mark.parametrize(
    ("home", "more"),
    [
        ("# Home\n\n[a page](other.md)\n", "# A page that is not in the menu\n"),
        ("# Home\n\n[a page](missing.md)\n", None),
        ("# Home\n\n[a section](#missing)\n", None),
        ("# Home\n\n[a page](/index.md)\n", None),
    ],
    ids=["page-not-in-nav", "broken-link", "broken-anchor", "absolute-link"],
)
@pytest.mark.usefixtures("no_network")
def test_a_broken_site_does_not_build(home: str, more: str | None, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "index.md").write_text(home, encoding="utf-8")
    if more:
        (docs / "other.md").write_text(more, encoding="utf-8")
    given: dict[str, Any] = {
        "docs_dir": str(docs),
        "site_dir": str(tmp_path / "site"),
        "nav": [{"Home": "index.md"}],
        "hooks": [],
        "extra_css": [],
    }
    with pytest.raises(Abort):
        build(load_config(str(SETTINGS), **given))


def test_links_of_the_repository_become_links_of_the_site() -> None:
    assert with_links("[a](docs/gke.md#state) ![b](docs/fleet.svg)", "README.md", "index.md") == (
        "[a](gke.md#state) ![b](fleet.svg)"
    )
    assert with_links("[a](../lab/main.py) [b](../README.md#try)", "docs/gke.md", "gke.md") == (
        "[a](repository/lab/main.py.md) [b](index.md#try)"
    )
    assert with_links("[a](../docs/gke.md)", "images/README.md", "repository/images/README.md") == "[a](../../gke.md)"
    shown = "```sh\n[a](docs/gke.md)\n```\n"
    assert with_links(shown, "README.md", "index.md") == shown
    assert with_links("[a](https://ray.io) [b](#try)", "README.md", "index.md") == "[a](https://ray.io) [b](#try)"


@pytest.mark.parametrize("path", ["README.md", "docs/gke.md", "images/README.md", "lab/main.py", "CHANGELOG.md"])
def test_a_page_of_the_site_knows_its_file(path: str) -> None:
    assert (CLONE / source_of(uri_of(path))) == CLONE / path


def test_pictures_of_two_palettes_follow_the_palette_of_the_site() -> None:
    picture = (
        '<picture>\n  <source media="(prefers-color-scheme: dark)" srcset="a-dark.svg">\n'
        '  <img alt="A" src="a-light.svg">\n</picture>'
    )
    assert light_and_dark(picture) == (
        '<img alt="A" src="a-light.svg#only-light"><img alt="A" src="a-dark.svg#only-dark">'
    )


def test_ci_builds_the_site() -> None:
    workflow = yaml.safe_load((CLONE / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    assert any(step.get("run") == ".ci/run" for step in workflow["jobs"]["test"]["steps"])
    assert "make --no-print-directory test" in (CLONE / ".ci/run").read_text(encoding="utf-8")
