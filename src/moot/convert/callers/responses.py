"""OpenAI Responses: callers' requests and the answers to them (reference: OpenAI API, create a model response, streaming events)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moot.convert.callers.chat import read_function, read_settings
from moot.convert.callers.errors import code_of
from moot.convert.callers.pieces import Change, Outcome, Piece
from moot.convert.callers.request import CallerRequest, Drafts, Fields, content_of, effort_of, file_part, invalid_field, output_of
from moot.types.canonical import Json, JsonObject, dumps, loads
from moot.types.message import Part, text_part
from moot.types.usage import Usage


def read_responses(body: Json) -> CallerRequest:
    """Parse the body of a request. Raise UsageError for unsupported fields. Hints are ignored."""
    fields = Fields(body)
    fields.refuse("background", "Background answers are not supported. Wait for the answer.")
    fields.refuse("prompt", "Stored prompts are not supported.")
    named = fields.value.get("conversation")
    conversation = named if isinstance(named, str) else fields.fields("conversation").text("id")
    after = fields.text("previous_response_id")
    if after and conversation:
        raise invalid_field("previous_response_id", "This field can't be combined with conversation.")
    drafts = Drafts(after=bool(after))
    drafts.instruct(fields.text("instructions"))
    if isinstance(fields.value.get("input"), list):
        for item in fields.objects("input"):
            _read_item(drafts, item)
    else:
        drafts.say([text_part(fields.needed("input"))])
    effort, form = effort_of(fields.fields("reasoning"), "effort"), fields.fields("text").fields("format")
    settings = read_settings(fields, effort, fields.count("max_output_tokens"), form, nested=False)
    return drafts.request(fields, lambda tool: read_function(tool, nested=False), settings, after=after, conversation=conversation)


def _read_item(drafts: Drafts, item: Fields) -> None:
    match item.text("type", "message"):
        case "message":
            _message(drafts, item)
        case "function_call":
            drafts.answer(join=True)
            drafts.call(item.needed("call_id"), item.needed("name"), item.text("arguments"), item.path("name"))
        case "function_call_output":
            drafts.output(item.needed("call_id"), output_of(content_of(item, "output", _piece)), item.path("call_id"))
        case "reasoning":
            pass  # moot's own reasoning: it is not signed, so no model would accept it
        case other:
            raise invalid_field(item.path("type"), f"Item type {other!r} is not supported.")


def _message(drafts: Drafts, item: Fields) -> None:
    match item.needed("role"):
        case "system" | "developer":
            drafts.instruct(_read_text(item))
        case "user":
            drafts.say(content_of(item, "content", _piece))
        case "assistant":
            text = _read_text(item)
            drafts.answer([text_part(text)] if text else [], join=True)
        case other:
            raise invalid_field(item.path("role"), f"{other!r} is not one of system, developer, user, assistant.")


def _read_text(item: Fields) -> str:
    return "".join(str(part["text"]) for part in content_of(item, "content", _piece) if part["type"] == "text")


def _piece(piece: Fields) -> Part:
    match piece.needed("type"):
        case "input_text" | "output_text" | "text":
            return text_part(piece.text("text"))
        case "refusal":
            return text_part(piece.text("refusal"))
        case "input_image":
            piece.refuse("file_id", "Stored files are not supported. Send image_url.")
            url, detail = piece.needed("image_url"), piece.one_of("detail", ("auto", "low", "high", "original"))
            kind = "" if url.startswith("data:") else "image/*"
            return file_part(url, piece.path("image_url"), media_type=kind, detail=detail.replace("original", "high"))
        case "input_file":
            piece.refuse("file_id", "Stored files are not supported. Send file_data.")
            field = "file_url" if piece.text("file_url") else "file_data"
            return file_part(piece.needed(field), piece.path(field), name=piece.text("filename"))
        case other:
            raise invalid_field(piece.path("type"), f"{other!r} is not one of input_text, input_image, input_file, output_text.")


@dataclass(frozen=True, slots=True)
class Head:
    """The fields of a response that are known when it starts."""

    id: str
    """The run's id."""
    model: str
    created: int
    asked: CallerRequest | None = None
    """The request, whose fields are repeated in the response; None for an answer that is retrieved later."""


class ResponsesAnswer:
    """Writer for a streamed answer. The methods return the data of the next frames. The `type` in the data is the name of the event."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._number = 0
        self._pieces: dict[int, Piece] = {}

    def begin(self) -> list[JsonObject]:
        return [
            self._frame("response.created", response=_response(self._head, "in_progress", ())),
            self._frame("response.in_progress", response=_response(self._head, "in_progress", ())),
        ]

    def tell(self, changes: Iterable[Change]) -> list[JsonObject]:
        return [frame for change in changes for frame in self._frames(change)]

    def end(self, outcome: Outcome) -> list[JsonObject]:
        pieces = [self._pieces[index] for index in sorted(self._pieces)]
        whole = response_answer(self._head, pieces, outcome)
        return [self._frame(f"response.{whole['status']}", response=whole)]

    def _frames(self, change: Change) -> list[JsonObject]:
        at, started = change.at, change.what == "open"
        item = _item(self._head.id, at, change.piece, "in_progress" if started else "completed")
        if started:
            return [self._frame("response.output_item.added", output_index=at, item=item), *self._inner(change)]
        frames = self._inner(change)
        if change.what == "close":
            self._pieces[at] = change.piece
            frames.append(self._frame("response.output_item.done", output_index=at, item=item))
        return frames

    def _inner(self, change: Change) -> list[JsonObject]:
        """Return the frames about the content of an output item."""
        piece, arguments = change.piece, "response.function_call_arguments"
        if piece.kind == "call":
            match change.what:
                case "open":
                    return []
                case "add":
                    return [self._of(f"{arguments}.delta", change, delta=change.text)]
                case "close":
                    return [self._of(f"{arguments}.done", change, name=piece.name, arguments=piece.text)]
        text, part, index, content = _FRAMES[piece.kind]
        where: JsonObject = {index: 0}
        more: JsonObject = {"logprobs": []} if piece.kind == "text" else {}
        match change.what:
            case "open":
                return [self._of(f"{part}.added", change, **where, part=content(""))]
            case "add":
                return [self._of(f"{text}.delta", change, **where, delta=change.text, **more)]
            case "close":
                return [
                    self._of(f"{text}.done", change, **where, text=piece.text, **more),
                    self._of(f"{part}.done", change, **where, part=content(piece.text)),
                ]

    def _of(self, type: str, change: Change, **fields: Json) -> JsonObject:
        return self._frame(type, item_id=_item_id(self._head.id, change.at, change.piece), output_index=change.at, **fields)

    def _frame(self, type: str, **fields: Json) -> JsonObject:
        frame: JsonObject = {"type": type, "sequence_number": self._number, **fields}
        self._number += 1
        return frame


def response_answer(head: Head, pieces: Sequence[Piece], outcome: Outcome) -> JsonObject:
    """Return the complete answer. For a failed run, it includes the output before the failure."""
    if outcome.error is not None:
        error: JsonObject = {"code": code_of(outcome.error), "message": outcome.error.advice()}
        return _response(head, "failed", pieces, error=error, usage=outcome.usage)
    why = {"length": "max_output_tokens", "content-filter": "content_filter"}.get(outcome.reason)
    return _response(head, "incomplete" if why else "completed", pieces, why=why, usage=outcome.usage)


def response_begun(head: Head, pieces: Sequence[Piece]) -> JsonObject:
    """Return an answer that is still in progress."""
    return _response(head, "in_progress", pieces)


def _response(
    head: Head, status: str, pieces: Sequence[Piece], *, error: JsonObject | None = None, why: str | None = None, usage: Usage | None = None
) -> JsonObject:
    done = "in_progress" if status == "in_progress" else "completed"
    request = head.asked or CallerRequest(head.model, ())
    settings, choice = request.settings, request.settings.tool_choice
    return {
        "id": f"resp_{head.id}",
        "object": "response",
        "created_at": head.created,
        "status": status,
        "error": error,
        "incomplete_details": {"reason": why} if why else None,
        "instructions": request.system or None,
        "max_output_tokens": settings.max_tokens,
        "model": head.model,
        "output": [_item(head.id, at, piece, done) for at, piece in enumerate(pieces)],
        "parallel_tool_calls": settings.parallel_calls,
        "previous_response_id": request.after or None,
        "reasoning": {"effort": settings.effort, "summary": None},
        "store": True,
        "temperature": settings.temperature,
        "text": {"format": _format(settings.schema)},
        "tool_choice": {"type": "function", "name": choice[1:]} if choice.startswith("=") else choice or "auto",
        "tools": [
            {"type": "function", "name": tool.name, "description": tool.description, "parameters": tool.schema, "strict": False}
            for tool in request.tools
        ],
        "top_p": settings.top_p,
        "truncation": "disabled",
        "usage": None if usage is None else _usage(usage),
        "metadata": {},
    }


def _format(schema: object) -> JsonObject:
    if schema is None:
        return {"type": "text"}
    return {"type": "json_schema", "name": "answer", "schema": loads(dumps(schema)), "strict": False}


def _item_id(run: str, at: int, piece: Piece) -> str:
    return f"{ {'text': 'msg', 'reasoning': 'rs', 'call': 'fc'}[piece.kind] }_{run}_{at}"


def _item(run: str, at: int, piece: Piece, status: str) -> JsonObject:
    """Return a piece as an output item. If the status is `in_progress`, the item has just started and is empty."""
    id, started = _item_id(run, at, piece), status == "in_progress"
    match piece.kind:
        case "text":
            content: list[Json] = [] if started else [_text(piece.text)]
            return {"id": id, "type": "message", "status": status, "role": "assistant", "content": content}
        case "reasoning":
            summary: list[Json] = [] if started else [_summary(piece.text)]
            return {"id": id, "type": "reasoning", "status": status, "summary": summary}
        case "call":
            arguments = "" if started else piece.text
            return {"id": id, "type": "function_call", "status": status, "call_id": piece.id, "name": piece.name, "arguments": arguments}


def _text(text: str) -> JsonObject:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _summary(text: str) -> JsonObject:
    return {"type": "summary_text", "text": text}


_FRAMES = {
    "text": ("response.output_text", "response.content_part", "content_index", _text),
    "reasoning": ("response.reasoning_summary_text", "response.reasoning_summary_part", "summary_index", _summary),
}
"""For each kind of piece: the prefixes of the frame types for its text and its part,
the name of the index field, and the content of the part.
"""


def _usage(usage: Usage) -> JsonObject | None:
    if usage.input is None and usage.output is None:
        return None
    sent, made = usage.input or 0, usage.output or 0
    return {
        "input_tokens": sent,
        "input_tokens_details": {"cached_tokens": usage.cache_read or 0, "cache_write_tokens": usage.cache_write or 0},
        "output_tokens": made,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning or 0},
        "total_tokens": sent + made,
    }
