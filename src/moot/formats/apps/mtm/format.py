"""The formats `mtm` and `mtm-1`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from moot.formats.apps.mtm.configuration import EDITORS, configuration
from moot.formats.apps.mtm.reader import VERSION, read_file
from moot.formats.apps.mtm.writer import HOLDS, HOLDS_ONE, unversioned, version_one
from moot.formats.editors.folders import path_of
from moot.formats.kit.files import files_below, read_inside
from moot.formats.kit.json import PartialDocument, partial_document
from moot.types.format import ExportedConversation, ExportFile, FidelityLevel, ForeignConfiguration, ImportedConversation

_FOLDER = ".mutsumi"
_SMALL = 1 << 16


class Mtm:
    """Mutsumi notebooks without a format version. Notebooks with a version can be read too, but are not detected or written."""

    name = "mtm"
    version = 3
    suffix = ".mtm"
    words = "a notebook for Mutsumi"
    holds: Mapping[str, FidelityLevel] = HOLDS

    def sniff(self, path: Path, head: bytes) -> bool:
        if not head:
            return path.is_dir() and any(True for _ in self.sources(path))
        return _is_own(head) and VERSION not in partial_document(head)

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterable[Path]:
        """Yield the folder of each workspace known to an editor on this machine."""
        base = Path(environ.get("XDG_CONFIG_HOME") or home / ".config")
        for editor in EDITORS:
            for root in (base / editor, home / "Library" / "Application Support" / editor):
                for file in files_below(root / "User" / "workspaceStorage", "workspace.json", depth=2):
                    opened = PartialDocument(read_inside(file, inside=root, limit=_SMALL) or b"")
                    if (uri := opened.text("folder")).startswith("file:///"):
                        yield Path(path_of(uri)) / _FOLDER

    def sources(self, folder: Path) -> Iterator[Path]:
        yield from files_below(folder, self.suffix, depth=1)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        for file in self.sources(path) if path.is_dir() else [path]:
            yield read_file(file)

    def configuration(self, path: Path) -> ForeignConfiguration:
        return configuration(path)

    def write(self, exported: ExportedConversation) -> ExportFile:
        return unversioned(exported)


class MtmOne:
    """Notebooks with `formatVersion: 1`."""

    name = "mtm-1"
    version = 3
    suffix = ".mtm"
    words = "a notebook for the fork of Mutsumi with versioned files"
    holds: Mapping[str, FidelityLevel] = HOLDS_ONE

    def sniff(self, path: Path, head: bytes) -> bool:
        return _is_own(head) and VERSION in partial_document(head)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        yield read_file(path)

    def write(self, exported: ExportedConversation) -> ExportFile:
        return version_one(exported)


def _is_own(head: bytes) -> bool:
    """Return whether the metadata belongs to a notebook of Mutsumi. `head` may end before the messages."""
    found, metadata = partial_document(head), partial_document(head, "metadata")
    named = "uuid" in metadata and ("allowed_uris" in metadata or "parent_agent_id" in metadata)
    return named and (found.raw("context").startswith(b"[") or ("context" not in found and not found.whole))
