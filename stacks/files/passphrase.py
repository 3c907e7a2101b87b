"""Passphrase of the lab, which everybody knows, and the refusal of it anywhere else.

Pulumi keeps the salt of a stack's passphrase in the stack's file. A file that was copied from the
lab, or a shell with the lab's variables, would encrypt the secrets of a real environment for
everybody.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from berth.components.core.errors import BadInputError

PUBLIC = "lab"
"""The lab's passphrase: its state holds no secret."""

LAB_SIGN = "berth-lab"
"""File in the lab's folder, which has the folder of its Pulumi backend beside it."""

SALTS = frozenset(
    [
        "v1:B4EWLMst5RE=:v1:mh+deKAEGo1B9hVA:WAEa7mx5+WAfet3A8juSzEQmJkAV+w==",
        "v1:RflvDz3tp90=:v1:TSSIl6W+hhFboC2g:kUYrnEO+wlwrdOaR9nBJdFqL9d6B0g==",
        "v1:pWllqAc8yEc=:v1:Ru+Zh53rdpbmFBre:/tuB5fMrhEmRzIMR3AoYFCI6gAQVKw==",
        # Shipped with stacks dev and prod until version 0.1.
        "v1:8qV86LB4/sI=:v1:VrHPyplgmzNn1UuN:/xkXUpputVB85JYZckQZHu5usHlrVg==",
        "v1:wgibqRan4mA=:v1:AEk8CW7gN4fFs9Fg:Ghu4Y5x/dyXJghxghycLq6wiQHvebA==",
    ]
)
"""Salts of the lab's passphrase in files that berth ships."""

_SALT = re.compile(r"^encryptionsalt:[ \t]*[\"']?(\S+?)[\"']?[ \t]*$", re.MULTILINE)


class PublicPassphraseError(BadInputError):
    """Secrets of a stack that would be encrypted by the lab's passphrase outside of the lab."""


def refuse_public(stack: str, text: str, environment: Mapping[str, str]) -> None:
    """Refuse the lab's passphrase for a stack whose state is not the lab's.

    Raises:
        PublicPassphraseError: everybody could read the stack's secrets.
    """
    salt = _SALT.search(text)
    is_public_salt = salt is not None and salt[1] in SALTS
    if (is_public_salt or given_passphrase(environment) == PUBLIC) and not in_lab(environment):
        what = (
            "the salt in its file is that of the lab's passphrase"
            if is_public_salt
            else "the passphrase is the lab's"
        )
        raise PublicPassphraseError(
            f"stack {stack} would encrypt its secrets by a passphrase that everybody knows: {what},"
            " and its state is not the lab's. Remove the line encryptionsalt from the stack's"
            " file, set a passphrase of your own or use a key (pulumi stack"
            f" change-secrets-provider -s {stack} gcpkms://…), and run the command again"
        )


def given_passphrase(environment: Mapping[str, str]) -> str | None:
    """Return the passphrase that Pulumi finds; None if it would ask or cannot read the file."""
    if "PULUMI_CONFIG_PASSPHRASE" in environment:
        return environment["PULUMI_CONFIG_PASSPHRASE"]
    file = environment.get("PULUMI_CONFIG_PASSPHRASE_FILE")
    try:
        return Path(file).read_text(encoding="utf-8").strip() if file else None
    except OSError:
        return None


def in_lab(environment: Mapping[str, str]) -> bool:
    """Return whether Pulumi's state is in a lab's folder."""
    url = urlsplit(environment.get("PULUMI_BACKEND_URL", ""))
    return url.scheme == "file" and (Path(unquote(url.path)).parent / LAB_SIGN).is_file()
