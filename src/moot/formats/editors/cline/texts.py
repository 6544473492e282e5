"""Text in the messages of a task: the user's words, text that the program added, and tool calls written as XML."""

from __future__ import annotations

import re
from typing import NamedTuple

from moot.types.canonical import Json, JsonObject

_ADDED = ("<environment_details>", "[TASK RESUMPTION]", "[ERROR]")
_TYPED = re.compile(r"<(task|user_message|feedback|answer)>\s*(.*?)\s*</\1>", re.DOTALL)
_HEADER = re.compile(r"\[(\w+)(?: for [^\n]*)?\] Result:\s*")
_TOOLS = (
    *("execute_command", "read_file", "write_to_file", "replace_in_file", "apply_diff", "insert_content", "search_and_replace"),
    *("search_files", "list_files", "list_code_definition_names", "codebase_search", "browser_action", "web_fetch"),
    *("use_mcp_tool", "access_mcp_resource", "load_mcp_documentation", "ask_followup_question", "plan_mode_respond", "act_mode_respond"),
    *("attempt_completion", "new_task", "switch_mode", "fetch_instructions", "update_todo_list", "condense", "edit_file"),
)
"""Names of the tools that models call by writing XML."""
_CALL = re.compile(rf"<({'|'.join(_TOOLS)})>(.*)</\1>", re.DOTALL)
_ARGUMENT = re.compile(r"<(\w+)>(.*)</\1>", re.DOTALL)


class CallInText(NamedTuple):
    """A tool call written as XML, and the text around it."""

    before: str
    name: str
    arguments: JsonObject
    after: str


def is_added(text: str) -> bool:
    """Return whether the program added the text to a message, for example a list of the open files."""
    return text.lstrip().startswith(_ADDED)


def typed_text(text: str) -> str | None:
    """Return the text that the user typed, without the tags around it. Return None if there are no tags."""
    found = [match[2] for match in _TYPED.finditer(text)]
    return "\n\n".join(found) if found else None


def output_in(text: str) -> tuple[str, str] | None:
    """Return a tool's name and the beginning of its output, if the text starts with the header that the program writes above outputs."""
    header = _HEADER.match(text)
    return (header[1], text[header.end() :]) if header else None


def call_in(text: str) -> CallInText | None:
    """Return the tool call that a model wrote as XML, if there is one."""
    found = _CALL.search(text)
    if found is None:
        return None
    arguments: dict[str, Json] = {match[1]: match[2].strip("\n") for match in _ARGUMENT.finditer(found[2])}
    return CallInText(text[: found.start()].strip(), found[1], arguments or {"text": found[2].strip()}, text[found.end() :].strip())
