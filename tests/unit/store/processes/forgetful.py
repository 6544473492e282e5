"""Append, and exit without closing the store."""

import asyncio
import sys
from pathlib import Path

from moot.config.settings import Settings
from moot.store import open_store
from moot.types.conversation import Conversation
from moot.types.event import Event


async def main() -> None:
    store = await open_store(Settings(home=Path(sys.argv[1])))
    await store.conversations.create(Conversation("a"))
    seqs = await store.log.append("a", [Event("meta")])
    sys.stdout.write(f"{seqs[-1]}\n")


asyncio.run(main())
