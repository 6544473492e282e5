"""The command line in this process: real arguments, real files, real output."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from moot.cli.app import main
from moot.types.canonical import loads


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return loads(self.out)


@pytest.fixture
def home() -> Path:
    path = Path(os.environ["MOOT_HOME"])
    path.mkdir(parents=True, exist_ok=True)
    return path


@pytest.fixture
def moot(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Ended]:
    """Return a function that runs one command line in an empty directory."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str, stdin: bytes = b"") -> Ended:
        given = tmp_path / ".stdin"
        given.write_bytes(stdin)
        with given.open() as file, monkeypatch.context() as patch:
            patch.setattr(sys, "stdin", file)
            code = main(list(arguments))
        out, err = capfdbinary.readouterr()
        return Ended(code, out.decode(), err.decode())

    return run
