from __future__ import annotations

import json
from typing import Any

import pytest

from moot.convert.dialects.openai_chat import OpenAIChat
from moot.convert.fold import fold_parts
from moot.types.chunk import Chunk
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.message import Message, Part, text_part
from moot.types.model import Model, ModelId, ModelSettings
from moot.types.provider import ModelPrompt, Quirks, ToolDefinition

DIALECT = OpenAIChat()
MODEL = Model(ModelId("gpt", "openai"), "gpt-4.1", modalities=("text", "image", "pdf"), reasoning=True)
PNG = "data:image/png;base64,iVBORw0KGgo="


def frame(**event: Any) -> bytes:
    return b"data: " + json.dumps(event).encode() + b"\n\n"


def said(finish: str | None = None, **delta: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return frame(id="c-1", object="chat.completion.chunk", model="gpt-4.1-x", choices=[choice])


def call(index: int, arguments: str, **fields: Any) -> bytes:
    function: dict[str, Any] = {"arguments": arguments}
    if name := fields.pop("name", ""):
        function["name"] = name
    return said(tool_calls=[{"index": index, **fields, "function": function}])


def translate(*raws: bytes, ended: Ended = "eof", used: tuple[str, ...] = (), provider: str = "openai") -> tuple[list[Chunk], Ending]:
    translator = DIALECT.translator
    state = translator.open(ExchangeOptions("1.0", 1, used, {"provider": provider}))
    chunks: list[Chunk] = []
    for raw in raws:
        state, made = translator.feed(state, raw)
        chunks += made
    closing, ending = translator.close(state, ended)
    return [*chunks, *closing], ending


def parts(*raws: bytes, **options: Any) -> list[Part]:
    return list(fold_parts((), translate(*raws, **options)[0]))


def request(*messages: Message, system: str = "", model: Model = MODEL, quirks: Quirks | None = None, **settings: Any) -> dict[str, Any]:
    tools = settings.pop("tools", ())
    prompt = ModelPrompt(model, system, messages, tools, ModelSettings(**settings), quirks or Quirks())
    return json.loads(json.dumps(DIALECT.to_request(prompt)))


def assistant(*parts: Part, **metadata: Any) -> Message:
    return Message("a", "assistant", parts, metadata)


def user(*parts: Part) -> Message:
    return Message("u", "user", parts)


def test_text_opens_once_and_closes_at_the_finish() -> None:
    chunks, ending = translate(
        said(role="assistant", content=""), said(content="Hel"), said(content="lo"), said("stop"), b"data: [DONE]\n\n"
    )
    assert chunks == [
        {"type": "text-start", "id": "1.0.0"},
        {"type": "text-delta", "id": "1.0.0", "delta": "Hel"},
        {"type": "text-delta", "id": "1.0.0", "delta": "lo"},
        {"type": "text-end", "id": "1.0.0"},
    ]
    assert (ending.finish_reason, ending.raw_reason, ending.error) == ("stop", "stop", None)
    assert ending.metadata == {"response_id": "c-1", "model": "gpt-4.1-x"}


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_ends_where_text_starts(field: str) -> None:
    folded = parts(said(**{field: "hm"}), said(**{field: "m", "content": None}), said(content="so", **{field: None}), said("stop"))
    assert folded == [
        {"type": "reasoning", "id": "1.0.0", "text": "hmm", "state": "done", "providerMetadata": {"openai-chat": {"provider": "openai"}}},
        {"type": "text", "text": "so", "state": "done"},
    ]


def test_parallel_calls_are_matched_by_index() -> None:
    folded = parts(
        call(0, "", id="c1", type="function", name="read"),
        call(1, '{"b"', id="c2", type="function", name="write"),
        call(0, '{"a":'),
        call(1, ":2}"),
        call(0, "1}"),
        said("tool_calls"),
    )
    assert [(part["type"], part["toolCallId"], part["input"]) for part in folded] == [
        ("tool-read", "c1", {"a": 1}),
        ("tool-write", "c2", {"b": 2}),
    ]


def test_a_complete_call_without_an_id_gets_one() -> None:
    folded = parts(call(0, "{}", name="read"), call(1, "", name="list"), said("stop"))
    assert [part["toolCallId"] for part in folded] == ["call_1.0_0", "call_1.0_1"]
    assert [part["input"] for part in folded] == [{}, {}]
    assert translate(call(0, "{}", name="read"), said("stop"))[1].finish_reason == "tool-calls"


def test_calls_that_all_have_index_0_are_distinguished_by_id() -> None:
    folded = parts(call(0, '{"a":1}', id="x", name="read"), call(0, '{"a":2}', id="y", name="read"), said("tool_calls"))
    assert [part["input"] for part in folded] == [{"a": 1}, {"a": 2}]


def test_a_repeated_id_is_replaced_and_the_vendors_id_returned() -> None:
    folded = parts(call(0, "{}", id="c1", name="read"), said("tool_calls"), used=("c1",))
    assert folded[0]["toolCallId"] == "c1#1.0" and folded[0]["toolMetadata"] == {"vendorId": "c1"}
    body = request(user(text_part("go")), assistant(*folded))
    assert [message.get("tool_call_id") for message in body["messages"]] == [None, None, "c1"]


@pytest.mark.parametrize("bad", ['{"a":NaN}', '{"a":1,"a":2}', '{"a":', "[1]", "1", "[" * 10_000, '{"a":1e999}', "\x00"])
def test_ambiguous_arguments_are_an_error_that_keeps_the_text(bad: str) -> None:
    chunks, _ = translate(call(0, bad, id="c", name="read"), said("tool_calls"))
    assert (chunks[-1]["type"], chunks[-1]["input"]) == ("tool-input-error", bad)


def test_arguments_keep_every_digit() -> None:
    number = 2**64 + 12345
    folded = parts(call(0, f'{{"n":{number}}}', id="c", name="read"), said("tool_calls"))
    as_object = said(tool_calls=[{"index": 0, "id": "c", "function": {"name": "read", "arguments": {"n": number}}}])
    assert folded[0]["input"] == {"n": number} == parts(as_object, said("stop"))[0]["input"]


def test_a_lone_surrogate_becomes_a_replacement_character() -> None:
    folded = parts(
        b'data: {"choices":[{"delta":{"content":"a\\ud800b"}}]}\n\n', call(0, '{"p":"\\ud800"}', id="c", name="read"), said("stop")
    )
    assert folded[0]["text"] == "a\ufffdb" and folded[1]["input"] == {"p": "\ufffd"}


def test_refusal_is_text_and_a_content_filter() -> None:
    chunks, ending = translate(said(refusal="I can"), said(refusal="not"), said("stop"))
    folded = fold_parts((), chunks)
    assert ending.finish_reason == "content-filter"
    assert folded == ({"type": "text", "text": "I cannot", "state": "done", "providerMetadata": {"openai-chat": {"refusal": True}}},)


def test_usage_is_read_from_every_known_place() -> None:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "total_tokens": 15,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 2},
        "cost": 0.0012,
    }
    for raws in (
        [said(content="a"), said("stop"), frame(choices=[], usage=usage)],
        [frame(choices=[{"delta": {}, "usage": usage, "finish_reason": "stop"}])],
    ):
        _, ending = translate(*raws)
        assert ending.usage.to_json() == {"input": 10, "output": 5, "cache_read": 4, "reasoning": 2} and ending.cost == 1_200_000


def test_separately_counted_reasoning_tokens_are_added() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 22, "completion_tokens_details": {"reasoning_tokens": 7}}
    assert translate(said("stop"), frame(choices=[], usage=usage))[1].usage.output == 12


@pytest.mark.parametrize(
    ("raw", "kind", "retryable"),
    [
        (frame(error={"message": "no", "type": "server_error", "code": None}), "overloaded", True),
        (
            frame(id="g", choices=[{"delta": {"content": ""}, "finish_reason": "error"}], error={"code": 502, "message": "bad"}),
            "overloaded",
            True,
        ),
        (frame(error={"message": "slow down", "code": 429}), "rate_limit", True),
        (frame(error="boom"), "failed", False),
        (frame(object="error", message="This model's maximum context length is 8", code=400), "context_too_long", False),
        (b'event: error\ndata: {"message":"gone"}\n\n', "failed", False),
    ],
)
def test_an_error_in_the_stream_ends_it(raw: bytes, kind: str, retryable: bool) -> None:
    chunks, ending = translate(said(content="par"), call(0, "{", id="c", name="read"), raw, b"data: [DONE]\n\n")
    assert ending.error is not None and (ending.error.kind, ending.error.retryable) == (kind, retryable)
    assert ending.finish_reason == "error" and fold_parts((), chunks)[0]["state"] == "done"
    assert chunks[-1]["type"] == "tool-input-error"


@pytest.mark.parametrize("raws", [[], [b": keep-alive\n\n"], [b"data: [DONE]\n\n"], [said(content="half")]])
def test_an_answer_without_its_end_is_a_transport_error(raws: list[bytes]) -> None:
    error = translate(*raws)[1].error
    assert error is not None and error.kind == "transport" and error.retryable


def test_a_done_marker_alone_ends_an_answer() -> None:
    chunks, ending = translate(said(content="a"), call(0, "{}", id="c", name="read"), b"data: [DONE]\r\n\r\n")
    assert (ending.error, ending.finish_reason, chunks[-1]["type"]) == (None, "tool-calls", "tool-input-available")


def test_hanging_up_is_not_a_failure() -> None:
    assert translate(said(content="half"), ended="cancelled")[1].error is None


def test_a_body_that_is_not_a_stream_is_parsed_or_reported() -> None:
    message = {
        "role": "assistant",
        "content": "hi",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    }
    body = json.dumps(
        {"id": "x", "object": "chat.completion", "choices": [{"message": message, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}}
    )
    chunks, ending = translate(b"\xef\xbb\xbf" + body.encode())
    assert [part["type"] for part in fold_parts((), chunks)] == ["text", "tool-f"] and ending.usage.input == 1
    for body, word in (("<!doctype html><p>hello", "HTML"), ("nothing here", "no event stream")):
        error = translate(body.encode())[1].error
        assert error is not None and error.kind == "protocol" and word in error.message
    error = translate(b'{"error":{"message":"bad key","type":"authentication_error"}}')[1].error
    assert error is not None and error.kind == "auth"


def test_bom_crlf_comments_and_unknown_events_are_handled() -> None:
    text = said(content="hi").replace(b"\n\n", b"\r\n\r\n")
    folded = parts(
        b"\xef\xbb\xbf: hello\r\n" + text, b"event: ping\ndata: 1\n\n", b"id: 5\n\n", frame(choices="x"), b"data: {\n\n", said("stop")
    )
    assert folded == [text_part("hi")]


def test_other_choices_are_ignored_and_citations_are_sources() -> None:
    other = frame(choices=[{"index": 1, "delta": {"content": "no"}}])
    cited = said(annotations=[{"type": "url_citation", "url_citation": {"url": "https://a", "title": "A"}}])
    folded = parts(said(content="yes"), other, cited, said("stop"))
    assert [part["type"] for part in folded] == ["text", "source-url"] and folded[0]["text"] == "yes"


DETAILS = [
    {"type": "reasoning.text", "text": "let", "index": 0, "format": "anthropic-claude-v1"},
    {"type": "reasoning.text", "text": " me", "index": 0},
    {"type": "reasoning.text", "signature": "EqAB+/=", "index": 0},
    {"type": "reasoning.encrypted", "data": "gAAAA", "id": "rs_1", "index": 1},
]


def test_reasoning_details_are_returned_unchanged_to_their_provider_only() -> None:
    raws = [said(reasoning=detail.get("text"), reasoning_details=[detail]) for detail in DETAILS]
    folded = parts(*raws, said(content="so"), said("stop"), provider="openrouter")
    quirks = Quirks(reasoning_back="reasoning_details")
    mine = Model(ModelId("m", "openrouter"), "m")
    back = request(assistant(*folded), model=mine, quirks=quirks)["messages"][0]
    assert back["reasoning_details"] == [
        {"type": "reasoning.text", "index": 0, "format": "anthropic-claude-v1", "signature": "EqAB+/=", "text": "let me"},
        {"type": "reasoning.encrypted", "data": "gAAAA", "id": "rs_1", "index": 1},
    ]
    assert "reasoning_details" not in request(assistant(*folded), quirks=quirks)["messages"][0]


def test_reasoning_content_is_returned_if_the_provider_wants_it() -> None:
    folded = parts(said(reasoning_content="hm"), said(content="so"), said("stop"), provider="deepseek")
    deepseek = Model(ModelId("m", "deepseek"), "m")
    quirks = Quirks(reasoning_back="reasoning_content")
    assert request(assistant(*folded), model=deepseek, quirks=quirks)["messages"][0] == {
        "role": "assistant",
        "content": "so",
        "reasoning_content": "hm",
    }
    assert request(assistant(*folded), model=deepseek)["messages"][0] == {"role": "assistant", "content": "so"}


def tool(state: str, id: str = "c", **fields: Any) -> Part:
    return {"type": "tool-read", "toolCallId": id, "state": state, "input": {"a": 1}, **fields}


@pytest.mark.parametrize(
    ("part", "text"),
    [
        (tool("output-available", output="fine"), "fine"),
        (tool("output-available", output={"x": [1]}), '{"x":[1]}'),
        (tool("output-available", output="half", preliminary=True), "[interrupted; the output so far]\nhalf"),
        (tool("output-error", errorText="no such file"), "no such file"),
        (tool("output-denied", approval={"id": "p", "approved": False, "reason": "too dear"}), "The user denied this call: too dear"),
        (tool("approval-requested"), "This call was not carried out: no one approved it."),
        (tool("input-available"), "The outcome of this call is unknown: it was interrupted and may or may not have taken effect."),
    ],
)
def test_every_call_has_exactly_one_output(part: Part, text: str) -> None:
    messages = request(assistant(part))["messages"]
    assert messages[0]["content"] is None and messages[0]["tool_calls"][0]["function"] == {"name": "read", "arguments": '{"a":1}'}
    assert messages[1:] == [{"role": "tool", "tool_call_id": "c", "content": text}]


def test_steps_become_messages_and_abandoned_attempts_are_omitted() -> None:
    step: Part = {"type": "step-start"}
    lost: Part = {"type": "data-attempt", "data": {"step": 1, "attempt": 0, "abandoned": True}}
    steering: Part = {"type": "steering-message", "id": "s", "parts": [text_part("rather b")]}
    message = assistant(
        step, text_part("lost"), lost, text_part("one"), tool("output-available", output="1"), steering, step, text_part("two")
    )
    sent = [(item["role"], item["content"]) for item in request(user(text_part("go")), message, system="be brief")["messages"]]
    assert sent == [("system", "be brief"), ("user", "go"), ("assistant", "one"), ("tool", "1"), ("user", "rather b"), ("assistant", "two")]


def test_a_tools_pictures_follow_as_a_user_message() -> None:
    picture: Part = {"type": "file", "mediaType": "image/png", "url": PNG}
    output = {"type": "content", "value": [text_part("a cat"), picture]}
    messages = request(assistant(tool("output-available", output=output), tool("output-available", "d", output="x")))["messages"]
    assert [item["role"] for item in messages] == ["assistant", "tool", "tool", "user"]
    assert messages[1]["content"] == "a cat" and messages[3]["content"][1] == {"type": "image_url", "image_url": {"url": PNG}}
    blind = request(assistant(tool("output-available", output=output)), model=Model(ModelId("m", "p"), "m"))["messages"]
    assert len(blind) == 2 and "does not take it" in blind[1]["content"]


def test_files_are_sent_in_a_form_the_model_supports() -> None:
    text: Part = {"type": "file", "mediaType": "text/plain", "filename": "a.txt", "url": "data:text/plain;base64,aGk="}
    pdf: Part = {"type": "file", "mediaType": "application/pdf", "url": "data:application/pdf;base64,JVBERg=="}
    image: Part = {"type": "file", "mediaType": "image/png", "url": "https://x/y.png", "detail": "low"}
    video: Part = {"type": "file", "mediaType": "video/mp4", "url": "data:video/mp4;base64,AA=="}
    content = request(user(text_part("see"), text, pdf, image, video))["messages"][0]["content"]
    assert [piece["type"] for piece in content] == ["text", "text", "file", "image_url", "text"]
    assert content[1]["text"] == "a.txt:\nhi" and content[3]["image_url"] == {"url": "https://x/y.png", "detail": "low"}
    assert request(user(text_part("a"), text))["messages"][0]["content"] == "a\n\na.txt:\nhi"


def test_settings_follow_the_quirks_of_a_provider() -> None:
    body = request(
        model=Model(ModelId("m", "p"), "wire"),
        quirks=Quirks(max_tokens="max_completion_tokens", stream_usage=False, extra={"keep_alive": 5}),
        temperature=0.3,
        top_p=0.9,
        max_tokens=10,
        stop=("END",),
        effort="high",
        schema={"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False},
    )
    schema = body.pop("response_format")
    assert schema["type"] == "json_schema" and schema["json_schema"]["strict"] is True
    assert body == {
        "model": "wire",
        "messages": [],
        "stream": True,
        "max_completion_tokens": 10,
        "temperature": 0.3,
        "top_p": 0.9,
        "stop": ["END"],
        "keep_alive": 5,
    }
    assert request(schema={"type": "object", "properties": {"a": {}}})["response_format"]["json_schema"]["strict"] is False


@pytest.mark.parametrize(
    ("quirk", "effort", "fields"),
    [
        ("reasoning_effort", "max", {"reasoning_effort": "high"}),
        ("reasoning_effort", "none", {"reasoning_effort": "none"}),
        ("reasoning_effort", None, {}),
        ("reasoning", "max", {"reasoning": {"effort": "xhigh"}}),
        ("reasoning", "none", {"reasoning": {"enabled": False}}),
        ("thinking", "low", {"thinking": {"type": "enabled"}}),
        ("enable_thinking", "none", {"enable_thinking": False}),
        ("chat_template_kwargs", "none", {"chat_template_kwargs": {"enable_thinking": False}}),
        ("none", "high", {}),
    ],
)
def test_effort_is_sent_in_the_providers_form(quirk: str, effort: Any, fields: dict[str, Any]) -> None:
    body = request(quirks=Quirks(effort=quirk), effort=effort)
    assert {name: body[name] for name in body if name not in ("model", "messages", "stream", "stream_options")} == fields


def test_reasoning_models_get_a_developer_message_and_no_temperature() -> None:
    body = request(system="s", quirks=Quirks(developer_role=True), temperature=0.3)
    assert body["messages"] == [{"role": "developer", "content": "s"}] and "temperature" not in body


def test_tools_are_offered_natively_or_not_at_all() -> None:
    definition = ToolDefinition("read", "Reads.", {"type": "object", "properties": {}})
    tools = request(tools=(definition,))["tools"]
    assert tools == [{"type": "function", "function": {"name": "read", "description": "Reads.", "parameters": definition.schema}}]
    assert "tools" not in request(tools=(definition,), model=Model(ModelId("m", "p"), "m", tools="none"))


def test_short_ids_are_the_same_in_call_and_output() -> None:
    messages = request(assistant(tool("output-available", "toolu_01AbC", output="1")), quirks=Quirks(call_ids="[a-zA-Z0-9]{9}"))["messages"]
    id = messages[0]["tool_calls"][0]["id"]
    assert len(id) == 9 and id.isalnum() and messages[1]["tool_call_id"] == id


def test_a_long_input_in_small_pieces_is_not_copied_again_and_again() -> None:
    pieces = [call(0, "x" * 20) for _ in range(20_000)]
    chunks, _ = translate(call(0, '{"a":"', id="c", name="read"), *pieces, call(0, '"}'), said("tool_calls"))
    assert len(str(chunks[-1]["input"]["a"])) == 400_000  # type: ignore[index,call-overload]
