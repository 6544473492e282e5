from __future__ import annotations

from contextlib import aclosing
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.errors import ProviderError
from moot.providers.endpoints.servers import Custom
from moot.testing._server import Server
from moot.testing.chaos import ChaosServer, Fault
from moot.testing.replay import ReplayServer, split
from moot.testing.script import Reply
from moot.types.provider import ModelRequest

pytestmark = pytest.mark.anyio

REQUEST = ModelRequest(b'{"model": "m", "messages": []}', "m")
BODY = b"data: a\n\ndata: b\r\n\r\ndata: [DONE]\n\n"


async def heard(server: Server, times: int = 1, **settings: object) -> list[bytes | str]:
    """The body of each exchange, or the kind of error that ended it."""
    provider = Custom(server.provider(**settings))
    found: list[bytes | str] = []
    for _ in range(times):
        try:
            async with aclosing(provider.stream(REQUEST)) as reads:
                found.append(b"".join([raw async for read in reads for raw in read]))
        except ProviderError as error:
            found.append(error.kind)
    await provider.close()
    return found


@given(st.binary(max_size=40), st.lists(st.integers(1, 9), max_size=4))
def test_pieces_joined_are_the_body_and_have_their_sizes(body: bytes, sizes: list[int]) -> None:
    pieces = split(body, sizes)
    assert b"".join(pieces) == body
    assert all(len(piece) == sizes[number % len(sizes)] for number, piece in enumerate(pieces[:-1]))


@pytest.mark.parametrize("sizes", [[], [1], [3, 1, 7]])
async def test_recordings_are_sent_in_order_to_the_last_byte(sizes: list[int], tmp_path: Path) -> None:
    (tmp_path / "answer.sse").write_bytes(BODY)
    async with ReplayServer([tmp_path / "answer.sse", b"data: other\n\n"], sizes=sizes) as server:
        assert await heard(server, 3) == [BODY, b"data: other\n\n", "invalid_request"]


async def test_recordings_can_repeat() -> None:
    async with ReplayServer([b"data: a\n\n"], repeat=True, pause=0.001, sizes=[4]) as server:
        assert await heard(server, 3) == [b"data: a\n\n"] * 3


def test_size_below_one_is_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ReplayServer([b""], sizes=[4, 0])


@pytest.mark.parametrize("fault", get_args(Fault))
async def test_every_fault_ends_as_raws_or_a_typed_error(fault: Fault) -> None:
    async with ChaosServer(Reply(text="Hello there, whole world."), seed=3, only=[fault]) as server:
        (found,) = await heard(server, timeout=0.2)
    expected = {"cut": "transport", "status": "overloaded", "retry-after": "rate_limit", "silence": "timeout", "billion": "protocol"}
    assert found == expected.get(fault, found)
    assert isinstance(found, bytes) == (fault not in expected)
    assert server.faults[0].startswith({"retry-after": "status 429"}.get(fault, fault))


async def test_the_same_seed_gives_the_same_faults() -> None:
    kinds: tuple[Fault, ...] = ("cut", "end", "duplicate", "disorder", "html", "status", "garbage", "half")
    runs: list[tuple[list[bytes | str], list[str]]] = []
    for seed in (5, 5, 6):
        async with ChaosServer(Reply(text="Hello there."), seed=seed, share=0.7, only=kinds) as server:
            runs.append((await heard(server, 12), server.faults))
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]
    assert "none" in runs[0][1]


async def test_a_share_of_zero_gives_no_faults() -> None:
    async with ChaosServer(Reply(text="Hello."), seed=1, share=0) as server:
        (found,) = await heard(server)
    assert isinstance(found, bytes)
    assert found.endswith(b"data: [DONE]\n\n")
    assert server.faults == ["none"]
