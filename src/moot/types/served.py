"""Runs for another program that uses moot as a model, with the program's own system prompt, history and tools."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from moot.types.canonical import JsonObject
from moot.types.provider import ToolDefinition

SETTING = "served"
"""The key of these values in `Run.settings`."""


@dataclass(frozen=True, slots=True)
class Served:
    plain: bool = False
    """True if the model is called directly, without moot's prompt, tools, trimming or fallbacks."""
    system: str = ""
    tools: tuple[ToolDefinition, ...] = ()
    """Tools that the program runs itself. A call of such a tool ends the answer."""
    tool_choice: str = ""
    """The program's choice of tools, as in `ModelSettings.tool_choice`."""
    parallel_calls: bool = True
    max_tokens: int | None = None
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    show_reasoning: bool = True
    history: tuple[str, ...] = ()
    """Hashes of blobs, each a JSON list of messages; joined, they are the history that the program sent. () = the conversation's branch."""
    digest: str = ""
    """Digest of the whole request. With the answer, it identifies the conversation when the program sends both again. Empty = the program
    names the previous response instead."""

    def takes(self, tool: str) -> bool:
        """Return True if calls of this tool are passed to the program. For a plain model, all calls are."""
        return self.plain or any(tool == known.name for known in self.tools)

    def to_settings(self) -> JsonObject:
        """Serialize for `Run.settings`."""
        facts: JsonObject = {
            **asdict(self),
            "tools": [{"name": tool.name, "description": tool.description, "schema": tool.schema} for tool in self.tools],
            "stop": [*self.stop],
            "history": [*self.history],
        }
        default = Served()
        return {SETTING: {name: value for name, value in facts.items() if value not in ([], "", None, getattr(default, name))}}

    @staticmethod
    def of(settings: JsonObject) -> Served | None:
        """Parse the output of `to_settings`; None if the run doesn't serve a program."""
        facts = settings.get(SETTING)
        if not isinstance(facts, dict):
            return None
        tools, stop, history = facts.get("tools"), facts.get("stop"), facts.get("history")
        most, top_p = facts.get("max_tokens"), facts.get("top_p")
        return Served(
            plain=facts.get("plain") is True,
            system=str(facts.get("system", "")),
            tools=tuple(_tool(tool) for tool in tools if isinstance(tool, dict)) if isinstance(tools, list) else (),
            tool_choice=str(facts.get("tool_choice", "")),
            parallel_calls=facts.get("parallel_calls") is not False,
            max_tokens=most if isinstance(most, int) else None,
            top_p=float(top_p) if isinstance(top_p, int | float) else None,
            stop=tuple(str(text) for text in stop) if isinstance(stop, list) else (),
            show_reasoning=facts.get("show_reasoning") is not False,
            history=tuple(str(blob) for blob in history) if isinstance(history, list) else (),
            digest=str(facts.get("digest", "")),
        )


def _tool(facts: JsonObject) -> ToolDefinition:
    schema = facts.get("schema")
    return ToolDefinition(str(facts.get("name")), str(facts.get("description", "")), schema if isinstance(schema, dict) else {})
