"""Codex's app-server and its headless stream: recordings of the real program, and lines lost, duplicated, swapped and invented."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moot.convert.agents.codex import CodexAppServer, State, call_id
from moot.convert.agents.codex_calls import unwrap_shell
from moot.convert.agents.headless import CodexExec
from moot.convert.fold import fold_parts
from moot.types.chunk import Chunk, problems
from moot.types.exchange import Ended, Ending, ExchangeOptions
from moot.types.message import TOOL_DONE, Part, is_tool, text_of
from moot.types.usage import Usage

RECORDED = Path(__file__).parents[2] / "recorded" / "agents" / "codex"
NAMES = sorted(path.name for path in RECORDED.glob("*.jsonl"))
OUTPUTS = {"tool-output-available", "tool-output-error", "tool-output-denied", "tool-input-error"}


def translator_of(name: str) -> CodexAppServer | CodexExec:
    return CodexExec() if name.startswith("exec") else CodexAppServer()


def lines_of(name: str) -> list[bytes]:
    """The program's output, line by line."""
    found: list[bytes] = []
    for line in (RECORDED / name).read_bytes().splitlines(keepends=True):
        row = json.loads(line)
        if "dir" not in row:
            found.append(line)
        elif row["dir"] in ("in", "agent->client"):
            found.append(json.dumps(row["msg"], ensure_ascii=False).encode() + b"\n")
    return found


def translate(lines: list[bytes], name: str = "", ended: Ended = "eof", **options: Any) -> tuple[list[Chunk], Ending, State]:
    translator = translator_of(name)
    state = translator.open(ExchangeOptions("1.0", 1, **options))
    chunks: list[Chunk] = []
    for line in lines:
        state, made = translator.feed(state, line)
        chunks += made
    json.dumps(state)
    closing, ending = translator.close(state, ended)
    return [*chunks, *closing], ending, state


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
        if kind in OUTPUTS and not chunk.get("preliminary"):
            assert chunk["toolCallId"] in called
            outputs[str(chunk["toolCallId"])] += 1
    assert not depth and not open_parts
    assert outputs == Counter(called), "not one output to each call"
    parts = list(fold_parts((), chunks))
    assert all(part["state"] in TOOL_DONE for part in parts if is_tool(part))
    assert not [part for part in parts if part.get("state") in ("streaming", "input-streaming")]
    return parts


def seen(parts: list[Part]) -> list[tuple[object, ...]]:
    names = ("type", "toolName", "text", "input", "output", "errorText", "data")
    return [tuple(part[name] for name in names if name in part) for part in parts]


def notify(method: str, **params: Any) -> bytes:
    return json.dumps({"method": method, "params": {"threadId": "t", "turnId": "u", **params}}).encode() + b"\n"


BEGUN = [
    b'{"id":2,"result":{"thread":{"id":"t"},"model":"m"}}\n',
    notify("turn/started", turn={"id": "u"}),
]


def item(kind: str, id: str = "i", *, done: bool = True, thread: str = "t", **fields: Any) -> bytes:
    return notify("item/completed" if done else "item/started", item={"type": kind, "id": id, **fields}, threadId=thread)


# ── output of the real program ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_gives_the_same_chunks_as_before(name: str) -> None:
    chunks, ending, _ = translate(lines_of(name), name)
    expected = json.loads((RECORDED / name).with_suffix(".chunks.json").read_bytes())
    assert {"chunks": chunks, "ending": ending.to_json()} == expected
    check(chunks)


def test_all_kinds_of_lines_without_chunks_are_known() -> None:
    silent, loud = set[str](), set[str]()
    for name in NAMES:
        translator = translator_of(name)
        state = translator.open(ExchangeOptions("1.0", 1))
        for line in lines_of(name):
            event = json.loads(line)
            about = event.get("params", event).get("item", {}).get("type", "")
            kind = " ".join(filter(None, (event.get("method") or event.get("type") or "(answer)", about)))
            state, chunks = translator.feed(state, line)
            (loud if chunks else silent).add(kind)
    known = json.loads((RECORDED / "silent.json").read_bytes())
    assert sorted(silent - loud) == known


def test_an_answer_has_reasoning_text_and_calls_in_steps() -> None:
    parts = check(translate(lines_of("two-commands.wire.jsonl"))[0])
    assert seen(parts) == [
        ("step-start",),
        ("reasoning", "think"),
        ("text", "Two."),
        ("dynamic-tool", "shell", {"command": "sleep 0.3; echo two; exit 3"}, "exit code 3\ntwo"),
        ("dynamic-tool", "shell", {"command": "echo one"}, "one\n"),
        ("step-start",),
        ("text", "Both ran."),
    ]


def test_declined_calls_are_denied_and_written_files_named() -> None:
    chunks, _, _ = translate(lines_of("file-declined-cancelled.wire.jsonl"))
    calls = [part for part in check(chunks) if is_tool(part)]
    assert [(part["toolName"], part["state"]) for part in calls] == [
        ("apply_patch", "output-available"),
        ("shell", "output-denied"),
        ("shell", "output-denied"),
        ("shell", "output-denied"),
    ]
    assert calls[0]["output"] == "add /home/user/project/a.txt"
    assert [part["toolCallId"] for part in calls[1:]] == ["c1", "c2", "c1#1.0.0"], "Codex uses an id again in another turn"


def test_earlier_usage_of_a_resumed_session_is_not_counted_again() -> None:
    _, ending, _ = translate(lines_of("resumed.wire.jsonl"))
    assert ending.usage == Usage(110, 20, 0, 0, 0)


def test_usage_of_sub_agents_is_counted_without_earlier_usage() -> None:
    lines = lines_of("sub-agent.wire.jsonl")
    assert translate(lines)[1].usage == Usage(5 * 110, 5 * 20, 0, 0, 0)
    begun = [line for line in lines if b'"turn/started"' in line]
    own, inner = (json.loads(line)["params"] for line in begun)
    assert own["threadId"] != inner["threadId"]
    assert translate([line for line in lines if line != begun[1]])[1].usage == Usage(3 * 110, 3 * 20, 0, 0, 0), "an agent that comes back"


def test_a_stopped_command_is_closed_without_failing_the_run() -> None:
    lines = lines_of("interrupted.wire.jsonl")
    chunks, ending, _ = translate(lines, ended="cancelled")
    (call,) = [part for part in check(chunks) if is_tool(part)]
    assert call["errorText"] == "the agent stopped before this call had an output"
    assert (ending.error, ending.raw_reason) == (None, "interrupted")
    failed = translate(lines)[1].error
    assert failed is not None and failed.kind == "interrupted"


def test_both_streams_give_the_same_answer() -> None:
    def words(name: str) -> str:
        return text_of([part for part in check(translate(lines_of(name), name)[0]) if part.get("type") == "text"])

    assert words("exec-json-hello.jsonl") == "I'll create the script.Now I'll run it.hello.py prints `hello from moot`."
    assert words("app-server-accept.wire.jsonl").endswith(words("exec-json-hello.jsonl"))


# ── invented ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_failures_have_a_kind_and_retries_are_reported() -> None:
    retry = [notify("error", error={"message": f"Reconnecting... {n}/5"}, willRetry=True) for n in (1, 2)]
    last = notify("error", error={"message": "exceeded retry limit", "codexErrorInfo": "serverOverloaded"}, willRetry=False)
    ended = notify("turn/completed", turn={"id": "u", "status": "failed", "error": None})
    chunks, ending, _ = translate([*BEGUN, *retry, last, ended])
    assert seen(check(chunks)) == [("data-note", {"text": "Reconnecting... 2/5"})]
    assert ending.error is not None and (ending.error.kind, ending.error.message) == ("overloaded", "exceeded retry limit")


def test_a_successful_reconnection_is_not_a_failure() -> None:
    lines = [
        *BEGUN,
        notify("error", error={"message": "stream lost"}, willRetry=False),
        notify("turn/completed", turn={"id": "u", "status": "completed"}),
    ]
    assert translate(lines)[1].error is None


def test_an_end_before_the_turns_end_is_cut_off() -> None:
    ending = translate([*BEGUN, notify("item/agentMessage/delta", itemId="i", delta="Hel")])[1]
    assert ending.error is not None and ending.error.kind == "cut"
    assert translate(BEGUN, ended="cancelled")[1].error is None


def test_a_plan_a_search_a_tool_of_a_server_and_a_picture() -> None:
    lines = [
        *BEGUN,
        notify("turn/plan/updated", plan=[{"step": "look", "status": "inProgress"}, {"step": "fix", "status": "new"}]),
        item("webSearch", "w", done=False, query=""),
        item("webSearch", "w", query="cats", action={"type": "search"}, results=None),
        item("mcpToolCall", "m", done=False, server="files", tool="read", arguments={"n": 12345678901234567890}, status="inProgress"),
        item("mcpToolCall", "m", server="files", tool="read", status="completed", result={"content": [{"type": "text", "text": "hi"}]}),
        item("mcpToolCall", "f", server="files", tool="read", arguments={}, status="failed", error={"message": "gone"}),
        item("imageView", "v", path="/a.png"),
        item("contextCompaction", "c"),
        item("somethingNew", "n"),
        notify("something/new"),
        notify("turn/completed", turn={"id": "u", "status": "completed"}),
    ]
    assert seen(check(translate(lines)[0])) == [
        ("data-plan", {"entries": [{"content": "look", "status": "in_progress"}, {"content": "fix", "status": "pending"}]}),
        ("step-start",),
        ("dynamic-tool", "web_search", {"query": "cats", "action": {"type": "search"}}, "cats"),
        ("dynamic-tool", "files.read", {"n": 12345678901234567890}, "hi"),
        ("dynamic-tool", "files.read", {}, "gone"),
        ("dynamic-tool", "view_image", {"path": "/a.png"}, "/a.png"),
        ("data-note", {"text": "Codex has summarised the conversation so far to make room"}),
    ]


def test_sub_agent_text_and_calls_are_marked_and_not_part_of_the_answer() -> None:
    begun = [item("collabAgentToolCall", "s", done=done, tool="spawnAgent", receiverThreadIds=["child"] * done) for done in (False, True)]
    lines = [
        *BEGUN,
        *begun,
        item("agentMessage", "a", done=False, thread="child"),
        notify("item/agentMessage/delta", itemId="a", delta="secretly", threadId="child"),
        item("agentMessage", "a", thread="child", text="Found it."),
        item("commandExecution", "c", thread="child", command="ls", status="completed", aggregatedOutput="x", exitCode=0),
        item("collabAgentToolCall", "w", tool="wait", receiverThreadIds=["child"]),
        item("commandExecution", "d", thread="stranger", command="ls", status="completed", aggregatedOutput="x", exitCode=0),
        notify("turn/completed", turn={"id": "child-turn", "status": "failed"}, threadId="child"),
        item("agentMessage", "b", text="All done."),
        notify("turn/completed", turn={"id": "u", "status": "completed"}),
    ]
    chunks, ending, _ = translate(lines)
    parts = check(chunks)
    assert text_of([part for part in parts if part.get("type") == "text"]) == "All done." and ending.error is None
    calls = {part["toolCallId"]: part["toolMetadata"] for part in parts if is_tool(part)}
    assert calls == {
        "s": {"vendorId": "s"},
        "c": {"vendorId": "c", "codex": {"agent": "child", "exitCode": 0}, "moot": {"parentToolCallId": "s"}},
        "w": {"vendorId": "w"},
        "d": {"vendorId": "d", "codex": {"agent": "stranger", "exitCode": 0}},
    }
    (words,) = [part["data"] for part in parts if part["type"] == "data-subagent"]
    assert words == {"parentToolCallId": "s", "agent": "sub-agent 1", "thread": "child", "kind": "text", "text": "Found it."}


def test_missing_text_is_added_at_the_end_of_its_part() -> None:
    lines = [*BEGUN, notify("item/agentMessage/delta", itemId="i", delta="Hel"), item("agentMessage", text="Hello.")]
    assert "".join(str(chunk.get("delta", "")) for chunk in translate(lines)[0]) == "Hello."


def test_a_commands_output_is_shown_while_it_runs_and_a_flood_is_not_repeated() -> None:
    pieces = [notify("item/commandExecution/outputDelta", itemId="c", delta="x" * 100 + "\n") for _ in range(2000)]
    begun = item("commandExecution", "c", done=False, command="yes")
    chunks = translate([*BEGUN, begun, *pieces], ended="cancelled")[0]
    shown = [chunk for chunk in chunks if chunk.get("preliminary")]
    assert shown[0]["output"] == "x" * 100 + "\n" and len(shown) < 60
    assert sum(len(str(chunk["output"])) for chunk in shown) < 2 * 202_000
    check(chunks)


def test_an_approval_request_for_an_unknown_call_shows_the_call() -> None:
    asked = {"id": 0, "method": "item/commandExecution/requestApproval", "params": {"threadId": "t", "itemId": "c", "command": "ls"}}
    chunks, _, state = translate([*BEGUN, json.dumps(asked).encode()], tool_call_ids=("c",))
    assert call_id(state, "c") == "c#1.0.0" and call_id(state, "other") == "other"
    assert [part["input"] for part in check(chunks) if is_tool(part)] == [{"command": "ls"}]


@pytest.mark.parametrize(
    ("command", "line"),
    [
        ("/bin/bash -lc 'ls -1'", "ls -1"),
        ("bash -c \"cat > x <<'E'\nhi\nE\"", "cat > x <<'E'\nhi\nE"),
        ("/usr/bin/env bash -c ls", "/usr/bin/env bash -c ls"),
        ("bash -lc 'ls' extra", "bash -lc 'ls' extra"),
        ("bash -lc 'unbalanced", "bash -lc 'unbalanced"),
        ("ls -1", "ls -1"),
    ],
)
def test_only_the_shell_wrapper_of_a_command_is_removed(command: str, line: str) -> None:
    assert unwrap_shell(command) == line


@given(
    begin=st.sampled_from(["bash -lc ", " /bin/sh\t-c  ", "'bash' -lc ", "ba\\sh -c ", "ls -lc ", "zsh -l ", ""]),
    rest=st.text("'\"\\ \n\x0bab-$é") | st.text("'\"\\ ab").map(shlex.quote),
)
def test_a_shell_wrapper_is_recognized_as_a_shell_splits_words(begin: str, rest: str) -> None:
    command = begin + rest
    try:
        words = shlex.split(command)
    except ValueError:
        words = []
    is_wrapped = len(words) == 3 and words[0] in ("bash", "/bin/sh") and words[1] in ("-c", "-lc")
    assert unwrap_shell(command) == (words[2] if is_wrapped else command)


# ── arbitrary input ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────

LINES = [line for name in NAMES if name != "app-server-accept.wire.jsonl" for line in lines_of(name)]
ENDS = st.sampled_from(["eof", "cut", "cancelled"])
METHODS = sorted({str(json.loads(line).get("method")) for line in LINES})
ODD: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=4
)
ITEMS = st.fixed_dictionaries(
    {"type": st.sampled_from(["agentMessage", "reasoning", "commandExecution", "fileChange", "webSearch", "mcpToolCall", "plan", "x"])},
    optional={"id": st.sampled_from(["a", "b", ""]) | ODD, "status": ODD | st.sampled_from(["failed", "declined", "completed"]),
              "text": ODD, "summary": ODD, "command": ODD, "changes": ODD, "arguments": ODD, "result": ODD, "error": ODD, "tool": ODD},
)  # fmt: skip
PARAMS = st.fixed_dictionaries(
    {},
    optional={"item": ITEMS | ODD, "itemId": st.sampled_from(["a", "b"]) | ODD, "delta": ODD, "turn": ODD, "threadId": ODD, "error": ODD,
              "tokenUsage": ODD, "plan": ODD, "summaryIndex": ODD, "turnId": ODD, "command": ODD},
)  # fmt: skip


@given(st.lists(st.binary(max_size=60) | st.sampled_from(LINES), max_size=30), ENDS)
def test_lost_repeated_or_swapped_events_still_give_a_complete_message(lines: list[bytes], ended: Ended) -> None:
    for name in ("", "exec"):
        check(translate(lines, name, ended)[0])


@given(st.lists(st.tuples(st.sampled_from(METHODS), PARAMS), max_size=12), ENDS)
def test_fields_of_another_type_never_raise(events: list[tuple[str, Any]], ended: Ended) -> None:
    lines = [*BEGUN, *(json.dumps({"method": method, "params": params}).encode() for method, params in events)]
    check(translate(lines, "", ended)[0])
    told = [json.dumps({"type": "item.completed", **params}).encode() for _, params in events]
    check(translate(told, "exec", ended)[0])


@given(st.integers(0, len(LINES)))
def test_a_line_cut_anywhere_is_counted_and_passed_over(at: int) -> None:
    lines = [line[: len(line) // 2] if index == at else line for index, line in enumerate(LINES)]
    check(translate(lines)[0])
