"""Error reports: a message for the user and an exit code for scripts."""

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
    errno.EMFILE: ("Too many open files.", "Raise the limit, for example with 'ulimit -n 1024'."),
    errno.ENFILE: ("Too many files are open on this machine.", "Close some programs, or raise fs.file-max."),
    errno.ENOMEM: ("Not enough memory.", "Close some programs."),
    errno.ENOSPC: ("The disk is full.", "Free some space and try again."),
    errno.EDQUOT: ("The disk quota is exceeded.", "Free some space and try again."),
}
"""Exhausted resources of the machine, which are not reported as bugs in moot."""


def report(error: BaseException, output: Lines, *, as_json: bool) -> int:
    """Print an error to stderr, and as a JSON document to stdout if `as_json`. Return the exit code."""
    if isinstance(error, OSError) and (exhausted := _EXHAUSTED.get(error.errno or 0)):
        error = MootError(exhausted[0], fix=exhausted[1])
    if isinstance(error, MootError):
        output.say(f"moot: {error.message}", "red")
        if error.fix:
            output.say(f"  {error.fix}")
        code, name, fix, message = error.exit_code, error.code, error.fix, error.message
    else:
        message = f"Unexpected {type(error).__name__}: {error}"
        output.say(f"moot: {message}", "red")
        output.say("  This is a bug in moot. Run 'moot doctor' to check the installation; MOOT_DEBUG=1 prints the traceback.")
        if debugging():
            output.say("".join(traceback.format_exception(error)))
        code, name, fix = 1, "internal", ""
    if as_json:
        output.json({"ok": False, "error": to_json(name, message, fix, retryable=getattr(error, "retryable", False) is True)})
    return code


def to_json(code: str, message: str, fix: str = "", *, retryable: bool = False) -> JsonObject:
    """Return an error as scripts receive it."""
    return {"code": code, "message": message, "fix": fix, "retryable": retryable}


def innermost(error: BaseException) -> BaseException:
    """Return the first cause inside the exception groups that task groups raise."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def debugging() -> bool:
    """Return whether MOOT_DEBUG=1 asks for tracebacks."""
    return os.environ.get("MOOT_DEBUG") == "1"
