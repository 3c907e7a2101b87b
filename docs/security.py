"""Rights of identities in docs/security.md, as a lab's API server listed them."""

from collections.abc import Mapping
from pathlib import Path

import yaml

from berth.lab.home import CLONE
from docs.inserted import inserted

PAGE = Path(__file__).with_name("security.md")
RIGHTS = CLONE / "tests/golden/identities.yaml"
"""Resources by identity and verbs; `pytest tests/lab/test_identities.py --update-golden` writes
them."""


def page() -> str:
    """Return the page's text, with its rights as they have to be."""
    lists: Mapping[str, Mapping[str, list[str]]] = yaml.safe_load(
        RIGHTS.read_text(encoding="utf-8")
    )
    lines = ["| identity | verbs | resources |", "|---|---|---|"]
    for identity, by_verbs in lists.items():
        rows = [
            ("all" if verbs == "*" else verbs, f"`{'`, `'.join(resources)}`")
            for verbs, resources in by_verbs.items()
        ] or [("–", "–")]
        shown = [identity, *("" for _ in rows[1:])]
        lines += [
            f"| {name} | {verbs} | {on} |" for name, (verbs, on) in zip(shown, rows, strict=True)
        ]
    return inserted(PAGE.read_text(encoding="utf-8"), "\n".join(lines))
