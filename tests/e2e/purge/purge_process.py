"""A process that purges or redacts, to be killed at a named instant.

python purge_process.py HOME purge ID | redact WORD
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from moot.config.settings import Settings
from moot.store import open_store
from moot.types.maintenance import Secret


async def main() -> None:
    home, what, meant = sys.argv[1:]
    store = await open_store(Settings(Path(home)))
    await (store.erasure.purge([meant]) if what == "purge" else store.erasure.redact(Secret((meant,))))
    await store.close()


asyncio.run(main())
