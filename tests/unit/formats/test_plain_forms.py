from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moot.formats.anthropic import Anthropic
from moot.formats.apps.clai.format import Clai
from moot.formats.md import Markdown
from moot.formats.openai import OpenAI
from moot.formats.portable import JsonDocument
from moot.formats.ui import Ui
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation, WholeConversation
from moot.types.message import Message, Part, text_of, text_part

FORMATS = (Anthropic(), Markdown(), OpenAI(), Ui())
PLAIN = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]


def read(format: Any, path: Path, data: bytes) -> list[WholeConversation]:
    path.write_bytes(data)
    assert [one.name for one in FORMATS if one.sniff(path, data[: 1 << 16])] == [format.name]
    return [one.whole() for one in format.read(path)]


def speech(conversation: WholeConversation) -> list[tuple[str, list[Part]]]:
    return [(one.role, [part for part in one.parts if part["type"] != "step-start"]) for one in conversation.messages]


def said(conversation: WholeConversation) -> list[tuple[str, str]]:
    return [(one.role, text_of(one.parts)) for one in conversation.messages]


@pytest.mark.parametrize(
    "data",
    [
        json.dumps(PLAIN).encode(),
        json.dumps(PLAIN, indent=1).encode(),
        json.dumps({"model": "gpt-4o", "messages": PLAIN}).encode(),
        b"".join(json.dumps(one).encode() + b"\n" for one in PLAIN),
        b"\xef\xbb\xbf" + json.dumps(PLAIN).encode(),
    ],
)
def test_messages_are_read_from_every_shape(tmp_path: Path, data: bytes) -> None:
    [conversation] = read(OpenAI(), tmp_path / "a.json", data)
    assert said(conversation) == [("user", "hi"), ("assistant", "yes?")]


def test_each_line_of_a_file_for_fine_tuning_is_a_conversation(tmp_path: Path) -> None:
    lines = b"".join(json.dumps({"messages": PLAIN}).encode() + b"\n" for _ in range(3)) + b'{"messages": [{"role"\n'
    found = read(OpenAI(), tmp_path / "a.jsonl", lines)
    assert [len(one.messages) for one in found] == [2, 2, 2, 0]
    assert len({one.conversation.source_id for one in found}) == 4
    assert found[3].fidelity.lost == {"records": 1}


def test_a_long_first_message_is_recognized(tmp_path: Path) -> None:
    data = json.dumps([{"role": "user", "content": "x" * 100_000}, PLAIN[1]]).encode()
    assert len(read(OpenAI(), tmp_path / "a.json", data)[0].messages) == 2


def test_calls_of_openai_get_their_outputs_and_pictures_stay(tmp_path: Path) -> None:
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"big": 12345678901234567890}'}}
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}}
    messages = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "see"}, picture]},
        {"role": "assistant", "content": None, "reasoning_content": "hm", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "seen"},
        {"role": "assistant", "content": "a dot"},
    ]
    [conversation] = read(OpenAI(), tmp_path / "a.json", json.dumps(messages).encode())
    (first, _), (_, asked), (role, answer) = speech(conversation)
    assert (first, role) == ("system", "assistant")
    assert asked[1] == {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", "detail": "low"}
    assert answer[0]["text"] == "hm"
    assert (answer[1]["input"], answer[1]["output"]) == ({"big": 12345678901234567890}, "seen")
    assert answer[2]["text"] == "a dot"


@pytest.mark.parametrize("format", [OpenAI(), Clai()])
def test_the_detail_of_a_picture_survives_a_round_trip(tmp_path: Path, format: Any) -> None:
    picture: Part = {"type": "file", "mediaType": "image/png", "url": "data:image/png;base64,AAAA", "detail": "low"}
    path = tmp_path / "a.json"
    path.write_bytes(format.write(ExportedConversation(Conversation("c1"), (Message("m1", "user", (text_part("See"), picture)),))).data)
    [read] = [one.whole() for one in format.read(path)]
    assert [part.get("detail") for part in read.messages[0].parts] == [None, "low"]


def test_anthropics_reasoning_keeps_signatures_and_failed_calls_keep_errors(tmp_path: Path) -> None:
    body = {
        "system": "be brief",
        "messages": [
            {"role": "user", "content": "look"},
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
                    {"type": "redacted_thinking", "data": "ZGF0YQ"},
                    {"type": "tool_use", "id": "t1", "name": "look", "input": {"at": 1}},
                ],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "t1", "content": "gone", "is_error": True},
                    {"type": "text", "text": "well?"},
                ],
            },
        ],
    }
    [conversation] = read(Anthropic(), tmp_path / "a.json", json.dumps(body).encode())
    assert [one.role for one in conversation.messages] == ["system", "user", "assistant", "user"]
    thought, hidden, call = speech(conversation)[2][1]
    assert thought["providerMetadata"] == {"anthropic": {"signature": "c2ln"}}
    assert hidden["providerMetadata"] == {"anthropic": {"redactedData": "ZGF0YQ"}}
    assert (call["state"], call["errorText"]) == ("output-error", "gone")


def test_parts_of_a_ui_message_are_unchanged_even_unknown_ones(tmp_path: Path) -> None:
    parts: list[Part] = [{"type": "text", "text": "hi"}, {"type": "data-weather", "data": {"sun": True}}, {"type": "newer", "x": [1]}]
    lines = [
        {"id": "m1", "role": "user", "parts": parts, "createdAt": "2026-11-21T20:31:32Z"},
        {"id": "m2", "role": "assistant", "parts": []},
    ]
    for data in (json.dumps(lines), "\n".join(json.dumps(one) for one in lines)):
        [conversation] = read(Ui(), tmp_path / "a.json", data.encode())
        assert list(conversation.messages[0].parts) == parts
        assert conversation.messages[0].created_at == 1795293092000
        assert conversation.messages[1].parent == "m1"


def test_markdown_from_other_sources_is_read_by_its_headings(tmp_path: Path) -> None:
    data = b"# Lists\n\n**You** said:\n\n## Human\n\nwhat?\n\n```md\n# Title\n```\n\n### ChatGPT\n\nthis\n"
    [conversation] = read(Markdown(), tmp_path / "a.md", data)
    assert conversation.facts.title == "Lists"
    assert said(conversation) == [("user", "what?\n\n```md\n# Title\n```"), ("assistant", "this")]


def test_markdown_quotes_what_a_sub_agent_did_inside_the_call_that_started_it(tmp_path: Path) -> None:
    call: Part = {
        "type": "dynamic-tool",
        "toolName": "Task",
        "toolCallId": "a",
        "state": "output-available",
        "input": {},
        "output": "found",
    }
    inner: Part = {**call, "toolName": "Bash", "toolCallId": "b", "output": "a.txt", "toolMetadata": {"moot": {"parentToolCallId": "a"}}}
    words: Part = {"type": "data-subagent", "data": {"parentToolCallId": "a", "agent": "scout", "kind": "text", "text": "I look."}}
    message = Message("m", "assistant", (call, text_part("The end."), inner, words))
    written = Markdown().write(ExportedConversation(Conversation("c"), (Message("u", "user", (text_part("look"),)), message))).data
    card, _, rest = written.decode().partition("<summary>Tool: Task</summary>")[2].partition("\n</details>\n")
    assert "> <summary>Tool: Bash</summary>" in card and "> a.txt" in card and "> **scout:** I look." in card and "The end." in rest
    [again] = read(Markdown(), tmp_path / "a.md", written)
    assert [part["type"] for part in speech(again)[1][1]] == ["dynamic-tool", "text"]


def test_markdown_without_speakers_is_not_recognized(tmp_path: Path) -> None:
    path = tmp_path / "README.md"
    data = b"# Guide\n\n## User\n\nHow to use it.\n\n## Install\n"
    path.write_bytes(data)
    assert not any(one.sniff(path, data) for one in FORMATS)


def test_a_truncated_json_document_keeps_its_messages_and_is_reported(tmp_path: Path) -> None:
    messages = tuple(Message(f"m{at}", "user", (text_part(f"word {at}"),)) for at in range(3))
    inner = ExportedConversation(Conversation("c2", parent="c1", parent_tool_call="call"), messages[:1])
    data = JsonDocument().write(ExportedConversation(Conversation("c1", title="A title"), messages, children=(inner,))).data
    path = tmp_path / "a.json"
    for end, counts in ((data.index(b"word 2"), [2]), (data.index(b"children"), [3]), (data.rindex(b"word 0"), [3, 0])):
        path.write_bytes(data[:end])
        found = [one.whole() for one in JsonDocument().read(path)]
        assert [len(one.messages) for one in found] == counts
        assert all(one.fidelity.lost["records"] for one in found)
        assert (found[0].conversation.source_id, found[0].facts.title) == ("c1", "A title")
    path.write_bytes(data)
    assert [len(one.whole().messages) for one in JsonDocument().read(path)] == [3, 1]
