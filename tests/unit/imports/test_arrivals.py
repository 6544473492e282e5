from __future__ import annotations

from moot.imports.arrivals import encode_arrival
from moot.types.format import ImportedRecord


def test_a_record_is_known_again_when_its_lines_end_was_written_later() -> None:
    early, late = encode_arrival(ImportedRecord(b'{"a":1}')), encode_arrival(ImportedRecord(b'{"a":1}\r\n'))
    assert (early.key, early.digest) == (late.key, late.digest)
    assert encode_arrival(ImportedRecord(b'{"a":1}'), 1).key != early.key
    assert (
        encode_arrival(ImportedRecord(b"", problem="line 3 is too long")).key
        != encode_arrival(ImportedRecord(b"", problem="line 4 is too long")).key
    )
