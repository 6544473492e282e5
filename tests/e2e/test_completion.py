from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from e2e.cli_process import MootProcess, make

CONFIG = """
models: {main: big@mine}
providers: {mine: {base_url: 'http://127.0.0.1:9/v1', models: {big: {}, bigger: {}}}}
agents: {reviewer: {description: "reads code"}}
"""
HOSTILE = "$(touch hacked) `touch hacked`; touch hacked \x1b[31m"


@pytest.fixture(scope="module")
def moot(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MootProcess]:
    process = make(tmp_path_factory.mktemp("completion"), CONFIG)
    for text in ("plan the release", HOSTILE):
        assert process.run("run", "-m", "demo", "--no-tools", text).returncode == 0
    assert process.run("chat", "list").returncode == 0
    bin = process.home.parent / "bin"
    bin.mkdir()
    (bin / "moot").write_text(f'#!/bin/sh\nexec {sys.executable} -m moot "$@"\n')
    (bin / "moot").chmod(0o755)
    process.more = {"PATH": f"{bin}:{process.environ['PATH']}", "TERM": "xterm"}
    (process.work / "notes.txt").write_text("x")
    yield process
    process.close()


def offered(moot: MootProcess, line: str, shell: str = "fish") -> list[str]:
    ended = moot.run("completion", "words", shell, line)
    assert (ended.returncode, ended.stderr) == (0, b"")
    return [text.partition("\t")[0] for text in ended.stdout.decode().splitlines()]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("moot ch", ["channels", "chat"]),
        ("moot chat sh", ["show"]),
        ("/usr/bin/moot chat sh", ["show"]),
        ("A=1 moot chat sh", ["show"]),
        ("moot run --mod", ["--model", "--mode"]),
        ("moot run --mode pl", ["plan"]),
        ("moot run --mode=pl", ["--mode=plan"]),
        ("moot run -m big@", ["big@mine"]),
        ("moot run -m bigg", ["bigger@mine"]),
        ("moot run -a rev", ["reviewer"]),
        ("moot run --tools=read_file,sh", ["--tools=read_file,shell"]),
        ("moot tools show web", ["web_search"]),
        ("moot providers test min", ["mine", "minimax"]),
        ("moot chat show plan", ["plan the release"]),
        ('moot chat show "plan the', ["plan the release"]),
        ("moot run -f ", [":files"]),
        ("moot run -- --mod", []),
        ("moot nothing ", []),
        ("moot chat show 'half", []),
        ("ls ", []),
        ("", []),
    ],
)
def test_matching_words_are_suggested(moot: MootProcess, line: str, expected: list[str]) -> None:
    assert sorted(offered(moot, line)) == sorted(expected)


def test_numbers_of_the_last_list_are_suggested_without_hostile_titles(moot: MootProcess) -> None:
    shown = moot.run("completion", "words", "fish", "moot chat show ").stdout.decode()
    assert [line.partition("\t")[0] for line in shown.splitlines()] == ["1", "2"]
    assert "\x1b" not in shown
    assert offered(moot, "moot chat show $") == []


@pytest.mark.damaged
def test_completion_is_silent_on_errors(moot: MootProcess, tmp_path: Path) -> None:
    broken = make(tmp_path, "models: [")
    assert broken.run("completion", "words", "bash", "moot run -m ").stdout == b""
    (broken.home / "data").mkdir()
    (broken.home / "data" / "moot.db").write_bytes(b"no database")
    ended = broken.run("completion", "words", "bash", "moot chat show ")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, b"", b"")


def screen(output: bytes) -> str:
    return re.sub(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|[\r\x07]", b"", output).decode("utf-8", "replace")


def typed(moot: MootProcess, shell: str, *arguments: str) -> pexpect.spawn[bytes]:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    return pexpect.spawn(program, list(arguments), cwd=str(moot.work), env=moot.environ, timeout=60, dimensions=(24, 100))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "then"),
    [
        ("moot conf\t", "moot config"),
        ("moot run --effort hi\t", "moot run --effort high"),
        ("moot run --mode=pl\t", "moot run --mode=plan"),
        ("moot run -m bigg\t", "moot run -m bigger@mine"),
        ("moot run -m bigger@\t", "moot run -m bigger@mine"),
        ("moot run -m bigger@mi\t", "moot run -m bigger@mine"),
        ("moot chat show plan\t", r"moot chat show plan\ the\ release"),
        ("moot run -f not\t", "moot run -f notes.txt"),
    ],
)
@pytest.mark.slow
def test_bash_completes(moot: MootProcess, line: str, then: str) -> None:
    shell = typed(moot, "bash", "--norc", "--noprofile", "-i")
    shell.sendline("bind 'set enable-bracketed-paste off'; PS1='$ '; eval \"$(moot completion show bash)\"; echo rea''dy")
    shell.expect("ready")
    shell.send(line)
    shell.expect(re.escape(then.encode()))
    shell.close(force=True)


def test_zsh_completes(moot: MootProcess) -> None:
    shell = typed(moot, "zsh", "-f", "-i")
    shell.sendline("PS1='$ '; autoload -U compinit; compinit -u; eval \"$(moot completion show zsh)\"; echo rea''dy")
    shell.expect("ready")
    shell.send("moot run --effort hi\t")
    shell.expect(re.escape(b"gh"))
    shell.sendline("\x15moot chat show plan\t; echo en''d")
    shell.expect(rb"the.*release")
    shell.close(force=True)
    assert not (moot.work / "hacked").exists()


def test_fish_completes(moot: MootProcess) -> None:
    program = shutil.which("fish")
    if program is None:
        pytest.skip("fish is not installed")
    shell = pexpect.spawn(
        program,
        ["--no-config", "-c", "moot completion show fish | source; complete -C 'moot run --effort hi'; complete -C 'moot chat show plan'"],
        cwd=str(moot.work),
        env=moot.environ,  # type: ignore[arg-type]
        timeout=20,
    )
    shell.expect(pexpect.EOF)
    shown = screen(shell.before or b"")
    assert "high" in shown
    assert "plan the release" in shown


def test_install_writes_to_the_shells_completion_folder(moot: MootProcess) -> None:
    home = moot.home.parent
    for shell, place in (
        ("bash", ".local/share/bash-completion/completions/moot"),
        ("zsh", ".local/share/zsh/site-functions/_moot"),
        ("fish", ".config/fish/completions/moot.fish"),
    ):
        ended = moot.run("completion", "install", shell)
        assert (ended.returncode, ended.stdout.decode().strip()) == (0, str(home / place))
        assert "completion for" in (home / place).read_text()
    assert moot.run("completion", "install").returncode == 2
