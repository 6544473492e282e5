"""Questions that a server asks a person during a call (elicitation): a form of simple fields, or an address to open."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from moot.errors import UsageError
from moot.guard.hidden import spelled_out
from moot.guard.json_schema import find_problem
from moot.types.canonical import Json, JsonObject
from moot.types.mcp import McpQuestion, McpReply
from moot.types.tool import Option, Question, ToolContext

FIELDS = 20
"""Maximum number of fields of a form. A request for more fields is declined."""
CHOICES = 100
"""Maximum number of choices of a field."""
ROUNDS = 3
"""Number of times that a form is shown if the answers are invalid."""
_TEXT = 2_000
_DECLINED = McpReply("decline")
_ACCEPT, _DECLINE, _EMPTY = "Accept", "Decline", "Leave empty"
_YES, _NO = "Yes", "No"
_KINDS = {"string": str, "integer": int, "number": float}
_WRONG = {"integer": "an integer", "number": "a number"}


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    kind: str
    text: str
    required: bool
    choices: Mapping[str, Json]
    """Label → value; empty = any text."""
    multiple: bool
    default: Json

    @property
    def question(self) -> str:
        return self.text if self.required else f"{self.text} (optional)"

    def options(self) -> tuple[Option, ...]:
        defaults = self.default if isinstance(self.default, list) else [self.default]
        options = [Option(label, "default" if value in defaults else "") for label, value in self.choices.items()]
        if not self.choices and isinstance(self.default, str | int | float):
            options.append(Option(str(self.default), "default"))
        return tuple(options if self.required else [*options, Option(_EMPTY)])

    def value(self, reply: Sequence[str]) -> Json:
        """Return the value of a reply, or None if there is none. Raise ValueError if it is invalid."""
        texts = [text.strip() for text in reply if text.strip()]
        if not self.required and (not texts or texts == [_EMPTY]):
            return None
        if self.multiple:
            return [self._one(text) for text in texts if text != _EMPTY]
        return self._one(" ".join(texts))

    def _one(self, text: str) -> Json:
        known = {label.lower(): value for label, value in self.choices.items()}
        if self.choices and text.lower() not in known:
            raise ValueError(f"choose one of: {', '.join(self.choices)}")
        try:
            value = known[text.lower()] if self.choices else _KINDS.get(self.kind, str)(text)
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(text)
            return value
        except ValueError as error:
            raise ValueError(f"{text!r} is not {_WRONG[self.kind]}") from error


async def reply_to(server: str, asked: McpQuestion, context: ToolContext) -> McpReply:
    """Ask the person, and return the reply for the server. It is a refusal if the question can't be shown, or no one is available."""
    return await _page(server, asked, context) if asked.url else await _form(server, asked, context)


async def _page(server: str, asked: McpQuestion, context: ToolContext) -> McpReply:
    host = _host(asked.url)
    if not host:
        return _DECLINED
    text = f"The MCP server {server!r} asks you to open a page of {host} yourself: {_line(asked.url)} ({_line(asked.message)})"
    options = (Option(_ACCEPT, "You have opened the page, or will"), Option(_DECLINE))
    replies = await context.ask_and_wait(f"{server}: open {host}", (Question("Open a page", text, options),))
    if replies is None:
        return McpReply("cancel")
    return McpReply("accept") if replies == ((_ACCEPT,),) else _DECLINED


def _host(url: str) -> str:
    """Return the host of a web address, or an empty string for other addresses and for one that hides its host behind a user name."""
    try:
        parts = urlsplit(url)
        return parts.hostname or "" if parts.scheme in ("http", "https") and "@" not in parts.netloc else ""
    except ValueError:
        return ""


async def _form(server: str, asked: McpQuestion, context: ToolContext) -> McpReply:
    fields = _fields(asked.schema)
    if fields is None:
        return _DECLINED
    about = f"The MCP server {server!r} asks: {_line(asked.message)}"
    problem = ""
    for _ in range(ROUNDS):
        replies = await context.ask_and_wait(f"{server}: {_line(asked.message)[:80]}", _questions(about, fields, problem))
        if replies is None:
            return McpReply("cancel")
        if not fields:
            return McpReply("accept", {}) if replies == ((_ACCEPT,),) else _DECLINED
        if not any(replies):
            return _DECLINED
        content, problem = await _content(fields, replies, asked.schema)
        if not problem:
            return McpReply("accept", content)
    return McpReply("cancel")


def _questions(about: str, fields: Sequence[_Field], problem: str) -> tuple[Question, ...]:
    first = f"{about} [{problem}]" if problem else about
    if not fields:
        return (Question("Question", first, (Option(_ACCEPT), Option(_DECLINE))),)
    texts = [f"{first.rstrip(':')}: {field.question}" if number == 0 else field.question for number, field in enumerate(fields)]
    return tuple(Question(field.name[:40], text, field.options(), field.multiple) for field, text in zip(fields, texts, strict=True))


async def _content(fields: Sequence[_Field], replies: Sequence[Sequence[str]], schema: JsonObject) -> tuple[JsonObject, str]:
    """Return the values of the form, and an error message, which is empty if they are valid."""
    content: JsonObject = {}
    for field, reply in zip(fields, [*replies, *[()] * len(fields)], strict=False):
        try:
            value = field.value(reply)
        except ValueError as error:
            return {}, f"{field.name}: {error}"
        if value is not None:
            content[field.name] = value
    try:
        return content, await find_problem(content, schema, "form")
    except UsageError:
        return content, ""  # the server checks them


def _fields(schema: JsonObject) -> list[_Field] | None:
    """Return the fields of a form, or None if a field is not simple or there are more than `FIELDS`."""
    properties, required = schema.get("properties"), schema.get("required")
    if not isinstance(properties, dict):
        return []
    if len(properties) > FIELDS:
        return None
    names = required if isinstance(required, list) else []
    found = [_field(name, spec, name in names) if isinstance(spec, dict) else None for name, spec in properties.items()]
    fields = [field for field in found if field is not None]
    return fields if len(fields) == len(found) else None


def _field(name: str, spec: JsonObject, required: bool) -> _Field | None:
    kind, items = str(spec.get("type", "string")), spec.get("items")
    multiple = kind == "array"
    choices = _choices(items if multiple and isinstance(items, dict) else spec)
    if kind == "boolean":
        choices = {_YES: True, _NO: False}
    if kind not in (*_KINDS, "boolean", "array") or (multiple and not choices) or len(choices) > CHOICES:
        return None
    title, about = _line(str(spec.get("title") or name)), _line(str(spec.get("description", "")))
    hints = [about, str(spec.get("format", ""))]
    text = f"{title} ({', '.join(filter(None, hints))})" if any(hints) else title
    return _Field(name, kind, text, required, choices, multiple, spec.get("default"))


def _choices(spec: JsonObject) -> dict[str, Json]:
    """Return the values of an enumeration by label. Labels that are used twice are replaced by the values."""
    titled = next((found for key in ("oneOf", "anyOf") if isinstance(found := spec.get(key), list)), list[Json]())
    pairs = [(str(one.get("title") or one["const"]), one["const"]) for one in titled if isinstance(one, dict) and "const" in one]
    values, names = spec.get("enum"), spec.get("enumNames")
    if not pairs and isinstance(values, list):
        labels = names if isinstance(names, list) and len(names) == len(values) else values
        pairs = [(str(label), value) for label, value in zip(labels, values, strict=True)]
    if len({label.lower() for label, _ in pairs}) < len(pairs):
        pairs = [(str(value), value) for _, value in pairs]
    return {_line(label): value for label, value in pairs}


def _line(text: str) -> str:
    """Return untrusted text as one line, on which no character is invisible. Faces show texts of several lines as Markdown."""
    return spelled_out(" ".join(text.split()))[:_TEXT]
