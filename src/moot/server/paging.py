"""Lists by pages: how much at a time, and where to go on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, TypeAlias, TypeVar

from fastapi import Query

from moot.server.wire.base import ListOut
from moot.types.page import Page

Thing = TypeVar("Thing")
Item = TypeVar("Item")

Limit: TypeAlias = Annotated[int, Query(ge=1, le=200, description="How many at most.")]
"""`limit: Limit = 50`"""

Cursor: TypeAlias = Annotated[str | None, Query(max_length=1000, description="`next_cursor` of the page before.")]
"""`cursor: Cursor = None`"""


def listed(page: Page[Thing], to_wire: Callable[[Thing], Item]) -> ListOut[Item]:
    """A page of the store as it is sent."""
    return ListOut(data=[to_wire(item) for item in page.items], next_cursor=page.next_cursor)
