"""One command of a shell line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_PLAIN_WORD = re.compile(r"[\w@%+=:,./*?\[\]~!^{}-]+", re.ASCII)

ELSEWHERE = "runs in another folder"
"""Reason of a command of git that follows `cd`: a folder can hold settings that run programs."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A command that the shell will run, or a construct that no rule can cover."""

    text: str
    """The text as written in the line."""
    words: tuple[str | None, ...]
    """Name and arguments as passed to the command; None = known only at run time. Empty for a construct."""
    leftover: tuple[str, ...] = ()
    """Why no allow rule can cover it; empty if one can."""
    within: bool = False
    """True if the previous piece runs this one, so that a rule that covers the previous piece covers this one too."""
    fed: bool = False
    """True if it reads the output of another command, or text in the line, as its standard input."""
    open_words: int = 0
    """Number of words from the first one that begins with a wildcard to the end. File names can turn these into options."""

    @property
    def known(self) -> tuple[str, ...]:
        """The leading words, up to the first unknown one."""
        until = self.words.index(None) if None in self.words else len(self.words)
        return tuple(str(word) for word in self.words[:until])

    @property
    def certain(self) -> bool:
        """True if it is a command whose words are all known."""
        return bool(self.words) and None not in self.words

    @property
    def spelled(self) -> str:
        """The form that rules match: words separated by single spaces and quoted if needed, or the construct as written."""
        return spelled(self.known) if self.certain else self.text


def spelled(words: Sequence[str]) -> str:
    """Return the canonical spelling of a command."""
    return " ".join(word if _PLAIN_WORD.fullmatch(word) else "'" + word.replace("'", "'\"'\"'") + "'" for word in words)
