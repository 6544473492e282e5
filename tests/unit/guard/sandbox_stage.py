"""A project next to a home with secrets, for commands in a sandbox."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from lanes import missing
from moot.guard.processes import Output, child_environment, output
from moot.guard.sandbox.mechanisms import find
from moot.types.sandbox import MECHANISMS, Confinement, Mechanism

SECRET = "correct-horse-battery"

# the two that start Python take ten times as long
EACH = ["bubblewrap", *(pytest.param(name, marks=pytest.mark.slow) for name in MECHANISMS[1:])]
"""Parameters for a test of each mechanism; only the first one is an everyday test."""


@dataclass(frozen=True)
class Stage:
    """A project with a repository, a home and a folder outside, all with secrets, and another process with a secret."""

    confinement: Confinement
    home: Path
    project: Path
    outside: Path
    other: int
    """Id of the other process. It has the secret in its environment and `outside` as its folder."""

    @property
    def mechanism(self) -> Mechanism:
        return self.confinement.mechanism

    async def run(self, command: str, *, confined: bool = True, **changes: object) -> Output:
        environment = {**child_environment(), "HOME": str(self.home)}
        sandbox = replace(self.confinement, **changes) if confined else None  # type: ignore[arg-type]
        done = await output(["/bin/bash", "-c", command], cwd=self.project, env=environment, sandbox=sandbox)
        assert b"can't create the sandbox" not in done.stderr
        assert b"bwrap:" not in done.stderr
        return done

    async def text(self, command: str, **changes: object) -> str:
        done = await self.run(command, **changes)
        return (done.stdout + done.stderr).decode()


async def check(mechanism: Mechanism) -> None:
    """Skip or fail the test if the mechanism doesn't work here."""
    found = await find((mechanism,))
    if found.mechanism is None:
        missing(mechanism, found.missing[0])


@contextmanager
def build(mechanism: Mechanism, tmp_path: Path) -> Iterator[Stage]:
    home, project, outside = tmp_path / "home", tmp_path / "project", tmp_path / "outside"
    for folder in (home / ".ssh", home / "moot" / "data", project, outside):
        folder.mkdir(parents=True)
    for secret in (home / ".ssh" / "id_ed25519", home / "notes.txt", home / "moot" / "config.yaml", outside / "file"):
        secret.write_text(SECRET)
    subprocess.run(["git", "init", "--quiet", str(project)], check=True)
    (project / ".moot").mkdir()
    (project / ".moot" / "config.yaml").write_text("ui: {}\n")
    confinement = Confinement(mechanism, project, (project,), tmp_path / "scratch", (home / "moot",), tmp_path / "quarantine")
    with subprocess.Popen(["sleep", "600"], cwd=outside, env={"PATH": "/usr/bin:/bin", "MOOT_TOKEN": SECRET}) as other:
        try:
            yield Stage(confinement, home, project, outside, other.pid)
        finally:
            other.kill()
