"""Lines of sub-agents within a session file: their offsets, and the call that started each sub-agent."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from moot.formats.claude._kinds import words_of
from moot.types.canonical import JsonObject

__all__ = ["Sidechain", "Sidechains"]


def _offsets() -> array[int]:
    return array("Q")


@dataclass(slots=True)
class Sidechain:
    """The lines of one sub-agent."""

    id: str
    agent: str
    prompt: int
    """Hash of the prompt."""
    offsets: array[int] = field(default_factory=_offsets)


class Sidechains:
    """The sub-agents of one file."""

    def __init__(self) -> None:
        self.found: list[Sidechain] = []
        self._lines: dict[int, int] = {}
        self._agents: dict[str, int] = {}
        self._asked: dict[int, list[str]] = {}
        self._answered: dict[str, str] = {}

    def take(self, offset: int, value: JsonObject) -> None:
        """Assign a line to the sub-agent that it names, otherwise to that of its parent, otherwise to a new one."""
        uuid, parent, agent = value.get("uuid"), value.get("parentUuid"), value.get("agentId")
        number = self._agents.get(agent) if isinstance(agent, str) else None
        if number is None and isinstance(parent, str):
            number = self._lines.get(hash(parent))
        if number is None:
            number = len(self.found)
            name = agent if isinstance(agent, str) else ""
            id = f"agent-{name}" if name else uuid if isinstance(uuid, str) and uuid else f"side-{number}"
            if any(known.id == id for known in self.found):
                id = f"{id}#{number}"
            self.found.append(Sidechain(id, name, hash(words_of(value))))
            if name:
                self._agents[name] = number
        if isinstance(uuid, str):
            self._lines.setdefault(hash(uuid), number)
        self.found[number].offsets.append(offset)

    def asked(self, call: str, prompt: str) -> None:
        """Record the prompt of a call that starts a sub-agent."""
        self._asked.setdefault(hash(prompt), []).append(call)

    def answered(self, call: str, line: JsonObject) -> None:
        """Record the output of a call, which may name its sub-agent."""
        result = line.get("toolUseResult")
        if isinstance(result, dict) and isinstance(agent := result.get("agentId"), str):
            self._answered[agent] = call

    def call_of(self, sidechain: Sidechain) -> str | None:
        """Return the call that started the sub-agent, or None if it is unknown."""
        if (call := self._answered.get(sidechain.agent)) is not None:
            return call
        calls = self._asked.get(sidechain.prompt)
        return calls.pop(0) if calls else None
