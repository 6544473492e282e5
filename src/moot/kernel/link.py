"""The conversation of a notebook, found again after a restart of the kernel.

A file in moot's home names the conversation of each notebook. The notebook itself names it too, in its outputs, so that it is also found
after the notebook was renamed.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from time import time_ns

from moot.engine.submissions import copy_of
from moot.errors import MootError, NotFound
from moot.features.exports import write_private_file
from moot.formats.kit.fields import obj, objects, text, whole_number
from moot.formats.kit.json import json_object
from moot.formats.notebook.format import Ipynb
from moot.formats.notebook.outputs import RECORD
from moot.types.canonical import JsonObject, dumps
from moot.types.conversation import Conversation
from moot.types.message import Message
from moot.types.store import Store

CELL = "cell:"
"""Start of the client id of a prompt from a cell. The id of the cell follows."""

log = logging.getLogger("moot.kernel")


@dataclass(frozen=True, slots=True)
class _File:
    """The notebook as it was last saved."""

    cells: frozenset[str]
    """Ids of the cells. Notebooks in old versions of the format have none."""
    has_cells: bool
    conversation: str
    """Id of the conversation that the outputs belong to; empty = there are no answers."""
    last: str
    """Id of the last message in the outputs."""
    changed: int
    """Time of the last change, in milliseconds since the epoch."""


class ConversationLink:
    """The link from one notebook to its conversation."""

    def __init__(self, store: Store, state: Path, notebook: Path | None) -> None:
        """`state` is the folder `state` of moot's home. Without the notebook's path, every kernel starts a new conversation."""
        self._store, self._notebook = store, notebook
        self._folder = state / "notebooks"

    async def find(self) -> Conversation | None:
        """Return the notebook's conversation, or None if it has none yet. A copy of a notebook gets a copy of the conversation."""
        if self._notebook is None:
            return None
        file, bound = _read(self._notebook), _object(self._path(self._notebook))
        id = text(bound, "conversation")
        if id and (found := await self._get(id)) is not None and await self._is_same(found, whole_number(bound, "at") or 0, file):
            return found
        if file is None or not file.conversation or (found := await self._get(file.conversation)) is None:
            return None
        if self._has_other_notebook(found.id):
            found = await self._store.tree.fork(found.id, message=file.last or None)
        self.save(found.id)
        return found

    def save(self, conversation: str | None) -> None:
        """Store the conversation of the notebook; None = the next prompt starts a new one."""
        if self._notebook is None:
            return
        path = self._path(self._notebook)
        value: JsonObject = {"notebook": str(self._notebook), "conversation": conversation or "", "at": time_ns() // 1_000_000}
        try:
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_private_file(path, dumps(value) + b"\n")
        except (OSError, MootError) as error:
            log.warning("Can't store the conversation of the notebook in %s: %s", path, error)

    def _path(self, notebook: Path) -> Path:
        name = blake2b(str(notebook).encode("utf-8", "surrogateescape"), digest_size=16).hexdigest()
        return self._folder / f"{name}.json"

    async def _get(self, id: str) -> Conversation | None:
        """Return the conversation with this id, or the one imported from a notebook that names this id. None = there is none."""
        try:
            found = await self._store.conversations.get(id)
        except NotFound:
            imported = await self._store.imports.find(Ipynb.name, id)
            found = None if imported is None else await copy_of(self._store.conversations, imported) or imported
        return found if found is not None and found.deleted_at is None else None

    async def _is_same(self, conversation: Conversation, at: int, file: _File | None) -> bool:
        """Return False if the path now belongs to another notebook: a later file without any cell of the conversation."""
        if file is None or file.conversation == conversation.id or file.changed <= at or (file.has_cells and not file.cells):
            return True
        branch = await self._store.conversations.branch(conversation.id)
        return any([await cell_of(self._store, message) in file.cells for message in branch if message.role == "user"])

    def _has_other_notebook(self, conversation: str) -> bool:
        """Return True if another existing notebook has this conversation."""
        for path in self._folder.glob("*.json"):
            bound = _object(path)
            other = Path(text(bound, "notebook"))
            if text(bound, "conversation") == conversation and other != self._notebook and other.exists():
                return True
        return False


async def cell_of(store: Store, message: Message) -> str:
    """Return the id of the cell that a prompt was written in; empty if it was written elsewhere."""
    source = text(message.metadata, "source", "message")
    if message.client_id is None and source:  # a copy of a message
        with suppress(NotFound):
            message = await store.conversations.message(source)
    if message.client_id is not None and message.client_id.startswith(CELL):
        return message.client_id.split(":")[1]
    cells = objects(message.metadata, "notebook", "cells")  # of an imported notebook
    return next((text(cell, "id") for cell in cells if text(cell, "metadata", "moot", "message")), "")


def _object(path: Path) -> JsonObject:
    try:
        return json_object(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError):  # missing, or not written by moot
        return {}


def _read(notebook: Path) -> _File | None:
    """Read the saved notebook. Return None if it can't be read."""
    try:
        changed = notebook.stat().st_mtime_ns // 1_000_000
    except OSError:
        return None
    value = _object(notebook)
    cells = objects(value, "cells")
    ids = frozenset(id for cell in cells if (id := text(cell, "id")))
    records = list(_records(value))
    last = objects(records[-1], "messages")[-1:] if records else []
    conversation = text(records[-1], "conversation", "id") if records else text(value, "metadata", "moot", "conversation", "id")
    return _File(ids, bool(cells), conversation, text(last[0], "id") if last else "", changed)


def _records(notebook: JsonObject) -> Iterator[JsonObject]:
    for cell in objects(notebook, "cells"):
        for output in objects(cell, "outputs"):
            if record := obj(output, "data", RECORD):
                yield record
