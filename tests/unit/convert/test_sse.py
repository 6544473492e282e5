from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.convert.dialects.frames import Frames
from moot.errors import ProviderError

PIECES = [
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\r\n\r\n",
    b"data: x",
    b": ping",
    b"{",
    b"<p>",
    b" ",
    b"\xef\xbb\xbf",
    b"\xff",
    b"\xe2\x82",
    b"\x00",
]

bodies = st.lists(st.sampled_from(PIECES), max_size=40).map(b"".join) | st.binary(max_size=60)


def split(body: bytes, cuts: list[int]) -> list[bytes]:
    edges = sorted({0, len(body), *(cut % (len(body) + 1) for cut in cuts)})
    return [body[a:b] for a, b in pairwise(edges)]


def raws(reads: list[bytes]) -> list[bytes]:
    frames = Frames()
    found = [frame for read in reads for frame in frames.feed(read)]
    tail = frames.rest()
    return found if tail is None else [*found, tail]


@given(bodies, st.lists(st.integers(0, 1000), max_size=20))
def test_any_split_of_the_bytes_gives_the_same_raw_events(body: bytes, cuts: list[int]) -> None:
    assert raws(split(body, cuts)) == raws([body[i : i + 1] for i in range(len(body))]) == raws([body] if body else [])


@given(bodies, st.lists(st.integers(0, 1000), max_size=20))
def test_raws_joined_are_the_body(body: bytes, cuts: list[int]) -> None:
    assert b"".join(raws(split(body, cuts))) == body


@given(bodies)
def test_every_frame_but_the_last_ends_with_its_first_blank_line(body: bytes) -> None:
    for frame in raws([body])[:-1]:
        assert re.fullmatch(rb"(?:(?!(?:\r\n|\n|\r(?!\n)){2}).)*(?:\r\n|\n|\r(?!\n)){2}", frame, re.DOTALL), frame


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", []),
        (b"data: a\n\ndata: b\n\n", [b"data: a\n\n", b"data: b\n\n"]),
        (b"data: a\r\n\r\ndata: b\r\n\r\n", [b"data: a\r\n\r\n", b"data: b\r\n\r\n"]),
        (b"data: a\r\rdata: b\r\r", [b"data: a\r\r", b"data: b\r\r"]),
        (b"event: x\ndata: a\n\ndata: cut", [b"event: x\ndata: a\n\n", b"data: cut"]),
        (b"\xef\xbb\xbfdata: a\n\n", [b"\xef\xbb\xbfdata: a\n\n"]),
        (b": ping\n\n: ping\n\n", [b": ping\n\n", b": ping\n\n"]),
        (b"\n\n\ndata: a\n\n", [b"\n\n", b"\ndata: a\n\n"]),
        (b"\n\n\n", [b"\n\n\n"]),
        (b'\n{"a":\n\n1}\n\n', [b'\n{"a":\n\n1}\n\n']),
        (b"<html>\n\n</html>", [b"<html>\n\n</html>"]),
        (b"Internal error", [b"Internal error"]),
    ],
)
def test_bodies_are_split_according_to_the_standard(body: bytes, expected: list[bytes]) -> None:
    assert raws([body]) == expected


def test_frames_are_yielded_as_soon_as_they_are_complete() -> None:
    frames = Frames()
    assert frames.feed(b"data: a\n") == ()
    assert frames.feed(b"\n") == (b"data: a\n\n",)
    assert frames.feed(b"data: b\r\n\r") == ()
    assert frames.feed(b"\n") == (b"data: b\r\n\r\n",)
    assert frames.rest() is None


def test_five_megabytes_on_one_line_are_one_frame() -> None:
    line = b"data: " + b"x" * 5_000_000 + b"\n\n"
    assert raws([line[i : i + 65_536] for i in range(0, len(line), 65_536)]) == [line]


@pytest.mark.parametrize("start", [b"data: ", b"{", b"\n"])
def test_frame_over_its_limit_is_a_protocol_error_at_once(start: bytes) -> None:
    frames = Frames(max_frame=100)
    frames.feed(start)
    with pytest.raises(ProviderError, match="frame of the response is larger than 100 bytes") as caught:
        for _ in range(20):
            frames.feed(b"\n" if start == b"\n" else b"x" * 10)
        for _ in range(200):
            frames.feed(b"\n")
    assert caught.value.kind == "protocol"
    assert caught.value.raw.startswith(start)


def test_a_frame_over_its_limit_in_one_read_is_rejected() -> None:
    with pytest.raises(ProviderError, match="frame of the response is larger"):
        Frames(max_frame=100).feed(b"data: a\n\n" + b"x" * 200 + b"\n\n")


def test_endless_body_of_small_frames_is_stopped() -> None:
    frames = Frames(max_body=1000)
    with pytest.raises(ProviderError, match="body of the response is larger than 1,000 bytes"):
        for _ in range(1000):
            frames.feed(b": ping\n\n")
