"""Removal of secrets from texts such as errors, logs and printed configurations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

HIDDEN = "[secret]"
SHORTEST = 6
"""Shorter configured values are not treated as secrets, because masking them everywhere would do more harm than good."""

# patterns start at word boundaries and repeat only single character sets, so that matching takes linear time
_EDGE = r"(?<![A-Za-z0-9_-])"
_SHAPES = (
    r"sk-[A-Za-z0-9_-]{16,}",  # OpenAI, Anthropic (sk-ant-), OpenRouter (sk-or-), DeepSeek, Moonshot
    r"(?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}",  # Stripe
    r"gh[pousr]_[A-Za-z0-9]{20,}",  # GitHub
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"glpat-[A-Za-z0-9_-]{16,}",  # GitLab
    r"(?:AKIA|ASIA)[A-Z0-9]{16}",  # AWS
    r"xox[a-z]-[A-Za-z0-9-]{10,}",  # Slack
    r"xapp-[A-Za-z0-9-]{10,}",
    r"AIza[A-Za-z0-9_-]{30,}",  # Google
    r"ya29\.[A-Za-z0-9_-]{20,}",
    r"hf_[A-Za-z0-9]{20,}",  # Hugging Face
    r"gsk_[A-Za-z0-9]{20,}",  # Groq
    r"x[a-z]i-[A-Za-z0-9_-]{40,}",
    r"tvly-[A-Za-z0-9_-]{16,}",  # Tavily
    r"BSA[A-Za-z0-9_-]{24,}",  # Brave
    r"npm_[A-Za-z0-9]{30,}",
    r"pypi-[A-Za-z0-9_-]{30,}",
    r"dop_v1_[a-f0-9]{40,}",  # DigitalOcean
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",  # SendGrid
    r"[0-9]{8,10}:[A-Za-z0-9_-]{35}",  # Telegram
    r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",  # Discord
    r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*",  # JSON Web Token
)
_KEYS = re.compile(_EDGE + "(?:" + "|".join(_SHAPES) + ")")
_BLOCK = re.compile(r"-----BEGIN [A-Z ]{0,30}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,30}PRIVATE KEY-----|\Z)", re.DOTALL)
_AUTHORIZATION = re.compile(r"\b(bearer|basic|token)(\s{1,4})[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_USERINFO = re.compile(r"(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{1,20}://)[^\s/@]{1,500}@", re.IGNORECASE)
_NAMED = re.compile(
    r"((?:api[_-]?key|secret|token|passw(?:or)?d|credential)s?[\w-]{0,20}[\"']?\s{0,4}[:=]\s{0,4}[\"']?)([^\s\"',;&{}\[\]()<>]{6,})",
    re.IGNORECASE,
)


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without anything that looks like a key, token or password, and without the given secrets."""
    for secret in sorted({secret for secret in secrets if len(secret) >= SHORTEST}, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _BLOCK.sub(HIDDEN, text)
    text = _USERINFO.sub(rf"\1{HIDDEN}@", text)
    text = _AUTHORIZATION.sub(rf"\1\2{HIDDEN}", text)
    text = _KEYS.sub(HIDDEN, text)
    return _NAMED.sub(rf"\1{HIDDEN}", text)


def find_secrets(text: str, secrets: Iterable[str] = ()) -> Iterator[tuple[int, int]]:
    """Yield the positions of secrets that `redact` would remove, unordered and possibly overlapping."""
    for secret in {secret for secret in secrets if len(secret) >= SHORTEST}:
        at = text.find(secret)
        while at >= 0:
            yield at, at + len(secret)
            at = text.find(secret, at + len(secret))
    for shape in (_BLOCK, _KEYS):
        yield from (found.span() for found in shape.finditer(text))
    yield from ((found.end(1), found.end() - 1) for found in _USERINFO.finditer(text))
    yield from ((found.end(2), found.end()) for found in _AUTHORIZATION.finditer(text))


def mask(value: str) -> str:
    """Return the start and end of a secret, so that its owner can recognize it; nothing of a short one."""
    return f"{value[:4]}…{value[-2:]}" if len(value) >= 20 else "…"
