import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.guard.secrets import HIDDEN, mask, redact

A = "abcdefghijklmnopqrstuvwxyz0123456789ABCDEFGH"
CANARIES = [
    f"sk-{A}",
    f"sk-ant-api03-{A}",
    f"sk-proj-{A}_-x",
    f"sk-or-v1-{A}",
    f"sk_live_{A}",
    f"ghp_{A}",
    f"github_pat_{A}",
    f"glpat-{A}",
    "AKIAIOSFODNN7EXAMPLE",
    f"xoxb-123456789012-{A}",
    f"AIza{A}",
    f"ya29.{A}",
    f"hf_{A}",
    f"gsk_{A}",
    f"xai-{A}",
    f"tvly-{A}",
    f"npm_{A}",
    f"pypi-{A}",
    f"SG.{A}.{A}",
    "123456789:AAabcdefghijklmnopqrstuvwxyz0123456",
    f"eyJhbGciOiJIUzI1NiJ9.{A}.{A}",
    f"-----BEGIN RSA PRIVATE KEY-----\n{A}\n{A}\n-----END RSA PRIVATE KEY-----",
    f"-----BEGIN OPENSSH PRIVATE KEY-----\n{A}",
]
PLACES = ["{}", "key {} behind", '"{}"', "x={},", "('{}')", "https://h/?k={}&x=1", "\n{}\n", "error: {}: bad"]


@pytest.mark.parametrize("canary", CANARIES)
def test_known_key_formats_are_redacted_everywhere(canary: str):
    for place in PLACES:
        assert A[:20] not in redact(place.format(canary))
        assert canary not in redact(place.format(canary))


@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Authorization: Bearer abcdefgh12345", f"Authorization: Bearer {HIDDEN}"),
        ("Authorization: Basic dXNlcjpwYXNz", f"Authorization: Basic {HIDDEN}"),
        ("postgres://me:hunter22@db/x", f"postgres://{HIDDEN}@db/x"),
        ("https://token@host/x", f"https://{HIDDEN}@host/x"),
        ("api_key=hunter2222&x=1", f"api_key={HIDDEN}&x=1"),
        ('{"x-api-key": "hunter2222"}', f'{{"x-api-key": "{HIDDEN}"}}'),
        ("MY_DB_PASSWORD='hunter2222'", f"MY_DB_PASSWORD='{HIDDEN}'"),
        ("client_secret: hunter2222", f"client_secret: {HIDDEN}"),
    ],
)
def test_named_secrets_are_redacted(text: str, redacted: str):
    assert redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        "no provider named 'antropic'; known: anthropic, ollama",
        "max_tokens: 4096",
        "a skeleton-key of ask-me-anything",
        "see https://example.com/a@b and me@example.com",
        "550e8400-e29b-41d4-a716-446655440000",
        "the token was refused",
    ],
)
def test_ordinary_words_stay(text: str):
    assert redact(text) == text


def test_configured_secrets_are_redacted_in_any_format():
    assert redact("the server said: no such key correct horse!", ["correct horse", "no"]) == f"the server said: no such key {HIDDEN}!"
    assert redact("ab hunter22-long", ["hunter22", "hunter22-long"]) == f"ab {HIDDEN}"


@given(st.text(), st.sampled_from(CANARIES), st.text())
def test_no_surrounding_text_reveals_a_secret(before: str, canary: str, after: str):
    assert canary not in redact(f"{before} {canary} {after}")


@given(st.text())
def test_twice_is_once(text: str):
    assert redact(redact(text)) == redact(text)


@pytest.mark.parametrize(
    "piece", ["a", "sk-", "eyJ", "-----BEGIN PRIVATE KEY-----", "a-", "token ", "x://", "secret", "Bearer ", "1:", "api_key= "]
)
def test_the_time_is_linear(piece: str):
    begun = time.process_time()
    redact(piece * (300_000 // len(piece)))
    assert time.process_time() - begun < 30


def test_a_mask_shows_little_of_a_long_secret_and_nothing_of_a_short_one():
    assert mask(f"sk-ant-{A}") == "sk-a…GH"
    assert mask("hunter2") == mask("") == "…"
