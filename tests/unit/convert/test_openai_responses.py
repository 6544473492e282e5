from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from moot.types.model import Model, ModelId
from unit.convert.responses_wire import (
    GO,
    added,
    answered,
    delta,
    done,
    end,
    frame,
    function,
    message,
    parts,
    reasoning,
    request,
    sent_back,
    translate,
)

RECORDED = sorted((Path(__file__).parents[2] / "recorded" / "openai-responses").glob("*.sse"))


@pytest.fixture(scope="module")
def vendor_event() -> TypeAdapter[Any]:
    from openai.types.responses import ResponseStreamEvent  # takes a second, and only one worker needs it

    return TypeAdapter(ResponseStreamEvent)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_recordings_match_the_vendors_own_client(path: Path, vendor_event: TypeAdapter[Any]) -> None:
    for block in path.read_bytes().split(b"\n\n")[:-1]:
        event = json.loads(block.partition(b"data: ")[2])
        assert vendor_event.validate_python(event).type == event["type"]


@pytest.mark.parametrize(
    "path",
    [path for path in RECORDED if path.stem not in ("cut", "error-in-mid-stream", "failed", "whole-answer")],
    ids=lambda path: path.stem,
)
def test_every_item_is_returned_unchanged(path: Path) -> None:
    blocks = [block + b"\n\n" for block in path.read_bytes().split(b"\n\n")[:-1]]
    came = json.loads(blocks[-1].partition(b"data: ")[2])["response"]["output"]
    sent = [item for item in sent_back(*blocks) if item["type"] not in ("function_call_output", "custom_tool_call_output")]
    sent = [item for item in sent if item["type"] != "mcp_approval_response"]
    for item in came:
        for piece in item.get("content", []):
            piece.pop("logprobs", None)
        if item["type"] == "function_call":
            item["arguments"] = json.dumps(json.loads(item["arguments"] or "{}"), separators=(",", ":"))
            item.pop("status")
        if item["type"] == "reasoning" and item["encrypted_content"] is None:
            item.pop("encrypted_content")
    assert sent == came


def test_text_phase_usage_and_facts() -> None:
    usage = {
        "input_tokens": 9,
        "output_tokens": 5,
        "input_tokens_details": {"cached_tokens": 4},
        "output_tokens_details": {"reasoning_tokens": 2},
    }
    chunks, ending = translate(
        frame("response.created", response={"id": "resp_1", "object": "response", "model": "gpt-5.5"}),
        added(0, **message("", phase="commentary")),
        delta(0, "output_text", "Hel"),
        delta(0, "output_text", "lo"),
        done(0, **message("Hello", phase="commentary")),
        end(usage=usage),
    )
    assert [chunk["type"] for chunk in chunks] == ["text-start", "text-delta", "text-delta", "text-end"]
    assert chunks[0]["providerMetadata"] == {
        "openai": {"itemId": "", "kind": "text", "index": 0, "phase": "commentary", "provider": "openai"}
    }
    assert (ending.finish_reason, ending.raw_reason, ending.metadata) == (
        "stop",
        "completed",
        {"response_id": "resp_1", "model": "gpt-5.5"},
    )
    assert ending.usage.to_json() == {"input": 9, "output": 5, "cache_read": 4, "reasoning": 2}


def test_both_ids_of_a_call_are_stored_and_returned() -> None:
    raws = (done(0, **function("read", '{"n": 18446744073709551617}')), end())
    chunks, ending = translate(*raws, used=("call_1",))
    assert chunks[0]["toolCallId"] == "call_1#1.0" and chunks[-1]["input"] == {"n": 2**64 + 1}
    assert ending.finish_reason == "tool-calls"
    assert sent_back(*raws) == [
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "read", "arguments": '{"n":18446744073709551617}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "42"},
    ]


def test_unknown_fields_of_a_call_are_returned_too() -> None:
    call = function("read", "{}", namespace="files", caller={"type": "direct"})
    assert {"namespace": "files", "caller": {"type": "direct"}}.items() <= sent_back(added(0, **call), done(0, **call), end())[0].items()


def test_interleaved_calls_are_separated() -> None:
    pieces = [delta(0, "function_call_arguments", '{"a"'), delta(1, "function_call_arguments", '{"b"')]
    pieces += [delta(0, "function_call_arguments", ": 1}"), delta(1, "function_call_arguments", ": 2}")]
    raws = (added(0, **function("f", "")), added(1, **function("f", "", "fc_2", "call_2")), *pieces, end())
    inputs = [chunk["input"] for chunk in translate(*raws)[0] if chunk["type"] == "tool-input-available"]
    assert inputs == [{"a": 1}, {"b": 2}]


def test_encrypted_reasoning_is_returned_to_its_vendor_only() -> None:
    thought = reasoning("One.", "Two.")
    raws = [added(0, **reasoning(sealed="early"))]
    for index, words in enumerate(("One.", "Two.")):
        raws.append(frame("response.reasoning_summary_part.added", item_id="rs_1", output_index=0, summary_index=index, part={}))
        raws.append(delta(0, "reasoning_summary_text", words, "rs_1", index))
    raws += [done(0, **thought), done(1, **message("So.")), end()]
    folded = parts(*raws)
    assert [(part["type"], part.get("text")) for part in folded[1:]] == [("reasoning", "One."), ("reasoning", "Two."), ("text", "So.")]
    assert sent_back(*raws)[0] == thought
    other = Model(ModelId("gpt-5.5", "azure"), "gpt-5.5", reasoning=True)
    assert sent_back(*raws, model=other) == [
        {
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "So.", "annotations": []}],
        }
    ]


def test_unencrypted_reasoning_is_omitted_with_the_ids_of_the_following_items() -> None:
    raws = (done(0, **reasoning("Hm.", sealed=None)), done(1, **message("So.")), done(2, **function("f", "{}")), end())
    text, call, _ = sent_back(*raws)
    assert "id" not in text and "id" not in call and call["call_id"] == "call_1"


def test_reasoning_without_a_following_item_is_omitted() -> None:
    raws = (done(0, **reasoning("Hm.")), end("incomplete", incomplete_details={"reason": "max_output_tokens"}))
    assert sent_back(*raws) == []


def test_interrupted_reasoning_is_joined_into_one_item() -> None:
    raws = (
        added(0, **reasoning()),
        delta(0, "reasoning_summary_text", "One ", "rs_1"),
        added(1, **message("")),
        delta(1, "output_text", "So", "msg_1"),
        delta(0, "reasoning_summary_text", "two.", "rs_1"),
        done(0, **reasoning("One two.")),
        delta(1, "output_text", ".", "msg_1"),
        done(1, **message("So.")),
        end(),
    )
    assert sent_back(*raws) == [reasoning("One two."), message("So.")]


def test_items_that_were_not_streamed_are_read_from_the_end_event() -> None:
    output = [reasoning("Hm."), message("Hello"), function("f", '{"a":1}')]
    for raws in ([end(output=output)], [done(at, **item) for at, item in enumerate(output)] + [end(output=output)]):
        assert [part["type"] for part in parts(*raws)] == ["step-start", "reasoning", "text", "tool-f"]
        assert sent_back(*raws)[:2] == output[:2]


def test_a_refusal_is_text_that_ends_as_filtered() -> None:
    raws = (added(0, **message("")), delta(0, "refusal", "No."), done(0, **message("")), end())
    chunks, ending = translate(*raws)
    assert ending.finish_reason == "content-filter" and ending.error is None
    assert chunks[1] == {"type": "text-delta", "id": "1.0.0", "delta": "No."}
    assert sent_back(*raws)[0]["content"] == [{"type": "refusal", "refusal": "No."}]


@pytest.mark.parametrize(
    ("last", "reason", "kind"),
    [
        (end("incomplete", incomplete_details={"reason": "max_output_tokens"}), "length", None),
        (end("incomplete", incomplete_details={"reason": "content_filter"}), "content-filter", None),
        (end("incomplete", incomplete_details={"reason": "steered"}), "other", None),
        (end("failed", error={"code": "server_error", "message": "no"}), "error", "overloaded"),
        (end("failed"), "error", "overloaded"),
        (end("cancelled"), "error", "transport"),
        (frame("error", code="rate_limit_exceeded", message="slow down", param=None), "error", "rate_limit"),
        (
            frame("error", error={"type": "invalid_request_error", "code": "context_length_exceeded", "message": "x"}),
            "error",
            "context_too_long",
        ),
        (b"data: [DONE]\n\n", "error", "transport"),
        (b"", "error", "transport"),
    ],
)
def test_every_kind_of_end_is_distinguished(last: bytes, reason: str, kind: str | None) -> None:
    _, ending = translate(added(0, **message("")), delta(0, "output_text", "Half"), last)
    assert ending.finish_reason == reason
    assert (ending.error.kind if ending.error else None) == kind


def test_an_image_is_a_file_and_is_returned_inside_its_call() -> None:
    item = {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "iVBORw0KGgo=", "output_format": "webp"}
    raws = (done(0, **item), end())
    tool, file = parts(*raws)[1:]
    assert file["url"] == "data:image/webp;base64,iVBORw0KGgo=" and "result" not in tool["output"]  # type: ignore[operator]
    assert sent_back(*raws) == [item]


def test_code_streams_as_the_input_of_its_call() -> None:
    item = {"type": "code_interpreter_call", "id": "ci_1", "status": "completed", "container_id": "c", "code": 'a="ü"\n', "outputs": []}
    pieces = [frame("response.code_interpreter_call_code.delta", output_index=0, item_id="ci_1", delta=piece) for piece in ('a="', 'ü"\n')]
    chunks, _ = translate(added(0, **{**item, "code": ""}), *pieces, done(0, **item), end())
    assert next(chunk for chunk in chunks if chunk["type"] == "tool-input-available")["input"] == {"code": 'a="ü"\n'}
    assert all(chunk.get("providerExecuted", True) for chunk in chunks)


def test_a_failed_vendor_call_has_the_vendors_message() -> None:
    item = {"type": "mcp_call", "id": "mcp_1", "name": "ask", "server_label": "s", "arguments": "{}", "status": "failed"}
    raws = (done(0, **item, error={"type": "http_error", "code": 404, "message": "gone"}), end())
    (tool,) = parts(*raws)[1:]
    assert (tool["state"], tool["errorText"], tool["type"]) == ("output-error", "gone", "dynamic-tool")
    assert sent_back(*raws) == [{**item, "error": {"type": "http_error", "code": 404, "message": "gone"}}]


@pytest.mark.parametrize(("approved", "approve"), [(True, True), (False, False), (None, False)])
def test_approval_requests_of_the_vendor_are_asked_and_answered(approved: bool | None, approve: bool) -> None:
    item = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "buy", "server_label": "s", "arguments": '{"n":1}'}
    (tool,) = parts(done(0, **item), end())[1:]
    assert tool["approval"] == {"id": "mcpr_1"} and tool["state"] == "approval-requested"
    if approved is not None:
        tool = {**tool, "state": "approval-responded", "approval": {"id": "mcpr_1", "approved": approved}}
    assert request(GO, answered((tool,)))["input"][1:] == [
        item,
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": approve},
    ]


def test_a_partial_image_is_shown_until_the_final_one() -> None:
    item = {"type": "image_generation_call", "id": "ig_1", "status": "generating", "result": None}
    draft = frame(
        "response.image_generation_call.partial_image", output_index=0, item_id="ig_1", partial_image_index=0, partial_image_b64="AA=="
    )
    (tool,) = parts(added(0, **item), draft, ended="cut")[1:]
    assert tool["preliminary"] is True and tool["output"] == {"partial": 0, "url": "data:image/png;base64,AA=="}


def test_items_without_an_index_are_placed_by_id() -> None:
    events = [
        frame("response.output_item.added", item=message("", "m_a")),
        frame("response.output_text.delta", item_id="m_a", delta="Hi"),
        frame("response.output_item.done", item=message("Hi", "m_a")),
        end(output=[message("Hi", "m_a")]),
    ]
    assert [part.get("text") for part in parts(*events)[1:]] == ["Hi"]


ITEMS = st.lists(
    st.one_of(
        st.builds(lambda text, id: message(text, f"msg_{id}"), st.text(min_size=1, max_size=9), st.uuids()),
        st.builds(lambda words, id: reasoning(*words, id=f"rs_{id}"), st.lists(st.text(min_size=1, max_size=5), max_size=3), st.uuids()),
        st.builds(
            lambda n, id: function("f", json.dumps({"n": n}, separators=(",", ":")), f"fc_{id}", f"call_{str(id)[:8]}"),
            st.integers(),
            st.uuids(),
        ),
    ),
    max_size=6,
)


def streamed(items: list[dict[str, Any]], order: list[int]) -> list[bytes]:
    """Items started in order, their deltas interleaved; empty ones end at once."""
    lanes: list[list[bytes]] = []
    raws: list[bytes] = []
    for at, item in enumerate(items):
        id = item["id"]
        raws.append(added(at, **{**item, **({"arguments": ""} if "arguments" in item else {"content": []})}))
        match item["type"]:
            case "message":
                lanes.append([delta(at, "output_text", piece, id) for piece in item["content"][0]["text"]])
            case "reasoning":
                lanes.append([delta(at, "reasoning_summary_text", p, id, n) for n, one in enumerate(item["summary"]) for p in one["text"]])
                raws += [] if lanes[-1] else [done(at, **item)]
            case _:
                lanes.append([delta(at, "function_call_arguments", piece, id) for piece in item["arguments"]])
    for turn in order:
        lane = lanes[turn % len(lanes)] if lanes else []
        raws += lane[:1]
        del lane[:1]
    raws += [piece for lane in lanes for piece in lane]
    return [*raws, *(done(at, **item) for at, item in enumerate(items)), end()]


@given(ITEMS, st.lists(st.integers(0, 5), max_size=20))
def test_a_request_reproduces_the_history_for_any_interleaving(items: list[dict[str, Any]], order: list[int]) -> None:
    raws = streamed(items, order)
    sent = {item.get("id", item.get("call_id")): item for item in sent_back(*raws) if item["type"] != "function_call_output"}
    for item in items:
        # reasoning that ended after the items it led to is omitted, because nothing follows it
        assert sent.get(item["id"], item if item["type"] == "reasoning" else None) == item
    assert [item["type"] for item in sent.values()][-1:] != ["reasoning"]
