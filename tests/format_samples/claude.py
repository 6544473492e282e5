"""A small session with typical content: a call, a sub-agent, an edited prompt, a summary, lines without a message."""

from __future__ import annotations

from typing import Any

from moot.types.canonical import dumps

__all__ = ["SAMPLES"]

_SESSION = "5f0c1a52-7d0e-4c53-9d2c-1f6a3f0b7c11"


def _line(type: str, number: int, parent: int | None, /, *, side: bool = False, **more: Any) -> bytes:
    told = {"parentUuid": _uuid(parent), "isSidechain": side, "type": type, "uuid": _uuid(number), "sessionId": _SESSION}
    told |= {"timestamp": f"2026-01-05T10:00:{number:02}.000Z", "cwd": "/home/user/project", "version": "2.1.330", "gitBranch": "main"}
    return dumps({**told, **more}) + b"\n"


def _uuid(number: int | None) -> str | None:
    return None if number is None else f"00000000-0000-4000-8000-{number:012}"


def _user(number: int, parent: int | None, content: Any, **more: Any) -> bytes:
    return _line("user", number, parent, message={"role": "user", "content": content}, **more)


def _model(number: int, parent: int, id: str, reason: str | None, *blocks: Any, **more: Any) -> bytes:
    message = {"id": id, "type": "message", "role": "assistant", "model": "claude-opus-5-5", "content": list(blocks)}
    usage = {"input_tokens": 100, "cache_read_input_tokens": 20, "output_tokens": 10}
    return _line("assistant", number, parent, message={**message, "stop_reason": reason, "usage": usage}, **more)


def _result(call: str, content: Any) -> list[Any]:
    return [{"type": "tool_result", "tool_use_id": call, "content": content}]


_TASK = {"type": "tool_use", "id": "toolu_2", "name": "Task", "input": {"description": "look", "prompt": "Look around."}}
_SHELL = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "ls"}}

SAMPLES = {
    "session": b"".join(
        (
            dumps({"type": "queue-operation", "operation": "enqueue", "sessionId": _SESSION}) + b"\n",
            _user(1, None, "What is here?"),
            _model(2, 1, "msg_1", None, {"type": "thinking", "thinking": "I look.", "signature": "c2lnbmVk"}),
            _model(3, 2, "msg_1", "tool_use", _SHELL),
            _user(4, 3, _result("toolu_1", "notes.txt"), toolUseResult={"stdout": "notes.txt", "stderr": "", "interrupted": False}),
            _model(5, 4, "msg_2", "end_turn", {"type": "text", "text": "A file: notes.txt."}),
            _user(6, 5, "And elsewhere?"),
            _model(7, 6, "msg_3", "tool_use", _TASK),
            _user(8, None, "Look around.", side=True),
            _model(9, 8, "msg_4", "end_turn", {"type": "text", "text": "Nothing."}, side=True),
            _user(10, 7, _result("toolu_2", [{"type": "text", "text": "Nothing."}])),
            _model(11, 10, "msg_5", "end_turn", {"type": "text", "text": "Nothing elsewhere."}),
            _line("system", 12, 11, subtype="compact_boundary", content="Conversation compacted"),
            _user(13, 12, "This session is being continued.", isCompactSummary=True),
            _user(14, 13, "<command-name>/model</command-name>"),
            _user(15, 5, "And what does it say?"),
            _model(16, 15, "msg_6", "end_turn", {"type": "text", "text": "I can't tell."}),
            dumps({"type": "ai-title", "aiTitle": "What is here", "sessionId": _SESSION}) + b"\n",
        )
    )
}
