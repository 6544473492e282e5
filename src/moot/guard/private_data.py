"""Detection of private data in texts: secrets, home folders, names, addresses, and encoded data."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias, get_args
from urllib.parse import quote

from moot.guard.secrets import CODE, COUNTED, HIDDEN, SECRET_NAME, find_secrets

Kind: TypeAlias = Literal["secrets", "paths", "names", "emails", "encoded", "files", "pictures", "vendor data"]
"""`encoded` is long base64 data, which may contain anything. `vendor data` is data that vendors encrypted or attached for their own use."""

KEEPABLE: Final[frozenset[Kind]] = frozenset[Kind]({"paths", "names", "emails", "encoded", "files"})
"""Kinds that the user can choose to keep."""

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Private data in a text: its range, kind and replacement."""

    begin: int
    end: int
    kind: Kind
    instead: str


_SECRET_NAME = re.compile(SECRET_NAME, re.IGNORECASE)
_AFTER = rf"{SECRET_NAME}s?[\w-]{{0,24}}(?:\\{{0,3}}[\"'])?\s{{0,4}}(?::=|=>|[:=])\s{{0,4}}"
_QUOTED = re.compile(rf"{_AFTER}(\\{{0,3}}[\"'`])([^\n]{{3,300}}?)\1", re.IGNORECASE)
_BARE = re.compile(rf"{_AFTER}([^\s\"'`,;&{{}}\[\]()<>\\]{{6,400}})", re.IGNORECASE)
_KEY = re.compile(r"\bkey\s{0,4}[:=]\s{0,4}[\"']?([A-Za-z0-9+/_=-]{20,200})", re.IGNORECASE)

_FOLDER = r"[^/\\\s\"'`<>|:;,(){}\[\]*?&$#!=%@]{1,64}"
_HOME = re.compile(
    rf"(?:/private|/var|/export|/System/Volumes/Data)?/(?:home|Users)/({_FOLDER})|/mnt/[a-z]/Users/({_FOLDER})", re.IGNORECASE
)
_WINDOWS = re.compile(rf"[A-Za-z]:(\\{{1,4}}|/)Users\1(?:([^\\/:\"'<>|\n]{{1,64}})(?=\1)|({_FOLDER}))", re.IGNORECASE)
_ROOT = re.compile(r"(?<![\w.~/-])/root(?![\w.-])")
_EMAIL = re.compile(r"(?<![\w.%+-])[\w.+-]{1,64}(?:@|%40)(?:[\w-]{1,63}\.){1,8}[^\W\d_]{2,24}(?![\w-])")
_ENCODED = re.compile(
    r"data:[\w/+.-]{1,80}(?:;[\w=-]{1,40}){0,3};base64,[A-Za-z0-9+/=_-]{40,}"
    r"|[A-Za-z0-9+/_-]{300,}={0,2}"
    r"|(?:[A-Za-z0-9+/]{60,80}\r?\n){4,}[A-Za-z0-9+/=]{0,80}"
)

_COMMON = frozenset(
    {"root", "user", "users", "home", "admin", "administrator", "runner", "ubuntu", "debian", "node", "app", "vscode", "shared", "public"}
    | {"default", "name", "username", "someone", "example", "test", "guest", "work", "git", "you", "your", "local", "localhost"}
)
"""Folder names that don't identify anyone."""


def merge_places(places: Iterable[Place]) -> list[Place]:
    """Return the places in order, with overlapping ones merged. A merged place has the kind of the first one."""
    result: list[Place] = []
    for place in sorted(places, key=lambda place: (place.begin, -place.end)):
        if not result or place.begin >= result[-1].end:
            result.append(place)
        elif place.end > result[-1].end:
            result[-1] = replace(result[-1], end=place.end)
    return result


def is_secret_name(name: str) -> bool:
    """Return True if values with this name are secret, as for `api_key`, `Authorization` or `dbPassword`."""
    return _SECRET_NAME.search(name) is not None and COUNTED.search(name) is None


class Finder:
    """A finder of private data. It learns people's names from paths of home folders."""

    def __init__(
        self, *, secrets: Collection[str] = (), homes: Iterable[str] = (), names: Iterable[str] = (), keep: Collection[Kind] = ()
    ) -> None:
        self._secrets = tuple(secrets)
        # plain, URL-encoded, and as some agents write it in folder names
        forms = {form for home in homes if len(home) > 3 for form in (home, quote(home, safe=""), home.replace("/", "-"))}
        self._homes = sorted(forms, key=len, reverse=True)
        self._names = set[str]()
        self.keep = frozenset(keep) & KEEPABLE
        for name in names:
            self._learn(name)
        self._pattern: re.Pattern[str] | None = None

    def learn(self, text: str) -> None:
        """Learn people's names from paths of home folders in the text. Later calls of `places` find these names everywhere."""
        for shape in (_HOME, _WINDOWS):
            for found in shape.finditer(text):
                self._learn(next(filter(None, reversed(found.groups())), ""))

    def places(self, text: str) -> list[Place]:
        """Return the places of private data, in order, without overlaps."""
        return merge_places(self._all(text))

    def _all(self, text: str) -> Iterator[Place]:
        yield from (Place(begin, end, "secrets", HIDDEN) for begin, end in find_secrets(text, self._secrets))
        yield from (Place(*span, "secrets", HIDDEN) for span in _named(text))
        if "encoded" not in self.keep:
            yield from (Place(*found.span(), "encoded", f"[{len(found[0]):,} characters]") for found in _ENCODED.finditer(text))
        emails = (Place(*found.span(), "emails", "[e-mail]") for found in _EMAIL.finditer(text) if not found[0].startswith("git@"))
        whole = [*emails, *self._paths(text)]
        yield from (place for place in whole if place.kind not in self.keep)
        if "names" not in self.keep and self._names:
            if self._pattern is None:
                words = "|".join(re.escape(name) for name in sorted(self._names, key=len, reverse=True))
                self._pattern = re.compile(rf"(?<![^\W_])(?:{words})(?![^\W_])", re.IGNORECASE)
            kept = [place for place in whole if place.kind in self.keep]  # names inside kept places are kept too
            for found in self._pattern.finditer(text):
                if not any(place.begin <= found.start() and found.end() <= place.end for place in kept):
                    yield Place(*found.span(), "names", "[name]")

    def _paths(self, text: str) -> Iterator[Place]:
        for shape in (_HOME, _WINDOWS, _ROOT):
            yield from (Place(*found.span(), "paths", "~") for found in shape.finditer(text))
        for home in self._homes:
            at = text.find(home)
            while at >= 0:
                yield Place(at, at + len(home), "paths", "~")
                at = text.find(home, at + len(home))

    def _learn(self, name: str) -> None:
        if len(name) >= 3 and name.casefold() not in _COMMON and not name.isdigit():
            self._names.add(name)
            self._pattern = None


def _named(text: str) -> Iterator[tuple[int, int]]:
    """Yield the ranges of values that follow a secret's name: anything in quotes, or any other text that is not code."""
    yield from (found.span(2) for found in _QUOTED.finditer(text))
    for found in _BARE.finditer(text):
        if CODE.fullmatch(found[1]) is None and COUNTED.search(found[0][: -len(found[1])]) is None:
            yield found.span(1)
    for found in _KEY.finditer(text):
        if any(sign.isdigit() for sign in found[1]) and any(sign.isalpha() for sign in found[1]):
            yield found.span(1)
