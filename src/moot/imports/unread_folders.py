"""Folders of agents that moot finds on this machine and can't read.

Only names, types and sizes of files are read, because agents' folders also contain keys. Links are not followed.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from moot.formats.editors.folders import data_folders, user_folders
from moot.formats.kit.bases import environment_folder
from moot.imports.report import UnreadFolder
from moot.imports.sources import Source, local_places

_ENCRYPTED = "the program encrypts its conversations"
_SERVER = "the program keeps its conversations on a server"
_OLDER = "an older format, which moot can't read"
_NO_READER = "moot has no reader for this program"
_UNKNOWN = "moot found no conversation in a known format"

_MOST_FILES = 20_000
"""Maximum number of directory entries that are counted for the size of a folder."""
_LONGEST = 2.0
"""Maximum seconds spent on the size of a folder."""


class _Place(NamedTuple):
    """A place where a program stores data, relative to a base (see `_bases`). It may contain wildcards."""

    program: str
    path: str
    reason: str = _NO_READER
    unless: str = ""
    """The place is not reported if moot reads anything below this one. Empty = the place itself."""


_PLACES = (
    _Place("amazon-q", "~/.aws/amazonq/history"),
    _Place("amp", "<data>/amp", _SERVER),
    _Place("antigravity", "~/.gemini/antigravity", _ENCRYPTED),
    _Place("antigravity-cli", "~/.gemini/antigravity-cli", _ENCRYPTED),
    _Place("augment", "~/.augment/sessions"),
    _Place("augment", "<storage>/augment.vscode-augment"),
    _Place("chatgpt", "~/Library/Application Support/com.openai.chat/conversations-v*", _ENCRYPTED),
    _Place("codebuddy", "~/.codebuddy/projects"),
    _Place("codebuff", "<config>/manicode/projects"),
    _Place("continue", "~/.continue/sessions"),
    _Place("copilot-jetbrains", "<config>/github-copilot/*/chat*sessions"),
    _Place("cortex", "~/.snowflake/cortex/conversations"),
    _Place("deepseek-tui", "~/.codewhale/sessions"),
    _Place("deepseek-tui", "~/.deepseek/sessions"),
    _Place("devin", "<data>/devin"),
    _Place("forge", "~/.forge"),
    _Place("goose", "<data>/goose/sessions", _OLDER),
    _Place("hermes", "~/.hermes/sessions", _OLDER, "~/.hermes"),
    _Place("icodemate", "<data>/icodemate/storage", _OLDER, "<data>/icodemate"),
    _Place("jetbrains-ai", "~/.cache/JetBrains/*/aia-task-history"),
    _Place("jetbrains-ai", "~/Library/Caches/JetBrains/*/aia-task-history"),
    _Place("junie", "~/.junie/sessions"),
    _Place("kilo", "<data>/kilo/storage", _OLDER, "<data>/kilo"),
    _Place("mimocode", "<data>/mimocode/storage", _OLDER, "<data>/mimocode"),
    _Place("omnigent", "~/.omnigent/chat.db"),
    _Place("opencode", "<data>/opencode/storage", _OLDER, "<data>/opencode"),
    _Place("openhands", "~/.openhands/sessions", _OLDER),
    _Place("openhands", "~/.openhands-state/sessions", _OLDER),
    _Place("pearai", "~/.pearai/sessions"),
    _Place("piebald", "<data>/piebald"),
    _Place("poolside", "~/.local/state/poolside"),
    _Place("poolside", "<config>/poolside"),
    _Place("posit-assistant", "~/.posit/assistant/workspaces"),
    _Place("qoder", "~/.qoderwork/projects"),
    _Place("qwenpaw", "~/.copaw/workspaces"),
    _Place("reasonix", "~/.reasonix"),
    _Place("reasonix", "<config>/reasonix"),
    _Place("rovodev", "~/.rovodev/sessions"),
    _Place("shelley", "<config>/shelley/shelley.db"),
    _Place("trae", "<config>/Trae/ModularData/ai-agent", _ENCRYPTED),
    _Place("trae", "<config>/Trae CN/ModularData/ai-agent", _ENCRYPTED),
    _Place("trae", "<config>/TRAE SOLO CN/ModularData/ai-agent", _ENCRYPTED),
    _Place("visualstudio-copilot", "~/.cache/VSGitHubCopilotLogs/traces"),
    _Place("visualstudio-copilot", "~/Library/Caches/VSGitHubCopilotLogs/traces"),
    _Place("visualstudio-copilot", "~/AppData/Local/Temp/VSGitHubCopilotLogs/traces"),
    _Place("void", "<config>/Void/User/globalStorage/state.vscdb"),
    _Place("warp", "~/.local/state/warp-terminal/warp.sqlite"),
    _Place("warp", "~/Library/Group Containers/*.dev.warp/Library/Application Support/dev.warp.Warp-Stable/warp.sqlite"),
    _Place("warp", "<data>/warp/Warp/data/warp.sqlite"),
    _Place("windsurf", "~/.codeium/windsurf/cascade", _ENCRYPTED),
    _Place("windsurf", "~/.codeium/windsurf-next/cascade", _ENCRYPTED),
    _Place("zcode", "~/.zcode/cli"),
    _Place("zencoder", "~/.zencoder/sessions"),
)
_ONLY_CONVERSATIONS = frozenset(
    (
        *("sessions", "archived_sessions", "session", "unified", "session-state", "history-session-state", "conversations", "threads"),
        *("chatSessions", "emptyWindowChatSessions", "tasks", "projects", "logs", "agents", "cli"),
    )
)
"""Names of folders with nothing but conversations. If moot reads none of the files in such a place, their format is unknown."""


def unread_folders(home: Path, environ: Mapping[str, str], sources: Iterable[Source]) -> list[UnreadFolder]:
    """Return the known places of agents from which nothing is read. `sources` are all sources that moot found on this machine."""
    read = {folder for source in sources for folder in (source.path, *source.path.parents)}
    bases = _bases(home, environ)
    found: dict[Path, UnreadFolder] = {}
    for place in _PLACES:
        for base, start in ((one, other) for one, other in bases if place.path.startswith(one)):
            unless = start / place.unless.removeprefix(base) if place.unless else None
            for path in _existing(start, place.path.removeprefix(base)):
                if (unless or path) not in read:
                    _add(found, place.program, path, place.reason)
    for location in local_places(home, environ):
        path = location.place
        if path.name in _ONLY_CONVERSATIONS and path not in read and not path.is_symlink() and path.is_dir():
            _add(found, location.program or location.format.name, path, _UNKNOWN)
    return sorted(found.values(), key=lambda one: (one.program, one.path))


def _bases(home: Path, environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    data = environment_folder(environ.get("XDG_DATA_HOME"), home / ".local" / "share")
    windows = environment_folder(environ.get("LOCALAPPDATA"), home / "AppData" / "Local")
    return [
        ("~/", home),
        *(("<data>/", folder) for folder in (data, home / "Library" / "Application Support", windows)),
        *(("<config>/", folder) for folder in data_folders(home, environ, "")),
        *(("<storage>/", user / "globalStorage") for user in user_folders(home, environ)),
    ]


def _existing(start: Path, pattern: str) -> Iterator[Path]:
    """Yield the paths that exist and are not reached through a link below `start`."""
    paths = [start]
    for name in pattern.split("/"):
        below = [match for path in paths for match in (sorted(path.glob(name)) if "*" in name else [path / name])]
        paths = [path for path in below if _mode(path) and not stat.S_ISLNK(_mode(path))]
    yield from paths


def _mode(path: Path) -> int:
    try:
        return path.lstat().st_mode
    except OSError:
        return 0


def _add(found: dict[Path, UnreadFolder], program: str, path: Path, reason: str) -> None:
    size, is_whole = size_of(path)
    if size:
        found.setdefault(path, UnreadFolder(program, path, size, is_whole, reason))


def size_of(path: Path, most: int = _MOST_FILES, longest: float = _LONGEST) -> tuple[int, bool]:
    """Return the size of a file, or of the files in a folder, in bytes, and False if there are more files than were counted."""
    total, left, end = 0, most, time.monotonic() + longest
    if not stat.S_ISDIR(_mode(path)):
        return (path.lstat().st_size, True) if stat.S_ISREG(_mode(path)) else (0, True)
    folders = [str(path)]
    while folders:
        try:
            with os.scandir(folders.pop()) as entries:
                for entry in entries:
                    left -= 1
                    if left < 0 or time.monotonic() > end:
                        return total, False
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif entry.is_file(follow_symlinks=False):
                        total += entry.stat(follow_symlinks=False).st_size
        except OSError:
            continue  # a folder that can't be opened, or a file that was just deleted
    return total, True
