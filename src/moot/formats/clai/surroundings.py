"""Files next to a chat: encrypted reasoning, directory bindings and copies."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from moot.formats._source.beside import beside
from moot.formats._source.documents import Document
from moot.formats._source.folders import files_below
from moot.formats._source.pieces import parsed
from moot.types.canonical import Json

__all__ = ["COPIES", "bound_to", "is_copy", "sealed_reasoning"]

COPIES = ("globalScope.json", "prevQuery.json")
"""Files that contain a copy of the latest chat. The second is the older name."""
_SMALL = 4 << 20
_APART = 1024
"""Maximum difference in bytes between a chat and its copy, whose id, time and source differ."""


def sealed_reasoning(chat: Path, id: str, call: str) -> tuple[bytes, list[Json]]:
    """Return the encrypted reasoning before a tool call with the bytes of its file, or empty values."""
    if any(not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name for name in (id, call)):
        return b"", []
    raw = beside(chat.parent / "reasoning" / id / f"{call}.json", inside=chat.parent, limit=_SMALL)
    try:
        items = parsed(raw) if raw else None
    except ValueError:
        items = None
    return (raw or b"", items) if isinstance(items, list) else (b"", [])


def bound_to(chat: Path, id: str) -> list[str]:
    """Return the directories in which this chat is or was the active one, newest first."""
    folder = chat.parent / "dirs"
    try:
        stamp = folder.stat().st_mtime_ns
    except OSError:
        return []
    return list(_bindings(folder, stamp).get(id, ()))


@lru_cache(maxsize=4)
def _bindings(folder: Path, stamp: int) -> Mapping[str, tuple[str, ...]]:
    """Return chat → directories. Bindings are replaced rather than edited, so the folder's mtime `stamp` changes with them."""
    found: dict[str, list[tuple[str, str]]] = {}
    for file in files_below(folder, ".json", depth=1):
        binding = Document(beside(file, inside=folder, limit=_SMALL) or b"")
        directory, updated = binding.text("abs_path"), binding.text("updated")
        history = binding.value("history")
        earlier = [one.get("chat_id") for one in history if isinstance(one, dict)] if isinstance(history, list) else []
        for chat in {str(id) for id in (binding.text("chat_id"), *earlier) if id}:
            if directory:
                found.setdefault(chat, []).append((updated, directory))
    return {chat: tuple(directory for _, directory in sorted(bound, reverse=True)) for chat, bound in found.items()}


def is_copy(path: Path, found: Document) -> bool:
    """Return whether another chat in the folder has the same messages."""
    messages = found.raw("messages")
    for other in files_below(path.parent, ".json", depth=1):
        if other.name in COPIES or abs(other.stat().st_size - len(found.data)) > _APART:
            continue
        if Document(beside(other, inside=path.parent, limit=len(found.data) + _APART) or b"").raw("messages") == messages:
            return True
    return False
