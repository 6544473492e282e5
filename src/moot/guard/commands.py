"""Analysis of a simple shell command: its words, what an allow rule can't cover, and which other commands it runs. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from posixpath import basename


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_PLAIN_WORD = re.compile(r"[\w@%+=:,./*?\[\]~!^{}-]+", re.ASCII)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
_AMOUNT = re.compile(r"[\d.]+[smhd]?", re.ASCII)

_SHELLS = frozenset({"ash", "bash", "csh", "dash", "fish", "ksh", "sh", "tcsh", "zsh"})
_INTERPRETERS = frozenset(
    {"awk", "bun", "deno", "gawk", "lua", "mawk", "nawk", "node", "perl", "php", "pypy", "pypy3", "ruby", "sed", "tclsh"}
)
_PYTHON = re.compile(r"python[\d.]*t?")
_RUNNERS = _set(
    "builtin bunx caffeinate chroot chrt command coproc doas env exec fakeroot firejail flock ionice ltrace nice nohup npx nsenter"
    " numactl parallel pipx pkexec proot rlwrap runuser script setarch setpriv setsid ssh stdbuf strace su sudo systemd-run taskset"
    " time timeout tmux tsocks unbuffer unshare uvx watch xargs xvfb-run"
)
"""Commands whose arguments are another command."""
_RUNNER_PAIRS = frozenset(
    {("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("hatch", "run"), ("pipenv", "run"), ("npm", "exec"), ("npm", "x"), ("pnpm", "exec")}
    | {("pnpm", "dlx"), ("yarn", "dlx"), ("yarn", "exec"), ("bundle", "exec"), ("docker", "run"), ("docker", "exec"), ("podman", "run")}
    | {("podman", "exec"), ("kubectl", "exec"), ("cargo", "run"), ("go", "run"), ("pipx", "run"), ("uv", "tool"), ("bun", "x")}
)
_REBINDING = _set(
    ". alias at batch bind complete crontab dash declare enable eval export hash local mapfile printf read readarray readonly set"
    " shopt source trap typeset unalias unset"
)
"""Commands that run text or change the meaning of later words in the line. A rule covers them only if it spells them out completely."""
_RUNNING_WORDS: dict[str, tuple[str, ...]] = {
    "fd": ("-x", "-X", "--exec"),
    "find": ("-exec", "-ok", "-delete", "-fls", "-fprint"),
    "git": (
        *("-c", "--config-env", "--exec-path", "--exec", "-x", "run", "foreach", "--upload-pack", "--receive-pack", "--output", "-O"),
        *("--open-files-in-pager", "--ext-diff", "--textconv", "filter-branch", "difftool", "mergetool", "config"),
    ),
    "make": ("-f", "--file", "--eval", "-C", "--directory", "-I"),
    "man": ("-P", "--pager", "-H"),
    "rg": ("--pre",),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "scp": ("-S", "-o"),
    "sort": ("--compress-program", "-o", "--output"),
    "tar": ("--to-command", "--checkpoint-action", "--use-compress-program", "-I", "--rsh-command", "-F", "--info-script"),
    "zip": ("-T", "--unzip-command"),
}
"""With one of these words, the command runs another one, or writes although it seems to read."""
_DESTRUCTIVE = _set(
    "blkdiscard cfdisk chattr chgrp chmod chown cryptsetup dd fdisk halt init iptables kill killall mkswap mount parted pkill"
    " poweroff reboot rm rmdir setfacl shred shutdown srm sudo su doas pkexec swapoff truncate umount unlink userdel wipe wipefs"
)
_DESTRUCTIVE_PAIRS: dict[str, frozenset[str]] = {
    "git": frozenset({"clean", "reset", "push", "checkout", "restore", "filter-branch", "gc", "prune", "rebase"}),
    "docker": frozenset({"rm", "rmi", "prune", "system", "volume"}),
    "kubectl": frozenset({"delete", "drain"}),
    "find": frozenset({"-delete"}),
}


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

    @property
    def known(self) -> tuple[str, ...]:
        """The leading words, up to the first unknown one."""
        until = self.words.index(None) if None in self.words else len(self.words)
        return tuple(str(word) for word in self.words[:until])

    @property
    def spelled(self) -> str:
        """The form that rules match: words separated by single spaces and quoted if needed, or the construct as written."""
        return spelled(self.known) if self.words and len(self.known) == len(self.words) else self.text


def spelled(words: Sequence[str]) -> str:
    """Return the canonical spelling of a command."""
    return " ".join(word if _PLAIN_WORD.fullmatch(word) else "'" + word.replace("'", "'\"'\"'") + "'" for word in words)


def sure_words(words: Sequence[str]) -> int:
    """Return how many leading words an allow rule must spell out, so that a wrapper's name is not enough to allow what it runs."""
    if not words:
        return 0
    name = basename(words[0])
    if name in _REBINDING or _runs_by_word(name, words[1:]):
        return len(words)
    if name in _SHELLS or name in _INTERPRETERS or _PYTHON.fullmatch(name):
        return _script(name, words)
    at = 2 if (name, *words[1:2]) in _RUNNER_PAIRS else 1 if name in _RUNNERS else 0
    if not at:
        return 1
    while at < len(words) and (_ASSIGNMENT.match(words[at]) or (name == "timeout" and _AMOUNT.fullmatch(words[at]))):
        at += 1
    if at >= len(words) or words[at].startswith("-"):
        return len(words)
    return at + sure_words(words[at:])


def inner(words: Sequence[str]) -> Iterator[tuple[str, ...] | str]:
    """Yield what a wrapper may run: commands as words, scripts as text. Errs on the side of too many."""
    name = basename(words[0]) if words else ""
    if name in _SHELLS or name in ("eval", "su", "watch", "trap"):
        yield from _scripts(name, words)
    if name == "find" or name == "fd":
        yield from (tuple(words[at + 1 :]) for at, word in enumerate(words) if word.startswith(("-exec", "-ok", "-x", "-X", "--exec")))
    pair = (name, *words[1:2]) in _RUNNER_PAIRS
    if pair or name in _RUNNERS:
        yield from _behind(words, 2 if pair else 1)


def runs_others(words: Sequence[str]) -> bool:
    """Return whether the words after these determine what is run."""
    name = basename(words[0]) if words else ""
    known = name in _RUNNERS or name in _REBINDING or name in _SHELLS or name in _INTERPRETERS or (name, *words[1:2]) in _RUNNER_PAIRS
    return known or _PYTHON.fullmatch(name) is not None or _runs_by_word(name, words[1:])


def is_destructive(words: Sequence[str]) -> bool:
    """Return whether a permanent permission for the command should never be offered."""
    if not words:
        return False
    name = basename(words[0])
    if name in _DESTRUCTIVE or name.startswith("mkfs") or any(word in _DESTRUCTIVE_PAIRS.get(name, ()) for word in words[1:]):
        return True
    return any(isinstance(command, tuple) and command and is_destructive(command) for command in inner(words))


def _runs_by_word(name: str, words: Sequence[str]) -> bool:
    flags = _RUNNING_WORDS.get(name, ())
    return any(word == flag or (flag.startswith("-") and word.startswith(flag)) for word in words for flag in flags)


def _script(name: str, words: Sequence[str]) -> int:
    if _PYTHON.fullmatch(name) and len(words) > 2 and words[1] == "-m":
        return 3
    return len(words) if len(words) < 2 or words[1].startswith("-") else 2


def _scripts(name: str, words: Sequence[str]) -> Iterator[str]:
    if name in ("eval", "watch"):
        yield " ".join(words[1:])
    for at, word in enumerate(words[:-1]):
        if (word.startswith("-") and not word.startswith("--") and "c" in word) or word == "--command":
            yield words[at + 1]
    if name == "trap" and len(words) > 1:
        yield words[1]


def _behind(words: Sequence[str], at: int) -> Iterator[tuple[str, ...]]:
    may_be_value = False
    for place in range(at, len(words)):
        word = words[place]
        if word.startswith("-") or _ASSIGNMENT.match(word) or _AMOUNT.fullmatch(word):
            may_be_value = word.startswith("-")
            continue
        yield tuple(words[place:])
        if not may_be_value:
            return
        may_be_value = False
