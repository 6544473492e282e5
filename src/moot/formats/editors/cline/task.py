"""The files of a task."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from moot.formats.kit.fields import obj, text
from moot.formats.kit.files import read_head
from moot.formats.kit.json import ArrayItem, array_items, parse_json, read_chunks, read_document
from moot.types.canonical import Json, JsonObject
from moot.types.format import ImportedRecord

HISTORY = "api_conversation_history.json"
SHOWN = "ui_messages.json"
ITEM = "history_item.json"
METADATA = "task_metadata.json"


@dataclass(frozen=True, slots=True)
class Task:
    """A task's folder."""

    folder: Path

    def path(self, name: str) -> Path | None:
        """Return the path of a file, or None if it is missing or a link."""
        path = self.folder / name
        return path if path.is_file() and not path.is_symlink() else None

    def elements(self, name: str) -> Iterator[ArrayItem]:
        """Yield the elements of a file that contains an array. For any other file, yield the file's beginning with a problem."""
        path = self.path(name)
        if path is not None:
            yield from _elements(path)

    def metadata(self) -> JsonObject:
        """Return the content of `task_metadata.json`."""
        return obj(self._document(METADATA).value)

    def records(self) -> Iterator[ImportedRecord]:
        """Yield the contents of the files other than the messages."""
        for element in (self.item(), self._document(METADATA)):
            if element.raw:
                yield ImportedRecord(element.raw, element.value, element.problem)
        for element in self.elements(SHOWN):
            problem = element.problem or ("" if isinstance(element.value, dict) else "is not an object")
            yield ImportedRecord(element.raw, element.value, problem and f"{SHOWN}: element {element.number} {problem}")

    def _document(self, name: str) -> ArrayItem:
        path = self.path(name)
        data = read_document(path) if path is not None else b""
        try:
            return ArrayItem(1, data, parse_json(data) if data else None)
        except ValueError:
            return ArrayItem(1, data, None, f"{name} is not valid JSON")

    def item(self) -> ArrayItem:
        """Return the task's entry from its own file or from the list of all tasks. If there is no entry, the bytes are empty."""
        if self.path(ITEM) is not None:
            return self._document(ITEM)
        listed = self.folder.parent.parent / "state" / "taskHistory.json"
        links = (listed, listed.parent)
        if listed.is_file() and not any(path.is_symlink() for path in links):
            for element in _elements(listed):
                if text(element.value, "id") == self.folder.name:
                    return element
        return ArrayItem(1, b"", None)


def _elements(path: Path) -> Iterator[ArrayItem]:
    found = False
    for element in array_items(read_chunks(path)):
        found = True
        yield element
    head = b"" if found else read_head(path, links=False).strip()
    if head and not head.startswith(b"["):
        yield ArrayItem(1, head, None, "is not in an array")


def described(name: str, element: ArrayItem, value: Json) -> str:
    """Describe the problem of an element that can't be read."""
    return f"{name}: element {element.number} {element.problem or ('is not a message' if value is not None else 'is not an object')}"
