"""Output of commands on the event loop."""

from __future__ import annotations

from functools import partial

import anyio.to_thread

from moot.cli.console.lines import Lines


class Output(Lines):
    """Output of a command that runs on the event loop."""

    async def stream(self, text: str) -> None:
        """Write like `data`, in a worker thread: a reader that stalls does not block the event loop."""
        if text:
            await anyio.to_thread.run_sync(partial(self.data, text), abandon_on_cancel=True)
