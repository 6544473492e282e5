"""The page of a conversation: how its parts are shown."""

from __future__ import annotations

from typing import Any

import pytest

from moot.formats.html.format import Html
from moot.types.conversation import Conversation
from moot.types.format import ExportedConversation
from moot.types.message import Message, Part


def page(*parts: Part, **about: Any) -> str:
    return Html().write(ExportedConversation(Conversation("c", **about), (Message("m", "assistant", parts),))).data.decode()


def call(**more: Any) -> Part:
    return {"type": "dynamic-tool", "toolName": "shell", "toolCallId": "1", "state": "output-available", "input": {}, **more}


@pytest.mark.parametrize(
    ("part", "shown", "hidden"),
    [
        (call(output={"stdout": "one\ntwo", "exit_code": 0}), ["stdout", "one\ntwo", "exit_code"], "\\n"),
        (call(output=[{"type": "text", "text": "one\ntwo"}]), ["one\ntwo"], "\\n"),
        (call(output={"path": "a.txt"}), ["path", "a.txt"], 'class="name"'),
        (call(input={"command": "ls -la"}, output="x"), ["ls -la"], 'class="name"'),
        (call(input={"command": "ls", "timeout": 5}, output="x"), ['class="name">command', "timeout"], "&quot;command"),
        (call(state="output-denied", approval={"approved": False, "reason": "not on a Sunday"}), ["Denied", "not on a Sunday"], "Output"),
        (call(state="output-denied"), ["denied"], "Output"),
        ({"type": "data-plan", "data": {"entries": [{"content": "look", "status": "completed"}]}}, ["✓ look"], "entries"),
        ({"type": "data-attempt", "data": {"abandoned": True}}, ["started again"], "data-attempt"),
        ({"type": "data-subagent", "data": {"agent": "scout", "text": "*here*"}}, ["scout", "<em>here</em>"], "data-subagent"),
        ({"type": "data-subagent", "data": {"agent": "scout", "text": "hm", "kind": "reasoning"}}, ["Reasoning of scout"], "data-subagent"),
        ({"type": "source-document", "title": "A book"}, ["Source: ", "A book"], "source-document"),
        ({"type": "file", "mediaType": "text/plain", "filename": "a.txt", "url": "data:text/plain,a%20b"}, ["a b", "3 bytes"], "a%20b"),
        ({"type": "data-new", "data": {"thing": 1}}, ["data-new", "thing"], "&lt;"),
    ],
)
def test_each_kind_of_part_is_shown(part: Part, shown: list[str], hidden: str) -> None:
    body = page(part).partition("<main>")[2]
    assert all(words in body for words in shown), body
    assert hidden not in body


def test_what_a_sub_agent_did_is_inside_the_call_that_started_it() -> None:
    link = {"moot": {"parentToolCallId": "1"}}
    words: Part = {"type": "data-subagent", "data": {"parentToolCallId": "1", "agent": "scout", "kind": "text", "text": "I look."}}
    inner = call(input={"command": "ls -la"}, output="x") | {"toolCallId": "2", "toolMetadata": link}
    body = page(call(output="found"), {"type": "text", "text": "The end."}, inner, words).partition("<main>")[2]
    card = body.partition("<details")[2].partition("The end.")[0]
    assert card.count("<details") == 1 and card.index("Sub-agent") < card.index("ls -la") < card.index("I look.")


def test_the_header_names_the_format_that_a_conversation_was_imported_from() -> None:
    assert "<span>from codex</span>" in page({"type": "text", "text": "x"}, origin={"format": "codex", "path": "/home/me/secret"})
    assert "secret" not in page({"type": "text", "text": "x"}, origin={"format": "codex", "path": "/home/me/secret"})
