from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.types.model import Model, ModelId
from unit.convert.google_wire import GO, SIGNATURE, answered, event, parts, request, sent_back, translate

RECORDED = sorted((Path(__file__).parents[2] / "recorded" / "google").glob("*.sse"))
WHOLE = ("code-execution", "server-tools", "parallel-calls", "calls-with-ids", "thoughts", "new-part", "image", "max-tokens", "text")


def merged(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a stream's parts as in a response without streaming: texts of one kind joined, up to a signature."""
    whole: list[dict[str, Any]] = []
    for part in found:
        last = whole[-1] if whole else {}
        like = "text" in part and "text" in last and part.get("thought") == last.get("thought") and "thoughtSignature" not in last
        if like:
            whole[-1] = {**last, **part, "text": last["text"] + part["text"]}
        else:
            whole.append(part)
    return whole


@pytest.mark.parametrize("path", [path for path in RECORDED if path.stem in WHOLE], ids=lambda path: path.stem)
def test_every_part_is_returned_unchanged(path: Path) -> None:
    raws = [block + b"\r\n\r\n" for block in path.read_bytes().split(b"\r\n\r\n")[:-1]]
    came = [part for raw in raws for part in json.loads(raw[6:])["candidates"][0]["content"].get("parts", [])]
    assert sent_back(*raws) == merged(came)


def test_thoughts_text_counts_and_facts() -> None:
    usage = {
        "promptTokenCount": 9,
        "toolUsePromptTokenCount": 1,
        "candidatesTokenCount": 5,
        "thoughtsTokenCount": 2,
        "cachedContentTokenCount": 4,
    }
    last = b"data: " + json.dumps({"candidates": [{"finishReason": "STOP"}], "usageMetadata": usage}).encode() + b"\n\n"
    chunks, ending = translate(event({"text": "Hm", "thought": True}), event({"text": "So"}), event({"text": "."}), last)
    assert [chunk["type"] for chunk in chunks] == [
        *("reasoning-start", "reasoning-delta", "reasoning-end"),
        *("text-start", "text-delta", "text-delta", "text-end"),
    ]
    assert ending.usage.to_json() == {"input": 10, "output": 7, "cache_read": 4, "reasoning": 2}
    assert (ending.finish_reason, ending.raw_reason, ending.metadata) == ("stop", "STOP", {"response_id": "r", "model": "gemini-3.8-flash"})


@pytest.mark.parametrize(
    "part",
    [
        {"text": "So.", "thoughtSignature": SIGNATURE},
        {"text": "", "thoughtSignature": SIGNATURE},
        {"text": "Hm.", "thought": True, "thoughtSignature": SIGNATURE},
        {"functionCall": {"name": "f", "args": {"a": 1}}, "thoughtSignature": SIGNATURE},
        {"inlineData": {"mimeType": "image/png", "data": "AAAA"}, "thoughtSignature": SIGNATURE},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://host/a.png"}, "thoughtSignature": SIGNATURE},
        {"futurePart": {"x": 1}, "thoughtSignature": SIGNATURE},
    ],
    ids=lambda part: next(iter(part)),
)
def test_a_signature_is_returned_on_its_part_to_its_vendor_only(part: dict[str, Any]) -> None:
    assert sent_back(event(part, finish="STOP")) == [part]
    other = Model(ModelId("gemini-2.5-pro", "elsewhere"), "gemini-2.5-pro", modalities=("text", "image"), reasoning=True)
    assert SIGNATURE not in json.dumps(sent_back(event(part, finish="STOP"), model=other))


def test_text_after_a_signature_is_a_separate_part() -> None:
    came = [{"text": "One.", "thoughtSignature": "AA=="}, {"text": "Two.", "thoughtSignature": "BB=="}]
    assert sent_back(event(came[0]), event({"text": "Tw"}), event({"text": "o.", "thoughtSignature": "BB=="}, finish="STOP")) == came


def test_parallel_calls_without_ids_are_answered_in_their_order() -> None:
    calls = [
        {"functionCall": {"name": "f", "args": {"n": 2**70}}, "thoughtSignature": SIGNATURE},
        {"functionCall": {"name": "f", "args": {}}},
    ]
    raws = (event(*calls), event({"functionCall": {"name": "g", "args": {}}}, finish="STOP"))
    chunks, ending = translate(*raws, used=("call_1.0_0",))
    assert len({chunk["toolCallId"] for chunk in chunks}) == 3 and "call_1.0_0" not in {chunk["toolCallId"] for chunk in chunks}
    assert [chunk["type"] for chunk in chunks] == ["tool-input-start", "tool-input-available"] * 3
    assert chunks[1]["input"] == {"n": 2**70} and ending.finish_reason == "tool-calls"
    user, model, outputs = request(GO, answered(parts(*raws)))["contents"]
    assert model["parts"][:2] == calls and user["role"] == outputs["role"] == "user"
    assert [part["functionResponse"] for part in outputs["parts"]] == [{"name": name, "response": {"output": "42"}} for name in "ffg"]


def test_the_vendors_call_id_is_returned_with_call_and_output() -> None:
    raws = (event({"functionCall": {"id": "fc-1", "name": "f", "args": {}}, "thoughtSignature": "AA=="}, finish="STOP"),)
    contents = request(GO, answered(parts(*raws, used=("fc-1",))))["contents"]
    assert contents[1]["parts"][0]["functionCall"]["id"] == contents[2]["parts"][0]["functionResponse"]["id"] == "fc-1"


def test_a_call_in_pieces_is_joined() -> None:
    pieces = [
        {"functionCall": {"name": "f", "id": "fc-1", "willContinue": True}, "thoughtSignature": SIGNATURE},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.a.b", "stringValue": "He", "willContinue": True}], "willContinue": True}},
        {"functionCall": {"partialArgs": [{"jsonPath": "$.a.b", "stringValue": "y"}, {"jsonPath": "$['c'][1].d", "boolValue": True}]}},
    ]
    raws = (*(event(piece) for piece in pieces[:2]), event(pieces[2], finish="STOP"))
    assert sent_back(*raws) == [
        {"functionCall": {"id": "fc-1", "name": "f", "args": {"a": {"b": "Hey"}, "c": [None, {"d": True}]}}, "thoughtSignature": SIGNATURE}
    ]
    (cut,) = parts(*raws[:2], ended="cut")[1:]
    assert cut["input"] == {"a": {"b": "He"}}


def test_code_that_the_vendor_runs_has_its_output() -> None:
    raws = (
        event({"executableCode": {"language": "PYTHON", "code": "print(1)"}, "thoughtSignature": SIGNATURE}),
        event({"codeExecutionResult": {"outcome": "OUTCOME_FAILED", "output": "boom"}}, finish="STOP"),
    )
    (tool,) = parts(*raws)[1:]
    assert (tool["type"], tool["providerExecuted"], tool["state"]) == ("tool-code_execution", True, "output-available")
    assert tool["input"] == {"language": "PYTHON", "code": "print(1)"} and tool["output"] == {"outcome": "OUTCOME_FAILED", "output": "boom"}
    assert translate(*raws)[1].finish_reason == "stop"


def test_an_output_without_its_call_is_kept() -> None:
    part = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}
    assert sent_back(event(part, finish="STOP")) == [part]


def test_sources_are_named_once() -> None:
    web = {"web": {"uri": "https://a.example", "title": "A"}}
    grounding = {"groundingChunks": [web, {"retrievedContext": {"title": "notes.pdf"}}, web], "webSearchQueries": ["q"]}
    citation = {"citationSources": [{"uri": "https://a.example"}, {"uri": "https://b.example"}]}
    chunks, ending = translate(event({"text": "a"}, finish="STOP", groundingMetadata=grounding, citationMetadata=citation))
    found = [chunk for chunk in chunks if chunk["type"].startswith("source")]  # type: ignore[union-attr]
    assert [(chunk.get("url"), chunk.get("title")) for chunk in found] == [
        ("https://a.example", "A"),
        (None, "notes.pdf"),
        ("https://b.example", None),
    ]
    assert ending.metadata["search_queries"] == ["q"]


@pytest.mark.parametrize(
    ("finish", "reason", "kind"),
    [
        ("STOP", "stop", None),
        ("MAX_TOKENS", "length", None),
        *((name, "content-filter", None) for name in ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY")),
        ("MALFORMED_FUNCTION_CALL", "error", "overloaded"),
        ("LANGUAGE", "other", None),
        ("SOMETHING_NEW", "other", None),
        ("", "error", "transport"),
    ],
)
def test_every_kind_of_end_is_distinguished(finish: str, reason: str, kind: str | None) -> None:
    _, ending = translate(event({"text": "Half"}), event(finish=finish))
    assert ending.finish_reason == reason
    assert (ending.error.kind if ending.error else None) == kind


def test_a_blocked_prompt_is_a_permanent_failure() -> None:
    _, ending = translate(b'data: {"promptFeedback": {"blockReason": "SAFETY"}}\r\n\r\n')
    assert (
        ending.error is not None and (ending.error.kind, ending.error.retryable) == ("content", False) and "SAFETY" in ending.error.message
    )


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b'data: {"error": {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}}\r\n\r\n', "overloaded"),
        (b'data: {"error": {"code": 429, "message": "quota", "status": "RESOURCE_EXHAUSTED"}}\r\n\r\n', "rate_limit"),
        (b'[{"error": {"code": 400, "message": "bad", "status": "INVALID_ARGUMENT"}}]', "invalid_request"),
    ],
)
def test_an_error_in_the_stream_is_the_end_with_its_kind(body: bytes, kind: str) -> None:
    _, ending = translate(event({"text": "a"}), body)
    assert ending.error is not None and ending.error.kind == kind


def test_other_candidates_are_ignored() -> None:
    chunks, _ = translate(event({"text": "a"}), event({"text": "b"}, index=1), event(finish="STOP"))
    assert [chunk["delta"] for chunk in chunks if "delta" in chunk] == ["a"]


TEXTS = st.text(min_size=1, max_size=6)
PARTS = st.lists(
    st.one_of(
        st.builds(lambda text, thought: {"text": text, **({"thought": True} if thought else {})}, TEXTS, st.booleans()),
        st.builds(lambda text, sign: {"text": text, "thoughtSignature": sign}, st.text(max_size=4), st.sampled_from(["AA==", "BB=="])),
        st.builds(lambda n: {"functionCall": {"name": "f", "args": {"n": n}}, "thoughtSignature": "CC=="}, st.integers()),
        st.builds(lambda text: {"executableCode": {"language": "PYTHON", "code": text}}, TEXTS),
        st.builds(lambda data: {"inlineData": {"mimeType": "image/png", "data": data}}, st.sampled_from(["AAAA", "BBBB"])),
    ),
    max_size=8,
)


@given(PARTS, st.lists(st.integers(1, 3), max_size=8))
def test_a_request_reproduces_the_history_for_any_event_layout(found: list[dict[str, Any]], sizes: list[int]) -> None:
    came: list[dict[str, Any]] = []
    for part in found:  # every code execution has a result
        came += [part, {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}}] if "executableCode" in part else [part]
    raws, rest = list[bytes](), came
    for size in sizes:
        raws.append(event(*rest[:size]))
        rest = rest[size:]
    raws.append(event(*rest, finish="STOP"))
    assert sent_back(*raws) == merged(came)
