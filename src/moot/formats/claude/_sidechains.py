"""Lines of sub-agents among those of a session: where in the file each of them stands, and which call began it."""

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
    """What one sub-agent said."""

    id: str
    agent: str
    prompt: int
    """What it was asked, as a number."""
    offsets: array[int] = field(default_factory=_offsets)


class Sidechains:
    """Those of one file."""

    def __init__(self) -> None:
        self.found: list[Sidechain] = []
        self._lines: dict[int, int] = {}
        self._agents: dict[str, int] = {}
        self._asked: dict[int, list[str]] = {}
        self._answered: dict[str, str] = {}

    def take(self, offset: int, value: JsonObject) -> None:
        """Takes a line: it belongs to the sub-agent that it names, else to that of its parent, else it begins one."""
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
        """A call of the session asks a sub-agent this."""
        self._asked.setdefault(hash(prompt), []).append(call)

    def answered(self, call: str, line: JsonObject) -> None:
        """The output of a call, which may name the sub-agent that made it."""
        told = line.get("toolUseResult")
        if isinstance(told, dict) and isinstance(agent := told.get("agentId"), str):
            self._answered[agent] = call

    def call_of(self, sidechain: Sidechain) -> str | None:
        """The call that began it; None = nothing says it."""
        if (call := self._answered.get(sidechain.agent)) is not None:
            return call
        calls = self._asked.get(sidechain.prompt)
        return calls.pop(0) if calls else None
