"""An exception as words for the person and an exit code for the script."""

from __future__ import annotations

import errno
import os
import traceback
from typing import cast

from moot.cli.lines import Lines
from moot.errors import MootError
from moot.types.canonical import JsonObject

INTERRUPTED = 130

_EXHAUSTED = {
    errno.EMFILE: ("too many open files", "Raise the limit, as in ulimit -n 1024."),
    errno.ENFILE: ("too many files are open on this machine", "Close some programs, or raise fs.file-max."),
    errno.ENOMEM: ("not enough memory", "Close some programs."),
    errno.ENOSPC: ("no room left on the disk", "Free some, then try again."),
    errno.EDQUOT: ("no room left within the quota", "Free some, then try again."),
}
"""What this machine may run out of: no fault of moot, so it is said as it is."""


def report(error: BaseException, output: Lines, *, as_json: bool) -> int:
    """Says what went wrong on stderr (and as a document on stdout for a script that wants JSON); the exit code."""
    if isinstance(error, OSError) and (exhausted := _EXHAUSTED.get(error.errno or 0)):
        error = MootError(exhausted[0], fix=exhausted[1])
    if isinstance(error, MootError):
        output.say(f"moot: {error.message}", "red")
        if error.fix:
            output.say(f"  {error.fix}")
        code, name, fix, message = error.exit_code, error.code, error.fix, error.message
    else:
        message = f"unexpected {type(error).__name__}: {error}"
        output.say(f"moot: {message}", "red")
        output.say("  This is a fault of moot. `moot doctor` checks the installation; MOOT_DEBUG=1 shows where it happened.")
        if debugging():
            output.say("".join(traceback.format_exception(error)))
        code, name, fix = 1, "internal", ""
    if as_json:
        output.json({"ok": False, "error": to_json(name, message, fix, retryable=getattr(error, "retryable", False) is True)})
    return code


def to_json(code: str, message: str, fix: str = "", *, retryable: bool = False) -> JsonObject:
    """An error in the shape that scripts get."""
    return {"code": code, "message": message, "fix": fix, "retryable": retryable}


def innermost(error: BaseException) -> BaseException:
    """The first real cause inside the groups that concurrent tasks wrap around it."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def debugging() -> bool:
    """Whether whoever called wants to see everything."""
    return os.environ.get("MOOT_DEBUG") == "1"
