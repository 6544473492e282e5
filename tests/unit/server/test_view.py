from __future__ import annotations

from typing import Any

from moot.server.streams.view import message_view
from moot.types.message import Message, Part


def test_clients_find_the_parent_of_a_nested_call_in_one_place() -> None:
    call: Part = {"type": "dynamic-tool", "toolName": "Bash", "state": "output-available", "input": {}, "output": ""}
    parts: tuple[Part, ...] = (
        {**call, "toolName": "Task", "toolCallId": "a"},
        {**call, "toolCallId": "old", "toolMetadata": {"claude-code": {"parent": "a"}}},
        {**call, "toolCallId": "new", "toolMetadata": {"moot": {"parentToolCallId": "a"}}},
    )
    shown: Any = message_view(Message("m", "assistant", parts), 6, [])["parts"]
    assert [part["toolMetadata"]["moot"] for part in shown[1:]] == [{"parentToolCallId": "a"}] * 2
