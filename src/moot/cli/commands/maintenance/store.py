"""The commands of `moot store`, and `moot backup` and `moot restore`."""

from __future__ import annotations

import os
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

from anyio import to_thread

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import format_bytes, plural, print_table
from moot.cli.console.lines import Progress
from moot.cli.console.output import Output
from moot.cli.context.configuration import configured
from moot.cli.context.engine import opened
from moot.cli.context.output import Out
from moot.config.home import home_of
from moot.errors import Busy, UsageError
from moot.store import open_store
from moot.store.maintenance.backup import read
from moot.store.maintenance.backup import restore as restored
from moot.types.maintenance import Backup, Sealed, Sizes, Upkeep


async def store_stats(
    *,
    limit: Annotated[int, Parameter(help="Number of conversations to list, largest first.", minimum=0)] = 10,
    json: AsJson = False,
    output: Out,
) -> None:
    """Scan the whole database, and print the sizes of its parts and the largest conversations."""
    async with await open_store(configured(output).settings) as store:
        with Progress(output) as progress:
            progress.show("scanning …")
            sizes = await store.upkeep.sizes(largest=limit)
    if json:
        output.json(sizes.to_json())
        return
    for name, size, words in _size_lines(sizes):
        output.data(f"{name:<13} {format_bytes(size):>10}  {words}".rstrip() + "\n")
    if sizes.largest:
        output.data("\n")
        rows: list[list[str]] = []
        for one in sizes.largest:
            stored = [format_bytes(size) for size in (one.rows.stored, one.sealed.stored, one.sealed.bytes)]
            rows.append([*stored, one.id, one.title or "untitled"])
        print_table(output, ("rows", "sealed", "original", "conversation", "title"), rows)


async def compact(
    *,
    all: Annotated[
        bool, Parameter(help="Also rewrite the whole database file. Other processes cannot write to the database until this is done.")
    ] = False,
    dry_run: Annotated[bool, Parameter(help="Show what would be done without changing anything.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Compress ("seal") the log of every run that has ended, and release free pages of the database file."""
    async with await open_store(configured(output).settings) as store:
        before = await store.upkeep.sizes(largest=0)
        sealed = await _sealed(store.upkeep, output, dry=dry_run)
        if not dry_run:
            with Progress(output) as progress:
                if all:
                    await store.upkeep.rewrite(progress.show)
                else:
                    async for left in store.upkeep.give_back():
                        progress.show(f"releasing free pages: {format_bytes(left)} left")
        after = before if dry_run else await store.upkeep.sizes(largest=0)
    if json:
        output.json({"dry_run": dry_run, **sealed.to_json(), "database_bytes": {"before": before.database, "after": after.database}})
        return
    if dry_run:
        output.data(
            f"{sealed.events:,} events of {sealed.conversations:,} conversations can be compressed; "
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
    done = None
    with Progress(output) as progress:
        async for done in upkeep.seal():
            share = min(done.events / total.events, 1.0) if total.events else 1.0
            progress.show(f"sealing: {share:.0%}, {done.events:,} events, {format_bytes(done.before)} to {format_bytes(done.after)}")
    if done is None:
        raise Busy("Another process is compacting this store.", fix="Try again when it has finished.")
    return done


def _size_lines(sizes: Sizes) -> list[tuple[str, int, str]]:
    blobs = f"{format_bytes(sizes.blobs_inside)} in the database, the rest in files"
    of = sizes.sealed
    sealed = f"{of.events:,} events in {sizes.segments:,} segments of {sizes.frames:,} frames"
    sealed += f"; {format_bytes(of.bytes)} before, {of.stored / of.bytes:.1%} of it" if of.events else ""
    free = "free pages, reused by new data" + ("" if sizes.gives_back else "; only 'moot store compact --all' releases them")
    return [
        ("database", sizes.database, ""),
        ("log, rows", sizes.rows.stored, f"approximate; {sizes.rows.events:,} events, {format_bytes(sizes.raw)} of raw data"),
        ("log, sealed", sizes.sealed.stored, sealed),
        ("messages", sizes.messages, ""),
        ("search", sizes.index, "approximate"),
        ("requests", sizes.requests, "without their contents, which are files"),
        ("files", sizes.blobs, blobs),
        ("checkpoints", sizes.checkpoints, "earlier contents of files, for undo; a separate database"),
        ("free", sizes.free, free),
    ]


async def backup(
    to: Annotated[
        Path | None,
        Parameter(
            kind="file",
            help="New backup file, or directory in which to create it. Defaults to the 'backups' directory in moot's home directory.",
        ),
    ] = None,
    /,
    *,
    check: Annotated[Path | None, Parameter(kind="file", help="Backup file to verify, instead of writing a backup.")] = None,
    with_secrets: Annotated[bool, Parameter(help="Include the API keys from your configuration. By default, they are masked.")] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Write the whole of moot's home to one file, even while the home is in use, and verify the file."""
    if check is not None:
        if to is not None:
            raise UsageError("A destination and --check cannot be used together.")
        _print_result("verified", await to_thread.run_sync(read, check.expanduser()), json, output)
        return
    async with opened(output) as engine:
        folder = engine.settings.home / "backups"
        if to is None:
            await to_thread.run_sync(partial(folder.mkdir, mode=0o700, exist_ok=True))
        await engine.store.erasure.finish()  # pending purges must not end up in the backup
        with Progress(output) as progress:
            made = await engine.store.erasure.backups.back_up(to or folder, secrets=with_secrets, tell=progress.show)
    _print_result("wrote", made, json, output)


async def restore(
    file: Annotated[Path, Parameter(kind="file", help="Backup file.")],
    /,
    *,
    into: Annotated[
        Path | None, Parameter(kind="file", help="Directory to restore to. Defaults to moot's home directory (MOOT_HOME).")
    ] = None,
    replace: Annotated[
        bool, Parameter(help="Replace existing data. The old data is moved to a directory next to the restored one.")
    ] = False,
    json: AsJson = False,
    output: Out,
) -> None:
    """Restore moot's home from a backup, either completely or not at all.
    A home that contains data is replaced only if `--replace` is given.
    """
    home = into or home_of(os.environ)
    found, aside = await to_thread.run_sync(partial(restored, file.expanduser(), home, replace=replace))
    if json:
        output.json({**found.to_json(), "home": str(home), "aside": None if aside is None else str(aside)})
        return
    _print_backup(found, output)
    output.line(f"home      {home}")
    if aside is not None:
        output.line(f"old data  {aside}")
    if not found.has_secrets and (home / "config.yaml").exists():
        output.say("moot: this backup has no API keys; add them to config.yaml again, or use environment variables", "yellow")


def _print_result(what: str, found: Backup, as_json: bool, output: Output) -> None:
    if as_json:
        output.json({"ok": True, **found.to_json()})
        return
    output.line(f"{what:<9} {found.path}")
    _print_backup(found, output)


def _print_backup(found: Backup, output: Output) -> None:
    made = datetime.fromtimestamp(found.made_at / 1000).strftime("%Y-%m-%d %H:%M:%S")
    output.line(f"created   {made} by moot {found.program}, schema {found.schema}")
    output.line(f"contains  {plural(found.files, 'file')}, {found.size:,} bytes, {found.packed:,} compressed")
