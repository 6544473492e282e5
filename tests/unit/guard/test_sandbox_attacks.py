"""One table of attacks on the sandbox, and the table of those that a mechanism doesn't hold off."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from moot.guard.sandbox.launcher import landlock_version
from moot.guard.sandbox.protected import Watch
from moot.types.sandbox import Mechanism
from unit.guard.sandbox_stage import EACH, SECRET, Stage, build, check

pytestmark = pytest.mark.anyio

_CONNECT = """{python} -I -c 'import contextlib, socket
with contextlib.suppress(OSError): socket.socket(socket.AF_UNIX).connect("{socket}"); print("{secret}")'"""
_TRACE = """{python} -I -c 'import ctypes; print(ctypes.CDLL(None).ptrace(16, {pid}, 0, 0) == 0 and "{secret}")'"""

ATTACKS = {
    "read the home": "cat ~/notes.txt {home}/notes.txt",
    "read ssh keys": "cat {home}/.ssh/id_ed25519",
    "read moot's home": "cat {home}/moot/config.yaml",
    "read a file outside": "cat {outside}/file",
    "list a folder outside": "ls {outside} | grep -q file && echo {secret}",
    "read the metadata of a file outside": "stat {outside}/file && echo {secret}",
    "follow a link out": "ln -s {outside}/file link && cat link",
    "read the environment of a process": "cat /proc/{pid}/environ",
    "read every environment": "cat /proc/[0-9]*/environ",
    "open the memory of a process": ": < /proc/{pid}/mem && echo {secret}",
    "enter the folder of a process": "cat /proc/{pid}/cwd/file",
    "enter the root of a process": "cat /proc/{pid}/root{outside}/file",
    "trace a process": _TRACE,
    "end a process": "kill -9 {pid}",
    "connect to a server": "exec 3<>/dev/tcp/127.0.0.1/{port} && echo {secret}",
    "connect to a socket": _CONNECT,
    "mount": "mkdir -p m && mount --bind / m && cat m{outside}/file",
    "enter namespaces again": "unshare --user --map-root-user --mount bash -c 'umount -l /tmp; umount -l {home}; cat {outside}/file'",
    "keep privileges": "while read -r line; do case $line in CapEff:*[1-9a-f]*|NoNewPrivs:*0) echo {secret};; esac; done < /proc/$$/status",
    "write a file outside": "echo x > {outside}/new; echo x >> {outside}/file; truncate -s 0 {outside}/file",
    "change the permissions of a file outside": "chmod 600 {outside}/file; chmod 644 {home}/notes.txt",
    "write a file in the home": "echo x > {home}/notes.txt; rm -f {home}/notes.txt; rm -rf {home}/.ssh",
    "write in moot's home": "rm -rf {home}/moot; echo x > {home}/moot/config.yaml",
    "write in the system": "for file in /etc/passwd /usr/lib/os-release; do : >> $file && echo {secret}; done",
    "add a hook": "printf '#!/bin/sh' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit; rm -rf .git/hooks",
    "change the repository's config": "git config core.fsmonitor ./evil; echo '[core] fsmonitor = x' >> .git/config",
    "rename the repository's config": "mv .git old; cp -r old .git; echo '[core] fsmonitor = x' >> .git/config",
    "change the repository's config until the end": "echo '[core]' >> .git/config && echo {secret}",
    "add a worktree config": "echo '[core] fsmonitor = x' > .git/config.worktree; echo ../evil > .git/commondir",
    "change moot's folder": "rm -rf .moot; mkdir -p .moot; echo 'permissions: {{mode: auto}}' > .moot/config.yaml",
}
"""An attack succeeds if it prints the secret, ends the other process, or leaves a changed file outside or a changed protected file."""

# three more attacks need a test of their own
AT_HOME, FOREGROUND, BACKGROUND = "change start-up files in an allowed home", "outlive moot", "outlive moot in the background"

GAPS: Mapping[Mechanism, Mapping[str, str]] = {
    "bubblewrap": {},
    "namespaces": {},
    "landlock": {
        "read the metadata of a file outside": "commands can read the metadata of files outside",
        "change the permissions of a file outside": "change their permissions",
        "change the repository's config until the end": "protected files are checked only after each command",
        AT_HOME: "commands can change shell start-up files",
        BACKGROUND: "a background process can outlive moot",
        **({} if landlock_version() >= 6 else {"end a process": "before Linux 6.12, commands can end other processes"}),
    },
}
"""The attacks that succeed: mechanism → attack → the words of docs/permissions.md about it. All others fail."""

UNCHECKED = {"mount", "enter namespaces again"}
"""Attacks that would change this machine without a sandbox."""
NEEDS_ROOT = {"open the memory of a process", "enter the root of a process", "trace a process", "write in the system"}
"""Attacks that only root can expect to succeed without a sandbox."""


@pytest.fixture(params=EACH)
async def stage(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Stage]:
    await check(request.param)
    with build(request.param, tmp_path) as stage:
        yield stage


def shape(*folders: Path, modes: bool) -> dict[str, tuple[int, bytes]]:
    """Return the permissions and contents of all files below some folders."""
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file() and not path.is_symlink()]
    return {str(path): (path.stat().st_mode if modes else 0, path.read_bytes()) for path in files}


def ended(pid: int) -> bool:
    return "State:\tZ" in Path(f"/proc/{pid}/status").read_text()


async def succeeds(stage: Stage, attack: str, *, confined: bool = True) -> bool:
    """Return whether an attack succeeds."""

    def files() -> list[dict[str, tuple[int, bytes]]]:
        return [shape(stage.home, stage.outside, modes=True), shape(stage.project / ".git", stage.project / ".moot", modes=False)]

    before, watch = files(), Watch.start(stage.confinement)
    address = str(stage.outside / "s")
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as other:
        other.bind(address)
        other.listen()
        places = {"home": stage.home, "outside": stage.outside, "pid": stage.other, "port": server.getsockname()[1]}
        line = ATTACKS[attack].format(**places, socket=address, python=sys.executable, secret=SECRET)
        done = await stage.run(line, confined=confined)
    assert done.code == 0 or "python" not in ATTACKS[attack], done.stderr
    if confined:
        watch.finish()
    return SECRET.encode() in done.stdout + done.stderr or ended(stage.other) or files() != before


@pytest.mark.parametrize("attack", ATTACKS)
async def test_attacks_fail(stage: Stage, attack: str) -> None:
    assert await succeeds(stage, attack) == (attack in GAPS[stage.mechanism])


@pytest.mark.slow
@pytest.mark.parametrize("attack", sorted(ATTACKS.keys() - UNCHECKED))
async def test_attacks_succeed_without_a_sandbox(tmp_path: Path, attack: str) -> None:
    if attack in NEEDS_ROOT and os.geteuid():
        pytest.skip("needs root")
    with build("bubblewrap", tmp_path) as stage:
        assert await succeeds(stage, attack, confined=False)


def test_the_documentation_names_every_gap(repository: Path) -> None:
    words = " ".join((repository / "docs" / "permissions.md").read_text().split()).lower()
    for gap in (gap for gaps in GAPS.values() for gap in gaps.values()):
        assert gap.lower() in words


async def test_secrets_in_an_allowed_home_stay_hidden(stage: Stage) -> None:
    (stage.home / ".bashrc").write_text("# mine\n")
    changes = {"directory": stage.home, "writable": (stage.home,)}
    text = await stage.text("cat .ssh/id_ed25519 moot/config.yaml; cat notes.txt; echo evil >> .bashrc", **changes)
    assert text.count(SECRET) == 1  # that of the notes
    assert ((stage.home / ".bashrc").read_text() != "# mine\n") == (AT_HOME in GAPS[stage.mechanism])


@pytest.mark.parametrize("attack", [FOREGROUND, BACKGROUND])
async def test_a_command_dies_with_its_parent(stage: Stage, tmp_path: Path, attack: str) -> None:
    """Kill the program that started the sandbox, and watch two pipes, of which only processes of the command hold the other ends."""
    sleeping = "(echo $BASHPID > pid; exec sleep 600 9>&-) & " if attack == BACKGROUND else ""
    command = f"exec 8<> behind; {sleeping}exec 8>&- 9<> alive; echo started > running; exec sleep 600"
    code = f"""
import asyncio
from pathlib import Path
from moot.guard.processes import spawn
from moot.types.sandbox import Confinement
project, scratch = Path({str(stage.project)!r}), Path({str(tmp_path / "scratch")!r})
async def main():
    confinement = Confinement({stage.mechanism!r}, project, (project,), scratch)
    child = await spawn(["/bin/bash", "-c", {command!r}], cwd=project, sandbox=confinement)
    await asyncio.Event().wait()
asyncio.run(main())
"""
    pipes = [stage.project / "alive", stage.project / "behind"]
    for pipe in pipes:
        os.mkfifo(pipe)
    alive, behind = (os.open(pipe, os.O_RDONLY | os.O_NONBLOCK) for pipe in pipes)
    parent = await asyncio.create_subprocess_exec(sys.executable, "-c", code)
    try:
        while not (stage.project / "running").exists():
            assert parent.returncode is None
            await asyncio.sleep(0.01)
        parent.kill()
        await parent.wait()
        await closed(alive)
        if attack not in GAPS[stage.mechanism]:
            await closed(behind)
        else:
            with pytest.raises(BlockingIOError):
                os.read(behind, 1)
            os.kill(int((stage.project / "pid").read_text()), signal.SIGKILL)
    finally:
        os.close(alive)
        os.close(behind)


async def closed(pipe: int) -> None:
    """Wait until no process holds the other end of a pipe."""
    while True:
        with suppress(BlockingIOError):
            assert os.read(pipe, 1) == b""
            return
        await asyncio.sleep(0.01)
