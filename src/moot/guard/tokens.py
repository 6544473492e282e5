"""Secrets that let somebody in: how they are made, and what they are known by."""

from __future__ import annotations

import secrets
from hashlib import sha256

__all__ = ["CODE_SECONDS", "digest", "new_code", "new_secret"]

CODE_SECONDS = 60
"""How long a code for signing in holds."""


def digest(secret: str) -> bytes:
    """What a secret is known by. Ours are random and long: a slow hash would add nothing."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def new_secret() -> str:
    """256 random bits, recognisable in a log or a repository."""
    return f"moot_{secrets.token_urlsafe(32)}"


def new_code() -> str:
    """192 random bits, for a browser to sign in with."""
    return secrets.token_urlsafe(24)
