"""The real `moot` process, for tests of what users and scripts see."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pexpect

import fork_server

Process = subprocess.Popen[bytes] | fork_server.ForkedProcess
COMMAND = [sys.executable, "-m", "moot"]
_KEPT = ("MOOT_SANDBOX__ENABLED", "PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "SYSTEMROOT", "LD_LIBRARY_PATH")


@dataclass
class MootProcess:
    """Start `moot` with its own home and working directory, and a nearly empty environment."""

    home: Path
    work: Path
    more: dict[str, str] = field(default_factory=dict[str, str])
    started: list[Process] = field(default_factory=list[Any])

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        # compiled by the tests and the fork server: a process with a limit on file sizes would leave a truncated file
        return {**kept, "PYTHONDONTWRITEBYTECODE": "1", "MOOT_HOME": str(self.home), "HOME": str(self.home.parent), **self.more}

    def run(
        self, *arguments: str, stdin: bytes | IO[bytes] | None = None, timeout: float = 60, executed: bool = False
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command to its end. `executed` starts a new interpreter, for tests of what a command imports."""
        environ = self.environ
        pipe = subprocess.PIPE if isinstance(stdin, bytes) else stdin or subprocess.DEVNULL
        if executed or not fork_server.can_fork(environ):
            given: dict[str, Any] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": pipe}
            return subprocess.run([*COMMAND, *arguments], cwd=self.work, env=environ, capture_output=True, timeout=timeout, **given)
        process = fork_server.start(arguments, cwd=self.work, env=environ, stdin=pipe)
        try:
            output, errors = process.communicate(stdin if isinstance(stdin, bytes) else None, timeout)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        return subprocess.CompletedProcess([*COMMAND, *arguments], process.wait(), output, errors)

    def start(self, *arguments: str) -> Process:
        environ = self.environ
        process: Process
        if fork_server.can_fork(environ):
            process = fork_server.start(arguments, cwd=self.work, env=environ, stdin=subprocess.DEVNULL)
        else:
            process = subprocess.Popen(
                [*COMMAND, *arguments],
                cwd=self.work,
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        self.started.append(process)
        return process

    def close(self) -> None:
        """Leave no process running, even if a test failed midway."""
        for process in self.started:
            process.kill()
            process.communicate()

    def terminal(self, *arguments: str, term: str = "xterm-256color") -> pexpect.spawn[bytes]:
        environ: Any = {**self.environ, "TERM": term}
        spawn = fork_server.ForkedTerminal if fork_server.can_fork(environ) else pexpect.spawn
        return spawn(COMMAND[0], [*COMMAND[1:], *arguments], cwd=str(self.work), env=environ, timeout=60, dimensions=(24, 80), echo=False)


def make(tmp_path: Path, config: str = "") -> MootProcess:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    (home / "config.yaml").write_text(config)
    return MootProcess(home, work)
