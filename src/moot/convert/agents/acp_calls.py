"""Parts of the Agent Client Protocol's messages: tool calls from their first mention to their output,
content, and facts such as tokens and cost.

Agents differ in what comes first: a permission request, an update or the call. Later outputs replace earlier ones, and the end of a call
may be missing. Each message about a call is merged into what is already known about the call. A chunk is emitted when the call reaches its
next stage.
"""

from __future__ import annotations

import re
from base64 import b64encode
from difflib import unified_diff
from typing import NamedTuple
from urllib.parse import urlsplit

from moot.convert.dialects import frames
from moot.convert.vendor import as_list, as_object, as_text, count, nano_dollars
from moot.convert.writer import Rope, join
from moot.types import canonical
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.chunk import Chunk, nested, tool_denied, tool_error, tool_output
from moot.types.usage import Usage


def message_of(raw: bytes) -> JsonObject | None:
    """Return the message in a line, or None if the line is not a message, is truncated, or is nested too deeply to be stored."""
    data = raw.strip()
    if data[:1] != b"{":
        return None
    try:
        message = frames.parse(data)
        if data.count(b"{") + data.count(b"[") > canonical.MAX_DEPTH:
            canonical.loads_exact(canonical.dumps(message))
    except ValueError:
        return None
    if b'"rawInput"' in data and isinstance(message, dict):
        try:
            return as_object(canonical.loads_exact(data)) or message  # keeps every digit of integers in a call's input
        except ValueError:
            return message
    return message if isinstance(message, dict) else None


def id_of(message: JsonObject) -> str:
    """Return a message's id as text, or an empty string if it has none. Some agents answer request 2 with the id "2"."""
    id = message.get("id")
    return f"{id}" if isinstance(id, int | str) and not isinstance(id, bool) else ""


def content_text(content: Json) -> str:
    """Return the text of a content block, or a short description if it is not text."""
    block = as_object(content)
    match block.get("type"):
        case "text":
            return as_text(block.get("text"))
        case "resource_link":
            return f"[{as_text(block.get('name')) or 'resource'}: {as_text(block.get('uri'))}]"
        case "resource":
            resource = as_object(block.get("resource"))
            return as_text(resource.get("text")) or f"[resource: {as_text(resource.get('uri'))}]"
        case "image" | "audio" as kind:
            return f"[{kind}, {as_text(block.get('mimeType')) or 'unknown'}]"
        case _:
            return as_text(block.get("text"))


REASONS = {"end_turn": "stop", "max_tokens": "length", "max_turn_requests": "other", "refusal": "content-filter", "cancelled": "other"}
"""Finish reasons by the `stopReason` of a prompt's response."""

_TOOL = re.compile(r"[A-Za-z][\w.:-]{0,63}")


def model_of(opened: JsonObject) -> str:
    """Return the model of a newly opened session, from `models` or from the session's options, or an empty string if it is unknown."""
    model = as_text(as_object(opened.get("models")).get("currentModelId"))
    options = [as_object(option) for option in as_list(opened.get("configOptions"))]
    return model or next((as_text(option.get("currentValue")) for option in options if option.get("id") == "model"), "")


def tool_name(update: JsonObject, agent: str) -> str:
    """Return the tool's name, or its kind if the agent sends no name, as most agents do."""
    meta = as_object(update.get("_meta"))
    named = [update.get("name"), as_object(meta.get("claudeCode")).get("toolName"), meta.get("toolName"), meta.get("tool_name")]
    if agent == "gemini-cli":  # run_shell_command__call_17
        named.append(as_text(update.get("toolCallId")).partition("__")[0])
    if agent == "OpenCode" and update.get("sessionUpdate") == "tool_call":  # the first title is the name; later titles describe the action
        named.append(update.get("title"))
    named.append(update.get("kind"))
    return next((name for name in map(as_text, named) if _TOOL.fullmatch(name)), "tool")


def parent_of(update: JsonObject) -> str:
    """Return the id of the call whose sub-agent sent the update, or an empty string if the agent itself sent it."""
    meta = as_object(update.get("_meta"))
    return as_text(as_object(meta.get("claudeCode")).get("parentToolUseId")) or as_text(meta.get("parentToolCallId"))  # claude; qwen


def sub_agent_of(update: JsonObject) -> str:
    """Return the kind of the sub-agent that sent the update, or an empty string if it is unknown."""
    return as_text(as_object(update.get("_meta")).get("subagentType"))  # qwen


def usage_of(answer: JsonObject) -> Usage:
    """Return the token counts in the response to a prompt. Gemini CLI reports them in a different field."""
    usage = answer.get("usage")
    if isinstance(usage, dict):
        return _usage(usage)
    spent = as_object(as_object(as_object(answer.get("_meta")).get("quota")).get("token_count"))
    return Usage(count(spent.get("input_tokens")), count(spent.get("output_tokens")))


def chunk_usage(update: JsonObject) -> Usage | None:
    """Return the token counts of one model call, or None. Only Qwen Code sends them, with the last piece of a message."""
    usage = as_object(update.get("_meta")).get("usage")
    return _usage(usage) if isinstance(usage, dict) else None


def session_tokens(update: JsonObject) -> Usage | None:
    """Return the token counts of the whole session, or None.

    Only Mistral Vibe sends them, in usage updates and in its responses.
    """
    meta = as_object(update.get("_meta"))
    if "promptTokens" not in meta:
        return None
    return Usage(count(meta.get("promptTokens")), count(meta.get("completionTokens")))


def cost_of(update: JsonObject) -> int | None:
    """Return the cost of the session so far in nano-dollars, or None if it is not in US dollars."""
    cost = as_object(update.get("cost"))
    return nano_dollars(cost.get("amount")) if cost.get("currency") == "USD" else None


def _usage(said: JsonObject) -> Usage:
    arguments, made = count(said.get("inputTokens")), count(said.get("outputTokens"))
    read, written = count(said.get("cachedReadTokens")), count(said.get("cachedWriteTokens"))
    thought, total = count(said.get("thoughtTokens")), count(said.get("totalTokens"))
    if arguments is not None and made is not None and total is not None:
        # the rest of the total is cached tokens, reasoning or both, which the two counts don't include
        beyond, cached = total - arguments - made, (read or 0) + (written or 0)
        if cached and beyond in (cached, cached + (thought or 0)):
            arguments, beyond = arguments + cached, beyond - cached
        if thought and beyond == thought:
            made += thought
    return Usage(arguments, made, read, written, thought)


_COMPARED = 200_000
"""Maximum total number of old and new characters of a change to show as a diff. The time needed for the comparison grows quadratically."""


def items_of(content: Json, kind: str) -> list[JsonObject]:
    """Return the items of one kind (content, terminal or diff) in a call's `content`."""
    return [item for item in map(as_object, as_list(content)) if item.get("type") == kind]


def output_text(content: Json, raw: Json, terminal: str, noted: Json) -> str:
    """Return a call's output as text: the raw output if it is text, otherwise content, terminal output or an earlier result.

    claude-agent-acp puts Markdown fences around `content`, so a plain `rawOutput` is preferred. codex-acp uses only `_meta`.
    """
    if isinstance(raw, str) and raw:
        return raw
    of_blocks = "\n".join(text for item in as_list(raw) if (text := content_text(item)))  # the format that MCP servers use
    texts = "\n".join(text for item in items_of(content, "content") if (text := content_text(item.get("content"))))
    return texts or of_blocks or terminal or _of_fields(raw) or _of_noted(noted)


def _of_fields(raw: Json) -> str:
    """Return the text of a raw output: the value of an object's first known field, or the whole value as JSON."""
    fields = as_object(raw)
    if not fields:
        return "" if raw is None or isinstance(raw, str | list | dict) else dumps(raw).decode()
    for name in ("output", "formatted_output", "aggregated_output", "error", "message", "content", "text"):
        if text := as_text(fields.get(name)):
            return text
    streams = [as_text(fields.get(name)) for name in ("stdout", "stderr")]
    if any(streams):
        return "\n".join(text.removesuffix("\n") for text in streams if text)
    return "" if {"stdout", "stderr", "output"} & fields.keys() else as_text(fields.get("fileDiff")) or dumps(fields).decode()


def _of_noted(noted: Json) -> str:
    fields = as_object(noted)
    if "file" in fields:
        return as_text(as_object(fields["file"]).get("content"))
    return noted if isinstance(noted, str) else _of_fields(noted)


def _diff(item: JsonObject) -> str:
    path, old, new = as_text(item.get("path")), as_text(item.get("oldText")), as_text(item.get("newText"))
    before = "/dev/null" if item.get("oldText") is None else path
    if len(old) + len(new) > _COMPARED:
        return f"--- {before}\n+++ {path}\n[{len(old)} characters became {len(new)}]\n"
    lines = unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), before, path)
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def attachment(content: JsonObject) -> Chunk | None:
    """Return the chunk for a content block that is not text, or None. The id of a source is left empty; the caller sets it."""
    match content.get("type"):
        case "image" | "audio":
            return _file(as_text(content.get("data")), as_text(content.get("mimeType")), as_text(content.get("uri")))
        case "resource_link":
            return _source(as_text(content.get("uri")), as_text(content.get("title")) or as_text(content.get("name")), content)
        case "resource":
            resource = as_object(content.get("resource"))
            blob = as_text(resource.get("blob")) or b64encode(as_text(resource.get("text")).encode("utf-8", "replace")).decode()
            plain = "text/plain;charset=utf-8" if "text" in resource else "application/octet-stream"
            return _file(blob, as_text(resource.get("mimeType")) or plain, "")
        case _:
            return None


def _file(encoded: str, media_type: str, uri: str) -> Chunk | None:
    url = f"data:{media_type};base64,{encoded}" if encoded else uri if _on_the_web(uri) else ""
    return {"type": "file", "url": url, "mediaType": media_type or "application/octet-stream"} if url else None


def _source(uri: str, title: str, content: JsonObject) -> Chunk | None:
    if not uri:
        return None
    if _on_the_web(uri):
        return {"type": "source-url", "sourceId": "", "url": uri, "title": title or uri}
    media_type = as_text(content.get("mimeType")) or "application/octet-stream"
    return {"type": "source-document", "sourceId": "", "mediaType": media_type, "title": title or uri, "filename": uri}


def _on_the_web(uri: str) -> bool:
    try:
        return urlsplit(uri).scheme in ("http", "https")
    except ValueError:
        return False


_ALWAYS = 4096
"""Maximum length of preliminary output, in characters, that is shown again after each change.
Longer output is shown again when it has grown by a quarter.
"""
_TERMINAL = {"completed", "failed"}


class Call(NamedTuple):
    id: str
    vendor_id: str
    name: str
    title: str = ""
    kind: str = ""
    parent: str = ""
    """The id of the call whose sub-agent makes this call; empty for the agent itself."""
    status: str = ""
    input: Json = None
    locations: Json = None
    content: Json = None
    """The last content that was reported while the call was running. Content reported before that describes the call, not its output."""
    raw: Json = None
    noted: Json = None
    """A result that was reported before the call's end."""
    diff: str = ""
    terminal: Rope = ()
    """Terminal output that codex-acp sends in `_meta`."""
    exit: JsonObject | None = None
    terminals: tuple[str, ...] = ()
    """The terminals run by moot whose output the call shows."""
    preliminary: str = ""
    """The last preliminary output shown."""
    shown: bool = False
    """True once the call's input is complete."""
    settled: bool = False


def begin(call: Call) -> Chunk:
    """Return the call's first chunk."""
    return {"type": "tool-input-start", **_head(call)}


def merge_update(call: Call, update: JsonObject) -> Call:
    """Return the call with the fields of a message merged into it. Fields that are not in the message are kept."""
    title, kind, status = (as_text(update.get(name)) for name in ("title", "kind", "status"))
    call = call._replace(title=title or call.title, kind=kind or call.kind, status=status or call.status)
    if not call.shown and update.get("rawInput") not in (None, {}):
        call = call._replace(input=update["rawInput"])
    if update.get("locations"):
        call = call._replace(locations=update["locations"])
    if update.get("rawOutput") is not None:
        call = call._replace(raw=update["rawOutput"])
    if update.get("content"):
        content = update["content"]
        diff = "".join(map(_diff, items_of(content, "diff")))
        terminals = tuple(as_text(item.get("terminalId")) for item in items_of(content, "terminal") if item.get("terminalId"))
        call = call._replace(diff=diff or call.diff, terminals=terminals or call.terminals)
        # before a call runs, its content describes what it will do ("Run a command"), as does the first mention of a running call
        if status in _TERMINAL or (status and update.get("sessionUpdate") == "tool_call_update"):
            call = call._replace(content=content)
    meta = as_object(update.get("_meta"))
    return _merge_meta(call, meta) if meta else call


def advance(call: Call, streams: dict[str, str]) -> tuple[Call, tuple[Chunk, ...]]:
    """Return the call and the chunks for its current stage. `streams` contains the output of each of moot's terminals."""
    if call.status in _TERMINAL:
        call, chunks = show(call)
        call, end = settle(call, streams)
        return call, (*chunks, end)
    chunks: tuple[Chunk, ...] = ()
    if call.status == "in_progress":
        call, chunks = show(call)
        text = _output(call, streams) if call.content or call.terminal or call.terminals else ""
        known = len(call.preliminary)
        if text and text != call.preliminary and (len(text) <= _ALWAYS or len(text) * 4 >= known * 5):
            call = call._replace(preliminary=text)
            chunks = (*chunks, {**tool_output(call.id, text), "preliminary": True})
    return call, chunks


def show(call: Call) -> tuple[Call, tuple[Chunk, ...]]:
    """Return the call and the chunk with its input as known so far, or no chunk if the input has already been shown."""
    if call.shown:
        return call, ()
    arguments = call.input
    if arguments in (None, {}):  # Gemini CLI never sends an input, so use the text that it shows to users
        path = next((as_text(as_object(place).get("path")) for place in as_list(call.locations)), "")
        name, value = (
            ("command", call.title) if call.kind == "execute" and call.title else ("path", path) if path else ("title", call.title)
        )
        shown: JsonObject = {name: value}
        arguments = shown if value else {}
    return call._replace(shown=True, input=None), ({"type": "tool-input-available", **_head(call), "input": arguments},)


def settle(call: Call, streams: dict[str, str], failure: str = "") -> tuple[Call, Chunk]:
    """Return the settled call and the chunk with its output. `failure` is the reason if the agent sent no output."""
    text = _output(call, streams)
    if failure:
        chunk = tool_error(call.id, f"{failure}; its output so far:\n{text}" if text else failure)
    elif call.status == "failed":
        chunk = tool_error(call.id, text or "the agent says that the call failed, and not why")
    else:
        chunk = tool_output(call.id, text)
    if call.exit and call.exit.get("exit_code") is not None:
        chunk["toolMetadata"] = {**_metadata(call), "exit_code": call.exit["exit_code"]}
    return _forget(call), chunk


def deny(call: Call) -> tuple[Call, tuple[Chunk, ...]]:
    """Return the settled call and the chunks for a call that the user denied."""
    call, chunks = show(call)
    return _forget(call), (*chunks, tool_denied(call.id, approval=call.id))


def _forget(call: Call) -> Call:
    """Return a settled call with only the fields that identify it."""
    return Call(call.id, call.vendor_id, call.name, shown=True, settled=True)


def _merge_meta(call: Call, meta: JsonObject) -> Call:
    delta, exit = as_object(meta.get("terminal_output_delta")), as_object(meta.get("terminal_exit"))
    if text := as_text(delta.get("data")):
        call = call._replace(terminal=join(call.terminal, text))
    # claude-agent-acp reports a result before the call's end; a cancelled call has no other output
    if (details := as_object(meta.get("claudeCode")).get("toolResponse")) is not None:
        call = call._replace(noted=details)
    return call._replace(exit=exit) if exit else call


def _output(call: Call, streams: dict[str, str]) -> str:
    terminal = "".join(call.terminal) or "\n".join(text for id in call.terminals if (text := streams.get(id)))
    text = output_text(call.content, call.raw, terminal, call.noted)
    return f"{text}\n{call.diff}" if text and call.diff else text or call.diff


def _head(call: Call) -> JsonObject:
    head: JsonObject = {"toolCallId": call.id, "toolName": call.name, "providerExecuted": True, "dynamic": True}
    if call.title:
        head["title"] = call.title
    return {**head, "toolMetadata": _metadata(call)}


def _metadata(call: Call) -> JsonObject:
    acp: JsonObject = {"kind": call.kind} if call.kind else {}
    if call.locations:
        acp["locations"] = call.locations
    return nested({"vendorId": call.vendor_id, "acp": acp}, call.parent)
