"""An exception as words for the person and an exit code for the script."""

from __future__ import annotations

import difflib
import errno
import traceback
from typing import cast

from cyclopts import CycloptsError, UnknownCommandError, UnusedCliTokensError

from moot.cli.logs import debugging
from moot.cli.output import Output
from moot.errors import MootError
from moot.types.canonical import JsonObject

USAGE = 2
INTERRUPTED = 130

_EXHAUSTED = {
    errno.EMFILE: ("too many open files", "Raise the limit, as in ulimit -n 1024."),
    errno.ENFILE: ("too many files are open on this machine", "Close some programs, or raise fs.file-max."),
    errno.ENOMEM: ("not enough memory", "Close some programs."),
    errno.ENOSPC: ("no room left on the disk", "Free some, then try again."),
    errno.EDQUOT: ("no room left within the quota", "Free some, then try again."),
}
"""What this machine may run out of: no fault of moot, so it is said as it is."""


def report(error: BaseException, output: Output, *, as_json: bool) -> int:
    """Says what went wrong on stderr (and as a document on stdout for a script that wants JSON); the exit code."""
    if isinstance(error, CycloptsError):
        error = _usage(error)
    elif isinstance(error, OSError) and (exhausted := _EXHAUSTED.get(error.errno or 0)):
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


class Wrong(MootError):
    """A command line that does not parse."""

    exit_code = USAGE
    code = "usage"


def _usage(error: CycloptsError) -> MootError:
    chain = " ".join(error.command_chain or ())
    fix = f"moot {chain} --help" if chain else "moot --help"
    if isinstance(error, UnknownCommandError) and error.app is not None and error.unused_tokens:
        return Wrong(_unknown_command(error.unused_tokens[0], [name for name in error.app if not name.startswith("-")]), fix=fix)
    if isinstance(error, UnusedCliTokensError) and error.unused_tokens:
        return Wrong(
            f"too many arguments: {', '.join(map(repr, error.unused_tokens))}; words that belong together stand in quotes", fix=fix
        )
    words = str(error).strip()
    return Wrong(words[:1].lower() + words[1:], fix=fix)


def _unknown_command(name: str, known: list[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return f"unknown command {name!r}{hint} known: {', '.join(known)}"
