"""Runs and stored messages as updates for the editor: texts, thoughts, tool calls and plans."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeAlias

from acp.helpers import ContentBlock, image_block, plan_entry, resource_link_block, text_block, update_plan
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    PlanEntryStatus,
    ToolCallProgress,
    ToolCallStart,
    UserMessageChunk,
)

from moot.convert.files.attachments import decode_data_url, facts_of, label_of, typed_parts
from moot.editors.calls import Kind, finished, kind_of, places_of, running
from moot.types.canonical import Json, JsonObject
from moot.types.chunk import Chunk
from moot.types.event import Event
from moot.types.message import Message, Part, PlanEntry, is_tool, note_of, plan_of, tool_name
from moot.types.store import Store

Update: TypeAlias = AgentMessageChunk | AgentThoughtChunk | UserMessageChunk | ToolCallStart | ToolCallProgress | AgentPlanUpdate

_STATUSES: dict[str, PlanEntryStatus] = {"in_progress": "in_progress", "completed": "completed"}
_TODO = "todo"


def said(text: str, message: str | None = None) -> AgentMessageChunk:
    """Return a text of the agent."""
    return AgentMessageChunk(session_update="agent_message_chunk", content=text_block(text), message_id=message)


def thought(text: str, message: str | None = None) -> AgentThoughtChunk:
    """Return a thought of the agent."""
    return AgentThoughtChunk(session_update="agent_thought_chunk", content=text_block(text), message_id=message)


def plan(entries: Iterable[PlanEntry]) -> AgentPlanUpdate:
    """Return the whole plan."""
    return update_plan(plan_entry(one.content, status=_STATUSES.get(one.status, "pending")) for one in entries)


def todo_plan(given: Json) -> AgentPlanUpdate | None:
    """Return the list in a call of the tool `todo`, or None if the call only shows the list."""
    items = given.get("todos") if isinstance(given, dict) else None
    return plan(plan_of({"data": {"entries": items}})) if isinstance(items, list) else None


@dataclass(slots=True)
class _Call:
    name: str
    given: Json = None
    is_shown: bool = False


class RunUpdates:
    """The updates of one run, made from its events."""

    def __init__(self, store: Store, message: str, directory: str) -> None:
        self._store = store
        self._message = message
        self._directory = directory
        self._calls: dict[str, _Call] = {}
        self._texts = False
        """True if a text was shown, so that the next one must be separated from it."""

    @property
    def calls(self) -> frozenset[str]:
        """Ids of all calls that the editor knows."""
        return frozenset(self._calls)

    async def feed(self, events: Iterable[Event]) -> list[Update]:
        """Return the updates for the run's events. Neighboring pieces of text are joined."""
        found: list[Update] = []
        for event in events:
            body = event.body if isinstance(event.body, dict) else {}
            for chunk in event.chunks:
                for update in await self._of(chunk, body):
                    _append(found, update)
        return found

    async def _of(self, chunk: Chunk, body: JsonObject) -> list[Update]:
        kind = str(chunk.get("type"))
        match kind:
            case "text-start":
                separator, self._texts = [said("\n\n", self._message)] if self._texts else [], True
                return [*separator]
            case "text-delta":
                return [said(str(chunk.get("delta", "")), self._message)]
            case "reasoning-delta":
                return [thought(str(chunk.get("delta", "")), self._message)]
            case "data-plan":
                return [plan(plan_of(chunk))]
            case "data-note":
                return [said(f"\n\n{note_of(chunk)}\n\n", self._message)]
            case "file":
                return [_said_block(await block_of(self._store, chunk), self._message)]
            case _ if kind.startswith("tool-"):
                return self._tool(kind, chunk, body)
            case _:
                return []

    def _tool(self, kind: str, chunk: Chunk, body: JsonObject) -> list[Update]:
        id = str(chunk.get("toolCallId", ""))
        call = self._calls.get(id)
        if call is None and "toolName" in chunk:
            call = self._calls[id] = _Call(str(chunk["toolName"]))
        if call is None:
            return []
        if kind in ("tool-input-available", "tool-input-error"):
            call.given = chunk.get("input")
        if call.name == _TODO:
            update = todo_plan(call.given) if kind == "tool-input-available" else None
            return [update] if update is not None else []
        match kind:
            case "tool-input-start":
                self._texts = False
                return self._start(id, call, chunk)
            case "tool-input-available":
                title, content = running(call.name, call.given, self._directory)
                started = self._start(id, call, chunk)
                facts = {"kind": _kind(call, chunk), "raw_input": call.given, "locations": places_of(call.given, self._directory)}
                return [*started, _progress(id, status="in_progress", title=title, content=content, **facts)]
            case "tool-output-available" | "tool-output-error" | "tool-input-error" | "tool-output-denied":
                return [*self._start(id, call, chunk), self._end(id, call, kind, chunk, body)]
            case _:
                return []

    def _start(self, id: str, call: _Call, chunk: Chunk) -> list[Update]:
        if call.is_shown:
            return []
        call.is_shown = True
        title = str(chunk.get("title") or call.name)
        start = ToolCallStart(session_update="tool_call", tool_call_id=id, title=title, kind=_kind(call, chunk), status="pending")
        return [start]

    def _end(self, id: str, call: _Call, kind: str, chunk: Chunk, body: JsonObject) -> ToolCallProgress:
        failed = kind != "tool-output-available"
        output = chunk.get("output") if not failed else chunk.get("errorText") or chunk.get("reason") or "Not allowed."
        result = body.get("value")
        value = result.get("value") if isinstance(result, dict) else None
        title, content = finished(call.name, call.given, output, value, self._directory, failed=failed)
        if chunk.get("preliminary") is True:
            return _progress(id, content=content)
        places = places_of(call.given, self._directory, value)
        return _progress(id, status="failed" if failed else "completed", title=title, content=content, locations=places)


def _kind(call: _Call, chunk: Chunk) -> Kind:
    return kind_of(call.name, call.given if isinstance(call.given, dict) else {}, chunk.get("toolMetadata"))


def _progress(id: str, **fields: object) -> ToolCallProgress:
    values = {"sessionUpdate": "tool_call_update", "toolCallId": id, **fields}
    return ToolCallProgress.model_validate(values)


def _append(found: list[Update], update: Update) -> None:
    """Add an update, or join it with the last one if both are pieces of the same text."""
    last = found[-1] if found else None
    for kind in (AgentMessageChunk, AgentThoughtChunk):
        if isinstance(last, kind) and isinstance(update, kind) and last.content.type == "text" and update.content.type == "text":
            last.content.text += update.content.text
            return
    found.append(update)


async def block_of(store: Store, part: Part | Chunk) -> ContentBlock:
    """Return a file of a message as content: an image, a link to a local file, or its name."""
    url, media_type = str(part.get("url", "")), str(part.get("mediaType", ""))
    path = facts_of(part).get("path")
    if media_type.startswith("image/"):
        data = await store.blobs.get(url.removeprefix("blob:")) if url.startswith("blob:") else decode_data_url(part)
        if data is not None:
            return image_block(b64encode(data).decode(), media_type)
    if isinstance(path, str) and path.startswith("/"):
        return resource_link_block(str(part.get("filename") or path), f"file://{path}", mime_type=media_type or None)
    return text_block(f"[{label_of(part)}]")


def _said_block(block: ContentBlock, message: str) -> AgentMessageChunk:
    return AgentMessageChunk(session_update="agent_message_chunk", content=block, message_id=message)


async def stored_updates(store: Store, message: Message, directory: str) -> list[Update]:
    """Return the updates that show a stored message."""
    found: list[Update] = []
    for part in typed_parts(message.parts) if message.role == "user" else message.parts:
        kind, text = str(part.get("type")), str(part.get("text", ""))
        if message.role == "user" and kind in ("text", "file"):
            block = text_block(text) if kind == "text" else await block_of(store, part)
            found.append(UserMessageChunk(session_update="user_message_chunk", content=block, message_id=message.id))
        elif kind == "text" and message.role == "assistant":
            found.append(said(text, message.id))
        elif kind == "reasoning" and text:
            found.append(thought(text, message.id))
        elif kind == "file":
            found.append(_said_block(await block_of(store, part), message.id))
        elif kind == "data-plan":
            found.append(plan(plan_of(part)))
        elif is_tool(part):
            found += _stored_call(part, directory)
    return found


def _stored_call(part: Part, directory: str) -> list[Update]:
    name, given = tool_name(part), part.get("input")
    if name == _TODO:
        update = todo_plan(given)
        return [update] if update is not None else []
    state = part.get("state")
    failed = state in ("output-error", "output-denied")
    if failed or state == "output-available":
        output = (part.get("errorText") or "Not allowed.") if failed else part.get("output")
        title, content = finished(name, given, output, None, directory, failed=failed)
    else:
        title, content = running(name, given, directory)
    start = ToolCallStart(
        session_update="tool_call",
        tool_call_id=str(part.get("toolCallId", "")),
        title=title,
        kind=kind_of(name, given if isinstance(given, dict) else {}, part.get("toolMetadata")),
        status="failed" if failed else "completed" if state == "output-available" else "pending",
        content=content,
        locations=places_of(given, directory),
        raw_input=given,
    )
    return [start]
