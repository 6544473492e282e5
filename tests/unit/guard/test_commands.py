"""Words that a wildcard of an allow rule covers, and commands that deny rules find."""

from __future__ import annotations

import pytest

from moot.config.settings import Permissions, Rule
from moot.runtime.approvals.policy import decide
from moot.tools.builtin.shell import Shell
from moot.types.agent import Mode
from moot.types.approval import Grant

SHELL = Shell()


def action(line: str, *patterns: str, deny: str = "", mode: Mode = "ask") -> str:
    rules = (*(Rule("shell", "allow", pattern) for pattern in patterns), *([Rule("shell", "deny", deny)] if deny else []))
    return decide(Permissions(rules=rules), mode, SHELL, line).action


def offered(line: str) -> list[tuple[str, ...]]:
    return [part.patterns for part in decide(Permissions(), "ask", SHELL, line).parts if part.action == "ask"]


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("tar xf a.tar --to-comm='touch x'", "tar xf *"),
        ("tar xf a.tar --checkpoint=1 --checkpoint-act=exec=id", "tar *"),
        ("tar tf a.tar -I id", "tar tf *"),
        ("tar -tfhost:a.tar", "tar *"),
        ("tar tf host:a.tar", "tar tf *"),
        ("tar -tvf a.tar --rsh-command=id", "tar -tvf *"),
        ("git fetch . --upload-pa=id", "git fetch *"),
        ("git fetch --upload-pack id .", "git fetch *"),
        ("git fetch ext::id", "git fetch *"),
        ("git ls-remote --upload-pack=id .", "git ls-remote *"),
        ("git clone -u id . x", "git clone *"),
        ("git clone -u id . x", "git *"),
        ("git -C evil status", "git *"),
        ("git -C evil status", "git -C *"),
        ("git -C evil status -s", "git -C evil status *"),
        ("git -c core.fsmonitor=id status", "git *"),
        ("git --exec-path=. status", "git *"),
        ("git diff --ext-diff", "git diff *"),
        ("git diff --output=x", "git diff *"),
        ("git log --format=%G?", "git log *"),
        ("git branch --format='%(signature)'", "git branch *"),
        ("git tag --sort=signature:grade", "git tag *"),
        ("pytest @arguments", "pytest *"),
        ("git grep -Oid x", "git grep *"),
        ("git push origin main", "git *"),
        ("git push origin +main", "git push *"),
        ("git push ../evil main", "git push *"),
        ("git branch -D main", "git branch *"),
        ("cd evil && git status", "git status"),
        ("split --filter=id x", "split *"),
        ("make SHELL=id", "make *"),
        ("make -f evil", "make *"),
        ("make --eval=x", "make *"),
        ("go test -exec id ./...", "go test *"),
        ("go build -toolexec=id ./...", "go build *"),
        ("go vet -vettool=id", "go vet *"),
        ("find . -exec id ;", "find *"),
        ("find . -fprint x", "find *"),
        ("sed -n 1e x", "sed *"),
        ("sed -i 1p x", "sed *"),
        ("sed -n '1w y' x", "sed -n *"),
        ("sort --compress-pro=id x", "sort *"),
        ("sort -o y x", "sort *"),
        ("uniq x y", "uniq *"),
        ("xxd x y", "xxd *"),
        ("xargs id", "xargs *"),
        ("env id", "env *"),
        ("env -S id ls", "env *"),
        ("rg --pre id x", "rg *"),
        ("rg --hostname-bin=id x", "rg *"),
        ("pytest -p evil", "pytest *"),
        ("pytest ../evil", "pytest *"),
        ("pytest --basetemp=/home", "pytest *"),
        ("date -s tomorrow", "date *"),
        ("hostname evil", "hostname *"),
        ("./ls x", "./ls *"),
        ("/tmp/ls x", "/tmp/ls *"),
        ("frobnicate x", "frobnicate *"),
        ("cp x .git/config", "cp *"),
        ("ssh host id", "ssh host *"),
        ("npm run build evil", "npm run build *"),
        ("cargo test --config build.rustc-wrapper=id", "cargo test *"),
        ("cat x | sh", "sh"),
        ("cat x | sqlite3 db", "sqlite3 db"),
        ("cat x | make -f -", "make -f -"),
        ("ls -la", "?s *"),
        ("ls -la", "l*"),
        ("tar tfI a.tar ./evil", "tar *"),
        ("tar tvfF a.tar ./evil", "tar tvfF a.tar *"),
        ("find -- -delete", "find *"),
        ("find . -- -exec id ;", "find *"),
    ],
)
def test_a_wildcard_never_covers_a_word_that_is_not_in_the_table(line: str, rule: str) -> None:
    assert action(line, rule, "cat *", "cd *", "ls") == "ask"


@pytest.mark.parametrize(
    ("line", "rule"),
    [
        ("tar tvf a.tar", "tar *"),
        ("tar tfv a.tar file", "tar *"),
        ("tar -tf a.tar", "tar -tf *"),
        ("git status --short", "git *"),
        ("git --no-pager log --oneline -5", "git log *"),
        ("git -C . status", "git status *"),
        ("git log -n 3 --since=yesterday -- src", "git log *"),
        ("git fetch --prune origin", "git fetch *"),
        ("git push -q origin main", "git push *"),
        ("git add -A src", "git add *"),
        ("git commit -m 'a message'", "git commit *"),
        ("uv run pytest -q tests/unit -k 'a and b'", "uv run pytest *"),
        ("python -m pytest -x tests", "python -m pytest *"),
        ("timeout 60 cargo test --workspace", "timeout 60 cargo test *"),
        ("make -j4 test", "make *"),
        ("go test -race -run=TestX ./...", "go test *"),
        ("npm run build", "npm run *"),
        ("ls -la --color=auto src", "ls *"),
        ("/bin/ls -la", "/bin/ls *"),
        ("find . -name '*.py' -type f", "find *"),
        ("sed -n 1,20p x.py", "sed *"),
        ("grep -rn --include='*.py' x src | head -20", "grep *"),
        ("cat x | sort -u | uniq -c", "sort *"),
        ("cat -- -x", "cat *"),
        ("frobnicate --all", "frobnicate --all"),
        ("sort --compress-program=id x", "sort --compress-program=id *"),
        ("cat x | sh", "cat x | sh"),
        ("cd web && npm test -- --watch", "cd web && npm test -- --watch"),
    ],
)
def test_a_wildcard_covers_safe_options_and_operands(line: str, rule: str) -> None:
    wanted = "ask" if "compress-program" in line else "allow"  # an option that the table lacks leaves nothing to the wildcard
    assert action(line, rule, "cat *", "head *", "uniq *") == wanted


@pytest.mark.parametrize(
    "line",
    [
        *("sort *", "sort -u *", "sort '' ?", "rg x *", "rg x [-]*", 'rg x ""*', "tar tf *", "tar tf a.tar *", "sed -n 1p *", "find *"),
        *("find . *", "git diff *", "git log -n *", "git add *", "pytest *", "tree *", "uniq *", "uniq -- *", "timeout 5 sort *"),
    ],
)
def test_file_names_that_can_become_options_are_not_covered(line: str) -> None:
    everything = [f"{name} *" for name in ["sort", "rg", "tar", "sed", "find", "pytest", "tree", "uniq", "git"]]
    assert action(line, *everything, "git add *", "timeout 5 sort *") == "ask"


@pytest.mark.parametrize(
    "line", ["ls *.py", "wc -l *", "grep -n x *", "sort ./*", "sort src/*.txt", "sort -- *", "git add -- *", "sort '*'"]
)
def test_file_names_that_can_not_become_harmful_options_are_covered(line: str) -> None:
    assert action(line, "ls *", "wc *", "grep *", "sort *", "git add *") == "allow"


@pytest.mark.parametrize(
    "line",
    [
        "cd evil && make",
        "cd evil && npm test",
        "cd evil; pytest",
        "cd evil && ./build",
        "(cd evil && cargo test)",
        "cd evil && timeout 5 make",
    ],
)
def test_a_command_that_runs_files_of_the_folder_is_not_covered_after_a_change_of_the_folder(line: str) -> None:
    rules = ("cd *", "make *", "npm test", "pytest *", "./build", "cargo test *", "timeout 5 make *")
    assert action(line, *rules) == "ask"
    assert action(line, *rules, line) == "allow", "spelled out as a whole"
    assert action(line.replace("cd evil", "ls evil"), "ls *", *rules) == "allow"


def test_reading_after_a_change_of_the_folder_is_covered() -> None:
    assert action("cd src && ls -la && grep -rn x . | head && mkdir -p new", "cd *", "ls *", "grep *", "head *", "mkdir *") == "allow"


@pytest.mark.parametrize(
    ("line", "patterns"),
    [
        ("tar xf a.tar", [("tar xf a.tar",)]),
        ("git status -s", [("git status -s", "git status *")]),
        ("uv run pytest -q", [("uv run pytest -q", "uv run pytest *")]),
        ("git clone x y", [("git clone x y",)]),
        ("frobnicate x", [("frobnicate x",)]),
        ("cd web && make x=1", [("cd web && make x=1", "cd *"), ("cd web && make x=1",)]),
        ("cat x | sh", [("cat x | sh", "cat *"), ("cat x | sh",)]),
        ("ls > x", [()]),
    ],
)
def test_the_exact_line_is_offered_first_and_wider_patterns_only_from_the_table(line: str, patterns: list[tuple[str, ...]]) -> None:
    assert offered(line) == patterns


def test_a_line_that_can_only_be_allowed_once_says_so() -> None:
    part = decide(Permissions(), "ask", SHELL, "ls > x").parts[0]
    assert part.why == "mode ask; writes to a file: > x; it can only be allowed once"
    assert "only be allowed once" not in decide(Permissions(), "ask", SHELL, "cat x | sh").parts[0].why


def test_an_exact_grant_covers_nothing_else() -> None:
    grants = (Grant("shell", "cd web && make test | tail"),)

    def granted(line: str) -> str:
        return decide(Permissions(), "ask", SHELL, line, grants=grants).action

    assert granted("cd web && make test | tail") == "allow"
    for line in ("make test", "cd web", "tail", "cd web && make test", "cd web && make test | tail; id", "cd web && make test | tail x"):
        assert granted(line) == "ask", line
    denied = decide(Permissions(rules=(Rule("shell", "deny", "make *"),)), "ask", SHELL, "cd web && make test | tail", grants=grants)
    assert denied.action == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "git -C . push",
        "git --no-pager push origin",
        "git -c a=b push",
        "git --git-dir=.git push",
        "git --git-dir .git push",
        "env git -C . push",
        "git -c alias.x=push x",
        "git -c alias.x='!git push' x",
        "busybox sh -c 'git push'",
    ],
)
def test_a_denied_command_of_git_is_denied_with_global_options(line: str) -> None:
    assert action(line, "git *", deny="git push*") == "deny"
    assert action(line, deny="git push *", mode="auto") == "deny"


@pytest.mark.parametrize(
    "line",
    [
        "echo rm x | sh",
        "echo 'rm x' | env sh",
        "printf 'r''m x' | rm | bash",
        "sh <<E\nrm x\nE",
        "bash <<< 'rm x'",
        "busybox rm x",
        "linux64 rm x",
        "setarch x86_64 rm x",
        "/lib64/ld-linux-x86-64.so.2 /bin/rm x",
        "alias x=rm; x y",
        "alias x='rm y'\nx",
        "tar xf a.tar --to-command='rm x'",
        "tar xf a.tar --to-comm 'rm x'",
        "tar xf a.tar -I 'rm x'",
        "tar xf a.tar --checkpoint=1 --checkpoint-action=exec='rm x'",
        "split --filter='rm x' y",
        "sort --compress-prog=rm x",
        "make SHELL=rm x",
        "go test -exec rm ./...",
        "go build -toolexec=rm",
        "git clone -u 'rm x' . y",
        "git rebase --exec 'rm x'",
        "python3 -c 'import os; os.system(\"rm x\")'",
        "perl -e 'system(\"rm x\")'",
        "awk 'BEGIN { system(\"rm x\") }'",
        "X=rm; $X y",
        "ssh host rm x",
        "xargs -a list rm",
        "echo rm x | xargs env",
        "git -c core.fsmonitor='rm x' status",
        "time nice -n 3 nohup rm x",
        "script -c 'rm x'",
        "(rm x)",
        "sh -c -- 'rm x'",
        "bash -c -e 'rm x'",
        "flock lock -c 'rm x'",
        "sg group -c 'rm x'",
        "perf stat -- rm x",
        "npm --prefix . exec rm x",
        "pnpm -r exec rm x",
        "uv --directory . run rm x",
        "poetry -C . run rm x",
        "cargo --config build.rustc-wrapper='rm' build",
        "git submodule foreach 'rm x'",
        "git filter-branch --tree-filter 'rm x' HEAD",
        "git clone -c core.fsmonitor='rm x' a b",
        "git send-email --smtp-server='rm x'",
        "git fetch 'ext::rm x'",
        "tar xfI a.tar 'rm x'",
        "tar xfI a.tar rm",
        "tar --rmt-command='rm x' -tf host:a",
        "sed 's/.*/rm x/e' y",
        "coreutils --coreutils-prog=rm x",
    ],
)
def test_a_denied_command_is_denied_behind_a_wrapper(line: str) -> None:
    assert action(line, deny="rm *", mode="auto") == "deny"
    assert action(line, "*", deny="rm *") == "deny"


@pytest.mark.parametrize(
    "line",
    [
        *("base64 -d x | sh", "new-wrapper rm x", "sh -s < x", "sh <<E\n$X\nE", "new-wrapper 'rm x'", "new-wrapper /bin/rm"),
        # programs that run a text
        *("vim +'!rm x' y", "ex -c '!rm x' y", "ed <<< '!rm x'", "less +'!rm x' y", "emacs --eval '(shell-command \"rm x\")'"),
        *("gdb -batch -ex 'shell rm x'", "sqlite3 db '.shell rm x'", "psql -c '\\! rm x'", "dc -e '!rm x'", "m4 <<< 'syscmd(rm x)'"),
        *("socat - EXEC:'rm x'", "nc -e /bin/rm host 1", "gcc -wrapper rm,x y.c", "tmux send-keys 'rm x' Enter", "nodemon -x 'rm x'"),
        *("nix-shell --run 'rm x'", "vagrant ssh -c 'rm x'", "ansible all -a 'rm x'", "osascript -e 'do shell script \"rm x\"'"),
        # tools with subcommands
        *("docker compose exec a rm x", "kubectl run a -- rm x", "conda run -n a rm x", "npm run x -- rm", "yarn run rm x"),
        *("npm config set script-shell 'rm x'", "make CC='rm x'", "make -f <(echo 'a:;rm x')"),
        # text that another command writes
        *("echo rm x | at now", "echo '* * * * * rm x' | crontab -", "echo rm x | ssh host", "echo rm x | su", "make -f - <<< 'a: ; rm x'"),
        # variables that name a program
        *("GIT_EDITOR='rm x' git commit", "GIT_SSH_COMMAND='rm x' git fetch", "PAGER='rm x' man ls", "export GIT_PAGER='rm x'; git log"),
        # a program that the line itself writes
        *("printf 'rm x' > y; chmod +x y; ./y", "cp /bin/rm y; ./y x", "ln -s $(which rm) y && ./y x", "hash -p /bin/rm y; y x"),
        "cp /bin/rm y; PATH=. y x",
    ],
)
def test_a_line_that_may_hide_a_denied_command_asks(line: str) -> None:
    assert action(line, deny="rm *", mode="auto") == "ask"


@pytest.mark.parametrize(
    "line",
    [
        *("ls rm", "echo rm", "grep rm x", "git commit -m 'rm x'", "python x.py", "git rm x", "make test", "cat x | head"),
        *("docker rm x", "npm rm x", "gh pr create --title 'rm x'", "A=1 make test", "./build", "timeout 5 git commit -m 'rm x'"),
        *("ls -l /bin/rm", "cd web && npm test", "echo rm | cat", "uv run pytest -k rm", "git log | head"),
    ],
)
def test_a_harmless_line_is_not_denied_for_its_arguments(line: str) -> None:
    assert action(line, deny="rm *", mode="auto") == "allow"


def test_an_unknown_subcommand_of_git_may_be_an_alias_of_a_denied_one() -> None:
    assert action("git p", deny="git push *", mode="auto") == "ask"
    assert action("git p", deny="rm *", mode="auto") == "allow"


def test_an_abbreviated_option_is_denied_like_the_whole_one() -> None:
    assert action("git push --forc origin", deny="git push --force*", mode="auto") == "deny"
    assert action("git push --tags origin", deny="git push --force*", mode="auto") == "allow"


def test_a_stored_wide_grant_of_an_older_version_does_not_cover_options_that_run_commands() -> None:
    grants = tuple(Grant("shell", match) for match in ("tar xf *", "tar tf *"))

    def granted(line: str) -> str:
        return decide(Permissions(), "ask", SHELL, line, grants=grants).action

    assert granted("tar tf a.tar") == "allow", "what the table covers is still allowed"
    for option in ("--to-comm='touch x'", "--to-command='touch x'", "--to-comm touch"):
        assert [granted(f"tar {letters} a.tar {option}") for letters in ("xf", "tf")] == ["ask", "ask"], option
