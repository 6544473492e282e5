"""Frames: up to 512 events in compressed columns, so that shared content is stored once. Lossless.

Events with the same run, exchange, kind, phase and key whose fields have the same structure form a group. A group has a template per
field, with a hole wherever the events differ, and a column of values per hole. If the same text occurs in a vendor's raw event and in its
chunks, one column fills the holes of both. A column is text with one value per line, or lengths and bytes, or delta-encoded integers.
Timestamps are delta-encoded. Sequence numbers have no gaps and are not stored. A checksum is stored only if it does not match its event.

A frame is encoded with msgpack as a `_Frame` and compressed with zstd, using a dictionary that is shipped with moot. Dictionaries are
trained on this project's recordings (`benchmarks/dictionary.py`), never on user data, because user data could not be deleted from them.
A dictionary that was released is never removed.
"""

from __future__ import annotations

import re
import sys
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, pairwise, repeat
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
import zstandard

from moot.errors import StoreCorrupt, StoreError
from moot.store.log.rows import Row

Size: TypeAlias = Literal["B", "H", "I", "Q"]

_VALUE = re.compile(rb'("[^"\\]*+(?:\\.[^"\\]*+)*+"?|\d+)', re.DOTALL)
"""A string or a number; an unterminated string extends to the end, so that no input causes backtracking."""
_CANONICAL = re.compile(rb"(?:0|[1-9]\d{0,17})(?:\n(?:0|[1-9]\d{0,17}))*+")
_JOINT = b"\0"
_LONGEST = 1 << 14  # size in bytes above which an event is not compared with others, because its own content outweighs shared content
_MOST = 400  # maximum number of values in an event that are compared one by one
_TEMPLATES = 24  # number of templates tried before an event is parsed for a new one
_SIZES: tuple[tuple[Size, int], ...] = (("B", 1 << 8), ("H", 1 << 16), ("I", 1 << 32), ("Q", 1 << 64))

Fields: TypeAlias = tuple[bytes, bytes | None, bytes | None]
"""An event's chunks, raw data and body."""
Shared: TypeAlias = tuple[int | None, str | None, str, str | None, str | None]
"""The run, exchange, kind, phase and key that the events of a group have in common."""
Values: TypeAlias = Sequence[bytes]


class _Ints(msgspec.Struct, array_like=True):
    first: int
    size: Size
    steps: bytes
    """Zigzag-encoded differences."""
    apart: list[int] | None = None
    """The integers themselves, used if a difference is too large."""


class _Column(msgspec.Struct, array_like=True):
    """The values of one hole in all events of a group."""

    data: bytes | None = None
    """One value per line, or concatenated values with their lengths in `numbers`; None = the numbers are the values."""
    numbers: _Ints | None = None


class _Template(msgspec.Struct, array_like=True):
    """One field of a group's events: the texts around the holes, and the columns that fill them."""

    texts: list[bytes]
    holes: list[int]


class _Packed(msgspec.Struct, array_like=True):
    shared: Shared
    count: int
    columns: list[_Column]
    chunks: _Template
    raw: _Template | None
    body: _Template | None


class _Frame(msgspec.Struct, array_like=True):
    times: _Ints
    order: bytes
    """The group index of each event."""
    groups: list[_Packed]
    checks: dict[int, bytes]
    """Checksums that don't match their event, by position."""


_DECODER = msgspec.msgpack.Decoder(_Frame)


def pack(rows: Sequence[Row], *, is_new: bool = False, longest: int = _LONGEST) -> bytes:
    """Encode consecutive rows as one frame. New rows have no checks: those of their events are stored nowhere, because they match.

    Events of more than `longest` bytes are not compared with others.
    """
    groups, order = _grouped(rows, longest)
    checks = {} if is_new else {place: row.check for place, row in enumerate(rows) if not row.is_sound()}
    return msgspec.msgpack.encode(_Frame(_ints([row.at for row in rows]), _order(order), [group.packed() for group in groups], checks))


def unpack(data: bytes, base: int, first: int) -> list[tuple[Any, ...]]:
    """Decode the rows. Their ids start with `base`, which identifies the conversation. A checksum that matches is returned as None."""
    frame = _DECODER.decode(data)
    ats = _read_ints(frame.times)
    groups = [_reader(group) for group in frame.groups]
    ids = range(base | first, (base | first) + len(ats))
    rows: list[tuple[Any, ...]] = [
        (id, at, *groups[group]()) for id, at, group in zip(ids, ats, _read_order(frame.order, len(ats)), strict=True)
    ]
    for place, check in frame.checks.items():
        rows[place] = (*rows[place][:10], check)
    return rows


class _Group:
    """Events that are equal except for the holes."""

    def __init__(self, shared: Shared, fields: Fields, constants: Sequence[bytes] = ()) -> None:
        self._shared = shared
        self._fields = fields
        """The fields of one event of the group."""
        self._constants = constants
        """The texts around the holes of the joined fields; empty if the group has a single event."""
        self._rows: list[list[bytes]] = []

    def takes(self, joined: bytes) -> bool:
        """Add the event if it fits the template; return True if it does."""
        first, *between, last = self._constants
        end = len(joined) - len(last)
        if end < (at := len(first)) or not joined.startswith(first) or not joined.endswith(last):
            return False
        values: list[bytes] = []
        for constant in between:
            if (found := joined.find(constant, at, end)) < 0:
                return False
            values.append(joined[at:found])
            at = found + len(constant)
        values.append(joined[at:end])
        self._rows.append(values)
        return True

    def packed(self) -> _Packed:
        if not self._constants:
            plain = [None if field is None else _Template([field], []) for field in self._fields]
            return _packed(self._shared, 1, [], plain)
        columns: dict[Values, int] = {}
        of_holes = [columns.setdefault(column, len(columns)) for column in zip(*self._rows, strict=True)]
        templates = [_Template([], [])]
        for place, constant in enumerate(self._constants):
            begin, *others = constant.split(_JOINT)
            templates[-1].texts.append(begin)
            templates += [_Template([other], []) for other in others]
            templates[-1].holes.extend(of_holes[place : place + 1])
        there = [None if field is None else template for field, template in zip(self._fields, templates, strict=True)]
        return _packed(self._shared, len(self._rows), [_column(column) for column in columns], there)


def _packed(shared: Shared, count: int, columns: list[_Column], templates: Sequence[_Template | None]) -> _Packed:
    chunks, raw, body = templates
    assert chunks is not None
    return _Packed(shared, count, columns, chunks, raw, body)


class _Alike:
    """Events with the same shared values, and the templates found for them."""

    def __init__(self, shared: Shared) -> None:
        self._shared = shared
        self._templates: list[tuple[int, _Group]] = []
        """Groups with their indexes, the most recently matched one first."""
        self._first: dict[Values, tuple[list[bytes], set[int]]] = {}
        """For each structure: the values of its first event, and the positions at which later events differed."""

    def fitting(self, joined: bytes) -> int | None:
        """Add the event to the first group that it fits and return the group's index."""
        for place, (number, group) in enumerate(self._templates):
            if group.takes(joined):
                if place:
                    self._templates.insert(0, self._templates.pop(place))
                return number
        return None

    def learn(self, number: int, fields: Fields) -> _Group | None:
        """Return a new group for the event, or None if no earlier event has the same structure."""
        pieces = [_VALUE.split(field or b"") for field in fields]
        values = [value for each in pieces for value in each[1::2]]
        if len(values) > _MOST or any(value[:1] == b'"' and (len(value) < 2 or value[-1:] != b'"') for value in values):
            return None
        shape = (*(piece for each in pieces for piece in (*each[::2], _JOINT)),)
        known = self._first.get(shape)
        if known is None:
            self._first[shape] = (values, set())
            return None
        known[1].update(place for place, (one, other) in enumerate(zip(known[0], values, strict=True)) if one != other)
        if not known[1]:
            return None
        group = _Group(self._shared, fields, _constants(pieces, known[1]))
        del self._templates[_TEMPLATES - 1 :]
        self._templates.insert(0, (number, group))
        return group


def _constants(pieces: Sequence[Sequence[bytes]], holes: set[int]) -> list[bytes]:
    constants, at = [b""], 0
    for number, field in enumerate(pieces):
        constants[-1] += _JOINT if number else b""
        for place, piece in enumerate(field):
            if place % 2 == 0 or at not in holes:
                constants[-1] += piece
            else:
                quote = b'"' if piece[:1] == b'"' else b""
                constants[-1] += quote
                constants.append(quote)
            at += place % 2
    return constants


def _grouped(rows: Sequence[Row], longest: int) -> tuple[list[_Group], list[int]]:
    groups: list[_Group] = []
    order: list[int] = []
    alike: dict[tuple[object, ...], _Alike] = {}
    for _, _, run, exchange, kind, chunks, raw, phase, key, body, _ in rows:
        shared, fields = (run, exchange, kind, phase, key), (chunks, raw, body)
        known = alike.get((shared, raw is None, body is None)) or alike.setdefault((shared, raw is None, body is None), _Alike(shared))
        joined = _JOINT.join((chunks, raw or b"", body or b""))
        simple = len(joined) <= longest and joined.count(_JOINT) == 2
        number = known.fitting(joined) if simple else None
        if number is None:
            number = len(groups)
            group = known.learn(number, fields) if simple else None
            groups.append(group if group is not None and group.takes(joined) else _Group(shared, fields))
        order.append(number)
    return groups, order


def _reader(group: _Packed) -> Callable[[], tuple[Any, ...]]:
    """Return a function that returns the next event of the group, without id and time."""
    if not group.columns:  # one event, or several identical ones
        fields = [template and template.texts[0] for template in (group.chunks, group.raw, group.body)]
        run, exchange, kind, phase, key = group.shared
        return repeat((run, exchange, kind, fields[0], fields[1], phase, key, fields[2], None)).__next__
    run, exchange, kind, phase, key = map(repeat, group.shared)
    columns = [_read_column(column) for column in group.columns]
    chunks, raw, body = (_filled(template, columns, group.count) for template in (group.chunks, group.raw, group.body))
    return zip(run, exchange, kind, chunks, raw, phase, key, body, repeat(None), strict=False).__next__


def _filled(template: _Template | None, columns: Sequence[Values], count: int) -> Iterable[bytes | None]:
    if template is None or not template.holes:
        return repeat(template and template.texts[0], count)
    if len(template.holes) == 1:  # faster than formatting
        before, after = template.texts
        return [before + value + after for value in columns[template.holes[0]]]
    whole = b"%b".join([text.replace(b"%", b"%%") for text in template.texts])
    return map(whole.__mod__, zip(*[columns[place] for place in template.holes], strict=True))


def _column(values: Values) -> _Column:
    joined = b"\n".join(values)
    if joined.count(b"\n") != len(values) - 1:
        return _Column(b"".join(values), _ints([len(value) for value in values]))
    if _CANONICAL.fullmatch(joined):
        return _Column(None, _ints([int(value) for value in values]))
    return _Column(joined)


def _read_column(column: _Column) -> list[bytes]:
    data, numbers = column.data, column.numbers
    if numbers is None:
        return (data or b"").split(b"\n")
    values = _read_ints(numbers)
    if data is None:
        return [b"%d" % number for number in values]
    ends = list(accumulate(values, initial=0))
    return [data[begin:end] for begin, end in pairwise(ends)]


def _ints(values: Sequence[int]) -> _Ints:
    steps = [(step << 1) ^ (step >> 127) for step in map(int.__sub__, values[1:], values)]
    highest = max(steps, default=0)
    for size, end in _SIZES:
        if highest < end:
            return _Ints(values[0], size, _little(array(size, steps)).tobytes())
    return _Ints(0, "B", b"", list(values))


def _read_ints(packed: _Ints) -> list[int]:
    if packed.apart is not None:
        return packed.apart
    steps = _little(array(packed.size, packed.steps))
    return list(accumulate([(step >> 1) ^ -(step & 1) for step in steps], initial=packed.first))


def _order(numbers: Sequence[int]) -> bytes:
    return bytes(numbers) if max(numbers, default=0) < 256 else _little(array("H", numbers)).tobytes()


def _read_order(data: bytes, count: int) -> Iterator[int]:
    return iter(data) if len(data) == count else iter(_little(array("H", data)))


def _little(numbers: array[int]) -> array[int]:
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers


_FOLDER = Path(__file__).parents[1] / "dictionaries"
_LEVEL = 9
_FIX = "Restore the newest backup."
_LARGEST = 1 << 31  # maximum decompressed size of a frame in bytes; moot writes frames of at most 1 MiB, or one event


class Columns:
    """Codec for columnar frames (`frames.py`) with zstd compression."""

    def __init__(self, dictionary: str | None, level: int = _LEVEL, longest: int = _LONGEST) -> None:
        self._level = level
        self._longest = longest
        self.dictionary = dictionary
        """The dictionary for new frames."""

    def pack(self, rows: Sequence[Row], *, is_new: bool = False) -> bytes:
        """Encode consecutive rows as a frame (see `frames.pack`)."""
        words = None if self.dictionary is None else _dictionary(self.dictionary)
        return zstandard.ZstdCompressor(level=self._level, dict_data=words, write_dict_id=False).compress(
            pack(rows, is_new=is_new, longest=self._longest)
        )

    def unpack(self, data: bytes, dictionary: str | None, base: int, first: int) -> list[tuple[Any, ...]]:
        """Decode a frame (see `frames.unpack`). Raise StoreError if the dictionary is unknown, StoreCorrupt if the data is damaged."""
        words = None if dictionary is None else _dictionary(dictionary)
        try:
            if zstandard.frame_content_size(data) > _LARGEST:
                raise StoreCorrupt("A frame of a segment declares an invalid size.", fix=_FIX)
            return unpack(zstandard.ZstdDecompressor(dict_data=words).decompress(data), base, first)
        except (zstandard.ZstdError, msgspec.MsgspecError, ValueError, StopIteration, LookupError) as error:
            raise StoreCorrupt(f"Cannot unpack a frame of a segment: {error}.", fix=_FIX) from error


COLUMNS = Columns("events-1")
FAST = Columns(None, 3, 2048)
"""For large frames: it needs a tenth of the time, and the frames become 6 % larger."""


@cache
def _dictionary(name: str) -> zstandard.ZstdCompressionDict:
    path = _FOLDER / f"{name}.zstd"
    if path.parent != _FOLDER or not path.is_file():
        raise StoreError(f"The compression dictionary {name!r} is unknown.", fix="Upgrade moot.")
    words = zstandard.ZstdCompressionDict(path.read_bytes())
    words.precompute_compress(level=_LEVEL)  # pyright: ignore[reportUnknownMemberType]  once, not for each frame
    return words
