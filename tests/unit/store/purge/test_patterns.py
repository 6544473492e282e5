"""Secrets are found in every encoding, and nothing else changes."""

from __future__ import annotations

import base64
import html
import json
import string
import time
import urllib.parse

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from moot.errors import UsageError
from moot.store.maintenance.purge.patterns import bounded
from moot.store.maintenance.purge.redactor import SHORTEST, Redactor
from moot.types.canonical import dumps, loads
from moot.types.maintenance import REDACTION_MARK, Secret

WORDS = st.text(st.characters(exclude_categories=("Cs",)), min_size=SHORTEST, max_size=30)
AROUND = st.text(" ,.()XYZ", max_size=20)


@given(WORDS, AROUND, AROUND, st.booleans(), st.integers(0, 3))
@example("abcdefgh\\", "", "", True, 2)
@example("abcdefgh\\\\", "", "", True, 3)
def test_strings_are_found_at_any_escaping_depth(secret: str, before: str, behind: str, ascii: bool, depth: int) -> None:
    assume(not any(piece in before + behind for piece in (secret,)))
    text = before + secret + behind
    for _ in range(depth):
        text = json.dumps(text, ensure_ascii=ascii)
    found = Redactor(Secret((secret,))).text(text)
    for _ in range(depth):
        found = json.loads(found)
    assert REDACTION_MARK in found
    if not set(secret) & set(REDACTION_MARK + before + behind):
        assert found == before + REDACTION_MARK + behind


@given(WORDS)
def test_strings_are_found_in_urls(secret: str) -> None:
    assert REDACTION_MARK in Redactor(Secret((secret,))).text(f"https://host/?q={urllib.parse.quote(secret, safe='')}&x=1")


@given(st.binary(max_size=40), st.text(string.ascii_letters + "äöü €", min_size=8, max_size=30), st.binary(max_size=40), st.booleans())
def test_strings_are_found_in_base64_and_the_rest_stays(before: bytes, secret: str, behind: bytes, url: bool) -> None:
    assume(secret.encode() not in before + behind)
    data = before + secret.encode() + behind
    encoded = (base64.urlsafe_b64encode(data) if url else base64.b64encode(data)).decode()
    found = Redactor(Secret((secret,))).text(f'{{"url":"data:text/plain;base64,{encoded}"}}')
    left = json.loads(found)["url"].removeprefix("data:text/plain;base64,")
    assert encoded not in found
    assert left == REDACTION_MARK or secret.encode() not in base64.b64decode(left)


def wrapped(data: bytes, width: int, end: str) -> str:
    encoded = base64.b64encode(data).decode()
    return end.join(encoded[at : at + width] for at in range(0, len(encoded), width))


BYTES = st.binary(min_size=30, max_size=120)
LINES = st.sampled_from(["\n", "\r\n", "\n    "])


@settings(max_examples=40)
@given(
    BYTES,
    st.text(string.ascii_letters + "äöü €", min_size=8, max_size=30),
    BYTES,
    st.sampled_from([40, 60, 64, 76]),
    LINES,
    st.integers(0, 2),
)
def test_strings_are_found_in_multiline_base64(before: bytes, secret: str, behind: bytes, width: int, end: str, depth: int) -> None:
    assume(secret.encode() not in before + behind)
    text = f"Look:\n{wrapped(before + secret.encode() + behind, width, end)}\nthat is all"
    needles = Redactor(Secret((secret,)))
    for _ in range(depth):
        text = json.dumps(text)
    assert needles.spans(text)
    found = needles.text(text)
    assert not needles.spans(found)
    for _ in range(depth):
        found = json.loads(found)
    head, middle, tail = found.partition("Look:\n")[2].partition("\nthat is all")
    assert (tail, middle) == ("", "\nthat is all")
    assert REDACTION_MARK in head or secret.encode() not in base64.b64decode(head)


@pytest.mark.parametrize("width", [0, 64])
@pytest.mark.parametrize("depth", [0, 1, 2])
def test_patterns_are_found_in_base64(width: int, depth: int) -> None:
    data = b"x" * 50 + b" key: sk-abcdefghij, and that is all of it"
    text = wrapped(data, width or 1000, "\n")
    for _ in range(depth):
        text = json.dumps(text)
    needles = Redactor(Secret(patterns=("sk-[a-z]{8,20}",)))
    found = needles.text(text)
    for _ in range(depth):
        found = json.loads(found)
    assert base64.b64decode(found) == data.replace(b"sk-abcdefghij", REDACTION_MARK.encode())
    assert needles.spans(text)


def test_patterns_ignore_ids_and_long_words() -> None:
    needles = Redactor(Secret(patterns=("[^A-Za-z0-9_-]{2,9}",)))
    text = "toolu_01A09q90qw90lq917835lq9-0193a4c5-1111-7222-8333-0123456789ab-internationalization"
    assert needles.text(text) == text


@given(
    st.text(string.ascii_letters + "<>&'\"äß€/ 😀", min_size=SHORTEST, max_size=30),
    st.sampled_from(["named", "decimal", "hexadecimal"]),
    st.booleans(),
)
def test_strings_are_found_in_html(secret: str, how: str, in_json: bool) -> None:
    text = {
        "named": html.escape(secret),
        "decimal": "".join(f"&#{ord(letter)};" for letter in secret),
        "hexadecimal": "".join(f"&#x{ord(letter):X};" for letter in secret),
    }[how]
    text = json.dumps(text).replace("&", "\\u0026") if in_json else text
    found = Redactor(Secret((secret,))).text(text)
    assert (json.loads(found) if in_json else found) == REDACTION_MARK


@given(WORDS, st.text(st.characters(exclude_categories=("Cs",)), max_size=200))
def test_text_without_a_match_is_unchanged(secret: str, text: str) -> None:
    assume(secret not in text and not Redactor(Secret((secret,))).spans(text))
    assert Redactor(Secret((secret,))).text(text) == text


def test_json_stays_json_and_numbers_are_found_too() -> None:
    needles = Redactor(Secret(("4242424242", 'say "please"')))
    value = {"card": 4242424242, 'say "please"': ["now", 'say "please", now'], "n": 42.5, "yes": True, "no": None}
    assert loads(needles.json(dumps(value))) == {
        "card": REDACTION_MARK,
        REDACTION_MARK: ["now", f"{REDACTION_MARK}, now"],
        "n": 42.5,
        "yes": True,
        "no": None,
    }


def test_a_part_keeps_its_type() -> None:
    needles = Redactor(Secret(("text", "done")))
    parts = [{"type": "text", "text": "some text, done", "state": "done"}]
    assert loads(needles.json(dumps(parts), structured=True)) == [
        {"type": "text", "text": f"some {REDACTION_MARK}, {REDACTION_MARK}", "state": "done"}
    ]


@pytest.mark.parametrize("secret", ["", "abc"])
def test_too_short_strings_are_refused(secret: str) -> None:
    with pytest.raises(UsageError, match="would match everywhere"):
        Redactor(Secret((secret,)))


@pytest.mark.parametrize(
    "pattern", [r"sk-[A-Za-z0-9]{20,64}", r"\d{4}(?: |-)\d{4}", "colou?r", r"[\w.]{1,64}@[\w.]{1,64}", r"a\+b|c", "[]+*]{2,3}x"]
)
def test_bounded_patterns_are_accepted(pattern: str) -> None:
    assert bounded(pattern) == pattern


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"a+", "no bound"),
        (r"a*", "no bound"),
        (r"a{3,}", "no bound"),
        (r"(ab){1,5}", "group is repeated"),
        (r"(?:a{1,9})?", "group is repeated"),
        (r"a{1,3}{1,3}", "multiple repeat|repetition is repeated"),
        (r"(a)\1", "backreference"),
        (r"(?=secret)", "allowed"),
        (r"(?i)secret", "allowed"),
        (r"a?", "matches the empty string"),
        (r"a{0,200}a{0,200}a{0,200}", "too many ways"),
        (r"(", "unterminated|missing"),
        ("x" * 201, "longer than 200"),
    ],
)
def test_unbounded_patterns_are_refused(pattern: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        bounded(pattern)


def cpu(needles: Redactor, text: str) -> float:
    """Return the CPU time of redacting a text, in seconds."""
    began = time.process_time()
    needles.text(text)
    return time.process_time() - began


@pytest.mark.parametrize("piece", ["A" * 40 + "\n", "A", "\\", "\\u002b", "%2B", "A" * 31 + "\n", "&amp;", "Zmlu\n"])
def test_text_like_base64_takes_linear_time(piece: str) -> None:
    needles = Redactor(Secret(("a secret of some length",), ("b[a-z]{1,9}z",)))

    def took(size: int) -> float:
        return min(cpu(needles, piece * (size // len(piece)) + "!") for _ in range(3))

    took(2_000)
    assert took(80_000) < 40 * max(took(8_000), 0.001)


@pytest.mark.slow
def test_the_worst_accepted_pattern_takes_linear_time() -> None:
    needles = Redactor(Secret(patterns=("a{0,99}a{0,99}b",)))

    def took(size: int) -> float:
        return min(cpu(needles, "a" * size) for _ in range(3))

    took(2_000)
    assert took(40_000) < 40 * max(took(4_000), 0.001)


def test_long_runs_of_backslashes_are_searched_fast() -> None:
    needles = Redactor(Secret(("\\" * 30 + "x",)))
    began = time.process_time()
    assert needles.text("\\" * 20_000) == "\\" * 20_000
    assert time.process_time() - began < 20
