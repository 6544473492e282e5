"""Watch a conversation through `others` until `count` events have arrived. Print every seq."""

import asyncio
import sys
from contextlib import aclosing
from pathlib import Path

from moot.config.settings import Settings
from moot.store import open_store


async def main(*arguments: str) -> None:
    home, conversation, count = arguments
    store = await open_store(Settings(home=Path(home)))
    seen: list[int] = []
    async with aclosing(store.foreign_commits()) as others:  # type: ignore[type-var]
        looking = asyncio.ensure_future(anext(others))
        await asyncio.sleep(0.05)
        sys.stderr.write("ready\n")
        sys.stderr.flush()
        while True:
            while events := await store.log.read(conversation, after=seen[-1] if seen else 0, limit=100):
                seen += [event.seq for event in events]
            if len(seen) >= int(count):
                break
            await looking
            looking = asyncio.ensure_future(anext(others))
        looking.cancel()
        await asyncio.gather(looking, return_exceptions=True)
    await store.close()
    sys.stdout.write(" ".join(map(str, seen)))


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
