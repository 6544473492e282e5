"""Keywords that the index adds to a message: lower case, without punctuation, whatever their values contain. Pure."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

__all__ = ["conversation_fact", "cost_fact", "owner_fact"]


@lru_cache(256)
def owner_fact(owner: str) -> str:
    """Return the keyword of an owner, for any owner id."""
    return f"owner{blake2b(owner.encode(), digest_size=8).hexdigest()}"


def conversation_fact(no: int) -> str:
    return f"conversation{no}"


def cost_fact(cost: int) -> str:
    """Return the keyword of a cost range; each range is twice as large as the previous."""
    return f"cost{min(max(cost, 0).bit_length(), 63)}"
