"""Import of sources, one after the other. A problem with one source does not affect the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import aclosing
from dataclasses import replace

import anyio.to_thread

from moot.errors import UsageError
from moot.formats.kit.fields import text
from moot.imports.conversations import ConversationImport, ImportOptions, import_recordings
from moot.imports.process import MIN_SIZE, reader_for
from moot.imports.reader import ReadingState, SourceReader, pieces_of
from moot.imports.report import Report
from moot.imports.sources import Source, mark_of, project_sources
from moot.types.imports import Recorder, SourceMark
from moot.types.store import OwnerStore


async def list_sources(sources: Iterable[Source]) -> list[Source]:
    """List the sources in a worker thread, because finding them reads folders and files."""
    return await anyio.to_thread.run_sync(lambda: list(sources))


async def import_sources(
    holdings: OwnerStore, sources: Iterable[Source], wanted: ImportOptions, report: Report, *, worth: int = MIN_SIZE
) -> None:
    """Import everything new in the sources and update `report`, including the problems of each source. Raise StoreError if storing fails.

    If the import is cancelled or killed, the messages stored so far remain, and the next import adds the rest. The sources are read in a
    separate process if their total size is at least `worth` bytes. With `wanted.projects`, the files in the folders of conversations are
    imported too.
    """
    found = await list_sources(sources)
    report.sources += len(found)
    report.bytes += sum(source.mark.size for source in found)
    left = [source for source in found if not await _is_done(holdings, source, wanted, report)]
    async with reader_for(left, wanted.prices, worth=worth) as reading:
        for source in left:
            await _import(holdings, source, wanted, reading, report)
    if wanted.projects:
        folders = {*await holdings.projects.folders(), *_folders(report)}
        more = await list_sources(project_sources(sorted(folders), [source.path for source in found]))
        await import_sources(holdings, more, replace(wanted, projects=False), report, worth=worth)


def _folders(report: Report) -> Iterator[str]:
    """Yield the folders of conversations, including those that a dry run does not store."""
    for one in report.brought:
        if one.conversation is not None:
            yield one.conversation.directory or text(one.conversation.origin, "directory")


async def import_source(holdings: OwnerStore, source: Source, wanted: ImportOptions, reading: SourceReader, report: Report) -> None:
    """Import one source, which `report` already counts."""
    if not await _is_done(holdings, source, wanted, report):
        await _import(holdings, source, wanted, reading, report)


async def _import(holdings: OwnerStore, source: Source, wanted: ImportOptions, reading: SourceReader, report: Report) -> None:
    report.current = source.name
    before = report.bytes_done
    await _read(holdings, source, wanted, reading, report)
    report.done += 1
    report.bytes_done = before + source.mark.size
    report.current = ""
    report.on_change()


async def _is_done(holdings: OwnerStore, source: Source, wanted: ImportOptions, report: Report) -> bool:
    """Return whether the source can be skipped, and report the reason."""
    if source.problem:
        report.fail(source.name, source.format.name, source.problem)
    elif wanted.since and source.mark.modified_at // 1_000_000 < wanted.since:
        report.older += 1
    elif isinstance(source.format, Recorder) or not await _is_unchanged(holdings, source):
        return False  # recordings are always read, so that each of their conversations is reported
    else:
        report.unchanged += 1
    report.done += 1
    report.bytes_done += source.mark.size
    report.on_change()
    return True


async def _is_unchanged(holdings: OwnerStore, source: Source) -> bool:
    """Return whether the source is unchanged since it was last read, or since moot itself wrote it as an export."""
    mark = await holdings.imports.mark(source.format.name, str(source.path))
    if mark is not None:
        return mark.same(source.mark)
    return source.placed and await holdings.imports.exported(str(source.path)) == source.mark.size


async def _read(holdings: OwnerStore, source: Source, wanted: ImportOptions, reading: SourceReader, report: Report) -> None:
    if isinstance(source.format, Recorder):
        async with aclosing(import_recordings(holdings, source, source.format, wanted)) as recordings:
            try:
                async for one in recordings:
                    report.add(one)
            except UsageError as error:
                report.fail(source.name, source.format.name, source.said(error.advice()))
        return
    if wanted.agent_type:
        words = f"The format {source.format.name!r} already identifies the agent. --agent-type is only for captured output streams."
        raise UsageError(words, fix="Remove --agent-type.")
    before, problems = sum(report.conversations.values()), report.problems
    outcome = await _pieces(holdings, source, wanted, reading, report)
    while outcome is None:
        outcome = await _pieces(holdings, source, wanted, reading, report)
    unfinished, problem = outcome
    if problem:
        report.fail(source.name, source.format.name, source.said(problem))
    elif not unfinished and not wanted.dry_run and not wanted.since and not (source.called and not source.host):
        count = sum(report.conversations.values()) - before
        await _remember(holdings, source, replace(source.mark, conversations=count, problems=report.problems - problems))


async def _pieces(
    holdings: OwnerStore, source: Source, wanted: ImportOptions, reading: SourceReader, report: Report
) -> tuple[bool, str] | None:
    """Import the conversations of a source. Return whether it is still being written, and a description of the problem, if any.

    Return None if the source must be read again, because its conversation was deleted while the rest of the source was read.
    """
    intake: ConversationImport | None = None
    unfinished = False
    stored: tuple[ReadingState, str] | None = None
    async with pieces_of(source, reading) as pieces:
        async for piece in pieces:
            if piece.is_first or intake is None:
                intake = ConversationImport.of(holdings, source, wanted, piece)
            if not await intake.take(piece):
                return None
            report.bytes_done += piece.size
            report.messages += len(piece.arrivals)
            report.on_change()
            if piece.is_last:
                result = await intake.finish()
                unfinished = unfinished or intake.unfinished
                if piece.state is not None and intake.continuable:
                    stored = piece.state, intake.continuable
                if result is None:
                    report.older += 1
                else:
                    report.add(result)
    if stored is not None and not pieces.problem:
        state, conversation = stored
        state.keep(source.path, conversation)
    return unfinished, pieces.problem


async def _remember(holdings: OwnerStore, source: Source, mark: SourceMark) -> None:
    """Record that the source was read, unless it has changed in the meantime."""
    try:
        now = await anyio.to_thread.run_sync(mark_of, source.format, source.path)
    except OSError:
        return  # the source was deleted
    if now.same(source.mark):
        await holdings.imports.remember(mark)
