"""What takes how much, in bytes."""

from __future__ import annotations

from moot.server.wire.base import Out


class ExtentOut(Out):
    """Events that lie together in one form."""

    events: int
    bytes: int
    """Of what they say."""
    stored_bytes: int


class RowsOut(ExtentOut):
    """Those that are rows; what they take is about."""

    raw_bytes: int


class SegmentsOut(ExtentOut):
    """Those that are sealed."""

    count: int
    frames: int


class FilesOut(Out):
    """Contents by their hash."""

    bytes: int
    inside_bytes: int
    """Of them in the database."""


class ConversationSizeOut(Out):
    """The log of one conversation."""

    id: str
    title: str
    rows: ExtentOut
    segments: ExtentOut


class SizesOut(Out):
    """All of the store."""

    database_bytes: int
    free_bytes: int
    """Pages of it that nothing lies in."""
    gives_back: bool
    """Whether the file can become smaller without being written anew."""
    rows: RowsOut
    segments: SegmentsOut
    messages_bytes: int
    index_bytes: int
    requests_bytes: int
    blobs: FilesOut
    largest: list[ConversationSizeOut]
