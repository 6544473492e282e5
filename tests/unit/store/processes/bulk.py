"""Import messages as fast as possible until standard input ends. Print their number."""

import asyncio
import sys
from pathlib import Path

from moot.config.settings import Settings
from moot.store import open_store
from moot.types.ids import new_id
from moot.types.message import Message, text_part


async def main(*arguments: str) -> None:
    home, conversation = arguments
    store = await open_store(Settings(home=Path(home)))
    count = 0

    async def work() -> None:
        nonlocal count
        while not stopped.done():
            text = text_part("many words of an imported message " * 50)
            await store.conversations.add_message(Message(new_id(), "user", (text,), conversation=conversation), raw=b"x" * 2000)
            count += 1

    sys.stdout.write("begun\n")
    sys.stdout.flush()
    stopped = asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await asyncio.gather(*(work() for _ in range(64)))
    await store.close()
    sys.stdout.write(f"{count}\n")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
