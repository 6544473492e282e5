"""Folders of VS Code and of editors derived from it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from moot.formats.kit.bases import environment_folder
from moot.formats.kit.fields import text
from moot.formats.kit.files import read_inside
from moot.formats.kit.json import parse_prefix

EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Positron", "Trae", "Kiro")
_SERVERS = (".vscode-server", ".vscode-server-insiders", ".cursor-server", ".windsurf-server", ".positron-server")
_LARGEST = 1 << 20
_DRIVE = re.compile(r"/[A-Za-z]:")


def data_folders(home: Path, environ: Mapping[str, str], name: str) -> Iterator[Path]:
    """Yield the folders in which an application with this name stores its data, on Linux, macOS and Windows."""
    yield environment_folder(environ.get("XDG_CONFIG_HOME"), home / ".config") / name
    yield home / "Library" / "Application Support" / name
    yield environment_folder(environ.get("APPDATA"), home / "AppData" / "Roaming") / name


def user_folders(home: Path, environ: Mapping[str, str], editors: tuple[str, ...] = EDITORS) -> Iterator[Path]:
    """Yield the `User` folder of each editor, followed by those of editors that connect to this machine from another one."""
    for editor in editors:
        yield from (folder / "User" for folder in data_folders(home, environ, editor))
    if editors == EDITORS:
        yield from (home / server / "data" / "User" for server in _SERVERS)


def path_of(uri: str) -> str:
    """Return the path in a `file:` URI or in the URI of a folder on another machine. Return any other text unchanged."""
    try:
        parts = urlsplit(uri)
    except ValueError:
        return uri
    if parts.scheme not in ("file", "vscode-remote"):
        return uri
    path = unquote(parts.path)
    return path[1:] if _DRIVE.match(path) else path


def workspace_folder(storage: Path) -> str:
    """Return the project folder that a folder in `workspaceStorage` belongs to, or an empty string."""
    about = parse_prefix(read_inside(storage / "workspace.json", inside=storage, limit=_LARGEST) or b"")
    return path_of(text(about, "folder") or text(about, "workspace"))
