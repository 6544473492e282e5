from __future__ import annotations

import json
from typing import Any

import pytest

from moot.convert.dialects.anthropic import AnthropicMessages
from moot.convert.fold import fold_parts
from moot.types.chunk import Chunk
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.message import Message, Part, text_part
from moot.types.model import Model, ModelId, ModelSettings
from moot.types.provider import ModelPrompt, Quirks

DIALECT = AnthropicMessages()
MODEL = Model(ModelId("sonnet", "anthropic"), "claude-sonnet-4-5", max_output=64_000, modalities=("text", "image", "pdf"), reasoning=True)
SIGNATURE = "EqQBCgIYAhIM1gbcDa9GJwZA2b3hGgxBdjrkzLoky3dl1pk+/=="


def frame(type: str, **event: Any) -> bytes:
    return f"event: {type}\ndata: {json.dumps({'type': type, **event})}\n\n".encode()


def start(index: int, type: str, **block: Any) -> bytes:
    return frame("content_block_start", index=index, content_block={"type": type, **block})


def delta(index: int, type: str, **fields: Any) -> bytes:
    return frame("content_block_delta", index=index, delta={"type": type, **fields})


def stop(index: int) -> bytes:
    return frame("content_block_stop", index=index)


def end(reason: str = "end_turn", **usage: int) -> bytes:
    return frame("message_delta", delta={"stop_reason": reason, "stop_sequence": None}, usage=usage) + frame("message_stop")


def text(index: int, *pieces: str) -> list[bytes]:
    return [start(index, "text", text=""), *(delta(index, "text_delta", text=piece) for piece in pieces), stop(index)]


def thinking(index: int, words: str, signature: str = SIGNATURE) -> list[bytes]:
    return [
        start(index, "thinking", thinking="", signature=""),
        delta(index, "thinking_delta", thinking=words),
        delta(index, "signature_delta", signature=signature),
        stop(index),
    ]


BEGIN = frame(
    "message_start", message={"id": "msg_1", "model": "claude-sonnet-4-5-20250929", "usage": {"input_tokens": 9, "output_tokens": 1}}
)


def translate(*raws: bytes, ended: Ended = "eof", used: tuple[str, ...] = (), provider: str = "anthropic") -> tuple[list[Chunk], Ending]:
    translator = DIALECT.translator
    state = translator.open(ExchangeOptions("1.0", 1, used, {"provider": provider}))
    chunks: list[Chunk] = []
    for raw in raws:
        for piece in raw.split(b"\n\n") if raw.count(b"\n\n") > 1 else [raw.removesuffix(b"\n\n")]:
            if piece:
                state, made = translator.feed(state, piece + b"\n\n")
                chunks += made
    closing, ending = translator.close(state, ended)
    return [*chunks, *closing], ending


def parts(*raws: bytes, **options: Any) -> list[Part]:
    return list(fold_parts((), translate(*raws, **options)[0]))


def request(*messages: Message, model: Model = MODEL) -> dict[str, Any]:
    prompt = ModelPrompt(model, "", messages, (), ModelSettings(), Quirks())
    return json.loads(json.dumps(DIALECT.to_request(prompt)))


def sent(*messages: Message, **options: Any) -> list[dict[str, Any]]:
    found = request(*messages, **options)["messages"]
    for message in found:
        for block in message["content"]:
            block.pop("cache_control", None)
    return found


def assistant(*parts: Part) -> Message:
    return Message("a", "assistant", parts)


def user(*parts: Part) -> Message:
    return Message("u", "user", parts)


GO = user(text_part("go"))


def test_text_and_usage_with_its_cache() -> None:
    usage = {"input_tokens": 10, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 5, "output_tokens": 1}
    first = frame("message_start", message={"id": "m", "model": "x", "usage": usage})
    chunks, ending = translate(first, frame("ping"), *text(0, "Hel", "lo"), end(output_tokens=7))
    assert chunks == [
        {"type": "text-start", "id": "1.0.0"},
        {"type": "text-delta", "id": "1.0.0", "delta": "Hel"},
        {"type": "text-delta", "id": "1.0.0", "delta": "lo"},
        {"type": "text-end", "id": "1.0.0"},
    ]
    assert ending.usage.to_json() == {"input": 115, "output": 7, "cache_read": 100, "cache_write": 5}
    assert (ending.finish_reason, ending.error, ending.metadata) == ("stop", None, {"response_id": "m", "model": "x"})


def test_signatures_are_returned_unchanged_to_their_vendor_only() -> None:
    raws = (BEGIN, *thinking(0, "hm"), start(1, "redacted_thinking", data="EmwKA=="), stop(1), *text(2, "so"), end())
    folded = parts(*raws)
    assert [part["type"] for part in folded] == ["reasoning", "reasoning", "text"]
    assert sent(GO, assistant(*folded))[1]["content"] == [
        {"type": "thinking", "thinking": "hm", "signature": SIGNATURE},
        {"type": "redacted_thinking", "data": "EmwKA=="},
        {"type": "text", "text": "so"},
    ]
    other = Model(ModelId("k2", "moonshot"), "kimi-k2")
    assert sent(GO, assistant(*folded), model=other)[1]["content"] == [{"type": "text", "text": "so"}]


def test_unsigned_thinking_is_not_sent_back() -> None:
    folded = parts(BEGIN, start(0, "thinking", thinking=""), delta(0, "thinking_delta", thinking="hm"), ended="cut")
    assert folded[0]["state"] == "done" and sent(GO, assistant(*folded)) == [{"role": "user", "content": [{"type": "text", "text": "go"}]}]


def test_a_signature_without_text_is_kept() -> None:
    raws = [start(0, "thinking", thinking="", signature=""), delta(0, "signature_delta", signature="s"), stop(0)]
    assert sent(GO, assistant(*parts(BEGIN, *raws, *text(1, "a"), end())))[1]["content"][0] == {
        "type": "thinking",
        "thinking": "",
        "signature": "s",
    }


def test_calls_stream_their_input_and_empty_input_is_an_object() -> None:
    raws = [
        start(0, "tool_use", id="toolu_1", name="read", input={}),
        delta(0, "input_json_delta", partial_json=""),
        delta(0, "input_json_delta", partial_json='{"a": '),
        delta(0, "input_json_delta", partial_json="18446744073709563961}"),
        stop(0),
        start(1, "tool_use", id="toolu_2", name="list", input={}),
        stop(1),
    ]
    chunks, ending = translate(BEGIN, *raws, end("tool_use"))
    assert [(chunk["toolCallId"], chunk["input"]) for chunk in chunks if chunk["type"] == "tool-input-available"] == [
        ("toolu_1", {"a": 2**64 + 12345}),
        ("toolu_2", {}),
    ]
    assert ending.finish_reason == "tool-calls"


def test_a_complete_input_at_the_start_keeps_every_digit() -> None:
    folded = parts(BEGIN, start(0, "tool_use", id="t", name="read", input={"a": 2**70}), stop(0), end("tool_use"))
    assert folded[0]["input"] == {"a": 2**70}


@pytest.mark.parametrize("bad", ['{"a":NaN}', '{"a":1,"a":2}', '{"a":', "[1]", "[" * 10_000])
def test_ambiguous_input_is_an_error_that_keeps_the_text(bad: str) -> None:
    raws = [start(0, "tool_use", id="t", name="read", input={}), delta(0, "input_json_delta", partial_json=bad), stop(0)]
    folded = parts(BEGIN, *raws, end("max_tokens"))
    assert (folded[0]["state"], folded[0]["input"]) == ("output-error", bad)
    call, result = sent(GO, assistant(*folded))[1:]
    assert call["content"][0]["input"] == {"unreadable": bad[:2000]} and result["content"][0]["is_error"] is True


SEARCH = [
    start(0, "server_tool_use", id="srvtoolu_1", name="web_search", input={}),
    delta(0, "input_json_delta", partial_json='{"query":"x"}'),
    stop(0),
    start(
        1,
        "web_search_tool_result",
        tool_use_id="srvtoolu_1",
        content=[{"type": "web_search_result", "url": "https://a", "encrypted_content": "E+/="}],
    ),
    stop(1),
]
CITATION = {"type": "web_search_result_location", "url": "https://a", "title": "A", "encrypted_index": "I+/=", "cited_text": "x"}


def test_calls_of_vendor_tools_are_returned_unchanged() -> None:
    cited = [
        start(2, "text", text="", citations=[]),
        delta(2, "citations_delta", citation=CITATION),
        delta(2, "text_delta", text="so"),
        stop(2),
    ]
    folded = parts(BEGIN, *SEARCH, *cited, end())
    assert [part["type"] for part in folded] == ["tool-web_search", "source-url", "text"]
    assert folded[0]["providerExecuted"] is True and folded[0]["state"] == "output-available"
    (_, back) = sent(GO, assistant(*folded))
    assert back["content"] == [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}},
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "content": [{"type": "web_search_result", "url": "https://a", "encrypted_content": "E+/="}],
        },
        {"type": "text", "text": "so", "citations": [CITATION]},
    ]
    elsewhere = sent(GO, assistant(*folded), model=Model(ModelId("m", "minimax"), "MiniMax-M2"))
    assert [message["role"] for message in elsewhere] == ["user", "assistant", "user"] and elsewhere[2]["content"][0][
        "type"
    ] == "tool_result"


def test_errors_of_vendor_tools_are_returned_too() -> None:
    content = {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"}
    folded = parts(BEGIN, *SEARCH[:3], start(1, "web_search_tool_result", tool_use_id="srvtoolu_1", content=content), stop(1), end())
    assert folded[0]["errorText"] == "max_uses_exceeded" and sent(GO, assistant(*folded))[1]["content"][1]["content"] == content


def test_mcp_calls_are_dynamic_and_keep_their_server() -> None:
    raws = [
        start(0, "mcp_tool_use", id="mcptoolu_1", name="echo", server_name="srv", input={}),
        stop(0),
        start(1, "mcp_tool_result", tool_use_id="mcptoolu_1", is_error=False, content=[{"type": "text", "text": "hi"}]),
        stop(1),
    ]
    folded = parts(BEGIN, *raws, end())
    assert folded[0]["type"] == "dynamic-tool"
    call, result = sent(GO, assistant(*folded))[1]["content"]
    assert call["server_name"] == "srv" and result["is_error"] is False


def test_a_paused_answer_is_continued() -> None:
    chunks, ending = translate(BEGIN, *SEARCH[:3], end("pause_turn"))
    assert ending.finish_reason == "stop" and ending.metadata["continue"] is True
    paused = assistant({"type": "step-start"}, *fold_parts((), chunks))
    assert sent(GO, paused)[-1]["content"] == [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
    ]
    assert [message["role"] for message in sent(GO, paused, GO)] == ["user"]


def test_unknown_blocks_are_preserved() -> None:
    raws = [
        start(0, "compaction", content="", x=1),
        delta(0, "compaction_delta", content="sum"),
        delta(0, "compaction_delta", content="mary"),
        stop(0),
    ]
    folded = parts(BEGIN, *raws, *text(1, "a"), end())
    assert folded[0]["kind"] == "anthropic.compaction"
    assert sent(GO, assistant(*folded))[1]["content"][0] == {"type": "compaction", "content": "summary", "x": 1}


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("refusal", "content-filter"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("stop_sequence", "stop"),
        ("something_new", "other"),
    ],
)
def test_stop_reasons(reason: str, finish: str) -> None:
    ending = translate(BEGIN, *text(0, "a"), end(reason))[1]
    assert (ending.finish_reason, ending.raw_reason) == (finish, reason)


@pytest.mark.parametrize(
    ("error", "kind", "retryable"),
    [
        ({"type": "overloaded_error", "message": "Overloaded"}, "overloaded", True),
        ({"type": "rate_limit_error", "message": "slow"}, "rate_limit", True),
        ({"type": "api_error", "message": "oops"}, "overloaded", True),
        ({"type": "invalid_request_error", "message": "prompt is too long: 210000 tokens"}, "context_too_long", False),
        ({"type": "invalid_request_error", "message": "no"}, "invalid_request", False),
    ],
)
def test_an_error_in_the_stream_ends_it(error: dict[str, str], kind: str, retryable: bool) -> None:
    chunks, ending = translate(BEGIN, *text(0, "a")[:2], frame("error", error=error))
    assert ending.error is not None and (ending.error.kind, ending.error.retryable) == (kind, retryable)
    assert ending.finish_reason == "error" and fold_parts((), chunks)[0]["state"] == "done"


@pytest.mark.parametrize("raws", [[], [frame("ping")], [BEGIN], [BEGIN, *text(0, "a")]])
def test_an_answer_without_its_end_is_a_transport_error(raws: list[bytes]) -> None:
    error = translate(*raws)[1].error
    assert error is not None and error.kind == "transport" and error.retryable


def test_a_truncated_call_is_an_error_even_if_it_parses() -> None:
    raws = [start(0, "tool_use", id="t", name="read", input={}), delta(0, "input_json_delta", partial_json="{}")]
    assert translate(BEGIN, *raws, ended="cut")[0][-1]["type"] == "tool-input-error"


def test_lost_starts_and_doubled_events_are_survived() -> None:
    raws = [
        delta(3, "text_delta", text="a"),
        delta(4, "thinking_delta", thinking="b"),
        delta(9, "input_json_delta", partial_json="{"),
        stop(9),
    ]
    assert [part["type"] for part in parts(*raws, end(), end())] == ["text", "reasoning"]
    call = start(0, "tool_use", id="t", name="read", input={})
    assert len(parts(BEGIN, BEGIN, call, call, stop(0), stop(0), end("tool_use"))) == 1


def test_a_complete_message_instead_of_a_stream_is_translated() -> None:
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "s"},
        {"type": "text", "text": "hi"},
        {"type": "tool_use", "id": "t", "name": "f", "input": {"a": 1}},
    ]
    body = {"type": "message", "id": "m", "model": "x", "content": content, "stop_reason": "tool_use", "usage": {"input_tokens": 1}}
    chunks, ending = translate(json.dumps(body).encode())
    assert [part["type"] for part in fold_parts((), chunks)] == ["reasoning", "text", "tool-f"] and ending.error is None
    error = translate(b"<html></html>")[1].error
    assert error is not None and "HTML" in error.message
