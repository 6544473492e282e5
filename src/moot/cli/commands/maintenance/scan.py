"""The command `moot scan`, and the selection of its findings for `moot redact`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import Annotated

from moot.cli.arguments.signatures import AsJson, Parameter
from moot.cli.console.format import format_bytes, moment, parse_time, plural, print_table
from moot.cli.console.lines import Progress
from moot.cli.console.output import Output
from moot.cli.context.configuration import here
from moot.cli.context.engine import find_conversation, opened
from moot.cli.context.output import Out
from moot.errors import NotFound
from moot.store.tree.lists import listed_name
from moot.types.maintenance import ScanReport, ScanScope, SecretFinding, SecretPlace
from moot.types.store import Store

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
