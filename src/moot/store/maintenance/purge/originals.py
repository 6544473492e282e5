"""Files of other programs that contain purged conversations: outside agents' sessions and import sources. moot never deletes them."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from moot.plugins import FORMATS
from moot.store.database.connection import Queries
from moot.store.rows import parse_stored_object
from moot.types.format import HasLocations, MultiSource, Resumable
from moot.types.maintenance import FileOutcome

log = logging.getLogger("moot.store")


@dataclass(frozen=True, slots=True)
class Originals:
    """References to files of other programs."""

    sessions: dict[str, str] = field(default_factory=dict[str, str])
    """Name of the agent by session id."""
    sources: list[str] = field(default_factory=list[str])
    """Paths that conversations were imported from. Uploaded files have only a name."""


def originals(queries: Queries, conversations: Iterable[int]) -> Originals:
    """Return the references that these conversations contain."""
    found = Originals()
    for no in conversations:
        runs: Any = queries.execute("SELECT agent_session_id, agent FROM run WHERE conversation = ? AND agent_session_id <> ''", (no,))
        found.sessions.update(runs)
        rows: Any = queries.execute("SELECT origin FROM conversation WHERE no = ? AND origin IS NOT NULL", (no,))
        found.sources.extend(str(parse_stored_object(origin).get("path") or "") for (origin,) in rows)
    return found


def original_files(found: Originals, home: Path, environ: Mapping[str, str]) -> list[FileOutcome]:
    """Return the files that exist, each once. Blocks."""
    outcomes: dict[str, FileOutcome] = {}
    for path, agent in _session_files(found.sessions, home, environ):
        words = f"{agent} keeps its own copy; moot doesn't delete it"
        outcomes.setdefault(str(path), FileOutcome(str(path), "left", words))
    for source in found.sources:
        if Path(source).is_absolute() and Path(source).exists():
            outcomes.setdefault(source, FileOutcome(source, "left", "the source of an import; moot doesn't delete it"))
    return list(outcomes.values())


def _session_files(sessions: Mapping[str, str], home: Path, environ: Mapping[str, str]) -> Iterator[tuple[Path, str]]:
    """Yield files that are named after a session or are in a folder named after one, each with the session's agent."""
    for name in FORMATS.names() if sessions else ():
        format = FORMATS.make(name)
        if not isinstance(format, Resumable) or not isinstance(format, HasLocations):
            continue
        try:
            for place in format.places(home, environ):
                for path in _sources(format, place.absolute()):
                    agent = next((agent for id, agent in sessions.items() if _is_named(path, id)), None)
                    if agent is not None:
                        yield path, agent
        except Exception as error:  # noqa: BLE001  a format may come from a plugin
            log.warning("the format %r could not list its sessions: %s: %s", name, type(error).__name__, error)


def _is_named(path: Path, session: str) -> bool:
    return path.stem == session or path.stem.endswith((f"-{session}", f"_{session}")) or session in path.parts


def _sources(format: object, place: Path) -> Iterable[Path]:
    return format.sources(place) if isinstance(format, MultiSource) and place.is_dir() else ()
