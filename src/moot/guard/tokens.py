"""Secrets for access to a server, and their hashes."""

from __future__ import annotations

import secrets
from hashlib import sha256

CODE_SECONDS = 60
"""Lifetime of a sign-in code."""


def digest(secret: str) -> bytes:
    """Return the hash of a secret. Our secrets are random and long, so a slow hash is unnecessary."""
    return sha256(secret.encode("utf-8", "surrogatepass")).digest()


def new_secret() -> str:
    """Return 256 random bits with a prefix that is recognizable in logs and repositories."""
    return f"moot_{secrets.token_urlsafe(32)}"


def new_code() -> str:
    """Return 192 random bits for signing in with a browser."""
    return secrets.token_urlsafe(24)
