"""Reports of what was removed from shared conversations: kinds, counts and places, never the data itself."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from moot.cli.output import Output
from moot.cli.things import format_counts
from moot.guard.sharing import Kind
from moot.runtime.sharing import LeftOut
from moot.types.canonical import Json

__all__ = ["left_out_json", "say_left_out", "total_by_kind"]

_PLACES = 12


def left_out_json(left_out: Iterable[LeftOut]) -> Json:
    """Return the report for scripts."""
    return [{"kind": one.kind, "where": one.where, "count": one.count} for one in left_out]


def total_by_kind(left_out: Iterable[LeftOut]) -> Sequence[LeftOut]:
    """Sum up the reports of many conversations by kind."""
    counts = Counter[Kind]()
    for one in left_out:
        counts[one.kind] += one.count
    return [LeftOut(kind, "all", count) for kind, count in counts.items()]


def say_left_out(left_out: Sequence[LeftOut], output: Output) -> None:
    """Print a line for each kind with the first places."""
    kinds = dict.fromkeys(one.kind for one in left_out)
    for kind in kinds:
        of_kind = [one for one in left_out if one.kind == kind]
        places = [f"{one.where}{f' ({one.count})' if one.count > 1 else ''}" for one in of_kind if one.where != "all"]
        more = f", and {len(places) - _PLACES} more places" if len(places) > _PLACES else ""
        word = "re-encoded" if kind == "pictures" else "removed"
        where = f": {'; '.join(places[:_PLACES])}{more}" if places else ""
        output.say(f"  {word}: {', '.join(format_counts({kind: sum(one.count for one in of_kind)}))}{where}", "yellow")
    if any(one.kind == "pictures" for one in left_out):
        output.say("  pictures were re-encoded without metadata; check what they show", "dim")
