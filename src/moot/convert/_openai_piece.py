"""The one event that nearly all of a stream consists of, read at half the price of reading it whole."""

from __future__ import annotations

import msgspec

__all__ = ["NotOnePiece", "text_piece"]

NotOnePiece = (msgspec.MsgspecError, ValueError, RecursionError)
"""What `text_piece` raises for an event that is or says anything else."""


class _Delta(msgspec.Struct, forbid_unknown_fields=True):
    content: str
    role: str | None = None
    refusal: None = None


class _Choice(msgspec.Struct):
    delta: _Delta
    index: int = 0
    finish_reason: None = None
    usage: None = None


class _Piece(msgspec.Struct):
    """One more piece of text and nothing else; an event that says more does not decode. Half the price of reading it whole."""

    choices: list[_Choice]
    usage: None = None
    error: None = None


text_piece = msgspec.json.Decoder(_Piece).decode
