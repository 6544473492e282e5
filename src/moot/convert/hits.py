"""Search hits as JSON, in the form that all interfaces return. This is a separate module, so that a search needs few imports."""

from __future__ import annotations

from moot.types.canonical import JsonObject
from moot.types.search import Hit, SearchPage


def hit_json(hit: Hit) -> JsonObject:
    """Return a hit as JSON. `snippet` starts at `column`. Matches in the snippet are enclosed in U+0002 and U+0003."""
    return {
        "id": hit.message,
        "conversation": hit.conversation,
        "title": hit.title,
        "role": hit.role,
        "at": hit.at,
        "snippet": hit.snippet,
        "column": hit.column,
        "seq": hit.seq,
        "context": hit.context,
    }


def found_json(page: SearchPage) -> JsonObject:
    """Return a page of hits as JSON, with the progress of the index and notes about how the search was limited."""
    return {
        "data": [hit_json(hit) for hit in page.hits],
        "next_cursor": page.next_cursor,
        "index": {"done": page.done, "total": page.total},
        "ranked": page.ranked,
        "cut": page.cut,
        "loose": page.loose,
        "stopped_at": page.stopped_at,
    }
