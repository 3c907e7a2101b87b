"""Hooks of the docs site: its home, files from outside of docs/ and links between pages.

mkdocs.yml names this module. The README is the home.
Pages are written for a reader of the repository. A link that leaves `docs/` leads to a page of the
site: Markdown is shown as it is, any other file as a block of code.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "repository/"
"""Folder of the site with files from outside of docs/."""
HOME = {"README.md": "index.md"}
ALWAYS = ("README.md", "CHANGELOG.md", "SECURITY.md")

_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", flags=re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"""(?P<before>\]\(|\b(?:src|srcset|href)=")(?P<target>[^)\s"#]+)(?P<anchor>#[^)\s"]*)?""")
_PICTURE = re.compile(
    r'<picture>\s*<source[^>]*dark[^>]*srcset="(?P<dark>[^"]+)"[^>]*>\s*<img(?P<other>[^>]*?) src="(?P<light>[^"]+)"'
    r"(?P<more>[^>]*)>\s*</picture>"
)
_LANGUAGES = {".py": "python", ".yaml": "yaml", ".yml": "yaml", ".json": "json", ".go": "go", ".sh": "sh"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Files of the site: those of docs/, and each file outside of it that a page links to."""
    for file in list(files):
        if file.is_documentation_page():
            file_path = f"docs/{file.src_uri}"
            for path in _outside(file_path, file.content_string):
                _add(files, path, config)
    for path in ALWAYS:
        _add(files, path, config)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Text of a page with its links as the site needs them."""
    del config, files
    source = source_of(page.file.src_uri)
    if not source.endswith(".md"):
        return markdown
    return outside_fences(light_and_dark, with_links(markdown, source, page.file.src_uri))


def source_of(uri: str) -> str:
    """Path, in the repository, of the file that a page of the site shows."""
    for source, home in HOME.items():
        if uri == home:
            return source
    if not uri.startswith(FOLDER):
        return f"docs/{uri}"
    path = uri.removeprefix(FOLDER)
    return path if (ROOT / path).is_file() else path.removesuffix(".md")


def uri_of(path: str) -> str:
    """Path, in the site's sources, of the page that shows a file of the repository."""
    if path in HOME:
        return HOME[path]
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return FOLDER + (path if path.endswith(".md") else f"{path}.md")


def with_links(markdown: str, source: str, uri: str) -> str:
    """Markdown of a repository's file, with relative links for its place in the site."""

    def moved(match: re.Match[str]) -> str:
        target = match["target"]
        if re.match(r"[a-z]+:", target):
            return match[0]
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), target))
        link = posixpath.relpath(uri_of(path), posixpath.dirname(uri) or ".")
        return f"{match['before']}{link}{match['anchor'] or ''}"

    return outside_fences(lambda text: _LINK.sub(moved, text), markdown)


def light_and_dark(text: str) -> str:
    """Text in which a picture of two palettes follows the site's palette, not the machine's."""

    def both(match: re.Match[str]) -> str:
        attributes = f"{match['other']}{match['more'].rstrip('/ ')}"
        return "".join(f'<img{attributes} src="{match[palette]}#only-{palette}">' for palette in ("light", "dark"))

    return _PICTURE.sub(both, text)


def outside_fences(change: Callable[[str], str], markdown: str) -> str:
    """Markdown with a change of everything that is not a block of code."""
    parts, end = [], 0
    for fence in _FENCE.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])


def _outside(source: str, markdown: str) -> Iterator[str]:
    """Paths of files outside of docs/ that a page links to."""
    for match in _LINK.finditer(_FENCE.sub("", markdown)):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(source), match["target"]))
        if not re.match(r"[a-z]+:", match["target"]) and not path.startswith("docs/"):
            yield path


def _add(files: Files, path: str, config: MkDocsConfig) -> None:
    """Add a file of the repository, and the files that it links to if it is a page."""
    uri = uri_of(path)
    if files.get_file_from_path(uri) is not None:
        return
    if not (ROOT / path).is_file():
        raise PluginError(f"a page links to {path}, which is not a file of the repository")
    text = (ROOT / path).read_text(encoding="utf-8")
    shown = text if path.endswith(".md") else _code(path, text)
    files.append(File.generated(config, uri, content=shown, inclusion=InclusionLevel.NOT_IN_NAV))
    if path.endswith(".md"):
        for other in _outside(path, text):
            _add(files, other, config)


def _code(path: str, text: str) -> str:
    """A page that shows a file's text."""
    language = _LANGUAGES.get(Path(path).suffix, "text")
    return f"---\nsearch:\n  exclude: true\n---\n# {path}\n\n````{language}\n{text}\n````\n"
