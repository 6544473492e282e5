"""Folders of agents that an import names because it can't read them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from moot.imports.sources import local_sources
from moot.imports.unread_folders import size_of, unread_folders

FOLDERS = {
    ".codeium/windsurf/cascade/a.pb": ("windsurf", ".codeium/windsurf/cascade", "the program encrypts its conversations"),
    ".config/Trae/ModularData/ai-agent/database.db": (
        *("trae", ".config/Trae/ModularData/ai-agent"),
        "the program encrypts its conversations",
    ),
    "Library/Application Support/Trae/ModularData/ai-agent/database.db": (
        *("trae", "Library/Application Support/Trae/ModularData/ai-agent"),
        "the program encrypts its conversations",
    ),
    ".local/share/amp/history.jsonl": ("amp", ".local/share/amp", "the program keeps its conversations on a server"),
    ".hermes/sessions/a.jsonl": ("hermes", ".hermes/sessions", "an older format, which moot can't read"),
    ".config/github-copilot/iu/chat-sessions/x/nitrite.db": (
        *("copilot-jetbrains", ".config/github-copilot/iu/chat-sessions"),
        "moot has no reader for this program",
    ),
    ".config/Cursor/User/globalStorage/augment.vscode-augment/a": (
        *("augment", ".config/Cursor/User/globalStorage/augment.vscode-augment"),
        "moot has no reader for this program",
    ),
    ".local/state/warp-terminal/warp.sqlite": ("warp", ".local/state/warp-terminal/warp.sqlite", "moot has no reader for this program"),
    ".kimi/sessions/a/b/wire.bin": ("kimi", ".kimi/sessions", "moot found no conversation in a known format"),
    ".qclaw/agents/main/sessions/a.bin": ("qclaw", ".qclaw/agents", "moot found no conversation in a known format"),
}


def written(home: Path, name: str, data: bytes = b"12345") -> Path:
    path = home / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def found(home: Path, environ: Mapping[str, str] | None = None) -> list[tuple[str, str, int, bool, str]]:
    environ = environ or {}
    folders = unread_folders(home, environ, local_sources(home, environ, home / "moot"))
    return [(one.program, os.path.relpath(one.path, home), one.bytes, one.is_whole, one.reason) for one in folders]


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_that_cannot_be_read_is_named_with_its_size_and_the_reason(tmp_path: Path, name: str) -> None:
    written(tmp_path, name)
    program, path, reason = FOLDERS[name]
    assert found(tmp_path) == [(program, path, 5, True, reason)]


def test_the_variables_of_a_program_move_its_folder(tmp_path: Path) -> None:
    written(tmp_path, "data/devin/a")
    assert [one[:2] for one in found(tmp_path, {"XDG_DATA_HOME": str(tmp_path / "data")})] == [("devin", "data/devin")]


def test_missing_and_empty_folders_and_links_are_not_reported(tmp_path: Path) -> None:
    other = written(tmp_path, "other/a").parent
    (tmp_path / ".zencoder").mkdir()
    (tmp_path / ".zencoder" / "sessions").symlink_to(other)
    (tmp_path / ".codeium").symlink_to(tmp_path)
    (tmp_path / "windsurf" / "cascade").mkdir(parents=True)
    (tmp_path / ".kimi").mkdir()
    (tmp_path / ".kimi" / "sessions").symlink_to(other)
    (tmp_path / ".factory" / "sessions").mkdir(parents=True)
    assert found(tmp_path) == []


def test_an_older_form_is_named_only_if_nothing_newer_is_read(tmp_path: Path) -> None:
    written(tmp_path, ".local/share/opencode/storage/session/p/ses_1.json")
    assert [one[:2] for one in found(tmp_path)] == [("opencode", ".local/share/opencode/storage")]
    written(tmp_path, ".local/share/opencode/opencode.db")
    assert found(tmp_path) == []


def test_the_size_of_a_large_folder_is_a_lower_bound(tmp_path: Path) -> None:
    for number in range(6):
        written(tmp_path, f"folder/{number}/a")
    (tmp_path / "folder" / "link").symlink_to(tmp_path / "folder")
    os.mkfifo(tmp_path / "folder" / "pipe")
    assert size_of(tmp_path / "folder") == (30, True)
    size, is_whole = size_of(tmp_path / "folder", most=10)
    assert (0 <= size < 30, is_whole) == (True, False)
    assert size_of(tmp_path / "folder", longest=-1.0) == (0, False)
