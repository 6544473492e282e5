"""Complete a recording before it is imported: seqs without gaps, chunks for raw events, parts for messages, and an end for each run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from moot.convert.exchanges import close_open, rebuild, settle_calls, totals, translator_of
from moot.convert.fold import Folder
from moot.convert.imports import is_growth
from moot.types import chunk
from moot.types.event import Event
from moot.types.exchange import Exchange
from moot.types.imports import Recording
from moot.types.message import Message
from moot.types.run import TERMINAL, Run

UNFINISHED = "the recording ends before the run did"


def complete_recording(recording: Recording) -> Recording:
    """Return the recording, ready to be imported. Existing fields are kept; raw events without chunks are translated."""
    exchanges = {exchange.id: exchange for exchange in recording.exchanges}
    events = _translated(recording.events, exchanges)
    with_end = {event.run for event in events if event.key == "run" and event.phase == "end"}
    unended = [run for run in recording.runs if run.id not in with_end]
    events = _with_ends(events, unended, exchanges)
    places = {event.seq: at for at, event in enumerate(events, 1)}
    numbered = tuple(event._replace(seq=at) for at, event in enumerate(events, 1))
    spans = _spans(numbered)
    runs = tuple(_run(_cut(run, numbered) if run in unended else run, spans, numbered) for run in recording.runs)
    by_run = {run.id: run for run in runs}
    ends = {
        str(event.body.get("id")): event.seq
        for event in numbered
        if event.kind == "message" and isinstance(event.body, dict) and is_growth(event.body)
    }
    messages = tuple(_message(message, places, ends, by_run, numbered, exchanges) for message in recording.messages)
    present = {event.exchange for event in numbered}
    ended = {event.exchange for event in numbered if event.kind == "exchange" and event.phase == "end"}
    kept = tuple(one if one.id in ended else replace(one, ended=None) for one in recording.exchanges if one.id in present)
    return replace(recording, events=numbered, runs=runs, messages=messages, exchanges=kept)


def _cut(run: Run, events: Sequence[Event]) -> Run:
    """Return the run with the status `cancelled` and the totals of its events."""
    usage, cost, _ = totals(event for event in events if event.run == run.id)
    return replace(run, status="cancelled", error=None, usage=usage, cost=cost)


def _translated(events: Sequence[Event], exchanges: dict[str, Exchange]) -> list[Event]:
    """Return the events, with chunks added to raw events if their exchange has none. The installed version of a converter is used."""
    made = list(events)
    raws: dict[str, list[int]] = defaultdict(list)
    for at, event in enumerate(events):
        if event.kind == "raw" and event.raw is not None and event.exchange in exchanges:
            raws[event.exchange].append(at)
    for id, exchange in exchanges.items():
        translator = translator_of(exchange.converter)
        if translator is None or any(events[at].chunks for at in raws[id]):
            continue
        rebuilt = rebuild(translator, exchange.options, [events[at] for at in raws[id]], exchange.ended or "cut")
        for at, chunks in zip(raws[id], rebuilt.chunks, strict=True):
            made[at] = made[at]._replace(chunks=chunks)
        if exchange.converter != f"{translator.name}/{translator.version}":
            for at, event in enumerate(made):
                if event.kind == "exchange" and event.phase == "end" and event.exchange == id:
                    marks = (piece for piece in event.chunks if piece["type"] == "data-attempt")
                    made[at] = event._replace(chunks=(*rebuilt.closing, *marks))
    return made


def _with_ends(events: list[Event], unended: Sequence[Run], exchanges: dict[str, Exchange]) -> list[Event]:
    for run in unended:
        own = [event for event in events if event.run == run.id]
        if not own:
            continue
        parts = _folded(own, exchanges).parts()
        chunks = (*close_open(parts), *settle_calls(parts, UNFINISHED), chunk.abort(UNFINISHED))
        last = own[-1]
        end = Event("chunks", chunks, None, run.id, None, "end", "run", {"status": "cancelled", "finish_reason": "other"}, last.at)
        events.insert(events.index(last) + 1, end)
    return events


def _folded(events: Sequence[Event], exchanges: dict[str, Exchange]) -> Folder:
    folder = Folder()
    for event in events:
        exchange = exchanges.get(event.exchange) if event.exchange is not None else None
        if exchange is None or exchange.purpose == "answer":
            folder.feed_all(event.chunks)
    return folder


def _spans(events: Sequence[Event]) -> dict[str, tuple[int, int]]:
    """Return the seqs of the first and last event of each run, keyed by run id."""
    spans: dict[str, tuple[int, int]] = {}
    for event in events:
        if event.run is not None:
            spans[event.run] = (spans.get(event.run, (event.seq, 0))[0], event.seq)
    return spans


def _run(run: Run, spans: dict[str, tuple[int, int]], events: Sequence[Event]) -> Run:
    first, last = spans.get(run.id, (1, 0))
    over = run if run.status in TERMINAL else replace(run, status="cancelled")
    if last and isinstance(body := events[last - 1].body, dict) and isinstance(status := body.get("status"), str) and status in TERMINAL:
        over = replace(over, status=status)  # the log takes precedence over the run's record
    ended = over.ended_at or (events[last - 1].at // 1000 if last else run.created_at)
    return replace(
        over,
        first_seq=first,
        last_seq=last,
        result_seq=last or None,
        ended_at=ended,
        started_at=run.started_at or run.created_at,
        owner=None,
    )


def _message(
    message: Message,
    places: dict[int, int],
    ends: dict[str, int],
    runs: dict[str, Run],
    events: Sequence[Event],
    exchanges: dict[str, Exchange],
) -> Message:
    run = runs.get(message.run) if message.run is not None else None
    if run is None:
        place = places.get(message.first_seq, 0)
        last = max(place, ends.get(message.id, 0))
        return replace(message, run=None, first_seq=place, last_seq=last, folded_through=last)
    own = [event for event in events[run.first_seq - 1 : run.last_seq] if event.run == run.id]
    folder = _folded(own, exchanges)
    assert run.status in ("finished", "failed", "cancelled")
    return replace(
        message,
        parts=folder.parts(),
        metadata=folder.metadata(),
        status=run.status,
        first_seq=run.first_seq,
        last_seq=run.last_seq,
        folded_through=run.last_seq,
    )
