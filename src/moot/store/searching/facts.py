"""Words that the index holds of a message besides its own: of one letter case and no signs, whatever is in their values. Pure."""

from __future__ import annotations

from functools import lru_cache
from hashlib import blake2b

__all__ = ["conversation_fact", "cost_fact", "owner_fact"]


@lru_cache(256)
def owner_fact(owner: str) -> str:
    """The fact of all that is this owner's; whatever the id is made of."""
    return f"owner{blake2b(owner.encode(), digest_size=8).hexdigest()}"


def conversation_fact(no: int) -> str:
    return f"conversation{no}"


def cost_fact(cost: int) -> str:
    """The fact of what costs about as much: each is twice the one before."""
    return f"cost{min(max(cost, 0).bit_length(), 63)}"
