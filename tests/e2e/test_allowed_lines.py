"""Lines that rules allow are run for real; the kernel reports every program that they start."""

from __future__ import annotations

import itertools
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from posixpath import basename

import pytest

from lanes import missing
from moot.config.settings import Permissions, Rule
from moot.guard.shell import split
from moot.runtime.approvals.policy import decide
from moot.tools.builtin.shell import Shell

pytestmark = pytest.mark.slow

HELPERS = {"git": r"git.*|sh", "tar": "gzip|bzip2|xz", "make": "sh|echo", "timeout": "ls", "env": "ls", "nice": "ls", "command": "ls"}
"""Programs that a safe use of a command may start."""

TAR = [
    *("--to-command=E", "--to-comm=E", "--to-c E", "--use-compress-program=E", "--use-comp E", "-I E", "-IE", "-F E -M -L1"),
    *("--checkpoint=1 --checkpoint-action=exec=E", "--checkpoint=1 --checkpoint-act=exec=E", "--rsh-command=E --file=host:x"),
]
ATTACKS = [
    *(
        f"{base} {option}"
        for base in ("tar xf a.tar", "tar -xf a.tar", "tar tf a.tar", "tar --list --file=a.tar", "tar xvf a.tar")
        for option in TAR
    ),
    *(f"tar {option} -xf a.tar" for option in TAR),
    *(
        f"git {command} {option}"
        for command in ("fetch", "ls-remote", "pull")
        for option in ("--upload-pack=E .", "--upload-pack E .", "--upload-pa=E .", "--upload-p E .", ". --upload-pa=E", "ext::E")
    ),
    *(f"git clone {option} . copy" for option in ("-u E", "-uE", "--upload-pack=E", "--upload-pa E", "-qu E", "-c core.sshCommand=E")),
    *(
        f"git {option}"
        for option in (
            *(
                "-c core.fsmonitor=E status",
                "-c alias.x=!E x",
                "-c diff.external=E diff HEAD~1",
                "-p -c core.pager=E log",
                "-C repo status",
            ),
            *(
                "--git-dir=repo/.git status",
                "--git-dir repo/.git status -s",
                "--exec-path=. status",
                "grep -OE a",
                "grep --open-files-in=E a",
            ),
            *(
                "rebase --exec E HEAD~1",
                "rebase -x E HEAD~1",
                "bisect run E",
                "submodule foreach E",
                "difftool -x E -y HEAD~1",
                "diff --ext-diff",
            ),
            *("-c core.hooksPath=. commit -m x --allow-empty", "--no-pager -c core.fsmonitor=E status", "-C repo --no-pager status"),
            *(
                "push --receive-pack=E . HEAD",
                "push --exec=E . HEAD",
                "config core.fsmonitor E",
                "filter-branch -f --tree-filter E",
                "send-pack --exec=E .",
            ),
            *("log --format=%G?", "-c gpg.program=E log --show-signature", "-P -C repo status", "commit -F E", "diff --output=E"),
        )
    ),
    *("tar tfI a.tar E", "tar tvfI a.tar E", "tar tfF a.tar E", "tar tfIv a.tar E", "find -- -exec E ;", "find . -- -exec E {} +"),
    *("cd repo && make hello", "cd repo; make -s", "(cd repo && timeout 5 make)", "cd repo && ls && make hello", "cd repo && ./run"),
    *("cd listed && tar tf a.tar *", "cd listed && tar tvf a.tar *", "cd listed && tar --list --file=a.tar [-]*"),
    *("cd repo && git status", "cd repo; git diff", "cd bare && git status", "(cd repo && git log)", "pushd repo && git status"),
    *(f"split {option} f" for option in ("--filter=E", "--filter E", "--filt=E", "-l1 --fil E", "-n2 --filter=E")),
    *(
        f"sort {option} f"
        for option in ("--compress-program=E -S1b", "--compress-prog E", "-o E", "--output=E", "--outp=E", "-T. --compress=E")
    ),
    *(f"make {option}" for option in ("SHELL=E", "-f evil.mk", "-fevil.mk", "--file=evil.mk", "--makefile evil.mk", "--eval='$(shell E)'")),
    *(
        f"make {option}"
        for option in ("-C repo", "-I repo -f evil.mk", "MAKE=E", ".SHELLFLAGS=E", "-e SHELL=E", "--ev='$(shell E)'", "-E '$(shell E)'")
    ),
    *(
        f"go {option}"
        for option in ("test -exec E ./...", "test -exec=E ./...", "build -toolexec=E", "build -toolexec E ./...", "vet -vettool=E")
    ),
    *(
        f"find . {option}"
        for option in ("-exec E {} +", "-exec E ;", "-execdir E {} +", "-name f -exec E {} +", "-ok E ;", "-fprint E", "-delete")
    ),
    *(
        f"sed {option} f"
        for option in ("'1e E'", "-n '1e E'", "s/a/E/e", "'1w E'", "-f script", "-i 1p", "-n -e '1e E'", "--expression='1e E'")
    ),
    *(
        f"{name} E"
        for name in (
            "env",
            "nice",
            "nohup",
            "setsid",
            "stdbuf -o0",
            "timeout 5",
            "time",
            "command",
            "exec",
            "env A=1",
            "env -i",
            "busybox sh",
        )
    ),
    *(
        "xargs -a names",
        "xargs E < f",
        "echo E | xargs env",
        "find . -name f | xargs E",
        "env -S E",
        "env -SE",
        "env --split-str=E",
        "linux64 E",
    ),
    *(
        "sh -c E",
        "bash -c E",
        "sh script",
        "bash script",
        "echo E | sh",
        "cat script | sh",
        "cat script | bash -s",
        "sh < script",
        "sh <<< E",
        "sh <<X\nE\nX",
    ),
    *(
        "awk 'BEGIN{system(\"E\")}'",
        "awk -f script",
        "perl -e 'system(\"E\")'",
        "python3 -c 'import os; os.system(\"E\")'",
        "eval E",
        ". ./script",
        "source ./script",
    ),
    *(
        "ls $(E)",
        "ls `E`",
        'ls "$(E)"',
        "ls; E",
        "ls && E",
        "ls || E",
        "ls | E",
        "ls & E",
        "ls\nE",
        "cat <(E)",
        "ls > >(E)",
        "ls {$(E),x}",
        "ls ${x:-$(E)}",
    ),
    *(
        "x=E; $x",
        "alias ls=E; ls",
        "ls() { E; }; ls",
        "PATH=.:$PATH ls",
        "trap E EXIT",
        "for i in 1; do E; done",
        "if ls; then E; fi",
        "while E; do ls; done",
    ),
    *(
        "rg --pre E a",
        "rg --pre=E a",
        "rg --hostname-bin=E a",
        "grep a f > E",
        "cat f >> E",
        "uniq f E",
        "xxd f E",
        "tree -o E",
        "cp evil ls",
        "./ls",
        "./ls -la",
    ),
    *(
        "pytest -p evil",
        "pytest --pdbcls=x:E",
        "date --file=f -s now",
        "man -P E ls",
        "zip -T -TT E x.zip f",
        "rsync -e E f host:",
        "ssh -oProxyCommand=E h",
    ),
]
"""Lines that start the program E, or write a file with it."""

SAFE = {
    "ls": ["-la", "-1 .", "--color=auto", "-la -- .", "'f'", "*.tar"],
    "cat": ["f", "-n f", "-- f", "f f", "f | head -1", "f | sort | uniq -c"],
    "head": ["-n 1 f", "-2 f", "--lines=1 f", "-qn1 f"],
    "tail": ["-n 1 f", "-1 f", "--lines 1 f"],
    "wc": ["-l f", "-lw f", "--lines f"],
    "sort": ["f", "-u f", "-k 1 f", "-rn f", "--reverse f", "--key=1 f"],
    "grep": ["a f", "-rn a .", "-e a f", "--include='*.py' -r a .", "-c a f; ls"],
    "find": [". -name f", ". -maxdepth 1 -type f", ". -name '*.tar' -print"],
    "sed": ["-n 1p f", "-n '1,2p' f", "-n '$p' f"],
    "tar": ["tf a.tar", "-tf a.tar", "tvf a.tar", "--list --file=a.tar", "-tvf a.tar", "tzf a.tgz"],
    "git": [
        "status",
        "status -s",
        "log --oneline -2",
        "diff HEAD~1",
        "show --stat HEAD",
        "branch -a",
        "--no-pager log -1",
        "-C . status",
        "ls-files",
    ],
    "git fetch": ["-q origin", "--prune origin", "--all"],
    "git add": ["f", "-A", "-- f"],
    "git push": ["-q origin HEAD", "--dry-run origin HEAD"],
    "make": ["hello", "-s hello", "-j2 hello", "-n"],
    "cut": ["-c1 f", "-d: -f1 f"],
    "diff": ["f f", "-u f f"],
    "timeout 5 ls": ["-la", "f"],
    "env A=1 ls": ["-la"],
    "nice ls": ["-l"],
    "stat": ["f", "-c %s f"],
    "mkdir": ["-p new", "new/er"],
    "echo": ["a b", "-n x", "'$(E)'", "'; E'", "\\`E\\`", '"; E"'],
}


def with_program(line: str, program: str) -> str:
    """Return the line with the placeholder E replaced."""
    return re.sub("(?<![A-Z]{2})E(?![A-Z])", program, line)


def widths(line: str) -> Iterator[str]:
    """Yield allow rules of every width for a line, without those that spell out the program E."""
    words = line.replace("(", " ").split()
    for count in range(1, len(words)):
        for end in (" *", "*", "?*", " ?*"):
            yield " ".join(words[:count]) + end


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if shutil.which("strace") is None:
        missing("strace", "strace is not installed: apt-get install strace")
    if subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], check=False, capture_output=True).returncode:
        missing("strace", "the kernel does not allow this process to trace others")
    here = tmp_path_factory.mktemp("lines")
    evil = here / "evil"
    evil.write_text("#!/bin/sh\nexit 0\n")
    evil.chmod(0o755)
    shutil.copy(evil, here / "ls")
    for name, text in {"f": "a\nb\n", "names": f"{evil}\n", "script": f"{evil}\n", "Makefile": "hello:\n\t@echo hello\n"}.items():
        (here / name).write_text(text)
    (here / "evil.mk").write_text(f"hello:\n\t@{evil}\n")
    commands = """
        tar cf a.tar f && tar czf a.tgz f
        git init -q -b main . && git config user.email a@b && git config user.name a
        git add f && git commit -qm one && echo c >> f && git commit -qam two
        git clone -q --bare . origin.git && git remote add origin "$PWD/origin.git"
        git init -q repo && git -C repo config core.fsmonitor "$PWD/evil" && cp evil.mk repo/Makefile && cp evil repo/run
        mkdir listed && cp a.tar evil listed && : > "listed/--use-compress-program=sh evil"
        git init -q --bare bare && git -C bare config core.fsmonitor "$PWD/evil"
    """
    subprocess.run(["bash", "-ec", commands], cwd=here, check=True, capture_output=True, env=environment(here))
    return here


def environment(here: Path) -> dict[str, str]:
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(here), "LANG": "C", "GIT_CONFIG_NOSYSTEM": "1", "GIT_EDITOR": "true"}


def executed(folder: Path, lines: list[str]) -> list[set[str]]:
    """Run the lines and return the names of the programs that each one started."""
    trace = folder.parent / "trace"
    script = "\n".join(f"/usr/bin/env MARK={at} /bin/true\n( {line}\n) </dev/null >/dev/null 2>&1" for at, line in enumerate(lines))
    command = ["strace", "-f", "-qq", "-s", "4096", "-e", "trace=execve", "-e", "signal=none", "-o", str(trace), "bash", "-c", script]
    subprocess.run(command, cwd=folder, env=environment(folder), stdin=subprocess.DEVNULL, check=False, capture_output=True)
    found: list[set[str]] = []
    for text in trace.read_text(errors="replace").splitlines():
        call = re.search(r'execve\("([^"]+)", \[(.*?)\]', text)
        if call is None:
            continue
        if '"MARK=' in call[2]:
            found.append(set())
        elif found and call[2] != '"/bin/true"':
            found[-1].add(basename(call[1]))
    return found


def expected(line: str) -> re.Pattern[str]:
    """Return the names of programs that the line may start."""
    names = {basename(str(piece.words[0])) for piece in split(line) or () if piece.words}
    return re.compile("|".join([*map(re.escape, names), *(HELPERS[name] for name in names if name in HELPERS)]))


def allowed(line: str, rules: list[str]) -> bool:
    permissions = Permissions(rules=tuple(Rule("shell", "allow", pattern) for pattern in rules))
    return decide(permissions, "ask", Shell(), line).action == "allow"


def test_the_programs_that_allowed_lines_start_are_those_that_rules_allow(folder: Path) -> None:
    evil = str(folder / "evil")
    everyday = [f"{name} *" for name in SAFE]
    attacks = [with_program(line, evil) for line in ATTACKS]
    attacks += [re.sub(r"(--?[a-z-]{4,})", r"'\1'", line) for line in attacks[::3]]  # the same, quoted
    safe = [with_program(f"{name} {rest}", evil) for name, rests in SAFE.items() for rest in rests]
    safe += [
        f"{one}{joint}{two}"
        for (one, two), joint in zip(itertools.pairwise(safe[:40]), itertools.cycle(("; ", " && ", " || ", "\n")), strict=False)
    ]
    assert len(attacks) + len(safe) >= 300
    run = [line for line in safe if allowed(line, everyday)]
    assert len(run) >= 100, sorted(set(safe) - set(run))
    for line in attacks:
        rules = [*everyday, *(rule for rule in widths(line) if evil not in rule)]
        if allowed(line, rules):
            run.append(line)
    started = executed(folder, run)
    assert len(started) == len(run)
    foreign = {
        line: names
        for line, found in zip(run, started, strict=True)
        if (names := {each for each in found if not expected(line).fullmatch(each)})
    }
    assert foreign == {}
    assert set(run).isdisjoint(attacks)


def test_the_oracle_sees_what_attacks_start(folder: Path) -> None:
    evil = str(folder / "evil")
    real = [
        "tar xf a.tar --to-comm=E",
        "git fetch --upload-pa=E .",
        "git clone -u E . copy",
        "git -C repo status",
        "make SHELL=E",
        "split --filter=E f",
        "tar tfI a.tar E",
        "find -- -exec E \\;",
        "cd repo && make hello",
        "cd repo && ./run; E",
    ]
    started = executed(folder, [with_program(line, evil) for line in real])
    assert [("evil" in names) for names in started] == [True] * len(real), started
