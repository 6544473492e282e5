"""`moot import --watch`: what agents write comes in while they write it, until Ctrl+C or a signal to end."""

from __future__ import annotations

import signal

import anyio

from moot.cli.errors import INTERRUPTED
from moot.cli.import_report import ImportProgress, outcome_of, print_report
from moot.cli.output import Output
from moot.cli.things import many
from moot.engine import Engine
from moot.runtime.importing import Places, Report, Wanted
from moot.runtime.importing.watching import Watcher
from moot.types.imports import Taken

__all__ = ["follow"]


async def follow(engine: Engine, places: Places, wanted: Wanted, output: Output, *, json: bool, verbose: bool) -> int:
    """The exit code, once somebody has ended it; told is each conversation that came or grew, with `json` as a line of JSON on stdout."""
    report = Report()
    progress = ImportProgress(output, report)
    report.heard = progress.show
    begun = anyio.Event()
    taken = Taken()

    def told(later: Report) -> None:
        nonlocal taken
        progress.close()
        taken += later.taken if later is not report else Taken()
        for one in later.brought:
            if json and one.outcome != "known":
                output.json(one.to_json())
            elif one.outcome != "known":
                output.say(f"moot: {outcome_of(one)}")
        for failed in later.failed:
            output.say(f"moot: {failed.path}: {failed.problem}", "yellow")

    def first(done: Report) -> None:
        progress.close()
        if json:
            told(done)
        else:
            print_report(done, (0, 0), output, verbose=verbose)
        output.say("moot: watching; what the agents write comes in as they write it. Ctrl+C ends it", "dim")
        begun.set()

    watcher = Watcher(engine.store, places, wanted, lambda later: told(later) if begun.is_set() else None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run, report, first)
        heeded = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) != signal.SIG_IGN]
        with anyio.open_signal_receiver(*heeded) as signals:
            async for _ in signals:
                break
        tasks.cancel_scope.cancel()
    progress.close()
    all = report.taken + taken
    longer = f", {all.grown:,} longer" if all.grown else ""
    output.say(f"moot: ended; {many(all.added + all.rewritten, 'new message')} came in{longer}")
    return INTERRUPTED
