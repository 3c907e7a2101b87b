"""Recognition of secrets in plain text, by names and shapes that people write."""

import pytest

from berth.components.core.plain_secrets import SECRET, masked, masked_text, plain_secrets


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("HF_TOKEN", "anything"),
        ("AWS_SECRET_ACCESS_KEY", "abc/def+ghi"),
        ("DB_PASSWORD", "hunter2"),
        ("redisPassword", "hunter2"),
        ("LEVEL", "hf_abcdefghijklmnopqrstuvwxyz"),
        ("URL", "redis://user:hunter2@cache:6379"),
        ("entrypoint", "WANDB_API_KEY=0123456789abcdef python train.py"),
        ("entrypoint", "python train.py --api-key 0123456789abcdef"),
        ("runtimeEnvYAML", "env_vars:\n  HF_TOKEN: abcdef\n"),
    ],
)
def test_secrets_are_found_and_masked(name: str, value: str) -> None:
    assert [secret.path for secret in plain_secrets({"env": {name: value}})] == [("env", name)]
    assert SECRET in masked({name: value})[name]
    assert SECRET in masked([{"name": name, "value": value}])[0]["value"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "false"),
        ("TOKENIZER", "meta-llama/Llama-3"),
        ("MAX_NEW_TOKENS", "4096"),
        ("RAY_AUTH_MODE", "token"),
        ("API_KEY_FILE", "/run/secrets/key"),
        ("GOOGLE_APPLICATION_CREDENTIALS", "/var/run/key.json"),
        ("HF_TOKEN", "$(HF_TOKEN)"),
        ("entrypoint", "HF_TOKEN=$TOKEN python train.py"),
        ("secretsEncryptionKey", "projects/p/locations/l/keyRings/r/cryptoKeys/k"),
        ("secretName", "alice"),
        ("key", "token"),
        ("image", "rayproject/ray:2.60.0-py311-cu128"),
    ],
)
def test_what_only_looks_like_a_secret_is_shown(name: str, value: str) -> None:
    assert list(plain_secrets({"env": {name: value}})) == []
    assert masked({name: value}) == {name: value}


def test_a_masked_text_is_masked_once() -> None:
    once = masked_text("TOKEN=abcdefgh, password: hunter2, Bearer abcdefghij")
    assert "abcdefgh" not in once
    assert "hunter2" not in once
    assert masked_text(once) == once
