"""Output of commands on the event loop, and the signals that they handle."""

from __future__ import annotations

import signal
from functools import partial

import anyio
import anyio.to_thread

from moot.cli.console.lines import Lines


class Output(Lines):
    """Output of a command that runs on the event loop."""

    async def stream(self, text: str) -> None:
        """Write text like `data` does, but in a worker thread, so that a slow reader does not block the event loop."""
        if text:
            await anyio.to_thread.run_sync(partial(self.data, text), abandon_on_cancel=True)


def handled_signals() -> list[signal.Signals]:
    """Return the signals to handle. Signals that are already ignored stay ignored, as `nohup` requires."""
    return [one for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if signal.getsignal(one) != signal.SIG_IGN]


async def cancel_on(scope: anyio.CancelScope, *signals: signal.Signals) -> None:
    """Cancel the scope when one of these signals arrives."""
    with anyio.open_signal_receiver(*signals) as received:
        async for _ in received:
            scope.cancel()
            return
