"""A scripted provider with two tools, to try moot without a key, a download or a network."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Sequence

from moot.config.settings import ProviderSettings
from moot.convert.vendor import as_list, as_object
from moot.errors import UsageError
from moot.types.canonical import Json, JsonObject, dumps, loads_object
from moot.types.event import Raw
from moot.types.model import Model, ModelId, Price
from moot.types.provider import Facts, ModelRequest

NOTE = "demo provider: scripted answer, not a model"

_FILE = re.compile(r"[`'\"]([^`'\"\s]+)[`'\"]|(?<![\w/.:])((?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,7})(?![\w/])")
_FOLDER = re.compile(r"\b(files|folder|directory|list|ls)\b", re.IGNORECASE)
_QUOTED = 300
"""Maximum number of characters that an answer repeats of a prompt or tool output."""
_PIECE = 12


class Demo:
    """A provider that always gives the same answer to the same request. It reads the file that a prompt mentions, or lists the folder."""

    facts = Facts("demo", needs_key=False, priority=990, main="demo", free=True)

    def __init__(self, settings: ProviderSettings) -> None:
        self.name = settings.name or self.facts.name
        self.dialect = self.facts.dialect
        self.quirks = self.facts.quirks

    async def stream(self, request: ModelRequest) -> AsyncGenerator[tuple[Raw, ...], None]:
        """Return the answer in the openai-chat format, one frame at a time."""
        try:
            body = loads_object(request.body)
        except ValueError:
            body = {}
        for frame in _frames(_delta(body)):
            yield (frame,)

    async def models(self) -> Sequence[Model]:
        """Return the demo model."""
        return [self.describe("demo")]

    def describe(self, name: str) -> Model:
        """Return the demo model. Raise UsageError for any other name."""
        if name != "demo":
            raise UsageError(f"The provider {self.name!r} has no model {name!r}. Did you mean 'demo'?")
        free = Price(0, 0, 0, 0)
        return Model(ModelId(name, self.name), name, context=100_000, price=free, note=NOTE)

    async def close(self) -> None:
        """Do nothing: there is nothing to close."""


def _delta(body: JsonObject) -> JsonObject:
    """Return the answer's delta: a tool call, a summary of tool outputs, or a greeting."""
    prompt, outputs = _last(body)
    if outputs:
        lines = ["This is moot's demo provider, which is not a model: it can only repeat the output of a tool."]
        for text in outputs:
            lines.append(f"The tool returned {len(text.splitlines())} lines, {len(text)} characters. They start with:\n\n{_cut(text)}")
        return {"content": "\n\n".join(lines)}
    offered, file = _offered(body), _FILE.search(prompt)
    if file and "read_file" in offered:
        return _tool_call("read_file", {offered["read_file"]: file[1] or file[2]})
    if _FOLDER.search(prompt) and "list_files" in offered:
        return _tool_call("list_files", {offered["list_files"]: "."})
    echo = f"You said: {_cut(prompt)}\n\n" if prompt else ""
    more = "Mention a file, or ask for the files here, to see how tool calls look; or choose a model with: moot models list."
    return {"content": f"This is moot's demo provider, which is not a model: it understands nothing. {echo}{more}"}


def _last(body: JsonObject) -> tuple[str, list[str]]:
    """Return the last user text, and the tool outputs after it."""
    outputs: list[str] = []
    for message in reversed(_objects(body.get("messages"))):
        match message.get("role"):
            case "tool":
                outputs.append(_text(message.get("content")))
            case "user":
                return _text(message.get("content")), outputs[::-1]
            case _:
                continue
    return "", outputs[::-1]


def _tool_call(name: str, arguments: JsonObject) -> JsonObject:
    function: JsonObject = {"name": name, "arguments": dumps(arguments).decode()}
    return {"tool_calls": [{"index": 0, "id": f"demo_{name}", "type": "function", "function": function}]}


def _offered(body: JsonObject) -> dict[str, str]:
    """Return the name of each offered tool's path argument, by tool name."""
    offered: dict[str, str] = {}
    for tool in _objects(body.get("tools")):
        function = as_object(tool.get("function"))
        if isinstance(name := function.get("name"), str):
            names = list(as_object(as_object(function.get("parameters")).get("properties")))
            offered[name] = next((name for name in names if "path" in name), names[0] if names else "path")
    return offered


def _objects(value: Json) -> list[JsonObject]:
    return [item for item in as_list(value) if isinstance(item, dict)]


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(text for part in _objects(content) if isinstance(text := part.get("text"), str))


def _cut(text: str) -> str:
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"


def _frames(delta: JsonObject) -> list[Raw]:
    content = delta.get("content")
    deltas: list[JsonObject] = [{"role": "assistant", "content": ""}]
    if isinstance(content, str):
        deltas.extend({"content": content[start : start + _PIECE]} for start in range(0, len(content), _PIECE))
    else:
        deltas.append(delta)
    chunks = [_chunk({"index": 0, "delta": one, "finish_reason": None}) for one in deltas]
    chunks.append(_chunk({"index": 0, "delta": {}, "finish_reason": "stop" if isinstance(content, str) else "tool_calls"}))
    return [b"data: " + dumps(chunk) + b"\n\n" for chunk in chunks] + [b"data: [DONE]\n\n"]


def _chunk(choice: JsonObject) -> JsonObject:
    return {"id": "demo", "object": "chat.completion.chunk", "created": 0, "model": "demo", "choices": [choice]}
