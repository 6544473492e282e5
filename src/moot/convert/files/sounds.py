"""Formats of recordings, recognized by their first bytes."""

from __future__ import annotations

from typing import NamedTuple

SOUND_BYTES = 25_000_000
"""Maximum size of a recording to transcribe, in bytes. Vendors accept no more."""

FORMATS = "mp3, wav, ogg, flac, m4a, webm"
"""The supported formats, as they are named in errors."""


class SoundType(NamedTuple):
    """A format of recordings."""

    media_type: str
    ending: str
    """The file extension that vendors expect."""


_SOUNDS = (
    (0, b"ID3", SoundType("audio/mpeg", "mp3")),
    (0, b"\xff\xfb", SoundType("audio/mpeg", "mp3")),
    (0, b"\xff\xf3", SoundType("audio/mpeg", "mp3")),
    (0, b"\xff\xf2", SoundType("audio/mpeg", "mp3")),
    (8, b"WAVE", SoundType("audio/wav", "wav")),
    (0, b"OggS", SoundType("audio/ogg", "ogg")),
    (0, b"fLaC", SoundType("audio/flac", "flac")),
    (4, b"ftyp", SoundType("audio/mp4", "m4a")),
    (0, b"\x1aE\xdf\xa3", SoundType("audio/webm", "webm")),
)
"""The offset and the bytes that identify each format."""

_CONTAINERS = {"m4a": (b"ftypM4A", b"ftypM4B"), "webm": (b"webm",)}
"""Formats that can also contain video, with the bytes of which one must be near the beginning."""


def sound_type(data: bytes) -> SoundType | None:
    """Return the format of a recording, or None for other data. Videos in MP4 and WebM count as recordings."""
    return next((kind for at, magic, kind in _SOUNDS if data[at : at + len(magic)] == magic), None)


def attached_sound(data: bytes, name: str) -> SoundType | None:
    """Return the format of a file that is attached as a recording, or None. A container must be named or marked as sound."""
    kind = sound_type(data)
    if kind is None or kind.ending not in _CONTAINERS or name.lower().endswith(f".{kind.ending}"):
        return kind
    return kind if any(mark in data[:64] for mark in _CONTAINERS[kind.ending]) else None
