"""The format `vibe`: sessions of Mistral Vibe in its unified log, each in a folder `~/.vibe/logs/session/unified/ID/`.

The file `CURRENT` contains the name of a generation. The manifest of the generation lists chunks, which together contain the history up to
a sequence number, and the journal continues from there with `projection_delta` records. Usage is available only for model calls whose
result is still in a journal. Reference: `mistralai_vibe_local_harness.vibe._storage` and `._projection` of mistral-vibe 3.0.2 on PyPI, and
one of its sessions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from moot.errors import UsageError
from moot.formats.kit.bases import ReadOnly, environment_folder
from moot.formats.kit.documents import json_lines
from moot.formats.kit.fields import at, items, milliseconds, obj, objects, text, whole_number
from moot.formats.kit.files import files_below
from moot.formats.kit.json import array_items, member, parse_json, read_document
from moot.formats.kit.records import Output, Records, SessionRecord, entries_of, file, finish_reason, reasoning, step, tool_call
from moot.types.canonical import JsonObject, dumps, empty
from moot.types.format import ImportedConversation, ImportedFacts, ImportedRecord
from moot.types.message import Part, text_part
from moot.types.usage import Usage

_STORE = "mistral.vibe.unified-session-store/"


@dataclass(slots=True)
class _Entry:
    """A history entry, and the bytes from which it was read."""

    value: JsonObject
    raws: list[bytes]


@dataclass(slots=True)
class _Log:
    """The contents of a session's folder."""

    entries: dict[str, _Entry] = field(default_factory=dict[str, _Entry])
    calls: dict[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Action id → result of the model call."""
    problems: list[ImportedRecord] = field(default_factory=list[ImportedRecord])


class Vibe(ReadOnly):
    name = "vibe"
    version = 2
    stored_files: tuple[str, ...] = (
        *("CURRENT", "meta.json", "chunks/*.json", "journal/*.jsonl"),
        *("generations/*/manifest.json", "generations/*/projection-state.json"),
    )
    resume_command = ("vibe", "--resume")
    resumable: Literal[True] = True

    def places(self, home: Path, environ: Mapping[str, str]) -> Iterator[Path]:
        yield environment_folder(environ.get("VIBE_HOME"), home / ".vibe") / "logs" / "session" / "unified"

    def sniff(self, path: Path, head: bytes) -> bool:
        return not head and next(self.sources(path), None) is not None

    def sources(self, folder: Path) -> Iterator[Path]:
        if _current(folder):
            yield folder
            return
        with_one = (path.parent for path in files_below(folder, "CURRENT", depth=2))
        yield from (session for session in with_one if session != folder and _current(session))

    def read(self, path: Path) -> Iterator[ImportedConversation]:
        current = _current(path)
        if not current:
            raise UsageError(f"{str(path)!r} is not a Mistral Vibe session: it has no CURRENT file.")
        about = _json(path / "meta.json")
        parent = text(about, "parent_session_id") or None
        yield ImportedConversation(text(current, "session_id") or path.name, entries_of(_records(path, current, about)), parent)


def _current(folder: Path) -> JsonObject:
    """Return the content of CURRENT, or nothing if the folder is not a session."""
    place = folder / "CURRENT"
    if not folder.is_dir() or not place.is_file() or place.is_symlink():
        return {}
    found = _json(place)
    return found if text(found, "store_format").startswith(_STORE) else {}


def _json(path: Path) -> JsonObject:
    """Load a small JSON object. Return an empty object if it can't be read."""
    try:
        return obj(parse_json(read_document(path))) if path.is_file() and not path.is_symlink() else {}
    except (UsageError, ValueError):
        return {}


def _records(folder: Path, current: JsonObject, about: JsonObject) -> Records:
    if about:
        yield ImportedRecord(read_document(folder / "meta.json"), about)
    yield ImportedFacts(
        title=text(about, "title"),
        directory=text(about, "environment", "working_directory") or text(about, "origin_directory"),
        agent="vibe",
        model=text(about, "config", "active_model"),
        created_at=milliseconds(about, "start_time"),
        updated_at=milliseconds(about, "end_time"),
        archived=about.get("archived_at") is not None,
    )
    log = _log(folder, current)
    yield from log.problems
    yield from _steps(log, text(about, "config", "model_name") or text(about, "config", "active_model"))


def _log(folder: Path, current: JsonObject) -> _Log:
    """Return the history of the newest generation, with its journal applied."""
    log = _Log()
    generation = folder / "generations" / Path(text(current, "generation")).name
    manifest = _json(generation / "manifest.json")
    if not manifest:
        log.problems.append(ImportedRecord(b"", problem=f"can't read the manifest of generation {generation.name!r}"))
    elif not isinstance(at(manifest, "projection_state", "chunks"), list) and not (generation / "projection-state.json").is_file():
        log.problems.append(ImportedRecord(b"", problem=f"the manifest of generation {generation.name!r} lists no chunks"))
    for name in items(manifest, "projection_state", "chunks"):
        _chunk(log, folder / "chunks" / f"{Path(str(name)).name}.json")
    state = generation / "projection-state.json"
    for entry in objects(_json(state), "snapshot", "history", "entries"):  # for a generation without chunks
        _store(log, entry, dumps(entry) + b"\n")
    after = whole_number(manifest, "snapshot_sequence") or 0
    for journal in files_below(folder / "journal", ".jsonl", depth=1):
        _journal(log, journal, after)
    return log


def _chunk(log: _Log, path: Path) -> None:
    try:
        data = read_document(path)
    except UsageError as error:
        log.problems.append(ImportedRecord(b"", problem=error.message))
        return
    for piece in array_items([data]):
        if isinstance(piece.value, dict):
            _store(log, piece.value, piece.raw)
        else:
            log.problems.append(ImportedRecord(piece.raw, piece.value, piece.problem or f"entry {piece.number} is not an object"))


def _journal(log: _Log, path: Path, after: int) -> None:
    """Apply the changes after the snapshot and collect the results of all model calls."""
    for line in json_lines(path):
        if line.value is None:
            log.problems.append(ImportedRecord(line.raw, problem=line.problem))
            continue
        payload = obj(line.value, "payload")
        if line.value.get("type") == "action_result":
            log.calls[text(payload, "action_id")] = obj(payload, "result", "result")
        elif line.value.get("type") == "projection_delta" and (whole_number(line.value, "sequence") or 0) > after:
            outer = member(line.raw, "payload")
            inner = member(line.raw, "delta", outer.begin) if outer is not None else None
            pieces = list(array_items([line.raw[inner.begin : inner.end]])) if inner is not None else []
            applied = [_apply(log, obj(piece.value), piece.raw) for piece in pieces]
            if not applied or not all(applied):
                log.problems.append(ImportedRecord(line.raw, line.value, f"change {line.number} of the journal has an unknown shape"))
        elif whole_number(line.value, "sequence") is None or ("delta" in payload and text(line.value, "type") != "projection_delta"):
            log.problems.append(ImportedRecord(line.raw, line.value, f"line {line.number} of the journal has an unknown type"))


def _apply(log: _Log, change: JsonObject, raw: bytes) -> bool:
    """Apply a change. Return False if its structure is unknown."""
    match change.get("op"):
        case "append_entry" | "replace_entry":
            span = member(raw, "entry")
            if span is None or not obj(change, "entry"):
                return False
            _store(log, obj(change, "entry"), raw[span.begin : span.end])
        case "remove_entry":
            log.entries.pop(text(change, "id"), None)
        case "set_history_entries":
            log.entries.clear()
            for entry in objects(change, "entries"):
                _store(log, entry, dumps(entry) + b"\n")
        case _:
            return False
    return True


def _store(log: _Log, entry: JsonObject, raw: bytes) -> None:
    """Add or replace an entry. The bytes of earlier versions are kept."""
    id = text(entry, "id") or f"entry-{len(log.entries) + 1}"
    known = log.entries.get(id)
    if known is None:
        log.entries[id] = _Entry(entry, [raw])
    elif known.value != entry:
        known.value = entry
        known.raws.append(raw)


def _steps(log: _Log, model: str) -> Iterator[SessionRecord | ImportedRecord]:
    """Convert entries to records. The output of one model call and its tool calls form one record."""
    open_: list[_Entry] = []
    for id, entry in log.entries.items():
        kind = entry.value.get("type")
        role = text(entry.value, "role")
        if kind not in ("message", "reasoning", "effect"):
            yield ImportedRecord(b"".join(entry.raws), entry.value)
            continue
        if kind == "effect" and not _is_read(entry.value):
            yield ImportedRecord(b"", problem=f"the output of call {id!r} has an unknown shape")
        kinds = {text(one.value, "type") for one in open_}  # reasoning or text that follows text or a tool call starts a new model call
        if open_ and (role == "user" or (kind != "effect" and not kinds.isdisjoint(("effect", "message")))):
            yield _step(open_, log, model)
            open_ = []
        if role == "user":
            yield SessionRecord(id, "user", b"".join(entry.raws), tuple(_content(entry.value)), at=milliseconds(entry.value, "createdAt"))
        else:
            open_.append(entry)
    if open_:
        yield _step(open_, log, model)


def _step(entries: list[_Entry], log: _Log, model: str) -> SessionRecord:
    parts: list[Part] = []
    outputs: list[Output] = []
    for entry in entries:
        match entry.value.get("type"):
            case "reasoning":
                parts.append(reasoning(text(entry.value, "text")))
            case "message":
                parts += _content(entry.value)
            case _:
                id, detail = text(entry.value, "id"), obj(entry.value, "detail")
                parts.append(tool_call(id, text(detail, "toolName") or text(detail, "kind"), detail.get("input")))
                outputs += _output(id, obj(entry.value, "state"))
    first = entries[0].value
    raw = b"".join(raw for entry in entries for raw in entry.raws)
    id, when = text(first, "id"), milliseconds(first, "createdAt")
    return SessionRecord(id, "assistant", raw, tuple(parts), tuple(outputs), at=when, step=_facts(entries, log, model))


def _facts(entries: list[_Entry], log: _Log, model: str) -> JsonObject:
    """Return the usage and finish reason of a model call from the journal. The ids of the call's entries contain the id of its action."""
    ids = (text(entry.value, "id").partition("-") for entry in entries)
    actions = [rest[:36] for kind, _, rest in ids if kind in ("assistant", "reasoning")]
    found: JsonObject = next((log.calls[action] for action in actions if action in log.calls), empty())
    usage = obj(found, "usage")
    count = Usage(whole_number(usage, "input_tokens"), whole_number(usage, "output_tokens"), whole_number(usage, "cached_input_tokens"))
    return step(model, finish_reason=finish_reason(text(found, "finish_reason")), usage=count.to_json())


def _is_read(effect: JsonObject) -> bool:
    """Return True if a call has no output yet, or an output that can be read."""
    state = obj(effect, "state")
    if not (outputs := list(_output("", state))):
        return text(state, "status") in _OPEN
    known = isinstance(at(state, "output", "content"), list) or isinstance(state.get("outputText"), str)
    return known or outputs[0].value not in ("", None)


_OPEN = ("running", "pending", "in_progress")


def _output(id: str, state: JsonObject) -> Iterator[Output]:
    status = text(state, "status")
    if status in _OPEN or not status:
        return
    output = obj(state, "output")
    value = output.get("structured_content")
    if value is None:
        value = "\n".join(text(one, "text") for one in objects(output, "content")) or text(state, "outputText") or text(state, "error")
    denied = text(state, "decision") in ("reject", "deny", "skip")
    yield Output(id, value, status != "completed" or output.get("type") not in (None, "success"), denied=denied)


def _content(entry: JsonObject) -> Iterator[Part]:
    for block in objects(entry, "content"):
        kind = block.get("type")
        if kind == "text":
            yield text_part(text(block, "text"))
        elif kind == "image" and text(block, "attachment", "source", "data"):
            media_type = text(block, "attachment", "mimeType")
            yield file(f"data:{media_type};base64,{text(block, 'attachment', 'source', 'data')}", media_type)
        elif kind == "resource" and isinstance(written := at(block, "resource", "text"), str):
            yield text_part(written)
        else:
            yield {"type": "data-block", "data": block}
