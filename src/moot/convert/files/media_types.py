"""Types of images and recordings, recognized by their first bytes without decoding them."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple


class Head(NamedTuple):
    media_type: str
    width: int
    height: int


_FRAMES = frozenset({*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC})
"""JPEG markers of a frame header, which contains the dimensions (ITU T.81, table B.1)."""


def head_of(data: bytes) -> Head | None:
    """Return the image's media type and dimensions, or None if it is not PNG, JPEG, GIF or WebP, or is truncated before the dimensions."""
    for magic, read in _READERS.items():
        if data.startswith(magic):
            try:
                return read(data)
            except (struct.error, IndexError):
                return None
    return None


def _webp(data: bytes) -> Head | None:
    if data[8:12] != b"WEBP":
        return None
    match data[12:16]:
        case b"VP8X":
            return Head("image/webp", 1 + int.from_bytes(data[24:27], "little"), 1 + int.from_bytes(data[27:30], "little"))
        case b"VP8L":
            bits = struct.unpack_from("<I", data, 21)[0]
            return Head("image/webp", 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF))
        case b"VP8 ":
            width, height = struct.unpack_from("<HH", data, 26)
            return Head("image/webp", width & 0x3FFF, height & 0x3FFF)
        case _:
            return None


def _jpeg(data: bytes) -> Head | None:
    at = 2
    while data[at] == 0xFF:
        marker = data[at + 1]
        if marker == 0xFF:  # fill
            at += 1
        elif marker in _FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 5)
            return Head("image/jpeg", width, height)
        else:
            at += 2 + struct.unpack_from(">H", data, at + 2)[0]
    return None


_READERS: dict[bytes, Callable[[bytes], Head | None]] = {
    b"\x89PNG\r\n\x1a\n": lambda data: Head("image/png", *struct.unpack_from(">II", data, 16)),
    b"\xff\xd8": _jpeg,
    b"GIF8": lambda data: Head("image/gif", *struct.unpack_from("<HH", data, 6)),
    b"RIFF": _webp,
}


SOUND_BYTES = 25_000_000
"""Maximum size of a recording to transcribe, in bytes. Vendors accept no more."""

SOUND_FORMATS = "mp3, wav, ogg, flac, m4a, webm"
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
