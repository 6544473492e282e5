"""One command of a shell line."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_PLAIN_WORD = re.compile(r"[\w@%+=:,./*?\[\]~!^{}-]+", re.ASCII)

ELSEWHERE = "runs in another folder"
"""Reason why no rule covers a command that follows `cd` and depends on the folder's files, such as git: the files can make it run programs.
"""


@dataclass(frozen=True, slots=True)
class Piece:
    """One command of a shell line, or a shell construct, such as a loop, that no rule can cover."""

    text: str
    """The command's text, as written in the line."""
    words: tuple[str | None, ...]
    """The command's name and arguments after quotes are removed. A word is None if it is known only at run time. Empty for a construct."""
    leftover: tuple[str, ...] = ()
    """Reasons why no allow rule can cover the piece; empty if a rule can."""
    within: bool = False
    """True if the previous piece runs this one, so that a rule that covers the previous piece covers this one too."""
    fed: bool = False
    """True if the command's standard input is the output of another command, a file or text in the line."""
    open_words: int = 0
    """Number of words from the first one that begins with a wildcard to the end. Matching file names can turn them into options."""

    @property
    def known(self) -> tuple[str, ...]:
        """The leading words, up to the first unknown one."""
        until = self.words.index(None) if None in self.words else len(self.words)
        return tuple(str(word) for word in self.words[:until])

    @property
    def certain(self) -> bool:
        """True for a command whose words are all known."""
        return bool(self.words) and None not in self.words

    @property
    def spelled(self) -> str:
        """The form that rules match: words separated by single spaces and quoted if needed, or the construct as written."""
        return spelled(self.known) if self.certain else self.text


def spelled(words: Sequence[str]) -> str:
    """Return the canonical spelling of a command."""
    return " ".join(word if _PLAIN_WORD.fullmatch(word) else "'" + word.replace("'", "'\"'\"'") + "'" for word in words)
