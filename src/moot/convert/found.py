"""Hits as faces give them out, for `--json` and for HTTP; apart from the rest, so that a quick search loads nothing else."""

from __future__ import annotations

from moot.types.canonical import JsonObject
from moot.types.search import Hit, SearchPage

__all__ = ["found_json", "hit_json"]


def hit_json(hit: Hit) -> JsonObject:
    """A hit; in `snippet`, which is from `column`, the matches stand between U+0002 and U+0003."""
    return {
        "id": hit.message,
        "conversation": hit.conversation,
        "title": hit.title,
        "role": hit.role,
        "at": hit.at,
        "snippet": hit.snippet,
        "column": hit.column,
        "seq": hit.seq,
    }


def found_json(page: SearchPage) -> JsonObject:
    """A page of hits, with how far the index goes and what bounds the answer."""
    return {
        "data": [hit_json(hit) for hit in page.hits],
        "next_cursor": page.next_cursor,
        "index": {"done": page.done, "total": page.total},
        "ranked": page.ranked,
        "cut": page.cut,
        "loose": page.loose,
    }
