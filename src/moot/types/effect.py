"""The kinds of effects a call may have, on which modes decide."""

from __future__ import annotations

from typing import Literal, TypeAlias

Effect: TypeAlias = Literal["read", "write", "execute", "network"]

EFFECTS: dict[str, Effect] = {"read": "read", "write": "write", "execute": "execute", "network": "network"}
