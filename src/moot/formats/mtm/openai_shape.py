"""Messages of unversioned notebooks: OpenAI's chat shape with pictures as links in the text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moot.formats._saying import call as call_part
from moot.formats._saying import media_type_of
from moot.formats._source.documents import Element
from moot.formats._source.pieces import value_in
from moot.formats._source.turns import Turns
from moot.formats.mtm.attachments import ghosts, with_pictures
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedMessage, ImportedRecord
from moot.types.part import Part, text_part

__all__ = ["openai_message"]


def openai_message(turns: Turns, element: Element, value: JsonObject, path: Path) -> Iterator[ImportedMessage | ImportedRecord]:
    id, role, content = str(element.number - 1), value.get("role"), value.get("content")
    match role:
        case "user":
            parts, missing = with_pictures(_pieces(content), path)
            attached, notes = ghosts(_ghost(value.get("metadata")))
            if missing:
                turns.tally.lose("pictures", missing)
            yield from turns.say("user", id, element.raw, [*parts, *attached], metadata=notes)
        case "system":
            yield from turns.say("system", id, element.raw, _pieces(content))
        case "assistant":
            thought = value.get("reasoning_content")
            thoughts: list[Part] = [{"type": "reasoning", "text": thought, "state": "done"}] if isinstance(thought, str) and thought else []
            turns.step(id, element.raw, [*thoughts, *_pieces(content), *_calls(value.get("tool_calls"))], lead=element.lead)
        case "tool":
            call, name = value.get("tool_call_id"), value.get("name")
            output = content if isinstance(content, str) else "".join(str(piece.get("text", "")) for piece in _pieces(content))
            turns.output(
                str(call or ""), id, element.raw, name=name if isinstance(name, str) else "", lead=element.lead, output=output, failed=False
            )
        case _:
            yield from turns.end()
            yield turns.broken(element.raw, f"message {element.number} has the role {role!r}", body=value)


def _pieces(content: Json) -> list[Part]:
    if isinstance(content, str):
        return [text_part(content)] if content else []
    parts: list[Part] = []
    for piece in content if isinstance(content, list) else []:
        if not isinstance(piece, dict):
            continue
        image, text = piece.get("image_url"), piece.get("text")
        if isinstance(image, dict) and isinstance(url := image.get("url"), str):
            parts.append({"type": "file", "mediaType": media_type_of(url, "image/*"), "url": url})
        elif isinstance(text, str) and text:
            parts.append(text_part(text))
    return parts


def _calls(calls: Json) -> Iterator[Part]:
    for call in calls if isinstance(calls, list) else []:
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(call, dict) and isinstance(function, dict):
            yield call_part(str(call.get("id") or ""), str(function.get("name") or ""), _given(function.get("arguments")))


def _given(arguments: Json) -> Json:
    """Return the arguments as JSON, or as text if they are not JSON."""
    return {} if isinstance(arguments, str) and not arguments.strip() else value_in(arguments)


def _ghost(metadata: Json) -> Json:
    return metadata.get("last_ghost_block") if isinstance(metadata, dict) else None
