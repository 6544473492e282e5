"""`moot purge` and `moot redact`: what takes away for good, and says what went where."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

from anyio import to_thread

from moot.cli.arguments.parameters import Parameter
from moot.cli.asking import confirm
from moot.cli.configured import here
from moot.cli.opening import opened
from moot.cli.options import AsJson, Out
from moot.cli.output import Output
from moot.cli.progress import Progress
from moot.cli.references import find_conversation
from moot.engine import Engine
from moot.errors import UsageError
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.forgetting import Expiry, Forgotten, Secret

Yes = Annotated[bool, Parameter(name=("--yes", "-y"), help="Do it without asking; where nobody can be asked it is wanted.")]
DryRun = Annotated[bool, Parameter(name="--dry-run", help="Say what would go, and change nothing.")]
_SHOWN = 10
_PAGE = 200


async def purge(
    *conversations: Annotated[str, Parameter(kind="conversation", help="Each by its id, title or number.")],
    deleted: Annotated[bool, Parameter(name="--deleted", help="All that are deleted.")] = False,
    before: Annotated[str | None, Parameter(name="--before", help="All without activity since that day, such as 2025-01-31.")] = None,
    expired: Annotated[bool, Parameter(name="--expired", help="What the rules of the configuration say is over.")] = False,
    finish: Annotated[bool, Parameter(name="--finish", help="Only go on with what a crash or a full disk cut off.")] = False,
    receipts: Annotated[bool, Parameter(name="--receipts", help="Only show what was purged and redacted before.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Takes conversations away for good, from the database, the index, blobs and backups; the receipt says what went where."""
    _check_one(bool(conversations), deleted or before is not None, expired, finish, receipts)
    since = None if before is None else _day(before)
    async with opened(output) as engine:
        forgetting = engine.store.forgetting
        if receipts:
            return _listed(await forgetting.receipts(), json, output)
        if finish:
            return _receipts(await forgetting.finish(), json, output)
        if expired:
            return await _expired(engine, dry_run=dry_run, yes=yes, json=json, output=output)
        meant = [await find_conversation(engine, name, str(here())) for name in conversations] if conversations else []
        meant = meant or await _old(engine, deleted=deleted, before=since)
        if not meant:
            return _receipts([], json, output)
        if not dry_run and not await _agreed([_title(one) for one in meant], "purged for good", yes=yes, output=output):
            return 1
        progress = Progress(output)
        receipt = await forgetting.purge([one.id for one in meant], dry_run=dry_run, tell=progress.show)
        progress.close()
    return _told(receipt, json, output, dry_run=dry_run)


async def redact(
    *strings: Annotated[str, Parameter(help="What is to go; better given on stdin: an argument stays in your shell's history.")],
    conversation: Annotated[
        str | None, Parameter(name=("--conversation", "-c"), kind="conversation", help="Only out of this one and its sub-conversations.")
    ] = None,
    source: Annotated[
        Path | None, Parameter(name=("--from", "-f"), kind="file", help="A file with one string a line; without it stdin has them.")
    ] = None,
    regex: Annotated[bool, Parameter(name="--regex", help="They are regular expressions; each repetition has a bound.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Takes strings out of everything that is stored; a mark stands in their place."""
    wanted = tuple(strings) or await _read(source, output)
    if strings and source is not None:
        raise UsageError("strings and --from exclude each other")
    if strings:
        output.say("moot: what is typed as an argument stays in your shell's history; take it out there too", "yellow")
    secret = Secret(patterns=wanted) if regex else Secret(wanted)
    async with opened(output) as engine:
        id = None if conversation is None else (await find_conversation(engine, conversation, str(here()))).id
        forgetting = engine.store.forgetting
        progress = Progress(output)
        found = await forgetting.redact(secret, conversation=id, dry_run=True, tell=progress.show)
        progress.close()
        if dry_run:
            return _told(found, json, output, dry_run=True)
        places = f"{sum(found.rows.values()):,} rows of {len(found.conversations):,} conversations, {found.blobs:,} blobs"
        if not await _agreed([places], "redacted for good", yes=yes, output=output):
            return 1
        receipt = await forgetting.redact(secret, conversation=id, tell=progress.show)
        progress.close()
    return _told(receipt, json, output)


def _check_one(*ways: bool) -> None:
    if sum(ways) > 1:
        raise UsageError("conversations, --deleted and --before, --expired, --finish and --receipts exclude each other")
    if not any(ways):
        raise UsageError("what is to be purged?", fix="moot purge ID, moot purge --deleted, or moot purge --expired")


def _day(text: str) -> int:
    """The beginning of that day, ms."""
    try:
        return int(datetime.fromisoformat(text).astimezone().timestamp() * 1000)
    except ValueError as error:
        raise UsageError(f"--before {text!r}: expected a day such as 2025-01-31") from error


async def _old(engine: Engine, *, deleted: bool, before: int | None) -> list[Conversation]:
    """All that are deleted, or all at all, with no activity (of deleted ones: deleted) since then."""
    found: list[Conversation] = []
    for shelf in (True,) if deleted else (True, False):
        cursor: str | None = None
        while True:
            page = await engine.store.conversations.list(limit=_PAGE, cursor=cursor, deleted=shelf, archived=None)
            found += [one for one in page.items if before is None or (one.deleted_at or one.updated_at) < before]
            if (cursor := page.next_cursor) is None:
                break
    return found


async def _expired(engine: Engine, *, dry_run: bool, yes: bool, json: bool, output: Output) -> int:
    forgetting = engine.store.forgetting
    over, _ = await forgetting.expire(engine.settings.retention, dry_run=True)
    if dry_run or not over:
        return _over(over, json, output)
    lines = [f"{one.what}: {_title(one.conversation)} ({one.why})" for one in over]
    if not await _agreed(lines, "gone from where they are", yes=yes, output=output):
        return 1
    progress = Progress(output)
    over, receipt = await forgetting.expire(engine.settings.retention, tell=progress.show)
    progress.close()
    if receipt is None:
        return _over(over, json, output)
    return _told(receipt, json, output)


async def _agreed(things: Sequence[str], what: str, *, yes: bool, output: Output) -> bool:
    """Whether a person said yes. Raises UsageError where nobody can."""
    if yes:
        return True
    if not output.attended:
        raise UsageError("this can't be undone, and nobody can be asked here", fix="say --yes, or look first with --dry-run")
    for line in things[:_SHOWN]:
        output.say(f"  {line}")
    if len(things) > _SHOWN:
        output.say(f"  … and {len(things) - _SHOWN:,} more")
    return await confirm(f"They will be {what}; nothing brings them back. Go on?", output)


async def _read(source: Path | None, output: Output) -> tuple[str, ...]:
    """Strings from a file, from stdin, or typed unseen."""
    if source is not None and str(source) != "-":
        try:
            text = await to_thread.run_sync(partial(source.read_text, encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"can't read {str(source)!r}: {error}") from error
    elif sys.stdin.isatty():
        text = await to_thread.run_sync(getpass.getpass, "What is to go (it is not shown): ")
    else:
        text = await to_thread.run_sync(sys.stdin.read)
    found = tuple(line for line in text.splitlines() if line)
    if not found:
        raise UsageError("what is to be redacted?", fix="give it on stdin, one string a line")
    return found


# ── what came of it ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _title(conversation: Conversation) -> str:
    return f"{conversation.id[:13]} {conversation.title or 'untitled'}"


def _told(receipt: Forgotten, as_json: bool, output: Output, *, dry_run: bool = False) -> int:
    if as_json:
        output.json({**receipt.to_json(), "dry_run": dry_run})
    else:
        for line in receipt_lines(receipt, dry_run=dry_run):
            output.line(line)
    return 1 if receipt.left and not dry_run else 0


def _receipts(receipts: Sequence[Forgotten], as_json: bool, output: Output) -> int:
    if as_json:
        output.json({"data": list[Json]([receipt.to_json() for receipt in receipts])})
    elif not receipts:
        output.say("moot: there is nothing to do")
    for receipt in () if as_json else receipts:
        _told(receipt, False, output)
    return 1 if any(receipt.left for receipt in receipts) else 0


def _listed(receipts: Sequence[Forgotten], as_json: bool, output: Output) -> int:
    if as_json:
        output.json({"data": list[Json]([receipt.to_json() for receipt in receipts])})
        return 0
    for receipt in receipts:
        when = datetime.fromtimestamp(receipt.begun_at / 1000).strftime("%Y-%m-%d %H:%M")
        state = "" if receipt.done_at is not None else ", not done yet"
        output.line(f"{receipt.no:>4}  {when}  {receipt.kind:<6}  {len(receipt.conversations):,} conversations{state}")
    return 0


def _over(over: Sequence[Expiry], as_json: bool, output: Output) -> int:
    if as_json:
        rows: list[JsonObject] = [{"conversation": one.conversation.id, "what": one.what, "why": one.why} for one in over]
        output.json({"data": list[Json](rows)})
    elif not over:
        output.say("moot: nothing is over")
    for one in () if as_json else over:
        output.line(f"{one.what:<7} {_title(one.conversation)} ({one.why})")
    return 0


def receipt_lines(receipt: Forgotten, *, dry_run: bool = False) -> list[str]:
    """The receipt for people."""
    did = {"purge": "purged", "redact": "redacted"}[receipt.kind]
    head = f"{'would be ' if dry_run else ''}{did}: {len(receipt.conversations):,} {_many(len(receipt.conversations), 'conversation')}"
    lines = [head, *(f"  {id}" for id in receipt.conversations[:_SHOWN])]
    if len(receipt.conversations) > _SHOWN:
        lines.append(f"  … and {len(receipt.conversations) - _SHOWN:,} more")
    lines += [f"{table:<13} {rows:,}" for table, rows in receipt.rows.items()]
    if receipt.blobs:
        lines.append(f"{'blobs':<13} {receipt.blobs:,}" + (f": {receipt.blob_bytes:,} bytes" if receipt.blob_bytes else ""))
    lines += [f"{file.what:<13} {file.path}" + (f" ({file.why})" if file.why else "") for file in receipt.files]
    if receipt.bytes_before:
        lines.append(f"{'database':<13} written anew: {receipt.bytes_before:,} bytes before, {receipt.bytes_after:,} now")
    lines += [f"{'left':<13} {words}" for words in receipt.left]
    lines += [f"{'not seen':<13} {words}" for words in receipt.unseen]
    if receipt.done_at is None and not dry_run:
        lines.append("not done yet: it is gone on with by itself, or with moot purge --finish")
    return lines


def _many(count: int, word: str) -> str:
    return word if count == 1 else f"{word}s"
