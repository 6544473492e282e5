from __future__ import annotations

from moot.convert.arriving import arrived
from moot.types.format import ImportedRecord


def test_a_record_is_known_again_when_its_lines_end_was_written_later() -> None:
    early, late = arrived(ImportedRecord(b'{"a":1}')), arrived(ImportedRecord(b'{"a":1}\r\n'))
    assert (early.key, early.digest) == (late.key, late.digest)
    assert arrived(ImportedRecord(b'{"a":1}'), 1).key != early.key
    assert arrived(ImportedRecord(b"", problem="line 3 is too long")).key != arrived(ImportedRecord(b"", problem="line 4 is too long")).key
