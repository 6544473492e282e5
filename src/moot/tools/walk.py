"""Glob patterns, `.gitignore` rules (https://git-scm.com/docs/gitignore), and walking a folder without ignored files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from pathspec.patterns.gitignore import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

from moot.errors import MootError
from moot.guard.paths import Entry, Paths

_ALTERNATIVES = 64
_BRACES = re.compile(r"\{([^{}]*,[^{}]*)\}")
_ANY = re.compile("(?!)")
"""Stands for `**`, which matches any number of folders."""


class Glob:
    """A glob pattern for files below a folder. Without a slash, it matches names at any depth; otherwise it matches whole paths."""

    def __init__(self, pattern: str) -> None:
        self._alternatives = [segments(one if "/" in one.rstrip("/") else f"**/{one}") for one in expanded(pattern)]

    def __call__(self, path: str) -> bool:
        return any(matches(wanted, path) for wanted in self._alternatives)


def segments(pattern: str) -> tuple[re.Pattern[str], ...]:
    """Return the pattern's parts between slashes as regular expressions, for `matches`."""
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if parts and parts[-1] == "**":  # everything below, but not the folder itself
        parts.append("*")
    found = [_ANY if part == "**" else _name(part) for part in parts]
    return tuple(part for part, before in zip(found, [None, *found], strict=False) if part is not _ANY or before is not _ANY)


def matches(wanted: Sequence[re.Pattern[str]], path: str) -> bool:
    """Return True if the whole path matches. This tracks the set of reachable positions in the pattern."""
    places = _with_skips({0}, wanted)
    for name in path.split("/"):
        reached: set[int] = set()
        for place in places:
            if place < len(wanted) and wanted[place] is _ANY:
                reached.add(place)
            elif place < len(wanted) and wanted[place].fullmatch(name):
                reached.add(place + 1)
        places = _with_skips(reached, wanted)
    return len(wanted) in places


def _with_skips(places: set[int], wanted: Sequence[re.Pattern[str]]) -> set[int]:
    return places | {place + 1 for place in places if place < len(wanted) and wanted[place] is _ANY}


def expanded(pattern: str) -> list[str]:
    """Return one pattern for each choice in the pattern's braces. If there are too many, braces are literal."""
    done: list[str] = []
    open_ = [pattern]
    while open_:
        if len(done) + len(open_) > _ALTERNATIVES:
            return [pattern]
        one = open_.pop()
        if found := _BRACES.search(one):
            open_ += [one[: found.start()] + choice + one[found.end() :] for choice in found[1].split(",")]
        else:
            done.append(one)
    return done


@cache
def _name(pattern: str) -> re.Pattern[str]:
    pieces = [""]
    at = 0
    while at < len(pattern):
        piece, at = _piece(pattern, at)
        if piece == "*":
            pieces.append("")
        else:
            pieces[-1] += piece
    if len(pieces) == 1:
        return re.compile(pieces[0], re.DOTALL)
    # atomic groups prevent backtracking after the earliest match, so many stars cost no more than one
    middle = "".join(f"(?>.*?{piece})" for piece in pieces[1:-1] if piece)
    return re.compile(f"{pieces[0]}{middle}.*{pieces[-1]}", re.DOTALL)


def _piece(pattern: str, at: int) -> tuple[str, int]:
    character = pattern[at]
    if character == "*":
        return "*", at + 1
    if character == "?":
        return ".", at + 1
    if character == "\\" and at + 1 < len(pattern):
        return re.escape(pattern[at + 1]), at + 2
    end = pattern.find("]", at + 3 if pattern[at + 1 : at + 2] in ("!", "^") else at + 2)
    if character == "[" and end > 0:
        return _class(pattern[at + 1 : end]), end + 1
    return re.escape(character), at + 1


def _class(body: str) -> str:
    negated = body[0] in "!^"
    inner = re.sub(r"([\\\[\]&~|^])", r"\\\1", body[1:] if negated else body)
    try:
        re.compile(f"[{inner}]")
    except re.error:  # a reversed range, which matches nothing
        return "." if negated else "(?!)"
    return f"[{'^' if negated else ''}{inner}]"


FILE_BYTES = 500_000

# parts of the regular expressions that pathspec creates from patterns
_NEGATED_CLASS = re.compile(r"\[\^(?!/\])")
_STAR = r"\[\^/\]\*"
_BEFORE_STAR = re.compile(rf"{_STAR}((?:(?!{_STAR})[^/()])+)(?={_STAR})")
_BEFORE_FOLDERS = re.compile(r"\(\?:/\.\+\)\?(/[^()]*)(?=\(\?:/\.\+\)\?)")


class IgnoreRules:
    """The rules of the `.gitignore` files in a folder and its subfolders. `.git` is always ignored."""

    def __init__(self) -> None:
        self._rules: dict[str, list[tuple[bool, re.Pattern[str]]]] = {}

    def add(self, folder: str, data: bytes) -> None:
        """Add the `.gitignore` of a folder below the base."""
        text = data[:FILE_BYTES].decode("utf-8-sig", "replace")
        self._rules[folder] = [rule for line in text.split("\n") if (rule := _rule(line.removesuffix("\r")))]

    def __call__(self, path: str, *, folder: bool) -> bool:
        """Return True if a path below the base is ignored. Its parent folder must not be ignored."""
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


class Ignores(IgnoreRules):
    """Rules that are read from the `.gitignore` files of a folder when they are needed."""

    def __init__(self, paths: Paths, base: str) -> None:
        super().__init__()
        self._paths = paths
        self._base = base
        self.read("")

    def read(self, folder: str) -> None:
        """Read the rules of a folder below the base. Call this before checking anything in the folder."""
        try:
            with self._paths.open_read(f"{self._base}/{folder}/.gitignore") as stream:
                self.add(folder, stream.read(FILE_BYTES))
        except MootError:  # missing, or not allowed to be read
            return


def walk(paths: Paths, base: str) -> Iterator[tuple[str, Entry]]:
    """Yield all entries below a folder that are not ignored, sorted. See `Paths.walk`."""
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
    """Return True if the line ignores paths, False if it includes them again, and the pattern of the paths. Return None for blank lines,
    comments and invalid patterns."""

    if line.rstrip(" ").endswith("/**/"):  # in Git, only folders below; pathspec drops the stars
        line = f"{line.rstrip(' ')}*/"
    try:
        regex, include = GitIgnoreSpecPattern.pattern_to_regex(line)
    except GitIgnorePatternError:
        return None
    if regex is None or include is None:
        return None
    regex = regex if regex.startswith("^") else f".*{regex}"  # `*/`: any folder
    regex = f"{regex}.+" if regex.endswith("/") else regex  # `a/**`: everything in the folder
    regex = _NEGATED_CLASS.sub("[^/", regex)
    # `*` and `**` match as early as possible if another one follows, so that a malicious pattern can't take exponential time
    regex = _BEFORE_FOLDERS.sub(r"(?>(?:/.+?)?\1(?=/))", _BEFORE_STAR.sub(r"(?>[^/]*?\1)", regex))
    return include, re.compile(regex, re.DOTALL)
