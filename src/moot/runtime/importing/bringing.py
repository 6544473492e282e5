"""Brings sources in, one after the other; what is wrong with one costs no other."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import aclosing
from dataclasses import replace

import anyio.to_thread

from moot.errors import UsageError
from moot.runtime.importing.apart import WORTH, reading_of
from moot.runtime.importing.intake import Intake, Wanted
from moot.runtime.importing.reading import Reading, pieces_of
from moot.runtime.importing.reports import Report
from moot.runtime.importing.sources import Source, mark_of
from moot.runtime.importing.whole import recorded_in
from moot.types.imports import SourceMark
from moot.types.recording import Recorder
from moot.types.store import Holdings

__all__ = ["Wanted", "bring", "bring_one", "listed"]


async def listed(sources: Iterable[Source]) -> list[Source]:
    """Finding them looks into folders and files: not on the event loop."""
    return await anyio.to_thread.run_sync(lambda: list(sources))


async def bring(holdings: Holdings, sources: Iterable[Source], wanted: Wanted, report: Report, *, worth: int = WORTH) -> None:
    """Brings in what is new in the sources; `report` grows with it. Raises StoreError; what a source is to blame for is in the report.

    Whatever is stored stays when this is cancelled or dies, and the next time adds the rest. `worth`: bytes from which on a process of its
    own reads them.
    """
    found = await listed(sources)
    report.sources += len(found)
    report.bytes += sum(source.mark.size for source in found)
    left = [source for source in found if not await _is_done(holdings, source, wanted, report)]
    async with reading_of(left, worth=worth) as reading:
        for source in left:
            await _bring(holdings, source, wanted, reading, report)


async def bring_one(holdings: Holdings, source: Source, wanted: Wanted, reading: Reading, report: Report) -> None:
    """The same with one source, which the report counts already."""
    if not await _is_done(holdings, source, wanted, report):
        await _bring(holdings, source, wanted, reading, report)


async def _bring(holdings: Holdings, source: Source, wanted: Wanted, reading: Reading, report: Report) -> None:
    report.current = source.name
    before = report.bytes_done
    await _read(holdings, source, wanted, reading, report)
    report.done += 1
    report.bytes_done = before + source.mark.size
    report.current = ""
    report.heard()


async def _is_done(holdings: Holdings, source: Source, wanted: Wanted, report: Report) -> bool:
    """Whether there is nothing to be read of it; then the report says so."""
    if source.problem:
        report.fail(source.name, source.format.name, source.problem)
    elif not await _is_passed_over(holdings, source, wanted, report):
        return False
    report.done += 1
    report.bytes_done += source.mark.size
    report.heard()
    return True


async def _is_passed_over(holdings: Holdings, source: Source, wanted: Wanted, report: Report) -> bool:
    if wanted.since and source.mark.modified_at // 1_000_000 < wanted.since:
        report.older += 1
        return True
    if isinstance(source.format, Recorder):
        return False  # its conversations are told of one by one, known or not
    if await _is_as_it_was(holdings, source):
        report.unchanged += 1
        return True
    return False


async def _is_as_it_was(holdings: Holdings, source: Source) -> bool:
    """When it was last read, or when an export of ours put it where its program keeps its own."""
    mark = await holdings.imports.mark(source.format.name, str(source.path))
    if mark is not None:
        return mark.same(source.mark)
    return source.placed and await holdings.imports.exported(str(source.path)) == source.mark.size


async def _read(holdings: Holdings, source: Source, wanted: Wanted, reading: Reading, report: Report) -> None:
    if isinstance(source.format, Recorder):
        async with aclosing(recorded_in(holdings, source, source.format, wanted)) as recordings:
            try:
                async for one in recordings:
                    report.add(one)
            except UsageError as error:
                report.fail(source.name, source.format.name, source.said(error.advice()))
        return
    if wanted.agent_type:
        words = f"the format {source.format.name!r} says itself whose words they are; --agent-type is for captures"
        raise UsageError(words, fix="leave it out")
    before, problems = sum(report.conversations.values()), report.problems
    unfinished, problem = await _pieces(holdings, source, wanted, reading, report)
    if problem:
        report.fail(source.name, source.format.name, source.said(problem))
    elif not unfinished and not wanted.dry_run and not wanted.since and not source.called:
        count = sum(report.conversations.values()) - before
        await _remember(holdings, source, replace(source.mark, conversations=count, problems=report.problems - problems))


async def _pieces(holdings: Holdings, source: Source, wanted: Wanted, reading: Reading, report: Report) -> tuple[bool, str]:
    """Whether it is still being written, and why it could not be read to its end."""
    intake: Intake | None = None
    unfinished = False
    async with pieces_of(source, reading) as pieces:
        async for piece in pieces:
            if piece.is_first or intake is None:
                conversation = piece.conversation
                intake = Intake(holdings, source, wanted, conversation.source_id, conversation.parent, conversation.parent_call)
            await intake.take(piece)
            report.bytes_done += piece.size
            report.messages += len(piece.arrivals)
            report.heard()
            if piece.is_last:
                brought = await intake.finish()
                unfinished = unfinished or intake.unfinished
                if brought is None:
                    report.older += 1
                else:
                    report.add(brought)
    return unfinished, pieces.problem


async def _remember(holdings: Holdings, source: Source, mark: SourceMark) -> None:
    """Notes that it was read, if nobody has written to it meanwhile."""
    try:
        now = await anyio.to_thread.run_sync(mark_of, source.format, source.path)
    except OSError:
        return  # it is gone, or another has taken its place: then there is nothing to remember
    if now.same(source.mark):
        await holdings.imports.remember(mark)
