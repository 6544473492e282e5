"""The built-in agents, as entries of the section `agents`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from moot.config.tree import Node, Place, from_json
from moot.types.agent import Agent, HistorySettings, PromptSettings
from moot.types.canonical import JsonObject

_READING = ("read_file", "search_files", "find_files", "list_files")

_EXPLORER = """\
You explore files for a person or another agent, and change nothing.
Find what was asked for: search first, then read only the parts that matter.
Answer with the facts, each with its file and line (`src/app.py:12`), and say what you did not find.
Don't suggest changes unless you are asked."""

_PLANNER = """\
You plan a change and don't make it. Read the files it concerns, ask about open questions that matter, then write the plan:
the goal in one sentence, numbered steps that name the files, how to test the result, and risks. Keep to what was asked."""

_REVIEWER = """\
You review changes, and change nothing yourself.
Look at the diff (`git diff`, `git show`) or at the files you are given, and read the code around them.
Report problems only, the worst first: file and line, what goes wrong and when, and a fix.
Name missing tests. Say so if you find nothing."""

_LOCAL = """\
You are moot, an agent that works for a person in their files and terminal. Do one thing at a time.
Use a tool when you need to see or change a file, then answer briefly."""

LOCAL = Agent(
    "local",
    "For small models on your own machine: short prompt, few tools, little history",
    instructions=_LOCAL,
    tools=("read_file", "search_files", "edit_file", "write_file", "shell"),
    temperature=0.0,
    history=HistorySettings(max_tokens=2_000),
    prompt=PromptSettings(("instructions", "environment", "output_format", "project", "agents_md"), max_tokens=500),
)
"""Agent for small models. Its tools, temperature, history and prompt settings are also the defaults of other agents with a small model."""


DEFAULT = Agent("default", "General agent for files and the terminal")

BUILT_IN: Mapping[str, Agent] = {
    agent.name: replace(agent, origin="built-in")
    for agent in (
        DEFAULT,
        Agent("explorer", "Finds and explains code and files; reads only", instructions=_EXPLORER, tools=_READING, role="read"),
        Agent("planner", "Plans a change; reads only", instructions=_PLANNER, tools=(*_READING, "ask_user", "todo"), role="read"),
        Agent("reviewer", "Reviews changes and reports problems", instructions=_REVIEWER, tools=(*_READING, "shell")),
        LOCAL,
    )
}


@cache
def built_in_node(name: str) -> Node:
    """Return the definition of a built-in agent as a node, so that the configuration can change individual fields."""
    agent = BUILT_IN[name]
    fields: JsonObject = {"description": agent.description, "instructions": agent.instructions, "role": agent.role}
    if agent.tools is not None:
        fields["tools"] = [*agent.tools]
    if agent.temperature is not None:
        fields["temperature"] = agent.temperature
    if agent.history.max_tokens is not None:
        fields["history"] = {"max_tokens": agent.history.max_tokens}
    if agent.prompt.parts is not None:
        fields["prompt"] = {"parts": [*agent.prompt.parts], "max_tokens": agent.prompt.max_tokens}
    return from_json(fields, Place("default", ""))
