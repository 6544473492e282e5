from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.providers.http import Mask
from moot.providers.refusals import refusal_error, retry_after

KINDS = {"auth", "rate_limit", "overloaded", "transport", "timeout", "invalid_request", "context_too_long", "content", "protocol", "failed"}


def openai(message: str, code: str = "", kind: str = "") -> bytes:
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": code or None}}).encode()


@pytest.mark.parametrize(
    ("status", "body", "kind", "retryable"),
    [
        (400, openai("bad field"), "invalid_request", False),
        (400, openai("too long", "context_length_exceeded"), "context_too_long", False),
        (400, openai("This model's maximum context length is 8192 tokens."), "context_too_long", False),
        (
            400,
            b'{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens"}}',
            "context_too_long",
            False,
        ),
        (400, b'{"error":{"code":400,"message":"the request exceeds the available context size"}}', "context_too_long", False),
        (413, openai("request too large"), "invalid_request", False),
        (400, openai("blocked", "content_filter"), "content", False),
        (403, openai("flagged by moderation"), "content", False),
        (401, openai("context window of your key"), "auth", False),
        (402, openai("Insufficient Balance"), "rate_limit", False),
        (400, openai("Your credit balance is too low"), "rate_limit", False),
        (400, openai("unknown field billing_address"), "invalid_request", False),
        (403, b"", "auth", False),
        (404, b"<html>", "invalid_request", False),
        (408, b"", "timeout", True),
        (409, b"", "overloaded", True),
        (429, b"", "rate_limit", True),
        (429, openai("You exceeded your current quota", "insufficient_quota"), "rate_limit", False),
        (500, b"oops", "overloaded", True),
        (503, b"", "overloaded", True),
        (504, b"", "timeout", True),
        (507, b"", "overloaded", True),
        (529, b'{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}', "overloaded", True),
        (301, b"", "protocol", False),
    ],
)
def test_status_and_body_determine_the_kind_of_refusal(status: int, body: bytes, kind: str, retryable: bool) -> None:
    error = refusal_error("acme", status, {}, body)
    assert (error.kind, error.retryable, error.status, error.raw) == (kind, retryable, status, body)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"error": {"message": "no"}}', "no"),
        (b'{"error": "model not found"}', "model not found"),
        (b'{"message": "no", "code": 3}', "no"),
        (b'{"detail": [{"msg": "field required"}]}', "field required"),
        (b'[{"error": {"message": "no", "status": "INVALID"}}]', "no"),
        (b'\xef\xbb\xbf{"error": {"message": "no"}}', "no"),
        (b'{"error": {"message": "two\\n  lines"}}', "two lines"),
        (b"<html>gone</html>", "'<html>gone</html>'"),
        (b"", "no error message"),
    ],
)
def test_the_vendors_message_is_repeated(body: bytes, words: str) -> None:
    assert words in refusal_error("acme", 400, {}, body).message


def test_should_retry_of_the_endpoint_decides() -> None:
    assert refusal_error("acme", 400, {"x-should-retry": "true"}, b"").retryable
    assert not refusal_error("acme", 503, {"x-should-retry": "false"}, b"").retryable


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "1000000000"}, 1e9),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "x", "retry-after": "2"}, 2.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:30 GMT", "date": "Wed, 21 Oct 2026 07:28:00 GMT"}, 30.0),
        ({"retry-after": "Wed, 21 Oct 2026 07:28:00 GMT", "date": "Wed, 21 Oct 2026 07:28:30 GMT"}, 0.0),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
        ({"retry-after": "Wed, 99 Oct 2015 07:28:00 GMT"}, None),
    ],
)
def test_every_form_of_retry_after_is_converted_to_seconds(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


texts = st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["error", "message", "code", "type", "detail"]) | texts, inner)
    ),
    max_leaves=8,
)


@given(
    st.integers(300, 999).filter(lambda status: status >= 300),
    st.dictionaries(st.sampled_from(["retry-after", "retry-after-ms", "date", "x-should-retry"]), texts),
    st.binary(max_size=60) | values.map(lambda value: json.dumps(value).encode()),
)
def test_every_error_response_has_a_message(status: int, headers: dict[str, str], body: bytes) -> None:
    error = refusal_error("acme", status, headers, body)
    assert error.kind in KINDS
    assert error.retry_after is None or error.retry_after >= 0
    assert len(error.message) < 700


def test_the_mask_hides_keys_and_leaves_short_words_unchanged() -> None:
    mask = Mask("sk-0123456789", {"X-Api-Key": "Bearer other-secret", "HTTP-Referer": "https://example.org"})
    assert mask.text("key sk-0123456789, other-secret, https://example.org") == "key *************, ************, https://example.org"
    assert Mask("none", {}).text("none of it") == "none of it"
    frames = (b"data: a\n\n", b"data: sk-0123456789\n\n")
    assert mask.frames(frames) == (b"data: a\n\n", b"data: *************\n\n")
    assert mask.frames(frames[:1]) is not None


@given(st.text(st.characters(exclude_categories=("C", "Z")), min_size=8, max_size=20), st.text(), st.text())
def test_masked_text_never_contains_the_key(key: str, before: str, after: str) -> None:
    if "*" in key or key.startswith("Bearer"):
        return
    assert key not in Mask(key, {}).text(f"{before}{key}{after}")
