"""Open the store, append one event, and close it."""

import asyncio
import sys
from pathlib import Path

from moot.config.settings import Settings
from moot.store import open_store
from moot.types.conversation import Conversation
from moot.types.event import Event
from moot.types.ids import new_id


async def main(*arguments: str) -> None:
    store = await open_store(Settings(home=Path(arguments[0])))
    made = await store.conversations.create(Conversation(new_id()))
    await store.log.append(made.id, [Event("meta", body="here")])
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
