"""A notebook as a conversation: what its file says of it, and its messages in whichever shape they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from moot.errors import UsageError
from moot.formats._source.documents import Document, Element, document
from moot.formats._source.fields import milliseconds, text
from moot.formats._source.turns import Turns
from moot.formats.mtm.native_shape import native_message
from moot.formats.mtm.openai_shape import openai_message
from moot.types.canonical import JsonObject
from moot.types.format import Entry, ImportedConversation, ImportedFacts, ImportedRecord

__all__ = ["VERSION", "read_file"]

VERSION = "formatVersion"
_KNOWN = 1
_PLAIN = ("allowed_uris", "is_task_finished", "reasoning_effort", "activeRules", "activeSkills", "enabledMcpTools", "sub_agents_list")


def read_file(path: Path) -> ImportedConversation:
    """Raises UsageError for what is none, and for a version that is newer than what is known here."""
    found = document(path)
    metadata = found.value("metadata")
    facts = metadata if isinstance(metadata, dict) else {}
    if not isinstance(facts.get("uuid"), str) and "context" not in found:
        raise UsageError(f"{str(path)!r} is no notebook of Mutsumi")
    version = found.value(VERSION)
    if VERSION in found and version != _KNOWN:
        raise UsageError(f"{str(path)!r} is of version {version!r} of the notebooks; this moot knows {_KNOWN} and those without one")
    parent = facts.get("parent_agent_id")
    id = facts.get("uuid")
    entries = _entries(path, found, facts)
    return ImportedConversation(id if isinstance(id, str) and id else path.stem, entries, parent if isinstance(parent, str) else None)


def _entries(path: Path, found: Document, facts: JsonObject) -> Iterator[Entry]:
    if raw := found.raw("metadata"):
        yield ImportedRecord(raw, facts)
    turns = Turns()
    turns.tally.kept["records"] += bool(raw)
    for element in found.elements("context"):
        if element.value is None:
            yield turns.broken(element.raw, element.problem, lead=element.lead)
        elif VERSION in found:
            yield from native_message(turns, element, element.value)
        else:
            yield from openai_message(turns, element, element.value, path)
    yield from turns.end()
    for note in found.elements("notes"):
        yield _note(turns, note)
    if not found.whole:
        yield turns.broken(b"", "the file is cut off")
    yield _facts(turns, facts, path)


def _note(turns: Turns, note: Element) -> Entry:
    """A person's note between the prompts, which no model ever sees."""
    if note.value is None:
        return turns.broken(note.raw, note.problem)
    turns.tally.kept["records"] += 1
    return ImportedRecord(note.raw, {"note": note.value})


def _facts(turns: Turns, facts: JsonObject, path: Path) -> ImportedFacts:
    title, model, provider, agent = (text(facts.get(name)) for name in ("name", "model", "provider", "agentType"))
    turns.tally.kept["titles"] += bool(title)
    turns.tally.kept = +turns.tally.kept
    more: JsonObject = {name: facts[name] for name in _PLAIN if name in facts}
    return ImportedFacts(
        turns.tally.fidelity(),
        title=title,
        directory=str(path.absolute().parent.parent) if path.absolute().parent.name == ".mutsumi" else "",
        agent=agent,
        model=f"{model}@{provider}" if model and provider else model,
        created_at=milliseconds(facts.get("created_at")),
        metadata=more,
    )
