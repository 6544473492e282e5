"""What all models of the wire have in common."""

from __future__ import annotations

import os
from typing import Generic, TypeVar

from pydantic import BaseModel, ConfigDict

Item = TypeVar("Item")


class Out(BaseModel):
    """Something that we send."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class In(BaseModel):
    """Something that we are sent: a key that nobody knows is a mistake, and said to be one."""

    model_config = ConfigDict(extra="forbid", frozen=True, use_attribute_docstrings=True)


class ListOut(Out, Generic[Item]):
    """A page of a list."""

    data: list[Item]
    next_cursor: str | None = None
    """Send it as `cursor` to get what follows; null at the end."""


def shown_path(path: str) -> str:
    """A path as JSON can hold it: what of it is no UTF-8 becomes U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")
