"""Samples of coding agents' sessions."""

from __future__ import annotations

from collections.abc import Mapping

from format_samples import opencode
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

KIMI = b"""\
{"type":"metadata","protocol_version":"1.9"}
{"timestamp":1785623623.0,"message":{"type":"TurnBegin","payload":{"user_input":[{"type":"text","text":"What is here?"}]}}}
{"timestamp":1785623629.0,"message":{"type":"ContentPart","payload":{"type":"think","think":"I should look."}}}
{"timestamp":1785623629.5,"message":{"type":"ContentPart","payload":{"type":"text","text":"I look."}}}
{"timestamp":1785623635.0,"message":{"type":"ToolCall","payload":{"type":"function","id":"c1","function":{"name":"ls","arguments":"{\\"pa"}}}}
{"timestamp":1785623638.0,"message":{"type":"ToolCallPart","payload":{"arguments_part":"th\\":\\".\\"}"}}}
{"timestamp":1785623641.0,"message":{"type":"StatusUpdate","payload":{"token_usage":{"input_other":900,"output":40,"input_cache_read":0,\
"input_cache_creation":0}}}}
{"timestamp":1785623644.0,"message":{"type":"ToolResult","payload":{"tool_call_id":"c1","return_value":{"is_error":false,"output":"a.txt"}}}}
{"timestamp":1785623659.0,"message":{"type":"TurnEnd","payload":{}}}
"""

KIMI_CODE = b"""\
{"type":"metadata","version":1,"time":1786243243000}
{"type":"config.update","cwd":"/home/user/project","modelAlias":"mock-1","time":1786243246000}
{"type":"turn.prompt","input":[{"type":"text","text":"What is here?"}],"time":1786243249000}
{"type":"context.append_loop_event","event":{"type":"content.part","uuid":"u1","part":{"type":"text","text":"I look."}},\
"time":1786243258000}
{"type":"context.append_loop_event","event":{"type":"tool.call","uuid":"u2","toolCallId":"c1","name":"ls","args":{"path":"."}},\
"time":1786243261000}
{"type":"context.append_loop_event","event":{"type":"tool.result","toolCallId":"c1","result":{"output":"a.txt","isError":false}},\
"time":1786243264000}
{"type":"context.append_loop_event","event":{"type":"step.end","usage":{"inputOther":900,"output":40},"finishReason":"tool_use"},\
"time":1786243267000}
"""

DROID = b"""\
{"type":"session_start","id":"s1","title":"Files","cwd":"/home/user/project"}
{"type":"message","id":"m1","timestamp":"2026-07-14T13:13:43.000Z","message":{"role":"user","content":[{"type":"text",\
"text":"<system-reminder>be brief</system-reminder>"},{"type":"text","text":"What is here?"}]}}
{"type":"message","id":"m2","timestamp":"2026-07-14T13:13:46.000Z","message":{"role":"assistant",\
"content":[{"type":"text","text":"I look."},{"type":"tool_use","id":"c1","name":"ls","input":{"path":"."}}]}}
{"type":"message","id":"m3","timestamp":"2026-07-14T13:13:49.000Z","message":{"role":"user","content":[{"type":"tool_result",\
"tool_use_id":"c1","is_error":false,"content":"a.txt"}]}}
"""

COPILOT_CLI = b"""\
{"type":"session.start","data":{"sessionId":"s1","startTime":"2026-07-27T21:10:40.000Z","context":{"cwd":"/home/user/project"}},"id":"e1",\
"timestamp":"2026-07-27T21:10:43.000Z"}
{"type":"session.model_change","data":{"newModel":"mock-1"},"id":"e2","timestamp":"2026-07-27T21:10:46.000Z"}
{"type":"user.message","data":{"content":"What is here?"},"id":"e3","timestamp":"2026-07-27T21:10:49.000Z"}
{"type":"assistant.message","data":{"messageId":"m1","content":"I look.","toolRequests":[{"toolCallId":"c1","name":"ls",\
"arguments":{"path":"."}}]},"id":"e4","timestamp":"2026-07-27T21:10:55.000Z"}
{"type":"tool.execution_complete","data":{"toolCallId":"c1","success":true,"result":{"content":"a.txt"}},"id":"e5",\
"timestamp":"2026-07-27T21:11:01.000Z"}
{"type":"session.shutdown","data":{"totalNanoAiu":430000000,"modelMetrics":{"mock-1":{"usage":{"inputTokens":1860,"outputTokens":60}}}},\
"id":"e6","timestamp":"2026-07-27T21:11:16.000Z"}
"""

GROK = b"""\
{"type":"system","content":"You are Grok"}
{"type":"user","content":[{"type":"text","text":"What is here?"}],"prompt_index":0}
{"type":"assistant","content":"I look.","tool_calls":[{"id":"c1","name":"ls","arguments":"{\\"path\\":\\".\\"}"}],"model_id":"mock-1"}
{"type":"tool_result","tool_call_id":"c1","content":"a.txt"}
{"type":"assistant","content":"One file.","tool_calls":[],"model_id":"mock-1"}
"""

AMP = b"""{"v":40,"id":"T-1","created":1783340560000,"title":"Files","messages":[
{"role":"user","messageId":0,"content":[{"type":"text","text":"What is here?"}],"meta":{"sentAt":1783340563000}},
{"role":"assistant","messageId":1,"content":[{"type":"text","text":"I look."},
{"type":"tool_use","id":"c1","name":"ls","input":{"path":"."}}],
"usage":{"model":"mock-1","inputTokens":900,"outputTokens":40}},
{"role":"user","messageId":2,"content":[{"type":"tool_result","toolUseID":"c1","run":{"status":"done","result":{"output":"a.txt"}}}]}]}
"""

_GOOSE = """CREATE TABLE sessions (id TEXT PRIMARY KEY, name TEXT, working_dir TEXT, created_at TIMESTAMP, provider_name TEXT,
model_config_json TEXT, parent_session_id TEXT);
CREATE TABLE messages (id INTEGER PRIMARY KEY, message_id TEXT, session_id TEXT, role TEXT, content_json TEXT, created_timestamp INTEGER,
metadata_json TEXT);
CREATE TABLE usage_ledger (id INTEGER PRIMARY KEY, session_id TEXT, model TEXT, input_tokens INTEGER, output_tokens INTEGER, cost REAL);"""
GOOSE = create_database(
    _GOOSE,
    [
        (
            "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?)",
            [("s1", "Files", "/home/user/project", "2026-07-19 21:09:40", "mock", '{"model_name":"mock-1"}', None)],
        ),
        (
            "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (1, "m1", "s1", "user", '[{"type":"text","text":"What is here?"}]', 1784495386, None),
                (
                    *(2, "m2", "s1", "assistant"),
                    '[{"type":"text","text":"I look."},{"type":"toolRequest","id":"c1","toolCall":{"status":"success","value":'
                    '{"name":"ls","arguments":{"path":"."}}}}]',
                    *(1784495389, None),
                ),
                (
                    *(3, "m3", "s1", "user"),
                    '[{"type":"toolResponse","id":"c1","toolResult":{"status":"success","value":{"content":'
                    '[{"type":"text","text":"a.txt"}],"isError":false}}}]',
                    *(1784495392, None),
                ),
            ],
        ),
        ("INSERT INTO usage_ledger VALUES (?, ?, ?, ?, ?, ?)", [(1, "s1", "mock-1", 900, 40, 0.0021)]),
    ],
)

_CRUSH = """CREATE TABLE sessions (id TEXT PRIMARY KEY, parent_session_id TEXT, title TEXT, cost REAL,
updated_at INTEGER, created_at INTEGER);
CREATE TABLE messages (id TEXT PRIMARY KEY, session_id TEXT, role TEXT, parts TEXT, model TEXT, created_at INTEGER, provider TEXT);"""
CRUSH = create_database(
    _CRUSH,
    [
        ("INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?)", [("s1", None, "Files", 0.0043, 1783282900, 1783282840)]),
        (
            "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                ("m1", "s1", "user", '[{"type":"text","data":{"text":"What is here?"}}]', None, 1783282843, None),
                (
                    *("m2", "s1", "assistant"),
                    '[{"type":"text","data":{"text":"I look."}},{"type":"tool_call","data":{"id":"c1","name":"ls","input":"{}"}}]',
                    *("mock-1", 1783282846, "mock"),
                ),
                (
                    *("m3", "s1", "tool", '[{"type":"tool_result","data":{"tool_call_id":"c1","name":"ls","content":"a.txt"}}]'),
                    *(None, 1783282849, None),
                ),
            ],
        ),
    ],
)

_HERMES = """CREATE TABLE sessions (id TEXT PRIMARY KEY, model TEXT, parent_session_id TEXT, started_at REAL, ended_at REAL,
input_tokens INTEGER, output_tokens INTEGER, title TEXT, api_call_count INTEGER);
CREATE TABLE messages (id INTEGER PRIMARY KEY, session_id TEXT, role TEXT, content TEXT, tool_call_id TEXT, tool_calls TEXT,
timestamp REAL);"""
HERMES = create_database(
    _HERMES,
    [
        (
            "INSERT INTO sessions VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [("s1", "mock-1", None, 1785752920.0, 1785752980.0, 900, 40, "Files", 1)],
        ),
        (
            "INSERT INTO messages VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                (1, "s1", "user", "What is here?", None, None, 1785752923.0),
                (
                    *(2, "s1", "assistant", "I look.", None),
                    '[{"id":"c1","type":"function","function":{"name":"ls","arguments":"{}"}}]',
                    1785752926.0,
                ),
                (3, "s1", "tool", "a.txt", "c1", None, 1785752929.0),
            ],
        ),
    ],
)

AIDER = b"""
# aider chat started at 2026-08-13 22:59:40

> Main model: anthropic/mock-1 with diff edit format~

#### What is here?~
#### Count the files.~

> Add a.txt to the chat? (Y)es/(N)o [Yes]: y~

#### No prompt
One file.

> Tokens: 2.1k sent, 1.2k cache hit, 40 received. Cost: $0.01 message, $0.01 session.~
> Applied edit to a.txt~
""".replace(b"~\n", b"  \n")
_OPENHANDS_EVENTS: list[tuple[str, str]] = [
    ("SystemPromptEvent", '"source":"agent","system_prompt":{"type":"text","text":"Be brief."},"tools":[]'),
    ("MessageEvent", '"source":"user","llm_message":{"role":"user","content":[{"type":"text","text":"What is here?"}]}'),
    (
        "ActionEvent",
        '"source":"agent","thought":[{"type":"text","text":"I look."}],"reasoning_content":"Better look.","tool_name":"ls",'
        '"tool_call_id":"c1","tool_call":{"id":"c1","name":"ls","arguments":"{\\"path\\":\\"docs\\"}"},"llm_response_id":"r1"',
    ),
    (
        "ActionEvent",
        '"source":"agent","thought":[],"tool_name":"cat","tool_call_id":"c2","tool_call":{"id":"c2","name":"cat","arguments":"{}"},'
        '"llm_response_id":"r1"',
    ),
    (
        "ObservationEvent",
        '"tool_name":"ls","tool_call_id":"c1","observation":{"content":[{"type":"text","text":"a.txt"}],"is_error":false}',
    ),
    ("AgentErrorEvent", '"tool_name":"cat","tool_call_id":"c2","error":"no such file"'),
    (
        "MessageEvent",
        '"source":"agent","llm_message":{"role":"assistant","content":[{"type":"text","text":"One file."}]},"llm_response_id":"r2"',
    ),
]
OPENHANDS = {
    "c0ffee/base_state.json": b"""{"agent":{"llm":{"model":"mock-1"}},"workspace":{"working_dir":"/home/user/project"},"stats":
{"usage_to_metrics":{"agent":{"costs":[{"cost":0.01},{"cost":0.02}],"token_usages":[
{"model":"mock-1","prompt_tokens":900,"completion_tokens":40,"response_id":"r1"},
{"model":"mock-1","prompt_tokens":960,"completion_tokens":20,"response_id":"r2"}]}}}}""",
    **{
        f"c0ffee/events/event-{number:05}-e{number}.json": (
            f'{{"kind":"{kind}","id":"e{number}","timestamp":"2026-07-31T10:47:4{number}",{rest}}}'.encode()
        )
        for number, (kind, rest) in enumerate(_OPENHANDS_EVENTS)
    },
}

SAMPLES: dict[str, Mapping[str, Sample]] = {
    "aider": {"history": AIDER},
    "openhands": {"conversation": OPENHANDS},
    "amp": {"thread": AMP},
    "copilot-cli": {"session": COPILOT_CLI},
    "crush": {"database": CRUSH},
    "droid": {"session": DROID},
    "goose": {"database": GOOSE},
    "grok": {"history": GROK},
    "hermes": {"database": HERMES},
    "kimi": {"session": KIMI},
    "kimi-code": {"session": KIMI_CODE},
    "iflow": {"session": IFLOW},
    "vibe-old": {"session": VIBE_OLD},
    "workbuddy": {"session": WORKBUDDY},
    "gemini": {"chat": GEMINI, "older": GEMINI_OLDER},
    "qwen": {"session": QWEN},
    "pi": {"session": PI},
    "gptme": {"conversation": GPTME},
    "opencode": {"database": _opencode_database(), "export": OPENCODE_EXPORT, **opencode.SAMPLES},
    "vibe": {"session": VIBE},
    "aichat": {"session": AICHAT_SESSION, "log": AICHAT_LOG},
    "llm": {"older": _llm_database()},
}
