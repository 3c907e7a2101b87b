"""The JSONPath of `pulumi.com/waitFor`: `jsonpath={.status.conditions[?(@.type=="Ready")].status}=True`.

Understood: keys with dots or in quoted brackets, indexes (also from the end), `*`, and filters that compare a key of an
item with a text, number or boolean (`==`, `!=`) or ask whether it is there. The strict braces of `kubectl get -o` are
asked for, as the real plugin asks for them.

Answers to (read): pulumi-kubernetes 4.29.0, provider/pkg/jsonpath, and Kubernetes' JSONPath:
    https://kubernetes.io/docs/reference/kubectl/jsonpath/
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from berth.lab.plugins.provider import ProviderError

_TOKEN = re.compile(
    r"""
      \.(?P<key>[A-Za-z_][\w-]*) | (?P<all>\.\*|\[\*\])
    | \[(?P<index>-?\d+)\] | \[(?P<quoted>'[^']*'|"[^"]*")\]
    | \[\?\s*\(?\s*@\.(?P<field>[\w.-]+)\s*(?:(?P<compare>==|!=)\s*(?P<value>'[^']*'|"[^"]*"|[\w.+-]+))?\s*\)?\s*\]
    """,
    re.VERBOSE,
)
_BRACES = re.compile(r"\{\s*(.*?)\s*\}")


@dataclass(frozen=True)
class Expression:
    """A path, and the text that its first value must be; without one, any value will do.

    Attributes:
        path: as given, with its braces.
        value: the wanted text, or nothing.
    """

    path: str
    value: str
    steps: tuple[re.Match[str], ...]

    def __str__(self) -> str:
        return f"{self.path}={self.value}" if self.value else self.path

    def matches(self, item: Any) -> tuple[bool, str]:
        """Whether the object is as wanted, and what to tell the user.

        Raises:
            ProviderError: a value is wanted, and the path leads to a list or a mapping.
        """
        values = [item]
        for step in self.steps:
            values = [found for value in values for found in _select(step, value)]
        if not values:
            return False, f"{self.path} selected nothing"
        if isinstance(values[0], dict | list):
            if self.value:
                raise ProviderError(f'"{self.path}" has a non-primitive value, which is never {self.value}')
            return True, f"Found {self}"
        text = _text(values[0])
        if not self.value or text == self.value:
            return True, f"Found {self}"
        return False, f'Waiting for {self} (found "{text}")'


def parse(text: str) -> Expression:
    """Read `{.path}` or `{.path}=value`.

    Raises:
        ProviderError: it is neither, or uses something that is not understood.
    """
    # A single `=` ends the path; `==` belongs to a filter.
    parts = re.split(r"(?<![=!])=(?!=)", text)
    if len(parts) > 2:  # noqa: PLR2004
        raise ProviderError(f"format should be {{.path}}=value or {{.path}}, got {json.dumps(text)}")
    path, value = parts[0], parts[1] if len(parts) > 1 else ""
    if len(parts) > 1 and not value:
        raise ProviderError(f"{path}= requires a value")
    if path.startswith("'") and path.endswith("'"):
        raise ProviderError(f"{path} should omit shell quotes")
    braces = _BRACES.fullmatch(path)
    if not braces:
        raise ProviderError(f"{path} should be wrapped in brackets {{ ... }}")
    rest = braces.group(1).removeprefix("$")
    steps = []
    while rest:
        step = _TOKEN.match(rest)
        if not step:
            raise ProviderError(f"parsing {json.dumps(path)}: cannot read {json.dumps(rest)}")
        steps.append(step)
        rest = rest[step.end() :]
    return Expression(path, value, tuple(steps))


def _select(step: re.Match[str], value: Any) -> list[Any]:
    key = step["key"] or (step["quoted"][1:-1] if step["quoted"] else None)
    if key is not None:
        return [value[key]] if isinstance(value, dict) and key in value else []
    if step["index"]:
        index = int(step["index"])
        return [value[index]] if isinstance(value, list) and -len(value) <= index < len(value) else []
    items = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    return items if step["all"] else [item for item in items if _passes(step, item)]


def _passes(step: re.Match[str], item: Any) -> bool:
    for key in step["field"].split("."):
        if not isinstance(item, dict) or key not in item:
            return step["compare"] == "!="
        item = item[key]
    if not step["compare"]:
        return True
    wanted = step["value"]
    wanted = wanted[1:-1] if wanted[0] in "'\"" else wanted
    return bool((_text(item) == wanted) == (step["compare"] == "=="))


def _text(value: Any) -> str:
    if value is None:
        return "<nil>"
    return str(value).lower() if isinstance(value, bool) else str(value)
