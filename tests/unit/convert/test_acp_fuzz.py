from __future__ import annotations

import json
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from acp_messages import ASKED, BEGIN, DONE, INITIALIZED, OPENED, Ours, answer, permission, text, update, wire
from acp_recordings import check, chunks_of, lines, paths
from moot.convert.agents.acp import Acp
from moot.convert.agents.captures import Acpx
from moot.convert.agents.headless import GeminiStream, OpencodeRun
from moot.types.exchange import Ended

ENDED: st.SearchStrategy[Ended] = st.sampled_from(["eof", "cut", "cancelled"])

MADE = [Acp(), Acpx(), OpencodeRun(), GeminiStream()]
POOL = sorted({line for path in paths() for _, line in lines(path) if len(line) < 3000})
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(sorted({*INITIALIZED, "params", "method", "update", "type"})), inner, max_size=3)
    ),
    max_leaves=8,
)


def broken(line: bytes, at: int, by: object) -> bytes:
    """Return the line with one of its values replaced."""
    value = orjson.loads(line)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in list(node) if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
            places.append((node, key))
            walk(node[key])

    walk(value)
    node, key = places[at % len(places)]
    node[key] = by
    return json.dumps(value).encode() + b"\n"


LINES = st.one_of(
    st.sampled_from(POOL),
    st.builds(broken, st.sampled_from(POOL), st.integers(0, 10_000), JSON),
    st.binary(max_size=40),
    st.builds(lambda line, at: line[: at % len(line)], st.sampled_from(POOL), st.integers(0, 10_000)),
    st.just(b'{"method":"session/update","params":' + b"[" * 500 + b"]" * 500 + b"}\n"),
    st.just(
        b'{"method":"session/update","params":{"update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"\\ud800"}}}}'
    ),
)


@given(st.lists(st.tuples(st.booleans(), LINES), max_size=25), ENDED)
def test_arbitrary_bytes_never_raise_or_leave_parts_open(given_lines: list[tuple[bool, bytes]], ended: Ended) -> None:
    for made in MADE:
        said = given_lines if isinstance(made, Acp) else [(False, line) for _, line in given_lines]
        check(*chunks_of(made, said, ended))


SHUFFLED = wire(
    *(Ours(BEGIN), INITIALIZED, OPENED, Ours(ASKED), text("a"), DONE),
    *(permission(0, "c"), answer(0, "n"), permission("p", "d"), answer("p", "y"), update("plan", entries=[])),
    update("tool_call", toolCallId="c", status="pending"),
    update("tool_call_update", toolCallId="d", status="completed"),
    update("tool_call", toolCallId="e", status="in_progress"),
)


@given(st.permutations(SHUFFLED), ENDED)
def test_any_order_of_messages_is_an_answer(given_lines: list[tuple[bool, bytes]], ended: Ended) -> None:
    check(*chunks_of(Acp(), given_lines, ended))
