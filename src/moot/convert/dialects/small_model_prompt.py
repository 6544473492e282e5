"""Prompts of very small models: a short system prompt with examples, the end of the conversation, and reduced tool schemas.

Such a model is bad at choosing between many tools. So a tool with side effects is offered only if the user's message clearly asks for it,
and then no other tool is offered. Its calls need the same permissions as any other calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, cast

from moot.convert.dialects.parts import output_of
from moot.convert.dialects.small_model_steps import FILE, STEPS, Step, calls_since, is_for_code, question_at, read_files
from moot.convert.history import split_steps
from moot.types import canonical
from moot.types.canonical import Json, JsonObject
from moot.types.message import Message, Part, is_tool, text_of, tool_name
from moot.types.provider import ToolDefinition

_PIECES = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]|[ \t]+|\n+|[^\x00-\x7f]|.", re.DOTALL)
# words that tokenizers split: long words, and words with clusters of consonants or vowels or with rare pairs of letters
_ODD = re.compile(r"[bcdfghjklmnpqrstvwxz]{4}|[aeiouy]{4}|[jqxz][^aeiou]|.{13}", re.IGNORECASE)
_CUT = "\n[… cut …]\n"


def tokens(text: str) -> int:
    """Return an upper estimate of the number of tokens: 1.6 times too many for prose and code,
    exact for noise (measured with Qwen2.5 and SmolLM2).
    """

    return sum(_piece(match[0]) for match in _PIECES.finditer(text))


def cut(text: str, limit: int) -> str:
    """Shorten the text to `limit` tokens: three quarters from its start and one quarter from its end, with the gap marked."""
    if tokens(text) <= limit:
        return text
    room = limit - tokens(_CUT)
    if room <= 0:
        return ""
    tail = _take(text[::-1], room // 4)[::-1]
    return _take(text, room - room // 4) + _CUT + tail


def _piece(piece: str) -> int:
    first = piece[0]
    if first in " \t\n":
        return 0 if piece == " " else 1 + len(piece) // 8
    if not first.isascii():
        return len(piece.encode("utf-8", "replace"))
    if not first.isalpha():
        return 1
    if _ODD.search(piece) or (len(piece) > 1 and piece.isupper()):
        return (3 * len(piece) + 3) // 4
    return 1 + (len(piece) - 1) // 3


def _take(text: str, limit: int) -> str:
    spent = 0
    for match in _PIECES.finditer(text):
        spent += _piece(match[0])
        if spent > limit:
            return text[: match.start()]
    return text


REPLY_LENGTH = 800
"""Maximum number of characters in an answer."""
STRING_LENGTH = 200
"""Maximum number of characters in any other string."""
LONG_LENGTH = 1000
"""Maximum number of characters in a string that is a command or file content."""
_LONG = frozenset({"command", "content", "old_text", "new_text"})
_ALSO = {"shell": ("command",)}
"""For each tool, the optional arguments that a small model should fill in."""
_ITEMS = 4
_DEPTH = 6
_KEPT = frozenset({"minimum", "maximum"})
_STRING: JsonObject = {"type": "string", "maxLength": STRING_LENGTH}


def answer_schema(tools: Sequence[ToolDefinition]) -> JsonObject:
    """Return the schema of an answer: `{"tool", "arguments"}` with one alternative for each tool, or `{"reply"}`."""
    alternatives: list[Json] = [_object({"tool": {"const": tool.name}, "arguments": small_arguments(tool)}) for tool in tools]
    alternatives.append(_object({"reply": {"type": "string", "minLength": 1, "maxLength": REPLY_LENGTH}}))
    return {"anyOf": alternatives}


def small_arguments(tool: ToolDefinition) -> JsonObject:
    """Return the schema with only the required arguments,
    because a small model fills in every field that it sees, usually with nonsense.
    """
    root = tool.schema
    properties = _objects(root.get("properties"))
    names = _names(root.get("required"), properties) or [name for name in _ALSO.get(tool.name, ()) if name in properties]
    return _object({name: _small(properties[name], root, 1, name) for name in names})


def _small(schema: JsonObject, root: JsonObject, depth: int, called: str = "") -> JsonObject:
    if depth > _DEPTH:
        return _STRING
    schema = _resolved(schema, root)
    if "const" in schema or "enum" in schema:
        return {key: value for key, value in schema.items() if key in ("const", "enum")}
    kept = {key: value for key, value in schema.items() if key in _KEPT}
    match schema.get("type"):
        case "integer" | "number" | "boolean" | "null" as kind:
            return {"type": kind, **kept}
        case "array":
            items = schema.get("items")
            inner = _small(items, root, depth + 1) if isinstance(items, dict) else _STRING
            most = _least(schema.get("maxItems"), _ITEMS)
            return {"type": "array", "items": inner, "minItems": min(_number(schema.get("minItems")), most), "maxItems": most}
        case "object":
            properties = _objects(schema.get("properties"))
            names = _names(schema.get("required"), properties) or list(properties)
            return _object({name: _small(properties[name], root, depth + 1, name) for name in names})
        case _:
            return {**_STRING, "maxLength": _least(schema.get("maxLength"), LONG_LENGTH if called in _LONG else STRING_LENGTH)}


def _resolved(schema: JsonObject, root: JsonObject) -> JsonObject:
    """Return the schema after following references and the first non-null choice of each `anyOf`. Stop at a cycle."""
    for _ in range(_DEPTH):
        reference, choices = schema.get("$ref"), schema.get("anyOf")
        if isinstance(reference, str):
            schema = _objects(root.get("$defs")).get(reference.rpartition("/")[2], {})
        elif isinstance(choices, list) and choices:
            real = [choice for choice in choices if isinstance(choice, dict) and choice.get("type") != "null"]
            schema = real[0] if real else {}
        else:
            break
    return schema


def _object(properties: dict[str, Json] | JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def _objects(value: Json) -> dict[str, JsonObject]:
    if not isinstance(value, dict):
        return {}
    return {name: cast("JsonObject", item) for name, item in value.items() if isinstance(item, dict)}


def _names(required: Json, properties: dict[str, JsonObject]) -> list[str]:
    return [name for name in properties if isinstance(required, list) and name in required]


def _least(value: Json, limit: int) -> int:
    return min(_number(value), limit) or limit


def _number(value: Json) -> int:
    return value if isinstance(value, int) and value > 0 else 0


ACTION_TOOLS = ("shell", "write_file", "edit_file")
"""The tools with side effects that a user's message may ask for."""
EXAMPLES: dict[str, tuple[tuple[str, JsonObject], ...]] = {
    "shell": (
        ("run `ls -l docs`", {"command": "ls -l docs"}),
        ("Please run make test for me", {"command": "make test"}),
    ),
    "write_file": (
        ("create a file list.txt with the text red", {"path": "list.txt", "content": "red"}),
        ("Write the line PORT=80 into .settings", {"path": ".settings", "content": "PORT=80"}),
    ),
    "edit_file": (
        ("replace cat by dog in pets.py", {"path": "pets.py", "edits": [{"old_text": "cat", "new_text": "dog"}]}),
        ("In a.ini change size = 5 to size = 7", {"path": "a.ini", "edits": [{"old_text": "size = 5", "new_text": "size = 7"}]}),
    ),
}
"""Example requests for each tool, with the arguments of the call."""
OUTCOMES: tuple[tuple[str, str], ...] = (
    ("run `make test`\n\nOutput of shell:\n3 passed in 0.2 s", "The tests were run: 3 passed."),
    (
        "create a file list.txt with the text red\n\nOutput of write_file:\nWrote list.txt: 1 line, 3 bytes.",
        "I wrote the text red into list.txt.",
    ),
    ("run `rm old.txt`\n\nOutput of shell:\nError: The user denied this call.", "You did not allow it, so nothing was done."),
)
"""Example outcomes, each with the reply that reports it."""
_LONGEST = 600
"""Maximum number of characters in a message that can ask for a tool with side effects."""
_POLITE = re.compile(
    r"(?:(?:ok|okay|now|then|please|hey|moot|(?:can|could|would|will) you|i want you to|i(?:'d| would) like you to|use the shell to"
    r"|in the shell|go and)[ ,]+)*",
    re.IGNORECASE,
)
_PLACE = re.compile(r"in (?:the file )?`?[\w/.-]{1,200}`?[ ,:]+", re.IGNORECASE)
_RUN = re.compile(r"(?:run|execute)\s+(?!(?:me|us|through|over|away|out)\b)\S", re.IGNORECASE)
_WRITE = re.compile(r"(?:create|write|make|save|put|store|generate)\b", re.IGNORECASE)
_EDIT = re.compile(r"(?:replace|change|rename|substitute|swap|turn)\b", re.IGNORECASE)
_INSTEAD = re.compile(r"\s(?:by|with|to|into|for|->|→)\s", re.IGNORECASE)
_NAMED = re.compile(r"(?<![\w/.])(?:[\w-]+/)*(?:\w[\w-]*)?\.[a-zA-Z][\w.-]{0,30}\b")
"""Matches a file name where one is expected, including short names and names that start with a dot."""


def requested_tool(text: str) -> str | None:
    """Return the tool that the text plainly asks for, or None."""
    words = " ".join(text[: _LONGEST + 1].split())
    if len(words) > _LONGEST:
        return None
    words = words[_after(_POLITE, words) :]
    if _RUN.match(words):
        return "shell"
    rest = words[_after(_PLACE, words) :]
    named = FILE.search(words) or _NAMED.search(words)
    if named and _EDIT.match(rest) and _INSTEAD.search(rest):
        return "edit_file"
    return "write_file" if named and _WRITE.match(rest) else None


def _after(pattern: re.Pattern[str], text: str) -> int:
    found = pattern.match(text)
    return found.end() if found else 0


SYSTEM_TOKENS = 480
"""Maximum number of tokens in the system prompt, as estimated by `tokens`."""
HISTORY_TOKENS = 1_900
"""Maximum number of tokens in all other messages, including examples and the chat template, as estimated by `tokens`."""
_OWN_WORDS_TOKENS = 120
"""Maximum number of tokens in the agent's own instructions. A small model follows short instructions better than long ones."""
_EXAMPLES_TOKENS = 420
_QUESTION_TOKENS = 150
_ONE_CALL = 3
"""Number of lines in a question with one call: the question, the call and its output."""
_PER_MESSAGE = 6
"""Number of tokens that the chat template adds to a message."""
_OPENING = "You are moot, a helpful assistant."
_FORM = "You answer with one JSON object: a tool call to look something up, or a reply."
_RULES = (
    "Never guess what a file says: call read_file with its name first. Greetings, sums and general knowledge need no tool. "
    "After a tool's output, reply in a full sentence with what it says."
)
_ACTION_RULES = (
    "You answer with one JSON object: the tool call that does what was asked, or a reply. "
    "Copy names, commands and texts from the user's words to the letter. After the tool's output, reply in one short sentence."
)
_REPORT = "(Tell in one short sentence what came of it.)"
_CHAT_RULES = "Answer in one or two full sentences."
_NAMES_RULES = "Answer the question with the list that it comes with. Copy names exactly, and leave none out that the question asks for."
_CODE_RULES = "Write the code in one fenced block, without an example call and without an explanation."
_ANSWER_RULES = "Answer the question with the facts in the text that it comes with. Answer in one or two full sentences."
_CALL_RULES = "You look things up in files. Answer with the JSON tool call that helps to answer the question."
_WITHOUT_EXAMPLE = "ask_user"
"""A tool that is offered without an example. With an example, the model would ask questions instead of reading files."""
_REPLIES = (("Hello, who are you?", "Hello! I am moot. How can I help you?"), ("What is 3 times 4?", "3 times 4 is 12."))
_LINE_NUMBERS = re.compile(r"^[ ]*\d+\t", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Line:
    """One message as the model sees it."""

    role: Literal["user", "assistant"]
    text: str


def system_prompt(own: str, tools: Sequence[ToolDefinition]) -> str:
    """Return a system prompt of at most `SYSTEM_TOKENS`: the first paragraph of the instructions `own`, the tools, and how to answer."""
    if not tools:
        return cut(own, SYSTEM_TOKENS)
    own = own.strip().partition("\n\n")[0]
    listed = "\n".join(["Tools:", *(_tool_line(tool) for tool in tools)])
    opening = cut(own, _OWN_WORDS_TOKENS) or _OPENING
    pieces = [opening, listed, _ACTION_RULES] if tools[0].name in ACTION_TOOLS else [f"{opening} {_FORM}", listed, _RULES]
    return cut("\n\n".join(pieces), SYSTEM_TOKENS)


def examples(tools: Sequence[ToolDefinition], *, settled: bool = False) -> list[Line]:
    """Return an example conversation that shows each tool and two replies, as far as they fit, or an empty list if there are no tools.

    If `settled` is True, the requested action was done or denied, and the examples show how to report that.
    """
    if not tools:
        return []
    if tools[0].name in ACTION_TOOLS and settled:
        return [
            line for text, reply in OUTCOMES for line in (Line("user", f"{text}\n\n{_REPORT}"), Line("assistant", _dumps({"reply": reply})))
        ]
    if tools[0].name in ACTION_TOOLS:
        asked = [(tool.name, question, given) for tool in tools for question, given in EXAMPLES[tool.name]]
        return [
            line
            for tool, question, given in asked
            for line in (Line("user", f"{question}\n{_hint(tool)}"), Line("assistant", _dumps({"tool": tool, "arguments": given})))
        ]
    own, *others = [_calls(tool) if tool.name != _WITHOUT_EXAMPLE else [] for tool in tools]
    firsts = [calls[0] for calls in others if calls]
    replies = [(question, _dumps({"reply": answer})) for question, answer in _REPLIES]
    # the last example has the most influence, so it is a call to the first tool, which most questions need
    ordered = [*firsts[:1], *replies[:1], *firsts[1:2], *replies[1:], *own[1:2], *firsts[2:], *own[:1]]
    shown: list[Line] = []
    room = _EXAMPLES_TOKENS
    for question, answer in reversed(ordered):
        pair = [Line("user", _with_file_hint(question)), Line("assistant", answer)]
        room -= sum(map(_cost, pair))
        if room < 0:
            break
        shown[:0] = pair
    return shown


def history(messages: Sequence[Message], tools: Sequence[ToolDefinition], *, room: int) -> list[Line]:
    """Return the newest messages that fit into `room` tokens, oldest first. The last question and its tool outputs are always included."""
    start = question_at(messages)
    question = question_of(messages)
    as_json = bool(tools)
    current = [line for message in messages[start:] for line in _lines(message, as_json)]
    if as_json:
        current = _with_hint(current, question, messages[start:], [tool.name for tool in tools])
    limit = room
    while cost(current) > room and limit > 1:  # truncates the longest lines
        limit = limit * 3 // 4
        current = [Line(line.role, cut(line.text, limit)) for line in current]
    current = current if cost(current) <= room else current[-1:]
    room -= cost(current)
    kept: list[Line] = []
    for line in reversed([line for message in messages[:start] for line in _lines(message, as_json)]):
        room -= _cost(line)
        if room < 0:
            break
        kept.append(line)
    while kept and kept[-1].role == "assistant":  # drop answers without their question, which would mislead the model
        kept.pop()
    return [*reversed(kept), *current]


def step_prompt(own: str, messages: Sequence[Message], step: Step, *, room: int) -> tuple[str, list[Line]]:
    """Return the system prompt and the messages of a step whose tool is known, or which needs no tool.

    An answer is plain text: it comes after the earlier conversation, and the outputs of this question's calls are in its message.
    """
    start = question_at(messages)
    question, calls = question_of(messages), calls_since(messages, start)
    if step.kind == "call":
        values = ", ".join(step.values)
        before = f"{_shown(calls[-1], room // 2)}\n\n" if calls else ""
        return _CALL_RULES, [
            Line("user", f"{before}{cut(question, room // 4)}\n{_hint(step.tool)} ({step.argument}: {cut(values, room // 8)})")
        ]
    opening = cut(own.strip().partition("\n\n")[0], _OWN_WORDS_TOKENS) or _OPENING
    if not calls:
        return f"{opening} {_CODE_RULES if is_for_code(question) else _CHAT_RULES}", history(messages, (), room=room)
    asked = cut(question, room // 4)
    rest = room - tokens(asked) - 4 * _PER_MESSAGE
    texts = "\n\n".join(_shown(call, rest // len(calls) - _PER_MESSAGE) for call in calls)
    rules = _NAMES_RULES if tool_name(calls[-1]) in ("list_files", "find_files") else _ANSWER_RULES
    return f"{_OPENING} {rules}", [Line("user", f"{texts}\n\nQuestion: {asked}")]


def _shown(call: Part, limit: int) -> str:
    """Return the output of a call, with a line that says what it is, in at most `limit` tokens."""
    name, output = tool_name(call), output_of(call)
    arguments = call.get("input")
    given = [value for value in arguments.values() if isinstance(value, str)] if isinstance(arguments, dict) else []
    values = ["this folder" if value == "." else value for value in given]
    text = _LINE_NUMBERS.sub("", output.text) if name == "read_file" else output.text
    title = f"{_TITLES.get(name, f'Output of {name}')} {cut(' '.join(values), limit // 4)}".rstrip()
    if name in ("list_files", "find_files") and not output.error:
        text = _grouped(text.splitlines())
    return cut(f"{title}:\n{'Error: ' if output.error else ''}{text}", limit)


def _grouped(lines: Sequence[str]) -> str:
    """Return folders and files as two groups, each with its number of entries, because a small model counts badly."""
    folders = [line for line in lines if line.endswith("/")]
    files = [line for line in lines if line not in folders and not line.endswith(".")]
    others = [line for line in lines if line.endswith(".") and line not in folders]
    groups = [(folders, "folder"), (files, "file")]
    texts = [f"{len(group)} {word}{'s' * (len(group) != 1)}:\n" + "\n".join(group) for group, word in groups if group]
    return "\n".join([*texts, *others])


_TITLES = {
    "read_file": "Content of the file",
    "list_files": "Files and folders in",
    "find_files": "Files found for",
    "search_files": "Lines, each with its file, that match",
}


def cost(lines: Sequence[Line]) -> int:
    """Return the number of tokens in these lines, as estimated by `tokens`."""
    return sum(map(_cost, lines))


def is_settled(messages: Sequence[Message]) -> bool:
    """Return True if only an answer is needed: the steps are used up, or the files named in the question have been read."""
    start = question_at(messages)
    calls = calls_since(messages, start)
    if len(calls) >= STEPS - 1 or any(tool_name(part) in ACTION_TOOLS for part in calls):
        return True
    read = read_files(part for part in calls if part.get("state") == "output-available")
    named = set(FILE.findall(text_of(messages[start].parts))) if messages else set[str]()
    return bool(read) and named <= read


def question_of(messages: Sequence[Message]) -> str:
    """Return the text of the user's last message."""
    return text_of(messages[question_at(messages)].parts) if messages else ""


def _tool_line(tool: ToolDefinition) -> str:
    properties = small_arguments(tool)["properties"]
    names = ", ".join(properties) if isinstance(properties, dict) else ""
    sentence = tool.description.split("\n", 1)[0].split(". ", 1)[0].rstrip(".")
    return f"- {tool.name}({names}): {cut(sentence, 24)}"


def _calls(tool: ToolDefinition) -> list[tuple[str, str]]:
    """Return the tool's examples as pairs of question and call. Prefer those that use only the arguments offered to this model."""
    properties = small_arguments(tool)["properties"]
    known = properties if isinstance(properties, dict) else {}
    found: list[tuple[str, str]] = []
    for example in tool.examples:
        given = example.get("arguments")
        arguments: JsonObject = {name: value for name, value in given.items() if name in known} if isinstance(given, dict) else {}
        if not found or arguments == given:
            found.append((str(example.get("user", "")), _dumps({"tool": tool.name, "arguments": arguments})))
    return found


def _lines(message: Message, as_json: bool) -> Iterator[Line]:
    if message.role != "assistant":
        text = text_of(message.parts)
        yield Line("user", text if message.role == "user" else f"(Note: {text})")
        return
    for step in split_steps(message):
        if steering := text_of(step.steering):
            yield Line("user", steering)
        for part in step.parts:
            if is_tool(part):
                name, output = tool_name(part), output_of(part)
                if as_json:
                    yield Line("assistant", _dumps({"tool": name, "arguments": part.get("input")}))
                text = _LINE_NUMBERS.sub("", output.text) if name == "read_file" else output.text
                yield Line("user", f"Output of {name}:\n{'Error: ' if output.error else ''}{text}")
            elif part.get("type") == "text" and (text := str(part.get("text", ""))).strip():
                yield Line("assistant", _dumps({"reply": text}) if as_json else text)


def _with_hint(lines: list[Line], question: str, messages: Sequence[Message], names: Sequence[str]) -> list[Line]:
    """Add an instruction to the last line, because a small model follows what it read last."""
    if not lines or lines[-1].role != "user":
        return lines
    last = lines[-1].text
    if len(lines) == 1:
        wished = requested_tool(question)
        pointed = f"{last}\n{_hint(wished)}" if wished is not None and wished in names else _with_file_hint(last)
    elif any(name in ACTION_TOOLS for name in names):
        before = [] if len(lines) == _ONE_CALL else lines[:-1]  # the request, the call and its output, as one line
        return [*before, Line("user", f"{cut(question, _QUESTION_TOKENS)}\n\n{last}\n\n{_REPORT}")]
    elif is_settled(messages) or not (
        missing := next((file for file in FILE.findall(question) if file not in read_files(calls_since(messages, 0))), "")
    ):
        pointed = f"{last}\n\nUsing this output, answer: {cut(question, _QUESTION_TOKENS)}"
    else:
        pointed = f"{last}\n\n{_hint('read_file', missing)}"
    return [*lines[:-1], Line("user", pointed)]


def _with_file_hint(question: str) -> str:
    """Return the question with a hint about the file that it mentions."""
    file = FILE.search(question)
    return f"{question}\n{_hint('read_file', file[0])}" if file else question


def _hint(tool: str, file: str = "") -> str:
    return f"(Use {tool} on {file}.)" if file else f"(Use {tool}.)"


def _cost(line: Line) -> int:
    return tokens(line.text) + _PER_MESSAGE


def _dumps(value: Json) -> str:
    return canonical.dumps(value).decode()
