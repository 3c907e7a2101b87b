"""Tables of cases in YAML files beside the tests that run them."""

import re
from pathlib import Path
from typing import Any

from berth.components.core import fast_yaml


def table(test: str, name: str) -> Any:
    """Content of the file `name` beside a test, which gives its own `__file__`."""
    return fast_yaml.load_file(Path(test).with_name(name))


def over(below: Any, above: Any) -> Any:
    """`above` laid over `below`: null takes a key out, and a number leads into a list."""
    if not (isinstance(above, dict) and isinstance(below, dict | list)):
        return above
    new = dict(below) if isinstance(below, dict) else dict(enumerate(below))
    for key, value in above.items():
        if value is None:
            new.pop(key, None)
        else:
            new[key] = over(new.get(key), value)
    return new if isinstance(below, dict) else list(new.values())


def says(text: str, words: str) -> bool:
    """Whether a text is what a case expects, in which `…` stands for anything."""
    return re.fullmatch(".*".join(map(re.escape, words.split("…"))), text, re.DOTALL) is not None


def holds(value: Any, part: Any) -> bool:
    """Whether a value has the part of it that a case names: keys of mappings (null: none of that
    name), and all items of lists.
    """
    if isinstance(part, dict):
        return isinstance(value, dict) and all(
            holds(value.get(key), inner) for key, inner in part.items()
        )
    if isinstance(part, list):
        return isinstance(value, list) and len(value) == len(part) and all(map(holds, value, part))
    return bool(value == part)
