from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claude_recordings import NAMES, RECORDED, TRANSLATOR, expected, lines_of, silent, translate
from moot.convert.agents.claude_code import ClaudeStreamJson, call_id
from moot.convert.fold import fold_parts
from moot.types.chunk import Chunk, problems
from moot.types.exchange import Ended, ExchangeOptions
from moot.types.message import TOOL_DONE, Part, is_tool, text_of
from moot.types.part_tree import parent_call
from moot.types.usage import Usage

OUTPUTS = {"tool-output-available", "tool-output-error", "tool-output-denied", "tool-input-error"}


def check(chunks: list[Chunk]) -> list[Part]:
    """Check a message: known chunks only, balanced steps, everything closed, one output per call. Return its parts."""
    for chunk in chunks:
        assert not (found := problems(chunk, 7)), found
    depth, open_parts, outputs, called = 0, set[str](), Counter[str](), set[str]()
    for chunk in chunks:
        kind = str(chunk["type"])
        if kind in ("start-step", "finish-step"):
            depth += 1 if kind == "start-step" else -1
            assert depth in (0, 1) and not open_parts, "a part crosses a step's border"
        elif kind in ("text-start", "reasoning-start"):
            assert chunk["id"] not in open_parts
            open_parts.add(str(chunk["id"]))
        elif kind in ("text-delta", "reasoning-delta"):
            assert chunk["id"] in open_parts
        elif kind in ("text-end", "reasoning-end"):
            open_parts.remove(str(chunk["id"]))
        elif kind == "tool-input-start":
            assert chunk["toolCallId"] not in called, "an id was used twice"
            called.add(str(chunk["toolCallId"]))
        if kind in OUTPUTS:
            assert chunk["toolCallId"] in called
            outputs[str(chunk["toolCallId"])] += 1
    assert not depth and not open_parts
    assert outputs == Counter(called), "not one output to each call"
    parts = list(fold_parts((), chunks))
    assert all(part["state"] in TOOL_DONE for part in parts if is_tool(part))
    assert not [part for part in parts if part.get("state") in ("streaming", "input-streaming")]
    return parts


def said(parts: list[Part]) -> str:
    return text_of([part for part in parts if part.get("type") == "text"])


# ── output of real programs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_gives_the_same_chunks_as_before(name: str) -> None:
    assert expected(name) == json.loads((RECORDED / name).with_suffix(".chunks.json").read_bytes())
    check(translate(lines_of(name))[0])


def test_all_kinds_of_lines_without_chunks_are_known() -> None:
    assert silent() == json.loads((RECORDED / "silent.json").read_bytes())


@pytest.mark.parametrize("name", [name for name in NAMES if "no-session" not in name and "overloaded" not in name])
def test_without_partial_messages_the_result_is_the_same(name: str) -> None:
    lines = lines_of(name)
    whole = [line for line in lines if json.loads(line)["type"] != "stream_event"]

    def seen(lines: list[bytes]) -> list[tuple[object, ...]]:
        parts = check(translate(lines)[0])
        return [(part.get("type"), part.get("text"), part.get("input"), part.get("output"), part.get("errorText")) for part in parts]

    assert seen(whole) == seen(lines)


def test_the_headless_stream_has_its_own_name() -> None:
    assert (ClaudeStreamJson().name, ClaudeStreamJson().version) == ("claude-stream-json", TRANSLATOR.version)


def test_sub_agent_text_and_calls_are_marked_and_not_part_of_the_answer() -> None:
    parts = check(translate(lines_of("sub-agent.wire.jsonl"))[0])
    assert "Looking" not in said(parts) and "The sub-agent found notes.txt." in said(parts)
    told = [part["data"] for part in parts if part.get("type") == "data-subagent"]
    task = next(part for part in parts if part.get("toolName") == "Task")
    assert [(data["kind"], data["text"]) for data in told if isinstance(data, dict)] == [
        ("reasoning", "sub thinking"),
        ("text", "Looking."),
        ("text", "Found notes.txt"),
    ]
    inner = next(part for part in parts if part.get("toolName") == "Bash")
    metadata: Any = inner["toolMetadata"]
    assert metadata["claude-code"] == {"agent": "general-purpose"}
    assert {parent_call(part) for part in (*(part for part in parts if part.get("type") == "data-subagent"), inner)} == {task["toolCallId"]}
    assert metadata["moot"] == {"parentToolCallId": task["toolCallId"]}
    assert inner["output"] == "notes.txt"


def test_the_cost_of_a_resumed_session_covers_this_turn_only() -> None:
    ending = translate(lines_of("resumed.wire.jsonl"), extra={"resumed": True})[1]
    assert (ending.cost, ending.usage) == (840_000, Usage(110, 20, 0, 0, 0))


def test_older_versions_report_only_the_session_cost() -> None:
    lines = [line.replace(b"model_usage_since_last_result", b"not_known_yet") for line in lines_of("resumed.wire.jsonl")]
    assert translate(lines, extra={"resumed": True})[1].cost is None
    ending = translate(lines)[1]
    assert (ending.cost, ending.usage.input, ending.usage.output) == (1_680_000, 110, 20)


def test_two_turns_of_a_run_are_counted_together() -> None:
    ending = translate(lines_of("sub-agent.wire.jsonl"))[1]
    assert (ending.cost, ending.usage.input, ending.usage.output) == (4_200_000, 550, 100)


def test_a_killed_run_reports_usage_without_cost() -> None:
    lines = [line for line in lines_of("allowed.wire.jsonl") if json.loads(line)["type"] != "result"]
    _, ending, _ = translate(lines, "cancelled")
    assert (ending.usage.input, ending.usage.output, ending.cost, ending.error) == (220, 40, None, None)
    _, ending, _ = translate(lines, "cut")
    assert ending.error is not None and ending.error.kind == "cut" and ending.finish_reason == "error"


def test_an_interrupt_by_moot_is_not_a_failure() -> None:
    lines = lines_of("interrupted.wire.jsonl")
    assert translate(lines, "cancelled")[1].error is None
    error = translate(lines, "eof")[1].error
    assert error is not None and error.kind == "interrupted"


@pytest.mark.parametrize("subtype", ["error_max_turns", "error_max_budget_usd"])
def test_the_agents_own_limits_end_the_run_as_limits(subtype: str) -> None:
    line = json.dumps({"type": "result", "subtype": subtype, "is_error": True, "errors": ["Reached it"], "total_cost_usd": 0.5}).encode()
    error = translate([line])[1].error
    assert error is not None and (error.message, error.kind) == ("Reached it", "limit")


def test_a_rejected_model_call_ends_with_the_vendors_message() -> None:
    chunks, ending, _ = translate(lines_of("overloaded.wire.jsonl"))
    assert [chunk["type"] for chunk in chunks] == ["data-note"]
    assert ending.error is not None and (ending.error.kind, ending.error.retryable) == ("overloaded", True)


def test_a_call_is_complete_before_its_approval_is_requested() -> None:
    state = TRANSLATOR.open(ExchangeOptions("1.0", 1))
    shown: list[str] = []
    for line in lines_of("three-calls.wire.jsonl"):
        event = json.loads(line)
        if event["type"] == "control_request":
            assert call_id(state, event["request"]["tool_use_id"]) in shown
        state, chunks = TRANSLATOR.feed(state, line)
        shown += [str(chunk["toolCallId"]) for chunk in chunks if chunk["type"] == "tool-input-available"]
    assert len(shown) == 3


def test_ids_that_the_message_has_are_not_used_again() -> None:
    state = TRANSLATOR.open(ExchangeOptions("2.0", 2, ("toolu_1", "toolu_2")))
    block = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"n": 12345678901234567890123}}
    sub = {"type": "tool_use", "id": "toolu_2", "name": "Bash", "input": {}}
    state, chunks = TRANSLATOR.feed(state, json.dumps({"type": "assistant", "message": {"id": "m", "content": [block]}}).encode())
    state, more = TRANSLATOR.feed(
        state, json.dumps({"type": "assistant", "parent_tool_use_id": "toolu_1", "message": {"id": "n", "content": [sub]}}).encode()
    )
    called = [chunk for chunk in (*chunks, *more) if chunk["type"] == "tool-input-available"]
    assert [chunk["toolCallId"] for chunk in called] == ["toolu_1#2.0", "toolu_2#2.0.3"]
    assert called[0]["input"] == {"n": 12345678901234567890123}
    assert called[0]["toolMetadata"] == {"vendorId": "toolu_1"}
    metadata: Any = called[1]["toolMetadata"]
    assert metadata["moot"]["parentToolCallId"] == call_id(state, "toolu_1") == "toolu_1#2.0"


def test_images_become_files_and_errors_are_unwrapped() -> None:
    def call(id: str, **result: Any) -> list[bytes]:
        block = {"type": "tool_use", "id": id, "name": "Read", "input": {}}
        answer = {"type": "tool_result", "tool_use_id": id, **result}
        return [
            json.dumps({"type": "assistant", "message": {"id": "m", "content": [block]}}).encode(),
            json.dumps({"type": "user", "message": {"content": [answer]}}).encode(),
        ]

    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
    lines = call("a", content=[{"type": "text", "text": "seen"}, image])
    lines += call("b", content="<tool_use_error>no such file</tool_use_error>", is_error=True)
    parts = [part for part in check(translate(lines)[0]) if is_tool(part)]
    assert parts[0]["output"] == {
        "type": "content",
        "value": [{"type": "text", "text": "seen"}, {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,aGk="}],
    }
    assert parts[1]["errorText"] == "no such file"


# ── properties ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

POOL = [line for name in NAMES for line in lines_of(name)]
REAL = st.integers(0, len(POOL) - 1).map(POOL.__getitem__)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "id", "content", "message", "x"]), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.lists(st.binary(max_size=60) | REAL, max_size=20), st.sampled_from(["eof", "cut", "cancelled"]))
def test_arbitrary_bytes_never_raise(lines: list[bytes], ended: Ended) -> None:
    check(translate(lines, ended)[0])


@st.composite
def mangled(draw: st.DrawFn) -> list[bytes]:
    """A recording with lines dropped, duplicated and swapped."""
    lines = list(lines_of(draw(st.sampled_from(NAMES))))
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["drop", "double", "swap", "cut"])):
            case "drop" if len(lines) > 1:
                del lines[at]
            case "double":
                lines.insert(at, lines[at])
            case "swap":
                other = draw(st.integers(0, len(lines) - 1))
                lines[at], lines[other] = lines[other], lines[at]
            case _:
                lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
    return lines


@given(mangled())
def test_lost_duplicate_and_swapped_lines_give_a_complete_message(lines: list[bytes]) -> None:
    check(translate(lines, "cut")[0])


@st.composite
def odd(draw: st.DrawFn) -> bytes:
    """A real line with one of its values replaced by anything."""
    event = json.loads(draw(REAL))
    at: Any = event
    while True:
        keys = list(at) if isinstance(at, dict) else list(range(len(at)))
        key = draw(st.sampled_from(keys))
        if isinstance(at[key], dict | list) and at[key] and draw(st.booleans()):
            at = at[key]
            continue
        at[key] = draw(VALUES)
        return json.dumps(event).encode()


@given(st.lists(odd() | REAL, max_size=12))
def test_lines_of_another_shape_give_a_complete_message(lines: list[bytes]) -> None:
    check(translate(lines)[0])
