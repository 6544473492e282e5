"""Examples of the OpenAPI description. Request bodies are listed here, responses are made from their schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from moot.types.canonical import Json, JsonObject

ID = "01990c5e-7a30-7c41-9d2e-5b8f3a6c1d04"
DIGEST = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
TIME = 1767225600000
MODEL = "large@example"

BODIES: Mapping[str, Json] = {
    "AcceptIn": {"digests": [DIGEST]},
    "AgentFieldsIn": {"description": "Reviews changes", "tools": ["read_file", "search_files"]},
    "AgentIn": {"name": "reviewer", "description": "Reviews changes", "instructions": "Look for bugs only.", "model": MODEL},
    "AnswerIn": {"approved": True, "reason": "The folder is a copy."},
    "CallIn": {"tool": "shell", "subject": "npm test"},
    "ChatIn": {"id": "chat-1", "message": {"role": "user", "parts": [{"type": "text", "text": "What is in this folder?"}]}},
    "ChangeIn": {"operation": "conversations.rename", "arguments": {"id": ID, "title": "Release notes", "source": "user"}},
    "CommandIn": {"argument": "the decisions", "conversation": ID},
    "CommandTextIn": {"prompt": "Explain $1 in plain words."},
    "CommitIn": {"message": "Fix the parser"},
    "ConfigIn": {"values": {"models.main": MODEL}},
    "ContinueIn": {},
    "ConversationChange": {"title": "Release notes"},
    "ConversationIn": {"title": "Release notes", "agent": "default"},
    "DeviceIn": {
        "endpoint": "https://push.example.com/send/SECRET",
        "p256dh": "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
        "auth": "BTBZMqHH6r4Tts7J_aSIgg",
        "name": "Firefox on Android",
    },
    "ForkIn": {"message": ID},
    "HeadIn": {"message": ID},
    "ImportIn": {"path": "/home/me/chats.json"},
    "JobIn": {"name": "report", "prompt": "Summarize yesterday's commits.", "cron": "0 9 * * 1-5", "tz": "Europe/Paris"},
    "LoginIn": {"token": "TOKEN"},
    "McpDefinitionIn": {"url": "https://example.com/mcp", "headers": {"Authorization": "Bearer ${DOCS_KEY}"}},
    "McpServerIn": {"enabled": True},
    "MemoryTextIn": {"text": "Answer in French.\n"},
    "ModeIn": {"mode": "edits"},
    "NewCommandIn": {"name": "explain", "description": "Explain a file", "argument": "FILE", "prompt": "Explain $1."},
    "NewMcpServerIn": {"name": "files", "command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/home/me/notes"]},
    "NewSkillIn": {"name": "release-notes", "description": "Write release notes.", "body": "List what users notice."},
    "PartsIn": {"parts": [{"type": "text", "text": "What is in this folder?"}]},
    "PathsIn": {"paths": ["src/parser.py"]},
    "PluginDigestIn": {"digest": DIGEST},
    "PluginIn": {"enabled": True},
    "PluginInstallIn": {"source": "https://github.com/example/plugins", "plugin": "review", "digest": DIGEST},
    "PluginSourceIn": {"source": "https://github.com/example/plugins", "plugin": "review"},
    "ProjectChange": {"description": "The web shop"},
    "ProjectFileIn": {"text": "print('hello')\n"},
    "ProjectIn": {"name": "shop", "root_path": "/home/me/shop"},
    "PromptIn": {"text": "What is in this folder?"},
    "ProviderIn": {"api_key": "KEY", "base_url": "https://example.com/v1", "model": "large", "main": True},
    "ReadIn": {"operation": "conversations.get", "arguments": {"reference": ID}},
    "RedoIn": {"dry_run": True},
    "RemotePromptIn": {"parts": [{"type": "text", "text": "What is in this folder?"}], "settings": {"effort": "low"}},
    "RuleIn": {"tool": "shell", "action": "allow", "match": "npm test"},
    "SearchEngineIn": {"provider": "custom", "base_url": "https://search.example.com/?q={query}"},
    "ShareIn": {"conversation": ID, "expires_in": 604800},
    "SkillDigestIn": {"digest": DIGEST},
    "SkillIn": {"use": "enabled"},
    "SkillInstallIn": {"source": "https://github.com/example/skills", "name": "release-notes", "digest": DIGEST},
    "SkillSourceIn": {"source": "https://github.com/example/skills"},
    "SkillTextIn": {"description": "Write release notes.", "body": "List what users notice.", "digest": DIGEST},
    "SourceIn": {"path": "/home/me/notes", "project": "shop"},
    "SummaryIn": {"summary": "We chose SQLite. Open: the migration of old files."},
    "TaskChangeIn": {"status": "done"},
    "TaskCommentIn": {"text": "Also affects Windows."},
    "TaskIn": {"title": "Fix the parser", "description": "It loses the last line.", "tags": ["bug"]},
    "TestIn": {"model": "small"},
    "TokenIn": {"name": "laptop", "scopes": ["chat"], "expires_in": 2592000},
    "UndoIn": {"part": "files", "dry_run": True},
}
"""An example for the schema of each request body."""

VALUES: Mapping[str, Json] = {
    "DeviceOut.error": "",
    "DeviceOut.failures": 0,
    "DeviceOut.name": "Firefox on Android",
    "DeviceOut.service": "push.example.com",
    "FaultOut.message": "Unknown key limits.stpes. Did you mean limits.steps?",
    "agent": "default",
    "at": TIME,
    "cache_read": 11_000,
    "cache_write": 0,
    "client_id": "chat-1",
    "code": "not_found",
    "command": "npm test",
    "compact_at": 100_000,
    "content_type": "text/plain",
    "context": 11_800,
    "cost": 4_120_000,
    "created_at": TIME,
    "cron": "0 9 * * 1-5",
    "description": "The web shop",
    "detail": "Conversation not found.",
    "digest": DIGEST,
    "directory": "/home/me/shop",
    "ended_at": TIME + 4200,
    "file": "src/parser.py",
    "filename": "notes.txt",
    "first_ms": 900,
    "first_seq": 1,
    "format": "recording",
    "host": "",
    "input": 12_300,
    "last_seq": 42,
    "media_type": "text/plain",
    "message_count": 4,
    "messages": 4,
    "mode": "ask",
    "model": MODEL,
    "ms": 4_200,
    "name": "shop",
    "no": 17,
    "output": 340,
    "owner": "local",
    "path": "src/parser.py",
    "prompt": "What is in this folder?",
    "provider": "example",
    "root_path": "/home/me/shop",
    "sha256": DIGEST,
    "source": "/home/me/notes",
    "size": 2_048,
    "started_at": TIME,
    "status": "finished",
    "text": "The folder contains a parser and its tests.",
    "title": "Release notes",
    "tool": "shell",
    "type": "text",
    "tz": "Europe/Paris",
    "updated_at": TIME + 4200,
    "url": "https://example.com",
    "version": "1.0.0",
}
"""Values for fields with these names, some of one schema only. Other strings are ids if their name ends with `id` or is in `_IDS`."""

_IDS = frozenset({"conversation", "run", "parent", "parent_run", "project", "approval", "head", "message", "user"})

STREAMED = """\
id: 41.0
data: {"type":"text-delta","id":"0","delta":"The folder contains"}

id: 42.0
data: {"type":"finish"}

data: [DONE]

"""
"""The end of a stream of UI message chunks."""

EVENTS = """\
id: 42
data: {"seq":42,"kind":"chunks","chunks":[{"type":"finish"}]}

"""
"""The end of a stream of events."""

PARAMETERS: Mapping[str, Json] = {
    "chat_id": "chat-1",
    "format": "md",
    "match": "npm test",
    "model_id": "agent:default",
    "path": "src/parser.py",
    "project_id": "default",
    "q": "parser",
    "response_id": f"resp_{ID}",
    "secret": "SECRET",
    "sha256": DIGEST,
    "speed": 2.0,
    "task": "1",
    "tool": "shell",
    "uri": "file:///notes.txt",
}
"""Values for path parameters, and for query parameters that are required. All others are ids."""

NAMES: Mapping[str, str] = {
    "/api/agents/": "reviewer",
    "/api/commands/": "review",
    "/api/knowledge/": "notes.pdf",
    "/api/mcp/": "files",
    "/api/memory/": "MEMORY.md",
    "/api/plugins/": "review",
    "/api/projects/": "fix-parser",
    "/api/providers/": "office",
    "/api/skills/": "release-notes",
    "/api/tools/": "shell",
}
"""Values for the path parameter `name`, by the beginning of the path. It is the name of a cron job or webhook in all others."""


def add_examples(document: JsonObject) -> None:
    """Add an example to each required parameter, request body and JSON response of an OpenAPI description."""
    schemas = _object(_object(document["components"])["schemas"])
    for path, operations in _object(document["paths"]).items():
        for operation in map(_object, _object(operations).values()):
            for parameter in map(_object, cast("list[Json]", operation.get("parameters", []))):
                if parameter.get("required") is True:
                    named = next((name for prefix, name in NAMES.items() if path.startswith(prefix)), "report")
                    parameter["example"] = named if parameter["name"] == "name" else PARAMETERS.get(str(parameter["name"]), ID)
            contents = [_object(operation.get("requestBody", {}))]
            contents += [_object(answer) for status, answer in _object(operation["responses"]).items() if status.startswith("2")]
            for content in (_object(one.get("content", {})).get("application/json") for one in contents):
                if isinstance(content, dict) and "example" not in content:
                    content["example"] = _example(schemas, _object(content["schema"]), "")


def _example(schemas: JsonObject, schema: JsonObject, name: str, within: tuple[str, ...] = ()) -> Json:
    """Return a value that is valid for the schema. `name` is the field that holds it, `within` the schemas that contain it."""
    if isinstance(reference := schema.get("$ref"), str):
        target = reference.rpartition("/")[2]
        if target in BODIES:
            return BODIES[target]
        return {} if target in within else _example(schemas, _object(schemas[target]), name, (*within, target))
    if schema.get("title") in BODIES:
        return BODIES[str(schema["title"])]
    if "const" in schema:
        return schema["const"]
    if isinstance(values := schema.get("enum"), list):
        return VALUES[name] if VALUES.get(name) in values else values[0]
    if isinstance(choices := schema.get("anyOf", schema.get("oneOf")), list):
        kinds = [_object(choice) for choice in choices]
        is_recursive = any(str(kind.get("$ref", "")).rpartition("/")[2] in within for kind in kinds)
        if is_recursive or ({"type": "null"} in kinds and name not in VALUES and "$ref" not in kinds[0]):
            return None
        return _example(schemas, kinds[0], name, within)
    return _of_type(schemas, schema, name, within)


def _of_type(schemas: JsonObject, schema: JsonObject, name: str, within: tuple[str, ...]) -> Json:
    match schema.get("type"):
        case "object":
            fields = _object(schema.get("properties", {}))
            return {field: _example(schemas, _object(of), field, within) for field, of in fields.items()}
        case "array":
            if isinstance(places := schema.get("prefixItems"), list):
                return [_example(schemas, _object(place), name, within) for place in places]
            items = _object(schema.get("items", {}))
            is_recursive = str(items.get("$ref", "")).rpartition("/")[2] in within
            return [] if is_recursive else [_example(schemas, items, name.removesuffix("s"), within)]
        case "string":
            value = VALUES.get(f"{within[-1]}.{name}", VALUES.get(name)) if within else VALUES.get(name)
            return value if isinstance(value, str) else ID if name in _IDS or name.endswith("id") else "text"
        case "integer" | "number":
            value = VALUES.get(name)
            return value if isinstance(value, int) else TIME if name.endswith("_at") else 1
        case "boolean":
            return False
        case _:
            return None


def _object(value: Json) -> JsonObject:
    assert isinstance(value, dict), value
    return value
