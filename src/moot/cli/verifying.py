"""The command `moot verify`."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated

from moot.cli.arguments.parameters import Parameter
from moot.cli.configured import configured, here
from moot.cli.options import AsJson, Out
from moot.cli.output import Output
from moot.cli.progress import Progress
from moot.cli.references import find_in
from moot.cli.storage import opened_store
from moot.cli.things import plural
from moot.cli.upgrading import upgrade as upgraded
from moot.config.settings import Settings
from moot.convert.translators import translator_of
from moot.errors import UsageError
from moot.store import SqliteStore
from moot.types.exchange import converter_of
from moot.types.verify import Damage, DamageKind, Receipt

_TRANSLATION = "The translation doesn't match the raw data: one of them was changed, or the converter was changed without a new version."
ADVICE: dict[DamageKind, str] = {
    "missing": "Missing data can only come from a backup. Make a copy of {data} before anything else.",
    "changed": "Bytes were changed outside of moot. Check the disk, and make a copy of {data} before anything else.",
    "unreadable": "Bytes cannot be read. Check the disk, and make a copy of {data} before anything else.",
    "chunks": _TRANSLATION,
    "ending": _TRANSLATION,
    "record": "The log is right, but the row derived from it is wrong. Make a copy of {data}, and report this.",
    "message": "The log is right, but the message made from it is wrong. 'moot chat show ID --raw' shows the raw data.",
    "blob": "Restore the file from a backup. Messages that refer to it cannot show it until then.",
    "file": "The database file is corrupt. Make a copy of {data} before anything else, then restore a backup.",
}


async def verify(
    conversation: Annotated[
        str | None, Parameter(kind="conversation", help="Conversation by id, title or list number. Defaults to all.")
    ] = None,
    /,
    *,
    all: Annotated[bool, Parameter(name="--all", help="Verify all conversations and files, which is the default.")] = False,
    upgrade: Annotated[
        bool, Parameter(name="--upgrade", help="Translate old runs again with newer converters, report differences and store the result.")
    ] = False,
    dry_run: Annotated[bool, Parameter(name="--dry-run", help="With --upgrade: report without storing anything.")] = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Rebuild everything from the raw data and compare it with what is stored. Return 1 if anything differs."""
    if all and conversation is not None:
        raise UsageError("A conversation and --all cannot be used together.")
    if upgrade and not all and conversation is None:
        raise UsageError("--upgrade requires a conversation or --all.", fix="moot verify --upgrade --all")
    if dry_run and not upgrade:
        raise UsageError("--dry-run requires --upgrade. Verification never changes anything.")
    settings = configured(output).settings
    async with opened_store(settings) as store:
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


def _print(receipt: Receipt, settings: Settings, output: Output) -> None:
    for name, words in _lines(receipt):
        output.data(f"{name:<13} {words}\n")
    if not receipt.damaged:
        output.data(output.styled("ok", "green") + "\n")
        return
    output.data("\n" + output.styled(plural(receipt.damaged, "difference"), "red") + "\n")
    for damage in receipt.damages:
        _print_damage(damage, output)
    if (left := receipt.damaged - len(receipt.damages)) > 0:
        output.data(f"… and {left:,} more\n")
    output.data("\n")
    data = str(settings.database.parent)
    for line in dict.fromkeys(ADVICE[damage.kind].format(data=data) for damage in receipt.damages):
        output.line(line)


def _lines(receipt: Receipt) -> list[tuple[str, str]]:
    live = f", {receipt.live:,} of them live and verified as far as they are stored" if receipt.live else ""
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
        return f"{made_by.name!r} is not installed"
    return f"made by version {made_by.version} of {made_by.name}; the installed version is {ours.version}"


def _print_damage(damage: Damage, output: Output) -> None:
    where = f"{damage.conversation}: {damage.where}" if damage.conversation else damage.where
    output.data(output.styled(output.fit(where), "bold") + f" ({damage.kind})\n")
    output.line(f"  expected {damage.expected}")
    output.line(f"  found    {damage.found}")
