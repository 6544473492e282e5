"""Samples of the sessions of coding agents in editors."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256

from moot.formats.kit.database import create_database
from moot.types.format import Sample

_CLINE = {
    "api_conversation_history.json": b"""[
 {"role": "user", "content": [{"type": "text", "text": "<task>\\nWhat is here?\\n</task>"},
  {"type": "text", "text": "<environment_details>\\n# Open Tabs\\na.txt\\n</environment_details>"}], "ts": 1784908480000},
 {"role": "assistant", "content": [{"type": "text", "text": "I look."},
  {"type": "tool_use", "id": "c1", "name": "list_files", "input": {"path": "docs"}}], "ts": 1784908482000},
 {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "a.txt"}], "ts": 1784908483000},
 {"role": "assistant", "content": [{"type": "text", "text": "One file."}], "ts": 1784908485000}
]
""",
    "ui_messages.json": b"""[
 {"ts": 1784908480000, "type": "say", "say": "text", "text": "What is here?"},
 {"ts": 1784908481000, "type": "say", "say": "api_req_started", "text": "{\\"tokensIn\\": 900, \\"tokensOut\\": 40, \\"cost\\": 0.0021}"},
 {"ts": 1784908484000, "type": "say", "say": "api_req_started", "text": "{\\"tokensIn\\": 960, \\"tokensOut\\": 20, \\"cost\\": 0.0022}"}
]
""",
    "task_metadata.json": b'{"model_usage": [{"ts": 1784908480000, "model_id": "claude-sonnet-4-5", "model_provider_id": "anthropic"}]}',
}
_ROO_ITEM = b'{"id": "5b1b7c5e-0000-4000-8000-000000000001", "ts": 1784908485000, "task": "Lists", "workspace": "/home/user/project"}'
_CLINE_WRITTEN = b"""[
 {"role": "user", "content": [{"type": "text", "text": "<task>\\nWhat is here?\\n</task>"}]},
 {"role": "assistant", "content": "I look.\\n<list_files>\\n<path>docs</path>\\n</list_files>"},
 {"role": "user", "content": [{"type": "text", "text": "[list_files for 'docs'] Result:"}, {"type": "text", "text": "a.txt"}]}
]
"""
_VSCODE_REQUEST = b"""{"requestId": "r1", "timestamp": 1786190383000, "modelId": "copilot/gpt-5.1", "message": {"text": "What is here?"},
 "response": [
  {"value": "I look."},
  {"kind": "toolInvocationSerialized", "toolId": "copilot_listFiles", "toolCallId": "c1", "isComplete": true,
   "resultDetails": {"input": "{\\"path\\": \\"docs\\"}", "output": [{"value": "a.txt"}]}},
  {"value": "One file."}],
 "result": {"metadata": {"promptTokens": 900, "outputTokens": 40}}}"""
_VSCODE_LOG = b"""\
{"kind":0,"v":{"version":3,"sessionId":"s1","creationDate":1786190380000,"requests":[]}}
{"kind":2,"k":["requests"],"v":[{"requestId":"r1","message":{"text":"What is here?"},"response":[]}]}
{"kind":2,"k":["requests",0,"response"],"v":[{"value":"I look again."}]}
{"kind":2,"k":["requests",0,"response"],"i":0,"v":[{"value":"One file."}]}
{"kind":1,"k":["customTitle"],"v":"Lists"}
"""
_CURSOR = b"""\
{"role":"user","message":{"content":[{"type":"text","text":"<user_query>\\nWhat is here?\\n</user_query>"}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"I look."},{"type":"tool_use","name":"LS","input":{"path":"docs"}}]}}
{"role":"assistant","message":{"content":[{"type":"text","text":"One file."}]}}
"""


def _cursor_database() -> bytes:
    """A small one for testing a reader."""
    headers = '"fullConversationHeadersOnly": [{"bubbleId": "b1", "type": 1}, {"bubbleId": "b2", "type": 2}, {"bubbleId": "b3", "type": 2}]'
    call = '{"toolCallId": "c1", "name": "list_dir", "status": "completed", "rawArgs": "{\\"path\\": \\"docs\\"}", "result": "a.txt"}'
    rows = [
        ("composerData:k1", f'{{"composerId": "k1", "name": "Lists", {headers}}}'),
        ("bubbleId:k1:b1", '{"bubbleId": "b1", "type": 1, "text": "What is here?"}'),
        ("bubbleId:k1:b2", f'{{"bubbleId": "b2", "type": 2, "text": "", "capabilityType": 15, "toolFormerData": {call}}}'),
        ("bubbleId:k1:b3", '{"bubbleId": "b3", "type": 2, "text": "One file."}'),
    ]
    tables = "CREATE TABLE ItemTable (key TEXT, value BLOB); CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB);"
    return create_database(tables, [("INSERT INTO cursorDiskKV VALUES (?, ?)", rows)])


_KIRO = b"""\
{"version":"v1","kind":"Prompt","data":{"message_id":"m1","content":[{"kind":"text","data":"What is here?"}]}}
{"version":"v1","kind":"AssistantMessage","data":{"message_id":"m2","content":[{"kind":"toolUse",\
"data":{"toolUseId":"c1","name":"ls","input":{"path":"docs"}}}]}}
{"version":"v1","kind":"ToolResults","data":{"message_id":"m3","content":[{"kind":"toolResult",\
"data":{"toolUseId":"c1","content":[{"kind":"text","data":"a.txt"}],"status":"success"}}]}}
{"version":"v1","kind":"AssistantMessage","data":{"message_id":"m4","content":[{"kind":"text","data":"One file."}]}}
"""
_KIRO_IDE = {
    "workspace-sessions/L3Nydg__/s1.json": b"""{"sessionId": "s1", "title": "Lists", "workspaceDirectory": "/srv", "history": [
 {"message": {"role": "user", "content": [{"type": "text", "text": "What is here?"}], "id": "m1"}},
 {"message": {"role": "assistant", "content": "On it.", "id": "m2"}, "executionId": "e1"}]}""",
    f"{sha256(b'/srv').hexdigest()[:32]}/414d1636299d2b9e4ce7e17fb11f63e9/f1": b"""\
{"executionId": "e1", "startTime": 1783109800000,
 "actions": [
 {"actionId": "a1", "actionType": "listDirectory", "input": {"path": "docs"}, "output": {"message": "a.txt"}},
 {"actionId": "a2", "actionType": "say", "output": {"message": "One file."}}]}""",
}
_KIRO_CHAT = b"""{"executionId": "e0", "chat": [
 {"role": "human", "content": "Be brief."}, {"role": "bot", "content": "I will."},
 {"role": "human", "content": "What is here?"}, {"role": "tool", "content": "a.txt"}, {"role": "bot", "content": "One file."}],
 "metadata": {"modelId": "claude-sonnet-4", "startTime": 1783109800000, "endTime": 1783109900000}}"""


def _kiro_database() -> bytes:
    """A small one for testing a reader."""
    value = """{"conversation_id": "k1", "history": [
      {"user": {"content": {"Prompt": {"prompt": "What is here?"}}}, "assistant": {"ToolUse":
        {"message_id": "m1", "content": "I look.", "tool_uses": [{"id": "c1", "name": "ls", "args": {"path": "docs"}}]}}},
      {"user": {"content": {"ToolUseResults":
        {"tool_use_results": [{"tool_use_id": "c1", "content": [{"Text": "a.txt"}], "status": "Success"}]}}},
       "assistant": {"Response": {"message_id": "m2", "content": "One file."}}}]}"""
    tables = "CREATE TABLE conversations_v2 (key TEXT, conversation_id TEXT, value TEXT, created_at INTEGER, updated_at INTEGER)"
    row = ("/home/user/project", "k1", value, 1783524940000, 1783524950000)
    return create_database(tables, [("INSERT INTO conversations_v2 VALUES (?, ?, ?, ?, ?)", [row])])


def _zed_database() -> bytes:
    """A small one for testing a reader."""
    thread = """{"version": "0.3.0", "title": "Lists", "messages": [{"User": {"id": "u1", "content": [{"Text": "What is here?"}]}},
      {"Agent": {"content": [{"Thinking": {"text": "Better look."}}, {"ToolUse": {"id": "c1", "name": "list", "input": {"path": "docs"}}}],
        "tool_results": {"c1": {"tool_use_id": "c1", "is_error": false, "content": [{"Text": "a.txt"}]}}}},
      {"Agent": {"content": [{"Text": "One file."}], "tool_results": {}}}],
      "request_token_usage": {"u1": {"input_tokens": 900, "output_tokens": 40}}}"""
    older = """{"version": "0.2.0", "summary": "Older", "messages": [
      {"id": 0, "role": "user", "segments": [{"type": "text", "text": "What is here?"}]},
      {"id": 1, "role": "assistant", "segments": [{"type": "text", "text": "I look."}],
       "tool_uses": [{"id": "c1", "name": "list", "input": {"path": "docs"}}],
       "tool_results": [{"tool_use_id": "c1", "is_error": false, "content": "a.txt"}]}]}"""
    table = "CREATE TABLE threads (id TEXT PRIMARY KEY, summary TEXT, updated_at TEXT, data_type TEXT, data BLOB)"
    rows = [(id, "Lists", "2026-07-27T02:06:40Z", "json", data) for id, data in (("t1", thread), ("t2", older))]
    return create_database(table, [("INSERT INTO threads VALUES (?, ?, ?, ?, ?)", rows)])


def _task(place: str, **others: bytes) -> Sample:
    return {f"{place}/{name}": data for name, data in {**_CLINE, **others}.items()}


_CLINE_SESSION = {
    "1789_ab/1789_ab.json": b"""{"version": 1, "session_id": "1789_ab", "started_at": "2026-09-10T10:00:00.000Z", "model": "mock-1",
 "provider": "mock", "cwd": "/home/user/project", "prompt": "What is here?", "metadata": {"title": "Lists"}}""",
    "1789_ab/1789_ab.messages.json": b"""{"version": 1, "messages": [
 {"id": "m1", "role": "user", "ts": 1789034400000, "content": [
  {"type": "text", "text": "<user_input mode=\\"act\\">What is here?</user_input>"}]},
 {"id": "m2", "role": "assistant", "ts": 1789034402000, "content": [{"type": "thinking", "thinking": "Better look."},
  {"type": "tool_use", "id": "c1", "name": "read_files", "input": {"path": "docs"}}],
  "modelInfo": {"id": "mock-2", "provider": "mock"},
  "metrics": {"inputTokens": 5000, "outputTokens": 200, "cacheReadTokens": 4000, "cacheWriteTokens": 0, "cost": 0.01}},
 {"id": "m3", "role": "user", "ts": 1789034403000, "content": [{"type": "tool_result", "tool_use_id": "c1",
  "content": [{"query": "docs", "result": "a.txt", "success": true}]}]},
 {"id": "m4", "role": "assistant", "ts": 1789034405000, "content": [{"type": "text", "text": "One file."}]}]}""",
    "1789_ab/helper__1.messages.json": b"""{"messages": [
 {"id": "m1", "role": "user", "content": [{"type": "text", "text": "Count them."}]},
 {"id": "m2", "role": "assistant", "content": [{"type": "text", "text": "Three files."}]}]}""",
}
SAMPLES: dict[str, Mapping[str, Sample]] = {
    "cline-cli": {"session": _CLINE_SESSION},
    "cline": {
        "task": _task("tasks/1784908480000"),
        "without history": {"tasks/1784908480000/ui_messages.json": _CLINE["ui_messages.json"]},
        "written calls": {"tasks/1784908480001/api_conversation_history.json": _CLINE_WRITTEN},
    },
    "vscode-copilot": {
        "document": b'{"version": 3, "sessionId": "s0", "customTitle": "Lists", "requests": [' + _VSCODE_REQUEST + b"]}",
        "log": _VSCODE_LOG,
    },
    "cursor": {"transcript": _CURSOR},
    "cursor-ide": {"database": _cursor_database()},
    "kiro-ide": {"session": _KIRO_IDE, "chat": _KIRO_CHAT},
    "kiro-cli": {"session": _KIRO, "database": _kiro_database()},
    "zed": {"database": _zed_database()},
    "roo": {"task": {**_CLINE, "history_item.json": _ROO_ITEM}},
    "kilo-legacy": {"task": _task("tasks/5b1b7c5e-0000-4000-8000-000000000001")},
}
