from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import orjson
import pytest

from acp_messages import ASKED, BEGIN, DONE, INITIALIZED, OPENED, Ours, answer, output, permission, text, update, wire
from acp_recordings import SILENT, check, chunks_of, expected, fold, lines, paths, silent, translator
from moot.convert.agents.acp import Acp
from moot.convert.agents.captures import Acpx
from moot.convert.agents.headless import GeminiStream, OpencodeRun
from moot.convert.fold import fold_parts
from moot.types.canonical import JsonObject
from moot.types.chunk import Chunk
from moot.types.exchange import Ended, Ending
from moot.types.message import Part, is_tool, text_of

RECORDINGS = paths()
recorded = pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.name)


def translate(*messages: dict[str, Any], ended: Ended = "eof") -> tuple[list[Chunk], Ending]:
    return chunks_of(Acp(), wire(Ours(BEGIN), INITIALIZED, OPENED, Ours(ASKED), *messages), ended)


def parts(*messages: dict[str, Any], ended: Ended = "eof") -> list[Part]:
    return [part for part in fold_parts((), translate(*messages, ended=ended)[0]) if part["type"] != "step-start"]


def call(*messages: dict[str, Any], ended: Ended = "eof") -> Part:
    found = [part for part in parts(*messages, ended=ended) if is_tool(part)]
    assert len(found) == 1
    return found[0]


# ── the recordings ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────


@recorded
def test_a_recording_gives_a_complete_message(path: Path) -> None:
    chunks, ending = chunks_of(translator(path), lines(path))
    check(chunks, ending)
    assert ending.error is None
    said = [part for part in fold_parts((), chunks) if part["type"] == "text"]
    assert said and all(part["text"] for part in said)


@recorded
def test_a_recording_gives_its_stored_chunks(path: Path) -> None:
    beside = path.with_suffix(".chunks.json")
    assert orjson.loads(beside.read_bytes()) == orjson.loads(orjson.dumps(expected(path))), "see the difference after `make record`"


def test_only_listed_kinds_of_lines_give_no_chunk() -> None:
    assert silent() == orjson.loads(SILENT.read_bytes())


@recorded
def test_a_recording_that_is_cut_anywhere_is_closed(path: Path) -> None:
    given = lines(path)
    for end in range(len(given)):
        for ended in ("eof", "cut", "cancelled"):
            check(*chunks_of(translator(path), given[:end], ended))


@recorded
def test_the_state_is_json_serializable(path: Path) -> None:
    made, given = translator(path), lines(path)
    _, _, _, state = fold(made, given)
    json.dumps(state)


@pytest.mark.parametrize("path", [path for path in RECORDINGS if "-load" in path.name], ids=lambda path: path.name)
def test_the_replay_of_a_loaded_session_is_not_part_of_the_answer(path: Path) -> None:
    given = lines(path)
    asked = next(at for at, (ours, line) in enumerate(given) if ours and b"session/prompt" in line)
    events, _, _, _ = fold(translator(path), given)
    assert not [chunk for event in events[:asked] for chunk in event]
    assert any(b"user_message_chunk" in line for _, line in given[:asked]), "it tells nothing again"


def test_a_one_way_capture_is_translated() -> None:
    path = next(path for path in RECORDINGS if path.name == "claude-agent-acp-0.49.0-A.wire.jsonl")
    heard = [(ours, line) for ours, line in lines(path) if not ours]
    chunks, ending = chunks_of(Acp(), heard)
    check(chunks, ending)
    assert ending.finish_reason == "stop" and "There are 3 files" in str(fold_parts((), chunks))


# ── tool calls ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_permission_request_may_announce_a_call() -> None:
    asked = permission(0, "c", title="rm x", kind="execute")
    found = call(asked, answer(0, "y"), update("tool_call_update", toolCallId="c", status="completed", content=output("gone")), DONE)
    assert (found["state"], found["input"], found["output"]) == ("output-available", {"command": "rm x"}, "gone")


def test_a_refused_call_without_further_updates_is_denied() -> None:
    found = call(permission(0, "c", title="rm x", kind="execute"), answer(0, "n"), DONE)
    assert found["state"] == "output-denied"


def test_a_refused_call_stays_denied_when_the_agent_says_that_it_failed() -> None:
    failed = update("tool_call_update", toolCallId="c", status="failed", content=output("the user said no"))
    assert call(permission(0, "c"), answer(0, "n"), failed, DONE)["state"] == "output-denied"


def test_an_update_may_precede_its_call() -> None:
    updated = update("tool_call_update", toolCallId="c", status="in_progress", rawInput={"a": 1})
    found = call(updated, update("tool_call", toolCallId="c", status="pending"), DONE)
    assert (found["state"], found["input"]) == ("output-error", {"a": 1})


def test_an_update_without_a_status_changes_only_its_fields() -> None:
    begun = update("tool_call", toolCallId="c", title="Terminal", kind="execute", status="pending", rawInput={})
    told = update("tool_call_update", toolCallId="c", status=None, title="ls", rawInput={"command": "ls"}, content=output("List them"))
    found = call(begun, told, update("tool_call_update", toolCallId="c", status="completed", rawOutput="a\nb"), DONE)
    assert (found["title"], found["input"], found["output"]) == ("ls", {"command": "ls"}, "a\nb")


def test_outputs_on_the_way_replace_each_other() -> None:
    steps = [
        update("tool_call_update", toolCallId="c", status="in_progress", content=output(words)) for words in ("1\n", "1\n2\n", "1\n2\n")
    ]
    ended = update("tool_call_update", toolCallId="c", status="completed", content=output("1\n2\n3\n"))
    chunks, _ = translate(*steps, ended, DONE)
    told = [chunk["output"] for chunk in chunks if chunk["type"] == "tool-output-available"]
    assert told == ["1\n", "1\n2\n", "1\n2\n3\n"]


def test_a_long_preliminary_output_is_not_repeated_for_every_line() -> None:
    growing = ["x" * 80 + "\n"] * 1000
    steps = [
        update("tool_call_update", toolCallId="c", status="in_progress", _meta={"terminal_output_delta": {"data": line}})
        for line in growing
    ]
    ended = update("tool_call_update", toolCallId="c", status="completed", _meta={"terminal_exit": {"exit_code": 0}})
    chunks, _ = translate(*steps, ended, DONE)
    told = [str(chunk["output"]) for chunk in chunks if chunk["type"] == "tool-output-available"]
    assert told[-1] == "".join(growing) and sum(map(len, told)) < 8 * len(told[-1])


def test_a_call_without_an_end_is_closed_with_its_output_so_far() -> None:
    begun = update("tool_call", toolCallId="c", status="in_progress", title="make", kind="execute")
    said = update("tool_call_update", toolCallId="c", status="in_progress", content=output("half"))
    cancelled = {"id": 2, "result": {"stopReason": "cancelled"}}
    assert call(begun, said, cancelled)["errorText"] == "cancelled before it ended; its output so far:\nhalf"
    assert call(begun, DONE)["errorText"] == "the agent ended its answer without saying what came of this call"
    assert call(begun, ended="cut")["errorText"] == "the agent ended before the call did"


def test_the_output_is_found_in_each_agents_place() -> None:
    ends = [
        ({"rawOutput": "plain", "content": output("```\nplain\n```")}, "plain"),
        ({"content": output("said")}, "said"),
        ({"_meta": {"terminal_output_delta": {"data": "shown"}, "terminal_exit": {"exit_code": 0}}}, "shown"),
        ({"rawOutput": {"stdout": "out\n", "stderr": "err\n", "output": ""}}, "out\nerr"),
        ({"rawOutput": [{"type": "text", "text": "block"}]}, "block"),
        ({"_meta": {"claudeCode": {"toolResponse": {"stdout": "noted", "stderr": ""}}}}, "noted"),
        ({"rawOutput": {"rows": 3}}, '{"rows":3}'),
        ({}, ""),
    ]
    for fields, words in ends:
        begun = update("tool_call", toolCallId="c", status="in_progress")
        assert call(begun, update("tool_call_update", toolCallId="c", status="completed", **fields), DONE)["output"] == words


def test_a_file_change_is_shown_as_a_diff() -> None:
    diff = {"type": "diff", "path": "a.py", "oldText": "one\n", "newText": "two\n"}
    begun = update("tool_call", toolCallId="c", kind="edit", status="pending", content=[diff])
    found = call(begun, update("tool_call_update", toolCallId="c", status="completed", rawOutput="written"), DONE)
    assert found["output"] == "written\n--- a.py\n+++ a.py\n@@ -1 +1 @@\n-one\n+two\n"


def test_a_calls_output_includes_its_terminal() -> None:
    begun = update("tool_call", toolCallId="c", status="in_progress", content=[{"type": "terminal", "terminalId": "t"}])
    asked = {"id": 7, "method": "terminal/output", "params": {"sessionId": "s", "terminalId": "t"}}
    told = Ours(id=7, result={"output": "from the terminal", "truncated": False})
    found = call(begun, asked, told, update("tool_call_update", toolCallId="c", status="completed"), DONE)
    assert found["output"] == "from the terminal"


def test_an_id_that_is_used_again_is_another_call() -> None:
    ended = [update("tool_call", toolCallId="c", status="completed", rawOutput=words) for words in ("one", "two")]
    found = [part for part in parts(*ended, DONE) if is_tool(part)]
    assert [part["output"] for part in found] == ["one", "two"] and len({str(part["toolCallId"]) for part in found}) == 2


def test_every_digit_of_an_input_is_kept() -> None:
    begun = update("tool_call", toolCallId="c", status="in_progress", rawInput={"number": 2**80})
    assert call(begun, DONE)["input"] == {"number": 2**80}


@pytest.mark.parametrize(
    ("meta", "agent"),
    [
        ({"claudeCode": {"toolName": "Bash", "parentToolUseId": "task"}}, ""),
        ({"toolName": "shell", "parentToolCallId": "task", "subagentType": "explorer"}, "explorer"),
    ],
)
def test_sub_agent_text_and_calls_name_their_parent_call(meta: JsonObject, agent: str) -> None:
    said = parts(
        text("mine", messageId="1"),
        update("tool_call", toolCallId="task", status="in_progress"),
        text("from ", messageId="2", _meta=meta),
        text("below", messageId="2", _meta=meta),
        text("and more", messageId="3", _meta=meta),
        update("tool_call", toolCallId="inner", status="completed", _meta=meta),
        text("also mine", messageId="1"),
        DONE,
    )
    answer, task, *words, inner, end = said
    assert text_of([answer, end]) == text_of(said) == "minealso mine"
    one = {"parentToolCallId": "task", "agent": agent, "kind": "text"}
    assert [part["data"] for part in words] == [{**one, "text": "from below"}, {**one, "text": "and more"}]
    assert inner["toolMetadata"] == {"vendorId": "inner", "acp": {}, "moot": {"parentToolCallId": "task"}}
    assert task["toolMetadata"] == {"vendorId": "task", "acp": {}}


def test_words_of_a_sub_agent_are_kept_if_the_agent_is_cut_off() -> None:
    below = text("not whole", _meta={"parentToolCallId": "task"})
    assert [part["data"]["text"] for part in parts(update("tool_call", toolCallId="task"), below) if "data" in part] == ["not whole"]  # type: ignore[index]


# ── the rest ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_updates_before_the_prompt_and_of_other_sessions_are_ignored() -> None:
    early = [text("early"), update("usage_update", used=5, size=10)]
    chunks, _ = chunks_of(
        Acp(), wire(Ours(BEGIN), INITIALIZED, *early, OPENED, *early, Ours(ASKED), text("other", session="x"), text("mine"), DONE)
    )
    assert [part["text"] for part in fold_parts((), chunks) if part["type"] == "text"] == ["mine"]


def test_a_response_is_matched_by_its_id_of_any_type() -> None:
    _, ending = translate(text("yes"), {"id": "2", "result": {"stopReason": "max_tokens"}})
    assert (ending.finish_reason, ending.raw_reason, ending.error) == ("length", "max_tokens", None)


def test_another_message_of_the_agent_is_another_part() -> None:
    said = parts(text("a", messageId="1"), text("", messageId="2"), text("b", messageId="1"), text("c", messageId="2"), DONE)
    assert [part["text"] for part in said] == ["ab", "c"]


def test_a_plan_is_one_part_that_is_updated() -> None:
    plans = [update("plan", entries=[{"content": "dig", "status": status, "priority": "low"}]) for status in ("pending", "completed")]
    assert parts(*plans, DONE) == [{"type": "data-plan", "id": "plan", "data": {"entries": [{"content": "dig", "status": "completed"}]}}]


def test_images_and_links_are_separate_parts() -> None:
    contents = [
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "https://a.b/c", "name": "c"},
        {"type": "resource_link", "uri": "file:///x.txt", "name": "x"},
    ]
    said = parts(*(update("agent_message_chunk", content=content) for content in contents), DONE)
    assert [part["type"] for part in said] == ["file", "source-url", "source-document"]
    assert len({str(part["sourceId"]) for part in said[1:]}) == 2


def test_an_error_of_the_prompt_is_the_answers_error() -> None:
    _, ending = translate(text("half"), {"id": 2, "error": {"code": -32000, "message": "Authentication required"}})
    assert ending.error is not None and (ending.error.message, ending.error.kind) == ("Authentication required", "auth")
    _, ending = translate(text("half"), {"id": 2, "error": {"code": -32603, "message": "Internal error", "data": {"details": "x"}}})
    assert ending.error is not None and ending.finish_reason == "error"


def test_an_agent_that_ends_without_an_answer_has_not_answered() -> None:
    _, ending = translate(text("half"))
    assert ending.error is not None and ending.error.kind == "cut"
    assert translate(text("half"), ended="cancelled")[1].error is None


def test_noise_between_messages_is_counted_and_ignored() -> None:
    given = wire(INITIALIZED, OPENED, Ours(ASKED), text("fine"), DONE)
    noisy = [line for pair in given for line in ((False, b"npm warn something\n"), pair)]
    chunks, ending = chunks_of(Acp(), noisy)
    assert chunks == chunks_of(Acp(), given)[0] and ending.metadata["noise_lines"] == 5


def test_cost_is_the_increase_of_the_session_total() -> None:
    def cost(amount: float) -> dict[str, Any]:
        return update("usage_update", used=1, size=10, cost={"amount": amount, "currency": "USD"})

    assert translate(cost(0.5), cost(0.75), DONE)[1].cost == 750_000_000
    load = Ours(id=1, method="session/load", params={})
    begun = [INITIALIZED, load, cost(0.5), OPENED, Ours(ASKED)]
    assert chunks_of(Acp(), wire(*begun, cost(0.75), DONE))[1].cost == 250_000_000
    assert chunks_of(Acp(), wire(INITIALIZED, load, OPENED, Ours(ASKED), cost(0.75), DONE))[1].cost is None


def test_separately_counted_tokens_are_added() -> None:
    usage = {"inputTokens": 10, "outputTokens": 5, "cachedReadTokens": 100, "cachedWriteTokens": 7, "thoughtTokens": 3, "totalTokens": 125}
    _, ending = translate({"id": 2, "result": {"stopReason": "end_turn", "usage": usage}})
    assert ending.usage.to_json() == {"input": 117, "output": 8, "cache_read": 100, "cache_write": 7, "reasoning": 3}


def test_session_totals_are_reduced_to_this_exchange() -> None:
    path = next(path for path in RECORDINGS if path.name == "vibe-acp-3.0.2-A-load.wire.jsonl")
    assert chunks_of(translator(path), lines(path))[1].usage.to_json() == {"input": 350, "output": 40}


def test_opencode_that_was_refused_a_permission_has_not_answered() -> None:
    refused = [
        {"type": "step_start", "sessionID": "s", "part": {}},
        {"type": "tool_use", "part": {"callID": "c", "tool": "bash", "state": {"status": "error", "input": {}, "error": "rejected"}}},
        {"type": "step_finish", "part": {"reason": "tool-calls", "tokens": {"input": 1, "output": 1}, "cost": 0.5}},
    ]
    chunks, ending = chunks_of(OpencodeRun(), [(False, json.dumps(event).encode() + b"\n") for event in refused])
    check(chunks, ending)
    assert ending.error is not None and ending.cost == 500_000_000
    assert fold_parts((), chunks)[1]["errorText"] == "rejected"


def test_a_gemini_failure_has_its_reason() -> None:
    events = [
        {"type": "error", "severity": "warning", "message": "loop detected"},
        {"type": "result", "status": "error", "error": {"type": "FatalAuthenticationError", "message": "no key"}, "stats": {}},
    ]
    chunks, ending = chunks_of(GeminiStream(), [(False, json.dumps(event).encode() + b"\n") for event in events])
    assert chunks == [{"type": "data-note", "data": {"text": "loop detected"}, "id": "1.0:note:0"}]
    assert ending.error is not None and (ending.error.message, ending.error.kind) == ("no key", "auth")


def test_acpx_separates_directions_with_equal_ids() -> None:
    path = next(path for path in RECORDINGS if path.name.startswith("minimal-agent-wire-echo"))
    joined = [(False, line) for _, line in lines(path)]
    assert chunks_of(Acpx(), joined) == chunks_of(Acp(), lines(path))
