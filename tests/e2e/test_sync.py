"""`moot sync` with a real ssh client and server, and what users see of other machines."""

from __future__ import annotations

import getpass
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e.cli_process import MootProcess, make
from lanes import missing

SESSION = "11111111-2222-4333-8444-555555555555"
FILE = f".claude/projects/-home-ana-code/{SESSION}.jsonl"
SSHD = shutil.which("sshd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
CONFIG = """
Port {port}
ListenAddress 127.0.0.1
HostKey {folder}/host
AuthorizedKeysFile {folder}/mine.pub
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
PermitRootLogin yes
"""


def write(home: Path, text: str) -> Path:
    file = home / FILE
    file.parent.mkdir(parents=True, exist_ok=True)
    facts = {"type": "user", "uuid": "u1", "parentUuid": None, "sessionId": SESSION, "timestamp": "2026-08-01T10:00:00.000Z"}
    file.write_text(json.dumps({**facts, "message": {"role": "user", "content": text}}) + "\n")
    return file


@pytest.fixture
def moot(tmp_path: Path) -> Iterator[MootProcess]:
    process = make(tmp_path)
    yield process
    process.close()


@pytest.fixture
def doubled(moot: MootProcess, tmp_path: Path) -> MootProcess:
    """moot with a program named `ssh` that runs commands here, with the folder `homes/DESTINATION` as home."""
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nwhile [ $# -gt 2 ]; do shift; done\nHOME="{tmp_path}/homes/$1"; export HOME\nexec sh -c "$2"\n')
    program.chmod(0o755)
    moot.more["PATH"] = f"{program.parent}:{os.environ['PATH']}"
    return moot


def configure(moot: MootProcess, text: str) -> None:
    (moot.home / "config.yaml").write_text(text)


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


@pytest.fixture
def port(tmp_path: Path) -> Iterator[int]:
    """An ssh server on loopback that accepts one key."""
    if SSHD is None or shutil.which("ssh") is None:
        missing("sshd", "sshd is not installed: apt-get install openssh-server openssh-client")
    for name in ("host", "mine"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number: int = free.getsockname()[1]
    config = tmp_path / "sshd_config"
    config.write_text(CONFIG.format(port=number, folder=tmp_path))
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(config)], stderr=subprocess.DEVNULL)
    try:
        while not accepts(number):
            if server.poll() is not None:
                missing("sshd", "sshd can't start here")
            time.sleep(0.01)
        yield number
    finally:
        server.kill()
        server.wait()


@pytest.mark.slow
def test_conversations_come_over_a_real_connection(moot: MootProcess, tmp_path: Path, port: int) -> None:
    there = tmp_path / "there"
    write(there, "over the wire")
    host = f"{{ssh: {getpass.getuser()}@127.0.0.1, port: {port}, identity: {tmp_path}/mine, home: {there}}}"
    configure(moot, f"hosts:\n  laptop: {host}\n")
    unknown = moot.run("sync")  # the host key is checked as ssh is configured
    assert unknown.returncode == 1 and b"ssh failed: Host key verification failed." in unknown.stderr
    # ssh reads the known hosts of the account, whatever HOME is
    key = (tmp_path / "host.pub").read_text().split()
    known = tmp_path / "known"
    known.write_text(f"[127.0.0.1]:{port} {key[0]} {key[1]}\n")
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -o UserKnownHostsFile="{known}" "$@"\n')
    wrapper.chmod(0o755)
    moot.more["PATH"] = f"{wrapper.parent}:{os.environ['PATH']}"
    ended = moot.run("sync", "laptop", "--json")
    assert ended.returncode == 0, ended.stderr
    (report,) = json.loads(ended.stdout)["data"]
    assert (report["host"], report["files"]["new"], report["error"]) == ("laptop", 1, None)
    assert b"over the wire" in moot.run("chat", "show", "over the wire").stdout
    again = moot.run("sync")
    assert again.returncode == 0 and b"laptop: files: 1 unchanged; 0 B fetched" in again.stderr
    (tmp_path / "mine.pub").write_text("")
    refused = moot.run("sync")
    assert refused.returncode == 1 and b"Permission denied" in refused.stderr


def test_the_machine_is_shown_filtered_and_summed(doubled: MootProcess, tmp_path: Path) -> None:
    write(tmp_path / "homes" / "ana", "hello there")
    configure(doubled, "hosts:\n  laptop: {ssh: ana}\n  server: {ssh: nowhere}\n")
    ended = doubled.run("sync")
    assert ended.returncode == 1
    assert b"laptop: files: 1 new" in ended.stderr and b"server: " in ended.stderr and b"1 added" not in ended.stdout
    rows = doubled.run("chat", "list", "--host", "laptop").stdout.decode().splitlines()
    assert "HOST" in rows[0] and "laptop" in rows[1]
    assert len(doubled.run("chat", "list", "--host", "local").stdout.splitlines()) == 1
    (one,) = json.loads(doubled.run("chat", "list", "--json").stdout)["data"]
    assert one["host"] == "laptop"
    head = doubled.run("chat", "show", "hello there").stderr.decode()
    assert f"from claude-code on laptop, laptop:~/{FILE}" in head
    assert doubled.run("stats", "--by", "host").returncode == 0


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("{ssh: '-oProxyCommand=x'}", "Expected a host name, or USER@HOST"),
        ("{ssh: 'a b'}", "Expected a host name, or USER@HOST"),
        ("{}", "The required key 'ssh' is missing"),
        ("{ssh: a, prot: 22}", "Unknown key 'prot'. Did you mean 'port'?"),
        ("{ssh: a, port: 70000}", "port"),
        ("{ssh: a, home: relative}", "Expected an absolute path"),
        ("{ssh: a, agents: [claud]}", "Agent 'claud' not found. Did you mean 'claude'?"),
    ],
)
def test_an_invalid_machine_is_an_error(moot: MootProcess, config: str, words: str) -> None:
    configure(moot, f"hosts:\n  laptop: {config}\n")
    ended = moot.run("config", "check")
    assert ended.returncode == 2 and words in ended.stderr.decode()


def test_unknown_machines_and_names_are_errors(moot: MootProcess) -> None:
    assert b"No other machines are configured." in moot.run("sync").stderr
    configure(moot, "hosts:\n  laptop: {ssh: a}\n")
    ended = moot.run("sync", "notebook")
    assert ended.returncode == 2 and b"Host 'notebook' not found. Configured: laptop." in ended.stderr
    for name in ("local", "..", "a/b"):
        configure(moot, f"hosts:\n  {name}: {{ssh: a}}\n")
        assert moot.run("config", "check").returncode == 2
