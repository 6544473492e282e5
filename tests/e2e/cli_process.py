"""The real `moot` process for tests of what a person or a script sees of it."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pexpect

COMMAND = [sys.executable, "-m", "moot"]
_KEPT = ("PATH", "LANG", "LC_ALL", "VIRTUAL_ENV", "SYSTEMROOT", "LD_LIBRARY_PATH")


@dataclass
class MootProcess:
    """Starts `moot` with a home and a folder of its own and a nearly empty environment."""

    home: Path
    work: Path
    cache: Path
    more: dict[str, str] = field(default_factory=dict[str, str])
    started: list[subprocess.Popen[bytes]] = field(default_factory=list[subprocess.Popen[bytes]])

    @property
    def environ(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
        if sys.dont_write_bytecode:  # else the usual place has them; here what the first start compiles serves all others
            kept["PYTHONPYCACHEPREFIX"] = str(self.cache)
        return {**kept, "MOOT_HOME": str(self.home), "HOME": str(self.home.parent), **self.more}

    def run(self, *arguments: str, stdin: bytes | IO[bytes] | None = None, timeout: float = 30) -> subprocess.CompletedProcess[bytes]:
        given: dict[str, Any] = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin or subprocess.DEVNULL}
        return subprocess.run([*COMMAND, *arguments], cwd=self.work, env=self.environ, capture_output=True, timeout=timeout, **given)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=self.work,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.started.append(process)
        return process

    def close(self) -> None:
        """Leaves no process behind, also when a test failed half-way."""
        for process in self.started:
            process.kill()
            process.communicate()

    def terminal(self, *arguments: str, term: str = "xterm-256color") -> pexpect.spawn[bytes]:
        environ: Any = {**self.environ, "TERM": term}
        return pexpect.spawn(
            COMMAND[0], [*COMMAND[1:], *arguments], cwd=str(self.work), env=environ, timeout=20, dimensions=(24, 80), echo=False
        )


def make(tmp_path: Path, cache: Path, config: str = "") -> MootProcess:
    home, work = tmp_path / "home", tmp_path / "work"
    home.mkdir()
    work.mkdir()
    (home / "config.yaml").write_text(config)
    return MootProcess(home, work, cache)
