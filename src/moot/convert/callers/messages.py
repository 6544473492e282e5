"""Anthropic Messages: callers' requests and the answers to them (reference: Claude API, create a message, streaming messages).

Blocks of this dialect are sequential, so changes to other blocks wait until the open block has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import cast

from moot.convert.callers.errors import message_error
from moot.convert.callers.pieces import Change, Outcome, Piece
from moot.convert.callers.request import CallerRequest, Drafts, Fields, content_of, effort_of, file_part, invalid_field, output_of, tool_of
from moot.convert.dialects.anthropic_stream import METADATA
from moot.types.canonical import Json, JsonObject, loads
from moot.types.message import Part, text_part
from moot.types.model import Effort, ModelSettings
from moot.types.provider import ToolDefinition
from moot.types.usage import Usage

_BUDGETS = ((4_096, "low"), (10_240, "medium"), (16_384, "high"))


def read_messages(body: Json, *, counting: bool = False) -> CallerRequest:
    """Parse the body of a request. Raise UsageError for unsupported fields. Hints are ignored.

    Set `counting` for a request that only counts tokens and therefore has no `max_tokens`.
    """
    fields = Fields(body)
    fields.refuse("mcp_servers", "This field is not supported. Configure MCP servers for an agent.")
    fields.refuse("container")
    if not counting and fields.count("max_tokens") is None:
        raise invalid_field("max_tokens", "This field is missing.")
    drafts = Drafts()
    drafts.instruct("\n\n".join(str(part["text"]) for part in content_of(fields, "system", lambda block: text_part(block.text("text")))))
    for message in fields.objects("messages"):
        _message(drafts, message)
    if not fields.items("messages"):
        raise invalid_field("messages", "Expected at least one message.")
    return drafts.request(fields, _tool, _settings(fields))


def _settings(fields: Fields) -> ModelSettings:
    choice = fields.fields("tool_choice")
    form = fields.fields("output_config").fields("format")
    schema = None
    if form.one_of("type", ("json_schema",)):
        schema = cast("dict[str, object]", Fields(form.value.get("schema"), form.path("schema")).value)
    return ModelSettings(
        temperature=fields.number("temperature", 0, 1),
        max_tokens=fields.count("max_tokens"),
        top_p=fields.number("top_p", 0, 1),
        stop=fields.texts("stop_sequences"),
        effort=_effort(fields),
        show_reasoning=fields.fields("thinking").text("type") in ("enabled", "adaptive"),
        schema=schema,
        tool_choice=_choice(choice),
        parallel_calls=not choice.flag("disable_parallel_tool_use"),
    )


def _effort(fields: Fields) -> Effort | None:
    thinking, effort = fields.fields("thinking"), effort_of(fields.fields("output_config"), "effort")
    kind = thinking.one_of("type", ("enabled", "disabled", "adaptive"))
    if kind == "disabled":
        return "none"
    if kind == "enabled":
        budget = thinking.count("budget_tokens") or 0
        return cast("Effort", next((name for most, name in _BUDGETS if budget <= most), "max"))
    return effort or ("high" if kind == "adaptive" else None)


def _choice(choice: Fields) -> str:
    kind = choice.one_of("type", ("auto", "any", "tool", "none"))
    return f"={choice.needed('name')}" if kind == "tool" else {"any": "required", "none": "none"}.get(kind, "")


def _tool(tool: Fields) -> ToolDefinition:
    if tool.text("type", "custom") != "custom":
        raise invalid_field(tool.path("type"), f"Tool type {tool.text('type')!r} is not supported. Use your own tools.")
    return tool_of(tool, "input_schema")


def _message(drafts: Drafts, message: Fields) -> None:
    role = message.needed("role")
    if role not in ("user", "assistant", "system"):
        raise invalid_field(message.path("role"), f"{role!r} is not one of user, assistant, system.")
    if isinstance(message.value.get("content"), list):
        blocks = list(message.objects("content"))
    else:
        blocks = [Fields({"type": "text", "text": message.text("content")}, message.path("content"))]
    if role == "assistant":
        _assistant(drafts, blocks)
    elif role == "system":
        drafts.instruct("\n\n".join(block.text("text") for block in blocks))
    else:
        for block in blocks:
            if block.text("type") == "tool_result":
                output = output_of(content_of(block, "content", _piece), "\n")
                drafts.output(block.needed("tool_use_id"), output, block.path("tool_use_id"), error=block.flag("is_error"))
        shown = (block for block in blocks if block.text("type") != "tool_result")
        drafts.say([_piece(block) for block in shown if block.text("type") != "text" or block.text("text")])


def _assistant(drafts: Drafts, blocks: list[Fields]) -> None:
    drafts.answer()
    for block in blocks:
        match block.needed("type"):
            case "text":
                drafts.answer([text_part(block.text("text"))] if block.text("text") else [], join=True)
            case "thinking":
                drafts.answer([_thought(block.text("thinking"), "signature", block.text("signature"))], join=True)
            case "redacted_thinking":
                drafts.answer([_thought("", "redactedData", block.text("data"))], join=True)
            case "tool_use":
                drafts.call(block.needed("id"), block.needed("name"), block.fields("input").value, block.path("name"))
            case other:
                raise invalid_field(block.path("type"), f"Block type {other!r} is not supported.")


def _thought(text: str, name: str, proof: str) -> Part:
    return {"type": "reasoning", "text": text, "state": "done", "providerMetadata": {METADATA: {name: proof}}}


def _piece(block: Fields) -> Part:
    match block.needed("type"):
        case "text":
            return text_part(block.text("text"))
        case "image":
            return _source(block, "image/*")
        case "document":
            return _source(block, "application/pdf")
        case other:
            raise invalid_field(block.path("type"), f"Block type {other!r} is not supported.")


def _source(block: Fields, kind: str) -> Part:
    source, name = block.fields("source"), block.text("title")
    match source.needed("type"):
        case "base64":
            media_type = source.needed("media_type")
            return file_part(f"data:{media_type};base64,{source.needed('data')}", source.path("data"), name=name)
        case "url":
            return file_part(source.needed("url"), source.path("url"), media_type=kind, name=name)
        case "text":
            return text_part(f"{name}:\n{source.text('data')}" if name else source.text("data"))
        case other:
            raise invalid_field(source.path("type"), f"{other!r} is not one of base64, url, text.")


_REASONS = {"length": "max_tokens", "content-filter": "refusal"}


_DELTAS = {"text": ("text_delta", "text"), "reasoning": ("thinking_delta", "thinking"), "call": ("input_json_delta", "partial_json")}


class MessagesAnswer:
    """Writer for a streamed answer. The methods return the data of the next frames. The `type` in the data is the name of the event."""

    def __init__(self, id: str, model: str, *, thinking: bool) -> None:
        self._id = id
        self._model = model
        self._thinking = thinking
        self._pending: dict[int, list[Change]] = {}
        """Changes to pieces that are not open yet, keyed by piece."""
        self._current: int | None = None
        self._blocks = 0
        self._calls = False

    def begin(self) -> list[JsonObject]:
        head = message_answer(self._id, self._model, (), Outcome(), thinking=False)
        head |= {"stop_reason": None}
        return [{"type": "message_start", "message": head}]

    def tell(self, changes: Iterable[Change]) -> list[JsonObject]:
        frames: list[JsonObject] = []
        for change in changes:
            if change.piece.kind == "reasoning" and not self._thinking:
                continue
            self._calls = self._calls or change.piece.kind == "call"
            self._pending.setdefault(change.at, []).append(change)
            frames += self._flush()
        return frames

    def end(self, outcome: Outcome) -> list[JsonObject]:
        """Return the end of a message, or only the error for a failed run."""
        if outcome.error is not None:
            return [message_error(outcome.error)]
        delta: JsonObject = {"stop_reason": _reason(outcome, calls=self._calls), "stop_sequence": None}
        return [{"type": "message_delta", "delta": delta, "usage": _usage(outcome.usage)}, {"type": "message_stop"}]

    def _flush(self) -> list[JsonObject]:
        """Return the frames that can be sent now: those of the open block and, if it has ended, of the next blocks."""
        frames: list[JsonObject] = []
        while self._pending:
            if self._current is None:
                self._current = min(self._pending)
            ready = self._pending.pop(self._current, [])
            for change in ready:
                frames += self._frames(change)
            if not ready or ready[-1].what != "close":
                break
            self._current = None
            self._blocks += 1
        return frames

    def _frames(self, change: Change) -> list[JsonObject]:
        at, piece = self._blocks, change.piece
        match change.what:
            case "open":
                return [{"type": "content_block_start", "index": at, "content_block": _block(piece._replace(text=""), opened=True)}]
            case "add":
                kind, field = _DELTAS[piece.kind]
                return [{"type": "content_block_delta", "index": at, "delta": {"type": kind, field: change.text}}]
            case "close":
                name, value = piece.proof
                signature: JsonObject = {"type": "signature_delta", "signature": value}
                proof: list[JsonObject] = [{"type": "content_block_delta", "index": at, "delta": signature}] if name == "signature" else []
                return [*proof, {"type": "content_block_stop", "index": at}]


def message_answer(id: str, model: str, pieces: Sequence[Piece], outcome: Outcome, *, thinking: bool) -> JsonObject:
    """Return the complete answer of a successful run. `thinking` is True if the caller asked for the reasoning."""
    shown = [piece for piece in pieces if thinking or piece.kind != "reasoning"]
    content: list[Json] = [_block(piece) for piece in shown]
    return {
        "id": f"msg_{id}",
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": _reason(outcome, calls=any(piece.kind == "call" for piece in pieces)),
        "stop_sequence": None,
        "usage": _usage(outcome.usage),
    }


def _block(piece: Piece, *, opened: bool = False) -> JsonObject:
    """Return a piece as a block. If `opened` is True, the block has just started, so a signature is still empty."""
    match piece.kind:
        case "text":
            return {"type": "text", "text": piece.text}
        case "reasoning" if piece.proof[0] == "redactedData":
            return {"type": "redacted_thinking", "data": piece.proof[1]}
        case "reasoning":
            return {"type": "thinking", "thinking": piece.text, "signature": "" if opened else piece.proof[1]}
        case "call":
            return {"type": "tool_use", "id": piece.id, "name": piece.name, "input": _input(piece.text)}


def _input(text: str) -> Json:
    """Return the arguments as an object, which this dialect requires. Invalid JSON is wrapped, so that nothing is lost."""
    try:
        value = loads(text or "{}")
    except ValueError:
        return {"unreadable": text}
    return value if isinstance(value, dict) else {"unreadable": value}


def _reason(outcome: Outcome, *, calls: bool) -> str:
    return _REASONS.get(outcome.reason) or ("tool_use" if calls else "end_turn")


def _usage(usage: Usage) -> JsonObject:
    """Return the usage. Input does not include cached tokens. Unknown counts are 0, because this dialect doesn't allow null."""
    read, written = usage.cache_read or 0, usage.cache_write or 0
    return {
        "input_tokens": max((usage.input or 0) - read - written, 0),
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "output_tokens": usage.output or 0,
    }
