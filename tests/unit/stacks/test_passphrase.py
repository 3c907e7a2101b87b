"""The lab's passphrase, which everybody knows, encrypts nothing outside of the lab."""

from pathlib import Path

import pytest

from berth.cli.verbs.doctor.state import passphrase_fits
from berth.lab.home import SIGN, LabHome
from berth.stacks.files.passphrase import (
    LAB_SIGN,
    PUBLIC,
    SALTS,
    PublicPassphraseError,
    refuse_public,
)

CLONE = Path(__file__).resolve().parents[3]
SALT = min(SALTS)
OWN = "v1:AAAAAAAAAAA=:v1:AAAAAAAAAAAAAAAA:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=="
BUCKET = {"PULUMI_BACKEND_URL": "gs://berth-state"}


@pytest.mark.parametrize(
    ("text", "environment", "refused"),
    [
        pytest.param(
            f"encryptionsalt: {SALT}\n", BUCKET, "the salt in its file", id="a shipped salt"
        ),
        pytest.param(
            f'config: {{}}\nencryptionsalt: "{SALT}"',
            {},
            "the salt in its file",
            id="a quoted salt",
        ),
        pytest.param(
            "",
            BUCKET | {"PULUMI_CONFIG_PASSPHRASE": PUBLIC},
            "the passphrase is",
            id="the lab's variable",
        ),
        pytest.param(
            f"encryptionsalt: {OWN}",
            BUCKET | {"PULUMI_CONFIG_PASSPHRASE": "own"},
            "",
            id="an own one",
        ),
        pytest.param("config: {}", {}, "", id="Pulumi Cloud"),
        pytest.param(f"# encryptionsalt: {SALT}", BUCKET, "", id="a comment"),
    ],
)
def test_a_public_passphrase_is_refused(
    text: str, environment: dict[str, str], refused: str
) -> None:
    if not refused:
        refuse_public("prod", text, environment)
        return
    with pytest.raises(PublicPassphraseError, match=f"everybody knows: {refused}"):
        refuse_public("prod", text, environment)


def test_the_lab_has_it_and_a_file_backend_elsewhere_does_not(tmp_path: Path) -> None:
    home = LabHome(tmp_path / "with space")
    home.backend.mkdir(parents=True)
    environment = {"PULUMI_BACKEND_URL": home.backend.as_uri(), "PULUMI_CONFIG_PASSPHRASE": PUBLIC}
    with pytest.raises(PublicPassphraseError):
        refuse_public("prod", "", environment)
    (home.root / SIGN).touch()
    refuse_public("prod", f"encryptionsalt: {SALT}", environment)
    assert LAB_SIGN == SIGN


def test_a_file_may_have_the_passphrase(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(f"{PUBLIC}\n")
    with pytest.raises(PublicPassphraseError):
        refuse_public("prod", "", {"PULUMI_CONFIG_PASSPHRASE_FILE": str(tmp_path / "secret")})


def test_shipped_files_have_no_salt_but_those_of_the_labs_own_stacks() -> None:
    folders = ("stacks", "cli/template/stacks", "lab")
    found = {
        path.name: line.partition(": ")[2]
        for folder in folders
        for path in sorted((CLONE / folder).rglob("*.yaml"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("encryptionsalt:")
    }
    assert found.keys() == {"Pulumi.lab.yaml", "Pulumi.dana.yaml", "Pulumi.real.yaml"}
    assert set(found.values()) <= SALTS
    assert all(passphrase_fits(PUBLIC, salt) for salt in SALTS)
