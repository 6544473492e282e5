"""Indexes of skills and agents: static JSON files at any URL or path. Each entry includes the hash of its content."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import urljoin, urlsplit

from anyio import to_thread

from moot.errors import NotFound, Refused, UsageError
from moot.guard.paths import Paths
from moot.guard.urls import Policy, fetch
from moot.plugins.registry import hint
from moot.skills.package import ARCHIVE_BYTES
from moot.types.canonical import Json, JsonObject, loads_object

VERSION = 1
INDEX_BYTES = 5 << 20
ENTRIES = 5_000

Kind: TypeAlias = Literal["skill", "agent"]

_HASH = re.compile(r"[0-9a-f]{64}")
_KINDS: tuple[tuple[Kind, str, str], ...] = (("skill", "skills", "archive"), ("agent", "agents", "file"))


@dataclass(frozen=True, slots=True)
class Entry:
    """A skill or an agent in an index."""

    kind: Kind
    name: str
    description: str
    location: str
    """URL or path, relative to the index."""
    sha256: str
    index: str
    category: str = ""
    tags: tuple[str, ...] = ()

    def to_json(self) -> JsonObject:
        return {
            "kind": self.kind,
            "name": self.name,
            "description": self.description,
            "category": self.category,
            "tags": list[Json](self.tags),
            "sha256": self.sha256,
            "index": self.index,
        }


async def read_indexes(places: Sequence[str]) -> list[Entry]:
    """Return the entries of several indexes. Raise UsageError if `places` is empty, Refused if an index can't be read."""
    if not places:
        raise UsageError("No index is configured.", fix="Use --index URL, or set `skills.indexes` in the configuration.")
    return [entry for place in places for entry in await read_index(place)]


async def read_index(place: str) -> list[Entry]:
    """Return the entries of an index: a URL or an absolute path. Raise Refused if it can't be read or is not valid."""
    if _is_url(place):
        data = await fetched(place, Policy(bytes=INDEX_BYTES, anywhere=True))
    else:
        data = await to_thread.run_sync(_read, Path(place).parent, Path(place).name, INDEX_BYTES)
    try:
        return entries_of(loads_object(data), place)
    except ValueError as error:
        raise Refused(f"The index {place!r} is not valid: {error}") from error


def entries_of(index: JsonObject, place: str) -> list[Entry]:
    """Return the entries of an index. Raise ValueError with the place of the first mistake."""
    if index.get("version") != VERSION:
        raise ValueError(f"version: expected {VERSION}.")
    found: list[Entry] = []
    for kind, key, location in _KINDS:
        listed = index.get(key, [])
        if not isinstance(listed, list) or len(listed) > ENTRIES:
            raise ValueError(f"{key}: expected a list of at most {ENTRIES:,} entries.")
        found += [_entry(item, f"{key}[{at}]", kind, location, place) for at, item in enumerate(listed)]
    return found


def _entry(item: Json, where: str, kind: Kind, location: str, place: str) -> Entry:
    if not isinstance(item, dict):
        raise ValueError(f"{where}: expected an object.")
    for name in ("name", "description", location, "sha256"):
        if not isinstance(item.get(name), str) or not item[name]:
            raise ValueError(f"{where}.{name}: expected text.")
    if not _HASH.fullmatch(str(item["sha256"])):
        raise ValueError(f"{where}.sha256: expected 64 hexadecimal digits.")
    tags = item.get("tags")
    return Entry(
        kind,
        str(item["name"])[:64],
        str(item["description"])[:1024],
        str(item[location]),
        str(item["sha256"]),
        place,
        str(item.get("category") or ""),
        tuple(map(str, tags)) if isinstance(tags, list) else (),
    )


def matching(entries: Iterable[Entry], query: str) -> list[Entry]:
    """Return the entries that contain each word of the query, ignoring case."""
    words = query.casefold().split()
    return [
        entry
        for entry in entries
        if all(word in " ".join((entry.name, entry.description, entry.category, *entry.tags)).casefold() for word in words)
    ]


def entry_named(entries: Iterable[Entry], kind: Kind, name: str) -> Entry:
    """Return the first entry with this name. Raise NotFound if there is none."""
    known = {entry.name: entry for entry in reversed([entry for entry in entries if entry.kind == kind])}
    if name not in known:
        raise NotFound(f"No index has the {kind} {name!r}.{hint(name, list(known))}", fix="moot skills search")
    return known[name]


async def content_of(entry: Entry) -> bytes:
    """Return the content of an entry. Raise Refused if its hash is not the one in the index."""
    if _is_url(entry.index):
        url = urljoin(entry.index, entry.location)
        is_own = urlsplit(url)[:2] == urlsplit(entry.index)[:2]  # content on another host must be on the public network
        data = await fetched(url, Policy(bytes=ARCHIVE_BYTES, anywhere=True) if is_own else Policy(bytes=ARCHIVE_BYTES))
    elif _is_url(entry.location):
        data = await fetched(entry.location, Policy(bytes=ARCHIVE_BYTES))
    else:
        data = await to_thread.run_sync(_read, Path(entry.index).parent, entry.location, ARCHIVE_BYTES)
    found = await to_thread.run_sync(lambda: sha256(data).hexdigest())
    if found != entry.sha256:
        raise Refused(
            f"{entry.location!r} has the hash {found}, but the index expects {entry.sha256}.", fix="Report this to the author of the index."
        )
    return data


def _is_url(place: str) -> bool:
    return place.startswith(("https://", "http://"))


async def fetched(url: str, policy: Policy) -> bytes:
    """Return the content of a URL. Raise Refused if it can't be loaded completely."""
    page = await fetch(url, policy=policy)
    if page.status != 200 or page.cut:
        raise Refused(
            f"{url!r} could not be loaded: {'it is too large' if page.cut else f'the server responded with status {page.status}'}."
        )
    return page.body


def _read(folder: Path, name: str, limit: int) -> bytes:
    with Paths((folder,), folder, links=False).open_read(name) as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Refused(f"{name!r} is larger than {limit >> 20} MiB.")
    return data
