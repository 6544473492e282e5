"""The command `moot sync`."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.commands.history.import_ import print_report
from moot.cli.console.format import format_bytes
from moot.cli.console.lines import Progress
from moot.cli.console.output import Output
from moot.cli.context.engine import opened
from moot.cli.context.output import Out
from moot.config.settings import HostSettings, Settings
from moot.errors import UsageError
from moot.guard.terminal import clean
from moot.imports.conversations import ImportOptions
from moot.imports.hosts.sync import HostReport, sync_hosts
from moot.types.canonical import Json

_INDEXING = 30.0
"""Maximum number of seconds to spend on the search index before the command ends. Later commands continue the indexing."""


class _SyncProgress:
    """A progress line on stderr for all machines."""

    def __init__(self, output: Output) -> None:
        self._line = Progress(output)
        self._hosts: dict[str, tuple[int, int]] = {}

    def fetched(self, host: str, done: int, total: int) -> None:
        self._hosts[host] = done, total
        self._line.show(" · ".join(f"{name}: {format_bytes(done)} of {format_bytes(total)}" for name, (done, total) in self._hosts.items()))

    def imported(self, reports: list[HostReport]) -> None:
        found = [f"{one.name}: {one.imported.messages:,} messages imported" for one in reports if one.imported.messages]
        self._line.show(" · ".join(found))

    def indexing(self, done: int, total: int) -> None:
        self._line.show(f"indexing {done / total if total else 1:.0%}")

    def close(self) -> None:
        self._line.close()


async def sync(
    *host: Annotated[str, Parameter(help="Machines to import from, as named in the configuration. Defaults to all machines.")],
    dry_run: Annotated[bool, Parameter(help="Show what would be fetched without fetching or storing anything.")] = False,
    verbose: Annotated[bool, Parameter(help="For each conversation, report what was kept, approximated and lost.")] = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Fetch agents' files from other machines over SSH, and import them."""
    async with opened(output) as engine:
        settings = engine.settings
        wanted = ImportOptions.of(settings, dry_run=dry_run)
        hosts = _hosts(settings, host)
        progress = _SyncProgress(output)
        reports = await sync_hosts(
            engine.store, hosts, settings.database.parent, wanted, progress=progress.fetched, reported=progress.imported
        )
        indexed = 0, 0
        if any(one.imported.counts.changed for one in reports):
            indexed = await engine.store.search.index(seconds=_INDEXING, bulk=True, progress=progress.indexing)
        progress.close()
    if json:
        output.json({"data": list[Json]([one.to_json() for one in reports])})
    else:
        for one in reports:
            _print(one, output, dry_run=dry_run, verbose=verbose)
        if indexed[0] < indexed[1]:
            output.say(f"moot: the search index is {indexed[0] / indexed[1]:.0%} complete; searching or 'moot serve' continues it")
    return 1 if any(one.faulty for one in reports) else 0


def _hosts(settings: Settings, names: tuple[str, ...]) -> list[HostSettings]:
    """Return the machines with these names, or all machines if no names are given. Raise UsageError for an unknown name."""
    if not settings.hosts:
        raise UsageError(
            "No other machines are configured.", fix="Add them to the 'hosts' section of the configuration; see docs/import.md."
        )
    for name in names:
        if name not in settings.hosts:
            raise UsageError(
                f"Host {name!r} not found. Configured: {', '.join(settings.hosts)}.",
                fix="Add it to the 'hosts' section of the configuration.",
            )
    return [settings.hosts[name] for name in dict.fromkeys(names or settings.hosts)]


def _print(one: HostReport, output: Output, *, dry_run: bool, verbose: bool) -> None:
    if one.error:
        output.say(f"moot: {one.name}: {clean(one.error)}", "red")
        return
    counts = {"new": one.new, "grown": one.grown, "changed": one.changed, "deleted there": one.gone, "unchanged": one.unchanged}
    words = ", ".join(f"{count:,} {word}" for word, count in counts.items() if count) or "none"
    done = (
        f"{format_bytes(one.fetched)} would be fetched"
        if dry_run
        else f"{format_bytes(one.fetched)} fetched, {format_bytes(one.size)} copied"
    )
    output.say(f"moot: {one.name}: files: {words}; {done}", "bold")
    for problem in one.problems:
        output.say(f"moot: {one.name}: {clean(problem)}", "yellow")
    if not dry_run and (one.imported.brought or one.imported.failed):
        print_report(one.imported, (0, 0), output, verbose=verbose)
