"""The commands `moot purge` and `moot redact`, which delete permanently, and `moot scan`, whose findings can be redacted."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Sequence
from contextlib import aclosing
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated

from anyio import to_thread

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import format_bytes, moment, parse_time, plural, print_table
from moot.cli.console.lines import Progress
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.engine import find_conversation, opened
from moot.cli.context.output import Out
from moot.cli.terminal.prompts.plain import confirm
from moot.engine import Engine
from moot.errors import NotFound, UsageError
from moot.store.tree.lists import listed_name
from moot.types.canonical import Json, JsonObject
from moot.types.conversation import Conversation
from moot.types.maintenance import ErasureReceipt, Expiry, ScanReport, ScanScope, Secret, SecretFinding, SecretPlace
from moot.types.store import Store

Yes = Annotated[bool, Parameter(name=("--yes", "-y"), help="Don't prompt for confirmation. Required without a terminal.")]
DryRun = Annotated[bool, Parameter(name="--dry-run", help="Show what would be removed without changing anything.")]
_SHOWN = 10
_PAGE = 200


async def purge(
    *conversations: Annotated[str, Parameter(kind="conversation", help="Conversations to purge: their ids, titles or list numbers.")],
    deleted: Annotated[bool, Parameter(help="Purge all deleted conversations.")] = False,
    before: Annotated[
        str | None,
        Parameter(
            metavar="TIME", help="Purge conversations without activity since a date (2026-01-31) or for a period (12h, 30d, 2w, 6m or 1y)."
        ),
    ] = None,
    expired: Annotated[bool, Parameter(help="Apply the retention rules from the configuration.")] = False,
    finish: Annotated[bool, Parameter(help="Only finish a purge or redaction that was interrupted.")] = False,
    receipts: Annotated[bool, Parameter(help="Only list earlier purges and redactions.")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Permanently delete conversations from the database, the search index, blobs and backups, and print a receipt."""
    _check_exclusive(bool(conversations), deleted or before is not None, expired, finish, receipts)
    since = None if before is None else parse_time(before, "--before")
    async with opened(output) as engine:
        erasure = engine.store.erasure
        if receipts:
            return _print_history(await erasure.receipts(), json, output)
        if finish:
            return _print_receipts(await erasure.finish(), json, output)
        if expired:
            return await _apply_retention(engine, dry_run=dry_run, yes=yes, json=json, output=output)
        chosen = [await find_conversation(engine, name, str(here())) for name in conversations] if conversations else []
        chosen = chosen or await _inactive(engine, deleted=deleted, before=since)
        if not chosen:
            return _print_receipts([], json, output)
        if not dry_run and not await _confirmed([_title(one) for one in chosen], "permanently deleted", yes=yes, output=output):
            return 1
        progress = Progress(output)
        receipt = await erasure.purge([one.id for one in chosen], dry_run=dry_run, tell=progress.show)
        progress.close()
    return _print_receipt(receipt, json, output, dry_run=dry_run)


async def redact(
    *strings: Annotated[str, Parameter(help="Strings to remove. Prefer stdin: arguments are saved in your shell's history.")],
    conversation: Annotated[
        str | None,
        Parameter(
            name=("--conversation", "-c"),
            kind="conversation",
            help="Redact only this conversation and the conversations of its sub-agents.",
        ),
    ] = None,
    source: Annotated[
        Path | None, Parameter(name=("--from", "-f"), kind="file", help="File with one string per line. Defaults to stdin.")
    ] = None,
    regex: Annotated[
        bool, Parameter(help="Treat the strings as regular expressions. Repetitions need an upper bound, such as {1,64}.")
    ] = False,
    finding: Annotated[
        tuple[str, ...] | None,
        Parameter(
            metavar="FINGERPRINT",
            help="Fingerprint of a secret to remove, as printed by 'moot scan', or 'all'. May be repeated.",
        ),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Replace strings in all stored data with a marker."""
    if bool(strings) + (source is not None) + (finding is not None) > 1 or (finding and regex):
        raise UsageError("Use only one of: strings, --from, --finding. --regex does not work with --finding.")
    wanted = tuple(strings) if finding or strings else await _read(source, output)
    if strings:
        output.say("moot: arguments are saved in your shell's history; remove the strings there too", "yellow")
    secret = Secret(patterns=wanted) if regex else Secret(wanted)
    async with opened(output) as engine:
        id = None if conversation is None else (await find_conversation(engine, conversation, str(here()))).id
        erasure = engine.store.erasure
        if finding:
            report = await scanned(engine.store, ScanScope(id), output)
            chosen = select_findings(report, finding)
            if not chosen:
                output.say("moot: no secrets found")
                receipt = ErasureReceipt("redact", left=report.problems)
                return _print_receipt(receipt, json, output, dry_run=dry_run) if json or receipt.left else 0
            for one in () if json else chosen:
                output.say(f"  {describe_finding(one)}")
            secret = Secret(tuple(sorted({string for one in chosen for string in one.strings})))
        progress = Progress(output)
        found = await erasure.redact(secret, conversation=id, dry_run=True, tell=progress.show)
        progress.close()
        if dry_run:
            return _print_receipt(found, json, output, dry_run=True)
        places = f"{sum(found.rows.values()):,} rows of {len(found.conversations):,} conversations, {found.blobs:,} blobs"
        if not await _confirmed([places], "permanently redacted", yes=yes, output=output):
            return 1
        receipt = await erasure.redact(secret, conversation=id, tell=progress.show)
        progress.close()
    return _print_receipt(receipt, json, output)


def _check_exclusive(*ways: bool) -> None:
    if sum(ways) > 1:
        raise UsageError("Use only one of: conversations, --deleted or --before, --expired, --finish, --receipts.")
    if not any(ways):
        raise UsageError(
            "No conversations to purge were given.", fix="Use 'moot purge ID', 'moot purge --deleted' or 'moot purge --expired'."
        )


async def _inactive(engine: Engine, *, deleted: bool, before: int | None) -> list[Conversation]:
    """Return conversations that have had no activity since `before`, optionally only deleted ones.
    Deleting a conversation counts as activity.
    """
    found: list[Conversation] = []
    for shelf in (True,) if deleted else (True, False):
        cursor: str | None = None
        while True:
            page = await engine.store.conversations.list(limit=_PAGE, cursor=cursor, deleted=shelf, archived=None)
            found += [one for one in page.items if before is None or (one.deleted_at or one.updated_at) < before]
            if (cursor := page.next_cursor) is None:
                break
    return found


async def _apply_retention(engine: Engine, *, dry_run: bool, yes: bool, json: bool, output: Output) -> int:
    erasure = engine.store.erasure
    over, _ = await erasure.expire(engine.settings.retention, dry_run=True)
    if dry_run or not over:
        return _print_expired(over, json, output)
    lines = [f"{one.what}: {_title(one.conversation)} ({one.why})" for one in over]
    if not await _confirmed(lines, "removed as listed", yes=yes, output=output):
        return 1
    progress = Progress(output)
    over, receipt = await erasure.expire(engine.settings.retention, tell=progress.show)
    progress.close()
    if receipt is None:
        return _print_expired(over, json, output)
    return _print_receipt(receipt, json, output)


async def _confirmed(items: Sequence[str], what: str, *, yes: bool, output: Output) -> bool:
    """Ask the user to confirm. Raise UsageError if they cannot be asked."""
    if yes:
        return True
    if not output.attended:
        raise UsageError("This cannot be undone and needs confirmation.", fix="Use --yes, or preview it with --dry-run.")
    for line in items[:_SHOWN]:
        output.say(f"  {line}")
    if len(items) > _SHOWN:
        output.say(f"  … and {len(items) - _SHOWN:,} more")
    return await confirm(f"They will be {what}. This cannot be undone. Continue?", output)


async def _read(source: Path | None, output: Output) -> tuple[str, ...]:
    """Read strings from a file, from stdin, or from a prompt that hides the input."""
    if source is not None and str(source) != "-":
        try:
            text = await to_thread.run_sync(partial(source.read_text, encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"Cannot read {str(source)!r}: {error}") from error
    elif sys.stdin.isatty():
        text = await to_thread.run_sync(getpass.getpass, "String to remove (hidden): ")
    else:
        text = await to_thread.run_sync(sys.stdin.read)
    found = tuple(line for line in text.splitlines() if line)
    if not found:
        raise UsageError("No strings to redact were given.", fix="Pass the strings on stdin, one per line.")
    return found


def _title(conversation: Conversation) -> str:
    return f"{conversation.id[:13]} {conversation.title or 'untitled'}"


def _print_receipt(receipt: ErasureReceipt, as_json: bool, output: Output, *, dry_run: bool = False) -> int:
    if as_json:
        output.json({**receipt.to_json(), "dry_run": dry_run})
    else:
        for line in receipt_lines(receipt, dry_run=dry_run):
            output.line(line)
    return 1 if receipt.left and not dry_run else 0


def _print_receipts(receipts: Sequence[ErasureReceipt], as_json: bool, output: Output) -> int:
    if as_json:
        output.json({"data": list[Json]([receipt.to_json() for receipt in receipts])})
    elif not receipts:
        output.say("moot: nothing to do")
    for receipt in () if as_json else receipts:
        _print_receipt(receipt, False, output)
    return 1 if any(receipt.left for receipt in receipts) else 0


def _print_history(receipts: Sequence[ErasureReceipt], as_json: bool, output: Output) -> int:
    if as_json:
        output.json({"data": list[Json]([receipt.to_json() for receipt in receipts])})
        return 0
    for receipt in receipts:
        when = datetime.fromtimestamp(receipt.begun_at / 1000).strftime("%Y-%m-%d %H:%M")
        state = "" if receipt.done_at is not None else ", not finished"
        output.line(f"{receipt.no:>4}  {when}  {receipt.kind:<6}  {len(receipt.conversations):,} conversations{state}")
    return 0


def _print_expired(over: Sequence[Expiry], as_json: bool, output: Output) -> int:
    if as_json:
        rows: list[JsonObject] = [{"conversation": one.conversation.id, "what": one.what, "why": one.why} for one in over]
        output.json({"data": list[Json](rows)})
    elif not over:
        output.say("moot: nothing has expired")
    for one in () if as_json else over:
        output.line(f"{one.what:<7} {_title(one.conversation)} ({one.why})")
    return 0


def receipt_lines(receipt: ErasureReceipt, *, dry_run: bool = False) -> list[str]:
    """Format a receipt for people."""
    did = {"purge": "purged", "redact": "redacted"}[receipt.kind]
    head = f"{'would be ' if dry_run else ''}{did}: {plural(len(receipt.conversations), 'conversation')}"
    lines = [head, *(f"  {id}" for id in receipt.conversations[:_SHOWN])]
    if len(receipt.conversations) > _SHOWN:
        lines.append(f"  … and {len(receipt.conversations) - _SHOWN:,} more")
    lines += [f"{table:<13} {rows:,}" for table, rows in receipt.rows.items()]
    if receipt.blobs:
        lines.append(f"{'blobs':<13} {receipt.blobs:,}" + (f": {receipt.blob_bytes:,} bytes" if receipt.blob_bytes else ""))
    lines += [f"{file.what:<13} {file.path}" + (f" ({file.why})" if file.why else "") for file in receipt.files]
    if receipt.bytes_before:
        lines.append(f"{'database':<13} rewritten: {receipt.bytes_before:,} bytes before, {receipt.bytes_after:,} now")
    lines += [f"{'left':<13} {words}" for words in receipt.left]
    lines += [f"{'not checked':<13} {words}" for words in receipt.unseen]
    if receipt.done_at is None and not dry_run:
        lines.append("not finished: moot continues automatically; use 'moot purge --finish' to continue now")
    return lines


_ID = 18
"""Number of characters of an id to print, which are enough to be unique in practice."""
EVERY = "all"
"""Fingerprint that selects all findings."""


async def scan(
    conversation: Annotated[
        str | None,
        Parameter(kind="conversation", help="Conversation to scan: its id, title or list number. By default, all stored data is scanned."),
    ] = None,
    /,
    *,
    project: Annotated[str, Parameter(help="Only conversations in this project.")] = "",
    agent: Annotated[str, Parameter(kind="agent", help="Only conversations with this agent, or imported from it.")] = "",
    since: Annotated[
        str,
        Parameter(metavar="TIME", help="Only conversations active since a date (2026-01-31) or within a period (12h, 30d, 2w, 6m or 1y)."),
    ] = "",
    all_: Annotated[
        bool, Parameter(name="--all", help="Also scan conversations that have not changed since an earlier scan found nothing in them.")
    ] = False,
    places: Annotated[bool, Parameter(help="List every place where each secret occurs.")] = False,
    json: AsJson = False,
    output: Out,
) -> int:
    """Search all stored data for secrets, and print them masked. Return 1 if there are any, or if something can't be searched."""
    begin = parse_time(since) if since else 0
    async with opened(output) as engine:
        only = (await find_conversation(engine, conversation, str(here()))).id if conversation is not None else None
        chosen = (await engine.store.projects.get(project)).id if project else ""
        named = listed_name("agent", agent, await engine.store.conversations.choices()) if agent else ""
        report = await scanned(engine.store, ScanScope(only, chosen, named, begin), output, unchanged=all_)
    findings = list(report.findings.values())
    if json:
        output.json(report.to_json())
    else:
        _print(findings, output, places=places)
        skipped = f", {report.unchanged:,} of them unchanged since a scan that found nothing" if report.unchanged else ""
        output.say(f"moot: scanned {plural(report.conversations, 'conversation')}{skipped}; read {format_bytes(report.bytes)}", "dim")
        for problem in report.problems:
            output.say(f"moot: not searched: {problem}", "yellow")
        if findings:
            output.say(f"moot: {plural(len(findings), 'secret')} found; replace them where they are valid, then use moot redact --finding")
        else:
            output.say("moot: no secrets found")
    return 1 if findings or report.problems else 0


async def scanned(store: Store, scope: ScanScope, output: Output, *, unchanged: bool = False) -> ScanReport:
    """Scan all stored data, show the progress, and return the result."""
    report = ScanReport()
    with Progress(output) as progress:
        async with aclosing(store.erasure.scanner.scan(scope, unchanged=unchanged)) as reports:
            async for report in reports:
                read = f"{report.conversations:,} conversations, {format_bytes(report.bytes)}"
                progress.show(f"Scanned {read}: {plural(len(report.findings), 'secret')}")
    return report


def select_findings(report: ScanReport, fingerprints: Sequence[str]) -> list[SecretFinding]:
    """Return the findings with these fingerprints or fingerprint prefixes. Raise NotFound if any of them matches no finding or several."""
    if EVERY in fingerprints:
        return list(report.findings.values())
    found: dict[str, SecretFinding] = {}
    for wanted in fingerprints:
        matches = [finding for finding in report.findings.values() if wanted and finding.fingerprint.startswith(wanted)]
        if len(matches) != 1:
            problem = "Several findings match" if matches else "No finding matches"
            raise NotFound(f"{problem} {wanted!r}.", fix="Run 'moot scan' to list the fingerprints.")
        found[matches[0].fingerprint] = matches[0]
    return list(found.values())


def describe_finding(finding: SecretFinding) -> str:
    """Return one line about a finding, with the secret masked."""
    return f"{finding.fingerprint}  {finding.kind}  {finding.masked}  {plural(finding.count, 'occurrence')}"


def _print(findings: Sequence[SecretFinding], output: Output, *, places: bool) -> None:
    if places:
        for finding in findings:
            output.line(describe_finding(finding))
            for place in finding.places:
                output.line(f"    {_place(place)}")
            if finding.unlisted:
                output.line(f"    … and {finding.unlisted:,} more")
    elif findings:
        rows = [[one.fingerprint, one.kind, one.masked, f"{one.count:,}", _first_place(one)] for one in findings]
        print_table(output, ["FINGERPRINT", "KIND", "SECRET", "COUNT", "PLACE"], rows)


def _first_place(finding: SecretFinding) -> str:
    first, *others = finding.places
    more = len(others) + finding.unlisted
    return _place(first) + (f" (and {plural(more, 'more place')})" if more else "")


def _place(place: SecretPlace) -> str:
    if place.conversation is None:
        return f"{place.what} {place.file}".strip()
    where = f"{place.conversation[:_ID]} {place.title or 'untitled'}"
    message = f" of {place.role} message {place.message[:_ID]}" if place.message else ""
    return f"{where}: {place.what}{message}{f', {moment(place.at)}' if place.at is not None else ''}"
