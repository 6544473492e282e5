"""The server of a command line: `--url` or MOOT_URL. Imported by every command, so it imports nothing large."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from contextlib import contextmanager

from moot.errors import UsageError

URL, TOKEN_FILE = "MOOT_URL", "MOOT_TOKEN_FILE"
"""Environment variables. Options with these names set them for one command."""

_OPTIONS = {"--url": URL, "--token-file": TOKEN_FILE}


def remote_url() -> str:
    """Return the address of the server to use; empty = use this machine's database."""
    return os.environ.get(URL, "").strip()


def split_options(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the variables that the options before the command set, and the other words. Raise UsageError if a value is missing."""
    found: dict[str, str] = {}
    rest = list(words)
    while rest and (name := rest[0].partition("=")[0]) in _OPTIONS:
        _, equals, value = rest.pop(0).partition("=")
        if not equals:
            if not rest:
                raise UsageError(f"Option '{name}' requires a value.", fix=f"moot {name} {'URL' if name == '--url' else 'PATH'} chat list")
            value = rest.pop(0)
        found[_OPTIONS[name]] = value
    return found, rest


def take_options(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Like `split_options`, for the options of a command that can use a server. Words after `--` are kept."""
    found: dict[str, str] = {}
    kept: list[str] = []
    rest = list(words)
    while rest:
        if rest[0] == "--":
            return found, [*kept, *rest]
        more, left = split_options(rest)
        found |= more
        rest = left
        if rest and not more:
            kept.append(rest.pop(0))
    return found, kept


def is_requested(words: Sequence[str]) -> bool:
    """Return True if the words contain the option `--url`."""
    return any(word.partition("=")[0] == "--url" for word in words)


@contextmanager
def applied(variables: dict[str, str]) -> Generator[None]:
    """Set environment variables for the duration of the block."""
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def unsupported(name: str) -> UsageError:
    """Return the error for a command that works only on this machine's database."""
    return UsageError(
        f"--url is not supported by 'moot {name}'.", fix="Run it on the server. For this machine, leave out --url and unset MOOT_URL."
    )
