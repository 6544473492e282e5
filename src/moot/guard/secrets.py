"""Removal of secrets from texts such as errors, logs and printed configurations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

HIDDEN = "[secret]"
SHORTEST = 6
"""Shorter configured values are not treated as secrets, because masking them everywhere would do more harm than good."""


class Shape(NamedTuple):
    """A form of keys and tokens that can be recognized anywhere."""

    kind: str
    anchors: tuple[str, ...]
    """Every match begins with one of these texts (see also `before`), so that a search for them finds all candidates."""
    pattern: str
    """A regular expression that repeats only single character sets, so that matching takes linear time."""
    before: int = 0
    """Maximum number of characters before the anchor, if a match does not begin with it."""


SHAPES: tuple[Shape, ...] = (
    Shape("Anthropic key", ("sk-ant-",), r"sk-ant-[A-Za-z0-9_-]{16,}"),
    Shape("OpenRouter key", ("sk-or-",), r"sk-or-[A-Za-z0-9_-]{16,}"),
    Shape("API key", ("sk-",), r"sk-[A-Za-z0-9_-]{16,}"),  # OpenAI, DeepSeek, Moonshot and others
    Shape("Stripe key", ("sk_", "rk_", "pk_", "whsec_"), r"(?:sk|rk|pk|whsec)_(?:live_|test_)?[A-Za-z0-9]{16,}"),
    Shape("GitHub token", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), r"gh[pousr]_[A-Za-z0-9]{20,}"),
    Shape("GitHub token", ("github_pat_",), r"github_pat_[A-Za-z0-9_]{20,}"),
    Shape("GitLab token", ("glpat-", "gldt-", "glrt-", "glptt-"), r"gl(?:pat|dt|rt|ptt)-[A-Za-z0-9_-]{16,}"),
    Shape("AWS access key", ("AKIA", "ASIA"), r"(?:AKIA|ASIA)[A-Z0-9]{16}"),
    Shape("Slack token", ("xoxa-", "xoxb-", "xoxc-", "xoxd-", "xoxe-", "xoxp-", "xoxr-", "xoxs-"), r"xox[a-z]-[A-Za-z0-9-]{10,}"),
    Shape("Slack token", ("xapp-",), r"xapp-[A-Za-z0-9-]{10,}"),
    Shape("Slack webhook", ("hooks.slack.com/",), r"hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9_/-]{20,}"),
    Shape("Discord webhook", ("discord.com/api/",), r"discord\.com/api/webhooks/[0-9]{17,20}/[A-Za-z0-9_-]{50,}"),
    Shape("Google key", ("AIza",), r"AIza[A-Za-z0-9_-]{30,}"),
    Shape("Google token", ("ya29.",), r"ya29\.[A-Za-z0-9_-]{20,}"),
    Shape("Google token", ("GOCSPX-",), r"GOCSPX-[A-Za-z0-9_-]{20,}"),
    Shape("Hugging Face token", ("hf_",), r"hf_[A-Za-z0-9]{20,}"),
    Shape("Groq key", ("gsk_",), r"gsk_[A-Za-z0-9]{20,}"),
    Shape("xAI key", ("xai-",), r"x[a-z]i-[A-Za-z0-9_-]{40,}"),
    Shape("Perplexity key", ("pplx-",), r"pplx-[A-Za-z0-9]{32,}"),
    Shape("Replicate token", ("r8_",), r"r8_[A-Za-z0-9]{30,}"),
    Shape("Tavily key", ("tvly-",), r"tvly-[A-Za-z0-9_-]{16,}"),
    Shape("Brave key", ("BSA",), r"BSA[A-Za-z0-9_-]{24,}"),
    Shape("npm token", ("npm_",), r"npm_[A-Za-z0-9]{30,}"),
    Shape("PyPI token", ("pypi-",), r"pypi-[A-Za-z0-9_-]{30,}"),
    Shape("Docker token", ("dckr_pat_",), r"dckr_pat_[A-Za-z0-9_-]{20,}"),
    Shape("DigitalOcean token", ("dop_v1_",), r"dop_v1_[a-f0-9]{40,}"),
    Shape("SendGrid key", ("SG.",), r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    Shape("Shopify token", ("shpat_", "shpca_", "shppa_", "shpss_"), r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}"),
    Shape("Linear key", ("lin_api_",), r"lin_api_[A-Za-z0-9]{32,}"),
    Shape("Notion token", ("ntn_",), r"ntn_[A-Za-z0-9]{40,}"),
    Shape("Figma token", ("figd_",), r"figd_[A-Za-z0-9_-]{36,}"),
    Shape("Databricks token", ("dapi",), r"dapi[a-f0-9]{32}"),
    Shape("Vault token", ("hvs.",), r"hvs\.[A-Za-z0-9_-]{24,}"),
    Shape("Grafana token", ("glsa_",), r"glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}"),
    Shape("Sentry token", ("sntrys_", "sntryu_"), r"sntry[su]_[A-Za-z0-9+/=_-]{40,}"),
    Shape("Supabase key", ("sbp_", "sb_secret_"), r"(?:sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,})"),
    Shape("Postman key", ("PMAK-",), r"PMAK-[a-f0-9]{24}-[a-f0-9]{34}"),
    Shape("Atlassian token", ("ATATT3",), r"ATATT3[A-Za-z0-9_=-]{60,}"),
    Shape("LangSmith key", ("lsv2_",), r"lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}"),
    Shape("age key", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[A-Z0-9]{50,}"),
    Shape("moot token", ("moot_",), r"moot_[A-Za-z0-9_-]{40,}"),
    Shape("Telegram token", (":A",), r"[0-9]{8,10}:[A-Za-z0-9_-]{35}", before=10),
    Shape(
        "Discord token",
        ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
        r"[MNO][A-Za-z0-9_-]{23,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,}",
    ),
    Shape("JSON Web Token", ("eyJ",), r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]*"),
)
"""The table of keys and tokens, for redaction, sharing and scans. If several entries match, the first one counts."""

SECRET_NAME = (
    r"(?:api[_-]?key|access[_-]?key|private[_-]?key|client[_-]?secret|secret|token|passw(?:or)?d|passphrase|credential|authorization"
    r"|cookie|signature)"
)
"""Matches a part of a name that indicates a secret value."""
COUNTED = re.compile(r"tokens|tokeni[sz]|token_?count|max_?token|token_?(?:limit|budget|type|usage)", re.IGNORECASE)
"""Matches names with `token` that are not secret."""
CODE = re.compile(
    r"(?:\$?[A-Za-z_]+(?:(?:\.|::|->)[A-Za-z_]+)+|string|number|boolean|bytes|object|undefined|required|optional)\.?", re.IGNORECASE
)
"""Matches code after a secret's name that is not a secret: a reference or a type."""

_EDGE = r"(?<![A-Za-z0-9_-])"
_END = r"PRIVATE KEY(?: BLOCK)?-----"
_BLOCK = re.compile(rf"-----BEGIN [A-Z ]{{0,30}}{_END}.*?(?:-----END [A-Z ]{{0,30}}{_END}|\Z)", re.DOTALL)
_AUTHORIZATION = re.compile(r"\b(bearer|basic|token)(\s{1,4})[A-Za-z0-9._~+/=-]{8,}", re.IGNORECASE)
_USERINFO = re.compile(r"(?<![a-z0-9+.-])([a-z][a-z0-9+.-]{1,20}://)[^\s/@]{1,500}@", re.IGNORECASE)
_NAMED = re.compile(
    r"((?:api[_-]?key|secret|token|passw(?:or)?d|credential)s?[\w-]{0,20}[\"']?\s{0,4}[:=]\s{0,4}[\"']?)([^\s\"',;&{}\[\]()<>]{6,})",
    re.IGNORECASE,
)


@cache
def _keys() -> re.Pattern[str]:
    """Return the pattern of all shapes. It is compiled on first use, because most commands don't need it."""
    return re.compile(_EDGE + "(?:" + "|".join(shape.pattern for shape in SHAPES) + ")")


def redact(text: str, secrets: Iterable[str] = ()) -> str:
    """Return the text without anything that looks like a key, token or password, and without the given secrets."""
    for secret in sorted({secret for secret in secrets if len(secret) >= SHORTEST}, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _BLOCK.sub(HIDDEN, text)
    text = _USERINFO.sub(rf"\1{HIDDEN}@", text)
    text = _AUTHORIZATION.sub(rf"\1\2{HIDDEN}", text)
    text = _keys().sub(HIDDEN, text)
    return _NAMED.sub(rf"\1{HIDDEN}", text)


def find_secrets(text: str, secrets: Iterable[str] = ()) -> Iterator[tuple[int, int]]:
    """Yield the positions of secrets that `redact` would remove, unordered and possibly overlapping."""
    for secret in {secret for secret in secrets if len(secret) >= SHORTEST}:
        at = text.find(secret)
        while at >= 0:
            yield at, at + len(secret)
            at = text.find(secret, at + len(secret))
    for shape in (_BLOCK, _keys()):
        yield from (found.span() for found in shape.finditer(text))
    yield from ((found.end(1), found.end() - 1) for found in _USERINFO.finditer(text))
    yield from ((found.end(2), found.end()) for found in _AUTHORIZATION.finditer(text))


def mask(value: str) -> str:
    """Return the start and end of a secret, so that its owner can recognize it, or only `…` for a short secret."""
    return f"{value[:4]}…{value[-2:]}" if len(value) >= 20 else "…"
