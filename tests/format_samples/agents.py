"""Samples of coding agents' sessions."""

from __future__ import annotations

from collections.abc import Mapping

from moot.formats.kit.database import create_database
from moot.types.format import Sample

GEMINI = b"""\
{"sessionId":"s1","projectHash":"p1","startTime":"2026-11-21T20:31:32.637Z","lastUpdated":"2026-11-21T20:31:32.637Z","kind":"main"}
{"id":"m1","timestamp":"2026-11-21T20:31:32.673Z","type":"user","content":[{"text":"What is here?"}]}
{"id":"m2","timestamp":"2026-11-21T20:31:32.846Z","type":"gemini","content":"I look.","thoughts":[],"model":"gemini-2.5-flash"}
{"$set":{"lastUpdated":"2026-11-21T20:31:32.846Z"}}
"""

GEMINI_OLDER = b"""{"sessionId": "s0", "projectHash": "p1", "startTime": "2025-11-21T20:31:32.637Z", "messages": [
  {"id": "m1", "timestamp": "2025-11-21T20:31:32.673Z", "type": "user", "content": "What is here?"},
  {"id": "m2", "timestamp": "2025-11-21T20:31:32.846Z", "type": "gemini", "content": "One file.", "model": "gemini-2.5-pro"}
]}
"""

QWEN = b"""\
{"uuid":"a1","parentUuid":null,"sessionId":"s1","timestamp":"2026-11-21T20:37:24.594Z","type":"user","cwd":"/home/user/project",\
"version":"0.15.10","message":{"role":"user","parts":[{"text":"What is here?"}]}}
{"uuid":"a2","parentUuid":"a1","sessionId":"s1","timestamp":"2026-11-21T20:37:24.850Z","type":"assistant","cwd":"/home/user/project",\
"version":"0.15.10","model":"mock-1","message":{"role":"model","parts":[{"text":"One file."}]}}
"""

PI = b"""\
{"type":"session","version":3,"id":"s1","timestamp":"2026-11-21T20:44:43.782Z","cwd":"/home/user/project"}
{"type":"message","id":"a1","parentId":null,"timestamp":"2026-11-21T20:44:43.855Z","message":{"role":"user","content":"What is here?"}}
{"type":"message","id":"a2","parentId":"a1","timestamp":"2026-11-21T20:44:44.014Z","message":{"role":"assistant","content":\
[{"type":"toolCall","id":"c1","name":"bash","arguments":{"command":"ls"}}],"provider":"mock","model":"mock-1","stopReason":"toolUse"}}
{"type":"message","id":"a3","parentId":"a2","timestamp":"2026-11-21T20:44:44.041Z","message":{"role":"toolResult","toolCallId":"c1",\
"toolName":"bash","content":[{"type":"text","text":"a.txt"}],"isError":false}}
"""

GPTME = b"""\
{"role": "system", "content": "Be brief.", "timestamp": "2026-11-21T20:44:49.756617", "pinned": true, "hide": true}
{"role": "user", "content": "What is here?", "timestamp": "2026-11-21T20:44:49.667063"}
{"role": "assistant", "content": "I look.\\n@shell(call_1): {\\"command\\":\\"ls\\"}", "timestamp": "2026-11-21T20:44:53.523074"}
{"role": "system", "content": "a.txt", "timestamp": "2026-11-21T20:44:54.147928", "call_id": "call_1", "metadata": {"tool": "shell"}}
"""

OPENCODE_SCHEMA = """
CREATE TABLE session (id text PRIMARY KEY, project_id text, parent_id text, directory text, title text, model text,
    time_created integer, time_updated integer, time_archived integer);
CREATE TABLE message (id text PRIMARY KEY, session_id text, time_created integer, time_updated integer, data text);
CREATE TABLE part (id text PRIMARY KEY, message_id text, session_id text, time_created integer, time_updated integer, data text);
"""

OPENCODE_EXPORT = b"""{"info": {"id": "ses_2", "directory": "/home/user/project", "title": "Lists"}, "messages": [
  {"info": {"id": "msg_1", "role": "user", "time": {"created": 1795293173351}}, "parts": [{"type": "text", "text": "What is here?"}]},
  {"info": {"id": "msg_2", "role": "assistant", "modelID": "mock-1", "providerID": "mock", "finish": "stop"}, "parts": [
    {"type": "step-start"}, {"type": "text", "text": "One file."}]}
]}
"""


def _opencode_database() -> bytes:
    """A small one for testing a reader."""
    told = [
        ("msg_1", '{"role":"user","time":{"created":1795293173351}}', "prt_1", '{"type":"text","text":"What is here?"}'),
        ("msg_2", '{"role":"assistant","modelID":"mock-1","providerID":"mock"}', "prt_2", '{"type":"text","text":"One file."}'),
    ]
    return create_database(
        OPENCODE_SCHEMA,
        [
            ("INSERT INTO session (id, directory, title) VALUES (?, ?, ?)", [("ses_1", "/home/user/project", "Lists")]),
            ("INSERT INTO message (id, session_id, data) VALUES (?, 'ses_1', ?)", [one[:2] for one in told]),
            ("INSERT INTO part (message_id, session_id, id, data) VALUES (?, 'ses_1', ?, ?)", [(one[0], *one[2:]) for one in told]),
        ],
    )


VIBE = {
    "CURRENT": b'{"generation":"0000000000000002","session_id":"s1","store_format":"mistral.vibe.unified-session-store/v1"}',
    "meta.json": b'{"session_id":"s1","title":"Lists","origin_directory":"/home/user/project","config":{"model_name":"mock-1"}}',
    "generations/0000000000000002/manifest.json": b'{"snapshot_sequence":2,"projection_state":{"chunks":["aa"]}}',
    "chunks/aa.json": b"""[
 {"type": "message", "id": "u1", "role": "user", "createdAt": 1795294171477, "content": [{"type": "text", "text": "What is here?"}]},
 {"type": "reasoning", "id": "reasoning-a1-0", "createdAt": 1795294171609, "text": "I look."},
 {"type": "effect", "id": "effect-1", "createdAt": 1795294171619, "detail": {"toolName": "bash", "input": {"command": "ls"}},
  "state": {"status": "completed", "output": {"type": "success", "structured_content": {"stdout": "a.txt"}}}}
]
""",
    "journal/0000000000000003.jsonl": b"""{"type":"projection_delta","sequence":3,"payload":{"delta":[{"op":"append_entry","entry":\
{"type":"message","id":"assistant-a2","role":"assistant","content":[{"type":"text","text":"One file."}]}}]}}
""",
}

AICHAT_SESSION = b"""model: openai:gpt-4o
messages:
- role: user
  content: What is here?
- role: assistant
  content: One file.
"""

AICHAT_LOG = b"# CHAT: What is here? [2025-11-21T20:31:32+00:00]\nWhat is here?\n--------\nOne file.\n--------\n\n"


def _llm_database() -> bytes:
    """A small one for testing a reader."""
    schema = """
        CREATE TABLE conversations (id TEXT PRIMARY KEY, name TEXT, model TEXT);
        CREATE TABLE responses (id TEXT PRIMARY KEY, model TEXT, prompt TEXT, system TEXT, response TEXT, conversation_id TEXT,
            duration_ms INTEGER, datetime_utc TEXT, input_tokens INTEGER, output_tokens INTEGER, token_details TEXT);
    """
    told = [("r1", "gpt-4o", "What is here?", "One file.", "c1", 500, "2025-11-21T20:31:32", 20, 5)]
    return create_database(
        schema,
        [
            ("INSERT INTO conversations VALUES (?, ?, ?)", [("c1", "Lists", "gpt-4o")]),
            ("INSERT INTO responses VALUES (?, ?, ?, NULL, ?, ?, ?, ?, ?, ?, NULL)", told),
        ],
    )


VIBE_OLD = b"""\
{"role":"user","content":"What is here?","message_id":"m1"}
{"role":"assistant","content":"I look.","reasoning_content":"Hm.","tool_calls":[{"id":"c1","index":0,"type":"function",\
"function":{"name":"bash","arguments":"{\\"command\\":\\"ls\\"}"}}],"message_id":"m2"}
{"role":"tool","content":"a.txt","name":"bash","tool_call_id":"c1"}
{"role":"assistant","content":"One file.","message_id":"m3"}
"""

IFLOW = b"""\
{"uuid":"a1","parentUuid":null,"sessionId":"session-1","timestamp":"2026-07-24T22:25:43.000Z","type":"user","cwd":"/home/user/project",\
"message":{"role":"user","content":"What is here?"}}
{"uuid":"a2","parentUuid":"a1","sessionId":"session-1","timestamp":"2026-07-24T22:25:46.000Z","type":"assistant","message":\
{"id":"response-1-0","role":"assistant","model":"mock-1","content":[{"type":"text","text":"I look."},\
{"type":"tool_use","id":"c1","name":"ls","input":{"path":"."}}]}}
{"uuid":"a3","parentUuid":"a1","sessionId":"session-1","timestamp":"2026-07-24T22:25:46.200Z","type":"assistant","message":\
{"id":"response-1-1","role":"assistant","model":"mock-1","content":[{"type":"text","text":"I look."},\
{"type":"tool_use","id":"c1","name":"ls","input":{"path":"."}},{"type":"tool_use","id":"c2","name":"cat","input":{"path":"a.txt"}}]}}
{"uuid":"a4","parentUuid":"a2","sessionId":"session-1","timestamp":"2026-07-24T22:25:49.000Z","type":"user","message":{"role":"user",\
"content":[{"tool_use_id":"c1","type":"tool_result","content":{"callId":"c1","responseParts":{"functionResponse":{"id":"c1","name":"ls",\
"response":{"output":"a.txt"}}}}}]}}
"""

WORKBUDDY = b"""\
{"id":"i1","timestamp":1786118323000,"sessionId":"s1","cwd":"/home/user/project","type":"message","role":"user",\
"content":[{"type":"input_text","text":"What is here?"}]}
{"id":"i2","timestamp":1786118329000,"sessionId":"s1","type":"function_call","name":"ls","callId":"c1","arguments":"{\\"path\\":\\".\\"}",\
"providerData":{"model":"mock-1","usage":{"inputTokens":900,"outputTokens":40,"cacheReadInputTokens":0}}}
{"id":"i3","timestamp":1786118332000,"sessionId":"s1","type":"function_call_result","name":"ls","callId":"c1",\
"output":{"type":"text","text":"a.txt"}}
{"id":"i4","timestamp":1786118335000,"sessionId":"s1","type":"message","role":"assistant","content":[{"type":"output_text","text":"One."}],\
"providerData":{"model":"mock-1","usage":{"inputTokens":960,"outputTokens":20,"cacheReadInputTokens":0}}}
"""

SAMPLES: dict[str, Mapping[str, Sample]] = {
    "iflow": {"session": IFLOW},
    "vibe-old": {"session": VIBE_OLD},
    "workbuddy": {"session": WORKBUDDY},
    "gemini": {"chat": GEMINI, "older": GEMINI_OLDER},
    "qwen": {"session": QWEN},
    "pi": {"session": PI},
    "gptme": {"conversation": GPTME},
    "opencode": {"database": _opencode_database(), "export": OPENCODE_EXPORT},
    "vibe": {"session": VIBE},
    "aichat": {"session": AICHAT_SESSION, "log": AICHAT_LOG},
    "llm": {"older": _llm_database()},
}
