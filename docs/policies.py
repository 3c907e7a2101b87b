"""Table of docs/policies.md, written from the registry of policies."""

from pathlib import Path

from berth.stacks.policies.registry import POLICIES
from docs.inserted import inserted

PAGE = Path(__file__).with_name("policies.md")


def page() -> str:
    """Return the page's text, with its table as it has to be."""
    rows = [
        "| policy | environments | asks | without it | remedy |",
        "|---|---|---|---|---|",
        *(
            f"| `{policy.name}` | {'production' if policy.production else 'all'} | {policy.asks} |"
            f" {policy.why} | {policy.remedy[0].upper()}{policy.remedy[1:]}. |"
            for policy in POLICIES.values()
        ),
    ]
    return inserted(PAGE.read_text(encoding="utf-8"), "\n".join(rows))
