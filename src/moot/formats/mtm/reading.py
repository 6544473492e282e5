"""Notebooks as conversations."""

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
    """Read a notebook. Raise UsageError if it is not a notebook or has an unknown version."""
    found = document(path)
    metadata = found.value("metadata")
    facts = metadata if isinstance(metadata, dict) else {}
    if not isinstance(facts.get("uuid"), str) and "context" not in found:
        raise UsageError(f"{str(path)!r} is not a notebook of Mutsumi.")
    version = found.value(VERSION)
    if VERSION in found and version != _KNOWN:
        raise UsageError(f"{str(path)!r} has the unsupported notebook version {version!r}. Supported: {_KNOWN} and unversioned notebooks.")
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
        yield turns.broken(b"", "the file is truncated")
    yield _facts(turns, facts, path)


def _note(turns: Turns, note: Element) -> Entry:
    """Return a note between prompts, which is never sent to a model."""
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
