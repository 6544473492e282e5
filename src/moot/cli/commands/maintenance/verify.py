"""The command `moot verify`."""

from __future__ import annotations

from contextlib import aclosing
from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import plural
from moot.cli.console.lines import Progress
from moot.cli.console.output import Output
from moot.cli.context.configuration import configured, here
from moot.cli.context.output import Out
from moot.cli.context.references import find_in
from moot.config.settings import Settings
from moot.convert.exchanges import translator_of
from moot.errors import UsageError
from moot.store import open_store
from moot.types.canonical import Json
from moot.types.exchange import converter_of
from moot.types.verify import DamageKind, Receipt, Translations, Upgrade

SHOWN = 200
"""Maximum number of runs to print individually. Further runs are only counted."""


async def _upgrade(translations: Translations, conversation: str | None, output: Output, *, store: bool, json: bool) -> int:
    """Print the changes in each run and store the result of the new conversion. Return 1 if a run had to be skipped."""
    progress = Progress(output)
    shown: list[Upgrade] = []
    changed = same = skipped = 0
    async with aclosing(translations.upgrade(translator_of, conversation=conversation, store=store)) as upgrades:
        async for each in upgrades:
            if each.skipped:
                skipped += 1
            elif each.events or each.endings:
                changed += 1
            else:
                same += 1
            if len(shown) < SHOWN and (each.skipped or each.events or each.endings):
                shown.append(each)
                if not json:
                    progress.close()
                    _print_upgrade(each, output)
            progress.show(f"{changed + same + skipped:,} runs converted again")
    progress.close()
    if json:
        counts: dict[str, Json] = {"changed": changed, "same": same, "skipped": skipped}
        output.json({"ok": not skipped, "stored": store, **counts, "data": list[Json]([each.to_json() for each in shown])})
        return 1 if skipped else 0
    if (left := changed + skipped - len(shown)) > 0:
        output.data(f"… and {left:,} more\n")
    done = "stored next to the first conversion" if store else "nothing was stored (dry run)"
    words = f"{changed:,} changed, {same:,} unchanged{f'; {skipped:,} skipped' if skipped else ''}; {done}\n"
    output.data(words if changed or same or skipped else "nothing to do: all runs were converted by the newest converters\n")
    return 1 if skipped else 0


def _print_upgrade(each: Upgrade, output: Output) -> None:
    name = f"run {each.run}" if each.run else f"{len(each.exchanges)} calls outside of runs"
    output.data(output.styled(output.fit(f"{each.conversation}: {name}"), "bold") + "\n")
    output.line(f"  {', '.join(each.converters)}")
    if each.skipped:
        output.line(f"  skipped: {each.skipped}")
        return
    before, after = each.chunks
    endings = f", {each.endings:,} with a different ending" if each.endings else ""
    output.line(f"  {each.events:,} events with different chunks ({before:,} → {after:,} in total){endings}")
    for where, old, new in each.differences:
        output.line(f"  {where}")
        output.data(output.styled(f"    - {output.fit(old)}", "red") + "\n")
        output.data(output.styled(f"    + {output.fit(new)}", "green") + "\n")


_TRANSLATION = "The converted data doesn't match the raw data: one of them was changed, or the converter was changed without a new version."
ADVICE: dict[DamageKind, str] = {
    "missing": "Missing data can only be restored from a backup. Copy {data} before you change anything.",
    "changed": "Bytes were changed outside of moot. Copy {data} before you change anything, and check the disk.",
    "unreadable": "Bytes cannot be read. Copy {data} before you change anything, and check the disk.",
    "chunks": _TRANSLATION,
    "ending": _TRANSLATION,
    "record": "The log is correct, but a database row derived from it is wrong. Copy {data}, and report this as a bug.",
    "message": "The log is correct, but the message derived from it is wrong. 'moot chat show ID --raw' shows the raw data.",
    "blob": "Restore the file from a backup. Messages that refer to it cannot show it until then.",
    "file": "The database file is corrupt. Copy {data} before you change anything, then restore a backup.",
}


async def verify(
    conversation: Annotated[
        str | None,
        Parameter(kind="conversation", help="Conversation to verify: its id, title or list number. Defaults to all conversations."),
    ] = None,
    /,
    *,
    all: Annotated[bool, Parameter(help="Verify all conversations and files. This is the default.")] = False,
    upgrade: Annotated[
        bool, Parameter(help="Convert the raw data of old runs again with newer converters, report differences, and store the result.")
    ] = False,
    dry_run: Annotated[bool, Parameter(help="With --upgrade: report differences without storing anything.")] = False,
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
    async with await open_store(settings) as store:
        only = None
        if conversation is not None:
            only = (await find_in(store, settings.home / "state", conversation, str(here()))).id
        if upgrade:
            return await _upgrade(store.translations, only, output, store=not dry_run, json=json)
        receipt = Receipt()
        with Progress(output) as progress:
            async with aclosing(store.verifier.verify(translator_of, conversation=only)) as receipts:
                async for receipt in receipts:
                    raw = f"{receipt.raw_bytes / 1e6:,.1f} MB of raw data"
                    progress.show(f"{receipt.conversations:,} conversations, {raw}, {receipt.blobs:,} blobs")
    if json:
        output.json(receipt.to_json())
    else:
        _print(receipt, settings, output)
    return 1 if receipt.damaged else 0


def _print(receipt: Receipt, settings: Settings, output: Output) -> None:
    for name, words in _lines(receipt):
        output.data(f"{name:<13} {words}\n")
    if not receipt.damaged:
        output.data(output.styled("ok", "green") + "\n")
        return
    output.data("\n" + output.styled(plural(receipt.damaged, "difference"), "red") + "\n")
    for damage in receipt.damages:
        where = f"{damage.conversation}: {damage.where}" if damage.conversation else damage.where
        output.data(output.styled(output.fit(where), "bold") + f" ({damage.kind})\n")
        output.line(f"  expected {damage.expected}")
        output.line(f"  found    {damage.found}")
    if (left := receipt.damaged - len(receipt.damages)) > 0:
        output.data(f"… and {left:,} more\n")
    output.data("\n")
    data = str(settings.database.parent)
    for line in dict.fromkeys(ADVICE[damage.kind].format(data=data) for damage in receipt.damages):
        output.line(line)


def _lines(receipt: Receipt) -> list[tuple[str, str]]:
    live = f", {receipt.live:,} of them live and verified as far as they are stored" if receipt.live else ""
    others: list[str] = []
    for converter, count in sorted(receipt.not_rebuilt.items()):
        made_by, ours = converter_of(converter), translator_of(converter)
        why = f"{made_by.name!r} is not installed"
        if ours is not None:
            why = f"made by version {made_by.version} of {made_by.name}; the installed version is {ours.version}"
        others.append(f"{count:,} not rebuilt: {why}")
    gone = [f"{receipt.redacted_exchanges:,} redacted"] if receipt.redacted_exchanges else []
    tombstones = f", {receipt.redacted:,} of them redacted" if receipt.redacted else ""
    newer = [f"{receipt.translated:,} shown in a newer conversion"] if receipt.translated else []
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
