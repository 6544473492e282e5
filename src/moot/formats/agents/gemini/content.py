"""Conversion between message parts and the content format of Google's API, which is used in sessions of Gemini CLI and Qwen Code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from moot.convert.files.attachments import label_of, with_texts
from moot.formats.kit.fields import flag, obj, objects, text, whole_number
from moot.formats.kit.records import Output, file, reasoning, tool_call
from moot.formats.kit.steps import answer_text, plain_call
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.message import Part, text_part
from moot.types.usage import Usage

_DATA = re.compile(r"data:([\w.+-]+/[\w.+-]+);base64,(.*)", re.DOTALL)
_MEDIA = ("image/", "audio/", "video/", "application/pdf")
"""Media types of files that models accept."""


def parts_of(content: Json) -> tuple[Part, ...]:
    """Return the parts without tool outputs. Consecutive fragments of reasoning are joined."""
    if isinstance(content, str):
        return (text_part(content),) if content else ()
    parts: list[Part] = []
    for number, piece in enumerate(objects(content) if isinstance(content, list) else [obj(content)]):
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
    for piece in objects(content):
        answer = piece.get("functionResponse")
        if isinstance(answer, dict):
            response = obj(answer, "response")
            failed = "error" in response and "output" not in response
            value = response.get("error" if failed else "output", response)
            value = with_files(value, parts_of(answer.get("parts")))
            found.append(Output(text(answer, "id") or text(answer, "name"), value, failed, text(answer, "name")))
    return tuple(found)


def usage_of(value: JsonObject, *names: str) -> Usage:
    """Return the token usage. `names` are the names of the fields for prompt, answer, cached, reasoning and total tokens, in this order.

    Reasoning tokens are added to the output tokens if the total shows that they are counted separately.
    """
    prompt, answer, cached, thoughts, total = (whole_number(value, name) for name in names)
    counted_separately = None not in (prompt, answer, thoughts, total) and total == (prompt or 0) + (answer or 0) + (thoughts or 0)
    output = (answer or 0) + (thoughts or 0) if counted_separately else answer
    return Usage(prompt, output, cached, None, thoughts)


def tokens_of(usage: JsonObject) -> JsonObject:
    """Return token usage in the format of Gemini CLI, which counts reasoning tokens separately."""
    prompt, output, cached, thoughts = (whole_number(usage, name) or 0 for name in ("input", "output", "cache_read", "reasoning"))
    output = max(output - thoughts, 0)
    return {"input": prompt, "output": output, "cached": cached, "thoughts": thoughts, "tool": 0, "total": prompt + output + thoughts}


def _part(piece: JsonObject, number: int) -> Part | None:
    if "functionResponse" in piece:
        return None
    if isinstance(function_call := piece.get("functionCall"), dict):
        part = tool_call(
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


def with_files(output: Json, parts: Sequence[Part]) -> Json:
    """Return a tool output, extended with the files in the parts."""
    files = [part for part in parts if part["type"] == "file"]
    return {"type": "content", "value": list[Json]([text_part(output if isinstance(output, str) else ""), *files])} if files else output


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def content_of(parts: Sequence[Part]) -> list[Json]:
    """Return the text and files of a message. Files that models don't accept are replaced by text."""
    return [_piece_of(part) for part in with_texts(parts) if part.get("type") in ("text", "file")]


def _piece_of(part: Part) -> JsonObject:
    if part.get("type") == "text":
        return {"text": str(part.get("text", ""))}
    match = _DATA.fullmatch(str(part.get("url")))
    if match is None or not match[1].startswith(_MEDIA):
        return {"text": f"[{label_of(part)}: not included]"}
    named: JsonObject = {"displayName": part["filename"]} if part.get("filename") else {}
    return {"inlineData": {"mimeType": match[1], "data": match[2], **named}}


def call_of(part: Part) -> JsonObject:
    """Return the id, name and arguments of a tool call."""
    id, name, arguments = plain_call(part)
    return {"id": id, "name": name, "args": arguments}


def response_of(part: Part) -> tuple[JsonObject, list[Json]]:
    """Return the output of a tool call, and its files."""
    id, name, _ = plain_call(part)
    answer: JsonObject = {"id": id, "name": name}
    words, failed = answer_text(part)
    if failed:
        return {**answer, "response": {"error": words}}, []
    output = part.get("output")
    if text(output, "type") != "content":
        return {**answer, "response": {"output": output}}, []
    pieces = content_of(objects(output, "value"))
    words = "\n".join(text(one, "text") for one in pieces if "text" in obj(one))
    return {**answer, "response": {"output": words}}, [one for one in pieces if "inlineData" in obj(one)]


def shown(answer: JsonObject) -> str:
    """Return a tool output as the text that is shown by the programs."""
    response = obj(answer, "response")
    value = response.get("error" if "error" in response else "output")
    return value if isinstance(value, str) else dumps(value).decode()
