"""The command `moot import`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import anyio.to_thread

from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import here
from moot.cli.import_besides import configuration_json, print_configuration
from moot.cli.import_report import ImportProgress, print_report, report_json
from moot.cli.opening import opened
from moot.cli.options import AsJson, Out
from moot.cli.times import parse_since
from moot.config.files import write_atomically
from moot.engine import Engine
from moot.engine.servers import serving
from moot.errors import UsageError
from moot.plugins import Registry
from moot.runtime.importing import Places, Report, Source, Wanted, bring, places_here, sources_at, sources_here
from moot.runtime.importing.configuring import as_text, configuration_of, refuse_live
from moot.types.canonical import JsonObject
from moot.types.format import ForeignConfiguration

FOLLOWING = Registry("moot.cli.following_imports", {"follow": "moot.cli.import_watching:follow"})
"""Loaded by name: the file watcher is imported only with --watch."""
_INDEXING = 30.0
"""Maximum seconds to spend on the search index before the command ends. Later commands continue it."""


async def import_(
    *source: Annotated[Path, Parameter(kind="file", help="Files or directories of other programs.")],
    all: Annotated[bool, Parameter(name="--all", help="Import from all agents found on this machine.")] = False,
    format: Annotated[str, Parameter(name=("--format", "-f"), kind="format", help="Format of the files. Detected by default.")] = "",
    agent_type: Annotated[
        str,
        Parameter(name="--agent-type", metavar="TYPE", help="Agent type of a captured stream. Detected by default."),
    ] = "",
    since: Annotated[str, Parameter(metavar="TIME", help="Only conversations active since then: 2026-01-31, 12h, 30d, 2w, 6m or 1y.")] = "",
    watch: Annotated[bool, Parameter(name="--watch", help="Keep importing new messages until Ctrl+C.")] = False,
    dry_run: Annotated[bool, Parameter(name="--dry-run", help="Show what would be imported without storing anything.")] = False,
    configuration: Annotated[
        Path | None,
        Parameter(kind="file", help="New file for the programs' agents, MCP servers and permissions. moot does not read it."),
    ] = None,
    verbose: Annotated[
        bool, Parameter(name="--verbose", help="Report every conversation and what was kept, approximated and lost.")
    ] = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Import conversations. Of conversations that are already imported, add only what is new."""
    if not source and not all:
        raise UsageError(
            "Nothing to import was given.", fix="Run 'moot import FILE', or 'moot import --all' for the agents on this machine."
        )
    if watch and dry_run:
        raise UsageError("--watch and --dry-run cannot be used together.")
    begin = parse_since(since)
    async with opened(output) as engine:
        if configuration is not None:
            refuse_live(configuration, engine.settings.home / "config.yaml")
        report = Report()
        wanted = Wanted(str(here()), Path.home(), begin, dry_run, agent_type)
        if watch and all and (server := serving(engine.settings.home)) is not None and server.follows:
            output.say(f"moot: the server at {server.url} already imports from the agents on this machine (imports.watch)", "yellow")
            watch, all = bool(source), not source
        if watch:
            places = Places(partial(_roots, source, format, all=all), lambda: _sources(source, Report(), engine, format, all=all))
            return await FOLLOWING.load("follow")(engine, places, wanted, output, json=json, verbose=verbose)
        progress = ImportProgress(output, report)
        report.heard = progress.show
        found = _sources(source, report, engine, format, all=all)
        found_configuration = (
            await _configuration(source, engine, format, configuration, all=all) if dry_run or configuration is not None else None
        )
        started = time.monotonic()
        await bring(engine.store, found, wanted, report)
        stored = time.monotonic()
        done, total = await _indexed(engine, progress) if report.taken.changed and not dry_run else (0, 0)
        progress.close()
        seconds = stored - started, time.monotonic() - stored
    _raise_for_single_source(report, list(source), all=all)
    if json:
        more: JsonObject = {"configuration": configuration_json(found_configuration)} if found_configuration is not None else {}
        output.json(report_json(report, (done, total), seconds) | more)
    else:
        print_report(report, (done, total), output, verbose=verbose)
        if found_configuration is not None:
            print_configuration(found_configuration, configuration, output)
    return 1 if report.faulty else 0


def _sources(paths: tuple[Path, ...], report: Report, engine: Engine, format: str, *, all: bool) -> Iterator[Source]:
    """Yield the sources to read, each once. Raise UsageError if the only path cannot be read."""
    seen: set[Path] = set()
    for source in _each(paths, report, engine.settings.database.parent, format, all=all):
        if source.path not in seen:  # a directory and one inside it may both be given
            seen.add(source.path)
            yield source


def _each(paths: tuple[Path, ...], report: Report, data: Path, format: str, *, all: bool) -> Iterator[Source]:
    if all:
        yield from sources_here(Path.home(), os.environ, data, format)
    for path in paths:
        try:
            yield from sources_at(path, format, data, report)
        except UsageError as error:
            if len(paths) == 1 and not all:
                raise
            report.fail(str(path), format, error.advice())


async def _configuration(paths: tuple[Path, ...], engine: Engine, format: str, file: Path | None, *, all: bool) -> ForeignConfiguration:
    """Collect the programs' configuration, and write it to the file if one is given."""
    sources = _sources(paths, Report(), engine, format, all=all)
    found = await anyio.to_thread.run_sync(configuration_of, sources)
    if file is not None:
        await anyio.to_thread.run_sync(write_atomically, file, as_text(found).encode())
    return found


def _roots(paths: tuple[Path, ...], format: str, *, all: bool) -> list[Path]:
    places = [place for _, place in places_here(Path.home(), os.environ, format)] if all else []
    return [*places, *(path.absolute() for path in paths)]


def _raise_for_single_source(report: Report, paths: list[Path], *, all: bool) -> None:
    """Raise UsageError if the only source could not be read."""
    if len(report.failed) == 1 and report.sources <= 1 and not all and not report.brought and not report.messages:
        failed = report.failed[0]
        raise UsageError(failed.problem if failed.path in failed.problem else f"{failed.path!r} {failed.problem}")
    if not report.sources and not all and len(paths) == 1 and not report.failed:
        raise UsageError(f"No conversation of a known format found in {str(paths[0])!r}.", fix="Specify the format with -f.")


async def _indexed(engine: Engine, progress: ImportProgress) -> tuple[int, int]:
    """Fill the search index for up to half a minute. Return how much is done of the total."""
    return await engine.store.search.index(seconds=_INDEXING, bulk=True, progress=progress.indexing)
