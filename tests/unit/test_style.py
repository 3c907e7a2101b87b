"""Rules of plain English and size: docstrings' first words, names, spelling, lengths of files."""

from __future__ import annotations

import ast
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

CLONE = Path(__file__).resolve().parents[2]
FOLDERS = ("components", "stacks", "cli", "lab", "bench", "chaos", "docs", "tests")
LONGEST = 400
# Columns of a page's prose.
WIDTH = 100

# A docstring's first line names its subject: it does not begin with a pronoun, a preposition or a
# conjunction.
NO_SUBJECT = frozenset(
    """
    a-pronoun: that those whose of what it its they who whom them their this these such there
    a-preposition: as from by in on at with without to for
    a-conjunction: how where when which if so than then but and or because while until since before after
    a-quantity: not nobody somebody everything something anything nothing all each both
    """.split()
)
NO_NOUNS = frozenset("each its told said kept wanted made them their whose those".split())

# British forms, as beginnings of words; text, names and files are in American English.
BRITISH = re.compile(
    r"""
    acknowledgement | afterwards | ageing | aluminium | amongst | analys(?=ed|ing|er) | apologis | artefact
  | armour | authoris | backwards(?!.compat) | behaviour | burnt(?!sushi) | calibre | cancell(?!ation) | catalogue
  | categoris | centre | channell | characteris | cheque | colour | containeris | counsell | customis | defence
  | dialogue | downwards | draught | dreamt | emphasis(?=e|ing) | endeavour | enrol\b | favour | fibre | finalis
  | flavour | focuss | forwards\b(?=[ ]and) | fuell | fulfil(?!l) | generalis | grey | harbour | honour | humour
  | initialis | instal(?=\b|ment) | judgement | kerb\b | labell | labour | learnt | levell | licence | litre
  | localis | manoeuvre | marshall(?=ed|ing) | materialis | maximis | memoris | metre | minimis | misspelt
  | modell | mould | neighbour | normalis | offence | optimis(?!ti) | organis(?!m) | parametris | personalis
  | practis | preventative | pretence | prioritis | programme(?!r|d) | queueing | realis(?!ti|m) | recognis
  | rumour | sceptic | serialis | signall | skilful | specialis(?!t) | spelt | standardis | storey | summaris
  | synchronis | theatre | totall(?=ed|ing) | towards | travell | tunnell | tyre | unmarshall | upwards
  | utilis | vapour | virtualis | visualis | whilst
    """,
    flags=re.VERBOSE,
)
# British words of others that berth repeats to the letter.
OTHERS_WORDS = ("CancelledError", 'Resource operation was cancelled for "')

MODULES = sorted(
    file.relative_to(CLONE)
    for folder in FOLDERS
    for file in (CLONE / folder).rglob("*.py")
    if "gallery" not in file.parts
)


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every docstring, those of attributes too."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        before: ast.stmt | None = None
        for statement in node.body:
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))) if before is None or isinstance(
                    before, ast.Assign | ast.AnnAssign
                ):
                    yield statement.lineno, text.strip()
            before = statement


def identifiers(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and name of every variable, argument, function and class that is defined."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield node.lineno, name


def problems(path: Path) -> list[str]:
    text = (CLONE / path).read_text(encoding="utf-8")
    tree = ast.parse(text)
    found = [
        f"{path}:{line}: begins with {first[0]!r}: {docstring.splitlines()[0]}"
        for line, docstring in docstrings(tree)
        if (first := re.match(r"\W*([A-Za-z']+)", docstring)) and first[1].lower() in NO_SUBJECT
    ]
    found += [
        f"{path}:{line}: {name!r} is no noun of the field"
        for line, name in identifiers(tree)
        if name.strip("_").lower() in NO_NOUNS
    ]
    length = text.count("\n")
    if length > LONGEST and path.parts[0] != "tests":
        found.append(f"{path}: {length} lines; split it at {LONGEST}")
    return found


@pytest.mark.parametrize("folder", FOLDERS)
def test_docstrings_and_names_follow_the_rules(folder: str) -> None:
    found = [problem for path in MODULES if path.parts[0] == folder for problem in problems(path)]
    if found:
        pytest.fail("\n".join(found), pytrace=False)


_PLURAL = re.compile(
    r" (are|berths|copies|engineers|files|jobs|machines|nodes|pods|policies|pools|problems|processes|resources|services"
    r"|shares|stacks|things|tools|workers|GPUs|NICs)\b"
)
# "1 of 2 nodes", "each of 1 workers": the noun is that of the whole.
_OF_A_WHOLE = (" of ", "of all ", " all ", "all ", "/")


def bare_plurals(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and text of every length in an f-string whose noun is in the plural for 1 too."""
    for text in (node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr)):
        before = ""
        for part, after in zip(text.values, [*text.values[1:], None], strict=True):
            if isinstance(part, ast.FormattedValue) and isinstance(after, ast.Constant):
                noun = _PLURAL.match(str(after.value))
                if noun and ast.unparse(part.value).startswith("len(") and not before.endswith(_OF_A_WHOLE):
                    yield part.lineno, f"{ast.unparse(part.value)}{noun[0]}"
            before = str(part.value) if isinstance(part, ast.Constant) else ""


def test_numbers_have_their_nouns() -> None:
    """A length goes through `counted`, so that nobody reads "1 pods"."""
    found = [
        f"{path}:{line}: {text}"
        for path in MODULES
        if path.parts[0] not in {"tests", "lab"} and "programs" not in path.parts
        for line, text in bare_plurals(ast.parse((CLONE / path).read_text(encoding="utf-8")))
    ]
    assert found == []


def test_no_file_has_marks_of_a_conflict() -> None:
    marks = re.compile(r"^\s*(<{7}|>{7}) ", flags=re.MULTILINE)
    assert [str(path) for path in MODULES if marks.search((CLONE / path).read_text(encoding="utf-8"))] == []


def tracked() -> Iterator[tuple[Path, str]]:
    """Path and content of every text file of the repository, without links."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=CLONE, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    for name in filter(None, listing.split("\0")):
        file = CLONE / name
        if file.is_file() and not file.is_symlink() and file != Path(__file__):
            try:
                yield Path(name), file.read_text(encoding="utf-8")
            except UnicodeDecodeError:
                continue


# Parts that `make pages` writes. A page that is generated as a whole says so in its text.
_GENERATED_PART = re.compile(r"<!-- `make pages` writes what follows -->.*?<!-- end of what", flags=re.DOTALL)
_NOT_PROSE = re.compile(r"<!--.*?-->|^ *(`{3,}|~{3,}).*?^ *\1", flags=re.DOTALL | re.MULTILINE)
_LINK_ALONE = re.compile(r"\s*([-*] |\d+\. )?(\S+|!?\[[^]]*\]\(\S*\)\S*)")


def wide_prose(text: str) -> list[int]:
    """Numbers of a Markdown page's lines of prose that are wider than 100 columns."""
    if "`make pages` writes this page" in text:
        return []
    for part in (_GENERATED_PART, _NOT_PROSE):
        text = part.sub(lambda match: "\n" * match[0].count("\n"), text)
    return [
        number
        for number, line in enumerate(text.splitlines(), 1)
        if len(line) > WIDTH and not line.lstrip().startswith("|") and not _LINK_ALONE.fullmatch(line)
    ]


def test_prose_of_pages_fits_its_columns() -> None:
    found = [
        f"{path}:{number}"
        for path, text in tracked()
        if path.suffix == ".md" and path.parts[:2] != ("tests", "golden")
        for number in wide_prose(text)
    ]
    assert found == []


LONG = "word " * 21


@pytest.mark.parametrize("text", [LONG, f"- {LONG}", f"```sh\nls\n```\n{LONG}", f"<!-- a -->\n{LONG}", f"# {LONG}"])
def test_wide_prose_is_noticed(text: str) -> None:
    assert wide_prose(text) == [text.count("\n") + 1]


@pytest.mark.parametrize(
    "text",
    [
        f"| {LONG} |", f"```sh\n{LONG}\n```", f"   ```text\n{LONG}\n   ```", f"<!-- {LONG} -->",
        f"![{LONG}](pictures/fleet.svg)", f"- [{LONG}](page.md).", f"link](https://{'x' * 100}).",
        f"`make pages` writes this page.\n{LONG}",
        f"<!-- `make pages` writes what follows -->\n{LONG}\n<!-- end of what `make pages` writes -->",
    ],
)  # fmt: skip
def test_tables_blocks_comments_and_links_alone_may_be_wide(text: str) -> None:
    assert wide_prose(text) == []


def british(text: str) -> list[str]:
    """British forms in a text, in small letters, without the words of others."""
    for words in OTHERS_WORDS:
        text = text.replace(words, "")
    return [match[0] for match in BRITISH.finditer(text.lower())]


def test_the_spelling_is_american() -> None:
    found = [f"{path}: {word}" for path, text in tracked() for word in british(f"{path}\n{text}")]
    assert found == []


@pytest.mark.parametrize(
    "text",
    ["the behaviour of", "LABELLED = 1", "def test_a_cancelled_run", "Organisation", "fulfils", "is modelled on"],
)
def test_british_spelling_is_noticed(text: str) -> None:
    assert british(text) != []


@pytest.mark.parametrize(
    "text",
    ["cancellation", "CancelledError", "organism", "realistic", "optimistic", "programmed", "specialist", "fulfilled"],
)
def test_american_spelling_passes(text: str) -> None:
    assert british(text) == []
