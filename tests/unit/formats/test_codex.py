from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conformance.formats import check_read, read_whole
from format_samples.codex import SAMPLES
from moot.errors import UsageError
from moot.formats.agents.claude.format import ClaudeFormat
from moot.formats.agents.codex.format import CodexFormat
from moot.formats.agents.codex.packed import packed_lines
from moot.formats.recording.format import RecordingFormat
from moot.types.format import ImportedRecord, WholeConversation
from moot.types.message import Part, text_of

RECORDED = Path(__file__).parents[2] / "recorded"
SESSIONS = sorted((RECORDED / "formats" / "codex").rglob("*.jsonl"))
FORMAT = CodexFormat()
quick = settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
USAGE = {"input_tokens": 7, "cached_input_tokens": 2, "output_tokens": 3, "total_tokens": 10}
META = {"id": "s1", "cwd": "/p", "originator": "codex_exec", "cli_version": "0.169.0"}


def line(kind: str, /, **payload: Any) -> bytes:
    return json.dumps({"timestamp": "2026-01-05T10:00:00.000Z", "type": kind, "payload": payload}).encode() + b"\n"


def item(type: str, **more: Any) -> bytes:
    return line("response_item", type=type, **more)


def event(type: str, **more: Any) -> bytes:
    return line("event_msg", type=type, **more)


def said(role: str, text: str, **more: Any) -> bytes:
    return item("message", role=role, content=[{"type": "output_text" if role == "assistant" else "input_text", "text": text}], **more)


def call(id: str, name: str = "exec_command", arguments: str = '{"cmd":"ls"}') -> bytes:
    return item("function_call", name=name, arguments=arguments, call_id=id)


def output(id: str, text: Any) -> bytes:
    return item("function_call_output", call_id=id, output=text)


def read(folder: Path, *lines: bytes) -> WholeConversation:
    path = folder / "rollout-2026-01-05T10-00-00-s1.jsonl"
    path.write_bytes(line("session_meta", **META) + b"".join(lines))
    [whole] = check_read(FORMAT, path)
    return whole


def told(whole: WholeConversation) -> list[tuple[str, str]]:
    return [(one.role, text_of(one.parts)) for one in whole.messages]


def calls(whole: WholeConversation) -> list[Part]:
    return [part for one in whole.messages for part in one.parts if part["type"] == "dynamic-tool"]


@pytest.mark.parametrize("path", SESSIONS, ids=lambda path: path.stem[-8:])
def test_recorded_sessions_are_read_whole(path: Path) -> None:
    assert FORMAT.sniff(path, path.read_bytes()[: 1 << 16])
    [whole] = check_read(FORMAT, path)
    assert path.stem.endswith(whole.conversation.source_id)
    assert [one.role for one in whole.messages] == ["user", "assistant"] * (len(whole.messages) // 2)
    assert whole.facts.directory == "/home/user/project" and whole.facts.model == "gpt-5.4"
    assert not whole.fidelity.lost and not whole.fidelity.approximated
    assert sum(entry.raw.count(b"\n") for entry in whole.entries) == path.read_bytes().count(b"\n"), "a line is in nothing, or twice"


def test_a_session_becomes_the_parts_of_its_stream() -> None:
    [stream] = read_whole(RecordingFormat(), RECORDED / "agents" / "codex" / "app-server-accept.wire.jsonl")  # type: ignore[arg-type]
    [whole] = read_whole(FORMAT, next(path for path in SESSIONS if path.stem.endswith("ae181d5a7ee2")))
    assert len(whole.messages) == 4
    for ours, theirs in zip(whole.messages, stream.messages, strict=True):
        assert [without_seals(part) for part in ours.parts if part.get("text") != ""] == list(theirs.parts)


def without_seals(part: Part) -> Part:
    """The protocol does not specify how reasoning is encrypted."""
    return {name: value for name, value in part.items() if name != "providerMetadata"}


def test_each_message_is_read_once_although_it_is_stored_twice(tmp_path: Path) -> None:
    whole = read(
        tmp_path,
        event("task_started"),
        said("user", "go"),
        event("user_message", message="go"),
        event("agent_reasoning", text="hm"),
        item("reasoning", id="rs_1", summary=[{"type": "summary_text", "text": "hm"}], encrypted_content="eA=="),
        event("agent_message", message="done"),
        said("assistant", "done"),
        event("task_complete"),
    )
    assert told(whole) == [("user", "go"), ("assistant", "done")]
    assert [part["type"] for part in whole.messages[1].parts] == ["step-start", "reasoning", "text"]
    assert whole.messages[1].parts[1]["providerMetadata"] == {"openai": {"itemId": "rs_1", "encryptedContent": "eA==", "provider": "codex"}}


def test_texts_that_the_program_writes_are_not_prompts(tmp_path: Path) -> None:
    noise = ["<environment_context>x", "<user_instructions>y", "# AGENTS.md instructions for /p", "<turn_aborted>\nz"]
    marked = {"internal_chat_message_metadata_passthrough": {"content_item_kinds": ["environments.environment_context"]}}
    whole = read(
        tmp_path, *(said("user", words) for words in noise), said("developer", "d"), said("user", "no tag", **marked), said("user", "go")
    )
    assert told(whole) == [("user", "go")]
    assert sum(isinstance(entry, ImportedRecord) for entry in whole.entries) == 7


def test_tokens_are_counted_once_for_each_call_of_the_model(tmp_path: Path) -> None:
    first, second = {**USAGE, "total_tokens": 10}, {**USAGE, "total_tokens": 20}
    whole = read(
        tmp_path,
        line("turn_context", cwd="/p", model="big"),
        said("user", "go"),
        call("c1"),
        line("token_usage_record", usage=USAGE, response_id="r1"),
        output("c1", "x"),
        event("token_count", info={"total_token_usage": first, "last_token_usage": USAGE}),
        said("assistant", "done"),
        event("token_count", info={"total_token_usage": second, "last_token_usage": USAGE}),
        event("token_count", info={"total_token_usage": second, "last_token_usage": {**USAGE, "input_tokens": 999}}),
        event("token_count", info=None),
    )
    steps = whole.messages[1].metadata["steps"]
    assert isinstance(steps, list)
    told = [(step["model"], step["usage"]["input"], step.get("response_id")) for step in steps]  # type: ignore[index,call-overload,union-attr]
    assert told == [("big", 7, "r1"), ("big", 7, None)]


@pytest.mark.parametrize(
    ("made", "name", "given"),
    [
        (call("c1", "shell", '{"command":["bash","-lc","ls -1"],"timeout_ms":5}'), "shell", {"command": "ls -1", "timeout_ms": 5}),
        (call("c1", "shell_command", '{"command":"ls -1"}'), "shell", {"command": "ls -1"}),
        (call("c1", "files__read", '{"path":"a"}'), "files__read", {"path": "a"}),
        (call("c1", "broken", '{"path":'), "broken", {"arguments": '{"path":'}),
        (item("local_shell_call", call_id="c1", action={"type": "exec", "command": ["ls", "-1"]}), "shell", {"command": "ls -1"}),
        (item("custom_tool_call", call_id="c1", name="apply_patch", input="*** Begin"), "apply_patch", {"input": "*** Begin"}),
    ],
)
def test_calls_of_all_kinds_are_tool_calls(tmp_path: Path, made: bytes, name: str, given: dict[str, Any]) -> None:
    [part] = calls(read(tmp_path, said("user", "go"), made, output("c1", "out")))
    assert (part["toolName"], part["input"], part["output"], part["state"]) == (name, given, "out", "output-available")


@pytest.mark.parametrize(
    ("given", "state", "words"),
    [
        ('{"output":"a\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}', "output-available", "a\n"),
        ('{"output":"no","metadata":{"exit_code":2}}', "output-error", "exit code 2\nno"),
        ("Exit code: 1\nWall time: 0.1 seconds\nOutput:\nno", "output-error", "exit code 1\nno"),
        ("Chunk ID: 1\nProcess exited with code 0\nOutput:\nyes", "output-available", "yes"),
        ({"content": "old", "success": False}, "output-error", "old"),
        ("exec command rejected by user", "output-denied", None),
    ],
)
def test_outputs_show_success_or_failure(tmp_path: Path, given: Any, state: str, words: str | None) -> None:
    [part] = calls(read(tmp_path, said("user", "go"), call("c1"), output("c1", given)))
    assert (part["state"], part.get("output", part.get("errorText"))) == (state, words)


def test_the_displayed_result_of_a_call_takes_precedence(tmp_path: Path) -> None:
    shown = {"type": "FileChange", "id": "c1", "changes": {"/p/a": {"type": "add", "content": "x"}}, "status": "completed"}
    patch = item("custom_tool_call", call_id="c1", name="apply_patch", input="*** Begin")
    [part] = calls(read(tmp_path, said("user", "go"), patch, event("item_completed", item=shown), output("c1", "Success")))
    assert (part["input"], part["output"]) == ({"changes": [{"path": "/p/a", "kind": "add"}]}, "add /p/a")


def test_pictures_survive_a_round_trip_without_metadata(tmp_path: Path) -> None:
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    content = [{"type": "input_text", "text": "<image name=[Image #1]>"}, picture, {"type": "input_text", "text": "</image>"}]
    whole = read(tmp_path, item("message", role="user", content=content), call("c1", "view_image", "{}"), output("c1", [picture]))
    file = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA"}
    assert whole.messages[0].parts == (file,)
    assert calls(whole)[0]["output"] == {"type": "content", "value": [file]}


def test_prompts_during_a_turn_are_steering_messages_and_later_ones_are_not(tmp_path: Path) -> None:
    whole = read(
        tmp_path,
        event("task_started"),
        said("user", "go"),
        call("c1"),
        said("user", "faster"),
        output("c1", "x"),
        event("task_complete"),
        event("task_started"),
        said("user", "next"),
    )
    assert told(whole) == [("user", "go"), ("assistant", ""), ("user", "next")]
    assert [part["type"] for part in whole.messages[1].parts] == ["step-start", "dynamic-tool", "steering-message"]


def test_a_rolled_back_turn_is_a_branch(tmp_path: Path) -> None:
    whole = read(
        tmp_path,
        said("user", "one", id="m1"),
        said("assistant", "a", id="m2"),
        said("user", "two", id="m3"),
        said("assistant", "b", id="m4"),
        event("thread_rolled_back", num_turns=1),
        said("user", "zwei", id="m5"),
    )
    assert [(one.source_id, one.parent) for one in whole.messages][2:] == [("m3", "m2"), ("m4", "m3"), ("m5", "m2")]
    assert whole.facts.head == "m5"


def test_plans_summaries_and_failures_are_kept(tmp_path: Path) -> None:
    plan = json.dumps({"plan": [{"step": "look", "status": "completed"}]})
    whole = read(
        tmp_path,
        said("user", "go"),
        call("c1", "update_plan", plan),
        output("c1", "ok"),
        line("compacted", message="s"),
        event("error", message="no"),
    )
    kinds = [(part["type"], part["data"]) for part in whole.messages[1].parts if "data" in part]
    assert kinds == [
        ("data-plan", {"entries": [{"content": "look", "status": "completed"}]}),
        ("data-note", {"text": "Codex has summarised the conversation so far to make room"}),
        ("data-note", {"text": "no"}),
    ]
    assert whole.messages[1].metadata["finish_reason"] == "error"


def test_a_sub_agent_names_the_session_and_call_that_started_it(tmp_path: Path) -> None:
    folder = tmp_path / "sessions" / "2026" / "01" / "05"
    folder.mkdir(parents=True)
    spawn = call("c9", "spawn_agent", "{}") + output("c9", '{"agent_id":"child"}')
    (folder / "rollout-2026-01-05T10-00-00-parent.jsonl").write_bytes(line("session_meta", **{**META, "id": "parent"}) + spawn)
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "parent", "depth": 1}}}
    path = folder / "rollout-2026-01-05T10-00-01-child.jsonl"
    path.write_bytes(line("session_meta", **{**META, "id": "child", "source": source}) + said("user", "go"))
    [child] = FORMAT.read(path)
    assert (child.source_id, child.parent, child.parent_call) == ("child", "parent", "c9")
    for file in list(folder.iterdir()):  # Codex compresses old sessions
        packed = file.with_name(f"{file.name}.zst")
        packed.write_bytes(zstandard.compress(file.read_bytes()))
        assert file in FORMAT.sources(tmp_path) and packed not in FORMAT.sources(tmp_path)
        file.unlink()
        assert packed in FORMAT.sources(tmp_path)
        assert FORMAT.sniff(packed, packed.read_bytes())
    [child] = FORMAT.read(path.with_name(f"{path.name}.zst"))
    assert (child.source_id, child.parent, child.parent_call) == ("child", "parent", "c9")


def test_a_fork_has_its_own_id(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    first = line("session_meta", **{**META, "id": "fork", "forked_from_id": "s1"})
    path.write_bytes(first + line("session_meta", **META) + said("user", "go"))
    [whole] = check_read(FORMAT, path)
    assert whole.conversation.source_id == "fork"
    assert (whole.facts.metadata["session_id"], whole.facts.metadata["forked_from"]) == ("fork", "s1")


def test_streams_are_not_claimed_and_sessions_not_by_others() -> None:
    for path in [*(RECORDED / "agents").rglob("*.jsonl"), *(RECORDED / "formats" / "claude").rglob("*.jsonl")]:
        assert not FORMAT.sniff(path, path.read_bytes()[: 1 << 16]), path
    for path in SESSIONS:
        head = path.read_bytes()[: 1 << 16]
        assert not RecordingFormat().sniff(path, head) and not ClaudeFormat().sniff(path, head)


def test_its_locations_are_those_of_its_variable_or_the_home(tmp_path: Path) -> None:
    assert list(FORMAT.places(tmp_path, {"CODEX_HOME": "/else"})) == [Path("/else/sessions"), Path("/else/archived_sessions")]
    assert next(iter(FORMAT.places(tmp_path, {}))) == tmp_path / ".codex" / "sessions"
    assert list(FORMAT.sources(RECORDED / "formats" / "codex")) == SESSIONS


def test_a_file_without_session_lines_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "other.jsonl"
    path.write_bytes(b'{"type":"message"}\n' * 100)
    with pytest.raises(UsageError, match="not a Codex session"):
        list(FORMAT.read(path))


# ── growth and arbitrary input ──────────────────────────────────────────────────────────────────────────────────────────────────────


def check_growth(path: Path, data: bytes, cuts: list[int]) -> None:
    before: dict[str, Any] = {}
    for cut in (*sorted(cuts), len(data)):
        path.write_bytes(data[:cut])
        try:
            after = {one.source_id: one for whole in read_whole(FORMAT, path) for one in whole.messages}
        except UsageError:
            assert not before
            continue
        assert list(after)[: len(before)] == list(before)
        for id, message in before.items():
            assert after[id].raw.startswith(message.raw), f"{id} lost what it had"
            assert (after[id].parent, after[id].role, after[id].created_at) == (message.parent, message.role, message.created_at)
        before = after


@quick
@given(data=st.data())
def test_a_session_that_grows_only_adds(tmp_path: Path, data: st.DataObject) -> None:
    whole = data.draw(st.sampled_from([*(path.read_bytes() for path in SESSIONS), *SAMPLES.values()]))
    check_growth(tmp_path / "s1.jsonl", whole, data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))


IDS = st.sampled_from(["c1", "c2", ""])
LINES = st.one_of(
    st.builds(said, st.sampled_from(["user", "assistant", "developer"]), st.sampled_from(["go", "", "<environment_context>"]), id=IDS),
    st.builds(call, IDS, st.sampled_from(["exec_command", "update_plan", "", "x"]), st.sampled_from(["{}", "", '{"plan":5}', "[]"])),
    st.builds(output, IDS, st.sampled_from(["x", "", None, 5, [], [5], {"content": "x", "success": False}])),
    st.builds(
        lambda type, id: event("item_completed", item={"type": type, "id": id}),
        st.sampled_from(["CommandExecution", "WebSearch", "McpToolCall", "FileChange", "UserMessage", "What"]),
        IDS,
    ),
    st.builds(event, st.sampled_from(["task_started", "task_complete", "turn_aborted", "context_compacted", "error", "user_message", "x"])),
    st.builds(event, st.just("thread_rolled_back"), num_turns=st.sampled_from([0, 1, 2, 9, None])),
    st.builds(
        item, st.sampled_from(["reasoning", "web_search_call", "image_generation_call", "local_shell_call", "custom_tool_call", "new"])
    ),
    st.builds(
        lambda usage: event("token_count", info={"total_token_usage": usage, "last_token_usage": usage}), st.sampled_from([USAGE, {}, None])
    ),
    st.sampled_from(
        [b"junk\n", b'{"type":\n', b"\x00\n", b"[]\n", b"{}\n", b"\n", line("compacted"), line("turn_context", model=5), line("new")]
    ),
)


@quick
@given(lines=st.lists(LINES, max_size=14), cuts=st.lists(st.integers(0, 3000), max_size=3))
def test_any_lines_are_read_and_grow(tmp_path: Path, lines: list[bytes], cuts: list[int]) -> None:
    data = line("session_meta", **META) + b"".join(lines)
    path = tmp_path / "s1.jsonl"
    path.write_bytes(data)
    check_read(FORMAT, path)
    check_growth(path, data, [min(cut, len(data)) for cut in cuts])


def test_a_turn_that_failed_shows_its_error_also_without_an_answer(tmp_path: Path) -> None:
    failed = event("error", message="You have hit your usage limit.")
    early = read(
        tmp_path, event("task_started"), said("user", "go"), failed, event("task_complete"), said("user", "again"), said("assistant", "ok")
    )
    assert [one.role for one in early.messages] == ["user", "assistant", "user", "assistant"]
    notes = [part["data"] for part in early.messages[1].parts if part["type"] == "data-note"]
    assert notes == [{"text": "You have hit your usage limit."}] and early.messages[1].metadata["finish_reason"] == "error"
    late = read(tmp_path, event("task_started"), said("user", "go"), said("assistant", "I begin."), failed)
    assert [one.role for one in late.messages] == ["user", "assistant"]
    assert [part["type"] for part in late.messages[1].parts][-1] == "data-note"


def test_a_compressed_session_is_read_without_a_copy_and_up_to_a_limit(tmp_path: Path) -> None:
    path = tmp_path / "rollout-s1.jsonl.zst"
    begin = zstandard.compress(line("session_meta", **META) + said("user", "hello"))
    path.write_bytes(begin + zstandard.compress(b" " * (3 << 20)))
    assert [one.number for one in packed_lines(path)] == [1, 2]
    small = packed_lines(path, largest=2 << 20)
    assert next(small).number == 1
    with pytest.raises(UsageError, match="expands to more than 200 times its size, or to more than 2 MiB"):
        list(small)
    path.write_bytes(begin + b"damaged")
    damaged = packed_lines(path)
    assert [next(damaged).number, next(damaged).number] == [1, 2]
    with pytest.raises(UsageError, match="Can't decompress"):
        next(damaged)
