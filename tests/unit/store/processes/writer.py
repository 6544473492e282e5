"""Append numbered events to a conversation until killed or `count` are written. Print a line for each acknowledged append."""

import asyncio
import sys
from pathlib import Path

from moot.config.settings import Settings
from moot.store import open_store
from moot.types.event import Event


async def main(*arguments: str) -> None:
    home, conversation, name, count, batch, sync = arguments
    store = await open_store(Settings(home=Path(home)))
    number = 0
    while number < int(count):
        events = [Event("meta", body=[name, number + index]) for index in range(int(batch))]
        seqs = await store.log.append(conversation, events, sync=sync == "sync")
        number += len(events)
        sys.stdout.write(f"{seqs[-1]} {number - 1}\n")
        sys.stdout.flush()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
