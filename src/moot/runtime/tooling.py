"""The ToolContext of one tool call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from moot.types.canonical import Json, JsonObject
from moot.types.media import MediaModels
from moot.types.search import Past
from moot.types.store import Blobs
from moot.types.tool import Question

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Tooling:
    """The `ToolContext` of a call. The callables access only the necessary parts of the leg."""

    directory: Path
    roots: tuple[Path, ...]
    settings: JsonObject
    key: str
    blobs: Blobs
    media: MediaModels
    past: Past
    drawer: Callable[[str, Callable[[], object]], object]
    questions: Callable[[tuple[Question, ...]], Awaitable[tuple[tuple[str, ...], ...]]]
    client: Callable[[JsonObject], Awaitable[JsonObject]]
    preliminary: Callable[[Json], Awaitable[None]]
    fact: Callable[[JsonObject], Awaitable[None]]

    def kept(self, name: str, make: Callable[[], T]) -> T:
        return self.drawer(name, make)  # pyright: ignore[reportReturnType]  one name, one maker, one type

    async def ask(self, questions: tuple[Question, ...]) -> tuple[tuple[str, ...], ...]:
        return await self.questions(questions)

    async def client_output(self, arguments: JsonObject) -> JsonObject:
        return await self.client(arguments)

    async def report(self, value: Json) -> None:
        await self.preliminary(value)

    async def note(self, body: JsonObject) -> None:
        await self.fact(body)
