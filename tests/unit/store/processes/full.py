"""Append until no file may grow. Print the error, the number acknowledged, and the number after there is room again."""

import asyncio
import contextlib
import resource
import sys
from pathlib import Path

from moot.config.settings import Settings
from moot.errors import StoreError
from moot.store import open_store
from moot.types.conversation import Conversation
from moot.types.event import Event


async def main() -> None:
    store = await open_store(Settings(home=Path(sys.argv[1])))
    await store.conversations.create(Conversation("a"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, resource.RLIM_INFINITY))
    acknowledged = 0
    try:
        while True:
            acknowledged = (await store.log.append("a", [Event("meta", body="x" * 5000)]))[-1]
    except StoreError as error:
        sys.stdout.write(f"{type(error).__name__} {' '.join(error.fix.split()[:2])}\n{acknowledged}\n")
    with contextlib.suppress(StoreError):
        await store.log.append("a", [Event("meta", body="x" * 5000)])
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    sys.stdout.write(f"{(await store.log.append('a', [Event('meta', body='again')]))[-1]}\n")
    await store.close()


asyncio.run(main())
