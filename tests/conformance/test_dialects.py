from __future__ import annotations

import dataclasses
import importlib.util
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.wires import HOSTILE, conversation, wire_calls
from moot.convert.fold import fold_parts
from moot.plugins import DIALECTS
from moot.types import canonical
from moot.types.chunk import FINISH_REASONS, Chunk, problems
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.message import Message, Part, is_tool, text_part, tool_name
from moot.types.model import Model, ModelId
from moot.types.provider import ModelPrompt, Quirks, ToolDefinition

_spec = importlib.util.spec_from_file_location("record", Path(__file__).parent.parent / "record.py")
assert _spec is not None and _spec.loader is not None
record = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(record)


RECORDINGS: list[Path] = record.recordings()
FRAMES = {path: record.raws_of(path.parent.name, path.read_bytes()) for path in RECORDINGS}
NAMES = DIALECTS.names()
ENDED: st.SearchStrategy[Ended] = st.sampled_from(["eof", "cut", "cancelled"])

IDLESS = ("google", "ollama")
"""Dialects that allow calls without ids."""

dialects = pytest.mark.parametrize("name", NAMES)


def translate(name: str, raws: Sequence[bytes], ended: Ended = "eof") -> tuple[list[Chunk], Ending]:
    translator = DIALECTS.load(name)().translator
    state = translator.open(record.OPTIONS)
    chunks: list[Chunk] = []
    for raw in raws:
        state, made = translator.feed(state, raw)
        chunks += made
    closing, ending = translator.close(state, ended)
    return [*chunks, *closing], ending


def thaw(like: Any, data: Any) -> Any:
    """Restore a state from its JSON; `like` provides only the types."""
    if hasattr(like, "_fields"):
        return type(like)(*(thaw(old, new) for old, new in zip(like, data, strict=True)))
    if isinstance(like, tuple):
        return tuple(thaw(old, new) for old, new in zip(like, data, strict=True))
    if dataclasses.is_dataclass(like) and not isinstance(like, type):
        return type(like)(**{field.name: thaw(getattr(like, field.name), data[field.name]) for field in dataclasses.fields(like)})
    return data


def complaints(chunks: Sequence[Chunk]) -> Iterator[str]:
    """Check that chunks are valid for the AI SDK's strictest client and obey the contract of translators."""
    spoken: set[tuple[str, Any]] = set()
    calls: dict[Any, str] = {}
    for chunk in chunks:
        kind = str(chunk["type"])
        yield from problems(chunk, 7)
        family, _, what = kind.rpartition("-")
        if kind in ("start", "finish", "start-step", "finish-step", "error", "abort"):
            yield f"{kind} belongs to the loop"
        elif family in ("text", "reasoning") and what != "file":
            key = (family, chunk["id"])
            if (what == "start") == (key in spoken):
                yield f"{kind} out of order for {chunk['id']!r}"
            spoken.discard(key) if what == "end" else spoken.add(key)
        elif kind == "tool-input-start":
            if chunk["toolCallId"] in calls:
                yield f"call {chunk['toolCallId']!r} begins twice"
            calls[chunk["toolCallId"]] = "open"
        elif kind == "tool-input-delta" and calls.get(chunk["toolCallId"]) != "open":
            yield "input for no open call"
        elif kind in ("tool-input-available", "tool-input-error"):
            if calls.get(chunk["toolCallId"], "open") != "open":
                yield f"call {chunk['toolCallId']!r} has its input twice"
            calls[chunk["toolCallId"]] = "done"
    yield from (f"{key} left open" for key in spoken)
    yield from (f"call {id!r} left open" for id, state in calls.items() if state == "open")


def check(name: str, raws: Sequence[bytes], ended: Ended = "eof") -> tuple[list[Chunk], Ending]:
    chunks, ending = translate(name, raws, ended)
    assert list(complaints(chunks)) == []
    assert ending.finish_reason in FINISH_REASONS
    canonical.dumps(ending.to_json())
    "".join(json.dumps(chunk, ensure_ascii=False) for chunk in chunks).encode()  # no lone surrogates
    for part in fold_parts((), chunks):
        assert part.get("state") not in ("streaming", "input-streaming")
    return chunks, ending


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_recording_is_translated_into_its_stored_chunks(path: Path) -> None:
    beside = orjson.loads(path.with_suffix(".chunks.json").read_bytes())
    assert orjson.loads(orjson.dumps(record.expected(path.parent.name, FRAMES[path]))) == beside
    check(path.parent.name, FRAMES[path])


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_body_cut_at_any_byte_ends_well(path: Path) -> None:
    translator = DIALECTS.load(path.parent.name)().translator
    state, chunks = translator.open(record.OPTIONS), list[Chunk]()
    for raw in FRAMES[path]:
        for cut in range(0, len(raw), 1 if len(raw) < 120 else 3):
            half, made = translator.feed(state, raw[:cut])
            closing, ending = translator.close(half, "cut")
            assert list(complaints([*chunks, *made, *closing])) == [] and ending.finish_reason in FINISH_REASONS
        state, made = translator.feed(state, raw)
        chunks += made


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_state_survives_json_between_any_two_events(path: Path) -> None:
    translator = DIALECTS.load(path.parent.name)().translator
    state, chunks = translator.open(record.OPTIONS), list[Chunk]()
    for raw in FRAMES[path]:
        before = json.dumps(state)
        state, made = translator.feed(thaw(state, json.loads(before)), raw)
        chunks += made
        again = thaw(state, json.loads(json.dumps(state)))
        assert again == state
    closing, ending = translator.close(state, "eof")
    assert ([*chunks, *closing], ending) == translate(path.parent.name, FRAMES[path])


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_feeding_does_not_change_an_earlier_state(path: Path) -> None:
    translator = DIALECTS.load(path.parent.name)().translator
    states = [translator.open(record.OPTIONS)]
    for raw in FRAMES[path]:
        states.append(translator.feed(states[-1], raw)[0])
    kept = [json.dumps(state) for state in states]
    for state, raw in zip(states, FRAMES[path], strict=False):
        assert translator.feed(state, raw) == translator.feed(state, raw)
    translator.close(states[-1], "eof")
    assert [json.dumps(state) for state in states] == kept


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_any_split_of_the_bytes_gives_the_same_events(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(RECORDINGS))
    body = path.read_bytes()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=12)))
    frames, raws = record.cutter(path.parent.name), list[bytes]()
    for begin, end in zip([0, *cuts], [*cuts, len(body)], strict=True):
        raws += frames.feed(body[begin:end])
    rest = frames.rest()
    assert [*raws, *([rest] if rest else [])] == FRAMES[path]


@st.composite
def mutated(draw: st.DrawFn) -> list[bytes]:
    """A recording with some events dropped, duplicated, swapped, truncated, corrupted, or mixed with hostile ones."""
    raws = list(FRAMES[draw(st.sampled_from(RECORDINGS))])
    for _ in range(draw(st.integers(0, 6))):
        at = draw(st.integers(0, len(raws) - 1)) if raws else 0
        raw = raws[at] if raws else b""
        match draw(st.sampled_from(["drop", "double", "swap", "cut", "spoil", "insert", "replace"])):
            case "drop" if raws:
                del raws[at]
            case "double":
                raws.insert(at, raw)
            case "swap" if raws:
                other = draw(st.integers(0, len(raws) - 1))
                raws[at], raws[other] = raws[other], raws[at]
            case "cut" if raws:
                raws[at] = raw[: draw(st.integers(0, len(raw)))]
            case "spoil" if raw:
                byte = draw(st.integers(0, len(raw) - 1))
                raws[at] = raw[:byte] + bytes([draw(st.integers(0, 255))]) + raw[byte + 1 :]
            case "replace" if raws:
                old, new = draw(
                    st.sampled_from([(b'"index":0', b'"index":1'), (b'"', b""), (b'""', b"null"), (b"null", b"[]"), (b"{", b"[")])
                )
                raws[at] = raw.replace(old, new, draw(st.integers(1, 3)))
            case _:
                raws.insert(at, draw(st.sampled_from(HOSTILE)))
    return raws


@dialects
@given(raws=mutated(), ended=ENDED)
@settings(max_examples=150, deadline=None)
@pytest.mark.slow
def test_translation_is_total(name: str, raws: list[bytes], ended: Ended) -> None:
    check(name, raws, ended)


@dialects
@given(raws=st.lists(st.sampled_from(HOSTILE) | st.binary(max_size=40), max_size=8), ended=ENDED)
@settings(max_examples=60, deadline=None)
def test_malformed_input_never_raises(name: str, raws: list[bytes], ended: Ended) -> None:
    check(name, raws, ended)


@dialects
def test_an_empty_answer_is_a_failure_with_a_message(name: str) -> None:
    for raws in ([], [b": keep-alive\n\n"] * 3, [b"<!doctype html><title>502</title>"], [b"data: {]\n\n"]):
        _, ending = check(name, raws)
        assert ending.finish_reason == "error" and ending.error is not None and ending.error.message
    assert check(name, [], "cancelled")[1].error is None


IDS = st.sampled_from(["call_0", "call_0#1.0", "toolu_01", "functions.read:0", "", "é", "x" * 100])
VALUES = st.sampled_from([{}, {"path": "a"}, "{broken", None, 5, {"n": 2**70}])
SIGNED = st.sampled_from(
    [
        None,
        {"anthropic": {"signature": "s", "provider": "here"}},
        {"anthropic": {"redactedData": "d", "provider": "elsewhere"}},
        {"openai-chat": {"detail": {"type": "reasoning.text", "signature": "s"}, "provider": "here"}},
    ]
)
TOOLS = st.fixed_dictionaries(
    {
        "type": st.sampled_from(["tool-read_file", "dynamic-tool", "tool-web_search"]),
        "toolName": st.just("mcp tool.x"),
        "toolCallId": IDS,
        "state": st.sampled_from(
            [
                "input-streaming",
                "input-available",
                "approval-requested",
                "approval-responded",
                "output-available",
                "output-error",
                "output-denied",
            ]
        ),
        "input": VALUES,
    },
    optional={
        "output": st.sampled_from(
            ["out", {"a": 1}, {"type": "content", "value": [text_part("t"), {"type": "file", "mediaType": "image/png", "url": "data:,"}]}]
        ),
        "errorText": st.just("failed"),
        "preliminary": st.booleans(),
        "toolMetadata": st.sampled_from([{"vendorId": "call_0"}, {"vendorId": 5}, {"custom": True}]),
        "providerExecuted": st.booleans(),
        "callProviderMetadata": st.sampled_from([{"anthropic": {"type": "server_tool_use", "provider": "here", "block": {}}}, {}]),
        "resultProviderMetadata": st.sampled_from([{"anthropic": {"type": "web_search_tool_result", "provider": "here"}}, {}]),
    },
)
PARTS: st.SearchStrategy[Part] = st.one_of(
    st.sampled_from(["words", " ", "", "\ud800"]).map(text_part),
    TOOLS,
    TOOLS,
    st.builds(lambda pm: {"type": "reasoning", "text": "hm", "state": "done", **({"providerMetadata": pm} if pm else {})}, SIGNED),
    st.sampled_from(
        [
            {"type": "step-start"},
            {"type": "steering-message", "id": "s", "parts": [text_part("go on")]},
            {"type": "data-attempt", "data": {"abandoned": True}},
            {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"},
            {"type": "custom", "kind": "x.y"},
            {"type": "unheard-of"},
            {"type": "source-url", "sourceId": "1", "url": "https://x"},
        ]
    ),
)
MESSAGES = st.lists(
    st.builds(
        lambda role, parts: Message("m", role, tuple(parts), {"provider": "here"}),
        st.sampled_from(["user", "assistant", "assistant", "system"]),
        st.lists(PARTS, max_size=7),
    ),
    max_size=5,
)


@dialects
@given(messages=MESSAGES, last=st.sampled_from(["and now?"]))
@settings(max_examples=80, deadline=None)
@pytest.mark.slow
def test_every_call_in_a_request_has_exactly_one_output(name: str, messages: list[Message], last: str) -> None:
    model = Model(ModelId("m", "here"), "m", modalities=("text", "image"), reasoning=True)
    tools = (ToolDefinition("read_file", "Reads.", {"type": "object", "properties": {}}),)
    prompt = ModelPrompt(
        model, "be brief", (*messages, Message("u", "user", (text_part(last),))), tools, quirks=Quirks(reasoning_back="reasoning_details")
    )
    kept = [json.dumps(message.parts) for message in messages]
    body = json.loads(canonical.dumps(DIALECTS.load(name)().to_request(prompt)))
    for calls, outputs in wire_calls(body):
        assert calls == outputs
        assert len(set(calls)) == len(calls) or name in IDLESS
    assert last in json.dumps(conversation(body)[-1])
    assert [json.dumps(message.parts) for message in messages] == kept


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_model_output_is_part_of_the_next_request(path: Path) -> None:
    name = path.parent.name
    folded = fold_parts((), [{"type": "start-step"}, *translate(name, FRAMES[path])[0]])
    done = tuple(
        {**part, "state": "output-available", "output": "42"} if part.get("state") == "input-available" else part for part in folded
    )
    model = Model(ModelId("m", "recorded"), "m", reasoning=True)
    message = Message("a", "assistant", done)
    prompt = ModelPrompt(model, "", (Message("u", "user", (text_part("hi"),)), message), quirks=Quirks(reasoning_back="reasoning_content"))
    body = json.loads(canonical.dumps(DIALECTS.load(name)().to_request(prompt)))
    sent = json.dumps(conversation(body), ensure_ascii=False)
    for part in done:
        if part["type"] == "text":
            assert json.dumps(part["text"], ensure_ascii=False)[1:-1].strip() in sent
        elif is_tool(part) and "vendorId" in part.get("toolMetadata", {}):  # type: ignore[operator]
            assert json.dumps(part["toolMetadata"]["vendorId"]) in sent  # type: ignore[index, call-overload]
        elif is_tool(part):
            assert json.dumps(tool_name(part)) in sent or part.get("providerExecuted")
        for field in ("providerMetadata", "callProviderMetadata", "resultProviderMetadata"):
            for signature in signatures(part.get(field)):
                assert json.dumps(signature) in sent


def signatures(metadata: Any) -> Iterator[str]:
    """Signed or encrypted content, in any dialect."""
    for inner in (metadata or {}).values():
        yield from (inner[key] for key in ("signature", "redactedData", "thoughtSignature", "encryptedContent") if inner.get(key))


def test_only_options_reach_the_translator() -> None:
    for name in NAMES:
        translator = DIALECTS.load(name)().translator
        assert isinstance(translator.name, str) and isinstance(translator.version, int)
        assert translator.open(ExchangeOptions("1.0")) == translator.open(ExchangeOptions("1.0"))
