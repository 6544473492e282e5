"""Samples of chat applications' files and databases."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from moot.formats.apps.tai.format import _MESSAGE, _SCHEMA, _SESSION  # pyright: ignore[reportPrivateUsage]
from moot.formats.kit.database import create_database
from moot.types.format import Sample

CHATGPT = b"""[{"title": "Lists", "create_time": 1700000000.5, "update_time": 1700000060.0, "mapping": {
  "n0": {"id": "n0", "message": null, "parent": null, "children": ["n1"]},
  "n1": {"id": "n1", "message": {"id": "n1", "author": {"role": "user"}, "create_time": 1700000001.0,
    "content": {"content_type": "text", "parts": ["What is here?"]}}, "parent": "n0", "children": ["n2", "n3"]},
  "n2": {"id": "n2", "message": {"id": "n2", "author": {"role": "assistant"}, "recipient": "all",
    "content": {"content_type": "text", "parts": ["One file."]}, "metadata": {"model_slug": "gpt-4o"}}, "parent": "n1", "children": []},
  "n3": {"id": "n3", "message": {"id": "n3", "author": {"role": "assistant"}, "recipient": "all",
    "content": {"content_type": "text", "parts": ["A file."]}, "metadata": {"model_slug": "gpt-4o"}}, "parent": "n1", "children": []}
}, "current_node": "n3", "conversation_id": "c1"}]
"""

CLAUDE_AI = b"""[{"uuid": "c1", "name": "Lists", "created_at": "2025-11-21T20:31:32.637Z", "chat_messages": [
  {"uuid": "m1", "sender": "human", "text": "What is here?", "content": [{"type": "text", "text": "What is here?"}],
   "created_at": "2025-11-21T20:31:32.637Z", "attachments": [{"file_name": "a.txt", "extracted_content": "one"}], "files": []},
  {"uuid": "m2", "sender": "assistant", "text": "One file.", "created_at": "2025-11-21T20:31:40.637Z", "content": [
    {"type": "thinking", "thinking": "I look."}, {"type": "tool_use", "name": "ls", "input": {}},
    {"type": "tool_result", "name": "ls", "content": [{"type": "text", "text": "a.txt"}]}, {"type": "text", "text": "One file."}]}
]}]
"""

OPEN_WEBUI_CHAT = b"""{"title": "Lists", "history": {"currentId": "m2", "messages": {
  "m1": {"id": "m1", "parentId": null, "childrenIds": ["m2"], "role": "user", "content": "What is here?", "timestamp": 1700000001},
  "m2": {"id": "m2", "parentId": "m1", "childrenIds": [], "role": "assistant", "model": "llama3", "timestamp": 1700000002,
    "content": "<details type=\\"reasoning\\" done=\\"true\\">\\n<summary>Thought</summary>\\n> I look.\\n</details>\\nOne file."}
}}}"""


def _open_webui_database(chat: tuple[str | int, ...]) -> bytes:
    """A small one for testing a reader."""
    schema = "CREATE TABLE chat (id TEXT PRIMARY KEY, user_id TEXT, title TEXT, chat JSON, created_at BIGINT, updated_at BIGINT)"
    return create_database(schema, [("INSERT INTO chat VALUES (?, ?, ?, ?, ?, ?)", [chat])])


LMSTUDIO = b"""{"name": "Lists", "createdAt": 1700000000000, "lastUsedModel": {"identifier": "qwen3"}, "messages": [
  {"currentlySelected": 0, "versions": [{"type": "singleStep", "role": "user", "content": [{"type": "text", "text": "What is here?"}]}]},
  {"currentlySelected": 1, "versions": [
    {"type": "multiStep", "role": "assistant", "steps": [{"type": "contentBlock", "content": [{"type": "text", "text": "A file."}]}]},
    {"type": "multiStep", "role": "assistant", "steps": [
      {"type": "contentBlock", "style": {"type": "thinking"}, "content": [{"type": "text", "text": "I look."}]},
      {"type": "contentBlock", "content": [{"type": "text", "text": "One file."}], "genInfo": {"identifier": "qwen3",
        "stats": {"stopReason": "eosFound", "promptTokensCount": 20, "predictedTokensCount": 5, "totalTimeSec": 1.5}}}]}]}
]}
"""


def _ollama_database() -> bytes:
    """A small one for testing a reader."""
    schema = """
        CREATE TABLE chats (id TEXT PRIMARY KEY, title TEXT, created_at TIMESTAMP);
        CREATE TABLE messages (id INTEGER PRIMARY KEY, chat_id TEXT, role TEXT, content TEXT, thinking TEXT, model_name TEXT,
            created_at TIMESTAMP, tool_result TEXT);
    """
    message = "INSERT INTO messages (chat_id, role, content, model_name, created_at) VALUES ('c1', ?, ?, ?, '2025-11-21 20:31:32')"
    told = [("user", "What is here?", None), ("assistant", "One file.", "qwen3")]
    return create_database(schema, [("INSERT INTO chats VALUES (?, ?, ?)", [("c1", "Lists", "2025-11-21 20:31:32")]), (message, told)])


MTM = b"""{
  "metadata": {
    "uuid": "7b1f6d0e-52c4-4a5c-9c1e-1d6d8f8f0a01",
    "name": "Milk and eggs",
    "created_at": "2026-08-06T19:06:15.000Z",
    "parent_agent_id": null,
    "allowed_uris": ["file:///home/ada/notes"],
    "model": "some-model",
    "provider": "mine",
    "contextItems": [],
    "activeRules": ["default.md"],
    "agentType": "implementer"
  },
  "context": [
    {
      "role": "user",
      "content": "What is in @[notes.md]? ![image](data:image/png;base64,iVBORw0KGgo=)",
      "metadata": {
        "last_ghost_block": {
          "files": [{"key": "notes.md", "version": 1, "content": "milk\\neggs"}, {"key": "old.md", "version": 2, "content": null}],
          "tools": [{"key": "system_info", "argsText": "{}", "content": "Linux"}]
        }
      }
    },
    {
      "role": "assistant",
      "content": null,
      "reasoning_content": "I should look.",
      "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{\\"uri\\":\\"notes.md\\"}"}}]
    },
    {"role": "tool", "tool_call_id": "call_1", "name": "read", "content": "milk\\neggs"},
    {"role": "assistant", "content": "Milk and eggs."}
  ]
}"""

MTM_1 = b"""{
  "formatVersion": 1,
  "metadata": {
    "uuid": "7b1f6d0e-52c4-4a5c-9c1e-1d6d8f8f0a02",
    "name": "Milk and eggs",
    "created_at": "2026-08-06T19:06:15.000Z",
    "parent_agent_id": "7b1f6d0e-52c4-4a5c-9c1e-1d6d8f8f0a01",
    "allowed_uris": []
  },
  "context": [
    {"role": "user", "content": "What is in the notes?", "timestamp": 1786043175000,
     "mutsumi": {"ghostBlock": {"files": [{"key": "notes.md", "version": 1, "content": "milk"}], "tools": []}}},
    {
      "role": "assistant",
      "content": [
        {"type": "thinking", "thinking": "I should look.", "thinkingSignature": "c2lnbmVk"},
        {"type": "toolCall", "id": "call_1", "name": "read", "arguments": {"uri": "notes.md"}}
      ],
      "api": "anthropic-messages", "provider": "anthropic", "model": "some-model",
      "usage": {"input": 10, "output": 5, "cacheRead": 3, "cacheWrite": 0, "totalTokens": 18, "cost": {"total": 0.0012}},
      "stopReason": "toolUse", "timestamp": 1786043176000
    },
    {"role": "toolResult", "toolCallId": "call_1", "toolName": "read", "content": [{"type": "text", "text": "milk"}], "isError": false},
    {
      "role": "assistant",
      "content": [{"type": "text", "text": "Milk."}],
      "api": "anthropic-messages", "provider": "anthropic", "model": "some-model", "stopReason": "stop", "timestamp": 1786043177000
    }
  ],
  "notes": [{"beforeUserIndex": 0, "markdown": "# Shopping"}]
}"""

CLAI = b"""{
  "created": "2026-08-18T05:12:18.123456789+02:00",
  "id": "what_is_in_the",
  "profile": "cody",
  "origin_dir": "/home/ada/notes",
  "messages": [
    {"content": "You are an assistant for a CLI tool.", "role": "system"},
    {"content": "What is in the notes?", "role": "user"},
    {
      "content": "",
      "reasoning_content": "I should look.",
      "role": "assistant",
      "tool_calls": [
        {"id": "call_1", "name": "cat", "type": "function", "inputs": {"file": "notes.md"}, "function": {"name": "cat", "arguments": "{}"}}
      ]
    },
    {"content": "milk\\neggs", "role": "tool", "tool_call_id": "call_1"},
    {"content": "Milk and eggs.", "role": "system"}
  ],
  "queries": [
    {"created_at": "2026-08-18T05:12:25Z", "cost_usd": 0.00123, "current_index": 1, "model": "or:some/model",
     "usage": {"prompt_tokens": 812, "completion_tokens": 31, "total_tokens": 843,
       "prompt_tokens_details": {"cached_tokens": 512, "audio_tokens": 0},
       "completion_tokens_details": {"reasoning_tokens": 9, "audio_tokens": 0}}}
  ]
}
"""


@lru_cache
def tai_database() -> bytes:
    """A session as TAI writes it."""
    id, at = "0b0e4f4e-0d4b-4c53-9a63-5c7f7a3f1c11", "2026-02-20 09:00:00"
    lines = [
        (id, "user", "What is in notes.md?", None, None, at),
        (id, "assistant", None, '[{"id":"call_1","name":"read","arguments":{"path":"notes.md"}}]', None, at),
        (id, "tool", "milk\neggs", None, "call_1", at),
        (id, "assistant", "Milk and eggs.", None, None, at),
    ]
    return create_database(_SCHEMA, [(_SESSION, [(id, "discord:4711", "devstral-small-2:latest", "ollama", at, at)]), (_MESSAGE, lines)])


_OPEN_WEBUI_ROW = ("c1", "u1", "Lists", OPEN_WEBUI_CHAT.decode(), 1700000000, 1700000060)

TAKEOUT = b"""[
 {"header": "Gemini Apps", "title": "Prompted What is here?", "time": "2026-07-22T14:08:43.000Z", "products": ["Gemini Apps"],
  "safeHtmlItem": [{"html": "<p>One <b>file</b>.</p>"}]},
 {"header": "Gemini Apps", "title": "Gave feedback: Good response", "time": "2026-07-22T14:07:43.000Z", "products": ["Gemini Apps"]}
]
"""

SAMPLES: dict[str, Mapping[str, Sample]] = {
    "chatgpt": {"conversations": CHATGPT},
    "claude-ai": {"conversations": CLAUDE_AI},
    "open-webui": (
        {
            "export": b'[{"id": "c1", "title": "Lists", "archived": false, "chat": ' + OPEN_WEBUI_CHAT + b"}]\n",
            "database": _open_webui_database(_OPEN_WEBUI_ROW),
        }
    ),
    "lmstudio": {"conversation": LMSTUDIO},
    "ollama": {"database": _ollama_database()},
    "mtm": {"notebook": MTM},
    "mtm-1": {"notebook": MTM_1},
    "clai": {"chat": CLAI},
    "tai": {"sessions": tai_database()},
    "takeout": {"activity": TAKEOUT},
}
