"""A caller's request in a form that does not depend on the dialect, and the validation of the request's fields."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from moot.convert.writer import read_arguments
from moot.errors import UsageError
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message, Part, Role, text_part
from moot.types.model import Effort, ModelSettings
from moot.types.provider import ToolDefinition

OUTPUT = "data-tool-output"
"""Type of a user part that contains the output of a call, for requests that do not repeat the answer with the call."""


@dataclass(frozen=True, slots=True)
class CallerRequest:
    model: str
    messages: tuple[Message, ...]
    """All messages that the caller sent, oldest first, without ids.
    The outputs of calls are in the same assistant messages as the calls.
    """
    system: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    """The caller's own tools, which it runs itself."""
    settings: ModelSettings = field(default_factory=ModelSettings)
    stream: bool = False
    stream_usage: bool = False
    """True to send the usage at the end of a chat completions stream."""
    after: str = ""
    """Id of the earlier answer that `messages` continue; empty if `messages` are the whole history."""
    conversation: str = ""
    """The caller's name for the conversation to use; empty to find the conversation by content or create one."""


def invalid_field(where: str, words: str, *, fix: str = "") -> UsageError:
    """Return the error for an invalid field at the path `where`."""
    return UsageError(f"{where}: {words}" if where else words, fix=fix)


class Fields:
    """A JSON object in the request. Null fields are treated as omitted."""

    def __init__(self, value: Json, where: str = "") -> None:
        if not isinstance(value, dict):
            raise invalid_field(where or "the body", f"Expected an object, got {_kind(value)}.")
        self.value: JsonObject = value
        self.where = where

    def path(self, name: str) -> str:
        """Return the path of a field, for errors."""
        return f"{self.where}.{name}" if self.where else name

    def text(self, name: str, default: str = "") -> str:
        value = self.value.get(name)
        if value is None:
            return default
        if not isinstance(value, str):
            raise invalid_field(self.path(name), f"Expected a string, got {_kind(value)}.")
        return value

    def needed(self, name: str) -> str:
        """Return the string in a field. Raise UsageError if it is missing or empty."""
        if self.value.get(name) is None:
            raise invalid_field(self.path(name), "This field is missing.")
        text = self.text(name)
        if not text:
            raise invalid_field(self.path(name), "The text is empty.")
        return text

    def number(self, name: str, low: float, high: float) -> float | None:
        value = self.value.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise invalid_field(self.path(name), f"Expected a number, got {_kind(value)}.")
        if not low <= value <= high:
            raise invalid_field(self.path(name), f"{value} is not between {low:g} and {high:g}.")
        return float(value)

    def count(self, name: str) -> int | None:
        """Return the positive integer in a field."""
        value = self.value.get(name)
        if value is None:
            return None
        if type(value) is not int or not 1 <= value <= 1 << 31:
            raise invalid_field(self.path(name), "Expected a positive integer.")
        return value

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.value.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise invalid_field(self.path(name), f"Expected true or false, got {_kind(value)}.")
        return value

    def fields(self, name: str) -> Fields:
        """Return the object in a field, or an empty object if the field is omitted."""
        value = self.value.get(name)
        return Fields({} if value is None else value, self.path(name))

    def items(self, name: str) -> list[Json]:
        value = self.value.get(name)
        if value is None:
            return []
        if not isinstance(value, list):
            raise invalid_field(self.path(name), f"Expected a list, got {_kind(value)}.")
        return value

    def objects(self, name: str) -> Iterator[Fields]:
        """Yield the objects of the list in a field."""
        for at, item in enumerate(self.items(name)):
            yield Fields(item, f"{self.path(name)}[{at}]")

    def texts(self, name: str) -> tuple[str, ...]:
        """Return the list of strings in a field. A single string counts as a list with one item."""
        value = self.value.get(name)
        found = [value] if isinstance(value, str) else self.items(name)
        if any(not isinstance(item, str) for item in found):
            raise invalid_field(self.path(name), "Expected strings.")
        return tuple(str(item) for item in found)

    def one_of(self, name: str, known: Sequence[str], default: str = "") -> str:
        value = self.text(name, default)
        if value and value not in known:
            raise invalid_field(self.path(name), f"{value!r} is not one of {', '.join(known)}.")
        return value

    def refuse(self, name: str, why: str = "This field is not supported.") -> None:
        """Raise UsageError if the field has a value, because the value would otherwise be ignored."""
        if self.value.get(name) not in (None, False, [], {}):
            raise invalid_field(self.path(name), why)


def _kind(value: Json) -> str:
    kinds: dict[type[object], str] = {dict: "an object", list: "a list", str: "a string", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")


EFFORTS: dict[str, Effort] = {
    "none": "none",
    "minimal": "low",
    "low": "low",
    "medium": "medium",
    "high": "high",
    "xhigh": "max",
    "max": "max",
}
"""moot's reasoning effort for each value in callers' dialects."""

_NAME = re.compile(r"[a-zA-Z0-9_.:-]{1,128}")
_DATA = re.compile(r"data:[\w.+-]+/[\w.+*-]+(;[\w=.+-]+)*;base64,", re.ASCII)


class Drafts:
    """The messages read so far, oldest first."""

    def __init__(self, *, after: bool = False) -> None:
        self._after = after
        """True if the request specifies the id of the answer that it continues. Then it may contain outputs of that answer's calls."""
        self._system: list[str] = []
        self._drafts: list[tuple[Role, list[Part]]] = []
        self._calls: dict[str, Part] = {}

    def request(
        self,
        fields: Fields,
        tool: Callable[[Fields], ToolDefinition],
        settings: ModelSettings,
        *,
        stream_usage: bool = True,
        after: str = "",
        conversation: str = "",
    ) -> CallerRequest:
        """Return the request with the messages read so far. `tool` parses one item of the request's `tools`."""
        return CallerRequest(
            fields.needed("model"),
            tuple(Message("", role, tuple(parts)) for role, parts in self._drafts if parts),
            "\n\n".join(self._system),
            tuple(tool(item) for item in fields.objects("tools")),
            settings,
            fields.flag("stream"),
            stream_usage,
            after,
            conversation,
        )

    def instruct(self, text: str) -> None:
        """Add a system message. If no other message precedes it, it becomes the system prompt. Otherwise it keeps its position."""
        if not text:
            return
        if self._drafts:
            self._drafts.append(("system", [text_part(text)]))
        else:
            self._system.append(text)

    def say(self, parts: Sequence[Part]) -> None:
        """Add a user message."""
        if parts:
            self._drafts.append(("user", list(parts)))

    def answer(self, parts: Sequence[Part] = (), *, join: bool = False) -> None:
        """Add an assistant message. If `join` is True and no call in the last
        assistant message has an output yet, extend that message instead.
        """
        role, known = self._drafts[-1] if self._drafts else ("user", [])
        if not join or role != "assistant" or any("output" in part or "errorText" in part for part in known):
            self._drafts.append(("assistant", []))
        self._drafts[-1][1].extend(parts)

    def call(self, id: str, name: str, arguments: Json, where: str) -> None:
        """Add a call to the last assistant message; `arguments` are an object or JSON text."""
        if not id:
            raise invalid_field(where, "The call has no id.")
        if isinstance(arguments, str):
            with suppress(ValueError):  # otherwise the model's output is kept unchanged
                arguments = read_arguments(arguments)
        elif not isinstance(arguments, dict):
            arguments = {}
        part: Part = {"type": f"tool-{tool_name_of(name, where)}", "toolCallId": id, "state": "input-available", "input": arguments}
        self._drafts[-1][1].append(part)
        self._calls[id] = part

    def output(self, id: str, output: Json, where: str, *, error: bool = False) -> None:
        """Add the output of a call."""
        call = self._calls.get(id)
        fields: JsonObject = {"errorText": _words(output)} if error else {"output": output}
        if call is not None:
            call |= {"state": "output-error" if error else "output-available", **fields}
        elif self._after:
            self.say([{"type": OUTPUT, "data": {"toolCallId": id, **fields}}])
        else:
            raise invalid_field(where, f"No call with the id {id!r} precedes this output.")


def tool_name_of(name: str, where: str) -> str:
    """Return a tool's name. Raise UsageError if it is not valid."""
    if _NAME.fullmatch(name) is None:
        raise invalid_field(where, f"{name[:80]!r} is not a valid tool name. Use at most 128 letters, digits, _ and -.")
    return name


def file_part(url: str, where: str, *, media_type: str = "", name: str = "", detail: str = "") -> Part:
    """Return a file as a part. Only `data:` and http(s) URLs are accepted, because other URLs would refer to files on this machine."""
    if url.startswith("data:"):
        if _DATA.match(url) is None:
            raise invalid_field(where, "Expected data:MEDIA/TYPE;base64,….")
        media_type = media_type or url[5:].partition(";")[0]
    elif not url.startswith(("https://", "http://")):
        raise invalid_field(where, "Expected a data: URL in base64, or an http(s) URL.")
    part: Part = {"type": "file", "mediaType": media_type or "application/octet-stream", "url": url}
    if name:
        part["filename"] = name
    if detail:
        part["detail"] = detail
    return part


def tool_of(tool: Fields, schema: str) -> ToolDefinition:
    """Return the definition of a caller's tool. `schema` is the name of the field with the schema of its arguments."""
    found = tool.fields(schema).value or {"type": "object", "properties": {}}
    return ToolDefinition(tool_name_of(tool.needed("name"), tool.path("name")), tool.text("description"), found)


def content_of(fields: Fields, name: str, piece: Callable[[Fields], Part]) -> list[Part]:
    """Return the parts of a content field, which contains text or a list of pieces."""
    if isinstance(fields.value.get(name), list):
        return [piece(item) for item in fields.objects(name)]
    text = fields.text(name)
    return [text_part(text)] if text else []


def effort_of(fields: Fields, name: str) -> Effort | None:
    """Return moot's reasoning effort for the value of a field, or None if the field is omitted."""
    word = fields.one_of(name, tuple(EFFORTS))
    return EFFORTS[word] if word else None


def output_of(parts: Sequence[Part], separator: str = "") -> Json:
    """Return a call's output: the text, or text and files in the format of moot's own tool outputs."""
    if all(part["type"] == "text" for part in parts):
        return separator.join(str(part["text"]) for part in parts)
    return {"type": "content", "value": [*parts]}


def _words(output: Json) -> str:
    if isinstance(output, str):
        return output
    value = output.get("value") if isinstance(output, dict) else None
    pieces = [piece for piece in value if isinstance(piece, dict)] if isinstance(value, list) else []
    return "\n".join(str(piece.get("text", "")) for piece in pieces if piece.get("type") == "text") or "failed"
