"""Protected files, which can make programs run or change what agents may do. Writing to them needs approval in every mode."""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import PurePosixPath

_FOLDERS = frozenset(
    (*(".git", ".moot", ".agents", ".claude", ".codex", ".cursor", ".gemini", ".husky", ".idea"), *(".ssh", ".talkcody", ".vscode"))
)
_FILES = frozenset(
    (
        *(".envrc", ".mcp.json", ".gitconfig", ".gitmodules", ".cursorrules", ".windsurfrules", ".clinerules", "copilot-instructions.md"),
        *("agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md"),
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".inputrc", ".xprofile", ".xsessionrc"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".pam_environment"),
    )
)
_SETTINGS = (".config/fish", ".config/git", ".config/autostart", ".config/systemd", ".config/environment.d", ".local/bin")
_HINT = re.compile("|".join(map(re.escape, (*_FOLDERS, *_FILES, *_SETTINGS))))

_QUOTES = str.maketrans("", "", "'\"\\")


def protection(path: str, directory: str, home: str = "") -> str:
    """Return the name that makes the path protected, such as `.git`; empty if it is not protected.

    Links are resolved, and case is ignored because some file systems ignore it. `home` is moot's own folder.
    """
    if "\x00" in path:
        return ""
    absolute = posixpath.normpath(posixpath.join(directory or ".", posixpath.expanduser(path)))
    inside_home = _is_below(os.path.realpath(directory), os.path.realpath(home)) if home and directory else False
    for spelling in dict.fromkeys((absolute, os.path.realpath(absolute))):
        if found := _named(spelling):
            return found
        if home and not inside_home and _is_below(spelling, os.path.realpath(home)):
            return "moot's home"
    return ""


def may_name_one(text: str, home: str = "") -> bool:
    """Return True if a protected name occurs anywhere in the text."""
    plain = text.translate(_QUOTES)
    return _HINT.search(plain.casefold()) is not None or bool(home and PurePosixPath(home).name in plain)


def _named(path: str) -> str:
    parts = path.casefold().split("/")
    if found := next((part for part in parts if part in _FOLDERS), ""):
        return found
    if parts[-1] in _FILES:
        return path.rsplit("/", 1)[-1]
    return next((name for name in _SETTINGS if f"/{name}/" in f"{path.casefold()}/"), "")


def _is_below(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")
