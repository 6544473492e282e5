"""Cleaning of untrusted text for a terminal, so that it can't move the cursor, change colors or the title, paste, beep or reorder text."""

from __future__ import annotations

import re
import unicodedata
from typing import Literal, TypeAlias

SEQUENCE_CHARACTERS = 4096
"""Maximum length of a control sequence. An unterminated one ends there (or at a newline), and the rest is treated as text."""

COMBINING_MARKS = 30
"""Maximum number of marks after one character (Unicode's stream-safe limit). More marks slow down terminals or overwrite other lines."""

_Place: TypeAlias = Literal["text", "escape", "csi", "string", "string-escape"]

# characters of scripts without combining marks: the fast path for ordinary text
_PLAIN = re.compile("[\n\t -~\u00a0-\u02ff\u1e00-\u1fff\u2010-\u2027\u20a0-\u20cf\u2100-\u2bff\u3100-\u9fff\uac00-\ud7a3]+")
# a complete common sequence, such as a color: the fast path for colored text
_COLOR = re.compile("\x1b\\[[ -?]{0,64}[@-~]")
_OPENERS: dict[str, _Place] = {**dict.fromkeys("[\x9b", "csi"), **dict.fromkeys("]PX^_\x9d\x90\x98\x9e\x9f", "string")}
_STRING_ENDS = "\x07\x9c\x18\x1a"


class Cleaner:
    """Cleans text that arrives in pieces. The result does not depend on where the text is split.

    7-bit and 8-bit control sequences are removed. A lone carriage return becomes a newline, so that overwritten text stays readable.
    Bidirectional controls are shown as, for example, `<U+202E>`, and lone surrogates become U+FFFD. Newlines and tabs are kept.
    """

    def __init__(self) -> None:
        self._place: _Place = "text"
        self._swallowed = 0
        self._marks = 0
        self._return = False

    def feed(self, text: str) -> str:
        """Return the cleaned text. Incomplete sequences are buffered."""
        shown: list[str] = []
        at = 0
        while at < len(text):
            if self._place == "text" and not self._return and (plain := _PLAIN.match(text, at)):
                shown.append(plain.group())
                self._marks = 0
                at = plain.end()
                continue
            if self._place == "text" and not self._return and (sequence := _COLOR.match(text, at)):
                at = sequence.end()
                continue
            shown.append(self._take(text[at]))
            at += 1
        return "".join(shown)

    def end(self) -> str:
        """Return the rest of the buffered text and reset the cleaner."""
        rest = "\n" if self._return else ""
        self.__init__()
        return rest

    def _take(self, character: str) -> str:
        if self._return:
            self._return = False
            return "\n" if character == "\n" else "\n" + self._take(character)
        match self._place:
            case "text":
                return self._text(character)
            case "escape":
                return self._escape(character)
            case "csi":
                return self._csi(character)
            case _:
                return self._string(character)

    def _text(self, character: str) -> str:
        if character in "\n\t":
            return character
        if character == "\r":
            self._return = True
            return ""
        if character == "\x1b" or (character in _OPENERS and character >= "\x80"):
            self._place, self._swallowed = _OPENERS.get(character, "escape"), 0
            return ""
        return self._printable(character)

    def _printable(self, character: str) -> str:
        match unicodedata.category(character):
            case "Cc":
                return "\n" if character == "\x85" else ""
            case "Cs":
                return "\ufffd"
            case "Cf" if unicodedata.bidirectional(character) in _REORDERING:
                return f"<U+{ord(character):04X}>"
            case "Mn" | "Me" | "Mc":
                self._marks += 1
                return character if self._marks <= COMBINING_MARKS else ""
            case _:
                self._marks = 0
                return character

    def _escape(self, character: str) -> str:
        if character in _OPENERS:
            self._place = _OPENERS[character]
            return ""
        if " " <= character <= "/":  # intermediate characters, as in ESC ( B
            return self._swallow()
        if "0" <= character <= "~":
            self._place = "text"
            return ""
        return self._again(character)

    def _csi(self, character: str) -> str:
        if " " <= character <= "?":
            return self._swallow()
        if "@" <= character <= "~":
            self._place = "text"
            return ""
        return self._again(character)

    def _string(self, character: str) -> str:
        if self._place == "string-escape" and character != "\\":
            # an ESC inside a string starts a new sequence unless it is the string terminator
            self._place = "escape"
            return self._escape(character)
        if self._place == "string-escape" or character in _STRING_ENDS:
            self._place = "text"
            return ""
        if character == "\x1b":
            self._place = "string-escape"
            return ""
        if character in "\n\r":
            return self._again(character)
        return self._swallow()

    def _swallow(self) -> str:
        self._swallowed += 1
        if self._swallowed >= SEQUENCE_CHARACTERS:
            self._place = "text"
        return ""

    def _again(self, character: str) -> str:
        self._place = "text"
        return self._text(character)


_REORDERING = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})


def clean(text: str) -> str:
    """Return the text cleaned for a terminal. See Cleaner."""
    cleaner = Cleaner()
    return cleaner.feed(text) + cleaner.end()


_INVISIBLE = re.compile(
    # joiners between emoji or non-ASCII letters are visible through their effect and kept
    "(?<![^\x00-\x7f\u200b-\u200f])[\u200c\u200d]|[\u200c\u200d](?![^\x00-\x7f\u200b-\u200f])"
    "|[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0d\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)


def visible(text: str) -> str:
    """Return the text with control and invisible characters spelled out (`\\x1b`, `<U+200B>`), except newlines and tabs.

    Use it for text that a person must approve. Nothing in it may be hidden, removed or look like an ordinary space.
    """
    return "".join(map(_spelled, text))


def visible_lines(text: str) -> list[str]:
    """Return the lines of untrusted text, with control characters and tabs shown as escapes."""
    return visible(text).replace("\t", "\\t").split("\n")


def visible_line(text: str) -> str:
    """Return untrusted text as one line, with control characters and tabs shown as escapes."""
    return " ".join(visible_lines(text))


_SPELLED = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp", "Zs"})
_ORDINARY = frozenset("\n\t \u3000")
"""Characters of the categories in `_SPELLED` that are shown unchanged. The last one is the space of Japanese and Chinese texts."""


def _spelled(character: str) -> str:
    if (
        " " <= character <= "~"
        or character in _ORDINARY
        or not (unicodedata.category(character) in _SPELLED or _INVISIBLE.fullmatch(character))
    ):
        return character
    return f"\\x{ord(character):02x}" if ord(character) < 0x100 else f"<U+{ord(character):04X}>"


def mark_invisible(text: str) -> tuple[str, int]:
    """Return the text with invisible characters shown as `<U+200B>`, and their number. Hidden text could instruct a model."""
    return _INVISIBLE.subn(lambda match: f"<U+{ord(match[0]):04X}>", text)
