"""The next step of a very small model: an answer, or a call whose tool and argument follow from the words of the question.

Such a model is bad at choosing tools and at filling in arguments, but can pick one of a few values and answer from a text that it sees.
The rules look only at the user's question and at the names in the outputs of lookups. All of them are for tools that only read.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from moot.convert.dialects.parts import output_of
from moot.types.canonical import JsonObject
from moot.types.message import Message, Part, is_tool, text_of, tool_name

STEPS = 4
"""Maximum number of model calls for one prompt. The last call offers no tools, so it produces an answer."""
FILE = re.compile(r"(?<![\w/.:-])[\w/.-]*\w\w\.[A-Za-z]\w{0,5}\b(?!/)")
"""Matches a word that looks like a file name."""
_VALUES = 12
"""Maximum number of values offered for an argument."""
_LONGEST = 600
"""Maximum number of characters in a question that the rules apply to."""


@dataclass(frozen=True, slots=True)
class Step:
    """The answers that the model may give next."""

    kind: Literal["answer", "call", "choose"]
    """`answer`: answer in plain text. `call`: call `tool`. `choose`: call any tool that is offered, or answer."""
    tool: str = ""
    argument: str = ""
    values: tuple[str, ...] = ()
    """Allowed values of the argument."""
    fixed: tuple[tuple[str, bool], ...] = ()
    """Further arguments of the call."""


ANSWER, CHOOSE = Step("answer"), Step("choose")


def next_step(messages: Sequence[Message], offered: Iterable[str]) -> Step:
    """Return the next step of the last question, if no tool with side effects is requested. `offered` are the names of the tools."""
    start = question_at(messages)
    question = " ".join(text_of(messages[start].parts).split()) if messages else ""
    calls = calls_since(messages, start)
    names = set(offered)
    if not calls and is_english(question) and not concerns_files(question) and (is_for_code(question) or not calls_since(messages, 0)):
        return ANSWER
    first = _first(question) if len(question) <= _LONGEST else None
    if len(calls) >= STEPS - 1 or _repeats(calls):
        return ANSWER
    step = first if not calls else _further(question, calls, first)
    if step is None:
        return CHOOSE
    return step if step.kind != "call" or step.tool in names else CHOOSE if not calls else ANSWER


_ENGLISH = re.compile(
    r"\b(?:the|is|are|was|were|what|how|why|who|when|where|which|does|did|can|could|of|with|and|your?|my|write|give|tell|explain|describe|translate"
    r"|compare|summari[sz]e|find|show|list|function|that|this|name|hello|hi|hey|thanks?|please)\b",
    re.IGNORECASE,
)


def is_english(question: str) -> bool:
    """Return True if the question is in English, or without letters. In other languages, the rules can't tell what it is about."""
    return bool(_ENGLISH.search(question)) or not re.search(r"[^\W\d_]", question)


def question_at(messages: Sequence[Message]) -> int:
    """Return the index of the user's last message, or 0."""
    return max((index for index, message in enumerate(messages) if message.role == "user"), default=0)


def calls_since(messages: Sequence[Message], start: int) -> list[Part]:
    """Return the tool calls from this index on."""
    return [part for message in messages[start:] for part in message.parts if is_tool(part)]


_CODE = re.compile(
    r"\b(?:(?:show|give) me (?:an?|some|how)|write|implement|create|make|code|need|want|generate|how (?:do|can|would|to))\b.*"
    r"\b(?:function|program|script|class|code|method|algorithm|regex|query|snippet|one-liner|loop|command)\b"
    r"|\b(?:python|javascript|typescript|java|rust|go|ruby|bash|sql)\b.*\b(?:function|program|script|class|method)\b.*\b(?:that|which|to|for)\b",
    re.IGNORECASE,
)
_LOOKS = re.compile(r"(?:please |can you |could you )*(?:find|locate|search|where|which|look|grep|list)\b", re.IGNORECASE)
_MINE = re.compile(
    r"\b(?:(?:this|our|my) (?:\w+ )?(?:code|program|app|script|project|repo(?:sitory)?|code ?base|folder|directory)"
    r"|the (?:project|repo(?:sitory)?|code ?base|(?:current )?(?:folder|directory))|in the (?:source )?code)\b",
    re.IGNORECASE,
)
_GENERAL = re.compile(
    r"(?:what(?:'s| is| are) an? |what does \S+ (?:mean|stand for)|translate\b|how (?:do|can|would) (?:i|you|we|one)\b"
    r"|why (?:is|are|do|does)\b)",
    re.IGNORECASE,
)
_PLACES = re.compile(
    r"\b(?:files?|folders?|director(?:y|ies)|repo(?:sitory)?|code ?base|readme|docs|ls|grep|(?:search|look) (?:for|in|through)"
    r"|where\b.*\b(?:defined|declared|set|used|called|configured|implemented|documented)"
    r"|(?:which|find)\b.*\b(?:mentions?|defines?|imports?))\b",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"\b[A-Za-z]+_\w+\b|(?<![\w/.:])(?:\.{0,2}/)?[\w-]{2,}(?:/[\w.-]+)*/(?!\w)")
_NOT_FILES = re.compile(
    r"(?:node|next|vue|nuxt|express|three|d3|react|asp|socket|discord|chart)\.(?:js|net|io)|.*\.(?:com|org|net|io|dev)", re.IGNORECASE
)


def named_files(question: str) -> list[str]:
    """Return the file names in the text, without names of web sites and libraries."""
    return _unique(name for name in FILE.findall(question) if not _NOT_FILES.fullmatch(name))


def concerns_files(question: str) -> bool:
    """Return True if the question is about files or code of the user, so that an answer needs a tool."""
    if named_files(question) or _MINE.search(question):
        return True
    if is_for_code(question) or _GENERAL.match(question):
        return False
    return bool(_PLACES.search(question) or _IDENTIFIER.search(question))


def is_for_code(question: str) -> bool:
    """Return True if the question asks for new code, which is in no file."""
    if _LOOKS.match(question):
        return False
    return bool(_CODE.search(question)) and not named_files(question) and not _MINE.search(question)


_LOOK = r"(?:find|search|locate|where|which|what|in which|grep|look|show|is there|are there|does|do|list|who)"
_IN_NAMED_FILE = re.compile(
    r"\b(?:function|class|method|variable|constant|line|word|value|setting|section|say|set|defined?)\b", re.IGNORECASE
)
_FIND_NAMED = re.compile(
    r"(?:please |can you |could you )*"
    r"(?:find|locate|where(?:'s| is| are)|is there|are there|search for|look for|do(?:es)? .*\b(?:exist|have)\b)",
    re.IGNORECASE,
)
_TERM = r"[`'\"]?([\w][\w.-]*)[`'\"]?"
_CONTENT = (
    re.compile(
        rf"\b(?:the )?(?:word|text|phrase|string|term|name|function|class|method|variable|constant|setting)s? (?:called |named )?{_TERM}",
        re.IGNORECASE,
    ),
    re.compile(
        rf"\b(?:mention(?:s|ed|ing)?|contain(?:s|ing)?|defin(?:es?|ing)|declares?|imports?|calls?|uses?) (?:an? |the )?{_TERM}",
        re.IGNORECASE,
    ),
    re.compile(rf"\b(?:is|are) (?:an? |the )?{_TERM} (?:defined|declared|mentioned|used|set|called|imported|implemented)\b", re.IGNORECASE),
    re.compile(rf"\bgrep (?:for )?{_TERM}", re.IGNORECASE),
)
_ABOUT = (
    re.compile(
        r"\b(?:about|regarding|concern(?:s|ing)|deals? with|handles?|related to|talks? of|search(?:es)? (?:\w+ ){0,3}for) "
        rf"(?:an? |the )?{_TERM}",
        re.IGNORECASE,
    ),
)
_NOT_TERMS = re.compile(
    r"an?|the|its?|is|are|in|of|for|to|and|or|th(?:at|is|ese|ose|ere)|here|word|text|called|named|files?|folders?|function|class|json|csv|any|all"
    r"|some|which|what",
    re.IGNORECASE,
)
_EXTENSIONS = "csv|json|ini|toml|html|css|txt|md|py|js|ts|go|log|pdf|xml|sql|sh|java|php|png"
_TYPES = {
    "python": "*.py",
    "markdown": "*.md",
    "text": "*.txt",
    "javascript": "*.js",
    "typescript": "*.ts",
    "rust": "*.rs",
    "ruby": "*.rb",
    "yaml": "*.y*ml",
    "shell": "*.sh",
    "readme": "README*",
}
"""For each kind of file, a pattern of its names. The other kinds are their own extensions."""
_OF_TYPE = re.compile(
    rf"(?<![\w/])\.?({_EXTENSIONS}|{'|'.join(_TYPES)}) (?:source |code |config )?(?:files?|documents?|scripts?|pages?)\b", re.IGNORECASE
)
_LISTING = re.compile(
    rf"^(?:please |can you |could you )*(?:ls\b|dir\b|tree\b|{_LOOK}\b.*\b(?:files?|folders?|director(?:y|ies)|inside|here|contents?)\b"
    r"|how many\b.*\b(?:files?|folders?|directories)\b|list\b|what(?:'s| is| are) in (?:the )?(?:\w+ )?(?:folder|directory)?)",
    re.IGNORECASE,
)
_FOLDERS = (
    re.compile(r"\b(?:folder|directory)(?: called| named)? [`'\"]?([\w./-]+)", re.IGNORECASE),
    re.compile(r"([\w./-]+)[`'\"]? (?:folder|directory)\b", re.IGNORECASE),
    re.compile(r"^(?:ls|dir|tree) (?:-\w+ )*[`'\"]?([\w./-]+)", re.IGNORECASE),
    re.compile(r"(?<![\w/])([\w.-]+)/(?!\w)"),
    re.compile(r"\b(?:in|inside|under|of|from|within) (?:the )?[`'\"]?([\w./-]+)", re.IGNORECASE),
)
_NOT_FOLDERS = re.compile(
    r"the|th(?:is|at|ere)|my|our|an?|here|it|which|what|and|folder|directory|files?|all|total|is|are|current|project|names?|list|show|each",
    re.IGNORECASE,
)


def _first(question: str) -> Step | None:
    """Return the first call that the question asks for, or None if its words don't tell."""
    files = named_files(question)
    if files and _FIND_NAMED.match(question) and not _IN_NAMED_FILE.search(question):
        return _call("find_files", "pattern", (file.rpartition("/")[2] for file in files))
    if files:
        return _call("read_file", "path", files)
    if terms := _terms(question, _CONTENT):
        return _search(terms)
    if kind := _OF_TYPE.search(question):
        return _call("find_files", "pattern", [_TYPES.get(kind[1].lower(), f"*.{kind[1].lower()}")])
    if terms := _terms(question, _ABOUT):
        return _search(terms)
    if _LISTING.match(question):
        return _call("list_files", "path", _folders(question))
    return None


def _search(terms: Sequence[str]) -> Step:
    """Return a search that ignores case, unless a term has capital letters."""
    if all(term.islower() for term in terms):
        return _call("search_files", "pattern", terms, ignore_case=True)
    return _call("search_files", "pattern", terms)


def _terms(question: str, patterns: Iterable[re.Pattern[str]]) -> list[str]:
    found = [match[1].strip(".-") for pattern in patterns for match in pattern.finditer(question)]
    terms = _unique(term for term in found if term and not _NOT_TERMS.fullmatch(term))
    return [_singular(term) for term in terms]


def _singular(term: str) -> str:
    """Return a pattern that also finds the singular of a plain word."""
    return term[:-1] if term.islower() and len(term) > 4 and term.endswith("s") and not term.endswith("ss") else term


def _folders(question: str) -> list[str]:
    *certain, likely = _FOLDERS
    names = _unique(name for pattern in certain for name in _named(pattern, question)) or [*_named(likely, question)]
    return names or ["."]


def _named(pattern: re.Pattern[str], question: str) -> Iterable[str]:
    names = (match[1].rstrip(".") or "." for match in pattern.finditer(question))
    return (name.rstrip("/") or "/" for name in names if not _NOT_FOLDERS.fullmatch(name))


_SECOND = re.compile(
    r"\b(?:and|then)\b[^.?!]*\b(?:tell|what|which|how|who|when|where|why|read|show|summari[sz]e|explain|give|say|describe|open|its|their)\b"
    r"|[.?!] +\w",
    re.IGNORECASE,
)
"""Matches a question with a second part."""
_POINTER = re.compile(
    r"\b(?:named|mentioned|given|listed|linked|referenced) (?:there|in it|in that)"
    r"|\b(?:other|another|that|linked|next) file\b|\bpoints? to\b",
    re.IGNORECASE,
)
"""Matches a question about a file whose name is in another file."""


def _further(question: str, calls: Sequence[Part], first: Step | None) -> Step | None:
    """Return the step after these calls, or None if the words don't tell. Files that the question names are read first."""
    done = read_files(calls)
    missing = [file for file in named_files(question) if file not in done]
    last = calls[-1]
    output = output_of(last)
    if first is not None and first.tool == "read_file" and missing and not output.error:
        return _call("read_file", "path", missing)
    if tool_name(last) == "read_file":
        named = [file for file in _files_in(last) if file not in done]
        return _call("read_file", "path", named) if named and _POINTER.search(question) else ANSWER if first or not missing else None
    if first is None:
        return None if not done or missing else ANSWER
    if tool_name(last) == "search_files" and (output.error or _is_empty(last)):
        return _call("find_files", "pattern", [f"*{_argument(last, 'pattern')}*"])
    found = [file for file in _files_in(last) if file not in done]
    return _call("read_file", "path", found) if found and _SECOND.search(question) else ANSWER


def _call(tool: str, argument: str, values: Iterable[str], **fixed: bool) -> Step:
    return Step("call", tool, argument, tuple(_unique(values))[:_VALUES], tuple(fixed.items()))


def read_files(calls: Iterable[Part]) -> set[str]:
    """Return the paths of the files that these calls have read."""
    return {_argument(part, "path") for part in calls if tool_name(part) == "read_file"}


_ENTRY = re.compile(r"^(.+) \([\d.,]+ (?:bytes?|[kKMGT]B)\)$")
_HIT = re.compile(r"^(.+?):\d+:")


def _files_in(call: Part) -> list[str]:
    """Return the paths of the files in the output of a call, as `read_file` takes them."""
    text = output_of(call).text
    match tool_name(call):
        case "list_files":
            folder = _argument(call, "path").rstrip("/")
            names = [match[1] for line in text.splitlines() if (match := _ENTRY.match(line))]
            return _unique(name if folder in ("", ".") else f"{folder}/{name}" for name in names)
        case "search_files":
            return _unique(match[1] for line in text.splitlines() if (match := _HIT.match(line)))
        case "find_files":
            return _unique(line for line in text.splitlines() if line and " " not in line and not line.endswith("/"))
        case _:
            return _unique(FILE.findall(text))


def _is_empty(call: Part) -> bool:
    return not _files_in(call)


def _repeats(calls: Sequence[Part]) -> bool:
    """Return True if the last call repeats an earlier one."""
    given = [(tool_name(part), part.get("input")) for part in calls]
    return bool(given) and given[-1] in given[:-1]


def _argument(call: Part, name: str) -> str:
    arguments = call.get("input")
    return str(arguments.get(name, "")) if isinstance(arguments, dict) else ""


def _unique(values: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(values))


def call_schema(step: Step) -> JsonObject:
    """Return the schema of the call that the step allows."""
    arguments: JsonObject = {step.argument: {"enum": list(step.values)}, **{name: {"const": value} for name, value in step.fixed}}
    properties: JsonObject = {"tool": {"const": step.tool}, "arguments": _closed(arguments)}
    return _closed(properties)


def _closed(properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
