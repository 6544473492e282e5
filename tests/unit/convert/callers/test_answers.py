"""Answers to callers: the joined stream equals the whole answer, in every dialect."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.convert.callers.chat import ChatAnswer, chat_completion
from moot.convert.callers.messages import MessagesAnswer, message_answer
from moot.convert.callers.pieces import Change, Outcome, Piece, PieceReader, pieces_of
from moot.convert.callers.responses import Head, ResponsesAnswer, response_answer
from moot.convert.fold import fold_parts
from moot.types.canonical import dumps
from moot.types.chunk import Chunk
from moot.types.exchange import Failure
from moot.types.usage import Usage

THEIRS = {"weather", "clock"}
USAGE = Usage(input=10, output=4, cache_read=3, reasoning=1)


def join_changes(changes: Iterable[Change]) -> tuple[Piece, ...]:
    """Return the pieces that a stream of changes produces."""
    pieces: list[Piece] = []
    for change in changes:
        match change.what:
            case "open":
                pieces.append(change.piece)
            case "add":
                pieces[change.at] = pieces[change.at]._replace(text=pieces[change.at].text + change.text)
            case "close":
                pieces[change.at] = pieces[change.at]._replace(proof=change.piece.proof)
    return tuple(pieces)


def theirs(name: str) -> bool:
    return name in THEIRS


def spoken(kind: str, id: str, deltas: list[str], proof: str = "") -> list[Chunk]:
    end: Chunk = {"type": f"{kind}-end", "id": id}
    if proof:
        end["providerMetadata"] = {"anthropic": {"signature": proof, "provider": "a"}}
    return [{"type": f"{kind}-start", "id": id}, *({"type": f"{kind}-delta", "id": id, "delta": delta} for delta in deltas), end]


def called(id: str, name: str, arguments: dict[str, Any], cuts: int) -> list[Chunk]:
    text = dumps(arguments).decode()
    size = max(1, len(text) // max(cuts, 1))
    deltas = [text[at : at + size] for at in range(0, len(text), size)] if cuts else []
    return [
        {"type": "tool-input-start", "toolCallId": id, "toolName": name},
        *({"type": "tool-input-delta", "toolCallId": id, "inputTextDelta": delta} for delta in deltas),
        {"type": "tool-input-available", "toolCallId": id, "toolName": name, "input": arguments},
    ]


words = st.lists(st.text(min_size=0, max_size=6), max_size=4)
blocks = st.one_of(
    st.builds(lambda deltas: ("text", deltas, ""), words),
    st.builds(lambda deltas, proof: ("reasoning", deltas, proof), words, st.sampled_from(["", "sig"])),
    st.builds(
        lambda name, arguments, cuts: ("call", name, arguments, cuts),
        st.sampled_from(["weather", "clock", "shell"]),
        st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=4), max_size=2),
        st.integers(0, 4),
    ),
)


@st.composite
def answers(draw: st.DrawFn) -> list[Chunk]:
    """The chunks of an answer: steps of blocks, whose calls may come in side by side."""
    chunks: list[Chunk] = []
    for step in range(draw(st.integers(1, 3))):
        chunks.append({"type": "start-step"})
        open_calls: list[list[Chunk]] = []
        for at, block in enumerate(draw(st.lists(blocks, max_size=4))):
            id = f"{step}.{at}"
            if block[0] == "call":
                open_calls.append(called(id, block[1], block[2], block[3]))
                continue
            chunks += spoken(block[0], id, block[1], block[2])
        while open_calls:
            at = draw(st.integers(0, len(open_calls) - 1))
            chunks.append(open_calls[at].pop(0))
            open_calls = [call for call in open_calls if call]
        chunks.append({"type": "finish-step"})
    return chunks


def told(chunks: list[Chunk]) -> list[Any]:
    teller = PieceReader(theirs)
    return [change for chunk in chunks for change in teller.feed(chunk)] + teller.close()


@given(answers())
def test_the_streamed_pieces_equal_the_stored_answer(chunks: list[Chunk]) -> None:
    whole = pieces_of(fold_parts((), chunks), theirs)
    streamed = join_changes(told(chunks))
    key = [(piece.kind, piece.text, piece.id, piece.name, piece.proof) for piece in whole]
    assert sorted((piece.kind, piece.text, piece.id, piece.name, piece.proof) for piece in streamed) == sorted(key)


@given(answers())
def test_a_piece_reader_returns_all_pieces_so_far(chunks: list[Chunk]) -> None:
    teller = PieceReader(theirs)
    changes = [change for chunk in chunks for change in teller.feed(chunk)] + teller.close()
    assert teller.pieces() == join_changes(changes)


@given(answers(), st.sampled_from(["stop", "length", "tool-calls", "content-filter", "other"]))
def test_chat_completions_streamed_are_the_whole_answer(chunks: list[Chunk], reason: str) -> None:
    outcome = Outcome(reason, USAGE)
    answer = ChatAnswer("r", "m", 1, usage=True)
    frames = [*answer.begin(), *answer.tell(told(chunks)), *answer.end(outcome)]
    whole = chat_completion("r", "m", 1, join_changes(told(chunks)), outcome)
    text, reasoning, calls, finish = "", "", dict[int, dict[str, str]](), None
    for frame in frames:
        for choice in frame["choices"]:
            delta = choice["delta"]
            text += delta.get("content") or ""
            reasoning += delta.get("reasoning_content") or ""
            finish = choice["finish_reason"] or finish
            for call in delta.get("tool_calls", []):
                known = calls.setdefault(call["index"], {"id": "", "name": "", "arguments": ""})
                known["id"] += call.get("id", "")
                known["name"] += call["function"].get("name", "")
                known["arguments"] += call["function"].get("arguments", "")
    message = whole["choices"][0]["message"]
    assert (text, reasoning) == (message["content"] or "", message.get("reasoning_content", ""))
    made = [{"id": call["id"], **call["function"]} for call in message.get("tool_calls", [])]
    assert list(calls.values()) == made
    assert finish == whole["choices"][0]["finish_reason"]
    assert frames[-1]["usage"] == whole["usage"]


@given(answers(), st.booleans())
def test_messages_streamed_are_the_whole_answer(chunks: list[Chunk], thinking: bool) -> None:
    outcome = Outcome("stop", USAGE)
    answer = MessagesAnswer("r", "m", thinking=thinking)
    frames = [*answer.begin(), *answer.tell(told(chunks)), *answer.end(outcome)]
    whole = message_answer("r", "m", join_changes(told(chunks)), outcome, thinking=thinking)
    content: list[dict[str, Any]] = []
    open_block: int | None = None
    for frame in frames:
        match frame["type"]:
            case "content_block_start":
                assert open_block is None and frame["index"] == len(content)
                open_block = frame["index"]
                content.append({**frame["content_block"], "json": ""})
            case "content_block_delta":
                assert frame["index"] == open_block
                delta = frame["delta"]
                name = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature", "input_json_delta": "json"}
                field = name[delta["type"]]
                content[-1][field] += delta[{"json": "partial_json"}.get(field, field)]
            case "content_block_stop":
                assert frame["index"] == open_block
                open_block = None
            case _:
                pass
    assert open_block is None
    for block in content:
        raw = block.pop("json")
        if block["type"] == "tool_use":
            block["input"] = json.loads(raw)
    assert content == whole["content"]
    assert frames[-2]["delta"]["stop_reason"] == whole["stop_reason"]
    assert frames[-1] == {"type": "message_stop"}


@given(answers())
def test_responses_streamed_are_the_whole_answer(chunks: list[Chunk]) -> None:
    head = Head("r", "m", 1)
    answer = ResponsesAnswer(head)
    frames = [*answer.begin(), *answer.tell(told(chunks)), *answer.end(Outcome("stop", USAGE))]
    whole = response_answer(head, join_changes(told(chunks)), Outcome("stop", USAGE))
    assert [frame["sequence_number"] for frame in frames] == list(range(len(frames)))
    assert frames[-1]["type"] == "response.completed" and frames[-1]["response"] == whole
    items: dict[int, Any] = {}
    for frame in frames:
        match frame["type"]:
            case "response.output_item.added":
                items[frame["output_index"]] = ""
            case "response.output_text.delta" | "response.reasoning_summary_text.delta" | "response.function_call_arguments.delta":
                items[frame["output_index"]] += frame["delta"]
            case "response.output_item.done":
                item = frame["item"]
                assert whole["output"][frame["output_index"]] == item
                said = item.get("arguments")
                if said is None:
                    said = "".join(piece["text"] for piece in item.get("content", item.get("summary")))
                assert items[frame["output_index"]] == said
            case _:
                pass
    assert len(items) == len(whole["output"])


def test_a_failure_in_the_middle_is_reported_in_each_dialect() -> None:
    outcome = Outcome("error", USAGE, Failure("the connection broke", kind="transport"))
    assert ChatAnswer("r", "m", 1).end(outcome)[0]["error"]["type"] == "server_error"
    assert MessagesAnswer("r", "m", thinking=False).end(outcome)[0]["error"]["type"] == "api_error"
    failed = ResponsesAnswer(Head("r", "m", 1)).end(outcome)[0]
    assert failed["type"] == "response.failed" and failed["response"]["error"]["message"] == "the connection broke"


def test_an_agents_own_calls_are_hidden_and_its_steps_are_separated() -> None:
    chunks: list[Chunk] = [
        {"type": "start-step"},
        *spoken("text", "1", ["Looking."]),
        *called("a", "shell", {"command": "ls"}, 1),
        {"type": "tool-output-available", "toolCallId": "a", "output": "x"},
        {"type": "finish-step"},
        {"type": "start-step"},
        *spoken("text", "2", ["Do", "ne."]),
    ]
    whole = chat_completion("r", "m", 1, join_changes(told(chunks)), Outcome())
    assert whole["choices"][0]["message"] == {"role": "assistant", "content": "Looking.\n\nDone.", "refusal": None}


@pytest.mark.parametrize(
    ("reason", "calls", "chat", "anthropic"),
    [
        ("stop", False, "stop", "end_turn"),
        ("stop", True, "tool_calls", "tool_use"),
        ("tool-calls", True, "tool_calls", "tool_use"),
        ("tool-calls", False, "stop", "end_turn"),
        ("length", True, "length", "max_tokens"),
        ("content-filter", False, "content_filter", "refusal"),
        ("other", False, "stop", "end_turn"),
    ],
)
def test_finish_reasons_are_those_of_the_dialect(reason: str, calls: bool, chat: str, anthropic: str) -> None:
    pieces = join_changes(told(called("a", "weather", {}, 0))) if calls else ()
    assert chat_completion("r", "m", 1, pieces, Outcome(reason))["choices"][0]["finish_reason"] == chat
    assert message_answer("r", "m", pieces, Outcome(reason), thinking=False)["stop_reason"] == anthropic


def test_counts_are_those_of_the_dialect() -> None:
    chat = chat_completion("r", "m", 1, (), Outcome(usage=USAGE))["usage"]
    assert (chat["prompt_tokens"], chat["completion_tokens"], chat["prompt_tokens_details"]["cached_tokens"]) == (10, 4, 3)
    messages = message_answer("r", "m", (), Outcome(usage=USAGE), thinking=False)["usage"]
    assert (messages["input_tokens"], messages["cache_read_input_tokens"], messages["output_tokens"]) == (7, 3, 4)
    assert chat_completion("r", "m", 1, (), Outcome())["usage"] is None
