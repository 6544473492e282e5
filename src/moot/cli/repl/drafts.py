"""Drafts: unsent text, saved to disk per conversation, so that it survives even a killed terminal."""

from __future__ import annotations

import json
import logging
import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from moot.types.message import Part

log = logging.getLogger("moot.cli")


@dataclass(frozen=True, slots=True)
class Draft:
    """Text and shell output that are not sent yet."""

    text: str = ""
    pastes: dict[str, str] = field(default_factory=dict[str, str])
    stash: str = ""
    """Text set aside with Ctrl+C."""
    shell_output: list[Part] = field(default_factory=list[Part])
    """Output of shell commands for the next prompt."""

    @property
    def empty(self) -> bool:
        """Return True if there is nothing to save."""
        return not (self.text.strip() or self.stash.strip() or self.shell_output)


class Drafts:
    """Draft files, written atomically and readable only by their owner. If writing fails, the draft is lost and a warning is logged."""

    def __init__(self, folder: Path, directory: str) -> None:
        self._folder = folder
        self._directory = blake2b(directory.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
        self._saved: dict[Path, Draft] = {}

    def restore(self, conversation: str | None) -> Draft:
        """Return the draft of a conversation. For a new one (None), take over a draft that a closed terminal left in this directory."""
        path = self._path(conversation)
        if conversation is None:
            self._adopt(path)
        draft = _read(path)
        self._saved[path] = draft
        return draft

    def save(self, conversation: str | None, draft: Draft) -> None:
        """Write the draft, or delete it if it is empty. Blocking. Do nothing if it is already saved."""
        path = self._path(conversation)
        if self._saved.get(path, Draft()) == draft:
            return
        try:
            if draft.empty:
                path.unlink(missing_ok=True)
            else:
                self._write(path, draft)
        except OSError as error:
            log.warning("Cannot save the draft in %s: %s.", path, error.strerror)
        self._saved[path] = draft

    def _path(self, conversation: str | None) -> Path:
        if conversation is None:
            return self._folder / f"new-{self._directory}-{os.getpid()}.json"
        # clients can choose any ID
        safe = conversation if re.fullmatch(r"[\w-]{1,100}", conversation) else blake2b(conversation.encode(), digest_size=16).hexdigest()
        return self._folder / f"{safe}.json"

    def _adopt(self, path: Path) -> None:
        for left in sorted(self._folder.glob(f"new-{self._directory}-*.json")):
            owner = left.stem.rpartition("-")[2]
            if left != path and owner.isdecimal() and not _is_running(owner):
                with suppress(OSError):  # another terminal has taken it
                    left.rename(path)
                    return

    def _write(self, path: Path, draft: Draft) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = path.with_name(f".{path.name}-{token_hex(4)}.tmp")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
                json.dump({"text": draft.text, "pastes": draft.pastes, "stash": draft.stash, "heard": draft.shell_output}, file)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _is_running(process: str) -> bool:
    """Return False if the process has ended, also if no other process has noticed that yet."""
    try:
        return Path(f"/proc/{process}/stat").read_bytes().rpartition(b")")[2].split()[0] not in (b"Z", b"X")
    except OSError:
        return False


def _read(path: Path) -> Draft:
    try:
        value: Any = json.loads(path.read_bytes())
    except (OSError, ValueError):  # missing, or not a file of moot
        return Draft()
    if not isinstance(value, dict):
        return Draft()
    found = cast("dict[str, Any]", value)
    pastes, heard = found.get("pastes"), found.get("heard")
    return Draft(
        str(found.get("text") or ""),
        {str(placeholder): str(text) for placeholder, text in cast("dict[str, Any]", pastes).items()} if isinstance(pastes, dict) else {},
        str(found.get("stash") or ""),
        [cast("Part", part) for part in cast("list[Any]", heard) if isinstance(part, dict)] if isinstance(heard, list) else [],
    )
