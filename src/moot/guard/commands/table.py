"""The table of safe options: for each known command, the words that an allow rule's wildcard may cover.

An entry has only options and operands that neither run another program nor name a file to write. A command that isn't in the table is
covered only if a rule spells out every word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

Style: TypeAlias = Literal["letters", "words", "letters first"]


@dataclass(frozen=True, slots=True)
class Entry:
    """The words that a wildcard may cover after one command."""

    flags: frozenset[str]
    """Options without a value."""
    values: frozenset[str]
    """Options whose value is attached or in the next word."""
    optional: frozenset[str]
    """Options whose value can only be attached."""
    operands: re.Pattern[str]
    """Pattern that operands must match."""
    first: re.Pattern[str]
    """Pattern that the first operand must match."""
    most: int
    """Maximum number of operands."""
    value: re.Pattern[str]
    """Pattern that the values of options must match."""
    style: Style
    """`letters`: `-ab` means `-a -b`. `words`: `-ab` is one option. `letters first`: the first word may be letters without `-`."""
    reads: bool
    """True if the command only reads, so that a wildcard may also cover the name of the subcommand."""


ANY = r"(?s).*"
NONE = r"(?!)"
NAME = r"[A-Za-z0-9][\w.-]*"
REFERENCE = r"(?!.*\.\.)[A-Za-z0-9][\w./-]*"
IN_PROJECT = r"(?![/~@-])(?!(?:.*/)?\.\.(?:/|$))[^\x00:]+(?:::[^\x00]*)?"
GO_PACKAGE = r"\.|\.\.\.|\./(?!(?:.*/)?\.\.(?:/|$))[\w./-]*"
NO_SIGNATURE = r"(?s)(?!.*(?:%G|signature)).*"
"""Values of git's format options, except those with placeholders that run a program to check signatures."""


def _entry(
    options: str,
    operands: str = ANY,
    *,
    first: str = "",
    most: int = 10_000,
    value: str = ANY,
    style: Style = "letters",
    reads: bool = True,
) -> Entry:
    """Parse an entry. `-abc` and `--word` are flags, `-n:` and `--word:` have a value, `-u?` and `--word?` may have an attached one."""
    found: dict[str, set[str]] = {"": set(), ":": set(), "?": set()}
    for option in options.split():
        kind = option[-1] if option[-1] in ":?" else ""
        name = option.removesuffix(kind) if kind else option
        single = style != "words" and not name.startswith("--")
        found[kind].update((f"-{letter}" for letter in name[1:]) if single else (name,))
    flags, values, optional = (frozenset(found[kind]) for kind in ("", ":", "?"))
    others, one, text = (re.compile(pattern, re.ASCII) for pattern in (operands, first or operands, value))
    return Entry(flags, values, optional, others, one, most, text, style, reads)


_DIFF = """
    -puswbaRzWq -U: -M? -C? -S: -G: --unified: --stat? --numstat --shortstat --summary --name-only --name-status --check --color? --no-color
    --word-diff? --color-words --cached --staged --merge-base --raw --minimal --patience --histogram --ignore-all-space
    --ignore-space-change --ignore-blank-lines --no-ext-diff --no-textconv --full-index --binary --diff-filter: --relative? --exit-code
    --function-context --quiet --no-renames --find-renames? --patch --patch-with-stat --no-patch --compact-summary --no-prefix
"""
_LOG = f"""
    {_DIFF} -n: -icgmEF -0123456789 -L: --oneline --graph --decorate? --no-decorate --all --branches? --tags? --remotes? --max-count:
    --skip: --since: --after: --until: --before: --author: --committer: --grep: --no-merges --merges --first-parent --reverse --follow
    --date: --format? --pretty? --abbrev-commit --abbrev? --topo-order --date-order --left-right --not --full-history --walk-reflogs --cc
"""
_SUM = "-bctw --binary --check --text --quiet --status --strict --warn --ignore-missing"
_GREP = """
    -EFGPivwxcLlqsbHhnTaIrRyzo -e: -f: -m: -A: -B: -C: -0123456789 --regexp: --ignore-case --invert-match --word-regexp --line-regexp
    --count --files-with-matches --files-without-match --max-count: --only-matching --quiet --silent --line-number --with-filename
    --no-filename --text --recursive --include: --exclude: --exclude-dir: --extended-regexp --fixed-strings --perl-regexp --color?
    --after-context: --before-context: --context: --null
"""
_CARGO = """
    -vq -p: -j: --release --all --workspace --package: --exclude: --features: --all-features --no-default-features --lib --bins --bin:
    --tests --test: --examples --example: --benches --all-targets --verbose --quiet --locked --offline --frozen --no-run --no-fail-fast
"""
_GO = "-v -race -short -count: -run: -bench: -timeout: -cover -tags: -benchmem -failfast -parallel: -cpu: -list: -skip: -a -n -p:"
_PYTEST = """
    -vqxsl -k: -m: -n: -r: --lf --last-failed --ff --failed-first --sw --stepwise --maxfail: --tb: --durations: --co --collect-only
    --no-header --no-summary --verbose --quiet --exitfirst --showlocals --color: --strict-markers --disable-warnings --no-cov --cov?
"""

_SYSTEM: dict[str, Entry] = {
    "b2sum": _entry(_SUM),
    "base64": _entry("-di -w: --decode --ignore-garbage --wrap:"),
    "basename": _entry("-az -s: --multiple --suffix: --zero"),
    "cat": _entry("-AbeEnstTuv --show-all --number --number-nonblank --show-ends --show-tabs --squeeze-blank"),
    "cd": _entry("-LP", IN_PROJECT, most=1),
    "cksum": _entry(""),
    "cmp": _entry("-bls -n: --bytes: --silent --quiet --verbose --print-bytes"),
    "column": _entry("-tx -s: -c: --table --separator:"),
    "command -v": _entry("", NAME),
    "comm": _entry("-123z --check-order --nocheck-order"),
    "cut": _entry("-sz -b: -c: -d: -f: --bytes: --characters: --delimiter: --fields: --complement --only-delimited"),
    "date": _entry("-uR -d: -I? -r: --utc --date: --iso-8601? --reference:", r"\+.*"),
    "df": _entry("-ahHiklT --all --human-readable --inodes --total --print-type"),
    "diff": _entry(
        "-qurNwbBEiyasTtpZ -U: -C: -x: -W: --brief --unified? --recursive --new-file --ignore-all-space --ignore-space-change"
        " --ignore-case"
        " --side-by-side --color? --exclude: --strip-trailing-cr --suppress-common-lines --report-identical-files --text"
    ),
    "dirname": _entry("-z --zero"),
    "du": _entry("-abchHklLmsSx0 -d: --all --human-readable --summarize --max-depth: --total --apparent-size --exclude:"),
    "echo": _entry("-neE"),
    "egrep": _entry(_GREP),
    "false": _entry(""),
    "fgrep": _entry(_GREP),
    "file": _entry("-biLhkz0 --brief --mime --mime-type --mime-encoding --dereference"),
    "find": _entry(
        "-name: -iname: -path: -ipath: -wholename: -regex: -iregex: -type: -maxdepth: -mindepth: -mtime: -mmin: -newer: -size:"
        " -user: -group:"
        " -perm: -links: -print -print0 -ls -not -o -a -or -and -empty -prune -xdev -mount -readable -writable -executable -true"
        " -false -L -H"
        " -P -depth -quit -printf:",
        style="words",
    ),
    "fold": _entry("-bs -w: --bytes --spaces --width:"),
    "free": _entry("-bkmghtw --human --total --wide"),
    "grep": _entry(_GREP),
    "head": _entry("-qvz -n: -c: -0123456789 --lines: --bytes: --quiet --silent --verbose"),
    "hostname": _entry("-fsidI", NONE),
    "id": _entry("-ugGnrz --user --group --groups --name --real", NAME),
    "jq": _entry("-nrcseSMCja --null-input --raw-output --compact-output --slurp --exit-status --sort-keys --monochrome-output --tab"),
    "ls": _entry(
        "-aAbBcCdDfFgGhHiklLmnNopqQrRsStuUvxXZ1 -I: -T: -w: --all --almost-all --author --color? --directory --classify?"
        " --group-directories-first"
        " --human-readable --inode --no-group --numeric-uid-gid --recursive --reverse --size --sort? --time? --time-style?"
        " --full-time --format?"
    ),
    "md5sum": _entry(_SUM),
    "mkdir": _entry("-pv --parents --verbose", reads=False),
    "nl": _entry("-b: -n: -s: -w: -v:"),
    "nproc": _entry("--all --ignore:", NONE),
    "od": _entry("-abcdfiloxsv -A: -j: -N: -t: -w?"),
    "paste": _entry("-sz -d: --serial --delimiters:"),
    "ps": _entry("-eAafjlFHLwxu -o: -p: -C: -U: -G: -t: --pid: --sort: --forest", r"[a-z0-9,]+"),
    "pwd": _entry("-LP", NONE),
    "readlink": _entry("-femnsvz --canonicalize --canonicalize-existing --canonicalize-missing"),
    "realpath": _entry("-emLPqsz --canonicalize-existing --canonicalize-missing --relative-to: --relative-base: --no-symlinks"),
    "rev": _entry(""),
    "rg": _entry(
        "-iSsvwxclLnNHIoFPUuaqp0. -e: -f: -g: -t: -T: -m: -A: -B: -C: -r: -d: -j: -M: --ignore-case --smart-case --case-sensitive"
        " --invert-match"
        " --word-regexp --count --count-matches --files --files-with-matches --files-without-match --line-number --no-line-number"
        " --hidden"
        " --no-ignore --glob: --iglob: --type: --type-not: --max-count: --max-depth: --after-context: --before-context: --context:"
        " --only-matching"
        " --fixed-strings --multiline --pcre2 --no-heading --heading --color: --json --stats --sort: --sortr: --replace:"
        " --no-filename --text"
    ),
    "sed": _entry("-nEsuz --quiet --silent --regexp-extended", first=r"[0-9$,;pq= ]+"),
    "seq": _entry("-w -s: -f:", r"-?[\d.]+"),
    "sha1sum": _entry(_SUM),
    "sha256sum": _entry(_SUM),
    "sha512sum": _entry(_SUM),
    "sleep": _entry("", r"[\d.]+[smhd]?"),
    "sort": _entry(
        "-bdfgiMhnRrVcCmsuz -k: -t: -S: --ignore-leading-blanks --dictionary-order --ignore-case --general-numeric-sort --month-sort"
        " --human-numeric-sort --numeric-sort --reverse --version-sort --check? --key: --merge --stable --field-separator: --unique"
    ),
    "stat": _entry("-Lft -c: --dereference --file-system --format: --printf: --terse"),
    "strings": _entry("-a -n: -t: -e: --all --bytes: --radix: --encoding:"),
    "tac": _entry("-br -s: --before --regex --separator:"),
    "tail": _entry("-fFqvz -n: -c: -s: -0123456789 --lines: --bytes: --follow? --quiet --verbose --pid: --sleep-interval:"),
    "tar": _entry("-tvzjJR -f: --list --verbose --gzip --bzip2 --xz --file:", value=r"[^:]*", style="letters first"),
    "tr": _entry("-cCdst --complement --delete --squeeze-repeats --truncate-set1"),
    "tree": _entry("-adfihpsugDFCn -L: -I: -P: --dirsfirst --noreport --du --prune --gitignore", IN_PROJECT),
    "true": _entry(""),
    "uname": _entry("-asnrvmpio", NONE),
    "uniq": _entry("-cdDiuz -f: -s: -w: --count --repeated --unique --ignore-case", most=1),
    "uptime": _entry("-ps", NONE),
    "wc": _entry("-clmLw --bytes --chars --lines --words --max-line-length"),
    "which": _entry("-a"),
    "whoami": _entry("", NONE),
    "xxd": _entry("-bpu -l: -s: -c: -g:", most=1),
}

_GIT: dict[str, Entry] = {
    "git add": _entry("-AuvnN --all --update --verbose --dry-run --intent-to-add", reads=False),
    "git blame": _entry("-wltsepcfn -L: -M? -C? --porcelain --date: --since: --line-porcelain"),
    "git branch": _entry(
        "-arv -0123456789 --list --all --remotes --verbose --show-current --merged? --no-merged? --contains? --sort: --format:"
        " --color? --no-color",
        NONE,
        value=NO_SIGNATURE,
    ),
    "git cat-file": _entry("-tspe", REFERENCE + r"|HEAD(?::.*)?|[\w./-]+:.*"),
    "git commit": _entry("-aqvs -m: --message: --all --quiet --verbose --amend --no-edit --allow-empty --signoff", reads=False),
    "git config": _entry("-lz --list --get: --get-all: --show-origin --show-scope --global --local --system --name-only", NONE),
    "git describe": _entry("--tags --always --dirty? --long --abbrev? --all --match: --exact-match --first-parent"),
    "git diff": _entry(_DIFF),
    "git fetch": _entry("-qvptn -j: --quiet --verbose --prune --all --tags --no-tags --depth: --dry-run", REFERENCE, reads=False),
    "git grep": _entry(
        "-EFGPivwclLnaIhHorpW -e: -f: -A: -B: -C: -m: --cached --untracked --no-index --ignore-case --word-regexp --line-number --count"
        " --files-with-matches --name-only --perl-regexp --fixed-strings --extended-regexp --and --or --not --all-match"
        " --show-function --heading"
        " --break --color? --no-color --max-depth: --context: --only-matching"
    ),
    "git init": _entry("-q -b: --quiet --bare --initial-branch:", IN_PROJECT, reads=False),
    "git log": _entry(_LOG, value=NO_SIGNATURE),
    "git ls-files": _entry(
        "-cdmosuktvz -x: --cached --deleted --modified --others --stage --unmerged --exclude-standard --exclude: --full-name"
        " --error-unmatch"
    ),
    "git ls-remote": _entry("-htq --heads --branches --tags --refs --quiet --exit-code", REFERENCE, reads=False),
    "git ls-tree": _entry("-rtdlz --name-only --name-status --full-name --full-tree --long"),
    "git merge-base": _entry("-a --all --is-ancestor --fork-point --octopus"),
    "git push": _entry("-qvun --quiet --verbose --set-upstream --tags --follow-tags --dry-run --porcelain", REFERENCE, reads=False),
    "git remote": _entry("-v --verbose", NONE),
    "git rev-list": _entry("-n: --count --max-count: --all --since: --until: --no-merges --merges --first-parent --reverse --left-right"),
    "git rev-parse": _entry(
        "-q --show-toplevel --abbrev-ref? --short? --verify --git-dir --absolute-git-dir --git-common-dir --is-inside-work-tree"
        " --show-prefix --all"
        " --is-bare-repository --is-shallow-repository --symbolic-full-name --quiet"
    ),
    "git shortlog": _entry("-snec --summary --numbered --email --committer --since: --until: --all --no-merges"),
    "git show": _entry(_LOG, value=NO_SIGNATURE),
    "git show-ref": _entry("-hdqs --heads --tags --head --verify --quiet --hash?"),
    "git stash list": _entry("", NONE),
    "git status": _entry(
        "-sbzv -u? --short --branch --porcelain? --long --show-stash --ignored? --untracked-files? --column? --no-column --ahead-behind"
        " --no-ahead-behind --renames --no-renames --find-renames? --ignore-submodules? --verbose"
    ),
    "git tag": _entry("-l -n? --list --sort: --contains? --no-contains? --merged? --no-merged? --points-at?", NONE, value=NO_SIGNATURE),
    "git worktree list": _entry("-vz --verbose --porcelain", NONE),
}

_TOOLS: dict[str, Entry] = {
    **{f"cargo {name}": _entry(_CARGO, NAME, reads=False) for name in ("bench", "build", "check", "clippy", "doc", "test")},
    "cargo fmt": _entry("-vq --all --check --verbose --quiet", NONE, reads=False),
    "cargo tree": _entry("-i: -e: -p: -d --depth: --duplicates --invert: --edges:", NONE, reads=False),
    "docker images": _entry("-aq -f: --all --digests --filter: --format: --quiet --no-trunc", NAME),
    "docker logs": _entry("-ft -n: --follow --tail: --since: --until: --timestamps --details", NAME),
    "docker ps": _entry("-aqlsn -f: --all --filter: --format: --quiet --latest --no-trunc --size", NONE),
    "go build": _entry(_GO, GO_PACKAGE, style="words", reads=False),
    "go env": _entry("-json", r"[A-Z0-9_]+", style="words"),
    "go test": _entry(_GO, GO_PACKAGE, style="words", reads=False),
    "go version": _entry("", NONE),
    "go vet": _entry("-v -tags:", GO_PACKAGE, style="words", reads=False),
    "make": _entry("-ksnBi -j? --keep-going --silent --quiet --dry-run --always-make --jobs?", NAME, reads=False),
    "mypy": _entry("-p: -m: --strict --pretty --no-incremental --ignore-missing-imports --show-error-codes", IN_PROJECT, reads=False),
    "npm run": _entry("-s --silent --if-present", r"[A-Za-z0-9][\w:.-]*", most=1, reads=False),
    "npm test": _entry("-s --silent", NONE, reads=False),
    "pyright": _entry("--outputjson --stats --warnings --pythonversion: --level:", IN_PROJECT, reads=False),
    "pytest": _entry(_PYTEST, IN_PROJECT, reads=False),
    "ruff check": _entry(
        "-qvsn --fix --no-fix --diff --quiet --verbose --select: --ignore: --extend-select: --output-format: --statistics"
        " --no-cache --show-fixes",
        IN_PROJECT,
        reads=False,
    ),
    "ruff format": _entry("-qvsn --check --diff --quiet --verbose --no-cache --line-length:", IN_PROJECT, reads=False),
}

TABLE: dict[tuple[str, ...], Entry] = {tuple(name.split()): entry for name, entry in {**_SYSTEM, **_GIT, **_TOOLS}.items()}
"""Entries by the words of the command."""

_DEPTH = max(map(len, TABLE))

_ANY_OPTION = frozenset(
    (
        *("b2sum", "base64", "basename", "cat", "cksum", "cmp", "comm", "cut", "df", "dirname", "du", "echo", "egrep", "fgrep", "fold"),
        *("grep", "head", "ls", "md5sum", "nl", "od", "paste", "readlink", "realpath", "rev", "sha1sum", "sha256sum", "sha512sum"),
        *("stat", "strings", "tac", "tail", "wc", "which"),
    )
)
"""Commands that have no option that runs a program or writes a file. It is harmless if a file name becomes one of their options."""


def takes_any_option(words: tuple[str, ...]) -> bool:
    """Return True if no option of the command runs a program or writes a file."""
    return words[0] in _ANY_OPTION


def is_local(words: tuple[str, ...]) -> bool:
    """Return True if the command is in the table and files in its working folder can't make it run programs."""
    return words[0] in _SYSTEM or " ".join(words[:2]) in _SYSTEM


@cache
def names() -> frozenset[str]:
    """Return the names of all commands in the table."""
    return frozenset(words[0] for words in TABLE)


def find(words: tuple[str, ...]) -> tuple[Entry, int] | None:
    """Return a command's entry and the number of words that name it, or None if it is not in the table."""
    for count in range(min(_DEPTH, len(words)), 0, -1):
        if (entry := TABLE.get(words[:count])) is not None:
            return entry, count
    return None
