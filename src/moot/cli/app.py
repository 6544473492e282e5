"""The entry point of the command line: parse the arguments, run the command, and report errors with an exit code."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Sequence
from pathlib import Path

from moot.cli.arguments.parser import parse, remote_options, wants_json
from moot.cli.console.lines import INTERRUPTED, Lines, innermost, report
from moot.cli.remote.address import applied
from moot.errors import MootError
from moot.plugins.registry import attribute

_FILES = 64
"""Minimum number of files that the process must be able to open. A run with few tools needs slightly fewer."""


_SPLIT = "moot.cli.terminal.foreground:split"


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    if not _open_missing_streams():
        Lines().say("moot: stdout is closed. To discard the output, redirect it to /dev/null.", "red")
        return 1
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments == ["--version"]:
        arguments = ["version"]
    output = Lines()
    try:
        _check_open_files()
        variables, words = remote_options(arguments)
        with applied(variables):
            call = parse(words)
            if call.stays and output.attended:
                attribute(_SPLIT)()
            result = call.run(output) if call.bare else attribute("moot.cli.runner:perform")(call)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001  the outermost frame: every error becomes a message and an exit code
        return _failed(innermost(error), output, as_json=wants_json(arguments))
    return result if isinstance(result, int) else 0


def _check_open_files() -> None:
    """Increase the limit on open files if it is too low. Raise MootError if that is not permitted, because a run would fail halfway."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < _FILES:
        if hard != resource.RLIM_INFINITY and hard < _FILES:
            message = f"The open-file limit is {soft}; moot needs at least {_FILES}."
            raise MootError(message, fix=f"Raise the limit, for example with 'ulimit -n {_FILES * 16}'.")
        resource.setrlimit(resource.RLIMIT_NOFILE, (_FILES, hard))


def _open_missing_streams() -> bool:
    """Return True if stdout is open. Replace closed streams with /dev/null, so that the database is not opened on their descriptors."""
    has_stdout = sys.stdout is not None  # pyright: ignore[reportUnnecessaryComparison]  it is None when the descriptor is closed
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open(mode))  # noqa: SIM115  it stays open as long as the process
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
        pass  # stderr is closed too
    # discard buffered output, so that the interpreter's flush at exit does not fail
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)
    return 1
