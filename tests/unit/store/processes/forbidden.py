"""Become an unprivileged user and try to write to a read-only home. Print the error."""

import asyncio
import os
import sys
import tempfile
from pathlib import Path

from moot.config.settings import Settings
from moot.errors import MootError
from moot.store import open_store
from moot.types.conversation import Conversation


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        await (await open_store(Settings(home=Path(folder)))).close()  # load everything now, because that user may not read it later
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)
    try:
        store = await open_store(Settings(home=Path(sys.argv[1])))
        try:
            await store.conversations.create(Conversation("b"))
        finally:
            await store.close()
    except MootError as error:
        sys.stdout.write(f"{type(error).__name__} {error.message}\n")


asyncio.run(main())
