"""What is being written, kept on the disk for each conversation, so that not even a killed terminal loses it."""

from __future__ import annotations

import json
import logging
import os
import re
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from secrets import token_hex
from typing import Any, cast

from moot.types.part import Part

__all__ = ["Draft", "Drafts"]

log = logging.getLogger("moot.cli")


@dataclass(frozen=True, slots=True)
class Draft:
    """What was not sent yet."""

    text: str = ""
    pastes: dict[str, str] = field(default_factory=dict[str, str])
    stash: str = ""
    """What was put aside."""
    heard: list[Part] = field(default_factory=list[Part])
    """What shell lines said."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing to keep."""
        return not (self.text.strip() or self.stash.strip() or self.heard)


class Drafts:
    """Files in a folder, whole or not there, readable by their owner alone. A disk that fails costs the draft and nothing else."""

    def __init__(self, folder: Path, directory: str) -> None:
        self._folder = folder
        self._directory = blake2b(directory.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
        self._kept: dict[Path, Draft] = {}

    def take_up(self, conversation: str | None) -> Draft:
        """The draft of a conversation; of a new one, what a terminal that is gone left in this folder."""
        path = self._path(conversation)
        if conversation is None:
            self._adopt(path)
        draft = _read(path)
        self._kept[path] = draft
        return draft

    def keep(self, conversation: str | None, draft: Draft) -> None:
        """Writes the draft, or removes it when it is empty. Blocks; does nothing when it is kept already."""
        path = self._path(conversation)
        if self._kept.get(path, Draft()) == draft:
            return
        try:
            if draft.empty:
                path.unlink(missing_ok=True)
            else:
                self._write(path, draft)
        except OSError as error:
            log.warning("the draft is not kept in %s: %s", path, error.strerror)
        self._kept[path] = draft

    def _path(self, conversation: str | None) -> Path:
        if conversation is None:
            return self._folder / f"new-{self._directory}-{os.getpid()}.json"
        # an id may be anything that a client chose
        safe = conversation if re.fullmatch(r"[\w-]{1,100}", conversation) else blake2b(conversation.encode(), digest_size=16).hexdigest()
        return self._folder / f"{safe}.json"

    def _adopt(self, path: Path) -> None:
        for left in sorted(self._folder.glob(f"new-{self._directory}-*.json")):
            owner = left.stem.rpartition("-")[2]
            if left != path and owner.isdecimal() and not Path(f"/proc/{owner}").exists():
                with suppress(OSError):  # another terminal was faster
                    left.rename(path)
                    return

    def _write(self, path: Path, draft: Draft) -> None:
        self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        temporary = path.with_name(f".{path.name}-{token_hex(4)}.tmp")
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8", errors="replace") as file:
                json.dump(asdict(draft), file)
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


def _read(path: Path) -> Draft:
    try:
        value: Any = json.loads(path.read_bytes())
    except (OSError, ValueError):  # there is none, or it is none of ours
        return Draft()
    if not isinstance(value, dict):
        return Draft()
    found = cast("dict[str, Any]", value)
    pastes, heard = found.get("pastes"), found.get("heard")
    return Draft(
        str(found.get("text") or ""),
        {str(word): str(text) for word, text in cast("dict[str, Any]", pastes).items()} if isinstance(pastes, dict) else {},
        str(found.get("stash") or ""),
        [cast("Part", part) for part in cast("list[Any]", heard) if isinstance(part, dict)] if isinstance(heard, list) else [],
    )
