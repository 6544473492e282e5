"""The format `aider`: Aider's chat history in a project, `.aider.chat.history.md`.

Each run of the program is a conversation, which starts with `# aider chat started at TIME`. Prompt lines start with `#### `, lines written
by the program itself start with `> `, and all other lines are the answer. Prompt lines and the program's lines end with two spaces, which
distinguishes them from headings and quotations in answers. Reference: `aider/{io,args,coders/base_coder}.py` of
https://github.com/Aider-AI/aider.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from hashlib import blake2b
from itertools import chain, groupby
from pathlib import Path

from moot.errors import UsageError
from moot.formats.kit.bases import ManyFiles
from moot.formats.kit.fields import local_milliseconds, money
from moot.formats.kit.files import open_regular
from moot.formats.kit.records import Records, SessionRecord, entries_of, routed_step, usage_without_cache
from moot.types.canonical import Json, JsonObject
from moot.types.format import Fidelity, ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part
from moot.types.usage import Usage

_NAME = ".aider.chat.history.md"
_BEGINS = b"# aider chat started at "
_PROMPT = "#### "
_PROMPT_LINE = re.compile(r"^#### (.*?)(?:  )?$", re.MULTILINE)
_LINE = re.compile(r"[^\n]+")
_MODEL = re.compile(r"> (?:Main m|M)odel: (\S+)")
_COUNT = r"([\d.,]+[kM]?)"
_TOKENS = re.compile(rf"> Tokens: {_COUNT} sent(?:, {_COUNT} cache write)?(?:, {_COUNT} cache hit)?, {_COUNT} received\.(.*)")
_COST = re.compile(r"Cost: \$([\d.,]+) message")
_UNITS = {"k": 1_000, "M": 1_000_000}
_LONGEST = 64 << 20
"""Maximum size in bytes of one chat."""
_DEPTH = 3
"""Maximum depth of projects below the home folder."""
_FOLDERS = 3_000
"""Maximum number of folders to search for projects."""
_PRIVATE = frozenset(
    ("Applications", "Desktop", "Documents", "Downloads", "Library", "Movies", "Music", "Pictures", "Public", "node_modules")
)
"""Folders that are not searched, because macOS would ask the user for permission, or because they are large and contain no projects."""


class Aider(ManyFiles):
    name = "aider"
    version = 2
    suffix = ".md"
    files = (_NAME,)
    project_file = _NAME

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        if named := environ.get("AIDER_CHAT_HISTORY_FILE"):
            yield Path(named).expanduser()
        yield from _histories(home)

    def is_own(self, path: Path, head: bytes) -> bool:
        return head.lstrip().startswith(_BEGINS)

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        seen: dict[str, int] = {}
        before: list[ImportedRecord] = []
        found = False
        for lines in _runs(path):
            first = next(lines)
            is_run = first.startswith(_BEGINS)  # only the lines at the beginning of a file can lack a start line
            found = found or is_run
            records = _records(first, lines, path)
            head = list(_through_prompt(records))
            if not isinstance(head[-1], SessionRecord):  # the program was started and exited without a prompt
                if not is_run:
                    raws = [one.raw for one in head if isinstance(one, ImportedRecord) and bytes(one.raw).strip()]
                    before += [ImportedRecord(raw, problem="text before the first chat") for raw in raws]
                continue
            prompt = bytes(head[-1].raw)
            id = blake2b(first + prompt[: prompt.index(b"\n") + 1], digest_size=16).hexdigest()
            seen[id] = seen.get(id, 0) + 1
            entries = entries_of(chain(before, head, records))
            yield ImportedConversation(id if seen[id] == 1 else f"{id}#{seen[id]}", entries, started_at=_time(first))
            before = []
        if not found:
            raise UsageError(f"{str(path)!r} is not an Aider chat history: it has no line '{_BEGINS.decode()}…'.")


def _histories(home: Path) -> Iterator[Path]:
    """Yield the chat histories in the home folder and in projects a few folders below it."""
    left, folders = _FOLDERS, [home]
    for _ in range(_DEPTH + 1):
        below: list[Path] = []
        for folder in folders[:left]:
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name == _NAME and entry.is_file(follow_symlinks=False):
                        yield folder / _NAME
                    elif not entry.name.startswith(".") and entry.name not in _PRIVATE and entry.is_dir(follow_symlinks=False):
                        below.append(folder / entry.name)
        left -= len(folders[:left])
        folders = sorted(below)


def _runs(path: Path) -> Iterator[Iterator[bytes]]:
    """Yield the lines of each run of the program. The caller must consume the lines before requesting the next run."""
    number = 0

    def run_of(line: bytes) -> int:
        nonlocal number
        number += line.startswith(_BEGINS)
        return number

    yield from (lines for _, lines in groupby(_lines(path), run_of))


def _lines(path: Path) -> Iterator[bytes]:
    try:
        with open_regular(path) as file:
            while line := file.readline(_LONGEST):
                yield line
    except OSError as error:
        raise UsageError(f"Can't read {str(path)!r}: {error.strerror}") from error


def _through_prompt(records: Records) -> Records:
    """Yield the records up to the first prompt.

    The prompt's first line identifies the conversation. Its other lines may not have been written yet.
    """
    for one in records:
        yield one
        if isinstance(one, SessionRecord):
            return


def _time(first: bytes) -> int:
    """Return the time in the first line of a run."""
    written: Json = first.removeprefix(_BEGINS).decode("utf-8", "replace").strip()
    return local_milliseconds({"at": written}, "at") if first.startswith(_BEGINS) else 0


def _records(first: bytes, lines: Iterator[bytes], path: Path) -> Records:
    reader = _Reader(_time(first))
    yield ImportedFacts(directory=str(path.absolute().parent) if path.name == _NAME else "", agent="aider", created_at=reader.at)
    size = 0
    for line in chain([first], lines):
        size += len(line)
        if size <= _LONGEST:
            yield from reader.take(line)
    yield from reader.close()
    if reader.rounded:
        yield ImportedFacts(Fidelity({"usage": -reader.rounded}, {"usage": reader.rounded}))
    if size > _LONGEST:
        yield ImportedRecord(b"", problem=f"the chat is larger than {_LONGEST >> 20} MiB, and its end was not read")


class _Reader:
    """Reader for the lines of one run."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.rounded = 0
        """Number of calls whose token counts the program rounded."""
        self._model = ""
        self._number = 0
        self._prompted = False
        self._in_fence = False
        self._after_blank = True
        self._prompt = bytearray()
        self._answer = bytearray()
        """Lines of the answer since the last model call, including the program's own lines."""
        self._facts: JsonObject | None = None
        """Token counts of the model call, once they are known."""

    def take(self, line: bytes) -> Iterator[SessionRecord | ImportedRecord | ImportedFacts]:
        words = line.decode("utf-8", "replace").rstrip("\r\n")
        if (self._prompt and words.startswith(_PROMPT)) or (line.endswith(b"\n") and self._is_prompt(words)):
            if not self._prompt:
                yield from self._close_answer()
            self._prompt += line
            return
        yield from self._close_prompt()
        if line.startswith(b"#") and not line.endswith(b"\n"):  # it may turn out to be a prompt
            yield ImportedRecord(line, problem="the last line is truncated")
            return
        tokens = _TOKENS.match(words)
        if self._facts is not None and (tokens or (words.strip() and not _is_notice(words))):
            yield from self._close_answer()
        self._answer += line
        self._after_blank = not words.strip()
        if tokens:
            self._facts = self._step(tokens)
        if (model := _MODEL.match(words)) is not None:
            self._model = model[1]
            yield ImportedFacts(model=str(routed_step(self._model).get("model", "")))
        if _is_notice(words):  # the answer has ended, even if it contains an unclosed code fence
            self._in_fence = False
        elif words.startswith("```"):
            self._in_fence = not self._in_fence

    def close(self) -> Iterator[SessionRecord | ImportedRecord]:
        yield from self._close_prompt()
        yield from self._close_answer()

    def _is_prompt(self, words: str) -> bool:
        """Return whether a line is the first line of a prompt. Headings in answers look similar."""
        return words.startswith(_PROMPT) and words.endswith("  ") and self._after_blank and not self._in_fence

    def _close_prompt(self) -> Iterator[SessionRecord]:
        if self._prompt:
            raw, self._prompt = bytes(self._prompt), bytearray()
            said = _PROMPT_LINE.sub(r"\1", _text(raw).removesuffix("\n"))
            self._number += 1
            self._prompted = True
            yield SessionRecord(f"{self._number}", "user", raw, (text_part(said),), at=self.at)

    def _close_answer(self) -> Iterator[SessionRecord | ImportedRecord]:
        raw, facts, self._answer, self._facts = bytes(self._answer), self._facts, bytearray(), None
        parts = tuple(_parts(_text(raw)))
        if not self._prompted:
            if raw:
                yield ImportedRecord(raw)
        elif parts or facts is not None:
            self._number += 1
            yield SessionRecord(f"{self._number}", "assistant", raw, parts, at=self.at, step=facts)

    def _step(self, tokens: re.Match[str]) -> JsonObject:
        """Return the token counts and the cost of a call. The program rounds large numbers, and shows a cost only if it knows the price."""
        sent, written, read, received = (_count(tokens[group]) for group in range(1, 5))
        self.rounded += any((tokens[group] or "").endswith(tuple(_UNITS)) for group in range(1, 5))
        is_whole = (sent or 0) >= (written or 0) + (read or 0)
        usage = Usage(sent, received, read, written) if is_whole else usage_without_cache(sent, received, read, written)
        named = _COST.search(tokens[5])
        cost = money(_number(named[1])) if named is not None else None
        return routed_step(self._model, usage=usage.to_json(), cost=cost) or {"model": ""}


def _is_notice(words: str) -> bool:
    """Return whether a line was written by the program itself."""
    return words.startswith("> ") and words.endswith("  ")


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace").replace("\r\n", "\n")


def _parts(text: str) -> Iterator[Part]:
    """Yield the text of an answer, and the program's own lines as notices."""
    begin, is_notice = 0, False
    for line in _LINE.finditer(text):
        starts_notice = _is_notice(line[0])
        if starts_notice != is_notice and not (is_notice and not line[0].strip()):
            yield from _part(text[begin : line.start()].strip(), is_notice=is_notice)
            begin, is_notice = line.start(), starts_notice
    yield from _part(text[begin:].strip(), is_notice=is_notice)


def _part(said: str, *, is_notice: bool) -> Iterator[Part]:
    if said and is_notice:
        lines = (line.removeprefix("> ").rstrip() for line in said.split("\n") if line.strip())
        yield {"type": "data-notice", "data": {"text": "\n".join(lines)}}
    elif said:
        yield text_part(said)


def _count(written: str | None) -> int | None:
    if written is None:
        return None
    found = _number(written.rstrip("kM"))
    return None if found is None else round(found * _UNITS.get(written[-1], 1))


def _number(written: str) -> float | None:
    with suppress(ValueError):
        return float(written.replace(",", ""))
    return None
