"""Content in Google's shape, as Gemini CLI and its forks store it (reference: Gemini API, Content and Part)."""

from __future__ import annotations

from moot.formats._saying import Output, call, file, reasoning
from moot.formats._source.fields import flag, obj, objects, text, whole_number
from moot.types.canonical import Json, JsonObject
from moot.types.part import Part, text_part
from moot.types.usage import Usage

__all__ = ["counts", "outputs_of", "parts_of", "usage_of"]


def parts_of(content: Json) -> tuple[Part, ...]:
    """Return the parts without tool outputs. Consecutive pieces of reasoning are joined."""
    if isinstance(content, str):
        return (text_part(content),) if content else ()
    parts: list[Part] = []
    for number, piece in enumerate(objects({"all": content}, "all") if isinstance(content, list) else [obj(content)]):
        part = _part(piece, number)
        last = parts[-1] if parts else None
        if part is None:
            continue
        if last is not None and last["type"] == part["type"] == "reasoning" and "providerMetadata" not in last:
            parts[-1] = {**part, "text": f"{last['text']}{part['text']}"}
        else:
            parts.append(part)
    return tuple(parts)


def outputs_of(content: Json) -> tuple[Output, ...]:
    """Return the tool outputs."""
    found: list[Output] = []
    for piece in objects({"all": content}, "all"):
        answer = piece.get("functionResponse")
        if isinstance(answer, dict):
            response = obj(answer, "response")
            failed = "error" in response and "output" not in response
            value = response.get("error" if failed else "output", response)
            found.append(Output(text(answer, "id") or text(answer, "name"), value, failed, text(answer, "name")))
    return tuple(found)


def usage_of(prompt: int | None, answer: int | None, cached: int | None, thoughts: int | None, total: int | None) -> Usage:
    """Return the usage. Reasoning tokens are added to the output tokens if the total shows that they are counted separately."""
    counted_separately = None not in (prompt, answer, thoughts, total) and total == (prompt or 0) + (answer or 0) + (thoughts or 0)
    output = (answer or 0) + (thoughts or 0) if counted_separately else answer
    return Usage(prompt, output, cached, None, thoughts)


def _part(piece: JsonObject, number: int) -> Part | None:
    if "functionResponse" in piece:
        return None
    if isinstance(function_call := piece.get("functionCall"), dict):
        part = call(
            text(function_call, "id") or f"{text(function_call, 'name')}-{number}", text(function_call, "name"), function_call.get("args")
        )
        signature = text(piece, "thoughtSignature")
        return {**part, "callProviderMetadata": {"google": {"thoughtSignature": signature}}} if signature else part
    if isinstance(text_ := piece.get("text"), str):
        signature = text(piece, "thoughtSignature")
        noted: JsonObject | None = {"google": {"thoughtSignature": signature}} if signature else None
        return reasoning(text_, noted) if flag(piece, "thought") else text_part(text_)
    if isinstance(inline := piece.get("inlineData"), dict):
        return file(f"data:{text(inline, 'mimeType')};base64,{text(inline, 'data')}", text(inline, "mimeType"), text(inline, "displayName"))
    if isinstance(kept := piece.get("fileData"), dict):
        return file(text(kept, "fileUri"), text(kept, "mimeType"), text(kept, "displayName"))
    return {"type": "data-block", "data": piece} if piece else None


def counts(value: JsonObject, *names: str) -> list[int | None]:
    return [whole_number(value, name) for name in names]
