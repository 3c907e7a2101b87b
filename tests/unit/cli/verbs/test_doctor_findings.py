"""findings.yaml has every finding that a check of berth doctor names, and no other."""

import re
from pathlib import Path
from string import Formatter

from berth.cli.verbs.doctor import findings


def test_every_finding_has_its_text_and_every_text_its_check() -> None:
    folder = Path(findings.__file__).parent
    code = "".join(file.read_text(encoding="utf-8") for file in folder.glob("*.py"))
    keys = {key for keys in findings.TEXTS.values() for key in keys}
    calls = re.findall(r'\.found\(\s*"([\w-]+)"(?: if .+? else "([\w-]+)")?', code)
    assert {key for call in calls for key in call if key} - keys == set()
    of_programs = {f"no-{name}" for name in ("gke-gcloud-auth-plugin", "gcloud", "kubectl")}
    assert keys - of_programs - set(re.findall(r'"([\w-]+)"', code)) == set()


def test_a_finding_has_one_state_and_perhaps_a_remedy() -> None:
    for keys in findings.TEXTS.values():
        for parts in keys.values():
            assert len(parts.keys() & {"fine", "warning", "missing", "unchecked"}) == 1
            assert parts.keys() <= {"fine", "warning", "missing", "unchecked", "remedy"}
            assert not ("fine" in parts and "remedy" in parts)
            for text in parts.values():
                assert all(
                    field is None or field.isidentifier()
                    for _, field, _, _ in Formatter().parse(text)
                )
