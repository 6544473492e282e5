"""Matching of rule patterns, and the narrowest pattern for a call. To be safe, allow rules match narrowly and deny rules broadly."""

from __future__ import annotations

import glob
import posixpath
import re
from fnmatch import fnmatchcase
from urllib.parse import unquote, urlsplit

from moot.guard.commands import Piece, is_destructive, runs_others, spelled, sure_words

EVERYTHING = "*"

_SUBCOMMAND = re.compile(r"[A-Za-z][A-Za-z0-9_:-]*", re.ASCII)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_PORTS = {"http": 80, "https": 443}


# ── commands ────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────


def allows(pattern: str, piece: Piece) -> bool:
    """Return whether an allow rule covers the command: all words are known, everything was parsed, and `*` hides no wrapper."""
    if pattern == EVERYTHING:
        return True
    if piece.leftover or not piece.words or len(piece.known) < len(piece.words):
        return False
    words = piece.known
    return fits(piece.spelled, pattern) and len(literal(pattern)) >= len(spelled(words[: sure_words(words)]))


def forbids(pattern: str, piece: Piece) -> bool:
    """Return whether a deny or ask rule matches any spelling of the command."""
    texts = [piece.text, piece.spelled]
    if piece.known:
        texts.append(spelled((posixpath.basename(piece.known[0]), *piece.known[1:])))
    return any(fits(text, pattern) for text in texts)


def could_match(pattern: str, piece: Piece) -> bool:
    """Return whether a partly unknown command may turn out to match the pattern."""
    if len(piece.known) == len(piece.words):
        return False
    if runs_others(piece.known):
        return True
    known, wanted = spelled(piece.known), literal(pattern)
    return known.startswith(wanted) or wanted.startswith(known)


def narrowest(piece: Piece) -> tuple[tuple[str, ...], bool]:
    """Return patterns that cover the command, narrowest first, and whether a permanent rule may be offered. There may be none."""
    words = piece.known
    if piece.leftover or not words or len(words) < len(piece.words):
        return (), False
    exact = glob.escape(piece.spelled)
    sure = sure_words(words)
    lasting = piece.spelled.isascii() and not is_destructive(words)
    if sure >= len(words) > 1 or not lasting:
        return (exact,), lasting and sure < len(words)
    plain = next((at for at, word in enumerate(words) if not _SUBCOMMAND.fullmatch(word)), len(words)) or 1
    named = max(sure, plain)
    wider = f"{glob.escape(spelled(words[:named]))} *"
    if named == len(words):
        return (exact, wider), True
    return ((wider, exact) if named > 1 else (exact, wider)), True


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
    """Return whether the pattern matches. `git status *` also matches `git status`, because the space is a word border."""
    return fnmatchcase(text, pattern) or (pattern.endswith(" *") and fnmatchcase(text, pattern[:-2]))


# ── paths and addresses ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def spellings(subject: str, directory: str) -> tuple[list[str], list[str]]:
    """Return the spellings of a path or URL that an allow rule may match, and those that a deny rule may match."""
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
