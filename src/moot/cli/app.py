"""The command line's one entry: parses, runs the command, turns every error into words and an exit code."""

from __future__ import annotations

import inspect
import os
import resource
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import anyio
from cyclopts import App

from moot.cli.arguments import settle, wants_json
from moot.cli.errors import INTERRUPTED, innermost, report
from moot.cli.logs import logging_to
from moot.cli.output import Output, close_quietly
from moot.errors import MootError

_COMMANDS: dict[str, tuple[str, str]] = {
    "run": (
        "moot.cli.run:run",
        """One prompt to its answer.

For instance:
  moot run "what does README.md say?"
  git diff | moot run "write a commit message" -m small
  moot run -c "and now the tests" --json
  moot run --schema answer.json -f photo.png "what is on it?\"""",
    ),
    "chat": ("moot.cli.chat:app", "Conversations: new, continue, list, show, resume, stop, delete, restore."),
    "search": (
        "moot.cli.search:search",
        """Find words in all conversations, newest first.

For instance:
  moot search "exit code" --limit 10""",
    ),
    "models": ("moot.cli.models:app", "Models: list, pull, test."),
    "providers": ("moot.cli.providers:app", "Providers: list, test."),
    "tools": ("moot.cli.tools:app", "Tools: list, show."),
    "config": ("moot.cli.config:app", "The configuration: show, check."),
    "doctor": (
        "moot.cli.doctor:doctor",
        """Is everything in order? Exit code 1 when something is broken.

For instance:
  moot doctor --json""",
    ),
    "version": (
        "moot.cli.version:version",
        """moot's version.

For instance:
  moot version --json""",
    ),
}
"""Name → where it is, imported when called, and its help, the first line of which is in the list of commands."""


_FILES = 64
"""What a run of few tools opens at most, and some more."""


def build() -> App:
    """The tree of commands."""
    app = App(
        name="moot",
        help='One home for every AI agent\'s conversations.\n\nFor instance: `moot run "what does README.md say?"`',
        version_flags=(),
        help_format="plaintext",
        exit_on_error=False,
        print_error=False,
        suppress_keyboard_interrupt=False,
        result_action="return_value",
    )
    for name, (path, words) in _COMMANDS.items():
        app.command(path, name=name, help=words)
    return app


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command line; its exit code."""
    if not _open_missing_streams():
        Output().say("moot: stdout is closed; use >/dev/null when the output is not wanted", "red")
        return 1
    arguments = settle(sys.argv[1:] if argv is None else argv)
    output = Output()
    try:
        with logging_to(output):
            result = _perform(arguments, output)
        sys.stdout.flush()
    except BaseException as error:  # noqa: BLE001  the face's border
        return _failed(innermost(error), output, as_json=wants_json(arguments))
    return result if isinstance(result, int) else 0


def _perform(arguments: list[str], output: Output) -> Any:
    _check_files()
    command, bound, left = build().parse_args(arguments)
    work = partial(command, *bound.args, **bound.kwargs, **({"output": output} if "output" in left else {}))
    return anyio.run(work, backend_options={"use_uvloop": sys.platform != "win32"}) if inspect.iscoroutinefunction(command) else work()


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


def _failed(error: BaseException, output: Output, *, as_json: bool) -> int:
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
