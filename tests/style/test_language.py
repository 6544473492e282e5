"""The texts of moot are plain technical English (CONTRIBUTING.md, "Plain English").

A machine can't judge style. It can count forms that plain technical English does not use, so this list only grows.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from style.tree import none_of, plant

TEXTS = (
    "src/moot/**/*.py",
    "examples/**/*.py",
    "benchmarks/*.py",
    "tests/**/*.py",
    "web/src/**/*.ts*",
    "docs/*.md",
    "*.md",
    "examples/**/*.md",
    "benchmarks/*.md",
    "web/*.md",
)

ODD = {
    # a pattern → what to write instead
    r"(?<!You )\b"
    r"(told|said|anew|begun|beside|besides|nobody|somebody|whoever|whatsoever|whence|hither|wherein|thereof|thereby|albeit|whilst|amongst"
    r"|upon|ere)\b": "report, again, started, next to, no one, someone, anyone",
    r"\b(stands|stood)\b(?! for\b)|\b(to|that|can|may|must|not|which|they|it) stand\b(?! for\b)": "is, is stored, is available",
    r"\b(go|goes|going|went|gone) on\b": "continue",
    r"\bcarr(y|ies|ied|ying) on\b": "continue",
    r"\b(lies|lay)\b": "is, is in",
    r"(?<![Tt]here )\b(is|are|was|were) no (?!longer|more than|need|such|later|way|other|different|matter)": "is not a …, does not exist",
    r"\b(is|are|was|were) (?:not )?to be (?=\w+(?:ed|n|t)\b)": "must be, will be",
    r"\b(brought|bring|brings|bringing) in\b": "import",
    r"\b(is|are) (there|here) already\b|\bthere already\b": "already exists",
    r"\bknows? (no|none|nothing|neither)\b": "does not know",
    r"\bspoken? of\b|\bspeaks? of\b": "describe, mention",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"\bin words\b|\bto the letter\b|\bwithout a word\b|\bby and by\b": "say it literally",
    r"\b[Ww]hat\b[^.?!]*\btook\b": "usage, cost, time",
    r"\b(had|were|be) it\b(?= \w+(?:ed|n)\b)": "if it …",
    r"\bof (ours|theirs|hers)\b": "our, moot's, their",
    r"\bno (\w+ )?(knows|begins|answers|reads) (it|so)\b": "usual word order",
    r"\b(is|are) (asked|waited|looked|cared) for\b": "active voice",
    r"\b(can(not|'t| not)?|may|to) be had\b": "is available",
    r"\bas (it|they) came\b": "unchanged, as received",
}
STORED = frozenset(
    {
        # texts in stored chunks; changing one needs a new version of its translator
        "Claude Code went on with another model.",
        "Codex goes on with {} in place of {}",
        "something that is no event stream",
        "the answer ended before it said anything",
        "the arguments are no JSON object",
        # the prompt that the small model was measured with
        "You answer with one JSON object: the tool call that does what was asked, or a reply. "
        "Copy names, commands and texts from the user's words to the letter. After the tool's output, reply in one short sentence.",
    }
)
_ODD = [(re.compile(pattern), plain) for pattern, plain in ODD.items()]

_NOMINAL = re.compile(r"(What|Whether|Where|Who|Whose|Whom|Which|How|That|Those|Of|As)\b")
_VERBS = [
    "Takes",
    "Gives",
    "Makes",
    "Writes",
    "Reads",
    "Shows",
    "Sets",
    "Returns",
    "Raises",
    "Says",
    "Tells",
    "Puts",
    "Runs",
    "Adds",
    "Drops",
    "Keeps",
    "Holds",
    "Looks",
    "Finds",
    "Asks",
    "Begins",
    "Ends",
    "Stops",
    "Starts",
    "Opens",
    "Closes",
    "Sends",
    "Gets",
    "Goes",
    "Lets",
    "Hands",
    "Forgets",
    "Brings",
    "Draws",
    "Prints",
    "Waits",
    "Does",
    "Has",
    "Calls",
    "Counts",
    "Lists",
    "Removes",
    "Deletes",
    "Replaces",
    "Stores",
    "Yields",
    "Fails",
    "Leaves",
    "Turns",
    "Moves",
    "Passes",
    "Cuts",
    "Joins",
    "Folds",
    "Marks",
    "Notes",
    "Tries",
    "Checks",
    "Copies",
    "Cancels",
    "Answers",
    "Claims",
    "Fills",
    "Follows",
    "Frees",
    "Gathers",
    "Imports",
    "Inserts",
    "Installs",
    "Loads",
    "Records",
    "Refuses",
    "Releases",
    "Renames",
    "Repeats",
    "Resumes",
    "Saves",
    "Seals",
    "Serves",
    "Settles",
    "Splits",
    "Sweeps",
    "Translates",
    "Undoes",
    "Updates",
    "Verifies",
    "Watches",
    "Wakes",
]
_NOUN_FOLLOWS = "of in per for that with from between to after before by and or on at when while until"
_THIRD_PERSON = re.compile(rf"({'|'.join(_VERBS)}) (?!({'|'.join(_NOUN_FOLLOWS.split())})\b)")
_RAISES = re.compile(r"(?:^|[.;,] )Raises \w")
_SQL = re.compile(r"(select|insert|update|delete|create|with|pragma|alter|drop)\b", re.IGNORECASE)


def odd_forms(text: str, *, docstring: bool = False) -> Iterator[str]:
    """Yield a line for each odd form of a text, code spans and addresses left out."""
    text = re.sub(r"https?://\S+", "url", re.sub(r"``.*?``|`[^`]*`", "x", text, flags=re.DOTALL))
    for pattern, plain in _ODD:
        yield from (f"{found[0]!r}: write {plain}" for found in pattern.finditer(text))
    if docstring:
        opening = text.strip()
        if found := _NOMINAL.match(opening):
            yield f"opens with {found[0]!r}: write Return …, Check …, or a noun phrase"
        if found := _THIRD_PERSON.match(opening):
            yield f"opens with {found[1]!r}: use the imperative"
        if _RAISES.search(text):
            yield "'Raises X': write Raise X if …"


def _docstrings(tree: ast.Module) -> Iterator[ast.Constant]:
    for node in ast.walk(tree):
        for item in getattr(node, "body", None) or () if not isinstance(node, ast.Lambda | ast.IfExp) else ():
            if isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant) and isinstance(item.value.value, str):
                yield item.value


def _strings(tree: ast.Module, docstrings: set[int]) -> Iterator[tuple[int, str]]:
    pieces = set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            pieces |= {id(value) for value in node.values}
            yield node.lineno, "".join(str(value.value) if isinstance(value, ast.Constant) else "{}" for value in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings | pieces:
            yield node.lineno, node.value


def _python(text: str, *, test: bool = False) -> Iterator[tuple[int, str]]:
    """Read a module. The strings of tests are data, but the names of tests are sentences."""
    tree = ast.parse(text)
    if test:
        names = ((node.lineno, node.name) for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
        yield from ((line, form) for line, name in names if name.startswith("test_") for form in odd_forms(name[5:].replace("_", " ")))
    docstrings = list(_docstrings(tree))
    for node in docstrings:
        yield from ((node.lineno, form) for form in odd_forms(str(node.value), docstring=True))
    for line, string in () if test else _strings(tree, {id(node) for node in docstrings}):
        if " " in string.strip() and string not in STORED and not _SQL.match(string.strip()):
            yield from ((line, form) for form in odd_forms(string))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from ((token.start[0], form) for form in odd_forms(token.string))


def _markdown(text: str) -> Iterator[tuple[int, str]]:
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        elif not fenced:
            yield from ((number, form) for form in odd_forms(line))


_TYPESCRIPT = re.compile(r"//.*|/\*.*|^\s*\*.*|\"[^\"]* [^\"]*\"|'[^']* [^']*'|`[^`]* [^`]*`|>[^<>{}]* [^<>{}]*<")


def _typescript(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        for found in _TYPESCRIPT.finditer(line):
            yield from ((number, form) for form in odd_forms(found[0].replace("`", "'")))


_READERS = {".py": _python, ".md": _markdown, ".ts": _typescript, ".tsx": _typescript}


def odd_texts(root: Path, patterns: tuple[str, ...] = TEXTS) -> list[str]:
    """Return one line for each odd form below root: path, line, and what to write instead."""
    found: list[str] = []
    for path in sorted(
        {path for pattern in patterns for path in root.glob(pattern) if "node_modules" not in path.parts and path.name != "schema.d.ts"}
    ):
        if path.suffix in _READERS:
            text, test = path.read_text(encoding="utf-8"), path.is_relative_to(root / "tests")
            forms = _python(text, test=True) if test and path.suffix == ".py" else _READERS[path.suffix](text)
            found += [f"{path.relative_to(root)}:{line}: {form}" for line, form in forms]
    return found


def test_texts_are_plain_english(repository: Path) -> None:
    none_of(odd_texts(repository))


@pytest.mark.parametrize(
    "text",
    [
        "What runs took: tokens and money",
        "no id begins so, and no title is that",
        "the answer is no JSON",
        "Takes up an interrupted run, and goes on.",
        "the file is there already",
        "nobody was asked, so it is told anew",
        "it lies beside the other",
    ],
)
def test_odd_forms_are_reported(text: str) -> None:
    assert list(odd_forms(text))


@pytest.mark.parametrize(
    "text", ["What a run needs.", "Whether it is open.", "Writes the file.", "The row. Raises NotFound.", "Of each call."]
)
def test_odd_openings_of_docstrings_are_reported(text: str) -> None:
    assert list(odd_forms(text, docstring=True))
    assert not list(odd_forms(text))


@pytest.mark.parametrize(
    "text",
    [
        "Run one prompt and print the answer.",
        "Return the run's messages, oldest first. Raise NotFound if the run does not exist.",
        "Provider 'antropic' not found. Did you mean 'anthropic'?",
        "`told` is a stored field, and ISO stands for a format; it is no longer needed.",
        "Bytes of a request that are kept.",
        "Reads per second.",
    ],
)
def test_plain_english_passes(text: str) -> None:
    assert not list(odd_forms(text, docstring=True))


def test_every_kind_of_file_is_read(tmp_path: Path) -> None:
    plant(
        tmp_path,
        {
            "src/moot/a.py": '"""Whether it is."""\n# nobody\nx = f"{x} is told"\ny = "SELECT said"\n',
            "tests/test_a.py": 'def test_it_stands_anew(): """Stand.""" and "is told"\n',
            "docs/a.md": "It stands.\n\n```sh\nit stands\n```\n",
            "web/src/a.tsx": 'const a = "said"; // anew\n<p>is told here</p>\n',
        },
    )
    assert [line.partition(": ")[0] for line in odd_texts(tmp_path)] == [
        "docs/a.md:1",
        "src/moot/a.py:1",
        "src/moot/a.py:3",
        "src/moot/a.py:2",
        "tests/test_a.py:1",
        "tests/test_a.py:1",
        "web/src/a.tsx:1",
        "web/src/a.tsx:2",
    ]
