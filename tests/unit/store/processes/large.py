"""Store one message of the given number of megabytes, then read and search it. Print the peak memory growth as a multiple of its size."""

import asyncio
import resource
import sys
from pathlib import Path

from moot.config.settings import Settings
from moot.store import open_store
from moot.types.conversation import Conversation
from moot.types.message import Message, text_part


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


async def main() -> None:
    size = int(sys.argv[2]) << 20
    store = await open_store(Settings(home=Path(sys.argv[1])))
    await store.conversations.create(Conversation("a"))
    before = peak()
    await store.conversations.add_message(Message("m", "user", (text_part("needle " + "x" * size),), conversation="a"))
    (message,) = await store.conversations.branch("a")
    assert len(str(message.parts[0]["text"])) == size + 7
    assert [hit.message for hit in (await store.search.search("needle", wait=60)).hits] == ["m"]
    sys.stdout.write(f"{(peak() - before) / size:.2f}\n")
    await store.close()


asyncio.run(main())
