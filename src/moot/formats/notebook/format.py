"""The format `ipynb`: notebooks of moot's kernel, and notebooks with the Python code of answers.

The metadata of a notebook contains the messages as in the format `json`, and the outputs of moot's kernel contain the messages of their
cell. The cells themselves are kept with the message that they belong to, or else with the next one.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.fidelity import ALL_KEPT, fidelity_of
from moot.formats.kit.fields import items, obj, objects, text, whole_number
from moot.formats.kit.files import open_regular
from moot.formats.kit.json import Element, PartialDocument, load_document
from moot.formats.notebook.cells import cells_of, prompt_cell, title_cell
from moot.formats.notebook.outputs import RECORD
from moot.formats.portable import ConversationReader, JsonDocument, conversations_in, unreadable
from moot.types.canonical import Json, JsonObject, dumps, empty, loads_object
from moot.types.format import Entry, ExportedConversation, ExportFile, FidelityLevel, ImportedConversation
from moot.types.message import Message

KERNEL: JsonObject = {"kernelspec": {"display_name": "moot", "language": "moot", "name": "moot"}, "language_info": {"name": "moot"}}
_PYTHON: JsonObject = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}
_DEFAULT: JsonObject = {"metadata": _PYTHON, "nbformat": 4, "nbformat_minor": 5}
_LAYOUT = "notebook"
"""Key of a message's metadata with its cells as they were in an imported notebook."""
_END = 1 << 16
"""Number of bytes at the end of a file that may contain the notebook's metadata."""
_BEGIN = re.compile(rb'\s*\{\s*"(?:cells|metadata|nbformat|nbformat_minor)"\s*:')
_MARK = re.compile(rb'"moot"\s*:\s*\{|"name"\s*:\s*"moot"|' + re.escape(RECORD.encode()))


class Ipynb:
    """Notebooks of moot's kernel, and notebooks with the Python code of answers in cells."""

    name = "ipynb"
    version = 2
    suffix = ".ipynb"
    words = "a notebook with the answers' Python code in runnable cells, or for moot's kernel"
    holds: Mapping[str, FidelityLevel] = {**ALL_KEPT, "branches": "kept", "sub-agents": "kept"}

    def sniff(self, path: Path, head: bytes) -> bool:
        if _BEGIN.match(head) is None:
            return False
        return (b'"cells"' in head or b'"cell_type"' in head) and _MARK.search(head + b"\n" + _end_of(path)) is not None

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        found = load_document(path)
        metadata = PartialDocument(found.raw("metadata"))
        stored = PartialDocument(metadata.raw("moot"))
        cells = [_Cell(element) for element in found.elements("cells")]
        is_ours = stored.is_object or text(metadata.value("kernelspec"), "name") == "moot" or any(cell.record.is_object for cell in cells)
        if "cells" not in found or not is_ours:
            raise UsageError(f"{str(path)!r} is not a notebook of moot: it contains no conversation.")
        inside = list(conversations_in(stored.data, None, 0)) if stored.is_object and "messages" in stored else []
        reader = _Reader(path, found, stored, cells)
        yield ImportedConversation(inside[0].source_id if inside else reader.id, reader.entries())
        yield from inside[1:]

    def write(self, exported: ExportedConversation) -> ExportFile:
        document = loads_object(JsonDocument().write(_without_layout(exported)).data)
        layouts = [layout for message in (*exported.messages, *exported.others) if (layout := obj(message.metadata, _LAYOUT))]
        is_for_kernel = _is_for_kernel(exported)
        known = next((found for layout in layouts if (found := obj(layout, "document"))), empty())
        metadata = obj(known, "metadata") or (KERNEL if is_for_kernel else _PYTHON)
        cells = list[Json](_written(exported, is_for_kernel))
        value: JsonObject = {"nbformat": 4, "nbformat_minor": 5, **known}
        value |= {"metadata": {**metadata, "moot": document}, "cells": cells}
        return ExportFile(dumps(value) + b"\n", fidelity_of(exported, self.holds))


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


class _Cell:
    """A cell of a notebook, without the record in its outputs."""

    def __init__(self, element: Element) -> None:
        self.element = element
        self.record = PartialDocument(b"")
        """The record of the last answer in the outputs."""
        for output in PartialDocument(element.raw).elements("outputs") if element.value is not None else ():
            record = PartialDocument(PartialDocument(PartialDocument(output.raw).raw("data")).raw(RECORD))
            self.record = record if record.is_object else self.record
        value = element.value or {}
        outputs = [_without_record(output) for output in objects(value, "outputs")]
        self.value: JsonObject = (
            {**value, "outputs": list[Json](outputs)} if outputs and len(outputs) == len(items(value, "outputs")) else value
        )

    @property
    def message(self) -> str:
        """Return the id of the message that the cell belongs to; empty = none."""
        ids = [text(one.value, "id") for one in self.record.elements("messages")] if self.record.is_object else []
        return next(filter(None, ids), "") or text(self.value, "metadata", "moot", "message")

    @property
    def own_id(self) -> str:
        """Return the id of the prompt in a cell without a record."""
        return text(self.value, "id") or f"cell-{self.element.number}"

    @property
    def is_prompt(self) -> bool:
        """Return True for a prompt whose answer has no record, because a program has removed it."""
        source = _source(self.value)
        is_run = not self.record.is_object and self.value.get("cell_type") == "code" and bool(objects(self.value, "outputs"))
        return is_run and bool(source.strip()) and not source.lstrip().startswith(("%", "/"))


class _Reader:
    """The messages of a notebook, with the cells that belong to each of them."""

    def __init__(self, path: Path, found: PartialDocument, stored: PartialDocument, cells: list[_Cell]) -> None:
        self._found, self._cells = found, cells
        self._conversation = PartialDocument(stored.raw("conversation"))
        self._stored, self._records = stored, [cell for cell in cells if cell.record.is_object]
        known = next((one.record.raw("conversation") for one in self._records), b"")
        self._value = obj(stored.value("conversation")) or obj(PartialDocument(b'{"c":' + known + b"}").value("c"))
        self.id = text(self._value, "id") or hashlib.sha256(str(path.absolute()).encode("utf-8", "surrogateescape")).hexdigest()
        self._is_python = text(PartialDocument(found.raw("metadata")).value("kernelspec"), "name") != "moot"

    def entries(self) -> Iterator[Entry]:
        messages, problems = self._messages()
        values = [(one.value or {}, one.raw) for one in messages]
        head = self._head(messages)
        values += self._prompts({text(value, "id") for value, _ in values}, head)
        held = self._held([text(value, "id") for value, _ in values])
        reader = ConversationReader({**self._value, **({"head": head} if head else {})})
        yield reader.begin()
        document, title = self._document(), text(self._value, "title")
        for number, (value, raw) in enumerate(values, 1):
            layout: JsonObject = self._layout(value, held.get(text(value, "id"), []), number, title)
            if document and (layout or document != _DEFAULT):
                layout = {**layout, "document": document}
                document = empty()
            yield from reader.read(_with_layout(value, layout), raw, f"message {number}")
        yield from problems
        if not self._found.whole:
            yield from unreadable(b"", None, "the notebook is damaged or truncated")
        if "messages" not in self._stored and self._stored.is_object:
            yield from unreadable(self._stored.data, obj(self._stored.value("conversation")), "'messages' is missing")
        yield reader.end()

    def _messages(self) -> tuple[list[Element], list[Entry]]:
        """Return the messages in the metadata and in the outputs, each once, and the unreadable ones."""
        messages: list[Element] = []
        problems: list[Entry] = []
        seen = set[str]()
        for source in (self._stored, *(cell.record for cell in self._records)):
            for one in source.elements("messages") if source.is_object else ():
                id = text(one.value, "id")
                if one.problem or not id:
                    problems += unreadable(one.raw, one.value, one.problem or "a message without an id")
                elif id not in seen:
                    seen.add(id)
                    messages.append(one)
        problems += [
            entry for cell in self._cells if cell.element.problem for entry in unreadable(cell.element.raw, None, cell.element.problem)
        ]
        return messages, problems

    def _held(self, ids: list[str]) -> dict[str, list[_Cell]]:
        """Return the cells of each message. Cells at the end that belong to no message are kept with the last message."""
        held: dict[str, list[_Cell]] = {}
        waiting: list[_Cell] = []
        last = ""
        for cell in self._cells:
            waiting.append(cell)
            if (id := cell.message or (cell.own_id if cell.is_prompt else "")) in ids:
                held.setdefault(id, []).extend(waiting)
                waiting, last = [], id
        if waiting and (last := last or next(iter(ids), "")):
            held.setdefault(last, []).extend(waiting)
        return held

    def _head(self, messages: list[Element]) -> str:
        """Return the last message of the shown branch: the latest one of the outputs, or else the one that the metadata names."""
        in_outputs = [one.value or {} for cell in self._records for one in cell.record.elements("messages")]
        latest = max(in_outputs, key=lambda value: _time(value), default=None)
        ids = {text(one.value, "id") for one in messages}
        named = text(self._value, "head")
        if latest is None or _time(latest) < max((_time(one.value or {}) for one in messages), default=0):
            return named if named in ids else ""
        return text(latest, "id")

    def _layout(self, value: JsonObject, cells: list[_Cell], number: int, title: str) -> JsonObject:
        """Return the cells of a message to keep, or nothing if they are the same as those that would be written."""
        kept = cells[1:] if cells and cells[0].value == title_cell(title) and self._is_python else cells
        id, role = text(value, "id"), text(value, "role")
        if self._is_python:
            message = Message(id, "user" if role == "user" else "system" if role == "system" else "assistant", created_at=_time(value))
            message = replace(message, parts=tuple(objects(value, "parts")))
            if [_comparable(cell.value) for cell in kept] == [_comparable(cell) for cell in cells_of(message, number)]:
                return {}
        owned: list[Json] = [_owned(one.value, id) if id in (one.message, one.own_id) else one.value for one in kept]
        return {"cells": owned, "at": kept[0].element.number} if kept else {}

    def _document(self) -> JsonObject:
        """Return the notebook's own fields, without cells and messages."""
        fields: JsonObject = {name: self._found.value(name) for name in self._found.names() if name != "cells"}
        metadata = {name: one for name, one in obj(fields, "metadata").items() if name != "moot"}
        return {**fields, "metadata": metadata}

    def _prompts(self, known: set[str], head: str) -> Iterator[tuple[JsonObject, bytes]]:
        """Yield the prompt and the text of each cell whose outputs have lost their record."""
        parent: str | None = head or None
        for cell in self._cells:
            if cell.message in known or not cell.is_prompt or cell.element.problem:
                continue
            words = "\n\n".join(filter(None, map(_shown, objects(cell.value, "outputs"))))
            for id, role, said in ((cell.own_id, "user", _source(cell.value)), (f"{cell.own_id}-answer", "assistant", words)):
                part: JsonObject = {"type": "text", "text": said, "state": "done"}
                yield {"id": id, "role": role, "parent": parent, "parts": [part]}, cell.element.raw
                parent = id


def _end_of(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            size = file.seek(0, 2)
            file.seek(max(0, size - _END))
            return file.read(_END)
    except (OSError, UsageError):
        return b""


def _without_record(output: JsonObject) -> JsonObject:
    data = output.get("data")
    if not isinstance(data, dict) or RECORD not in data:
        return output
    return {**output, "data": {name: one for name, one in data.items() if name != RECORD}}


def _with_layout(value: JsonObject, layout: JsonObject) -> JsonObject:
    """Return a message with the cells of this notebook instead of those of an earlier one."""
    metadata = {name: one for name, one in obj(value, "metadata").items() if name != _LAYOUT}
    if not layout:
        return {**value, "metadata": metadata} if _LAYOUT in obj(value, "metadata") else value
    return {**value, "metadata": {**metadata, _LAYOUT: layout}}


def _owned(cell: JsonObject, message: str) -> JsonObject:
    """Return the cell with the id of the message that it belongs to."""
    metadata = obj(cell, "metadata")
    return {**cell, "metadata": {**metadata, "moot": {**obj(metadata, "moot"), "message": message}}}


def _comparable(cell: JsonObject) -> JsonObject:
    """Return a cell without the fields that depend on its place, and with its source as one text."""
    return {**{name: one for name, one in cell.items() if name != "id"}, "source": _source(cell)}


def _source(cell: JsonObject) -> str:
    source = cell.get("source")
    return "".join(line for line in source if isinstance(line, str)) if isinstance(source, list) else text(source)


def _shown(output: JsonObject) -> str:
    """Return the text of an output."""
    data = obj(output, "data")
    found = data.get("text/markdown") or data.get("text/plain") or output.get("text") or output.get("evalue")
    return "".join(line for line in found if isinstance(line, str)) if isinstance(found, list) else text(found)


def _time(value: JsonObject) -> int:
    found = value.get("created_at")
    return found if type(found) is int else 0


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _is_for_kernel(exported: ExportedConversation) -> bool:
    """Return True if the conversation was held in a notebook."""
    for message in exported.messages:
        if message.client_id is not None and message.client_id.startswith("cell:"):
            return True
        if (document := obj(message.metadata, _LAYOUT, "document")) and text(document, "metadata", "kernelspec", "name") == "moot":
            return True
    return False


def _without_layout(exported: ExportedConversation) -> ExportedConversation:
    def plain(message: Message) -> Message:
        return replace(message, metadata={name: one for name, one in message.metadata.items() if name != _LAYOUT})

    return replace(exported, messages=tuple(map(plain, exported.messages)), others=tuple(map(plain, exported.others)))


def _written(exported: ExportedConversation, is_for_kernel: bool) -> Iterator[JsonObject]:
    """Yield the cells of the imported notebook, also those of other branches, and new ones for other messages of the shown branch."""
    title = title_cell(exported.conversation.title)
    blocks: list[tuple[int, list[JsonObject]]] = []
    last = -1
    for at, message in enumerate(exported.messages):
        if kept := objects(message.metadata, _LAYOUT, "cells"):
            last = whole_number(message.metadata, _LAYOUT, "at") or 0
            blocks.append((last, [_again(message, cell) for cell in kept]))
        else:
            blocks.append((last, list(_new(exported.messages, at, is_for_kernel))))
    for message in exported.others:
        if kept := objects(message.metadata, _LAYOUT, "cells"):
            number = whole_number(message.metadata, _LAYOUT, "at") or 0
            place = next((at for at, (before, _) in enumerate(blocks) if before > number), len(blocks))
            blocks.insert(place, (number, [_again(message, cell) for cell in kept]))
    cells = [cell for _, block in blocks for cell in block]
    if not is_for_kernel and not (cells and cells[0].get("id") == "title"):
        yield title
    yield from cells


def _new(messages: Sequence[Message], at: int, is_for_kernel: bool) -> Iterator[JsonObject]:
    """Yield cells for a message that was not in a notebook. For the kernel, an answer is in the outputs of its prompt."""
    message = messages[at]
    if not is_for_kernel:
        yield from cells_of(message, at + 1)
    elif message.role == "user":
        yield prompt_cell(message, [one for one in messages[at + 1 : at + 2] if one.role == "assistant"])
    elif message.role == "system" or not at or messages[at - 1].role != "user":
        yield from cells_of(message, at + 1)


def _again(message: Message, cell: JsonObject) -> JsonObject:
    """Return a cell as it was, with the message's present id."""
    return _owned(cell, message.id) if text(cell, "metadata", "moot", "message") else cell
