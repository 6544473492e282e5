"""Reader for Codex's session files: one message per prompt, with the same parts that the app-server translator produces.

Nearly everything is recorded twice, as an item of the model API and as a display event. Text and reasoning are taken from the items. Events
contain more details about calls, so an event overrides the item of its call.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from moot.convert.agents.codex_calls import (
    NAME,
    Call,
    camel,
    input_of,
    is_call,
    mark_own,
    note_of,
    output_of,
    plan_of,
    unwrap_shell,
    usage_of,
)
from moot.convert.agents.session import PREFIX, SessionMessage, SessionStep
from moot.convert.vendor import as_list, as_object, as_text, count
from moot.convert.writer import read_arguments
from moot.types.canonical import Json, JsonObject, loads
from moot.types.chunk import Chunk, tool_denied, tool_error, tool_output
from moot.types.message import Part, text_part

API = "openai"
CALLS = frozenset({"function_call", "custom_tool_call", "local_shell_call", "web_search_call", "image_generation_call", "tool_search_call"})
"""Types of API items that are tool calls."""
OUTPUT_TYPES = frozenset({"function_call_output", "custom_tool_call_output", "tool_search_output"})
_SHELLS = frozenset({"shell", "local_shell", "shell_command", "exec_command", "container.exec"})
_EXIT = re.compile(r"(?:Exit code:|Process exited with code) (-?\d+)")
_OUTPUT = "\nOutput:\n"
_REFUSED = ("exec command rejected by user", "rejected by user", "patch rejected by user")
_MARK = re.compile(r"<image(?: name=[^>]*)?>|</image>")
"""Markers around an image in a prompt, each in a separate text block."""


def user_parts(content: Json) -> tuple[Part, ...]:
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


def reasoning_part(item: JsonObject) -> Part | None:
    """Return the part for a `reasoning` item, including its encrypted content, or None if it is empty."""
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


def call_input(item: JsonObject) -> tuple[str, Json]:
    """Return the name and input of a call, in the format of the app-server if that is known."""
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
    return unwrap_shell(shlex.join(words) if words is not None else as_text(command))


def _arguments(arguments: Json) -> Json:
    if isinstance(arguments, str):
        try:
            return read_arguments(arguments)
        except ValueError:
            return {"arguments": arguments}
    return arguments if isinstance(arguments, dict) else {}


def vendor_output(item: JsonObject, call: Call) -> Chunk:
    """Return the chunk with the output of a tool that the vendor ran."""
    if encoded := as_text(item.get("result")):
        picture: Json = {"type": "file", "mediaType": "image/png", "url": f"data:image/png;base64,{encoded}"}
        return mark_own(tool_output(call.id, {"type": "content", "value": [picture]}), call)
    return mark_own(tool_output(call.id, as_text(as_object(item.get("action")).get("query"))), call)


def outcome_of(item: JsonObject) -> Chunk:
    """Return the chunk with the output of a call. Its item contains text with or without a header, JSON text, or pieces."""
    id = as_text(item.get("call_id"))
    call = Call(id, id, "")
    output = item.get("output", item.get("tools"))
    if isinstance(output, dict):  # older files
        failed = output.get("success") is False
        output = output.get("content")
        if failed:
            return mark_own(tool_error(call.id, as_text(output) or "failed"), call)
    if isinstance(output, list):
        parts = user_parts(output)
        if all(part["type"] == "text" for part in parts):
            return mark_own(tool_output(call.id, "\n".join(as_text(part["text"]) for part in parts)), call)
        return mark_own(
            tool_output(call.id, {"type": "content", "value": [{name: part[name] for name in part if name != "state"} for part in parts]}),
            call,
        )
    text, code = _split_output(as_text(output))
    if text.startswith(_REFUSED):
        return tool_denied(call.id, approval=call.id, reason=text)
    facts: JsonObject = {"exitCode": code} if code is not None else {}
    if code:
        return mark_own(tool_error(call.id, f"exit code {code}\n{text}".rstrip()), call, facts)
    return mark_own(tool_output(call.id, text), call, facts)


def _split_output(text: str) -> tuple[str, int | None]:
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
    """Return an item of the file with the field names of the app-server."""
    renamed: JsonObject = {camel(name): value for name, value in item.items()}
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
        renamed["changes"] = [
            {"path": path, "kind": as_text(as_object(change).get("type")) or next(iter(as_object(change)), "change")}
            for path, change in changes.items()
        ]
    return renamed


def _reset(window: JsonObject, at: int) -> int:
    """Return the time in ms at which a limit resets; 0 if it is unknown."""
    later = count(window.get("resets_in_seconds"))
    return (count(window.get("resets_at")) or 0) * 1000 if later is None else at + later * 1000 if at else 0


@dataclass(slots=True)
class _Step(SessionStep):
    counted: bool = False
    told: bool = False
    """True if the token count comes from the model call and not from a display event."""


class CodexMessage(SessionMessage):
    """An assistant's message, built line by line."""

    __slots__ = ("_limits", "_settled", "_steps", "model", "reason", "turn")

    def __init__(self, at: int = 0, model: str = "") -> None:
        super().__init__(at)
        self._settled: dict[str, int] = {}
        self._steps: list[_Step] = []
        self._limits: list[Json] = []
        self.model = model
        self.reason = ""
        self.turn = ""
        """Codex's id for the turn, from which it can continue the session; empty until the turn is over."""

    @property
    def between(self) -> bool:
        """Return True if the next text belongs to a new model call."""
        return not self._steps or self._steps[-1].counted

    def item(self, item: JsonObject, at: int = 0, exactly: JsonObject | None = None) -> None:
        """Add an API item: text, reasoning, a call or its output. `exactly` is the extra field of a line that moot wrote."""
        kind, part = as_text(item.get("type")), as_object((exactly or {}).get("part"))
        if kind in OUTPUT_TYPES:
            self._output(item, exactly or {})
        else:
            self._in_step(at)
            if part:
                if kind in CALLS:
                    self._calls[as_text(item.get("call_id"))] = len(self._parts)
                self._parts.append(part)
                self._next_id += 1
            elif kind == "message":
                self._add_text(item)
            elif kind == "reasoning":
                thoughts = reasoning_part(item)
                self._parts += [{**thoughts, "id": f"{PREFIX}.{self._next_id}"}] if thoughts is not None else []
                self._next_id += 1
            elif kind in CALLS:
                self._call(item, kind)
        self.last_at = at or self.last_at
        if self._steps:
            self._steps[-1].until = self.last_at

    def facts(self, step: int, model: str, cost: int | None) -> None:
        """Add the facts about model call number `step` that are found in a line written by moot."""
        self.model = model or self.model
        if step > len(self._steps):
            self._steps.append(_Step("", self.model, self.last_at, self.last_at))
            self._parts.append({"type": "step-start"})
        if self._steps:
            self._steps[-1].counted = False
            self._steps[-1].cost = cost if cost is not None else self._steps[-1].cost

    def _in_step(self, at: int) -> None:
        if self.between:
            self._steps.append(_Step("", self.model, self.last_at, at))
            self._parts.append({"type": "step-start"})

    def _add_text(self, item: JsonObject) -> None:
        text = "".join(
            as_text(as_object(block).get("text")) or as_text(as_object(block).get("refusal")) for block in as_list(item.get("content"))
        )
        if text:
            self._parts.append(text_part(text))
        self._next_id += 1

    # ── calls ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _call(self, item: JsonObject, kind: str) -> None:
        id = as_text(item.get("call_id")) or as_text(item.get("id")) or f"call_{PREFIX}_{len(self._parts)}"
        if id in self._calls or id in self._settled:
            return
        name, arguments = call_input(item)
        if name == "update_plan" and isinstance(arguments, dict):
            self.event("turn/plan/updated", arguments)
            return
        self._begin_call(id, id, name, arguments)
        if kind in ("web_search_call", "image_generation_call"):
            self._settle(id, vendor_output(item, Call(id, id, name)))

    def _output(self, item: JsonObject, exactly: JsonObject) -> None:
        id = as_text(item.get("call_id"))
        if id in self._calls:
            self._settle(id, outcome_of(item))
            if exact := as_object(exactly.get("output")):
                place = self._settled[id]
                rest = {name: value for name, value in self._parts[place].items() if name not in ("output", "errorText")}
                self._parts[place] = {**rest, **exact}

    def _settle(self, id: str, chunk: Chunk) -> None:
        place = self._calls.pop(id, None)
        place = self._settled[id] if place is None else place
        self._settled[id] = place
        self._apply_output(place, chunk)

    def shown(self, item: JsonObject, at: int = 0) -> bool:
        """Add a display item. Return True if it is a call. The display item of a call contains more than the API item."""
        protocol_item = as_protocol(item)
        if not is_call(protocol_item):
            self.event(f"item/{as_text(protocol_item.get('type'))}", protocol_item)
            return False
        id = as_text(protocol_item.get("id"))
        name, arguments, _ = input_of(protocol_item)
        if id not in self._calls and id not in self._settled:
            self._in_step(at)
            self._begin_call(id, id, name, arguments)
        place = self._calls[id] if id in self._calls else self._settled[id]
        part = {key: value for key, value in self._parts[place].items() if key not in ("output", "errorText", "toolMetadata")}
        self._parts[place] = {**part, "toolName": name, "state": "input-available", "input": arguments, "toolMetadata": {"vendorId": id}}
        self._settle(id, output_of(protocol_item, Call(id, id, name, asked=True)))
        return True

    # ── the rest ──────────────────────────────────────────────────────────────────────────────────────────────────────────────────

    def event(self, method: str, fields: JsonObject) -> None:
        """Add a note for an event that the user should see; ignore other events."""
        if method == "turn/plan/updated":
            self._show_plan(plan_of(fields))
        else:
            self._show_note(note_of(method, fields), method)

    def steered(self, part: Part) -> None:
        """Add a user message that arrived while the agent was working."""
        self._parts.append(part)
        if self._steps:
            self._steps[-1].counted = True

    def took(self, usage: JsonObject, *, told: bool, id: str = "", counted: JsonObject | None = None, identity: str = "") -> bool:
        """Add the tokens of the newest model call and end its step.
        `told` is True if the tokens come from the call itself and not from a display event.

        Return whether the call's `identity` has been set.
        `counted` is the usage in a line that moot wrote, in moot's format; it takes precedence.
        """
        if not self._steps:
            return False
        step = self._steps[-1]
        is_new = not step.identity
        step.identity = step.identity or identity
        if told or not step.told:
            step.usage, step.told, step.id = counted or usage_of(usage).to_json(), told, id or step.id
        step.counted = True
        return is_new

    def limited(self, limits: JsonObject, at: int) -> None:
        """Set how much of the subscription's limits is used, replacing earlier values. The limits apply to all machines of the account."""
        found = [as_object(limits.get(name)) for name in ("primary", "secondary")]
        self._limits = [
            {"limit": as_text(limits.get("limit_id")), "minutes": minutes, "used": used, "resets_at": resets, "at": at}
            for window in found
            if (minutes := count(window.get("window_minutes"))) and (resets := _reset(window, at))
            if isinstance(used := window.get("used_percent"), int | float)
        ] or self._limits

    def identities(self) -> tuple[str, ...]:
        """Return the identity of each model call."""
        return tuple([step.identity for step in self._steps])

    def metadata(self) -> JsonObject:
        """Return the metadata, in the same format as for moot's own runs."""
        reason = "error" if self.error else self.reason or "other"
        facts: JsonObject = {"agent": NAME, "finish_reason": reason, "steps": list(self._step_facts(reason))}
        if self._limits:
            facts["limits"] = self._limits
        model = self._steps[-1].model if self._steps else self.model
        return {**facts, "model": model, "provider": API} if model else facts

    def _step_facts(self, reason: str) -> Iterator[Json]:
        for number, step in enumerate(self._steps, 1):
            facts = step.facts(number, reason if number == len(self._steps) else "tool-calls", step.usage, self.began)
            yield {**facts, "turn_id": self.turn} if self.turn else facts
