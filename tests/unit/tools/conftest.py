"""A tool's environment: a real folder, and doubles of what the runtime provides."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from moot.errors import NotFound
from moot.types.blob import Blob
from moot.types.canonical import Json, JsonObject
from moot.types.command_tool import Check
from moot.types.knowledge import MemoryFolder
from moot.types.tool import Question


class MemoryBlobs:
    def __init__(self) -> None:
        self.kept: dict[str, bytes] = {}

    async def put(self, data: bytes, media_type: str = "application/octet-stream") -> Blob:
        sha256 = hashlib.sha256(data).hexdigest()
        self.kept[sha256] = data
        return Blob(sha256, len(data), media_type)

    async def put_from(self, pieces: AsyncIterable[bytes], media_type: str = "application/octet-stream") -> Blob:
        return await self.put(b"".join([piece async for piece in pieces]), media_type)

    async def get(self, sha256: str, *, offset: int = 0, limit: int | None = None) -> bytes:
        if sha256 not in self.kept:
            raise NotFound(f"no blob {sha256!r}")
        return self.kept[sha256][offset : None if limit is None else offset + limit]


@dataclass
class Surroundings:
    directory: Path
    roots: tuple[Path, ...]
    settings: JsonObject = field(default_factory=dict)
    key: str = "run/tool:0.0.0"
    blobs: MemoryBlobs = field(default_factory=MemoryBlobs)
    replies: tuple[tuple[str, ...], ...] = ()
    asked: list[tuple[Question, ...]] = field(default_factory=list)
    reported: list[Json] = field(default_factory=list)
    cited: dict[str, str] = field(default_factory=dict)
    noted: list[JsonObject] = field(default_factory=list)
    drawer: dict[str, Any] = field(default_factory=dict)
    memory: tuple[MemoryFolder, ...] = ()
    checks: tuple[Check, ...] = ()

    async def confinement(self, command: str, access: str = "sandbox") -> Any:
        return None

    def kept(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self.drawer:
            self.drawer[name] = make()
        return self.drawer[name]

    async def ask(self, questions: tuple[Question, ...]) -> tuple[tuple[str, ...], ...]:
        self.asked.append(questions)
        return self.replies

    async def cite(self, pages: Sequence[tuple[str, str]]) -> tuple[int, ...]:
        self.cited |= {url: title for url, title in pages if url not in self.cited}
        return tuple([*self.cited].index(url) + 1 for url, _ in pages)

    async def report(self, value: Json) -> None:
        self.reported.append(value)

    async def note(self, body: JsonObject) -> None:
        self.noted.append(body)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def context(folder: Path) -> Surroundings:
    return Surroundings(folder, (folder,))
