"""Contents of exported recordings."""

from __future__ import annotations

import pytest

from moot.features import exports


def test_names_of_blobs_are_found_across_the_pieces_of_a_long_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "_PIECE", 100)
    name = "0123456789abcdef" * 4
    for before in range(210):
        assert exports._hashes([{"url": f"{'x' * before}{name}"}, [name]]) == [name], before
    assert exports._hashes([f"{name}0", "no name"]) == []
