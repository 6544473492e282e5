"""The decision whether an allow rule's wildcard may cover the words of a command. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import basename, dirname

from moot.guard.commands.table import Entry, find, is_local, names, takes_any_option

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=.*", re.ASCII | re.DOTALL)
_AMOUNT = re.compile(r"[\d.]+[smhd]?", re.ASCII)
_SYSTEM_FOLDERS = ("", "/bin", "/usr/bin", "/usr/local/bin")
_RUNNERS: dict[tuple[str, ...], str] = {
    **{(name,): "" for name in ("command", "env", "nice", "nohup", "sudo", "time", "uvx")},
    **{(name, "run"): "" for name in ("hatch", "pdm", "pipenv", "poetry", "uv")},
    ("bundle", "exec"): "",
    ("timeout",): "amount",
    ("python", "-m"): "module",
    ("python3", "-m"): "module",
}
"""Commands that run the words after them as another command, whose table entry then applies. The value is the kind of word after them."""
_MODULES = frozenset({"mypy", "pyright", "pytest", "ruff"})

_GLOBAL_FLAGS = frozenset({"--no-pager", "-P", "--no-optional-locks", "--literal-pathspecs", "--no-replace-objects", "--no-advice"})
_GLOBAL_VALUES = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace", "--config-env", "--super-prefix", "--attr-source"})


def git_globals(words: tuple[str, ...]) -> int:
    """Return how many words after `git` are options of git itself, not of the subcommand."""
    at = 1
    while at < len(words) and words[at].startswith("-"):
        at += 2 if words[at] in _GLOBAL_VALUES else 1
    return min(at, len(words)) - 1


def forms(words: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Yield equivalent forms of a command: as written, then without git options that change nothing."""
    yield words
    count = git_globals(words) if words and basename(words[0]) == "git" else 0
    harmless = tuple(word for word in words[1 : 1 + count] if word not in _GLOBAL_FLAGS)
    if count and harmless in ((), ("-C", ".")):
        yield (words[0], *words[1 + count :])


def covers(words: tuple[str, ...], sure: int, *, fed: bool = False, open_words: int = 0) -> bool:
    """Return True if a rule covers all words: the first `sure` words literally, the others by a wildcard that the table permits.

    If `fed`, the command reads text on its standard input and must be in the table, because other commands may run that text. The last
    `open_words` words may become options when the shell expands file names.
    """
    if sure >= len(words) and not fed:
        return True
    if sure < 1 or dirname(words[0]) not in _SYSTEM_FOLDERS:
        return False
    inner = _inner(words)
    if inner is not None:
        return sure > inner and covers(words[inner:], sure - inner, fed=fed, open_words=open_words)
    words = (basename(words[0]), *words[1:])
    if words[0] == "git" and (count := git_globals(words)):
        if any(word not in _GLOBAL_FLAGS for word in words[1 : 1 + count]):
            return False  # another folder or configuration can run programs
        words, sure = (words[0], *words[1 + count :]), max(1, sure - count)
    found = find(words)
    if found is None:
        return False
    entry, named = found
    if sure < named and not entry.reads:
        return False
    closed = len(words) if takes_any_option(words) else len(words) - open_words
    return _fits(entry, words[named:], 0 if fed else max(0, sure - named), closed - named)


def width(words: tuple[str, ...]) -> int:
    """Return how many leading words name the command, including runners before it such as `env`; 0 if it is not in the table."""
    if not words or dirname(words[0]) not in _SYSTEM_FOLDERS:
        return 0
    if (at := _inner(words)) is not None:
        below = width(words[at:])
        return at + below if below else 0
    found = find((basename(words[0]), *words[1:]))
    return found[1] if found is not None else 0


def is_harmless(words: tuple[str, ...], open_words: int = 0) -> bool:
    """Return True if the table permits all words of the command, so that it neither runs another program nor writes a chosen file."""
    return any(covers(words, sure, fed=True, open_words=open_words) for sure in range(1, len(words) + 1))


def depends_on_folder(words: tuple[str, ...]) -> bool:
    """Return True if files in the working folder may decide which programs the command runs."""
    if not words or dirname(words[0]) not in _SYSTEM_FOLDERS:
        return True
    if (at := _inner(words)) is not None:
        return depends_on_folder(words[at:])
    return not is_local((basename(words[0]), *words[1:]))


def is_known(name: str) -> bool:
    """Return True if the command is in the table."""
    return basename(name) in names() and dirname(name) in _SYSTEM_FOLDERS


def _inner(words: tuple[str, ...]) -> int | None:
    """Return the position of the command that a runner such as `env` runs; None if there is no runner, or it has options."""
    for count in (2, 1):
        kind = _RUNNERS.get((basename(words[0]), *words[1:count])) if len(words) > count else None
        if kind is None:
            continue
        at = count
        while at < len(words) and (_ASSIGNMENT.fullmatch(words[at]) or (kind == "amount" and _AMOUNT.fullmatch(words[at]))):
            at += 1
        if at < len(words) and not words[at].startswith("-") and (kind != "module" or words[at] in _MODULES):
            return at
    return None


def _fits(entry: Entry, words: tuple[str, ...], sure: int, closed: int) -> bool:
    """Return True if the entry covers the words after the command's name, of which a rule spells out the first `sure`.

    An option that is not in the entry must be spelled out, together with all words after it. From the position `closed` on, words can
    become options, unless they follow `--`.
    """
    operands = 0
    at = 0
    while at < len(words):
        word = words[at]
        first_letters = entry.style == "letters first" and at == 0 and not word.startswith("-")
        if word == "--" and entry.style != "words":
            if closed < len(words) and entry.most < len(words):
                return sure >= len(words)
            rest = words[at + 1 :]
            return all(_is_operand(entry, each, operands + index) or at + 1 + index < sure for index, each in enumerate(rest))
        if (word.startswith("-") and word != "-") or first_letters:
            taken = (_letters if first_letters else _option)(entry, word, words[at + 1 :])
            if taken is None or (taken == 2 and at + 1 >= sure and (at + 1 >= closed or not _is_value(entry, words[at + 1]))):
                return sure >= len(words)
            at += taken
            continue
        if at >= sure and (at >= closed or not _is_operand(entry, word, operands)):
            return False
        operands += 1
        at += 1
    return True


def _is_operand(entry: Entry, word: str, index: int) -> bool:
    return index < entry.most and (entry.operands if index else entry.first).fullmatch(word) is not None


def _is_value(entry: Entry, word: str) -> bool:
    return not word.startswith("-") and entry.value.fullmatch(word) is not None


def _letters(entry: Entry, word: str, rest: tuple[str, ...]) -> int | None:
    """Return how many words a group of option letters without `-` takes, including the value in the next word; None if it isn't covered."""
    options = [f"-{letter}" for letter in word]
    count = sum(option in entry.values for option in options)
    known = all(option in entry.flags | entry.values for option in options)
    return 1 + count if known and count <= min(1, len(rest)) else None


def _option(entry: Entry, word: str, rest: tuple[str, ...]) -> int | None:
    """Return how many words the option takes, including itself; None if it isn't covered. Abbreviated options never are."""
    name, equals, value = word.partition("=")
    if entry.style == "words" or word.startswith("--"):
        if equals:
            return 1 if name in entry.values | entry.optional and entry.value.fullmatch(value) else None
        if name in entry.flags | entry.optional:
            return 1
        return 2 if name in entry.values and rest else None
    for place, letter in enumerate(word[1:], 2):
        option, attached = f"-{letter}", word[place:]
        if option in entry.values:
            if not attached:
                return 2 if rest else None
            return 1 if entry.value.fullmatch(attached) else None
        if option in entry.optional:
            return 1 if entry.value.fullmatch(attached) else None
        if option not in entry.flags:
            return None
    return 1
