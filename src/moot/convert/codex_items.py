"""Items of Codex's session files: items of the model API, in every form that its versions have written."""

from __future__ import annotations

import re
import shlex
from urllib.parse import unquote, urlsplit

from moot.convert._codex_calls import NAME, Call, own, unwrapped
from moot.convert._vendor import as_list, as_object, as_text, count
from moot.convert._writer import read_arguments
from moot.types.canonical import Json, JsonObject, loads
from moot.types.chunk import Chunk, tool_denied, tool_error, tool_output
from moot.types.part import Part, text_part

API = "openai"
CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call", "image_generation_call", "tool_search_call"})
"""API items that are tool calls."""
OUTPUT_TYPES = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
_SHELLS = frozenset({"shell", "local_shell", "shell_command", "exec_command", "container.exec"})
_HUMP = re.compile(r"_([a-z])")
_EXIT = re.compile(r"(?:Exit code:|Process exited with code) (-?\d+)")
_OUTPUT = "\nOutput:\n"
_REFUSED = ("exec command rejected by user", "rejected by user", "patch rejected by user")
_MARK = re.compile(r"<image(?: name=[^>]*)?>|</image>")
"""Markers around an image in a prompt, each in a text of its own."""


def asked(content: Json) -> tuple[Part, ...]:
    """Return the user's parts from the content of a user item."""
    found: list[Part] = []
    for block in map(as_object, as_list(content)):
        kind, text, url = block.get("type"), as_text(block.get("text")), as_text(block.get("image_url"))
        if kind in ("input_text", "output_text", "text") and not _MARK.fullmatch(text):
            found.append(text_part(text))
        elif kind == "input_image" and url:
            media_type = url[5:].partition(";")[0] if url.startswith("data:") else ""
            found.append({"type": "file", "mediaType": media_type or "image/png", "url": url})
        elif kind not in ("input_text", "output_text", "text", "input_image"):
            found.append({"type": "custom", "kind": f"{API}.{kind}", "providerMetadata": {API: {"block": block}}})
    return tuple(found)


def thought_of(item: JsonObject) -> Part | None:
    """Return the part for a `reasoning` item with its sealed content, or None if it is empty."""
    summary, content = as_list(item.get("summary")), as_list(item.get("content"))
    text = "\n\n".join(as_text(as_object(piece).get("text")) for piece in summary or content)
    made: JsonObject = {"itemId": item["id"]} if isinstance(item.get("id"), str) else {}
    if sealed := as_text(item.get("encrypted_content")):
        made["encryptedContent"] = sealed
    if content and not summary:
        made["kind"] = "thought"
    if not text:
        made["index"] = -1
    if not text and not sealed:
        return None
    part: Part = {"type": "reasoning", "text": text, "state": "done"}
    return {**part, "providerMetadata": {API: {**made, "provider": NAME}}} if made else part


def named(item: JsonObject) -> tuple[str, Json]:
    """Return name and input of a call, in the app-server's form where that is known."""
    kind = item.get("type")
    if kind == "local_shell_call":
        return "shell", {"command": _command(as_object(item.get("action")).get("command"))}
    if kind == "web_search_call":
        action = as_object(item.get("action"))
        return "web_search", {name: value for name, value in (("query", action.get("query")), ("action", action)) if value}
    if kind == "image_generation_call":
        return "image_generation", {"revisedPrompt": item.get("revised_prompt")} if item.get("revised_prompt") else {}
    name = ".".join(filter(None, (as_text(item.get("namespace")), as_text(item.get("name"))))) or "tool"
    if kind == "custom_tool_call":
        return name, {"input": item.get("input")}
    given = _arguments(item.get("arguments"))
    if name in _SHELLS and isinstance(given, dict) and (command := given.get("command", given.get("cmd"))):
        rest = {key: value for key, value in given.items() if key not in ("command", "cmd") and value is not None}
        return "shell", {"command": _command(command), **rest}
    return name, given


def _command(command: Json) -> str:
    words = [as_text(word) for word in command] if isinstance(command, list) else None
    return unwrapped(shlex.join(words) if words is not None else as_text(command))


def _arguments(arguments: Json) -> Json:
    if isinstance(arguments, str):
        try:
            return read_arguments(arguments)
        except ValueError:
            return {"arguments": arguments}
    return arguments if isinstance(arguments, dict) else {}


def vendor_output(item: JsonObject, call: Call) -> Chunk:
    """Return the output of a tool that the vendor runs."""
    if encoded := as_text(item.get("result")):
        picture: Json = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{encoded}"}
        return own(tool_output(call.id, {"type": "content", "value": [picture]}), call)
    return own(tool_output(call.id, as_text(as_object(item.get("action")).get("query"))), call)


def outcome_of(item: JsonObject) -> Chunk:
    """Return the output of a call from the item that holds it: text with or without a header, JSON text, or pieces."""
    id = as_text(item.get("call_id"))
    call = Call(id, id, "")
    output = item.get("output", item.get("tools"))
    if isinstance(output, dict):  # older files
        failed = output.get("success") is False
        output = output.get("content")
        if failed:
            return own(tool_error(call.id, as_text(output) or "failed"), call)
    if isinstance(output, list):
        parts = asked(output)
        if all(part["type"] == "text" for part in parts):
            return own(tool_output(call.id, "\n".join(as_text(part["text"]) for part in parts)), call)
        return own(tool_output(call.id, {"type": "content", "value": [_plain(part) for part in parts]}), call)
    text, code = _told(as_text(output))
    if text.startswith(_REFUSED):
        return tool_denied(call.id)
    facts: JsonObject = {"exitCode": code} if code is not None else {}
    if code:
        return own(tool_error(call.id, f"exit code {code}\n{text}".rstrip()), call, facts)
    return own(tool_output(call.id, text), call, facts)


def _plain(part: Part) -> Json:
    return {name: value for name, value in part.items() if name != "state"}


def _told(text: str) -> tuple[str, int | None]:
    """Return a command's output without its header, and the exit code if the header has one."""
    if text.startswith("{"):
        try:
            inner = as_object(loads(text))
        except ValueError:
            inner = {}
        code = as_object(inner.get("metadata")).get("exit_code")
        if isinstance(inner.get("output"), str) and type(code) is int:
            return as_text(inner["output"]), code
    head, mark, body = text.partition(_OUTPUT)
    found = _EXIT.search(head) if mark and len(head) < 1000 else None
    return (body, int(found[1])) if found else (text, None)


def as_protocol(item: JsonObject) -> JsonObject:
    """Return an item of the file in the app-server's spelling."""
    renamed: JsonObject = {_camel(name): value for name, value in item.items()}
    kind = as_text(item.get("type"))
    renamed["type"] = kind[:1].lower() + kind[1:]
    if isinstance(item.get("command"), list):
        renamed["command"] = shlex.join(as_text(word) for word in as_list(item["command"]))
    if (cwd := as_text(item.get("cwd"))).startswith("file://"):
        renamed["cwd"] = unquote(urlsplit(cwd).path)
    duration = as_object(item.get("duration"))
    if duration:
        renamed["durationMs"] = (count(duration.get("secs")) or 0) * 1000 + (count(duration.get("nanos")) or 0) // 1_000_000
    changes = item.get("changes")
    if isinstance(changes, dict):
        renamed["changes"] = [{"path": path, "kind": _change(as_object(change))} for path, change in changes.items()]
    return renamed


def _change(change: JsonObject) -> str:
    return as_text(change.get("type")) or next(iter(change), "change")


def _camel(name: str) -> str:
    return _HUMP.sub(lambda found: found[1].upper(), name)
