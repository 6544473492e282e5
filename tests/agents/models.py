"""A model for real agent programs: a process on loopback that speaks every vendor's API and answers from a script."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from types import TracebackType
from typing import Any
from urllib.request import urlopen

from agents.programs import LANE, node


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model, with the agent's name for the tool."""

    name: str
    arguments: Mapping[str, Any]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Step:
    """The reply to one model call."""

    text: str = ""
    reasoning: str = ""
    calls: Sequence[Call] = ()
    status: int = 0
    """If not 0, the call is rejected with this status and `error`."""
    error: str = ""
    refusals: int = 0
    """Number of rejections before the call is answered; 0 = always reject."""
    delay: int = 0
    """Milliseconds before each chunk."""
    piece: int = 24
    """Characters per chunk."""
    usage: Mapping[str, int] = field(default_factory=dict[str, int])


Script = Mapping[str, Sequence[Step]]
"""Prompt text (matched as a substring) → the steps of the answer; the last step is repeated if more are requested."""


class ScriptedModels:
    """The process; `url` is its address without a version. Use it with `with`."""

    def __init__(self, script: Script) -> None:
        self._script = {said: [asdict(step) for step in steps] for said, steps in script.items()}
        self.url = ""

    def __enter__(self) -> ScriptedModels:
        program = node()
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump(self._script, file)
            file.flush()
            command = [program, str(LANE / "models.mjs"), file.name]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=LANE)
            assert self._process.stdout is not None
            self.url = self._process.stdout.readline().decode().strip()
        assert self.url, f"the scripted models did not start: exit code {self._process.wait()}"
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._process.kill()
        self._process.communicate()

    def asked(self) -> list[dict[str, Any]]:
        """Return the requests answered from the script, oldest first, in one shape: `{model, messages, tools}`."""
        with urlopen(f"{self.url}/asked") as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found

    def requests(self, path: str = "") -> list[dict[str, Any]]:
        """Return requests whose path contains the text, oldest first: `{method, path, headers, body, response}`; bodies up to 64 KB."""
        with urlopen(f"{self.url}/__aimock/journal") as answer:
            entries: list[dict[str, Any]] = json.load(answer)
        return [entry for entry in entries if path in str(entry.get("path", ""))]
