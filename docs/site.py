"""Hooks of the docs site: its name, its home, files from outside of docs/ and links between pages.

mkdocs.yml names this module. The README is the home.
Pages are written for a reader of the repository. A link that leaves `docs/` leads to a page of the
site: Markdown is shown as it is, any other file as a block of code. Files about the project are not
on the site: a link to one leads to the repository, whose address is that of git's remote `origin`.
Without such an address the link's text stays.
"""

import posixpath
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

from berth.components.core.distribution import installed_version
from docs import errors

ROOT = Path(__file__).resolve().parent.parent
FOLDER = "repository/"
"""Folder of the site with files from outside of docs/."""
ERRORS = "errors.md"
"""Page with all errors and remedies of the code, for the search: the menu does not have it."""
HOME = {"README.md": "index.md"}
ALWAYS = ("README.md",)
OF_THE_PROJECT = (
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "docs/project/",
    "lab/",
    "bench/",
    "chaos/",
)
"""Files and folders about the project: the site links to the repository for them."""

_LINKED = re.compile(r"(?<!!)\[(?P<text>[^]]*)\]\((?P<target>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1[^\n]*$", flags=re.DOTALL | re.MULTILINE)
_LINK = re.compile(
    r"""(?P<before>\]\(|\b(?:src|srcset|href)=")(?P<target>[^)\s"#]+)(?P<anchor>#[^)\s"]*)?"""
)
_PICTURE = re.compile(
    r'<picture>\s*<source[^>]*dark[^>]*srcset="(?P<dark>[^"]+)"[^>]*>\s*<img(?P<other>[^>]*?)'
    r' src="(?P<light>[^"]+)"'
    r"(?P<more>[^>]*)>\s*</picture>"
)
_LANGUAGES = {
    ".py": "python",
    ".yaml": "yaml",
    ".yml": "yaml",
    ".json": "json",
    ".go": "go",
    ".sh": "sh",
}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Settings of the site, with berth's version and the repository's address."""
    config.site_name = f"berth {installed_version()}"
    command = ["git", "-C", str(ROOT), "remote", "get-url", "origin"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    config.repo_url = web_address(done.stdout.strip()) or None
    config.repo_name = "Repository"
    return config


def web_address(remote: str) -> str:
    """Address of a repository on the web; empty for another kind of remote, such as a folder."""
    found = re.fullmatch(
        r"(?:https://(?:[^@/]+@)?|(?:ssh://)?git@)([\w.-]+)[:/](.+?)(?:\.git)?/?", remote
    )
    return f"https://{found[1]}/{found[2]}" if found else ""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Files of the site: those of docs/, and each file outside of it that a page links to."""
    for file in list(files):
        if file.is_documentation_page():
            file_path = f"docs/{file.src_uri}"
            for path in _outside(file_path, file.content_string):
                _add(files, path, config)
    for path in ALWAYS:
        _add(files, path, config)
    files.append(
        File.generated(config, ERRORS, content=errors.page(), inclusion=InclusionLevel.NOT_IN_NAV)
    )
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Text of a page with its links as the site needs them."""
    del files
    source = source_of(page.file.src_uri)
    if not source.endswith(".md"):
        return markdown
    markdown = without_the_project(markdown, source, config.repo_url or "")
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
    if _of_docs(path):
        return path.removeprefix("docs/")
    return FOLDER + (path if path.endswith(".md") else f"{path}.md")


def without_the_project(markdown: str, source: str, repository: str) -> str:
    """Markdown whose links about the project lead to the repository, if its address is known."""

    def moved(match: re.Match[str]) -> str:
        path = _path(source, match["target"])
        if not path.startswith(OF_THE_PROJECT):
            return match[0]
        address = f"{repository}/blob/HEAD/{path}{match['anchor'] or ''}"
        return f"[{match['text']}]({address})" if repository else match["text"]

    return outside_fences(lambda text: _LINKED.sub(moved, text), markdown)


def with_links(markdown: str, source: str, uri: str) -> str:
    """Markdown of a repository's file, with relative links for its place in the site."""

    def moved(match: re.Match[str]) -> str:
        target = match["target"]
        if re.match(r"[a-z]+:", target):
            return match[0]
        path = _path(source, target)
        link = posixpath.relpath(uri_of(path), posixpath.dirname(uri) or ".")
        return f"{match['before']}{link}{match['anchor'] or ''}"

    return outside_fences(lambda text: _LINK.sub(moved, text), markdown)


def light_and_dark(text: str) -> str:
    """Text in which a picture of two palettes follows the site's palette, not the machine's."""

    def both(match: re.Match[str]) -> str:
        attributes = f"{match['other']}{match['more'].rstrip('/ ')}"
        return "".join(
            f'<img{attributes} src="{match[palette]}#only-{palette}">'
            for palette in ("light", "dark")
        )

    return _PICTURE.sub(both, text)


def outside_fences(change: Callable[[str], str], markdown: str) -> str:
    """Markdown with a change of everything that is not a block of code."""
    parts = []
    end = 0
    for fence in _FENCE.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence[0]]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])


def _outside(source: str, markdown: str) -> Iterator[str]:
    """Paths of files outside of docs/ that a page links to."""
    for match in _LINK.finditer(_FENCE.sub("", markdown)):
        path = _path(source, match["target"])
        if not re.match(r"[a-z]+:", match["target"]) and not (
            _of_docs(path) or path.startswith(OF_THE_PROJECT)
        ):
            yield path


def _of_docs(path: str) -> bool:
    """Whether the site has a file as it is; a program in docs/ is shown like one from outside."""
    return path.startswith("docs/") and not path.endswith(".py")


def _path(source: str, target: str) -> str:
    """Path in the repository to which a link of a file leads."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


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
