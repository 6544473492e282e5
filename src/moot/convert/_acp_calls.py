"""One tool call of an ACP agent, from its first mention to its output.

Agents differ in what comes first (a permission request, an update, the call). They send outputs that replace earlier ones, and may
omit the end. Each message about a call is merged into what is known; a chunk is emitted when the call's stage changes.
"""

from __future__ import annotations

from typing import NamedTuple

from moot.convert._acp_facts import noted_result, shown_input
from moot.convert._acp_outputs import diffs_of, output_text, terminals_of
from moot.convert._vendor import as_object, as_text
from moot.convert._writer import Rope, join
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk, tool_denied, tool_error, tool_output

_ALWAYS = 4096
"""Up to this many characters, preliminary output is shown at each change. Longer output is shown only after growing by a quarter."""
_TERMINAL = {"completed", "failed"}


class Call(NamedTuple):
    id: str
    vendor_id: str
    name: str
    title: str = ""
    kind: str = ""
    parent: str = ""
    """The id of the call whose sub-agent makes this one."""
    status: str = ""
    input: Json = None
    locations: Json = None
    content: Json = None
    """The last content reported while the call ran. Earlier content describes the call, not its output."""
    raw: Json = None
    noted: Json = None
    """A result reported before the call's end."""
    diff: str = ""
    terminal: Rope = ()
    """Terminal output that codex-acp sends in `_meta`."""
    exit: JsonObject | None = None
    terminals: tuple[str, ...] = ()
    """Terminals run by moot that the call shows."""
    preliminary: str = ""
    """The last preliminary output shown."""
    shown: bool = False
    """Its input is complete."""
    settled: bool = False


def begin(call: Call) -> Chunk:
    """Return the call's first chunk."""
    return {"type": "tool-input-start", **_head(call)}


def tell(call: Call, update: JsonObject) -> Call:
    """Merge a message into the call: every field in the message replaces the known one, the rest is kept."""
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
        call = call._replace(diff=diffs_of(content) or call.diff, terminals=tuple(terminals_of(content)) or call.terminals)
        # before a call runs, its content describes what it will do ("Run a command"), as does the first mention of a running call
        if status in _TERMINAL or (status and update.get("sessionUpdate") == "tool_call_update"):
            call = call._replace(content=content)
    meta = as_object(update.get("_meta"))
    return _noted(call, meta) if meta else call


def advance(call: Call, streams: dict[str, str]) -> tuple[Call, tuple[Chunk, ...]]:
    """Emit the chunks for the call's current stage. `streams` are the outputs of terminals run by moot."""
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
    """Emit the call's input as known so far, once."""
    if call.shown:
        return call, ()
    arguments = shown_input(call.input, call.title, call.kind, call.locations)
    return call._replace(shown=True, input=None), ({"type": "tool-input-available", **_head(call), "input": arguments},)


def settle(call: Call, streams: dict[str, str], failure: str = "") -> tuple[Call, Chunk]:
    """Emit the call's one output. With `failure`, the agent ended without giving one."""
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
    """Emit the output of a call that was refused."""
    call, chunks = show(call)
    return _forget(call), (*chunks, tool_denied(call.id))


def _forget(call: Call) -> Call:
    """Reduce a settled call to what identifies it."""
    return Call(call.id, call.vendor_id, call.name, shown=True, settled=True)


def _noted(call: Call, meta: JsonObject) -> Call:
    delta, exit = as_object(meta.get("terminal_output_delta")), as_object(meta.get("terminal_exit"))
    if text := as_text(delta.get("data")):
        call = call._replace(terminal=join(call.terminal, text))
    if (details := noted_result(meta)) is not None:
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
    if call.parent:
        acp["parent"] = call.parent
    return {"vendorId": call.vendor_id, "acp": acp}
