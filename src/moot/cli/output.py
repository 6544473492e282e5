"""The two ways out of a command on the event loop; see `lines` for what they promise."""

from __future__ import annotations

from functools import partial

import anyio.to_thread

from moot.cli.lines import Lines


class Output(Lines):
    """Where a command writes."""

    async def stream(self, text: str) -> None:
        """As `data`, off the loop: a reader that does not read holds up nobody but itself."""
        if text:
            await anyio.to_thread.run_sync(partial(self.data, text), abandon_on_cancel=True)
