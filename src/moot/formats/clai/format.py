"""Chats in clai's folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from pathlib import Path

from moot.formats._source.documents import sketch
from moot.formats._source.folders import files_below
from moot.formats._source.plain import head_of
from moot.formats.clai.configuration import configuration
from moot.formats.clai.reading import read_chat
from moot.formats.clai.surroundings import COPIES
from moot.formats.clai.writing import HOLDS, chat
from moot.types.format import ExportedConversation, ForeignConfiguration, ImportedConversation, Written

__all__ = ["Clai"]

_FOLDER = "conversations"
_LOOKED_AT = 20
"""Number of files examined to recognize a folder."""


class Clai:
    """`Format`, `Holding`, `Placed`, `Split`, `Configured`, `Sampled`."""

    name = "clai"
    version = 1
    suffix = ".json"
    words = "a chat for clai"
    holds = HOLDS

    def sniff(self, path: Path, head: bytes) -> bool:
        if not head:
            return path.is_dir() and any(self.sniff(file, start) for file in islice(_files(path), _LOOKED_AT) if (start := head_of(file)))
        found = sketch(head)
        return bool(found.text("id")) and "T" in found.text("created") and _has_messages(found.raw("messages"))

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        if named := environ.get("CLAI_CONFIG_DIR"):
            return [Path(named)]
        base = environ.get("XDG_CONFIG_HOME")
        return [Path(base or home / ".config") / ".clai", home / "Library" / "Application Support" / ".clai", home / ".clai"]

    def sources(self, folder: Path) -> Iterator[Path]:
        """Yield chats before the copies of the latest one."""
        copies: list[Path] = []
        for file in _files(folder):
            if file.name in COPIES:
                copies.append(file)
            elif self.sniff(file, head_of(file)):
                yield file
        yield from copies

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for file in self.sources(path) if path.is_dir() else [path]:
            yield from read_chat(file)

    def configuration(self, path: Path) -> ForeignConfiguration:
        """Convert the configuration in the parent of `conversations`."""
        folder = path if path.is_dir() else path.parent
        return configuration(folder.parent if folder.name == _FOLDER else folder)

    def write(self, exported: ExportedConversation) -> Written:
        return chat(exported)


def _files(folder: Path) -> Iterator[Path]:
    inner = folder / _FOLDER
    return files_below(inner if inner.is_dir() and not inner.is_symlink() else folder, ".json", depth=1)


def _has_messages(raw: bytes) -> bool:
    return raw.startswith((b"[", b"null"))
