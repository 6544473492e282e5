"""Tasks of Cline, Roo Code and Kilo Code's old extension."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from format_samples import samples_of
from import_stage import stored
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources
from moot.imports.report import Report
from moot.imports.sources import sources_at
from moot.plugins import FORMATS
from moot.types.format import ImportedMessage, WholeConversation
from moot.types.message import is_tool, text_of

UUID = "5b1b7c5e-0000-4000-8000-000000000001"


def task(folder: Path, name: str = "1784908480000", **files: Any) -> Path:
    """Write a task with these files."""
    place = folder / "tasks" / name
    place.mkdir(parents=True, exist_ok=True)
    for file, content in files.items():
        (place / f"{file}.json").write_text(json.dumps(content))
    return place


def read(place: Path, format: str = "cline") -> WholeConversation:
    (found,) = FORMATS.make(format).read(place)
    return found.whole()


def steps(*messages: ImportedMessage) -> list[Any]:
    return [step for message in messages for step in message.metadata.get("steps", [])]  # type: ignore[union-attr]


def request(**counts: float) -> str:
    return json.dumps({"request": "…", **counts})


def user(*texts: str) -> Any:
    return {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}


def test_text_that_the_program_added_is_kept_apart_from_the_prompt(tmp_path: Path) -> None:
    environment = "<environment_details>\n# Open Tabs\n</environment_details>"
    history = [
        user("<task>\nCount\n</task>", environment),
        {"role": "assistant", "content": "Seven."},
        user("<feedback>\nSure?\n</feedback>"),
    ]
    found = read(task(tmp_path, api_conversation_history=history))
    assert [(one.role, text_of(one.parts)) for one in found.messages] == [("user", "Count"), ("assistant", "Seven."), ("user", "Sure?")]
    assert any(entry.raw and environment[:21].encode() in entry.raw for entry in found.entries if not isinstance(entry, ImportedMessage))


def test_calls_written_as_xml_have_their_outputs(tmp_path: Path) -> None:
    call = "I look.\n<read_file>\n<path>a.txt</path>\n</read_file>"
    history = [
        user("<task>Read a.txt</task>"),
        {"role": "assistant", "content": [{"type": "text", "text": call}]},
        user("[read_file for 'a.txt'] Result:", "one\ntwo", "<environment_details></environment_details>"),
        {"role": "assistant", "content": "Two lines."},
    ]
    _, answer = read(task(tmp_path, api_conversation_history=history)).messages
    (call_part,) = filter(is_tool, answer.parts)
    assert (call_part["toolName"], call_part["input"], call_part.get("output")) == ("read_file", {"path": "a.txt"}, "one\ntwo")
    assert text_of(answer.parts) == "I look.Two lines."


@pytest.mark.parametrize(("format", "whole"), [("cline", 500), ("roo", 400), ("kilo-legacy", 400)])
def test_input_counts_include_the_cache(tmp_path: Path, format: str, whole: int) -> None:
    shown = [{"ts": 1, "type": "say", "say": "api_req_started", "text": request(tokensIn=400, tokensOut=5, cacheReads=100, cacheWrites=0)}]
    history = [user("<task>Hi</task>"), {"role": "assistant", "content": "Hello."}]
    place = task(tmp_path, UUID, api_conversation_history=history, ui_messages=shown)
    (step,) = steps(*read(place, format).messages)
    assert (step["usage"]["input"], step["usage"]["cache_read"]) == (whole, 100)


def test_an_older_input_count_without_the_cache_is_recognized(tmp_path: Path) -> None:
    shown = [{"ts": 1, "type": "say", "say": "api_req_started", "text": request(tokensIn=4, tokensOut=5, cacheReads=100, cacheWrites=20)}]
    history = [user("<task>Hi</task>"), {"role": "assistant", "content": "Hello."}]
    (step,) = steps(*read(task(tmp_path, UUID, api_conversation_history=history, ui_messages=shown), "roo").messages)
    assert step["usage"]["input"] == 124


def test_each_cost_counts_once(tmp_path: Path) -> None:
    shown = [
        {"ts": 1, "type": "say", "say": "api_req_started", "text": request(tokensIn=10, tokensOut=1, cost=0.001)},
        {"ts": 2, "type": "say", "say": "api_req_started", "text": request(cancelReason="streaming_failed")},  # type: ignore[arg-type]
        {"ts": 3, "type": "say", "say": "api_req_deleted", "text": request(tokensIn=30, tokensOut=3, cost=0.003)},
        {"ts": 4, "type": "say", "say": "condense_context", "contextCondense": {"cost": 0.005, "summary": "…"}},
        {"ts": 5, "type": "say", "say": "api_req_started", "text": request(tokensIn=20, tokensOut=2, cost=0.002)},
    ]
    answers = [{"role": "assistant", "content": "One."}, user("<feedback>More</feedback>"), {"role": "assistant", "content": "Two."}]
    item = {"id": "1784908480000", "ts": 5, "task": "Count", "tokensIn": 60, "tokensOut": 6, "totalCost": 0.011}
    place = task(tmp_path, api_conversation_history=[user("<task>Hi</task>"), *answers], ui_messages=shown)
    (place.parents[1] / "state").mkdir()
    (place.parents[1] / "state" / "taskHistory.json").write_text(json.dumps([item]))
    found = read(place)
    assert [len(steps(message)) for message in found.messages] == [0, 3, 0, 1]
    assert (sum(step.get("cost", 0) for step in steps(*found.messages)), found.facts.title) == (11_000_000, "Count")
    (place / "ui_messages.json").unlink()
    (total,) = steps(*read(place).messages)
    assert (total["usage"]["input"], total["cost"], total["total_of"]) == (60, 11_000_000, "session")


@pytest.mark.anyio
@pytest.mark.parametrize("lists", ["calls", "total"])
async def test_costs_count_once_when_a_task_grows(tmp_path: Path, lists: str) -> None:
    place = task(tmp_path)
    async with stored(tmp_path / "moot") as store:
        for turns in (1, 2, 3):
            history: list[Any] = [user("<task>Hi</task>")]
            for turn in range(turns):
                history += [{"role": "assistant", "content": f"Answer {turn}."}, user(f"<feedback>More {turn}</feedback>")]
            call = {"type": "say", "say": "api_req_started", "text": request(tokensIn=10, tokensOut=1, cost=0.001)}
            shown = [{**call, "ts": turn} for turn in range(turns)] if lists == "calls" else []
            item = {"id": UUID, "task": "Hi", "tokensIn": 10 * turns, "tokensOut": turns, "totalCost": 0.001 * turns}
            task(tmp_path, api_conversation_history=history, ui_messages=shown, history_item=item)
            await import_sources(store, sources_at(place, "roo", tmp_path / "moot"), ImportOptions(), Report())
            counted = (await store.stats.usage(wait=60)).total
            assert (counted.input, counted.output, counted.cost) == (10 * turns, turns, 1_000_000 * turns)


def test_messages_are_read_from_what_was_shown_if_the_history_is_missing(tmp_path: Path) -> None:
    shown = [
        {"ts": 1, "type": "say", "say": "text", "text": "Count", "images": []},
        {"ts": 2, "type": "say", "say": "api_req_started", "text": request(tokensIn=10, tokensOut=1, cost=0.001)},
        {"ts": 3, "type": "say", "say": "text", "text": "Cou", "partial": True},
        {"ts": 3, "type": "say", "say": "text", "text": "Counting.", "partial": False},
        {"ts": 4, "type": "ask", "ask": "command", "text": "wc -l a.txt"},
        {"ts": 5, "type": "say", "say": "command_output", "text": "7 a.txt"},
        {"ts": 6, "type": "say", "say": "user_feedback", "text": "Thanks"},
    ]
    found = read(task(tmp_path, ui_messages=shown))
    assert [(one.role, text_of(one.parts)) for one in found.messages] == [("user", "Count"), ("assistant", "Counting."), ("user", "Thanks")]
    (call,) = filter(is_tool, found.messages[1].parts)
    assert (call["input"], call.get("output")) == ({"command": "wc -l a.txt"}, "7 a.txt")
    assert [step["cost"] for step in steps(*found.messages)] == [1_000_000]


def test_a_subtask_names_its_parent(tmp_path: Path) -> None:
    item = {"id": UUID, "task": "Part", "parentTaskId": "5b1b7c5e-0000-4000-8000-000000000000"}
    place = task(tmp_path, UUID, api_conversation_history=[user("<task>Part</task>")], history_item=item)
    (found,) = FORMATS.make("roo").read(place)
    assert found.parent == item["parentTaskId"]


def test_messages_keep_their_ids_when_the_history_is_condensed(tmp_path: Path) -> None:
    messages = [user("<task>One</task>"), {"role": "assistant", "content": "First."}, user("<feedback>Two</feedback>")]
    place = task(tmp_path, api_conversation_history=messages)
    before = [one.source_id for one in read(place).messages]
    task(tmp_path, api_conversation_history=[messages[0], {**user("Summary"), "isSummary": True}, messages[2]])
    after = read(place).messages
    assert [one.role for one in after] == ["user", "system", "user"]
    assert (after[0].source_id, after[2].source_id) == (before[0], before[2])


@pytest.mark.parametrize("name", ["api_conversation_history", "ui_messages"])
def test_a_file_of_nul_bytes_is_reported(tmp_path: Path, name: str) -> None:
    place = task(tmp_path, api_conversation_history=[user("<task>One</task>")])
    (place / f"{name}.json").write_bytes(bytes(2000))
    assert read(place).fidelity.lost["records"] >= 1


def test_the_path_says_which_program_wrote_a_task(tmp_path: Path) -> None:
    sample = samples_of(FORMATS.make("kilo-legacy"))["task"]
    assert not isinstance(sample, bytes)
    for extension, format in (
        ("saoudrizwan.claude-dev", "cline"),
        ("rooveterinaryinc.roo-cline", "roo"),
        ("kilocode.kilo-code", "kilo-legacy"),
    ):
        for name, data in sample.items():
            file = tmp_path / extension / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        claimed = [name for name in ("cline", "roo", "kilo-legacy") if FORMATS.make(name).sniff(tmp_path / extension, b"")]
        assert claimed == [format]
