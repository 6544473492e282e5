"""The commands `moot store stats` and `compact`."""

from __future__ import annotations

from typing import Annotated

from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import configured
from moot.cli.options import AsJson, Out
from moot.cli.output import Output
from moot.cli.progress import Progress
from moot.cli.tables import print_table
from moot.cli.things import format_bytes
from moot.errors import Busy
from moot.store import SqliteStore, open_store
from moot.types.upkeep import ConversationSize, Extent, Sealed, Sizes, Upkeep


async def stats(
    *,
    limit: Annotated[int, Parameter(name="--limit", help="Number of conversations to list, largest first.", minimum=0)] = 10,
    json: AsJson = False,
    output: Out,
) -> None:
    """Scan the whole database and print the size of its parts and the largest conversations."""
    store = await open_store(configured(output).settings)
    progress = Progress(output)
    try:
        progress.show("scanning …")
        sizes = await store.upkeep.sizes(largest=limit)
    finally:
        progress.close()
        await store.close()
    if json:
        output.json(sizes.to_json())
        return
    for name, size, words in _lines(sizes):
        output.data(f"{name:<13} {format_bytes(size):>10}  {words}".rstrip() + "\n")
    if sizes.largest:
        output.data("\n")
        print_table(output, ("rows", "sealed", "original", "conversation", "title"), [_row(one) for one in sizes.largest])


async def compact(
    *,
    all: Annotated[bool, Parameter(name="--all", help="Also rewrite the whole file, which blocks all other processes meanwhile.")] = False,
    dry_run: Annotated[bool, Parameter(name="--dry-run", help="Show what would be done without changing anything.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Seal (compress) the log of every run that has ended, and release free pages of the file."""
    store = await open_store(configured(output).settings)
    try:
        before = await store.upkeep.sizes(largest=0)
        sealed = await _sealed(store.upkeep, output, dry=dry_run)
        if not dry_run:
            await _smaller(store, output, rewrite=all)
        after = before if dry_run else await store.upkeep.sizes(largest=0)
    finally:
        await store.close()
    if json:
        output.json({"dry_run": dry_run, **sealed.to_json(), "database_bytes": {"before": before.database, "after": after.database}})
        return
    if dry_run:
        output.data(
            f"{sealed.events:,} events of {sealed.conversations:,} conversations can be sealed; "
            f"{format_bytes(before.rows.bytes)} are in rows\n"
        )
        output.data(f"{format_bytes(before.free)} of {format_bytes(before.database)} are free pages\n")
        return
    output.data(f"sealed    {sealed.events:,} events, {format_bytes(sealed.before)} to {format_bytes(sealed.after)}\n")
    output.data(f"database  {format_bytes(before.database)} to {format_bytes(after.database)}\n")
    if not after.gives_back:
        output.say("moot: an older version created this file, so it keeps its free pages; 'moot store compact --all' rewrites it")


async def _sealed(upkeep: Upkeep, output: Output, *, dry: bool) -> Sealed:
    total = [Sealed(), *[found async for found in upkeep.seal(dry=True)]][-1]
    if dry:
        return total
    progress, done = Progress(output), None
    async for done in upkeep.seal():
        share = done.events / total.events if total.events else 1.0
        progress.show(f"sealing: {min(share, 1.0):.0%}, {done.events:,} events, {format_bytes(done.before)} to {format_bytes(done.after)}")
    progress.close()
    if done is None:
        raise Busy("Another process is compacting this store.", fix="Try again when it has finished.")
    return done


async def _smaller(store: SqliteStore, output: Output, *, rewrite: bool) -> None:
    progress = Progress(output)
    if rewrite:
        await store.upkeep.rewrite(progress.show)
    else:
        async for left in store.upkeep.give_back():
            progress.show(f"releasing free pages: {format_bytes(left)} left")
    progress.close()


def _lines(sizes: Sizes) -> list[tuple[str, int, str]]:
    blobs = f"{format_bytes(sizes.blobs_inside)} in the database, the rest in files"
    free = "free pages, reused by new data" + ("" if sizes.gives_back else "; only 'moot store compact --all' releases them")
    return [
        ("database", sizes.database, ""),
        ("log, rows", sizes.rows.stored, f"approximate; {sizes.rows.events:,} events, {format_bytes(sizes.raw)} of raw data"),
        ("log, sealed", sizes.sealed.stored, _sealed_words(sizes)),
        ("messages", sizes.messages, ""),
        ("search", sizes.index, "approximate"),
        ("requests", sizes.requests, "without their contents, which are files"),
        ("files", sizes.blobs, blobs),
        ("free", sizes.free, free),
    ]


def _sealed_words(sizes: Sizes) -> str:
    sealed = sizes.sealed
    words = f"{sealed.events:,} events in {sizes.segments:,} segments of {sizes.frames:,} frames"
    return f"{words}; {format_bytes(sealed.bytes)} before, {_share(sealed)}" if sealed.events else words


def _share(sealed: Extent) -> str:
    return f"{sealed.stored / sealed.bytes:.1%} of it"


def _row(one: ConversationSize) -> tuple[str, ...]:
    return (format_bytes(one.rows.stored), format_bytes(one.sealed.stored), format_bytes(one.sealed.bytes), one.id, one.title or "untitled")
