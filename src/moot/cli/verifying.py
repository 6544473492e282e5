"""`moot verify`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from typing import Annotated

from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import configured, here
from moot.cli.options import AsJson, Out
from moot.cli.output import Output
from moot.cli.progress import Progress
from moot.cli.references import find_in
from moot.cli.upgrading import upgrade as upgraded
from moot.config.settings import Settings
from moot.convert.translators import translator_of
from moot.errors import UsageError
from moot.store import SqliteStore, open_store
from moot.types.exchange import converter_of
from moot.types.verify import Damage, DamageKind, Receipt

WHAT_TO_DO: dict[DamageKind, str] = {
    "missing": "What is gone can come from a backup alone. Copy {data} away before anything else.",
    "changed": "Those bytes were changed behind moot's back: look after the disk, and copy {data} away before anything else.",
    "unreadable": "Those bytes can't be read any more: look after the disk, and copy {data} away before anything else.",
    "chunks": "The raw bytes are the truth, what was made of them is not: either was changed, or the converter without a new version.",
    "ending": "The raw bytes are the truth, what was made of them is not: either was changed, or the converter without a new version.",
    "record": "The log is the truth, the row beside it is not. Copy {data} away, and report how it came to it.",
    "message": "The log is the truth, the message made of it is not. `moot chat show ID --raw` shows what was said.",
    "blob": "Put those bytes back from a backup; what names them can't show them until then.",
    "file": "The database itself is broken: copy {data} away before anything else, then take it from a backup.",
}


async def verify(
    conversation: Annotated[str | None, Parameter(kind="conversation", help="Only this one, by id, title or number; else all.")] = None,
    /,
    *,
    all: Annotated[bool, Parameter(name="--all", help="All conversations and all blobs, as without a conversation.")] = False,
    upgrade: Annotated[
        bool, Parameter(name="--upgrade", help="What newer converters make of old runs: tell it and store it beside.")
    ] = False,
    dry_run: Annotated[bool, Parameter(name="--dry-run", help="With --upgrade: tell it, and store nothing.")] = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Makes everything again from the raw bytes and compares it with what is stored. Exit code 1 for any difference."""
    if all and conversation is not None:
        raise UsageError("a conversation and --all exclude each other")
    if upgrade and not all and conversation is None:
        raise UsageError("what is to be upgraded?", fix="moot verify --upgrade ID, or moot verify --upgrade --all")
    if dry_run and not upgrade:
        raise UsageError("--dry-run goes with --upgrade; verifying stores nothing anyway")
    settings = configured(output).settings
    async with _store(settings) as store:
        only = None
        if conversation is not None:
            only = (await find_in(store, settings.home / "state", conversation, str(here()))).id
        if upgrade:
            return await upgraded(store.translations, only, output, store=not dry_run, json=json)
        receipt = await _verified(store, only, output)
    if json:
        output.json(receipt.to_json())
    else:
        _print(receipt, settings, output)
    return 1 if receipt.damaged else 0


async def _verified(store: SqliteStore, conversation: str | None, output: Output) -> Receipt:
    receipt = Receipt()
    progress = Progress(output)
    async with aclosing(store.verifier.verify(translator_of, conversation=conversation)) as receipts:
        async for receipt in receipts:
            progress.show(f"{receipt.conversations:,} conversations, {receipt.raw_bytes / 1e6:,.1f} MB of raw, {receipt.blobs:,} blobs")
    progress.close()
    return receipt


@asynccontextmanager
async def _store(settings: Settings) -> AsyncGenerator[SqliteStore, None]:
    """The store alone: an engine would look after the runs of dead processes, and that is a change."""
    store = await open_store(settings)
    try:
        yield store
    finally:
        await store.close()


def _print(receipt: Receipt, settings: Settings, output: Output) -> None:
    for name, words in _lines(receipt):
        output.data(f"{name:<13} {words}\n")
    if not receipt.damaged:
        output.data(output.styled("ok", "green") + "\n")
        return
    output.data("\n" + output.styled(f"{receipt.damaged:,} {_many(receipt.damaged, 'difference')}", "red") + "\n")
    for damage in receipt.damages:
        _print_damage(damage, output)
    if (left := receipt.damaged - len(receipt.damages)) > 0:
        output.data(f"… and {left:,} more\n")
    output.data("\n")
    data = str(settings.database.parent)
    for line in dict.fromkeys(WHAT_TO_DO[damage.kind].format(data=data) for damage in receipt.damages):
        output.line(line)


def _lines(receipt: Receipt) -> list[tuple[str, str]]:
    live = f", {receipt.live:,} of them live and judged as far as they are folded" if receipt.live else ""
    others = [f"{count:,} not rebuilt: {_why(converter)}" for converter, count in sorted(receipt.not_rebuilt.items())]
    gone = [f"{receipt.redacted_exchanges:,} redacted"] if receipt.redacted_exchanges else []
    tombstones = f", {receipt.redacted:,} of them redacted" if receipt.redacted else ""
    newer = [f"{receipt.translated:,} shown in a newer translation"] if receipt.translated else []
    return [
        ("conversations", f"{receipt.conversations:,}"),
        ("runs", f"{receipt.runs:,}{live}"),
        ("exchanges", "; ".join([f"{receipt.exchanges:,}, {receipt.rebuilt:,} rebuilt from raw", *newer, *gone, *others])),
        ("events", f"{receipt.events:,}{tombstones}, {receipt.raw_events:,} with raw: {receipt.raw_bytes:,} bytes"),
        ("chunks", f"{receipt.chunks:,}"),
        ("messages", f"{receipt.messages:,}"),
        ("requests", f"{receipt.requests:,}"),
        ("blobs", f"{receipt.blobs:,}: {receipt.blob_bytes:,} bytes"),
    ]


def _why(converter: str) -> str:
    made_by = converter_of(converter)
    ours = translator_of(converter)
    if ours is None:
        return f"{made_by.name!r} is not here"
    return f"made by version {made_by.version} of {made_by.name}, here is {ours.version}"


def _print_damage(damage: Damage, output: Output) -> None:
    where = f"{damage.conversation}: {damage.where}" if damage.conversation else damage.where
    output.data(output.styled(output.fit(where), "bold") + f" ({damage.kind})\n")
    output.line(f"  expected {damage.expected}")
    output.line(f"  found    {damage.found}")


def _many(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
