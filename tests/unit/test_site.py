"""Docs site: it builds without warnings, its links lead somewhere, and it loads nothing."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from berth.lab.home import CLONE

SETTINGS = CLONE / "mkdocs.yml"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
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


def test_no_markdown_is_left_in_the_text_of_a_page(pages: dict[Path, Parsed]) -> None:
    left = re.compile(r"\n(?:[-*] |\d+\. |\|.*\||```)|\]\(\S+\)|\*\*\w")
    found = {
        (page.name, match[0]): text.strip()[:80]
        for page, parsed in pages.items()
        for text in parsed.text
        for match in left.finditer(text)
    }
    assert found == {}
