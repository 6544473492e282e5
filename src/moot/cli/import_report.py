"""Progress and report of `moot import`."""

from __future__ import annotations

import time
from collections.abc import Mapping

from moot.cli.output import Output
from moot.cli.progress import Progress
from moot.cli.things import format_bytes, format_counts, plural
from moot.convert.given import conversation_json
from moot.guard.terminal import clean
from moot.runtime.importing import Brought, Report
from moot.types.canonical import JsonObject

__all__ = ["ImportProgress", "outcome_of", "print_report", "report_json"]

_FEW = 10
"""Maximum number of conversations listed one by one. More are summarized in a table."""
_FAILED = 20
_NAMED = 3
"""Maximum number of unrecognized files to name."""
_BAR = 16
_OUTCOMES = {"known": "already imported", "empty": "empty"}
_ESTIMATE_AFTER = 3.0
"""Seconds after which the rate is good enough to estimate the remaining time."""


class ImportProgress:
    """Progress line on stderr."""

    def __init__(self, output: Output, report: Report) -> None:
        self._line = Progress(output)
        self._report = report
        self._started = time.monotonic()
        self._is_terminal = output.stderr_terminal

    def show(self) -> None:
        """Update the line. May be called often."""
        report = self._report
        passed = max(time.monotonic() - self._started, 0.001)
        rate = report.bytes_done / passed
        share = min(report.bytes_done / report.bytes, 1.0) if report.bytes else 0.0
        facts = [
            f"{format_bytes(report.bytes_done)} of {format_bytes(report.bytes)}",
            f"{sum(report.conversations.values()):,} conversations",
            f"{report.messages:,} messages",
            f"{format_bytes(rate)}/s",
        ]
        if rate and passed > _ESTIMATE_AFTER:
            facts.append(f"{_duration((report.bytes - report.bytes_done) / rate)} left")
        self._line.show(f"{_bar(share)} {share:.0%}  {' · '.join(facts)}" if self._is_terminal else f"{share:.0%}: {', '.join(facts)}")

    def indexing(self, done: int, total: int) -> None:
        share = done / total if total else 1.0
        self._line.show(f"{_bar(share)} indexing {share:.0%}" if self._is_terminal else f"indexing {share:.0%}")

    def close(self) -> None:
        """Erase the line."""
        self._line.close()


def report_json(report: Report, indexed: tuple[int, int], seconds: tuple[float, float]) -> JsonObject:
    """Return the report as JSON. `seconds` are the durations of storing and of indexing."""
    done, total = indexed
    return {
        **report.to_json(),
        "index": {"done": done, "total": total},
        "seconds": {"stored": round(seconds[0], 3), "indexed": round(seconds[1], 3)},
        "data": [
            {**one.to_json(), "conversation": conversation_json(one.conversation, {}) if one.conversation is not None else None}
            for one in report.brought
        ],
    }


def print_report(report: Report, indexed: tuple[int, int], output: Output, *, verbose: bool) -> None:
    """Print the ids of new conversations to stdout and everything else to stderr."""
    notable = [one for one in report.brought if one.outcome != "known" or one.problems or len(report.brought) <= _FEW]
    for one in report.brought:
        if one.outcome == "added" and one.conversation is not None and not (output.stdout_terminal and len(report.brought) > 1):
            output.line(one.conversation.id)
    if verbose or len(notable) <= _FEW:
        for one in report.brought if verbose else notable:
            _say(one, output)
    if len(notable) > _FEW:
        _say_by_format(report, output)
        _say_problems(report, output)
    _say_totals(report, output)
    for one in report.failed[:_FAILED]:
        output.say(f"moot: {one.path}: {one.problem}", "yellow")
    if len(report.failed) > _FAILED:
        output.say(f"moot: {len(report.failed) - _FAILED:,} more sources could not be read", "yellow")
    if report.unclaimed:
        some = report.strangers if verbose else report.strangers[:_NAMED]
        more = f" and {report.unclaimed - len(some):,} more" if report.unclaimed > len(some) else ""
        output.say(f"moot: {plural(report.unclaimed, 'file')} of unknown format: {clean(', '.join(some))}{more}", "dim")
    done, total = indexed
    if done < total:
        output.say(f"moot: the search index is {done / total:.0%} complete; searching or 'moot serve' continues it")


def _say(one: Brought, output: Output) -> None:
    output.say(f"moot: {outcome_of(one)}")
    if one.outcome == "known":
        return
    fidelity = one.fidelity
    for word, counts in (("kept", fidelity.kept), ("approximated", fidelity.approximated), ("lost", fidelity.lost)):
        if text := _counts(counts):
            output.say(f"  {word}: {text}", "yellow" if word == "lost" else "dim")
    for note in one.notes[:_FAILED]:
        output.say(f"  {note}", "yellow")
    if (more := max(len(one.notes), one.problems) - min(len(one.notes), _FAILED)) > 0:
        output.say(f"  and {more:,} more", "yellow")


def outcome_of(one: Brought) -> str:
    """Describe the outcome for one conversation in one line."""
    conversation = one.conversation
    id = conversation.id[:13] if conversation is not None else ""
    name = one.title or id or one.source_id
    match one.outcome:
        case "known":
            more = f"; {one.grown:,} new events in the file were not added" if one.grown else "; nothing new"
            return f"{name} is already imported as {id}{more}"
        case "added":
            return f"added {name}; show it with: moot chat show {id}"
        case "grown":
            return f"updated {name}: {_changes(one)}; show it with: moot chat show {id}"
        case "empty":
            return f"skipped {name} ({one.path}): it has no messages"
        case "would be added":
            return f"would add {name}"
        case "would grow":
            return f"would update {name}: {_changes(one)}"


def _changes(one: Brought) -> str:
    taken = one.taken
    counts = {"new messages": taken.added, "longer": taken.grown, "rewritten": taken.rewritten, "records": taken.records}
    return ", ".join(f"{count:,} {word}" for word, count in counts.items() if count)


def _say_by_format(report: Report, output: Output) -> None:
    rows: list[list[str]] = []
    for format, fidelity in sorted(report.by_format().items()):
        some = [one for one in report.brought if one.format == format]
        rows.append(
            [format, f"{len(some):,}", f"{sum(one.messages for one in some):,}", _short(fidelity.lost), _short(fidelity.approximated)]
        )
    head = ["format", "conversations", "messages", "lost", "approximated"]
    widths = [max(len(row[at]) for row in (head, *rows)) for at in range(len(head))]
    for row in (head, *rows):
        output.say("  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip(), "dim" if row is head else "")


def _say_problems(report: Report, output: Output) -> None:
    """Print unreadable records of the first conversations that have any."""
    bad = [one for one in report.brought if one.problems]
    for one in bad[:_FEW]:
        more = f" and {one.problems - 1:,} more" if one.problems > 1 else ""
        output.say(f"moot: {one.path}: {one.notes[0] if one.notes else 'a record could not be read'}{more}", "yellow")
    if len(bad) > _FEW:
        output.say(f"moot: unreadable records in {len(bad) - _FEW:,} more conversations; use --verbose to list them", "yellow")


def _short(counts: Mapping[str, int]) -> str:
    return _counts(counts) or "-"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(format_counts(counts))


def _say_totals(report: Report, output: Output) -> None:
    taken, outcomes = report.taken, report.conversations
    words = [
        f"{outcomes[outcome]:,} {_OUTCOMES.get(outcome, outcome)}"
        for outcome in ("added", "grown", "would be added", "would grow", "known", "empty")
        if outcomes[outcome]
    ]
    sources = [f"{plural(report.unchanged, 'source')} unchanged"] if report.unchanged else []
    sources += [f"{report.older:,} older"] if report.older else []
    if sum(outcomes.values()) + report.unchanged <= 1 and not report.older and not report.failed:
        if not outcomes and not report.unchanged:
            output.say("moot: nothing to import", "yellow")
        elif report.unchanged:
            output.say("moot: the source is unchanged; nothing was added")
        return
    output.say(f"moot: {'conversations: ' if words else ''}{', '.join([*words, *sources]) or 'nothing to import'}")
    if not taken.changed and not report.problems:
        return
    longer = f", {taken.grown:,} longer" if taken.grown else ""
    output.say(f"moot: {plural(taken.added + taken.rewritten, 'new message')}{longer}", "dim")
    if report.problems:
        output.say(
            f"moot: {plural(report.problems, 'unreadable record')} kept unchanged",
            "yellow",
        )
    if report.unpriced:
        output.say(f"moot: {plural(report.unpriced, 'answer')} from models without a known price", "dim")


def _bar(share: float) -> str:
    full = round(share * _BAR)
    return "█" * full + "░" * (_BAR - full)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
