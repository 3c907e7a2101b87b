"""Docs site: it builds without warnings, leads somewhere, and loads nothing."""

import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from mkdocs.commands.build import build
from mkdocs.config import load_config

from berth.components.core.distribution import installed_version
from berth.lab.home import CLONE
from docs.site import source_of, web_address, without_the_project

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
        if (
            tag == "link"
            and "href" in given
            and given.get("rel") not in {"canonical", "prev", "next"}
        ):
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


def menu() -> dict[str, str]:
    """Titles of the menu by the path, in the repository, of their pages."""
    groups = load_config(str(SETTINGS)).nav or []
    return {
        source_of(uri): title
        for group in groups
        for entries in group.values()
        for entry in entries
        for title, uri in entry.items()
    }


def test_a_page_has_one_name() -> None:
    names = {path: (CLONE / path).read_text(encoding="utf-8").partition("\n")[0] for path in menu()}
    assert {path: f"# {title}" for path, title in menu().items()} == names
    named = re.findall(
        r"\[([^]]+)\]\((docs/[^)#]+\.md)\)", (CLONE / "README.md").read_text(encoding="utf-8")
    )
    assert [
        (name, path) for name, path in named if name[0].isupper() and name != menu()[path]
    ] == []


def test_the_search_works_without_a_server_and_the_site_has_a_version(site: Path) -> None:
    page = (site / "repository/images/index.html").read_text(encoding="utf-8")
    assert 'src="../../style/iframe-worker.js"' in page
    assert "suspend" in (site / "search/search_index.js").read_text(encoding="utf-8")
    assert f"berth {installed_version()}" in page
    assert [
        str(path) for path in site.rglob("*") if path.suffix == ".py" or path.name == "__pycache__"
    ] == []


def test_what_is_about_the_project_is_in_the_repository() -> None:
    text = "[a](../CONTRIBUTING.md#pages), [b](project/release.md), [c](admin.md)\n"
    address = web_address("git@example.com:me/berth.git")
    found = without_the_project(text, "docs/own-repository.md", address)
    blob = "https://example.com/me/berth/blob/HEAD"
    assert (
        found == f"[a]({blob}/CONTRIBUTING.md#pages), [b]({blob}/docs/project/release.md),"
        " [c](admin.md)\n"
    )
    assert without_the_project(text, "docs/own-repository.md", "") == "a, b, [c](admin.md)\n"
    remotes = (
        "https://me@example.com/me/berth",
        "ssh://git@example.com/me/berth.git",
        "../berth",
        "",
    )
    there = "https://example.com/me/berth"
    assert [web_address(remote) for remote in remotes] == [there, there, "", ""]


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
    loaded = {
        link
        for parsed in pages.values()
        for link in parsed.loaded
        if urlsplit(link).scheme not in {"", "data"}
    }
    styles = {
        (style.name, found)
        for style in site.rglob("*.css")
        for found in re.findall(
            r"(?:url\(|@import )[\"']?(https?:[^)\"']+)", style.read_text(encoding="utf-8")
        )
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
