"""Small sessions, of the current version and of the first ones."""

from __future__ import annotations

from typing import Any

from moot.types.canonical import dumps

__all__ = ["SAMPLES"]

_SESSION = "0199a213-81c0-7800-8aa1-bbab2a035a53"


def _line(number: int, kind: str, /, **payload: Any) -> bytes:
    return dumps({"timestamp": f"2026-01-05T10:00:{number:02}.000Z", "type": kind, "payload": payload}) + b"\n"


def _said(number: int, role: str, text: str) -> bytes:
    kind = "output_text" if role == "assistant" else "input_text"
    return _line(number, "response_item", type="message", role=role, content=[{"type": kind, "text": text}])


def _bare(**item: Any) -> bytes:
    return dumps(item) + b"\n"


_USAGE = {"input_tokens": 120, "cached_input_tokens": 20, "output_tokens": 10, "reasoning_output_tokens": 4, "total_tokens": 130}
_SHELL = {"name": "exec_command", "arguments": '{"cmd":"ls"}', "call_id": "call_1"}
_OUTPUT = "Chunk ID: 1\nWall time: 0.0000 seconds\nProcess exited with code 0\nOriginal token count: 2\nOutput:\nnotes.txt\n"

SAMPLES = {
    "session": b"".join(
        (
            _line(1, "session_meta", id=_SESSION, cwd="/home/user/project", originator="codex_exec", cli_version="0.169.0", source="exec"),
            _line(2, "event_msg", type="task_started", turn_id="t1"),
            _said(3, "developer", "Be good."),
            _said(4, "user", "<environment_context>\n<cwd>/home/user/project</cwd>\n</environment_context>"),
            _line(5, "turn_context", cwd="/home/user/project", model="big", approval_policy="never"),
            _said(6, "user", "What is here?"),
            _line(
                7,
                "response_item",
                type="reasoning",
                id="rs_1",
                summary=[{"type": "summary_text", "text": "I look."}],
                encrypted_content="c2VhbA==",
            ),
            _line(8, "response_item", type="function_call", **_SHELL),
            _line(9, "response_item", type="function_call_output", call_id="call_1", output=_OUTPUT),
            _line(10, "event_msg", type="token_count", info={"total_token_usage": _USAGE, "last_token_usage": _USAGE}),
            _line(11, "event_msg", type="agent_message", message="A file: notes.txt."),
            _said(12, "assistant", "A file: notes.txt."),
            _line(13, "event_msg", type="task_complete", turn_id="t1"),
        )
    ),
    "oldest": b"".join(
        (
            _bare(id=_SESSION, timestamp="2025-06-05T10:00:00.000Z", instructions=None),
            _bare(type="message", role="user", content=[{"type": "input_text", "text": "What is here?"}]),
            _bare(type="local_shell_call", call_id="call_1", status="completed", action={"type": "exec", "command": ["bash", "-lc", "ls"]}),
            _bare(type="function_call_output", call_id="call_1", output='{"output":"notes.txt\\n","metadata":{"exit_code":0}}'),
            _bare(record_type="state"),
            _bare(type="message", role="assistant", content=[{"type": "output_text", "text": "A file: notes.txt."}]),
        )
    ),
}
