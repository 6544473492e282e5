"""`.gitignore` rules (https://git-scm.com/docs/gitignore), read as a walk comes by them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from moot.errors import MootError
from moot.guard.paths import Entry, Paths
from moot.tools import globs

__all__ = ["Ignores", "walk"]

FILE_BYTES = 500_000


@dataclass(frozen=True, slots=True)
class _Rule:
    wanted: tuple[re.Pattern[str], ...]
    negated: bool
    folders_only: bool


class Ignores:
    """Which names below a folder are ignored; the rules of its own and deeper `.gitignore` files, and never `.git` itself."""

    def __init__(self, paths: Paths, base: str) -> None:
        self._paths = paths
        self._base = base
        self._rules: dict[str, tuple[_Rule, ...]] = {}
        self.read("")

    def read(self, folder: str) -> None:
        """Takes up the rules of a folder below the base, before anything in it is asked about."""
        try:
            with self._paths.open_read(f"{self._base}/{folder}/.gitignore") as stream:
                text = stream.read(FILE_BYTES).decode("utf-8", "replace")
        except MootError:  # there is none, or none that we may read
            return
        self._rules[folder] = tuple(rule for line in text.split("\n") if (rule := _rule(line.rstrip("\r"))))

    def __call__(self, path: str, *, folder: bool) -> bool:
        """Whether the path below the base is ignored, given that the folder it lies in is not."""
        names = path.split("/")
        if names[-1] == ".git":
            return True
        ignored = False
        for depth in range(len(names)):
            below = "/".join(names[depth:])
            for rule in self._rules.get("/".join(names[:depth]), ()):
                if (folder or not rule.folders_only) and globs.matches(rule.wanted, below):
                    ignored = not rule.negated
        return ignored


def walk(paths: Paths, base: str) -> Iterator[tuple[str, Entry]]:
    """Everything below a folder that is not ignored, sorted; see `Paths.walk`."""
    ignored = Ignores(paths, base)

    def enter(folder: str) -> bool:
        if ignored(folder, folder=True):
            return False
        ignored.read(folder)
        return True

    for path, entry in paths.walk(base, enter):
        if not ignored(path, folder=entry.kind == "directory"):
            yield path, entry


def _rule(line: str) -> _Rule | None:
    pattern = re.sub(r"(?<!\\) +$", "", line)
    if not pattern or pattern.startswith("#"):
        return None
    negated = pattern.startswith("!")
    pattern = pattern.removeprefix("!")
    folders_only = pattern.endswith("/")
    pattern = pattern.rstrip("/")
    if not pattern:
        return None
    return _Rule(globs.segments(pattern if "/" in pattern else f"**/{pattern}"), negated, folders_only)
