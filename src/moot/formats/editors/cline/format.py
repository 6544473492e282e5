"""The formats `cline`, `roo` and `kilo-legacy`: tasks of Cline, Roo Code and Kilo Code's old extension, each in its own folder.

`api_conversation_history.json` contains the messages as they were sent to the model, including text that the program added.
`ui_messages.json` contains the displayed entries, including the tokens and cost of each model call. If the first file is missing, the
messages are read from the second one. References: `apps/vscode/src/core/storage/disk.ts` and `shared/HistoryItem.ts` of
https://github.com/cline/cline, and `packages/types/src/{history,message}.ts` of https://github.com/RooCodeInc/Roo-Code.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from moot.errors import UsageError
from moot.formats.editors.cline.display import is_shown, messages_shown
from moot.formats.editors.cline.messages import is_text_block, messages_in
from moot.formats.editors.cline.task import HISTORY, ITEM, METADATA, SHOWN, Task
from moot.formats.editors.folders import user_folders
from moot.formats.kit.bases import ReadOnly, environment_folder
from moot.formats.kit.fields import milliseconds, obj, text
from moot.formats.kit.json import ArrayItem
from moot.formats.kit.records import Records, entries_of
from moot.types.canonical import JsonObject
from moot.types.format import ImportedConversation, ImportedFacts

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_ROLES = frozenset({"user", "assistant"})


class _Tasks(ReadOnly):
    """Folders of tasks. The program is recognized by the path or, if a folder was copied elsewhere, by the folder's name and files."""

    version = 2
    stored_files: tuple[str, ...] = (HISTORY, SHOWN, ITEM, METADATA)
    suffix = ".json"
    extension = ""
    """Id of the extension. It is also the name of the extension's folder in `globalStorage`."""
    counts_cache = True
    """True if the program's input count includes cached tokens."""

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        for user in user_folders(home, environ):
            yield user / "globalStorage" / self.extension / "tasks"

    def neighbors(self, place: Path) -> Iterator[Path]:
        yield place.parent / "state" / "taskHistory.json"

    def sniff(self, path: Path, head: bytes) -> bool:
        return not head and next(self.sources(path), None) is not None

    def sources(self, folder: Path) -> Iterator[Path]:
        """Yield the tasks: the folder itself, or the tasks in it or in its subfolder `tasks`."""
        if _is_task(folder):
            found = [folder]
        else:
            found = [task for place in (folder, folder / "tasks") for task in _folders(place) if _is_task(task)]
        yield from (task for task in found if _program_of(task) == self.name)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        tasks = [path] if _is_task(path) else list(self.sources(path))
        if not tasks:
            raise UsageError(f"{str(path)!r} is not a task folder: it contains neither {HISTORY} nor {SHOWN}.")
        for folder in tasks:
            task = Task(folder)
            item = task.item()
            id = text(item.value, "id") or folder.name
            started = int(id) if id.isascii() and id.isdigit() and len(id) == 13 else 0
            yield ImportedConversation(
                id, entries_of(self._records(task, item, started)), text(item.value, "parentTaskId") or None, started_at=started
            )

    def knows_record(self, body: JsonObject) -> bool:
        is_message = text(body, "role") in _ROLES and isinstance(body.get("content"), str)
        return is_text_block(body) or is_message or is_shown(body) or "tokensIn" in body

    def _records(self, task: Task, element: ArrayItem, started: int) -> Records:
        item = obj(element.value)
        yield ImportedFacts(
            title=text(item, "task").strip().partition("\n")[0],
            directory=text(item, "cwdOnTaskInitialization") or text(item, "workspace"),
            agent=self.name,
            created_at=started,
            updated_at=milliseconds(item, "ts"),
            is_finished=item.get("status") == "completed",
        )
        yield from task.records()
        if task.path(HISTORY) is not None:
            yield from messages_in(task, element, counts_cache=self.counts_cache)
        else:
            yield from messages_shown(task, element, counts_cache=self.counts_cache)


class Cline(_Tasks):
    name = "cline"
    extension = "saoudrizwan.claude-dev"
    counts_cache = False

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield from super().places(home, environ)
        folder = environment_folder(environ.get("CLINE_DIR"), home / ".cline")
        yield environment_folder(environ.get("CLINE_DATA_DIR"), folder / "data") / "tasks"


class Roo(_Tasks):
    name = "roo"
    extension = "rooveterinaryinc.roo-cline"


class KiloLegacy(_Tasks):
    name = "kilo-legacy"
    extension = "kilocode.kilo-code"


_PROGRAMS = {"saoudrizwan.claude-dev": "cline", ".cline": "cline", "rooveterinaryinc.roo-cline": "roo", "kilocode.kilo-code": "kilo-legacy"}


def _program_of(task: Path) -> str:
    """Return the program that wrote a task.
    Cline's ids are times, those of the other programs are UUIDs, and only Roo writes `history_item.json`.
    """
    named = next((_PROGRAMS[part] for part in reversed(task.parts) if part in _PROGRAMS), "")
    if named:
        return named
    if (task / "history_item.json").is_file():
        return "roo"
    return "kilo-legacy" if _UUID.fullmatch(task.name) else "cline"


def _is_task(folder: Path) -> bool:
    return any((folder / name).is_file() and not (folder / name).is_symlink() for name in (HISTORY, SHOWN))


def _folders(place: Path) -> Iterator[Path]:
    with suppress(OSError):
        entries = sorted(os.scandir(place), key=lambda entry: os.fsencode(entry.name))
        yield from (place / entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
