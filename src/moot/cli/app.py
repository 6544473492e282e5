"""The command line's one entry: parses, runs the command, turns every error into words and an exit code."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moot.cli.arguments import settle, wants_json
from moot.cli.errors import INTERRUPTED, innermost, report
from moot.cli.lines import Lines, close_quietly
from moot.cli.reading import Call, read
from moot.cli.slots import wants_output
from moot.errors import MootError
from moot.plugins.registry import attribute

_ALONE = "moot.cli.repl.conversing:bare"
"""What `moot` without a word does."""

_ALONE_YES = (["--yes"], ["-y"])

_FILES = 64
"""What a run of few tools opens at most, and some more."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; its exit code."""
    if not _open_missing_streams():
        Lines().say("moot: stdout is closed; use >/dev/null when the output is not wanted", "red")
        return 1
    arguments = settle(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        arguments = ["version"]
    output = Lines()
    try:
        result = _perform(arguments, output)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001  the face's border
        return _failed(innermost(error), output, as_json=wants_json(arguments))
    return result if isinstance(result, int) else 0


def _perform(arguments: list[str], output: Lines) -> Any:
    _check_files()
    call = _call(arguments)
    if call.bare:
        return call.command(*call.args, **call.keywords, **({"output": output} if wants_output(call.command) else {}))
    return attribute("moot.cli.performing:perform")(call)


def _call(arguments: list[str]) -> Call:
    if not arguments or arguments in _ALONE_YES:
        return Call(attribute(_ALONE), (), {"yes": bool(arguments)}, bare=False)
    call: Call = read(arguments) or attribute("moot.cli.parsing:parse")(arguments)
    return call


def _check_files() -> None:
    """Raises the limit of open files where it is low and may be raised. Raises MootError where it may not: a run would break half-way."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _FILES:
        if hard != resource.RLIM_INFINITY and hard < _FILES:
            words = f"this process may open only {soft} files; moot needs {_FILES}"
            raise MootError(words, fix=f"Raise the limit, as in ulimit -n {_FILES * 16}.")
        resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, hard))


def _open_missing_streams() -> bool:
    """Whether there is a stdout. A stream that is closed becomes an empty one first of all, or the database would get its number."""
    has_stdout = sys.stdout is not None  # pyright: ignore[reportUnnecessaryComparison]  it is None when the descriptor is closed
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  it lives as long as the process
    return has_stdout


def _failed(error: BaseException, output: Lines, *, as_json: bool) -> int:
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else 1
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    try:
        if not isinstance(error, BrokenPipeError):
            return report(error, output, as_json=as_json)
    except BrokenPipeError:
        pass  # whoever would have read the words is gone too
    close_quietly()
    return 1
