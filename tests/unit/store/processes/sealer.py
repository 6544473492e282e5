"""Seal everything possible until nothing is left. Print a line for each segment."""

import asyncio
import sys
from pathlib import Path

from moot.config.settings import Settings
from moot.store import open_store


async def main(home: Path) -> None:
    store = await open_store(Settings(home))
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    async for done in store.upkeep.seal():
        sys.stdout.write(f"{done.events}\n")
    async for _ in store.upkeep.give_back():
        pass
    await store.close()


asyncio.run(main(Path(sys.argv[1])))
