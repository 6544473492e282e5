"""What `moot import` shows: a line that moves while it works, then what became of everything."""

from __future__ import annotations

import time
from collections.abc import Mapping

from moot.cli.output import Output
from moot.cli.progress import Progress
from moot.cli.things import many, of_things
from moot.convert.given import conversation_json
from moot.guard.terminal import clean
from moot.runtime.importing import Brought, Report
from moot.types.canonical import JsonObject

__all__ = ["ImportProgress", "outcome_of", "print_report", "report_json"]

_FEW = 10
"""Conversations that are told of one by one; of more there is a table."""
_FAILED = 20
_NAMED = 3
"""Files that no format knows, by name."""
_BAR = 16
_OUTCOMES = {"known": "here already", "empty": "without a word"}
_SETTLED = 3.0
"""Seconds after which the rate says something of what is left."""


class ImportProgress:
    """How far it is, in a line on stderr."""

    def __init__(self, output: Output, report: Report) -> None:
        self._line = Progress(output)
        self._report = report
        self._begun = time.monotonic()
        self._is_terminal = output.stderr_terminal

    def show(self) -> None:
        """Called as often as one likes."""
        report = self._report
        passed = max(time.monotonic() - self._begun, 0.001)
        rate = report.bytes_done / passed
        share = min(report.bytes_done / report.bytes, 1.0) if report.bytes else 0.0
        told = [
            f"{_size(report.bytes_done)} of {_size(report.bytes)}",
            f"{sum(report.conversations.values()):,} conversations",
            f"{report.messages:,} messages",
            f"{_size(rate)}/s",
        ]
        if rate and passed > _SETTLED:
            told.append(f"{_duration((report.bytes - report.bytes_done) / rate)} left")
        self._line.show(f"{_bar(share)} {share:.0%}  {' · '.join(told)}" if self._is_terminal else f"{share:.0%}: {', '.join(told)}")

    def indexing(self, done: int, total: int) -> None:
        share = done / total if total else 1.0
        self._line.show(f"{_bar(share)} indexing {share:.0%}" if self._is_terminal else f"indexing {share:.0%}")

    def close(self) -> None:
        """Takes the line away."""
        self._line.close()


def report_json(report: Report, indexed: tuple[int, int], seconds: tuple[float, float]) -> JsonObject:
    """`seconds`: how long storing took, and then the index."""
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
    """Ids of new conversations on stdout, everything else on stderr."""
    told = [one for one in report.brought if one.outcome != "known" or one.problems or len(report.brought) <= _FEW]
    for one in report.brought:
        if one.outcome == "added" and one.conversation is not None and not (output.stdout_terminal and len(report.brought) > 1):
            output.line(one.conversation.id)
    if verbose or len(told) <= _FEW:
        for one in report.brought if verbose else told:
            _say(one, output)
    if len(told) > _FEW:
        _say_by_format(report, output)
        _say_problems(report, output)
    _say_sums(report, output)
    for one in report.failed[:_FAILED]:
        output.say(f"moot: {one.path}: {one.problem}", "yellow")
    if len(report.failed) > _FAILED:
        output.say(f"moot: and {len(report.failed) - _FAILED:,} sources more that could not be read", "yellow")
    if report.unclaimed:
        some = report.strangers if verbose else report.strangers[:_NAMED]
        more = f" and {report.unclaimed - len(some):,} more" if report.unclaimed > len(some) else ""
        output.say(f"moot: {many(report.unclaimed, 'file')} that no format knows: {clean(', '.join(some))}{more}", "dim")
    done, total = indexed
    if done < total:
        output.say(f"moot: the search index is at {done / total:.0%}; it goes on behind the next search, and in moot serve")


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
    """What became of it, in a line."""
    conversation = one.conversation
    id = conversation.id[:13] if conversation is not None else ""
    name = one.title or id or one.source_id
    match one.outcome:
        case "known":
            more = f"; the file has {one.grown:,} events more, which were not added" if one.grown else "; nothing was added"
            return f"{name} is here already, as {id}{more}"
        case "added":
            return f"added {name}; moot chat show {id}"
        case "grown":
            return f"{name} has grown: {_taken(one)}; moot chat show {id}"
        case "empty":
            return f"{name} ({one.path}) holds nothing that was said, so nothing of it is kept"
        case "would be added":
            return f"would add {name}"
        case "would grow":
            return f"would add to {name}: {_taken(one)}"


def _taken(one: Brought) -> str:
    taken = one.taken
    counts = {"new messages": taken.added, "longer": taken.grown, "told anew": taken.rewritten, "records": taken.records}
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
    """What could not be read, and where it stands, of some of the conversations."""
    bad = [one for one in report.brought if one.problems]
    for one in bad[:_FEW]:
        more = f" and {one.problems - 1:,} more" if one.problems > 1 else ""
        output.say(f"moot: {one.path}: {one.notes[0] if one.notes else 'a record could not be read'}{more}", "yellow")
    if len(bad) > _FEW:
        output.say(f"moot: and records of {len(bad) - _FEW:,} conversations more; --verbose tells of each", "yellow")


def _short(counts: Mapping[str, int]) -> str:
    return _counts(counts) or "-"


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(of_things(counts))


def _say_sums(report: Report, output: Output) -> None:
    taken, told = report.taken, report.conversations
    words = [
        f"{told[outcome]:,} {_OUTCOMES.get(outcome, outcome)}"
        for outcome in ("added", "grown", "would be added", "would grow", "known", "empty")
        if told[outcome]
    ]
    sources = [f"{many(report.unchanged, 'source')} as before"] if report.unchanged else []
    sources += [f"{report.older:,} older"] if report.older else []
    if sum(told.values()) + report.unchanged <= 1 and not report.older and not report.failed:
        if not told and not report.unchanged:
            output.say("moot: there was nothing to bring in", "yellow")
        elif report.unchanged:
            output.say("moot: the source stands as it was; nothing was added")
        return
    output.say(f"moot: {'conversations: ' if words else ''}{', '.join([*words, *sources]) or 'nothing to bring in'}")
    if not taken.changed and not report.problems:
        return
    longer = f", {taken.grown:,} longer" if taken.grown else ""
    output.say(f"moot: {many(taken.added + taken.rewritten, 'new message')}{longer}", "dim")
    if report.problems:
        output.say(
            f"moot: {many(report.problems, 'record')} that could not be read, kept as {'it is' if report.problems == 1 else 'they are'}",
            "yellow",
        )
    if report.unpriced:
        output.say(f"moot: {many(report.unpriced, 'answer')} of models without a known price", "dim")


def _bar(share: float) -> str:
    full = round(share * _BAR)
    return "█" * full + "░" * (_BAR - full)


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.2f} GB"


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
