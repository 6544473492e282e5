"""`moot import --watch`: import new messages as soon as agents write them, until Ctrl+C or SIGTERM."""

from __future__ import annotations

import signal

import anyio

from moot.cli.commands.history.import_ import ImportProgress, outcome_of, print_report
from moot.cli.console.format import plural
from moot.cli.console.lines import INTERRUPTED
from moot.cli.console.output import Output
from moot.engine import Engine
from moot.imports.conversations import ImportOptions
from moot.imports.report import Report
from moot.imports.sources import Places
from moot.imports.watcher import Watcher
from moot.types.imports import ImportCounts


async def follow(engine: Engine, places: Places, wanted: ImportOptions, output: Output, *, json: bool, verbose: bool) -> int:
    """Import until interrupted, and report each new or updated conversation, as lines of JSON if `json` is True. Return the exit code."""
    report = Report()
    progress = ImportProgress(output, report)
    report.on_change = progress.show
    started = anyio.Event()
    counts = ImportCounts()

    def print_changes(later: Report) -> None:
        nonlocal counts
        progress.close()
        counts += later.counts if later is not report else ImportCounts()
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
            print_changes(done)
        else:
            print_report(done, (0, 0), output, verbose=verbose)
        output.say("moot: watching for new messages; press Ctrl+C to stop", "dim")
        started.set()

    watcher = Watcher(engine.store, places, wanted, lambda later: print_changes(later) if started.is_set() else None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(watcher.run, report, first)
        handled = [one for one in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(one) != signal.SIG_IGN]
        with anyio.open_signal_receiver(*handled) as signals:
            async for _ in signals:
                break
        tasks.cancel_scope.cancel()
    progress.close()
    all = report.counts + counts
    extended = f", {plural(all.grown, 'extended message')}" if all.grown else ""
    output.say(f"moot: stopped; imported {plural(all.added + all.rewritten, 'new message')}{extended}")
    return INTERRUPTED
