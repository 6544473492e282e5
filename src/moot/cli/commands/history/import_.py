"""The command `moot import`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio.to_thread

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import format_bytes, format_counts, parse_time, plural
from moot.cli.console.lines import Progress
from moot.cli.console.output import Output
from moot.cli.context.engine import opened
from moot.cli.context.output import Out
from moot.config.home import write_atomically
from moot.convert.serialization import conversation_json
from moot.engine import Engine
from moot.engine.locks import find_server
from moot.errors import UsageError
from moot.formats.apps.mcp_files import files_at
from moot.guard.terminal import clean
from moot.imports.configuration import configuration_of, count_items, refuse_live, to_yaml
from moot.imports.conversations import ImportOptions
from moot.imports.importer import import_sources, list_sources
from moot.imports.report import ImportResult, Report, UnreadFolder
from moot.imports.sources import Places, Source, local_places, local_sources, sources_at
from moot.imports.unread_folders import unread_folders
from moot.plugins.registry import attribute
from moot.types.canonical import Json, JsonObject
from moot.types.format import ForeignConfiguration

_NOTES = 20


def print_configuration(found: ForeignConfiguration, file: Path | None, output: Output) -> None:
    """Print counts and notes, and the path to which the configuration was or can be written."""
    counts = ", ".join(f"{count:,} {name}" for name, count in count_items(found).items())
    if not counts and not found.unsupported and not found.lost:
        return
    where = (
        f"written to {str(file)!r} for reference; moot does not read this file"
        if file is not None
        else "write it to a file with --configuration FILE"
    )
    output.say(f"moot: configuration found: {counts or 'nothing that moot supports'}; {where}")
    lines = [*(f"lost: {line}" for line in found.lost), *found.notes]
    for line in lines[:_NOTES]:
        output.say(f"  {clean(line)}", "dim")
    if len(lines) > _NOTES:
        output.say(f"  and {len(lines) - _NOTES:,} more{', in the file' if file is not None else ''}")


_FEW = 10
"""Maximum number of conversations to list individually. If there are more, they are summarized in a table."""
_FAILED = 20
_NAMED = 3
"""Maximum number of unrecognized files to list."""
_BAR = 16
_OUTCOMES = {"known": "already imported", "empty": "empty"}
_ESTIMATE_AFTER = 3.0
"""Number of seconds after which the rate is reliable enough to estimate the remaining time."""


class ImportProgress:
    """Progress line on stderr."""

    def __init__(self, output: Output, report: Report) -> None:
        self._line = Progress(output)
        self._report = report
        self._started = time.monotonic()
        self._is_terminal = output.stderr_terminal

    def show(self) -> None:
        """Update the line. May be called often."""
        report = self._report
        passed = max(time.monotonic() - self._started, 0.001)
        rate = report.bytes_done / passed
        share = min(report.bytes_done / report.bytes, 1.0) if report.bytes else 0.0
        facts = [
            f"{format_bytes(report.bytes_done)} of {format_bytes(report.bytes)}",
            f"{sum(report.conversations.values()):,} conversations",
            f"{report.messages:,} messages",
            f"{format_bytes(rate)}/s",
        ]
        if rate and passed > _ESTIMATE_AFTER:
            facts.append(f"{_duration((report.bytes - report.bytes_done) / rate)} left")
        self._line.show(f"{_bar(share)} {share:.0%}  {' · '.join(facts)}" if self._is_terminal else f"{share:.0%}: {', '.join(facts)}")

    def indexing(self, done: int, total: int) -> None:
        share = done / total if total else 1.0
        self._line.show(f"{_bar(share)} indexing {share:.0%}" if self._is_terminal else f"indexing {share:.0%}")

    def counting(self, left: int) -> None:
        self._line.show(f"counting the usage of {plural(left, 'answer')}")

    def close(self) -> None:
        """Erase the line."""
        self._line.close()


def _report_json(
    report: Report, indexed: tuple[int, int], seconds: tuple[float, float], configuration: ForeignConfiguration | None
) -> JsonObject:
    """Return the report as JSON. `seconds` contains how long storing and indexing took."""
    document: JsonObject = {
        **report.to_json(),
        "index": {"done": indexed[0], "total": indexed[1]},
        "seconds": {"stored": round(seconds[0], 3), "indexed": round(seconds[1], 3)},
        "data": [
            {**one.to_json(), "conversation": conversation_json(one.conversation, {}) if one.conversation is not None else None}
            for one in report.brought
        ],
    }
    if (found := configuration) is not None:
        document["configuration"] = {
            "pieces": found.pieces,
            "unsupported": found.unsupported,
            "notes": list[Json](found.notes),
            "lost": list[Json](found.lost),
        }
    return document


def print_report(report: Report, indexed: tuple[int, int], output: Output, *, verbose: bool) -> None:
    """Print the ids of new conversations to stdout and everything else to stderr."""
    notable = [one for one in report.brought if one.outcome != "known" or one.problems or len(report.brought) <= _FEW]
    for one in report.brought:
        if one.outcome == "added" and one.conversation is not None and not (output.stdout_terminal and len(report.brought) > 1):
            output.line(one.conversation.id)
    if verbose or len(notable) <= _FEW:
        for one in report.brought if verbose else notable:
            _say(one, output)
    if len(notable) > _FEW:
        _say_by_format(report, output)
        _say_problems(report, output)
    _say_totals(report, output)
    for one in report.failed[:_FAILED]:
        output.say(f"moot: {one.path}: {one.problem}", "yellow")
    if len(report.failed) > _FAILED:
        output.say(f"moot: {len(report.failed) - _FAILED:,} more sources could not be read", "yellow")
    if report.unclaimed:
        some = report.strangers if verbose else report.strangers[:_NAMED]
        more = f" and {report.unclaimed - len(some):,} more" if report.unclaimed > len(some) else ""
        output.say(f"moot: {plural(report.unclaimed, 'file')} of unknown format: {clean(', '.join(some))}{more}", "dim")
    _say_unread(report.unread, output)
    done, total = indexed
    if done < total:
        output.say(f"moot: the search index is {done / total:.0%} complete; searching or 'moot serve' continues it")


def _say_unread(folders: list[UnreadFolder], output: Output) -> None:
    if folders:
        output.say(f"moot: {plural(len(folders), 'agent folder')} can't be read:", "yellow")
    for one in folders:
        size = f"{'' if one.is_whole else 'at least '}{format_bytes(one.bytes)}"
        output.say(f"  {one.program}: {clean(str(one.path))}, {size}: {one.reason}", "yellow")


def _say(one: ImportResult, output: Output) -> None:
    output.say(f"moot: {outcome_of(one)}")
    if one.outcome in ("known", "purged"):
        return
    fidelity = one.fidelity
    for word, counts in (("kept", fidelity.kept), ("approximated", fidelity.approximated), ("lost", fidelity.lost)):
        if text := ", ".join(format_counts(counts)):
            output.say(f"  {word}: {text}", "yellow" if word == "lost" else "dim")
    for note in one.notes[:_FAILED]:
        output.say(f"  {note}", "yellow")
    if (more := max(len(one.notes), one.problems) - min(len(one.notes), _FAILED)) > 0:
        output.say(f"  and {more:,} more", "yellow")


def outcome_of(one: ImportResult) -> str:
    """Describe the outcome for one conversation in one line."""
    conversation = one.conversation
    id = conversation.id[:13] if conversation is not None else ""
    name = one.title or id or one.source_id
    match one.outcome:
        case "known":
            more = f"; {one.grown:,} new events in the file were not added" if one.grown else "; nothing new"
            return f"{name} is already imported as {id}{more}"
        case "added":
            return f"added {name}; show it with: moot chat show {id}"
        case "grown":
            return f"updated {name}: {_changes(one)}; show it with: moot chat show {id}"
        case "empty":
            return f"skipped {name} ({one.path}): it has no messages"
        case "purged":
            return f"skipped {name}: it was purged"
        case "would be added":
            return f"would add {name}"
        case "would grow":
            return f"would update {name}: {_changes(one)}"


def _changes(one: ImportResult) -> str:
    found = one.counts
    counts = {
        "new message": found.added,
        "extended message": found.grown,
        "rewritten message": found.rewritten,
        "other record": found.records,
    }
    return ", ".join(plural(count, word) for word, count in counts.items() if count)


def _say_by_format(report: Report, output: Output) -> None:
    rows: list[list[str]] = []
    for format, fidelity in sorted(report.by_format().items()):
        some = [one for one in report.brought if one.format == format]
        counts = [", ".join(format_counts(found)) or "-" for found in (fidelity.lost, fidelity.approximated)]
        rows.append([format, f"{len(some):,}", f"{sum(one.messages for one in some):,}", *counts])
    head = ["format", "conversations", "messages", "lost", "approximated"]
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    for row in (head, *rows):
        output.say("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip(), "dim" if row is head else "")


def _say_problems(report: Report, output: Output) -> None:
    """Print notes, and the unreadable records of the first few conversations that have any."""
    for note in [note for one in report.brought if not one.problems for note in one.notes][:_FEW]:
        output.say(f"moot: {note}", "yellow")
    bad = [one for one in report.brought if one.problems]
    for one in bad[:_FEW]:
        more = f" and {one.problems - 1:,} more" if one.problems > 1 else ""
        output.say(f"moot: {one.path}: {one.notes[0] if one.notes else 'a record could not be read'}{more}", "yellow")
    if len(bad) > _FEW:
        output.say(f"moot: unreadable records in {len(bad) - _FEW:,} more conversations; use --verbose to list them", "yellow")


def _say_totals(report: Report, output: Output) -> None:
    counts, outcomes = report.counts, report.conversations
    words = [
        f"{outcomes[outcome]:,} {_OUTCOMES.get(outcome, outcome)}"
        for outcome in ("added", "grown", "would be added", "would grow", "known", "empty", "purged")
        if outcomes[outcome]
    ]
    sources = [f"{plural(report.unchanged, 'source')} unchanged"] if report.unchanged else []
    sources += [f"{report.older:,} older than --since"] if report.older else []
    if sum(outcomes.values()) + report.unchanged <= 1 and not report.older and not report.failed:
        if not outcomes and not report.unchanged:
            output.say("moot: nothing to import", "yellow")
        elif report.unchanged:
            output.say("moot: the source is unchanged; nothing was added")
        return
    output.say(f"moot: {'conversations: ' if words else ''}{', '.join([*words, *sources]) or 'nothing to import'}")
    if not counts.changed and not report.problems:
        return
    extended = f", {plural(counts.grown, 'extended message')}" if counts.grown else ""
    output.say(f"moot: {plural(counts.added + counts.rewritten, 'new message')}{extended}", "dim")
    if report.problems:
        output.say(f"moot: {plural(report.problems, 'unreadable record')} kept unchanged", "yellow")
    if report.unpriced:
        output.say(f"moot: {plural(report.unpriced, 'answer')} from models without a known price", "dim")


def _bar(share: float) -> str:
    full = round(share * _BAR)
    return "█" * full + "░" * (_BAR - full)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


_FOLLOW = "moot.cli.commands.history.import_watch:follow"
"""Import path, so that the file watcher is imported only with --watch."""
_ROUND = 30.0
"""Number of seconds of indexing between two checks of the progress of other processes."""
_STUCK = 60.0
"""Number of seconds without progress after which the command ends, even if another process has not completed the search index."""
_LOOK_AGAIN = 0.1
_COUNTING = 1.0
"""Number of seconds of counting after which progress is shown."""
_SEALING = 10.0
"""Maximum number of seconds to spend on compressing the rest of the log. Later commands continue the compression."""
_KEPT_FREE = 1 << 20
"""Total size of the free pages to keep in the database, in bytes."""


async def import_(
    *source: Annotated[Path, Parameter(kind="file", help="Files or directories with conversations from other programs.")],
    all: Annotated[bool, Parameter(help="Import from all agents found on this machine.")] = False,
    format: Annotated[str, Parameter(name=("--format", "-f"), kind="format", help="Format of the files. Detected by default.")] = "",
    agent_type: Annotated[
        str, Parameter(metavar="TYPE", help="Type of the agent whose output stream was captured in the file. Detected by default.")
    ] = "",
    since: Annotated[
        str, Parameter(metavar="TIME", help="Only conversations active since a date (2026-01-31) or within a period (30d).")
    ] = "",
    watch: Annotated[bool, Parameter(help="Keep importing new messages until Ctrl+C.")] = False,
    dry_run: Annotated[bool, Parameter(help="Show what would be imported without storing anything.")] = False,
    configuration: Annotated[
        Path | None,
        Parameter(kind="file", help="New file for other settings, such as MCP servers and permissions. moot does not read it."),
    ] = None,
    verbose: Annotated[bool, Parameter(help="For each conversation, report what was kept, approximated and lost.")] = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Import conversations. For conversations that are already imported, add only new content."""
    if not source and not all:
        raise UsageError(
            "No files to import were given.", fix="Run 'moot import FILE', or 'moot import --all' for the agents on this machine."
        )
    if watch and dry_run:
        raise UsageError("--watch and --dry-run cannot be used together.")
    async with opened(output) as engine:
        if configuration is not None:
            refuse_live(configuration, engine.settings.home / "config.yaml")
        report = Report()
        options = {"since": parse_time(since) if since else 0, "dry_run": dry_run, "agent_type": agent_type, "projects": all and not format}
        wanted = ImportOptions.of(engine.settings, home=Path.home(), **options)
        if watch and all and (server := find_server(engine.settings.home)) is not None and server.follows:
            output.say(f"moot: the server at {server.url} already imports from the agents on this machine (imports.watch)", "yellow")
            watch, all = bool(source), not source
        if watch:
            places = Places(partial(_roots, source, format, all=all), lambda: _sources(source, Report(), engine, format, all=all))
            return await attribute(_FOLLOW)(engine, places, wanted, output, json=json, verbose=verbose)
        progress = ImportProgress(output, report)
        report.on_change = progress.show
        converts = dry_run or configuration is not None
        converted = await _configuration(source, engine, format, configuration, all=all) if converts else None
        lenient = converted is not None and bool(converted.pieces)
        started = time.monotonic()
        found = _sources(source, report, engine, format, all=all, lenient=lenient)
        await import_sources(engine.store, await _listed(found, report, complete=all and not format), wanted, report)
        stored, indexed = time.monotonic(), (0, 0)
        if report.counts.changed and not dry_run:
            indexed = await _finish(engine, progress)
        progress.close()
        seconds = stored - started, time.monotonic() - stored
    _raise_for_single_source(report, list(source), all=all or lenient)
    if json:
        output.json(_report_json(report, indexed, seconds, converted))
    else:
        print_report(report, indexed, output, verbose=verbose)
        if converted is not None:
            print_configuration(converted, configuration, output)
    return 1 if report.faulty else 0


async def _finish(engine: Engine, progress: ImportProgress) -> tuple[int, int]:
    """Complete the search index and the statistics, compress the rest of the log and release free pages.

    Return the number of indexed messages and the total number of messages.
    """
    store = engine.store
    moved = time.monotonic()
    done, total = await store.search.index(seconds=_ROUND, bulk=True, progress=progress.indexing)
    while done < total and time.monotonic() - moved < _STUCK:  # another process is indexing
        progress.indexing(done, total)
        await anyio.sleep(_LOOK_AGAIN)
        before = done
        done, total = await store.search.index(seconds=_ROUND, bulk=True, progress=progress.indexing)
        moved = time.monotonic() if done > before else moved
    before = None
    while (left := await store.stats.count(seconds=_COUNTING)) and left != before:
        progress.counting(left)
        before = left
    if quiet := engine.settings.storage.seal_after:
        async for _ in store.upkeep.seal(quiet=quiet, seconds=_SEALING):
            pass
    async for _ in store.upkeep.give_back(keep=_KEPT_FREE):
        pass
    return done, total


async def _listed(sources: Iterator[Source], report: Report, *, complete: bool) -> list[Source]:
    """List the sources. If `complete` is True, add agent folders that can't be read to the report."""
    found = await list_sources(sources)
    if complete:
        report.unread = await anyio.to_thread.run_sync(unread_folders, Path.home(), os.environ, found)
    return found


def _sources(paths: tuple[Path, ...], report: Report, engine: Engine, format: str, *, all: bool, lenient: bool = False) -> Iterator[Source]:
    """Yield the sources to read, each once. Raise UsageError if there is only one path and it cannot be read.

    If `lenient` is True, paths without conversations are skipped, because they contain only settings.
    """
    seen: set[Path] = set()
    for source in _each(paths, report, engine.settings.database.parent, format, all=all, lenient=lenient):
        if source.path not in seen:  # a directory and one of its subdirectories may both be given
            seen.add(source.path)
            yield source


def _each(paths: tuple[Path, ...], report: Report, data: Path, format: str, *, all: bool, lenient: bool) -> Iterator[Source]:
    if all:
        yield from local_sources(Path.home(), os.environ, data, format)
    for path in paths:
        try:
            yield from sources_at(path, format, data, report)
        except UsageError as error:
            if lenient and files_at(path):
                continue
            if len(paths) == 1 and not all:
                raise
            report.fail(str(path), format, error.advice())


async def _configuration(paths: tuple[Path, ...], engine: Engine, format: str, file: Path | None, *, all: bool) -> ForeignConfiguration:
    """Collect the configuration of the programs, and write it to a file if one is given."""
    servers = [file for path in paths for file in files_at(path)] + (files_at(Path.home(), is_home=True) if all else [])
    sources = _sources(paths, Report(), engine, format, all=all, lenient=bool(servers))
    found = await anyio.to_thread.run_sync(configuration_of, sources, servers)
    if file is not None:
        await anyio.to_thread.run_sync(write_atomically, file, to_yaml(found).encode())
    return found


def _roots(paths: tuple[Path, ...], format: str, *, all: bool) -> list[Path]:
    places = [location.place for location in local_places(Path.home(), os.environ, format)] if all else []
    return [*places, *(path.absolute() for path in paths)]


def _raise_for_single_source(report: Report, paths: list[Path], *, all: bool) -> None:
    """Raise UsageError if the only source could not be read."""
    if len(report.failed) == 1 and report.sources <= 1 and not all and not report.brought and not report.messages:
        failed = report.failed[0]
        raise UsageError(failed.problem if failed.path in failed.problem else f"{failed.path!r} {failed.problem}")
    if not report.sources and not all and len(paths) == 1 and not report.failed:
        raise UsageError(f"No conversation of a known format found in {str(paths[0])!r}.", fix="Specify the format with -f.")
