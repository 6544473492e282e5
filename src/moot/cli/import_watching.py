"""`moot import --watch`: what agents write comes in while they write it, until Ctrl+C."""

from __future__ import annotations

import anyio

from moot.cli.import_report import ImportProgress, outcome_of, print_report
from moot.cli.output import Output
from moot.engine import Engine
from moot.runtime.importing import Places, Report, Wanted
from moot.runtime.importing.watching import Watcher

__all__ = ["follow"]


async def follow(engine: Engine, places: Places, wanted: Wanted, output: Output, *, json: bool, verbose: bool) -> None:
    """Never returns; told is each conversation that came or grew, with `json` as a line of JSON on stdout."""
    report = Report()
    progress = ImportProgress(output, report)
    report.heard = progress.show
    begun = anyio.Event()

    def told(later: Report) -> None:
        progress.close()
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

    await Watcher(engine.store, places, wanted, lambda later: told(later) if begun.is_set() else None).run(report, first)
