"""Keeps keys out of what leaves a provider: vendors echo them in errors."""

from __future__ import annotations

import re
from collections.abc import Mapping

from moot.types.event import Raw

_SHORTEST = 8
"""Shorter values (`none`, `ollama`) are no secrets, and hiding them would spoil ordinary words."""

_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)


class Mask:
    """Hides the given secrets, each by as many asterisks as it has bytes, so that nothing around it moves."""

    def __init__(self, api_key: str, headers: Mapping[str, str]) -> None:
        values = [api_key, *(value for name, value in headers.items() if _SECRET_HEADER.search(name))]
        words = [value.strip().removeprefix("Bearer ").strip() for value in values]
        self._secrets = sorted({word.encode() for word in words if len(word) >= _SHORTEST}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """The text without the secrets."""
        return self.raw(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace") if self._secrets else text

    def raw(self, raw: bytes) -> bytes:
        """The bytes without the secrets; the same length."""
        for secret in self._secrets:
            raw = raw.replace(secret, b"*" * len(secret))
        return raw

    def frames(self, frames: tuple[Raw, ...]) -> tuple[Raw, ...]:
        """The frames without the secrets: the one change that is ever made to what a vendor sent."""
        joined = b"".join(frames)
        if any(secret in joined for secret in self._secrets):
            return tuple(map(self.raw, frames))
        return frames
