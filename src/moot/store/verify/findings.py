"""Recording the damages found in one conversation."""

from __future__ import annotations

from dataclasses import dataclass

from moot.types.verify import Damage, DamageKind, Receipt

__all__ = ["Findings"]


@dataclass(frozen=True, slots=True)
class Findings:
    """The receipt, with the conversation whose damages are added."""

    receipt: Receipt
    conversation: str = ""

    def add(self, kind: DamageKind, where: str, expected: str, found: str, seq: int | None = None, run: str | None = None) -> None:
        self.receipt.add(Damage(kind, where, expected, found, self.conversation, seq, run))
