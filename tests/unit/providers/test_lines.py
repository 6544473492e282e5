from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.errors import ProviderError
from moot.providers.shapes import Lines

BODIES = st.lists(st.sampled_from([b'{"a":1}', b"", b"\r", b"\xff{", b"x" * 40]) | st.binary(max_size=9), max_size=8).map(b"\n".join)


def cut(body: bytes, *sizes: int) -> list[bytes]:
    lines, raws, at = Lines(), list[bytes](), 0
    for size in sizes:
        raws += lines.feed(body[at : at + size])
        at += size
    raws += lines.feed(body[at:])
    rest = lines.rest()
    return [*raws, *([rest] if rest is not None else [])]


@given(BODIES, st.lists(st.integers(0, 9), max_size=9))
def test_any_split_of_the_reads_gives_the_same_lines(body: bytes, sizes: list[int]) -> None:
    whole = cut(body)
    assert cut(body, *sizes) == whole
    assert b"".join(whole) == body
    assert all(raw.count(b"\n") == 1 and raw.endswith(b"\n") for raw in whole[:-1])


@pytest.mark.parametrize("reads", [[b"x" * 11], [b"x" * 6, b"x" * 6], [b"x" * 11 + b"\n"]])
def test_line_over_the_limit_is_a_protocol_error(reads: list[bytes]) -> None:
    lines = Lines(max_frame=10)
    with pytest.raises(ProviderError, match="larger than 10 bytes") as caught:
        for data in reads:
            lines.feed(data)
    assert caught.value.kind == "protocol"
    assert lines.rest() is None


def test_body_over_the_limit_is_a_protocol_error() -> None:
    lines = Lines(max_body=10)
    lines.feed(b"{}\n{}\n{}\n")
    with pytest.raises(ProviderError, match="body of the response is larger"):
        lines.feed(b"{}\n")
