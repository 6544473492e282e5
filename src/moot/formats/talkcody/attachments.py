"""Attached files, read only from the folder `attachments` next to the database."""

from __future__ import annotations

import base64
from pathlib import Path, PureWindowsPath

from moot.formats._source.beside import beside
from moot.types.canonical import JsonObject
from moot.types.part import Part

__all__ = ["attached"]

_LARGEST = 64 << 20


def attached(row: JsonObject, home: Path) -> Part | None:
    """Return the file of a row, or None if it is missing. Project files are never read, because the database may come from elsewhere."""
    folder = home / "attachments"
    written = str(row.get("file_path") or "")
    name = PureWindowsPath(written).name  # handles both kinds of slashes
    data = beside(Path(written), inside=folder, limit=_LARGEST) or (beside(folder / name, inside=folder, limit=_LARGEST) if name else None)
    if data is None:
        return None
    kind = str(row.get("mime_type") or "application/octet-stream")
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return {"type": "file", "mediaType": kind, "url": url, "filename": str(row.get("filename") or name)}
