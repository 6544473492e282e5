"""One command of a shell line, and the analysis of commands that run other commands, such as `env` and `xargs`. No I/O.

If it is unclear which commands they run, the functions return too many rather than too few.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from posixpath import basename

from moot.guard.commands.coverage import depends_on_folder, git_globals, is_harmless, is_known

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


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)
_SEVERAL = re.compile(r"[\s=:]")
_AMOUNT = re.compile(r"[\d.]+[smhd]?", re.ASCII)

_SHELLS = frozenset({"ash", "bash", "csh", "dash", "fish", "ksh", "mksh", "pwsh", "rbash", "sh", "tcsh", "yash", "zsh"})
_INTERPRETERS = frozenset(
    {"awk", "bun", "deno", "gawk", "lua", "mawk", "nawk", "node", "perl", "php", "pypy", "pypy3", "ruby", "sed", "tclsh"}
)
_PYTHON = re.compile(r"python[\d.]*t?")
_LOADER = re.compile(r"ld-(?:linux|musl).*|ld\.so")
_RUNNERS = _set(
    "bpftrace builtin bunx busybox bwrap caffeinate catchsegv cgexec choom chroot chronic chrt command coproc daemonize"
    " dbus-run-session doas"
    " dtach eatmydata entr env exec expect fakechroot fakeroot firejail flock gdb hyperfine i386 ionice ld.so linux32 linux64 ltrace"
    " newgrp nice nohup npx nsenter numactl parallel perf pipx pkexec prlimit proot rlwrap rr run-parts runcon runuser runsv screen"
    " script"
    " sem setarch setpriv setsid sg ssh start-stop-daemon stdbuf strace su sudo systemd-run taskset time timeout tmux torsocks toybox ts"
    " tsocks unbuffer uname26 unshare uvx valgrind watch x86_64 xargs xvfb-run"
)
"""Commands whose arguments are another command."""
_TARGETED = _set("chroot chrt docker flock ip kubectl newgrp podman sg ssh taskset")
"""Commands whose first operand is a host, folder or container, followed by the command to run."""
_RUNNER_PAIRS = frozenset(
    {("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("hatch", "run"), ("pipenv", "run"), ("npm", "exec"), ("npm", "x"), ("pnpm", "exec")}
    | {("pnpm", "dlx"), ("yarn", "dlx"), ("yarn", "exec"), ("bundle", "exec"), ("docker", "run"), ("docker", "exec"), ("podman", "run")}
    | {("podman", "exec"), ("kubectl", "exec"), ("cargo", "run"), ("go", "run"), ("pipx", "run"), ("uv", "tool"), ("bun", "x")}
    | {("git", "bisect"), ("git", "submodule"), ("ip", "netns"), ("corepack", "npm"), ("corepack", "yarn"), ("corepack", "pnpm")}
)
_REBINDING = _set(
    ". alias at batch bind complete crontab dash declare enable eval export hash local mapfile printf read readarray readonly set"
    " shopt source trap typeset unalias unset"
)
"""Shell commands that run text, or change the meaning of later words in the line."""
_RUNNING_OPTIONS: dict[str, tuple[str, ...]] = {
    "cargo": ("--config",),
    "coreutils": ("--coreutils-prog", "--coreutils-prog-shebang"),
    "env": ("-S", "--split-string"),
    "flock": ("-c", "--command"),
    "git": (
        *("-u", "--upload-pack", "--receive-pack", "--exec", "-x", "-O", "--open-files-in-pager", "--extcmd"),
        *("--tree-filter", "--index-filter", "--msg-filter", "--env-filter", "--parent-filter", "--commit-filter", "--tag-name-filter"),
        *("--sendmail-cmd", "--smtp-server", "--to-cmd", "--cc-cmd"),
    ),
    "go": ("-exec", "--exec", "-toolexec", "--toolexec", "-vettool", "--vettool"),
    "make": ("--eval", "SHELL", ".SHELLFLAGS", "MAKE"),
    "man": ("-P", "--pager", "-H", "--html"),
    "rg": ("--pre", "--hostname-bin"),
    "rsync": ("-e", "--rsh", "--rsync-path"),
    "script": ("-c", "--command"),
    "scp": ("-S", "-o"),
    "sftp": ("-S", "-o"),
    "sg": ("-c",),
    "sort": ("--compress-program",),
    "split": ("--filter",),
    "ssh": ("-o",),
    "su": ("-c", "--command"),
    "tar": (
        "--to-command",
        "--checkpoint-action",
        "--use-compress-program",
        "-I",
        "--rsh-command",
        "--rmt-command",
        "-F",
        "--info-script",
        "--new-volume-script",
    ),
    "vim": ("-c", "--cmd"),
    "zip": ("--unzip-command", "-TT"),
}
"""Options whose value is a command."""
_PLAIN_TOOLS = _set(
    "apt apt-get brew bundle cargo conda docker dnf gem gh helm hg kubectl mkdir npm pip pip3 pnpm podman poetry rm svn touch uv"
    " yarn yum cp mv ln"
)
"""Commands outside the table that don't run a command in their arguments, unless one argument is in `_RUNNING_WORDS`."""
_RUNNING_WORDS = _set("-- compose config debug dlx exec run set shell ssh")
_TEXTS_ONLY = _set("cp gh git hg ln mkdir mv python python3 rm svn touch")
"""Commands whose arguments are never a command, except as an option or subcommand that is known to run one."""
_PREFIXES = _set("builtin command doas env exec ionice nice nohup npx setsid stdbuf sudo time timeout uvx")
"""Commands that only run the command in their arguments, which is checked separately."""
_GIT_COMMANDS = _set(
    "add am apply archive bisect blame branch bundle cat-file check-attr check-ignore check-mailmap check-ref-format checkout"
    " checkout-index"
    " cherry cherry-pick clean clone column commit commit-graph commit-tree config count-objects credential describe diff diff-files"
    " diff-index diff-tree difftool fast-export fast-import fetch fetch-pack filter-branch fmt-merge-msg for-each-ref format-patch"
    " fsck gc"
    " grep gui hash-object help index-pack init interpret-trailers log ls-files ls-remote ls-tree mailinfo mailsplit maintenance merge"
    " merge-base merge-file merge-index merge-tree mergetool mktag mktree multi-pack-index mv name-rev notes pack-objects pack-refs prune"
    " prune-packed pull push range-diff read-tree rebase reflog remote repack replace request-pull rerere reset restore rev-list"
    " rev-parse"
    " revert rm send-email send-pack shortlog show show-branch show-ref sparse-checkout stash status stripspace submodule switch"
    " symbolic-ref tag unpack-objects update-index update-ref update-server-info upload-archive upload-pack var verify-commit verify-pack"
    " verify-tag version whatchanged worktree write-tree"
)
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


def inner(words: Sequence[str]) -> Iterator[tuple[str, ...] | str]:
    """Yield what a wrapper may run: commands as words, scripts as text."""
    name = basename(words[0]) if words else ""
    if name in _SHELLS or name in ("eval", "su", "watch", "trap", "alias"):
        yield from _scripts(name, words)
    if name == "find" or name == "fd":
        yield from (tuple(words[at + 1 :]) for at, word in enumerate(words) if word.startswith(("-exec", "-ok", "-x", "-X", "--exec")))
    if name == "git":
        yield from _git_aliases(words)
    yield from (value for _, value in _running(name, words[1:]) if value)
    pair = _pair(name, words)
    if name == "git" and words[pair - 1 : pair + 1] == ("submodule", "foreach"):
        yield " ".join(words[pair + 1 :])
    elif pair or name in _RUNNERS or _LOADER.fullmatch(name):
        yield from _behind(words, pair or 1)


def _pair(name: str, words: Sequence[str]) -> int:
    """Return the position after a subcommand that runs another command, such as `docker exec`; 0 if there is none."""
    for at, word in enumerate(words[1:], 1):
        if (name, word) in _RUNNER_PAIRS:
            return at + 1
        if not word.startswith("-") and not words[at - 1].startswith("-"):
            return 0
    return 0


def runs_others(words: Sequence[str]) -> bool:
    """Return True if the words that follow these may determine which program runs."""
    name = basename(words[0]) if words else ""
    known = name in _RUNNERS or name in _REBINDING or name in _SHELLS or name in _INTERPRETERS or _pair(name, words) > 0
    return known or _PYTHON.fullmatch(name) is not None or name in ("find", "fd") or any(_running(name, words[1:]))


def hides(piece: Piece) -> bool:
    """Return True if the words of a command don't show which programs it runs."""
    if not piece.words:
        return False
    words = piece.known
    name = basename(words[0]) if words else ""
    if not piece.certain:
        return not name or runs_others(words)
    if name in _SHELLS:
        return reads_commands(piece) or not any(True for _ in _scripts(name, words))
    if name in _INTERPRETERS or _PYTHON.fullmatch(name):
        return not is_harmless(words) and (piece.fed or not runs_file(words))
    if name == "git":
        return _may_be_alias(words)
    return name in ("xargs", "parallel", "source", ".", "alias", "eval", "expect", "bind") or any(_running(name, words[1:]))


def reads_commands(piece: Piece) -> bool:
    """Return True if the piece is a shell that runs the text on its standard input."""
    words = piece.known
    if not words or not piece.fed:
        return False
    names = [words, *(command for command in inner(words) if isinstance(command, tuple))]
    return any(basename(command[0]) in _SHELLS and not any(True for _ in _scripts("sh", command)) for command in names if command)


def may_run_text(piece: Piece) -> str:
    """Return the text that a command may run, because moot doesn't know how the command uses its arguments; empty if none.

    Arguments of known tools with subcommands are returned only if they consist of several words.
    """
    words = piece.known
    name = basename(words[0]) if words else ""
    if not words or name in _TEXTS_ONLY or (piece.certain and is_harmless(words)):
        return ""
    if not piece.certain:
        return piece.text if depends_on_folder(words) and name not in _PLAIN_TOOLS else ""
    if name in _PREFIXES or name in _SHELLS or name in _INTERPRETERS:
        return ""
    if (is_known(words[0]) or name in _PLAIN_TOOLS) and not _RUNNING_WORDS & {*words[1:]}:
        return "\n".join(word for word in words if _SEVERAL.search(word))
    return "\n".join(words if _SEVERAL.search(words[0]) else words[1:])


def is_destructive(words: Sequence[str]) -> bool:
    """Return True if a permanent permission for the command should never be offered, because it can destroy data."""
    if not words:
        return False
    name = basename(words[0])
    if name in _DESTRUCTIVE or name.startswith("mkfs") or any(word in _DESTRUCTIVE_PAIRS.get(name, ()) for word in words[1:]):
        return True
    return any(isinstance(command, tuple) and command and is_destructive(command) for command in inner(words))


def runs_file(words: Sequence[str]) -> bool:
    """Return True if the command runs a script named by its first argument."""
    name = basename(words[0]) if words else ""
    runs = name in _SHELLS or name in _INTERPRETERS - {"awk", "gawk", "mawk", "nawk", "sed"} or _PYTHON.fullmatch(name) is not None
    return runs and len(words) > 1 and not words[1].startswith("-")


def _running(name: str, words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield each option whose value is a command, with that value. Abbreviated options are recognized."""
    options = _RUNNING_OPTIONS.get(name, ())
    if name == "tar" and words and not words[0].startswith("-") and {"I", "F"} & {*words[0]}:  # `tar xfI a.tar x` is `tar -xf a.tar -I x`
        yield from (("-I", word) for word in words[1:])
    for at, word in enumerate(words):
        given, equals, value = word.partition("=")
        for option in options:
            long = option.startswith("--") and len(given) > 3 and option.startswith(given)
            if given == option or long:
                following = value if equals else words[at + 1] if at + 1 < len(words) else ""
                yield option, following.removeprefix("exec=").removeprefix("!")
            elif len(option) == 2 and option.startswith("-") and word.startswith(option) and not word.startswith("--"):
                yield option, word[2:]


def _git_aliases(words: Sequence[str]) -> Iterator[tuple[str, ...] | str]:
    """Yield the commands that git may run because of settings in the line, such as aliases."""
    count = git_globals(tuple(words))
    given = words[1 : 1 + count]
    for at, word in enumerate(given):
        name, equals, value = word.partition("=")
        if at and given[at - 1] == "-c" and equals and name.lower().startswith("alias."):
            yield value[1:] if value.startswith("!") else ("git", *value.split(), *words[2 + count :])
        elif at and given[at - 1] == "-c" and equals:
            yield value.removeprefix("!")
    for before, word in zip(words[1 + count :], words[2 + count :], strict=False):
        if before in ("-c", "--config") and "=" in word:
            yield word.partition("=")[2].removeprefix("!")
    yield from (word.removeprefix("ext::") for word in words if word.startswith("ext::"))


def _may_be_alias(words: Sequence[str]) -> bool:
    count = git_globals(tuple(words))
    command = words[1 + count : 2 + count]
    return bool(command) and command[0] not in _GIT_COMMANDS


def _scripts(name: str, words: Sequence[str]) -> Iterator[str]:
    if name in ("eval", "watch"):
        yield " ".join(words[1:])
    if name == "alias":
        yield from (word.partition("=")[2] for word in words[1:] if "=" in word)
        return
    for at, word in enumerate(words[:-1]):
        if (word.startswith("-") and not word.startswith("--") and "c" in word) or word == "--command":
            later = words[at + 1 :]
            yield next((each for each in later if not each.startswith(("-", "+"))), later[0])
    if name == "trap" and len(words) > 1:
        yield words[1]


def _behind(words: Sequence[str], at: int) -> Iterator[tuple[str, ...]]:
    if "--" in words[at:-1]:
        yield tuple(words[words.index("--", at) + 1 :])
    may_be_value = False
    for place in range(at, len(words)):
        word = words[place]
        if word.startswith("-") or _ASSIGNMENT.match(word) or _AMOUNT.fullmatch(word):
            may_be_value = word.startswith("-")
            continue
        yield tuple(words[place:])
        if not may_be_value:
            if basename(words[0]) in _TARGETED and place + 1 < len(words):
                yield tuple(words[place + 1 :])
            return
        may_be_value = False
