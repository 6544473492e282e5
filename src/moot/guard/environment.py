"""The environment of child processes: an allow-list, so that unknown variables are not passed on."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from moot.errors import UsageError

__all__ = ["child_environment", "forbidden"]

ALLOWED = frozenset({"COLORTERM", "HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"})
_ALLOWED_PATTERN = re.compile(r"LC_[A-Z]+")

# secrets, and variables that make other programs load or run arbitrary code
_FORBIDDEN = re.compile(
    r"MOOT_.*|.*_API_?KEY|.*_TOKEN|.*_SECRET(_KEY|_ACCESS_KEY)?|.*PASSW(OR)?D|.*_CREDENTIALS?"
    r"|LD_.*|DYLD_.*|PYTHON(PATH|STARTUP|HOME|INSPECT|BREAKPOINT)|BASH_ENV|ENV|PROMPT_COMMAND|SHELLOPTS|BASHOPTS|IFS|GIT_.*"
    r"|NODE_OPTIONS|PERL5(LIB|OPT|DB)|RUBY(LIB|OPT)|JAVA_TOOL_OPTIONS|BASH_FUNC_.*",
    re.IGNORECASE,
)
_FALLBACK_PATH = "/usr/local/bin:/usr/bin:/bin"


def child_environment(names: Iterable[str] = (), source: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the variables of `source` (by default our environment) for a child: the usual harmless ones and `names`.

    Raise UsageError for a name that is never passed on.
    """
    requested = frozenset(names)
    for name in sorted(requested):
        if forbidden(name):
            raise UsageError(
                f"environment variable {name!r} is never passed to commands", fix="remove it from the tool's `environment` list"
            )
    variables = os.environ if source is None else source
    child = {name: value for name, value in variables.items() if name in ALLOWED or name in requested or _ALLOWED_PATTERN.fullmatch(name)}
    child["PATH"] = _safe_path(child.get("PATH", ""))
    return child


def forbidden(name: str) -> bool:
    """Return whether a variable is never passed to children."""
    return _FORBIDDEN.fullmatch(name) is not None


def _safe_path(path: str) -> str:
    # empty and relative entries refer to the working folder, which may contain untrusted files
    return ":".join(folder for folder in path.split(":") if folder.startswith("/")) or _FALLBACK_PATH
