"""`.gitignore` rules (https://git-scm.com/docs/gitignore), read while walking a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from moot.errors import MootError
from moot.guard.paths import Entry, Paths

__all__ = ["Ignores", "walk"]

FILE_BYTES = 500_000

# parts of the regular expressions that pathspec makes of patterns
_NEGATED_CLASS = re.compile(r"\[\^(?!/\])")
_STAR = r"\[\^/\]\*"
_BEFORE_STAR = re.compile(rf"{_STAR}((?:(?!{_STAR})[^/()])+)(?={_STAR})")
_BEFORE_FOLDERS = re.compile(r"\(\?:/\.\+\)\?(/[^()]*)(?=\(\?:/\.\+\)\?)")


class Ignores:
    """The rules of the `.gitignore` files in a folder and its subfolders. `.git` is always ignored."""

    def __init__(self, paths: Paths, base: str) -> None:
        self._paths = paths
        self._base = base
        self._rules: dict[str, list[tuple[bool, re.Pattern[str]]]] = {}
        self.read("")

    def read(self, folder: str) -> None:
        """Read the rules of a folder below the base. Call this before checking anything in the folder."""
        try:
            with self._paths.open_read(f"{self._base}/{folder}/.gitignore") as stream:
                text = stream.read(FILE_BYTES).decode("utf-8-sig", "replace")
        except MootError:  # missing, or not allowed to be read
            return
        self._rules[folder] = [rule for line in text.split("\n") if (rule := _rule(line.removesuffix("\r")))]

    def __call__(self, path: str, *, folder: bool) -> bool:
        """Return whether a path below the base is ignored, assuming that its parent folder is not."""
        names = path.split("/")
        if names[-1] == ".git":
            return True
        ignored = False
        for depth in range(len(names)):
            below = "/".join(names[depth:]) + ("/" if folder else "")
            for include, pattern in self._rules.get("/".join(names[:depth]), ()):
                if include != ignored and pattern.fullmatch(below):
                    ignored = include
        return ignored


def walk(paths: Paths, base: str) -> Iterator[tuple[str, Entry]]:
    """Yield everything below a folder that is not ignored, sorted. See `Paths.walk`."""
    ignored = Ignores(paths, base)

    def enter(folder: str) -> bool:
        if ignored(folder, folder=True):
            return False
        ignored.read(folder)
        return True

    for path, entry in paths.walk(base, enter):
        if not ignored(path, folder=entry.kind == "directory"):
            yield path, entry


def _rule(line: str) -> tuple[bool, re.Pattern[str]] | None:
    """Return whether the line ignores or re-includes paths, and which; None for blank lines, comments and invalid patterns."""
    try:
        regex, include = GitIgnoreSpecPattern.pattern_to_regex(line)
    except GitIgnorePatternError:
        return None
    if regex is None or include is None:
        return None
    regex = regex if regex.startswith("^") else f".*{regex}"  # `*/`: any folder
    regex = f"{regex}.+" if regex.endswith("/") else regex  # `a/**`: everything in the folder
    return include, re.compile(_without_backtracking(_NEGATED_CLASS.sub("[^/", regex)), re.DOTALL)


def _without_backtracking(regex: str) -> str:
    """Make `*` and `**` match as early as possible if another one follows, so that a malicious pattern can't take exponential time."""
    return _BEFORE_FOLDERS.sub(r"(?>(?:/.+?)?\1(?=/))", _BEFORE_STAR.sub(r"(?>[^/]*?\1)", regex))
