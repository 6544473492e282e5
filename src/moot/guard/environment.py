"""The variables that a child process gets: an allow-list, so that what nobody thought of stays here."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from moot.errors import UsageError

__all__ = ["child_environment", "forbidden"]

ALLOWED = frozenset({"COLORTERM", "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"})
_ALLOWED_PATTERN = re.compile(r"LC_[A-Z]+")

# secrets, and what makes another program load or run something of somebody else's choosing
_FORBIDDEN = re.compile(
    r"MOOT_.*|.*_API_?KEY|.*_TOKEN|.*_SECRET(_KEY|_ACCESS_KEY)?|.*PASSW(OR)?D|.*_CREDENTIALS?"
    r"|LD_.*|DYLD_.*|PYTHON(PATH|STARTUP|HOME|INSPECT|BREAKPOINT)|BASH_ENV|ENV|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|IFS|GIT_.*"
    r"|NODE_OPTIONS|PERL5(LIB|OPT|DB)|RUBY(LIB|OPT)|JAVA_TOOL_OPTIONS|BASH_FUNC_.*",
    re.IGNORECASE,
)
_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"


def child_environment(names: Iterable[str] = (), source: Mapping[str, str] | None = None) -> dict[str, str]:
    """What of `source` (our own environment) a child may see: the usual harmless names and those given.

    Raises UsageError for a given name that no child ever gets.
    """
    given = frozenset(names)
    for name in sorted(given):
        if forbidden(name):
            raise UsageError(f"the variable {name!r} is never handed to a command", fix="take it out of the tool's `environment` list")
    variables = os.environ if source is None else source
    child = {name: value for name, value in variables.items() if name in ALLOWED or name in given or _ALLOWED_PATTERN.fullmatch(name)}
    child["PATH"] = _safe_path(child.get("PATH", ""))
    return child


def forbidden(name: str) -> bool:
    """Whether a variable of that name is kept from every child."""
    return _FORBIDDEN.fullmatch(name) is not None


def _safe_path(path: str) -> str:
    # an empty or relative entry means "where the command runs", which is where untrusted files lie
    return ":".join(folder for folder in path.split(":") if folder.startswith("/")) or _FALLBACK_PATH
