"""The format `cursor-ide`: chats of Cursor's editor in its database `User/globalStorage/state.vscdb`.

Old chats are in the database of a workspace. A composer is a conversation, and its bubbles are separate rows. Values are read only by key,
because the database may be several GB large and also contains the access token. The database is not documented. Reference: the findings of
other programs that read it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from moot.formats.editors.folders import path_of, user_folders, workspace_folder
from moot.formats.kit.bases import ReadOnly
from moot.formats.kit.database import Connection, first_value, is_database, open_own, readable_rows
from moot.formats.kit.fields import flag, items, milliseconds, obj, objects, text, whole_number
from moot.formats.kit.files import files_below, read_head
from moot.formats.kit.json import json_container, json_object
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, reasoning, step, tool_call
from moot.types.canonical import Json, JsonObject, dumps
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part
from moot.types.usage import Usage

_OWN = {"cursorDiskKV": {"key", "value"}}
_COMPOSERS = "SELECT key FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' ORDER BY key"
_BUBBLES = "SELECT key FROM cursorDiskKV WHERE key >= ? AND key < ? LIMIT 1"
VALUE = "SELECT value FROM cursorDiskKV WHERE key = ?"
_ITEM = "SELECT value FROM ItemTable WHERE key = ?"
_TABS = "workbench.panel.aichat.view.aichat.chatdata"
"""Key of the oldest chats, in the database of a workspace."""
_USER, _MODEL = (1, "user"), (2, "ai")
_TOOL = 15
"""`capabilityType` of a bubble with a tool call."""


class CursorIde(ReadOnly):
    name = "cursor-ide"
    version = 1
    stored_files: tuple[str, ...] = ("state.vscdb", "workspace.json")
    suffix = ".vscdb"

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        for user in user_folders(home, environ, ("Cursor",)):
            yield user / "globalStorage" / "state.vscdb"
            yield user / "workspaceStorage"

    def sniff(self, path: Path, head: bytes) -> bool:
        return is_database(path, head, _OWN)

    def sources(self, folder: Path) -> Iterator[Path]:
        """Yield the databases with chats. Databases of workspaces contain chats only if they are old."""
        for path in files_below(folder, "state.vscdb", depth=3):
            has_chats = path.parent.name == "globalStorage" or first_value(path, _ITEM, _TABS)
            if path.name == "state.vscdb" and has_chats and self.sniff(path, read_head(path)):
                yield path

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        with open_own(path, "Cursor", _OWN) as connection:
            problems: list[str] = []
            keys = [str(row[0]) for row in readable_rows(connection, problems, _COMPOSERS)]
            parents: dict[str, str] = {}
            for key in keys:
                for child in items(json_object(_value(connection, key)), "subComposerIds"):
                    parents[str(child)] = key.removeprefix("composerData:")
            folders = _folders(path)
            for key in sorted(keys, key=lambda one: one.removeprefix("composerData:") in parents):
                id, written = key.removeprefix("composerData:"), _value(connection, key)
                value = json_object(written)
                headers = _headers(value)
                if headers or not value or _has_bubbles(connection, id):
                    records = _composer(connection, id, written, headers, folders.get(id, ""))
                    yield ImportedConversation(id, entries_of(records), parents.get(id), started_at=milliseconds(value, "createdAt"))
            if problems:
                yield ImportedConversation("damaged", tuple(ImportedRecord(b"", problem=problem) for problem in problems))
        yield from _tabs(path)

    def knows_record(self, body: JsonObject) -> bool:
        return body.keys() == {"key", "value"}  # a bubble is checked when it is read


def _value(connection: Connection, key: str) -> str:
    row = next(readable_rows(connection, [], VALUE, key), None)
    return _decoded(row[0]) if row is not None else ""


def _decoded(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value if isinstance(value, str) else ""


def _has_bubbles(connection: Connection, id: str) -> bool:
    return next(readable_rows(connection, [], _BUBBLES, f"bubbleId:{id}:", f"bubbleId:{id};"), None) is not None


def _headers(composer: JsonObject) -> list[JsonObject]:
    """Return the bubbles in order. Newer versions list only the ids of the bubbles; older versions store the bubbles in the composer."""
    listed = objects(composer, "fullConversationHeadersOnly") or objects(composer, "conversation")
    return listed or [one for one in obj(composer, "conversationMap").values() if isinstance(one, dict)]


def _folders(path: Path) -> dict[str, str]:
    """Return the project folder of each composer that is listed in a workspace."""
    found: dict[str, str] = {}
    for listed in files_below(path.parent.parent / "workspaceStorage", "state.vscdb", depth=2):
        for one in objects(json_object(first_value(listed, _ITEM, "composer.composerData")), "allComposers"):
            found[text(one, "composerId")] = workspace_folder(listed.parent)
    return found


def _row(key: str, value: str) -> tuple[bytes, JsonObject]:
    """Return a row as JSON."""
    row: JsonObject = {"key": key, "value": value}
    return dumps(row) + b"\n", row


def _composer(connection: Connection, id: str, written: str, headers: list[JsonObject], folder: str) -> Records:
    raw, row = _row(f"composerData:{id}", written)
    composer = json_object(written)
    problem = f"composer {id!r} is not valid JSON" if not composer else "" if headers else f"composer {id!r} does not list its bubbles"
    yield ImportedRecord(raw, row, problem)
    bubbles: list[tuple[bytes, JsonObject]] = []
    model = text(composer, "modelConfig", "modelName")
    for header in headers:
        bubble_id = text(header, "bubbleId")
        value = _value(connection, f"bubbleId:{id}:{bubble_id}")
        if value:
            raw, row = _row(f"bubbleId:{id}:{bubble_id}", value)
            bubbles.append((raw, json_object(value)))
        elif "text" in header:
            bubbles.append((dumps(header) + b"\n", header))
        else:
            yield ImportedRecord(dumps(header) + b"\n", header, f"bubble {bubble_id!r} is missing")
    named = (str(uri) for _, bubble in bubbles for uri in items(bubble, "workspaceUris"))
    yield ImportedFacts(
        title=text(composer, "name"),
        directory=folder or path_of(next(named, "")),
        agent="cursor-ide",
        model=model if model != "default" else "",
        created_at=milliseconds(composer, "createdAt"),
        updated_at=milliseconds(composer, "lastUpdatedAt"),
        archived=flag(composer, "isArchived"),
    )
    yield from _messages(bubbles, model)


@dataclass(slots=True)
class _Step:
    """The bubbles of one model call. Text or reasoning after a tool call starts a new model call."""

    id: str
    at: int
    raws: list[bytes] = field(default_factory=list[bytes])
    parts: list[Part] = field(default_factory=list[Part])
    outputs: list[Output] = field(default_factory=list[Output])
    usage: Usage = field(default_factory=Usage)
    model: str = ""

    def record(self) -> SessionRecord:
        facts = step(self.model, "cursor", usage=self.usage.to_json()) if self.model else step("", usage=self.usage.to_json())
        return SessionRecord(
            self.id, "assistant", b"".join(self.raws), tuple(self.parts), tuple(self.outputs), at=self.at, step=facts or None
        )

    def take(self, raw: bytes, bubble: JsonObject, parts: list[Part]) -> None:
        self.raws.append(raw)
        self.parts += parts
        if (output := _output(obj(bubble, "toolFormerData"))) is not None:
            self.outputs.append(output)
        sent, received = whole_number(bubble, "tokenCount", "inputTokens"), whole_number(bubble, "tokenCount", "outputTokens")
        if sent or received:  # most bubbles have 0, because the counts are stored only on the server
            self.usage += Usage(sent, received)


def _messages(bubbles: Iterable[tuple[bytes, JsonObject]], model: str) -> Records:
    open_: _Step | None = None
    for number, (raw, bubble) in enumerate(bubbles, 1):
        id = text(bubble, "bubbleId") or text(bubble, "id") or str(number)
        kind, at = bubble.get("type"), milliseconds(bubble, "createdAt")
        words = bubble.get("text", bubble.get("rawText"))
        is_lost = bubble.get("capabilityType") == _TOOL and not text(bubble, "toolFormerData", "name")
        if kind not in (*_USER, *_MODEL) or not isinstance(words, str) or is_lost:
            yield ImportedRecord(raw, bubble, f"bubble {id!r} has an unknown shape")
            continue
        parts = _parts(bubble, id, words)
        spoken = bool(parts) and parts[0]["type"] in ("text", "reasoning")
        if open_ is not None and (kind in _USER or (spoken and any(part["type"] == "dynamic-tool" for part in open_.parts))):
            yield open_.record()
            open_ = None
        if kind in _USER:
            yield SessionRecord(id, "user", raw, tuple(parts), at=at)
        elif parts:
            used = text(bubble, "modelInfo", "modelName") or model
            open_ = open_ or _Step(id, at, model=used if used != "default" else "")
            open_.take(raw, bubble, parts)
        else:
            yield ImportedRecord(raw, bubble)
    if open_ is not None:
        yield open_.record()


def _parts(bubble: JsonObject, id: str, words: str) -> list[Part]:
    parts: list[Part] = []
    thoughts = objects(bubble, "allThinkingBlocks") or [obj(bubble, "thinking")]
    for thought in thoughts:
        if told := text(thought, "text") or text(thought, "thinking"):
            signature = text(thought, "signature")
            parts.append(reasoning(told, {"anthropic": {"signature": signature}} if signature else None))
    if words:
        parts.append(text_part(words))
    if tool := obj(bubble, "toolFormerData"):
        written = tool.get("rawArgs") or tool.get("params")
        rest = {name: one for name, one in tool.items() if name not in ("name", "rawArgs", "params", "toolCallId")}
        if _output(tool) is not None:
            rest.pop("result", None)
        part = tool_call(text(tool, "toolCallId") or id, text(tool, "name"), json_container(written))
        parts.append({**part, "toolMetadata": {"cursor": rest}})
    return parts


def _output(tool: JsonObject) -> Output | None:
    id, status, result = text(tool, "toolCallId"), text(tool, "status"), json_container(tool.get("result"))
    if result in (None, "") and status not in ("error", "cancelled"):
        return None
    denied = text(tool, "userDecision") == "rejected"
    value: Json = result if result is not None else text(tool, "error") or status
    return Output(id, value, status in ("error", "cancelled"), text(tool, "name"), denied)


def _tabs(path: Path) -> Iterator[ImportedConversation]:
    """Yield the oldest chats."""
    folder = workspace_folder(path.parent)
    for tab in objects(json_object(first_value(path, _ITEM, _TABS)), "tabs"):
        bubbles = [(dumps(one) + b"\n", one) for one in objects(tab, "bubbles")]
        if bubbles:
            facts = ImportedFacts(
                title=text(tab, "chatTitle"), directory=folder, agent="cursor-ide", updated_at=milliseconds(tab, "lastSendTime")
            )
            yield ImportedConversation(text(tab, "tabId"), entries_of(_tab(facts, bubbles)))


def _tab(facts: ImportedFacts, bubbles: list[tuple[bytes, JsonObject]]) -> Records:
    yield facts
    yield from _messages(bubbles, "")
