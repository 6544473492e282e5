"""`moot import`: conversations out of files, folders, and whatever the agents on this machine keep."""

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
from moot.cli.import_besides import besides_json, print_besides
from moot.cli.import_report import ImportProgress, print_report, report_json
from moot.cli.opening import opened
from moot.cli.options import AsJson, Out
from moot.cli.times import beginning
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
"""By name: what tells of changes in folders is imported only where they are followed."""
_INDEXING = 30.0
"""Seconds for which the search index is filled before the command ends; the rest is filled behind later ones."""


async def import_(
    *source: Annotated[Path, Parameter(kind="file", help="Files or folders that other programs wrote.")],
    all: Annotated[bool, Parameter(name="--all", help="What the agents on this machine keep.")] = False,
    format: Annotated[str, Parameter(name=("--format", "-f"), help="What it is; without it that is found out.")] = "",
    agent_type: Annotated[
        str,
        Parameter(name="--agent-type", help="Whose stream a capture is: the agent_type; else it is found out."),
    ] = "",
    since: Annotated[str, Parameter(help="Only conversations that went on after it: 2026-01-31, 12h, 30d, 2w, 6m or 1y.")] = "",
    watch: Annotated[bool, Parameter(name="--watch", help="Then follow what agents write, until Ctrl+C.")] = False,
    dry_run: Annotated[bool, Parameter(name="--dry-run", help="Say what would come in, and store nothing.")] = False,
    configuration: Annotated[
        Path | None,
        Parameter(kind="file", help="Write what the programs keep besides to this new file, to look at: agents, MCP servers, permissions."),
    ] = None,
    verbose: Annotated[bool, Parameter(name="--verbose", help="Tell of each conversation, and what became of what is in it.")] = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Brings conversations in; of what is here already, only what is new."""
    if not source and not all:
        raise UsageError("what is to be brought in?", fix="moot import FILE…, or moot import --all for the agents on this machine")
    if watch and dry_run:
        raise UsageError("--watch stores what it sees; --dry-run stores nothing", fix="leave one of them out")
    begin = beginning(since)
    async with opened(output) as engine:
        if configuration is not None:
            refuse_live(configuration, engine.settings.home / "config.yaml")
        report = Report()
        wanted = Wanted(str(here()), Path.home(), begin, dry_run, agent_type)
        if watch and all and (server := serving(engine.settings.home)) is not None and server.follows:
            output.say(f"moot: the server at {server.url} follows what the agents on this machine write already (imports.watch)", "yellow")
            watch, all = bool(source), not source
        if watch:
            places = Places(partial(_roots, source, format, all=all), lambda: _sources(source, Report(), engine, format, all=all))
            return await FOLLOWING.load("follow")(engine, places, wanted, output, json=json, verbose=verbose)
        progress = ImportProgress(output, report)
        report.heard = progress.show
        found = _sources(source, report, engine, format, all=all)
        besides = await _besides(source, engine, format, configuration, all=all) if dry_run or configuration is not None else None
        begun = time.monotonic()
        await bring(engine.store, found, wanted, report)
        stored = time.monotonic()
        done, total = await _indexed(engine, progress) if report.taken.changed and not dry_run else (0, 0)
        progress.close()
        seconds = stored - begun, time.monotonic() - stored
    _refuse_alone(report, list(source), all=all)
    if json:
        more: JsonObject = {"configuration": besides_json(besides)} if besides is not None else {}
        output.json(report_json(report, (done, total), seconds) | more)
    else:
        print_report(report, (done, total), output, verbose=verbose)
        if besides is not None:
            print_besides(besides, configuration, output)
    return 1 if report.faulty else 0


def _sources(paths: tuple[Path, ...], report: Report, engine: Engine, format: str, *, all: bool) -> Iterator[Source]:
    """What is to be read; a path that can't be is told of at once when it is the only one."""
    seen: set[Path] = set()
    for source in _each(paths, report, engine.settings.database.parent, format, all=all):
        if source.path not in seen:  # a folder and one in it may both be named
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


async def _besides(paths: tuple[Path, ...], engine: Engine, format: str, file: Path | None, *, all: bool) -> ForeignConfiguration:
    """What the programs keep besides their conversations, and where it was written to: a file of its own, that nothing reads."""
    sources = _sources(paths, Report(), engine, format, all=all)
    found = await anyio.to_thread.run_sync(configuration_of, sources)
    if file is not None:
        await anyio.to_thread.run_sync(write_atomically, file, as_text(found).encode())
    return found


def _roots(paths: tuple[Path, ...], format: str, *, all: bool) -> list[Path]:
    places = [place for _, place in places_here(Path.home(), os.environ, format)] if all else []
    return [*places, *(path.absolute() for path in paths)]


def _refuse_alone(report: Report, paths: list[Path], *, all: bool) -> None:
    """A single source of which nothing could be read is an error of the command, not a line in its report."""
    if len(report.failed) == 1 and report.sources <= 1 and not all and not report.brought and not report.messages:
        failed = report.failed[0]
        raise UsageError(failed.problem if failed.path in failed.problem else f"{failed.path!r} {failed.problem}")
    if not report.sources and not all and len(paths) == 1 and not report.failed:
        raise UsageError(f"nothing in {str(paths[0])!r} is a conversation that is known here", fix="name its format with -f")


async def _indexed(engine: Engine, progress: ImportProgress) -> tuple[int, int]:
    """How far the search index goes: all the way, or as far as it came in half a minute."""
    return await engine.store.search.index(seconds=_INDEXING, bulk=True, told=progress.indexing)
