"""Removal of API keys from provider output, because vendors repeat them in errors."""

from __future__ import annotations

import re
from collections.abc import Mapping

from moot.types.event import Raw

_SHORTEST = 8
"""Shorter values (`none`, `ollama`) are not secrets, and masking them would damage ordinary words."""

_SECRET_HEADER = re.compile(r"auth|key|token|secret|cookie", re.IGNORECASE)


class Mask:
    """Mask for secrets. They become asterisks of the same length, so that offsets stay valid."""

    def __init__(self, api_key: str, headers: Mapping[str, str]) -> None:
        values = [api_key, *(value for name, value in headers.items() if _SECRET_HEADER.search(name))]
        words = [value.strip().removeprefix("Bearer ").strip() for value in values]
        self._secrets = sorted({word.encode() for word in words if len(word) >= _SHORTEST}, key=len, reverse=True)

    def text(self, text: str) -> str:
        """Return the text with secrets masked."""
        return self.raw(text.encode("utf-8", "surrogatepass")).decode("utf-8", "replace") if self._secrets else text

    def raw(self, raw: bytes) -> bytes:
        """Return the bytes with secrets masked. The length stays the same."""
        for secret in self._secrets:
            raw = raw.replace(secret, b"*" * len(secret))
        return raw

    def frames(self, frames: tuple[Raw, ...]) -> tuple[Raw, ...]:
        """Return the frames with secrets masked. This is the only change ever made to a vendor's data."""
        joined = b"".join(frames)
        if any(secret in joined for secret in self._secrets):
            return tuple(map(self.raw, frames))
        return frames
