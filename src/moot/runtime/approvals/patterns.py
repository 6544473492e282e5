"""Rule pattern matching, and the narrowest pattern for a call. To be safe, allow rules match narrowly and deny rules broadly."""

from __future__ import annotations

import glob
import posixpath
import re
from collections.abc import Sequence
from fnmatch import fnmatchcase
from urllib.parse import unquote, urlsplit

from moot.guard.commands.coverage import covers, forms, git_globals, is_harmless, is_known, width
from moot.guard.commands.wrappers import (
    ELSEWHERE,
    Piece,
    hides,
    is_destructive,
    may_run_text,
    reads_commands,
    runs_file,
    runs_others,
    spelled,
)

EVERYTHING = "*"

_LONG_OPTION = re.compile(r"--[A-Za-z][\w-]*", re.ASCII)
_TOKEN = re.compile(r"[^\s'\"`;|&()<>=$,:{}!]+", re.ASCII)

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PORTS = {"http": 80, "https": 443}


# ── commands ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def allows(pattern: str, piece: Piece) -> bool:
    """Return whether an allow rule covers the command: each word is in the rule literally or in the table of safe options."""
    if pattern == EVERYTHING:
        return True
    if piece.leftover or not piece.certain:
        return False
    known = literal(pattern)
    for words in forms(piece.known):
        sure = sum(known.startswith(spelled(words[: at + 1])) for at in range(len(words)))
        if fits(spelled(words), pattern) and covers(words, sure, fed=piece.fed, open_words=piece.open_words):
            return True
    return False


def allows_line(pattern: str, line: str, pieces: Sequence[Piece]) -> bool:
    """Return True if an allow rule equals the whole line, and the line contains nothing that is known only at run time."""
    return bool(pieces) and pattern in (line, exact(line)) and literal(pattern) == line and can_repeat(pieces)


def exact(line: str) -> str:
    """Return the pattern that matches only this text."""
    return glob.escape(line)


def can_repeat(pieces: Sequence[Piece]) -> bool:
    """Return whether the line always runs the same commands, so that this exact line can be allowed for later calls too."""
    return bool(pieces) and all(piece.certain and all(why == ELSEWHERE for why in piece.leftover) for piece in pieces)


def forbids(pattern: str, piece: Piece) -> bool:
    """Return whether a deny or ask rule matches the command in any of its equivalent forms."""
    texts = [piece.text, piece.spelled]
    words = piece.known
    if words:
        plain = (posixpath.basename(words[0]), *words[1:])
        if plain[0] == "git":
            texts.append(spelled((plain[0], *plain[1 + git_globals(plain) :])))
        texts.append(spelled(plain))
    if options := _LONG_OPTION.findall(pattern):
        texts += [" ".join(_written_out(word, options) for word in text.split(" ")) for text in texts]
    return any(fits(text, pattern) for text in texts)


def _written_out(word: str, options: Sequence[str]) -> str:
    """Return the word with an abbreviated long option replaced by the option that it stands for."""
    name, equals, value = word.partition("=")
    full = next((option for option in options if len(name) > 2 and name.startswith("--") and option.startswith(name)), name)
    return f"{full}{equals}{value}"


def could_match(pattern: str, piece: Piece, line: str) -> bool:
    """Return whether the command may turn out to match the pattern, because part of what it runs is unknown.

    It may run its arguments, the text that it reads, variables set for it, or a file that the line has written.
    """
    if not piece.words:
        return any(reason.startswith("sets") for reason in piece.leftover) and names_words(pattern, piece.text, ())
    if piece.certain and (reads_commands(piece) or (hides(piece) and piece.known[0] == literal(pattern).partition(" ")[0])):
        return True
    if not piece.certain and runs_others(piece.known):
        return True
    texts = [may_run_text(piece), *(reason for reason in piece.leftover if reason.startswith("sets"))]
    if (piece.fed and not is_harmless(piece.known)) or _is_own_program(piece):
        texts.append(line)
    if names_words(pattern, "\n".join(texts), ()):
        return True
    if piece.certain:
        return False
    known, wanted = spelled(piece.known), literal(pattern)
    return known.startswith(wanted) or wanted.startswith(known)


def _is_own_program(piece: Piece) -> bool:
    """Return whether the program is a file that is not part of the system, so an earlier command in the line may have written it."""
    known = piece.known
    named = bool(known) and "/" in known[0] and not is_known(known[0])
    return named or any(reason.startswith("sets PATH") for reason in piece.leftover)


def tokens(text: str) -> list[str]:
    """Return the words of a text, split where the shell may split it."""
    return _TOKEN.findall(text)


def is_exact(pattern: str) -> bool:
    """Return whether the pattern has no wildcards."""
    return exact(literal(pattern)) == pattern or literal(pattern) == pattern


def names_words(pattern: str, line: str, pieces: Sequence[Piece]) -> bool:
    """Return whether all leading words of the pattern occur in a line whose commands can't all be resolved."""
    known = literal(pattern)
    wanted = known.split()
    if not wanted:
        return False
    found = {word for text in (line, *(str(word) for piece in pieces for word in piece.words if word)) for word in _TOKEN.findall(text)}
    found |= {posixpath.basename(word) for word in found if "/" in word}
    last = wanted.pop() if not known.endswith(" ") and known != pattern else ""
    return all(word in found for word in wanted) and (not last or any(word.startswith(last) for word in found))


def offered(piece: Piece, line: str, pieces: Sequence[Piece]) -> tuple[tuple[str, ...], bool]:
    """Return the patterns that can be granted for one part of a line, the whole line first, and whether a permanent rule can be offered."""
    found, always = narrowest(piece)
    own = [part for part in pieces if not part.within]
    if len(own) == 1:
        return found, always
    wider = tuple(pattern for pattern in found if pattern != exact(piece.spelled))
    if not can_repeat(pieces):
        return wider, always and bool(wider)
    return (exact(line), *wider), _is_plain(line) and not any(is_destructive(part.known) or hides(part) for part in pieces)


def _is_plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


def narrowest(piece: Piece) -> tuple[tuple[str, ...], bool]:
    """Return the patterns that cover the command, the exact one first, and whether a permanent rule may be offered.

    Wider patterns are returned only if the table of safe options covers the words that they leave open.
    """
    words = piece.known
    if piece.leftover or not piece.certain:
        return (), False
    lasting = _is_plain(piece.spelled) and not is_destructive(words)
    count = width(words)
    wider = (
        (f"{exact(spelled(words[:count]))} *",) if lasting and count and covers(words, count, fed=True, open_words=piece.open_words) else ()
    )
    spells = (exact(piece.spelled),) if covers(words, len(words), fed=piece.fed) else ()
    return (*spells, *wider), lasting and (bool(wider) or runs_file(words) or not runs_others(words))


def literal(pattern: str) -> str:
    """Return the literal text of a pattern before its first wildcard."""
    found = ""
    at = 0
    while at < len(pattern) and pattern[at] not in "*?":
        if pattern[at] == "[":
            if pattern[at + 2 : at + 3] != "]":
                break
            found += pattern[at + 1]
            at += 3
            continue
        found += pattern[at]
        at += 1
    return found


def fits(text: str, pattern: str) -> bool:
    """Return whether the pattern matches. `git status *` also matches `git status`, because the space only marks the end of a word."""
    return fnmatchcase(text, pattern) or (pattern.endswith(" *") and fnmatchcase(text, pattern[:-2]))


# ── paths and addresses ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def spellings(subject: str, directory: str) -> tuple[list[str], list[str]]:
    """Return the forms of a path or URL that an allow rule may match, and those that a deny rule may match."""
    if not subject:
        return [""], [""]
    if _SCHEME.match(subject):
        address = _address(subject)
        return ([address] if address else []), list(filter(None, (subject, address, unquote(subject))))
    absolute = posixpath.normpath(posixpath.join(directory or ".", posixpath.expanduser(subject)))
    here = posixpath.normpath(directory) if directory else ""
    inside = [posixpath.relpath(absolute, here)] if here and absolute.startswith(f"{here.rstrip('/')}/") else []
    return [absolute, *inside], [subject, absolute, *inside, posixpath.basename(absolute)]


def offers(subject: str, directory: str) -> tuple[str, ...]:
    """Return patterns for a path (itself, then its folder), a URL (its host), or all calls of a tool without a subject."""
    if not subject:
        return (EVERYTHING,)
    allowed, _ = spellings(subject, directory)
    if not allowed:
        return ()
    if _SCHEME.match(subject):
        split = urlsplit(allowed[0])
        return (f"{glob.escape(f'{split.scheme}://{split.netloc}')}/*",)
    folder = posixpath.dirname(allowed[0]).rstrip("/")
    return (glob.escape(allowed[0]), *([f"{glob.escape(folder)}/*"] if folder else []))


def _address(url: str) -> str | None:
    """Return the URL with scheme, host and port normalized, or None if they are ambiguous."""
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
    except ValueError:
        return None
    steps = unquote(split.path).split("/")
    if not host or "@" in split.netloc or "\\" in url or not url.isprintable() or " " in url or {".", ".."} & set(steps):
        return None
    shown = f"[{host}]" if ":" in host else unquote(host).rstrip(".")
    place = f"{shown}:{port}" if port and port != _PORTS.get(split.scheme) else shown
    query = f"?{split.query}" if split.query else ""
    return f"{split.scheme}://{place}{split.path or '/'}{query}"
