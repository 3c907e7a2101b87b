"""Campaign of examples that goes on after a finding, and reports one example of each kind."""

import os
import random
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from tests.fuzz.judge import FindingError

EXAMPLES = "FUZZ_EXAMPLES"
SEED = "FUZZ_SEED"
"""Variables with the number of examples of a campaign, and its seed."""

_FRAME = re.compile(r'File "(\S+)", line \d+, in (\w+)')


@dataclass
class Campaign:
    """Outcomes of examples: how many were accepted, and the shortest example of each finding."""

    folder: Path
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: dict[str, tuple[str, str | bytes]] = field(default_factory=dict)

    def run(
        self,
        examples: st.SearchStrategy[Any],
        judge: Callable[..., bool],
        *,
        most: int,
        chosen: int | None,
    ) -> None:
        """Judge examples; the same ones each time without a seed."""

        @settings(
            max_examples=most,
            derandomize=chosen is None,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(examples)
        def one(example: tuple[Any, ...]) -> None:
            try:
                self.outcomes["accepted" if judge(*example) else "refused"] += 1
            except FindingError as error:
                self._found(error, example[-1])

        (one if chosen is None else seed(chosen)(one))()

    def _found(self, error: FindingError, text: str | bytes) -> None:
        frames = _FRAME.findall(str(error))
        last = str(error).strip().splitlines()[-1]
        where = " ".join(frames[-1]) if frames else re.sub(r"'[^']*'|\d+", "…", last)[:120]
        kind = f"{error.kind} {where}"
        self.outcomes[error.kind] += 1
        if kind not in self.findings or len(text) < len(self.findings[kind][1]):
            self.findings[kind] = (str(error), text)

    def report(self) -> str:
        """Write one file for each finding; return figures, and the findings with their files."""
        lines = [", ".join(f"{name}: {count}" for name, count in sorted(self.outcomes.items()))]
        for number, (kind, (error, text)) in enumerate(sorted(self.findings.items())):
            file = self.folder / f"finding-{number}.yaml"
            file.write_bytes(text if isinstance(text, bytes) else text.encode())
            lines += ["", f"{kind} ({file})", *error.strip().splitlines()[-12:]]
            lines += [
                "--",
                text.decode(errors="backslashreplace") if isinstance(text, bytes) else text,
            ]
        return "\n".join(lines)


def size(default: int) -> int:
    """Return the number of examples."""
    return int(os.environ.get(EXAMPLES, default))


def chosen_seed() -> int:
    """Return the seed: the one that is asked for, else a new one, which the report names."""
    return int(os.environ.get(SEED) or random.SystemRandom().randrange(10**6))
