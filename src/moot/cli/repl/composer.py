"""The composer: the text being written, and the prompt history."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import Completer, Completion
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from moot.convert.files.attachments import pasted_file
from moot.errors import UsageError
from moot.types.message import Part

PASTE_LINES = 12
PASTE_CHARACTERS = 2_000
"""Larger pastes are shown as a placeholder."""
MAX_IMAGES = 20
"""Maximum number of images pasted while moot is open. They are kept in memory."""
_DROPPED_CHARACTERS, _DROPPED_FILES = 20_000, 100
"""A larger paste is not searched for dropped files."""

_UNENCODABLE = re.compile("[\ud800-\udfff]")


class CommandCompletion(Completion):
    """Completion of a command or its argument. Enter runs the command."""

    def __init__(self, text: str, start_position: int, *, display: str, about: str, is_name: bool = False, needs_more: bool = False):
        super().__init__(text, start_position, display=display, display_meta=about)
        self.is_name = is_name
        self.needs_more = needs_more
        """True if Enter only inserts it, because more words must follow."""


class Composer(Buffer):
    """A multi-line prompt-toolkit buffer."""

    def __init__(self, *, history: History, completer: Completer, directory: str = "") -> None:
        """`directory` is the working directory, to which the names of dropped files are relative."""
        super().__init__(history=history, completer=completer, complete_while_typing=True, multiline=True)
        self._directory = directory
        self._pastes: dict[str, str] = {}
        self._images: dict[str, Part] = {}
        """Pasted images by placeholder. Sent ones are kept, because their text can return to the composer."""
        self.on_paste_removed: Callable[[], object] = lambda: None
        """Called after a key press removes a paste placeholder."""

    def insert_text(self, data: str, overwrite: bool = False, move_cursor: bool = True, fire_event: bool = True) -> None:
        """Insert text at the cursor, or after a paste's placeholder if the cursor is inside it. Invalid UTF-8 becomes U+FFFD."""
        self.cursor_position = self._around_pastes(self.cursor_position, self.cursor_position)[1]
        super().insert_text(_UNENCODABLE.sub("\ufffd", data), overwrite, move_cursor, fire_event)

    def paste(self, data: str) -> None:
        """Insert pasted text. Pasting never sends the text."""
        text = _UNENCODABLE.sub("\ufffd", data.replace("\r\n", "\n").replace("\r", "\n"))
        if self._takes_mentions() and (mentions := mentions_of(text, self._directory)):
            before = self.document.text_before_cursor
            starts_word = not before or before[-1].isspace()
            self.insert_text(mentions[1:] if before.endswith("@") else mentions if starts_word else f" {mentions}")
            return
        lines = text.count("\n") + 1
        if lines <= PASTE_LINES and len(text) <= PASTE_CHARACTERS:
            self.insert_text(text)
            return
        size = f"{lines:,} lines" if lines > 1 else f"{len(text):,} characters"
        number = f" #{len(self._pastes) + 1}" if self._pastes else ""
        placeholder = f"[pasted {size}{number}]"
        self._pastes[placeholder] = text
        self.insert_text(placeholder)

    def _takes_mentions(self) -> bool:
        """Return False for commands, which need the plain paths of files."""
        return not self.text.lstrip().startswith(("!", "/"))

    def paste_image(self, data: bytes, media_type: str) -> None:
        """Insert a placeholder for an image, which is sent with the text. Raise UsageError if there are too many images."""
        if len(self._images) >= MAX_IMAGES:
            raise UsageError(f"At most {MAX_IMAGES} images can be pasted.", fix="Save the image as a file and type @ and its name.")
        number = next(at for at in range(1, MAX_IMAGES + 2) if (name := f"[image {at}]") not in self._images and name not in self.text)
        self._images[f"[image {number}]"] = pasted_file(data, f"image-{number}.{media_type.rpartition('/')[2]}", media_type)
        before = self.document.text_before_cursor
        self.insert_text(f"{'' if not before or before[-1].isspace() else ' '}[image {number}] ")

    def images(self, text: str) -> list[Part]:
        """Return the pasted images whose placeholders are in the text."""
        return [part for placeholder, part in self._images.items() if placeholder in text]

    def highlighted(self) -> Completion | None:
        """Return the completion that Enter takes: the selected one, or else the first if a command's name is being typed."""
        state = self.complete_state
        if state is None or state.current_completion is not None:
            return None if state is None else state.current_completion
        first = next(iter(state.completions), None)
        is_name = isinstance(first, CommandCompletion) and first.is_name
        return first if is_name and self.document.is_cursor_at_the_end else None

    def full_text(self) -> str:
        """Return the text to send, with all pastes in full."""
        text = self.text
        for placeholder, pasted in self._pastes.items():
            text = text.replace(placeholder, pasted, 1)
        return text

    def delete_before_cursor(self, count: int = 1) -> str:
        """Delete text before the cursor, and whole paste placeholders."""
        start, end = self._around_pastes(max(self.cursor_position - count, 0), self.cursor_position)
        self.cursor_position = end
        return self._report_pastes(super().delete_before_cursor(end - start))

    def delete(self, count: int = 1) -> str:
        """Delete text after the cursor, and whole paste placeholders."""
        start, end = self._around_pastes(self.cursor_position, min(self.cursor_position + count, len(self.text)))
        self.cursor_position = start
        return self._report_pastes(super().delete(end - start))

    def _report_pastes(self, removed: str) -> str:
        if any(placeholder in removed for placeholder in self._pastes):
            self.on_paste_removed()
        return removed

    def _around_pastes(self, start: int, end: int) -> tuple[int, int]:
        """Return the range, extended to include each placeholder that it overlaps."""
        for placeholder in (*self._pastes, *self._images):
            at = self.text.find(placeholder)
            behind = at + len(placeholder)
            if at >= 0 and start < behind and end > at:
                start, end = min(start, at), max(end, behind)
        return start, end

    def replace(self, text: str, pastes: Mapping[str, str] | None = None) -> None:
        """Replace the whole text and move the cursor to its end."""
        self._pastes = dict(pastes or {})
        text = _UNENCODABLE.sub("\ufffd", text)
        self.set_document(Document(text, len(text)), bypass_readonly=True)

    def give_back(self, texts: Iterable[str]) -> None:
        """Insert texts before the current one, each on its own lines."""
        rest = self.text
        for number, text in enumerate(texts):
            self.cursor_position = len(self.text) - len(rest)
            if number:
                self.insert_text("\n")
            self.paste(text)
        if rest:
            self.insert_text("\n")
        self.cursor_position = len(self.text)

    def take(self) -> str:
        """Return the full text, clear the composer and append it to the history."""
        text = self.full_text()
        self.reset(append_to_history=True)
        self._pastes = {}
        return text

    def pastes(self) -> dict[str, str]:
        """Return the pastes that are still in the text, by placeholder."""
        return {placeholder: pasted for placeholder, pasted in self._pastes.items() if placeholder in self.text}


def mentions_of(text: str, directory: str) -> str:
    """Return a reference with `@` to each file if the text consists only of absolute paths of files, as terminals paste dropped files.
    Otherwise return an empty string.

    The paths can be quoted or escaped as in a shell, or `file://` URLs. A file in the directory gets a relative name.
    """
    text = text.strip()
    if not text or len(text) > _DROPPED_CHARACTERS or not text.startswith(("/", "~/", "'", '"', "file://")):
        return ""
    names = [text] if "\n" not in text and _is_file(text) else _words(text)
    paths = [_local_path(name) for name in names[: _DROPPED_FILES + 1]]
    if not 0 < len(paths) <= _DROPPED_FILES or not all('"' not in path and "\n" not in path and _is_file(path) for path in paths):
        return ""
    return "".join(f"{_mention(path, directory)} " for path in paths)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:  # an open quote
        return []


def _local_path(name: str) -> str:
    """Return the path of a `file://` URL on this machine, or a path without `~`. Return an empty string for anything else."""
    if name.startswith("file://"):
        try:
            url = urlsplit(name.replace("#", "%23").replace("?", "%3F"))
        except ValueError:
            return ""
        return unquote(url.path) if url.netloc in ("", "localhost") else ""
    return str(Path(name).expanduser()) if name.startswith(("/", "~/")) else ""


def _is_file(path: str) -> bool:
    try:
        return path.startswith("/") and Path(path).is_file()
    except (OSError, ValueError):  # not readable, too long, or with a NUL
        return False


def _mention(path: str, directory: str) -> str:
    name = str(Path(path).relative_to(directory)) if directory and Path(path).is_relative_to(directory) else path
    return f"@{name}" if re.fullmatch(r"[\w./+-]*[\w+-]", name) else f'@"{name}"'


_READ_BYTES = 2_000_000
"""Number of bytes read from the end of the history file."""
_MAX_CHARACTERS = 20_000
"""Longer entries are not saved."""

log = logging.getLogger("moot.cli")


class PromptHistory(History):
    """The prompt history file, with one JSON string per line. Several processes may append to it. Invalid lines are skipped."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def load_history_strings(self) -> Iterable[str]:
        """Yield the entries without duplicates, newest first."""
        try:
            with self._path.open("rb") as file:
                file.seek(max(0, os.fstat(file.fileno()).st_size - _READ_BYTES))
                lines = file.read().split(b"\n")
        except OSError:  # missing or not readable
            return
        seen: set[str] = set()
        for line in reversed(lines):
            try:
                text = json.loads(line)
            except ValueError:
                continue
            if isinstance(text, str) and text and text not in seen:
                seen.add(text)
                yield text

    def store_string(self, string: str) -> None:
        """Append one entry."""
        if not string.strip() or len(string) > _MAX_CHARACTERS:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                os.write(descriptor, json.dumps(string).encode() + b"\n")
            finally:
                os.close(descriptor)
        except OSError as error:
            log.warning("Cannot save the prompt history in %s: %s.", self._path, error.strerror)
