"""Attached files: read from the folder `attachments` beside the database, and from nowhere else."""

from __future__ import annotations

import base64
from pathlib import Path, PureWindowsPath

from moot.formats._source.beside import beside
from moot.types.canonical import JsonObject
from moot.types.part import Part

__all__ = ["attached"]

_LARGEST = 64 << 20


def attached(row: JsonObject, home: Path) -> Part | None:
    """The file of a row; None when it is not there: what belongs to a project is only named, and a database may come from elsewhere."""
    folder = home / "attachments"
    written = str(row.get("file_path") or "")
    name = PureWindowsPath(written).name  # knows both kinds of slashes
    data = beside(Path(written), inside=folder, limit=_LARGEST) or (beside(folder / name, inside=folder, limit=_LARGEST) if name else None)
    if data is None:
        return None
    kind = str(row.get("mime_type") or "application/octet-stream")
    url = f"data:{kind};base64,{base64.b64encode(data).decode()}"
    return {"type": "file", "mediaType": kind, "url": url, "filename": str(row.get("filename") or name)}
