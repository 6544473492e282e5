"""Short builders for messages of the Agent Client Protocol."""

from __future__ import annotations

import json
from typing import Any

INITIALIZED = {"id": 0, "result": {"protocolVersion": 1, "agentInfo": {"name": "double", "version": "1"}}}
OPENED = {"id": 1, "result": {"sessionId": "s"}}
ASKED = {"id": 2, "method": "session/prompt", "params": {"sessionId": "s", "prompt": []}}
BEGIN = {"id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
DONE = {"id": 2, "result": {"stopReason": "end_turn"}}


class Ours(dict[str, Any]):
    """A message sent by moot."""


def update(said: str, /, session: str = "s", **fields: Any) -> dict[str, Any]:
    return {"method": "session/update", "params": {"sessionId": session, "update": {"sessionUpdate": said, **fields}}}


def text(words: str, **fields: Any) -> dict[str, Any]:
    return update("agent_message_chunk", content={"type": "text", "text": words}, **fields)


def permission(id: Any, call: str, **fields: Any) -> dict[str, Any]:
    options = [{"optionId": "y", "name": "Yes", "kind": "allow_once"}, {"optionId": "n", "name": "No", "kind": "reject_once"}]
    params = {"sessionId": "s", "toolCall": {"toolCallId": call, **fields}, "options": options}
    return {"id": id, "method": "session/request_permission", "params": params}


def answer(id: Any, option: str) -> Ours:
    return Ours(id=id, result={"outcome": {"outcome": "selected", "optionId": option}})


def output(words: str) -> list[dict[str, Any]]:
    return [{"type": "content", "content": {"type": "text", "text": words}}]


def wire(*messages: dict[str, Any]) -> list[tuple[bool, bytes]]:
    return [(isinstance(message, Ours), json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n") for message in messages]
