"""Translating a store with newer converters, and returning original translations."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from moot.convert.fold import Folder
from moot.store import lookup
from moot.store.connect import Connection
from moot.store.events import Events
from moot.store.reader import Reader
from moot.store.rows import auxiliary_exchanges
from moot.store.translating.storing import put
from moot.store.translating.working import Due, Work, due, translate
from moot.store.writer import Writer
from moot.types.exchange import converter_of
from moot.types.message import Message
from moot.types.verify import Translators, Upgrade

__all__ = ["StoreTranslations"]

_CONVERSATIONS = 200
_PAGE = 512


class StoreTranslations:
    """`Translations` on SQLite."""

    def __init__(self, writer: Writer, reader: Reader) -> None:
        self._writer = writer
        self._reader = reader
        self._events = Events()

    async def upgrade(
        self, translators: Translators, *, conversation: str | None = None, store: bool = True
    ) -> AsyncGenerator[Upgrade, None]:
        async for each in self._conversations(conversation):
            for what in await self._reader.read(lambda connection, each=each: list(due(connection, each, translators))):
                work = await self._work(what, translators)
                if store and work.converters and not await self._writer.write(partial(put, what, work), what.conversation):
                    continue
                yield work.upgrade

    async def _work(self, what: Due, translators: Translators) -> Work:
        return await self._reader.read(lambda connection: translate(connection, self._events, what, translators))

    async def _conversations(self, only: str | None) -> AsyncGenerator[tuple[int, str], None]:
        if only is not None:
            found = await self._reader.read(lambda connection: lookup.conversation(connection, only))
            yield found.no, found.id
            return
        after = 0
        while page := await self._reader.read(partial(_behind, after=after)):
            for each in page:
                yield each
            after = page[-1][0]

    async def first(self, messages: Sequence[Message]) -> list[Message]:
        return [await self._reader.read(partial(self._first, message)) for message in messages]

    def _first(self, message: Message, connection: Connection) -> Message:
        if message.run is None or message.status in ("streaming", "interrupted"):
            return message
        no = lookup.number(connection, message.conversation)
        others = auxiliary_exchanges(connection, message.run)
        folder, after = Folder(), 0
        while page := self._events.page(connection, no, after, _PAGE, message.run):
            for event in page:
                if event.exchange not in others:
                    folder.feed_all(event.chunks)
            after = page[-1].seq
        return replace(message, parts=folder.parts(), metadata=folder.metadata())

    async def converters(self, conversation: str) -> dict[str, str]:
        def look(connection: Connection) -> dict[str, str]:
            found: Any = connection.execute(
                "SELECT DISTINCT exchange, converter FROM translation WHERE conversation = ?", (lookup.number(connection, conversation),)
            )
            return dict(sorted(found.fetchall(), key=lambda row: converter_of(row[1]).version))

        return await self._reader.read(look)


def _behind(connection: Connection, after: int) -> list[tuple[int, str]]:
    found: Any = connection.execute("SELECT no, id FROM conversation WHERE no > ? ORDER BY no LIMIT ?", (after, _CONVERSATIONS))
    return found.fetchall()
