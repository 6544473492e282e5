"""Files of the home outside the database that contain text: drafts, prompt history, logs. All functions block."""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Collection, Iterator
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from moot.store.maintenance.purge.redactor import Redactor
from moot.types.maintenance import FileOutcome

LARGEST = 256 << 20
"""Maximum size in bytes of a file that is searched."""
_COMMAND = re.compile(r"(?:!|/\S+\s+)(.+)", re.DOTALL)


def draft_name(conversation: str) -> str:
    """Return the file name of a conversation's draft in the drafts folder. Conversation ids may be any string that a client chose."""
    safe = conversation if re.fullmatch(r"[\w-]{1,100}", conversation) else blake2b(conversation.encode(), digest_size=16).hexdigest()
    return f"{safe}.json"


def forget_typed(state: Path, conversations: Collection[str], prompts: Collection[str]) -> list[FileOutcome]:
    """Delete drafts of these conversations, and their prompts from the prompt history."""
    fates: list[FileOutcome] = []
    for id in conversations:
        draft = state / "drafts" / draft_name(id)
        if draft.exists():
            draft.unlink(missing_ok=True)
            fates.append(FileOutcome(str(draft), "deleted", "a draft"))
    history = state / "history.jsonl"
    if prompts and history.exists() and (count := _blank_lines(history, prompts)):
        fates.append(FileOutcome(str(history), "rewritten", f"{count} typed {'line' if count == 1 else 'lines'}"))
    return fates


def redact_files(state: Path, needles: Redactor) -> list[FileOutcome]:
    """Overwrite every match in the files of the state folder with the letter x. Processes may have the files open or append to them."""
    fates: list[FileOutcome] = []
    for path in files_in(state):
        try:
            if path.stat().st_size > LARGEST:
                fates.append(FileOutcome(str(path), "left", f"not searched: larger than {LARGEST >> 20} MB"))
            elif count := _blank(path, needles):
                fates.append(FileOutcome(str(path), "rewritten", f"{count} {'match' if count == 1 else 'matches'}"))
        except FileNotFoundError:  # deleted by its process meanwhile
            continue
        except OSError as error:
            fates.append(FileOutcome(str(path), "left", f"not searched: {error.strerror}"))
    return fates


def files_in(folder: Path) -> Iterator[Path]:
    """Yield the non-empty files of the folder and its subfolders."""
    for place, _, names in os.walk(folder):  # links are not followed
        for name in sorted(names):
            path = Path(place) / name
            with suppress(OSError):  # deleted meanwhile
                found = path.lstat()
                if stat.S_ISREG(found.st_mode) and found.st_size:
                    yield path


def _blank(path: Path, needles: Redactor) -> int:
    data = path.read_bytes()
    text = data.decode("utf-8", "surrogateescape")
    spans = needles.spans(text)
    _overwrite(path, [(_size(text[:start]), _size(text[start:end])) for start, end in spans], b"x")
    return len(spans)


def _blank_lines(path: Path, prompts: Collection[str]) -> int:
    """Blank history lines that are prompts from the conversation, or commands that contain part of one. Return the number of lines."""
    places: list[tuple[int, int]] = []
    at = 0
    everything = "\n".join(prompts)
    for line in path.read_bytes().splitlines(keepends=True):
        if _is_of(line, prompts, everything):
            places.append((at, len(line.rstrip(b"\n"))))
        at += len(line)
    _overwrite(path, places, b" ")
    return len(places)


def _is_of(line: bytes, prompts: Collection[str], everything: str) -> bool:
    try:
        typed = json.loads(line)
    except ValueError:
        return False
    if not isinstance(typed, str):
        return False
    command = _COMMAND.fullmatch(typed.strip())
    return typed in prompts or typed.strip() in prompts or (command is not None and command[1].strip() in everything)


def _overwrite(path: Path, places: list[tuple[int, int]], filling: bytes) -> None:
    if not places:
        return
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        for start, length in places:
            os.pwrite(file, filling * length, start)
        os.fsync(file)
    finally:
        os.close(file)


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogateescape"))
