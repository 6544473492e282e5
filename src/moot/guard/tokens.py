"""Creation and hashing of the secrets that give access to a server."""

from __future__ import annotations

import secrets
from hashlib import sha256

CODE_SECONDS = 60
"""Lifetime of a sign-in code in seconds."""


def digest(secret: str) -> bytes:
    """Return the hash of a secret. A slow hash is unnecessary, because moot's secrets are random and long."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def new_secret() -> str:
    """Return a secret of 256 random bits, with a prefix that is recognizable in logs and repositories."""
    return f"moot_{secrets.token_urlsafe(32)}"


def new_code() -> str:
    """Return a code of 192 random bits for signing in with a browser."""
    return secrets.token_urlsafe(24)
